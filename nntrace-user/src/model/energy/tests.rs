//! Models as files, and what they make of residencies that are worked out by hand.

mod forms;
mod golden;
mod pricing;
mod properties;

use super::*;

/// The TC2 model in idlestat's form.
const TC2: &str = include_str!("../../../../tests/fixtures/energy/tc2.txt");
/// A machine of three clocks and one idle domain, in our form.
const DYNAMIQ: &str = include_str!("../../../../tests/fixtures/energy/dynamiq.toml");

fn tc2() -> EnergyModel {
    parse("tc2.txt", TC2).unwrap()
}

fn dynamiq() -> EnergyModel {
    parse("dynamiq.toml", DYNAMIQ).unwrap()
}

/// Equal but for the rounding of a few additions.
#[track_caller]
fn assert_close(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= 1e-12 * expected.abs().max(1e-9), "{found} is not {expected}");
}
