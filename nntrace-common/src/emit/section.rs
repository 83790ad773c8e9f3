//! Sections that end by themselves.

use core::fmt;
use core::marker::PhantomData;

use super::{Payload, write_if_heard};
use crate::layer::{Layer, Phase};
use crate::mark::Prefix;

/// Layers and phases by the letters of a mark, as [`mark!`](crate::mark!) takes them.
pub mod codes {
    use crate::layer::{Layer, Phase};

    macro_rules! codes {
        ($of:ident: $($code:ident $name:ident,)*) => {
            $(
                #[doc = concat!("[`", stringify!($of), "::", stringify!($name), "`]")]
                pub const $code: $of = $of::$name;
            )*
        };
    }
    codes!(Layer: LA Application, LR Runtime, LI Ipc, LD Driver, LC CpuFallback, LU Utility, LO Other,);
    codes!(Phase: PO Overall, PWU WarmUp, PBM Benchmark, PI Initialization, PP Preparation, PC Compilation,
        PE Execution, PT Termination, PU Unspecified, PIO InputsOutputs, PTR Transformation, PCO Computation,
        PR Results,);
}

/// Begins a section, and gives the guard that ends it: [`Section`].
///
/// - `mark!(LR, PE, "compute")`: layer, phase, name.
/// - `mark!(LR, PE, "compute", iter = n, acct = who, img = file)`: with the iteration, the account and any attributes;
///   `h = handle` says that it does the work that was handed over by [`send`](crate::emit::send).
/// - `mark!(switch section; LC, PCO, "conv2d")`: in place of a section that is open, from this moment on.
/// - `mark!(subtract; LR, PC, "compile late")`: accounted apart from what is around it.
///
/// The name and the values are only computed when somebody listens.
///
/// ```
/// use nntrace_common::mark;
///
/// fn load(path: &str) -> std::io::Result<Vec<u8>> {
///     let _section = mark!(LA, PI, "load", file = path);
///     let bytes = std::fs::read(path)?; // ended here, if it fails
///     Ok(bytes)
/// }
/// # assert!(load("/no/such/file").is_err());
/// ```
#[macro_export]
macro_rules! mark {
    (switch $section:expr; $layer:ident, $phase:ident, $name:expr $(, $key:ident = $value:expr)* $(,)?) => {
        $section.switch_with(|| $crate::mark!(@payload Switch $layer $phase $name $(, $key $value)*))
    };
    (subtract; $layer:ident, $phase:ident, $name:expr $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::emit::Section::begin_with(|| {
            $crate::mark!(@payload Subtract $layer $phase $name $(, $key $value)*)
        })
    };
    (@payload $prefix:ident $layer:ident $phase:ident $name:expr $(, $key:ident $value:expr)*) => {
        $crate::emit::Payload::section(
            $crate::mark::Prefix::$prefix,
            $crate::emit::codes::$layer,
            $crate::emit::codes::$phase,
            $name,
        )$(.with(::core::stringify!($key), $value))*
    };
    ($layer:ident, $phase:ident, $name:expr $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::emit::Section::begin_with(|| $crate::mark!(@payload None $layer $phase $name $(, $key $value)*))
    };
}

/// A section of one layer and phase: begun when it is made, ended when it is dropped.
///
/// It stays on its thread, for marks pair up by thread. Sections must be dropped in the reverse order of
/// their making, as local variables are; the lifetime makes sure of it for a section that was switched to.
///
/// A section whose begin nobody heard writes no end, so that who comes meanwhile does not see half of it.
#[must_use = "a section that is dropped at once has no duration"]
#[derive(Debug)]
pub struct Section<'outer> {
    /// Whether its begin was written.
    is_open: bool,
    /// Neither `Send` nor `Sync`, and not outliving the section it replaced.
    bound: PhantomData<(&'outer (), *const ())>,
}

impl Section<'static> {
    /// Begins a section.
    #[inline]
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::begin_with(|| Payload::begin(layer, phase, name))
    }

    /// Begins a section whose name is to be formatted: `format_args!("execute#img={image}")` gives it an
    /// attribute.
    #[inline]
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        Self::begin_with(|| Payload::begin_args(layer, phase, name))
    }

    /// Begins a section by a payload that is only made when somebody listens.
    #[inline]
    pub fn begin_with(begin: impl FnOnce() -> Payload) -> Self {
        Self { is_open: write_if_heard(begin), bound: PhantomData }
    }
}

impl Section<'_> {
    /// Ends this section and begins another in its place, at one point in time.
    ///
    /// The two guards still write one end each, which is how the contract counts: the first closes the new
    /// section, the second closes what is left of this one and takes no time. Switches chain.
    #[inline]
    pub fn switch(&self, layer: Layer, phase: Phase, name: &str) -> Section<'_> {
        self.switch_with(|| Payload::section(Prefix::Switch, layer, phase, name))
    }

    /// As [`Section::switch`], by a payload that is only made when somebody listens and heard this section's begin.
    #[inline]
    pub fn switch_with(&self, switch: impl FnOnce() -> Payload) -> Section<'_> {
        Section { is_open: self.is_open && write_if_heard(switch), bound: PhantomData }
    }

    /// Whether its begin was written.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            write_end();
        }
    }
}

/// Kept out of the code that marks, which mostly runs without it.
#[cold]
#[inline(never)]
fn write_end() {
    Payload::end().write();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest_and_switch() {
        // Nobody listens; this shows that the lifetimes let a chain through.
        let section = Section::begin(Layer::CpuFallback, Phase::Transformation, "layout");
        let computation = section.switch(Layer::CpuFallback, Phase::Computation, "conv2d");
        let results = computation.switch(Layer::CpuFallback, Phase::Results, "copy");
        assert!(!results.is_open());
    }

    #[test]
    fn nothing_is_computed_while_nobody_listens() {
        fn unheard() -> u32 {
            panic!("nobody asked for it")
        }
        let section = mark!(LC, PTR, "layout", n = unheard());
        let _switched = mark!(switch section; LC, PCO, "conv2d", n = unheard());
        let _apart = mark!(subtract; LR, PC, "late", n = unheard());
    }
}
