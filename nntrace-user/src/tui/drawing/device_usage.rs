//! Use of accelerators and GPUs, below the CPUs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::text::{below_first, left, list, put, right, rule};
use crate::report::device_usage::{comm, name};
use crate::report::number_format;
use crate::report::snapshot::{DeviceUsage, Snapshot, UsedDevice, UsedEngine};

/// Height of the view from which on there is room for devices.
const TALL: u16 = 18;
/// Part of the height that they take at most.
const MOST: u16 = 4;
/// Columns of a name at most, and of a share.
const NAME: usize = 36;
const SHARE: usize = 8;

/// Returns how many rows of a view of this many the devices take.
pub(crate) fn height(snapshot: &Snapshot, rows: u16) -> u16 {
    let Some(usage) = &snapshot.device_usage else { return 0 };
    let engines = usage.devices.iter().map(|device| device.engines.len().max(1)).sum::<usize>();
    if rows < TALL { 0 } else { (engines as u16).saturating_add(1).min(rows / MOST) }
}

/// Draws a heading and a line for each engine.
pub(crate) fn draw(snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let Some(usage) = &snapshot.device_usage else { return };
    let columns = usize::from(area.width);
    put(buffer, area, 0, &rule("device usage", "whole run", columns));
    let lines: Vec<String> = usage.devices.iter().flat_map(|device| lines(usage, device, columns)).collect();
    list(buffer, below_first(area), &lines);
}

/// Returns the lines of a device: its engines, each with those who used it most, as far as there is room.
fn lines(usage: &DeviceUsage, device: &UsedDevice, columns: usize) -> Vec<String> {
    if device.engines.is_empty() {
        let users: Vec<String> = device.processes.iter().map(|user| comm(device, user.pid)).collect();
        return vec![left(&format!(" {}: open in {}", name(device), users.join(", ")), columns)];
    }
    device.engines.iter().map(|engine| line(usage, device, engine, columns)).collect()
}

fn line(usage: &DeviceUsage, device: &UsedDevice, engine: &UsedEngine, columns: usize) -> String {
    let all = usage.known_ns.saturating_mul(engine.capacity);
    let share = |ns| number_format::percent(ns, all);
    let users: Vec<String> = engine
        .processes
        .iter()
        .map(|row| format!("{} {}", comm(device, row.pid), share(row.busy_ns)))
        .collect();
    let about = if users.is_empty() { engine.source.name().to_owned() } else { users.join(", ") };
    let names = columns.saturating_sub(3 + SHARE).min(NAME);
    let rest = columns.saturating_sub(3 + names + SHARE);
    let busy = number_format::or_unknown(engine.busy_ns, share);
    format!(
        " {}{}  {}",
        left(&format!("{} {}", name(device), engine.engine), names),
        right(&busy, SHARE),
        left(&about, rest)
    )
}
