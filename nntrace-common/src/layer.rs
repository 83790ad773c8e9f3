//! Layers and phases of the NN stack, the tag that names one of each, and how they may nest.
//!
//! Source of the letters and of the order: the mark contract, sections 1 and 2.

use crate::named_enum::enumeration;

enumeration! {
    /// A layer of the NN stack.
    #[derive(PartialOrd, Ord)]
    pub enum Layer {
        /// The application.
        Application = "LA",
        /// The NN runtime.
        Runtime = "LR",
        /// Inter-process communication.
        Ipc = "LI",
        /// The driver.
        Driver = "LD",
        /// The runtime's own CPU executor.
        CpuFallback = "LC",
        /// Helpers that are called from several layers.
        Utility = "LU",
        /// Anything else.
        Other = "LO",
    }

    /// The two letters of a mark, `LA` for the application.
    pub fn code;
}

enumeration! {
    /// A phase of an NN program.
    #[derive(PartialOrd, Ord)]
    pub enum Phase {
        /// One whole program or benchmark case.
        Overall = "PO",
        /// Warm-up runs.
        WarmUp = "PWU",
        /// Measured runs.
        Benchmark = "PBM",
        /// One-time initialization, not tied to a model.
        Initialization = "PI",
        /// Model construction.
        Preparation = "PP",
        /// Compilation.
        Compilation = "PC",
        /// Execution.
        Execution = "PE",
        /// Termination.
        Termination = "PT",
        /// Takes the phase of the section around it.
        Unspecified = "PU",
        /// Inputs and outputs, a part of execution.
        InputsOutputs = "PIO",
        /// Data transformation, a part of execution.
        Transformation = "PTR",
        /// Computation, a part of execution.
        Computation = "PCO",
        /// Results, a part of execution.
        Results = "PR",
    }

    /// The letters of a mark, `PE` for execution.
    pub fn code;
}

impl Layer {
    /// The word that tables show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::Runtime => "Runtime",
            Self::Ipc => "IPC",
            Self::Driver => "Driver",
            Self::CpuFallback => "CPU",
            Self::Utility => "Utility",
            Self::Other => "Other",
        }
    }

    /// Whether a section of layer `inner` may be directly inside one of this layer.
    #[must_use]
    #[inline(always)]
    pub const fn may_contain(self, inner: Self) -> bool {
        self as u8 == inner as u8
            || matches!(inner, Self::Utility)
            || matches!(
                (self, inner),
                (Self::Application, Self::Runtime)
                    | (Self::Runtime, Self::Ipc)
                    // By the role of its process, the driver or the CPU executor is shown as the other.
                    | (Self::Ipc | Self::CpuFallback, Self::Driver)
                    | (Self::Runtime | Self::Driver, Self::CpuFallback)
            )
    }
}

impl Phase {
    /// The word that tables show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overall => "Overall",
            Self::WarmUp => "Warm-up",
            Self::Benchmark => "Benchmark",
            Self::Initialization => "Initialization",
            Self::Preparation => "Preparation",
            Self::Compilation => "Compilation",
            Self::Execution => "Execution",
            Self::Termination => "Termination",
            Self::Unspecified => "Unspecified",
            Self::InputsOutputs => "I/O",
            Self::Transformation => "Transformation",
            Self::Computation => "Computation",
            Self::Results => "Results",
        }
    }

    /// Whether this is one of the four parts of execution.
    #[must_use]
    #[inline(always)]
    pub const fn is_execution_part(self) -> bool {
        self as u8 >= Self::InputsOutputs as u8
    }

    /// Whether this is execution or one of its parts.
    #[must_use]
    #[inline(always)]
    pub const fn is_execution(self) -> bool {
        matches!(self, Self::Execution) || self.is_execution_part()
    }

    /// Whether only an application is ever in this phase: overall, warm-up, benchmark.
    #[must_use]
    #[inline(always)]
    pub const fn is_application_phase(self) -> bool {
        self as u8 <= Self::Benchmark as u8
    }

    /// Whether `inner` is a subphase of this phase, as the contract lists them.
    #[must_use]
    #[inline(always)]
    pub const fn has_subphase(self, inner: Self) -> bool {
        match self {
            Self::Execution => inner.is_execution_part(),
            Self::Overall => {
                !matches!(inner, Self::Overall | Self::Unspecified) && !inner.is_execution_part()
            }
            Self::WarmUp | Self::Benchmark => matches!(inner, Self::Execution),
            _ => false,
        }
    }

    /// Whether a section of phase `inner` may be directly inside one of this phase (subtracted ones always may).
    #[must_use]
    #[inline(always)]
    pub const fn may_contain(self, inner: Self) -> bool {
        self as u8 == inner as u8
            || self.is_application_phase()
            || matches!(inner, Self::Initialization)
            || self.has_subphase(inner)
    }
}

/// Layer and phase in seven bits, from `[NN_<layer>_<phase>]`.
///
/// The eighth bit is free for the users of a tag (see [`crate::stack`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "(Layer, Phase)", into = "(Layer, Phase)"))]
#[repr(transparent)]
pub struct Tag(u8);

impl From<(Layer, Phase)> for Tag {
    fn from((layer, phase): (Layer, Phase)) -> Self {
        Self::new(layer, phase)
    }
}

impl From<Tag> for (Layer, Phase) {
    fn from(tag: Tag) -> Self {
        (tag.layer(), tag.phase())
    }
}

impl Tag {
    /// Number of tags: every value of [`Tag::index`] is below.
    pub const COUNT: usize = Layer::ALL.len() * 16;

    /// Returns the tag of a layer and a phase.
    #[must_use]
    #[inline(always)]
    pub const fn new(layer: Layer, phase: Phase) -> Self {
        Self((layer as u8) << 4 | phase as u8)
    }

    /// Parses the tag `L<layer>_P<second><third>`; a missing third letter is 0. `None` for letters that are not in
    /// the contract.
    ///
    /// By tables, not by comparing: the kernel's verifier follows every comparison, and would walk through the rest
    /// of the program once for each of the 91 tags.
    #[must_use]
    #[inline(always)]
    pub const fn from_letters(layer: u8, second: u8, third: u8) -> Option<Self> {
        let known = letters::LAYER[(layer & 31) as usize] | letters::PHASE[letters::pair(second, third)];
        let capitals = layer & 0xe0 == 0x40 && second & 0xe0 == 0x40 && (third == 0 || third & 0xe0 == 0x40);
        if capitals && known & letters::NONE == 0 { Some(Self(known)) } else { None }
    }

    /// Returns the tag's number, from 0 to [`Tag::COUNT`] exclusive; stable within one record version.
    #[must_use]
    #[inline(always)]
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Returns the tag with a number from [`Tag::index`].
    #[must_use]
    #[inline(always)]
    pub(crate) const fn from_trusted_index(index: u8) -> Self {
        Self(index)
    }

    /// Returns the tag with a number; `None` when no layer or phase has it.
    #[must_use]
    pub const fn from_index(index: u8) -> Option<Self> {
        let (layer, phase) = ((index >> 4) as usize, (index & 15) as usize);
        if layer < Layer::ALL.len() && phase < Phase::ALL.len() { Some(Self(index)) } else { None }
    }

    /// Returns the layer.
    #[must_use]
    pub const fn layer(self) -> Layer {
        Layer::ALL[(self.0 >> 4) as usize]
    }

    /// Returns the phase.
    #[must_use]
    pub const fn phase(self) -> Phase {
        Phase::ALL[(self.0 & 15) as usize]
    }
}

/// Tables from letters to the parts of a tag, derived from the codes above.
mod letters {
    use super::{Layer, Phase};

    /// Entry for letters without a layer or phase.
    pub const NONE: u8 = 0x80;

    /// Layer's part of a tag, by its letter.
    pub static LAYER: [u8; 32] = {
        let mut table = [NONE; 32];
        let mut at = 0;
        while at < Layer::ALL.len() {
            table[(Layer::ALL[at].code().as_bytes()[1] & 31) as usize] = (at as u8) << 4;
            at += 1;
        }
        table
    };

    /// Phase's part of a tag, by its letters after the `P`.
    pub static PHASE: [u8; 1024] = {
        let mut table = [NONE; 1024];
        let mut at = 0;
        while at < Phase::ALL.len() {
            let code = Phase::ALL[at].code().as_bytes();
            let third = if code.len() > 2 { code[2] } else { 0 };
            table[pair(code[1], third)] = at as u8;
            at += 1;
        }
        table
    };

    #[inline(always)]
    pub const fn pair(second: u8, third: u8) -> usize {
        (second & 31) as usize | ((third & 31) as usize) << 5
    }
}

/// A text that no tag has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTag;

impl core::fmt::Display for UnknownTag {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no layer and phase of the contract, such as LR_PE")
    }
}

impl core::error::Error for UnknownTag {}

impl core::str::FromStr for Tag {
    type Err = UnknownTag;

    /// Reads what [`Tag`] displays, `LR_PE`.
    fn from_str(text: &str) -> Result<Self, UnknownTag> {
        let tag = match *text.as_bytes() {
            [b'L', layer, b'_', b'P', second] => Self::from_letters(layer, second, 0),
            [b'L', layer, b'_', b'P', second, third] if third != 0 => {
                Self::from_letters(layer, second, third)
            }
            _ => None,
        };
        tag.ok_or(UnknownTag)
    }
}

impl core::fmt::Display for Tag {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}_{}", self.layer().code(), self.phase().code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_read_from_its_text() {
        let tags: Vec<Tag> = (0..=u8::MAX).filter_map(Tag::from_index).collect();
        assert_eq!(tags.len(), Layer::ALL.len() * Phase::ALL.len());
        for tag in tags {
            assert_eq!(tag.to_string().parse(), Ok(tag));
        }
        for text in ["", "LR", "LR_P", "LR_PX", "XR_PE", "LR-PE", "LR_PE\0", "LR_PIOO", "lr_pe"] {
            assert_eq!(text.parse::<Tag>(), Err(UnknownTag), "{text:?}");
        }
    }
}
