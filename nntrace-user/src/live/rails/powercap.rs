//! Rails of power caps: RAPL and others.
//!
//! Source: `Documentation/ABI/testing/sysfs-class-powercap`: a zone `intel-rapl:0:1` is zone 1 in zone 0 of the control type
//! `intel-rapl`; `energy_uj` is a counter that begins again after `max_energy_range_uj`, `power_uw` is power.

use std::path::Path;

use super::sensor::{Channel, Input, entries, name};
use crate::{
    live::sysfs,
    model::rails::{Quantity, RailSource},
};

/// Finds the rails of all zones in the folder of the class.
pub(super) fn find(class: &Path) -> Vec<Channel> {
    entries(class).iter().filter_map(|zone| rail(class, zone)).collect()
}

fn rail(class: &Path, zone: &Path) -> Option<Channel> {
    let id = zone.file_name()?.to_str()?;
    let (chip, _) = id.split_once(':')?;
    let (energy, power) = (zone.join("energy_uj"), zone.join("power_uw"));
    let (input, quantity) = if energy.exists() {
        let range = sysfs::number(&zone.join("max_energy_range_uj")).and_then(|uj| uj.checked_mul(1_000));
        (Input::MicroJoules(energy), Quantity::Energy { range })
    } else if power.exists() {
        (Input::MicroWatts(power), Quantity::Power)
    } else {
        return None;
    };
    let ends = id.match_indices(':').skip(1).map(|(at, _)| at).chain([id.len()]);
    let names =
        ends.map(|end| name(&class.join(&id[..end]).join("name")).unwrap_or_else(|| id[..end].to_owned()));
    Some(Channel {
        source: RailSource::Powercap,
        chip: chip.to_owned(),
        device: id.to_owned(),
        port: if quantity == Quantity::Power { "power" } else { "energy" }.into(),
        name: names.collect::<Vec<_>>().join("/"),
        input,
        quantity,
    })
}
