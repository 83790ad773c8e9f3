//! Sections that end by themselves.

use core::fmt;
use core::marker::PhantomData;

use super::write::{self, Begun, begin_if_heard, begin_site_if_heard};
use super::{Payload, Site};
use crate::layer::{Layer, Phase};
use crate::mark::Prefix;

/// Layers and phases under the letters of a mark, as [`mark!`](crate::mark!) takes them.
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

/// Begins a section, and returns the guard that ends it: [`Section`].
///
/// - `mark!(LR, PE, "compute")`: layer, phase, name.
/// - `mark!(LR, PE, "compute", iter = n, acct = who, img = file)`: with the iteration, the account and any
///   attributes; `h = handle` marks it as the work that was handed over by [`send`](crate::emit::send).
/// - `mark!(switch section; LC, PCO, "conv2d")`: in place of an open section, from this moment on.
/// - `mark!(subtract; LR, PC, "compile late")`: accounted apart from the sections around it.
///
/// The name and the values are only computed when anyone listens.
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
    (switch $section:expr; $layer:ident, $phase:ident, $name:literal $(,)?) => {
        $section.switch_at($crate::mark!(@site Switch $layer $phase $name))
    };
    (subtract; $layer:ident, $phase:ident, $name:literal $(,)?) => {
        $crate::emit::Section::begin_at($crate::mark!(@site Subtract $layer $phase $name))
    };
    ($layer:ident, $phase:ident, $name:literal $(,)?) => {
        $crate::emit::Section::begin_at($crate::mark!(@site None $layer $phase $name))
    };
    (@site $prefix:ident $layer:ident $phase:ident $name:literal) => {{
        static SITE: $crate::emit::Site = $crate::emit::Site::new(
            $crate::mark::Prefix::$prefix,
            $crate::emit::codes::$layer,
            $crate::emit::codes::$phase,
            $name,
        );
        &SITE
    }};
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

/// Section of one layer and phase: it begins when it is created, and ends when it is dropped.
///
/// It stays on its thread, for marks pair up by thread. Sections must be dropped in the reverse order of their
/// creation, as local variables are; the lifetime ensures this for a section that was switched to.
///
/// A section whose begin nobody received writes no end, so a profiler that is attached in between does not see half
/// of it.
#[must_use = "a section that is dropped at once has no duration"]
#[derive(Debug)]
pub struct Section<'outer> {
    /// How its begin was written: its end is the same way.
    begun: Begun,
    /// Neither `Send` nor `Sync`, and not outliving the section it replaced.
    bound: PhantomData<(&'outer (), *const ())>,
}

impl Section<'static> {
    /// Begins a section.
    #[inline]
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::begin_with(|| Payload::begin(layer, phase, name))
    }

    /// Begins a section with a name as format arguments: `format_args!("execute#img={image}")` gives it an attribute.
    #[inline]
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        Self::begin_with(|| Payload::begin_args(layer, phase, name))
    }

    /// Begins a section by a payload that is only created when anyone listens.
    #[inline]
    pub fn begin_with(begin: impl FnOnce() -> Payload) -> Self {
        Self { begun: begin_if_heard(begin), bound: PhantomData }
    }

    /// Begins a section of a site.
    #[inline]
    pub fn begin_at(site: &'static Site) -> Self {
        Self { begun: begin_site_if_heard(site), bound: PhantomData }
    }
}

impl Section<'_> {
    /// Ends this section and begins another in its place, at one point in time.
    ///
    /// Both guards still write one end each, as the contract counts them: the first closes the new section, the
    /// second closes the rest of this one and takes no time. Switches chain.
    #[inline]
    pub fn switch(&self, layer: Layer, phase: Phase, name: &str) -> Section<'_> {
        self.switch_with(|| Payload::section(Prefix::Switch, layer, phase, name))
    }

    /// Like [`Section::switch`], by a payload that is only created when anyone listens and received this section's
    /// begin.
    #[inline]
    pub fn switch_with(&self, switch: impl FnOnce() -> Payload) -> Section<'_> {
        let begun = if self.is_open() { begin_if_heard(switch) } else { Begun::NOT };
        Section { begun, bound: PhantomData }
    }

    /// Like [`Section::switch`], to a section of a site.
    #[inline]
    pub fn switch_at(&self, site: &'static Site) -> Section<'_> {
        let begun = if self.is_open() { begin_site_if_heard(site) } else { Begun::NOT };
        Section { begun, bound: PhantomData }
    }

    /// Whether the begin was written.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.begun.is_written()
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        write::end(self.begun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest_and_switch() {
        // Nobody listens; this checks that the lifetimes allow a chain.
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
