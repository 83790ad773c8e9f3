//! One sensor: its files, and what a reading of them means.

use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    live::clock,
    model::rails::{Quantity, RailSource, Value},
};

/// Rail as it was found: its names, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Channel {
    pub(super) source: RailSource,
    /// Chip, or control type.
    pub(super) chip: String,
    /// Device, which tells chips of one kind apart.
    pub(super) device: String,
    /// Place of the channel in its device, such as `power1`.
    pub(super) port: String,
    /// Label of the channel, or another name for people.
    pub(super) name: String,
    pub(super) input: Input,
    pub(super) quantity: Quantity,
}

/// Sensor of one rail or several.
#[derive(Debug)]
pub(super) struct Sensor {
    pub(super) input: Input,
    /// Numbers of its rails.
    pub(super) rails: Vec<usize>,
    /// Whether it gives power, and not energy.
    pub(super) is_sampled: bool,
}

/// Files of a sensor.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// Energy so far, uJ.
    MicroJoules(PathBuf),
    /// Power, uW.
    MicroWatts(PathBuf),
    /// Voltage, mV, and current, mA.
    VoltsAndAmps(PathBuf, PathBuf),
    /// Raw energy, J after offset and scale.
    ScaledJoules(PathBuf, Scale),
    /// Raw power, mW after offset and scale.
    ScaledMilliWatts(PathBuf, Scale),
    /// Lines of energies so far of a power management chip, uJ, of which each is a rail.
    EnergyLines(PathBuf),
}

/// `(raw + offset) * scale`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) offset: f64,
    pub(super) scale: f64,
}

/// Readings of a sensor's rails.
pub(super) struct Readings {
    /// One for each rail, in order.
    pub(super) values: Vec<Result<Value, String>>,
    /// Age of what the sensor gave, ns, where it has a clock.
    pub(super) age_ns: u64,
}

/// A sensor's own time is believed when it is no older than this, ns.
const OLDEST_NS: u64 = 10_000_000_000;

impl Input {
    /// Reads the sensor of this many rails.
    pub(super) fn read(&self, rails: usize) -> Readings {
        let value = match self {
            Self::MicroJoules(path) => number::<u64>(path).and_then(|uj| {
                uj.checked_mul(1_000)
                    .map(Value::Energy)
                    .ok_or_else(|| format!("{}: {uj} uJ are too many", path.display()))
            }),
            Self::MicroWatts(path) => number::<i64>(path).map(|uw| Value::Power(uw.saturating_mul(1_000))),
            Self::VoltsAndAmps(volts, amps) => number::<i64>(volts).and_then(|mv| {
                // mV times mA are uW.
                Ok(Value::Power(mv.saturating_mul(number::<i64>(amps)?).saturating_mul(1_000)))
            }),
            Self::ScaledJoules(path, scale) => scaled(path, *scale, 1e9).and_then(|nj| {
                let is_counter = (0.0..i64::MAX as f64).contains(&nj);
                #[expect(clippy::cast_sign_loss, reason = "it is no less than 0")]
                let energy = is_counter.then_some(Value::Energy(nj as u64));
                energy.ok_or_else(|| format!("{}: {} J are no energy so far", path.display(), nj * 1e-9))
            }),
            // What is out of range saturates.
            Self::ScaledMilliWatts(path, scale) => {
                scaled(path, *scale, 1e6).map(|nw| Value::Power(nw as i64))
            }
            Self::EnergyLines(path) => return energy_lines(path, rails),
        };
        Readings { values: vec![value], age_ns: 0 }
    }
}

/// Reads a number from a file.
fn number<N: FromStr>(path: &Path) -> Result<N, String> {
    let text = text(path)?;
    text.parse().map_err(|_| format!("{}: expected a number, found {text:?}", path.display()))
}

/// Reads a raw value, and returns it after offset and scale, times a factor, rounded.
fn scaled(path: &Path, scale: Scale, factor: f64) -> Result<f64, String> {
    let value = (number::<f64>(path)? + scale.offset) * scale.scale * factor;
    if value.is_finite() { Ok(value.round()) } else { Err(format!("{}: expected a number", path.display())) }
}

/// Reads a text without the blanks around it.
fn text(path: &Path) -> Result<String, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(format!("{}: only root may read it", path.display()))
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Returns a name in a file; `None` where there is none.
pub(super) fn name(path: &Path) -> Option<String> {
    text(path).ok().filter(|name| !name.is_empty())
}

/// Returns a factor in a file; `None` where there is none.
pub(super) fn factor(path: &Path) -> Option<f64> {
    number(path).ok().filter(|factor: &f64| factor.is_finite())
}

/// Returns the name of the device behind an entry of a class: its address on the bus, else the entry's own name.
pub(super) fn device(entry: &Path, parent: &str) -> String {
    let target = fs::canonicalize(entry.join(parent)).ok().filter(|_| entry.is_symlink());
    let named = target.as_deref().unwrap_or(entry).file_name();
    named.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the entries of a folder by name; none where there is no such folder.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

fn energy_lines(path: &Path, rails: usize) -> Readings {
    let lines = match text(path) {
        Ok(text) => EnergyLines::parse(&text),
        Err(reason) => return Readings { values: vec![Err(reason); rails], age_ns: 0 },
    };
    let values = (0..rails).map(|rail| match lines.rails.get(rail) {
        Some((_, Some(uj))) => uj
            .checked_mul(1_000)
            .map(Value::Energy)
            .ok_or_else(|| format!("{}: {uj} uJ are too many", path.display())),
        Some((name, None)) => Err(format!("{}: no energy of {name}", path.display())),
        None => Err(format!("{}: its line {rail} is missing", path.display())),
    });
    let age_ns = lines.time_ms.and_then(|ms| clock::since_boot().checked_sub(ms.checked_mul(1_000_000)?));
    Readings { values: values.collect(), age_ns: age_ns.filter(|age| *age <= OLDEST_NS).unwrap_or(0) }
}

/// Energies of the rails of a power management chip, as its meter prints them:
///
/// ```text
/// t=7215342
/// CH0(T=7215342)[S10M_VDD_TPU], 8654321
/// ```
///
/// Source: the driver of the S2MPG10's on-device power meter, `energy_value_show`: `t` is ms since boot, the last number
/// the energy so far, uWs.
pub(super) struct EnergyLines {
    /// Time of the reading since boot, with suspend, ms.
    pub(super) time_ms: Option<u64>,
    /// Names, and energies so far, uJ, where they can be read.
    pub(super) rails: Vec<(String, Option<u64>)>,
}

impl EnergyLines {
    /// Reads the lines of a text.
    pub(super) fn parse(text: &str) -> Self {
        let mut found = Self { time_ms: None, rails: Vec::new() };
        for line in text.lines() {
            if let Some(time) = line.strip_prefix("t=") {
                found.time_ms = time.trim().parse().ok();
            } else if let Some((channel, energy)) = line.rsplit_once(',') {
                let name = channel.split_once('[').and_then(|(_, name)| name.rsplit_once(']'));
                let name = name.map_or(channel, |(name, _)| name).trim();
                found.rails.push((name.to_owned(), energy.trim().parse().ok()));
            }
        }
        found
    }
}
