//! Trials of probes on functions of this program itself: what they do and cost on the running kernel.

pub(super) mod call_cost;
pub(super) mod leading_nops;

use std::fs;

use super::target;

/// File of this program, even if its path has changed.
const OWN_FILE: &str = "/proc/self/exe";

/// Returns the offset of a function of ours in our own file.
fn offset(function: extern "C" fn()) -> Result<u64, String> {
    let maps = fs::read("/proc/self/maps").map_err(|error| format!("/proc/self/maps: {error}"))?;
    let address = function as *const () as u64;
    target::executable(&maps)
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
        .map(|mapping| address - mapping.start + mapping.offset)
        .ok_or_else(|| "/proc/self/maps does not show the program itself".to_owned())
}
