//! Rules of the contract by the numbers of layers and phases: table look-ups that the verifier can follow.

use super::{Class, Layer, Phase};

/// Bit `phase` of entry `parent` is set when the phase is a subphase of the parent.
const SUBPHASES: [u16; 16] = phase_table(true);
/// Bit `phase` of entry `parent` is set when the phase may be inside the parent.
const PHASES_IN: [u16; 16] = phase_table(false);
/// Bit `layer` of entry `parent` is set when the layer may be inside the parent.
const LAYERS_IN: [u16; 16] = layer_table();

const fn phase_table(subphases: bool) -> [u16; 16] {
    let mut table = [0; 16];
    let mut outer = 0;
    while outer < Phase::ALL.len() {
        let mut inner = 0;
        while inner < Phase::ALL.len() {
            let set = if subphases {
                Phase::ALL[outer].has_subphase(Phase::ALL[inner])
            } else {
                Phase::ALL[outer].may_contain(Phase::ALL[inner])
            };
            if set {
                table[outer] |= 1 << inner;
            }
            inner += 1;
        }
        outer += 1;
    }
    table
}

const fn layer_table() -> [u16; 16] {
    let mut table = [0; 16];
    let mut outer = 0;
    while outer < Layer::ALL.len() {
        let mut inner = 0;
        while inner < Layer::ALL.len() {
            if Layer::ALL[outer].may_contain(Layer::ALL[inner]) {
                table[outer] |= 1 << inner;
            }
            inner += 1;
        }
        outer += 1;
    }
    table
}

#[inline(always)]
fn has(table: &[u16; 16], outer: u8, inner: u8) -> bool {
    table[(outer & 15) as usize] >> (inner & 15) & 1 != 0
}

/// Returns the class of a frame without `[SUB]` in a marked parent; first match, as in the contract.
#[inline(always)]
pub fn class(parent_layer: u8, parent_phase: u8, layer: u8, phase: u8) -> Class {
    let initialization = Phase::Initialization as u8;
    if phase == initialization && parent_phase != initialization {
        return Class::Subtract;
    }
    let called = layer == Layer::Runtime as u8 || layer == Layer::Ipc as u8;
    let executes = phase == Phase::Execution as u8 || phase >= Phase::InputsOutputs as u8;
    if called
        && parent_layer == Layer::Application as u8
        && parent_phase != phase
        && parent_phase > Phase::Benchmark as u8
        && !executes
    {
        return Class::Subtract;
    }
    if layer == Layer::Utility as u8 || (layer == parent_layer && !has(&SUBPHASES, parent_phase, phase)) {
        return Class::Detail;
    }
    Class::Section
}

/// Whether the contract's orders allow the frame in that parent.
#[inline(always)]
pub fn may_nest(parent_layer: u8, parent_phase: u8, layer: u8, phase: u8) -> bool {
    has(&LAYERS_IN, parent_layer, layer) && phase_may_nest(parent_phase, phase)
}

/// Whether the contract's order of phases allows the frame in that parent.
#[inline(always)]
pub fn phase_may_nest(parent_phase: u8, phase: u8) -> bool {
    has(&PHASES_IN, parent_phase, phase)
}
