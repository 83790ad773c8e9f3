//! Places in a program that begin sections of one name.

use super::{CAPACITY, Payload};
use crate::layer::{Layer, Phase};
use crate::mark::Prefix;

/// Bytes of the longest name that is never cut, whatever is in front of it.
const WHOLE_NAME: usize = CAPACITY - "B|4294967295|[SUB][NN_LA_PBM]\0".len();

/// Place in a program that begins sections of one layer, phase and name: [`mark!`](crate::mark!) with a literal name and
/// without attributes makes one.
///
/// A thread names it once to the profiler, and then by a number.
#[derive(Debug)]
pub struct Site {
    prefix: Prefix,
    layer: Layer,
    phase: Phase,
    name: &'static str,
    may_be_in_lane: bool,
}

impl Site {
    /// Creates a site. It is known by its address, so it belongs into a `static`.
    #[must_use]
    pub const fn new(prefix: Prefix, layer: Layer, phase: Phase, name: &'static str) -> Self {
        // The phases of the application matter to other threads, so they always take the probe.
        let is_application =
            matches!((layer, phase), (Layer::Application, Phase::Overall | Phase::WarmUp | Phase::Benchmark));
        let may_be_in_lane = !is_application && is_plain(name.as_bytes());
        Self { prefix, layer, phase, name, may_be_in_lane }
    }

    /// Whether its sections may begin in a lane by its number.
    #[inline]
    pub(super) fn may_be_in_lane(&self) -> bool {
        self.may_be_in_lane
    }

    /// Formats a begin.
    pub(super) fn begin(&self) -> Payload {
        let mut payload = Payload::untagged();
        self.put(&mut payload);
        payload
    }

    /// Appends the text that a lane knows it by: `<prefix>[NN_<layer>_<phase>]<name>`.
    pub(super) fn put(&self, to: &mut Payload) {
        to.push_section(self.prefix, self.layer, self.phase, self.name);
    }
}

/// Whether a name is written as it is, and has no attributes.
const fn is_plain(name: &[u8]) -> bool {
    let mut rest = name;
    while let [first, others @ ..] = rest {
        if *first == b'#' || *first == 0 {
            return false;
        }
        rest = others;
    }
    name.len() <= WHOLE_NAME
}
