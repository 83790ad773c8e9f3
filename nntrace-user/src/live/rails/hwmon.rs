//! Rails of hardware monitors.
//!
//! Source: `Documentation/hwmon/sysfs-interface.rst`: `energyN_input` is uJ so far, `powerN_input` and `powerN_average` are
//! uW, `inN_input` mV, `currN_input` mA. The INA3221 has volts and amps of each channel, and no power.

use std::{collections::BTreeSet, path::Path};

use super::sensor::{Channel, Input, device, entries, name};
use crate::model::rails::{Quantity, RailSource};

/// Finds the rails of all monitors in the folder of the class.
pub(super) fn find(class: &Path) -> Vec<Channel> {
    entries(class).iter().flat_map(|monitor| rails(monitor)).collect()
}

fn rails(monitor: &Path) -> Vec<Channel> {
    let chip = name(&monitor.join("name")).unwrap_or_else(|| "unnamed".into());
    let files = entries(monitor);
    let numbers = |kind: &str| -> BTreeSet<u32> {
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        names
            .filter_map(|name| {
                let (number, attribute) = name.strip_prefix(kind)?.split_once('_')?;
                matches!(attribute, "input" | "average").then(|| number.parse().ok())?
            })
            .collect()
    };
    let channel = |kind: &str, number: u32, input, quantity| {
        let label = |kind: &str| name(&monitor.join(format!("{kind}{number}_label")));
        let port = format!("{kind}{number}");
        let named = label(kind).or_else(|| label("in")).or_else(|| name(&monitor.join("label")));
        Channel {
            source: RailSource::Hwmon,
            chip: chip.clone(),
            device: device(monitor, "device"),
            name: named.unwrap_or_else(|| port.clone()),
            port,
            input,
            quantity,
        }
    };
    let energies = numbers("energy");
    let mut found: Vec<Channel> = energies
        .iter()
        .map(|&number| {
            let input = Input::MicroJoules(monitor.join(format!("energy{number}_input")));
            channel("energy", number, input, Quantity::Energy { range: None })
        })
        .collect();
    let powers = numbers("power");
    found.extend(powers.iter().map(|&number| {
        let now = monitor.join(format!("power{number}_input"));
        let path = if now.exists() { now } else { monitor.join(format!("power{number}_average")) };
        channel("power", number, Input::MicroWatts(path), Quantity::Power)
    }));
    // Elsewhere volts and amps of one number need not belong together.
    if powers.is_empty() && chip.starts_with("ina") {
        found.extend(numbers("curr").intersection(&numbers("in")).map(|&number| {
            let input = |kind: &str| monitor.join(format!("{kind}{number}_input"));
            let product = Input::VoltsAndAmps(input("in"), input("curr"));
            channel("in", number, product, Quantity::Power)
        }));
    }
    found
}
