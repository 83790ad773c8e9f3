//! Rails of converters and of the meters in power management chips.
//!
//! Source: `Documentation/ABI/testing/sysfs-bus-iio`: `in_powerY_raw` is mW and `in_energyY_raw` J after offset and scale,
//! `_input` without them. Channels without a number are of activity sensors, which estimate the energy of people.

use std::{collections::BTreeSet, path::Path};

use super::sensor::{Channel, EnergyLines, Input, Scale, device, entries, factor, name};
use crate::model::rails::{Quantity, RailSource};

/// Finds the rails of all devices in the folder of the bus.
pub(super) fn find(devices: &Path) -> Vec<Channel> {
    entries(devices).iter().flat_map(|device| rails(device)).collect()
}

fn rails(folder: &Path) -> Vec<Channel> {
    let chip = name(&folder.join("name")).unwrap_or_else(|| "unnamed".into());
    let channel = |port: String, label: Option<String>, input, quantity| Channel {
        source: RailSource::Iio,
        chip: chip.clone(),
        device: device(folder, ".."),
        name: label.unwrap_or_else(|| port.clone()),
        port,
        input,
        quantity,
    };
    let lines = folder.join("energy_value");
    let names: Vec<Option<String>> = match name(&lines) {
        Some(text) => EnergyLines::parse(&text).rails.into_iter().map(|(name, _)| Some(name)).collect(),
        // Its readings will show why.
        None if lines.exists() => vec![None],
        None => Vec::new(),
    };
    let meter = names.into_iter().enumerate().map(|(number, name)| {
        let input = Input::EnergyLines(lines.clone());
        channel(format!("CH{number}"), name, input, Quantity::Energy { range: None })
    });
    let mut found: Vec<Channel> = meter.collect();
    for (kind, is_power) in [("energy", false), ("power", true)] {
        for number in numbers(folder, kind) {
            let base = format!("in_{kind}{number}");
            let file = |attribute: &str| folder.join(format!("{base}_{attribute}"));
            let processed = file("input");
            let (path, scale) = if processed.exists() {
                (processed, Scale { offset: 0.0, scale: 1.0 })
            } else {
                // One attribute may be that of all channels of the kind.
                let shared = |attribute: &str| {
                    factor(&file(attribute))
                        .or_else(|| factor(&folder.join(format!("in_{kind}_{attribute}"))))
                };
                let (offset, scale) = (shared("offset").unwrap_or(0.0), shared("scale").unwrap_or(1.0));
                (file("raw"), Scale { offset, scale })
            };
            let label = name(&file("label")).or_else(|| name(&folder.join("label")));
            let (input, quantity) = if is_power {
                (Input::ScaledMilliWatts(path, scale), Quantity::Power)
            } else {
                (Input::ScaledJoules(path, scale), Quantity::Energy { range: None })
            };
            found.push(channel(format!("{kind}{number}"), label, input, quantity));
        }
    }
    found
}

/// Returns the numbers of the channels of a kind.
fn numbers(folder: &Path, kind: &str) -> BTreeSet<u32> {
    let files = entries(folder);
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    names
        .filter_map(|name| {
            let (number, attribute) = name.strip_prefix("in_")?.strip_prefix(kind)?.split_once('_')?;
            matches!(attribute, "raw" | "input").then(|| number.parse().ok())?
        })
        .collect()
}
