//! Guards that write marks: how a Rust program tells which layer and phase it is in.
//!
//! ```
//! use nntrace_common::emit::{self, Section};
//! use nntrace_common::layer::{Layer, Phase};
//!
//! emit::init(std::process::id());
//! let execution = Section::begin(Layer::CpuFallback, Phase::Execution, "execute");
//! {
//!     let transformation = Section::begin(Layer::CpuFallback, Phase::Transformation, "to NHWC");
//!     // ... bring the input into the layout that the kernel wants ...
//!     let _computation = transformation.switch(Layer::CpuFallback, Phase::Computation, "conv2d");
//!     // ... compute ...
//! } // both ends, in the right order
//! drop(execution);
//! ```
//!
//! A mark is a call of [`tracing_mark_write`], on which the profiler puts a uprobe. Unprobed, it
//! costs that call and the formatting; nothing is switched on or off, and no file is opened.
//!
//! # The symbol
//!
//! The profiler finds the function by its name, in `.symtab` or in `.dynsym`. `strip` removes `.symtab`, and
//! an executable's `.dynsym` holds only what the linker was told to export. A Rust executable that is
//! stripped therefore needs, in its build script:
//!
//! ```text
//! println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=tracing_mark_write");
//! ```
//!
//! A library of the C ABI (`cdylib`) exports the function by itself.

use core::ffi::CStr;
use core::fmt::{self, Write as _};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::layer::{Layer, Phase};

/// Bytes of the longest payload, its closing NUL included.
pub const CAPACITY: usize = 256;

/// What payloads say as `<pid>`. Informative only, so nothing depends on the order of its store and its
/// loads.
static PID: AtomicU32 = AtomicU32::new(0);

/// Sets the process id that this process's payloads carry, as `std::process::id()` gives it; 0 until this is
/// called.
///
/// The id is there for people who read payloads: readers pair begins and ends by the kernel's thread id.
pub fn init(pid: u32) {
    PID.store(pid, Ordering::Relaxed);
}

/// Where the profiler listens: does nothing, and its address and its argument are what a probe sees.
///
/// The first instruction is a nop, because that is what the kernel can probe cheaply: on x86-64 it replaces
/// the five bytes of this very nop by a call instead of a breakpoint, and on arm64 it simulates a `nop`
/// instead of single-stepping it. It stands at the function's entry because a probe may push on the stack,
/// and only here is no red zone in use.
///
/// The kernel does not optimise a nop that crosses a page. The alignment after the code is that of the
/// function's own section, at whose start it stands: so it holds for the nop, too.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[unsafe(naked)]
// SAFETY: the name is the contract's; no other Rust item of a program exports it, since there is one
// nntrace-common in it.
#[unsafe(no_mangle)]
pub extern "C" fn tracing_mark_write(buf: *const u8) {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", "ret", ".balign 16");
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("nop", "ret", ".balign 16");
}

/// Where the profiler listens: does nothing, and its address and its argument are what a probe sees.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(never)]
// SAFETY: the name is the contract's; no other Rust item of a program exports it, since there is one
// nntrace-common in it.
#[unsafe(no_mangle)]
pub extern "C" fn tracing_mark_write(buf: *const u8) {
    core::hint::black_box(buf);
}

/// Writes one mark, as it is.
pub fn mark(payload: &CStr) {
    tracing_mark_write(payload.as_ptr().cast());
}

/// One mark, formatted but not yet written; what does not fit in [`CAPACITY`] is cut off.
///
/// [`Section`] is what a program normally uses. A payload of its own is for whoever needs a clock reading
/// directly before the mark.
#[derive(Clone, Copy)]
pub struct Payload {
    /// The text; the byte at `len`, at the latest the last one, stays NUL.
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Payload {
    /// `B|<pid>|[NN_<layer>_<phase>]<name>`.
    #[must_use]
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        let mut payload = Self::tag(current_pid(), "", layer, phase);
        payload.push(name);
        payload
    }

    /// As [`Payload::begin`], with a name to be formatted, `format_args!("conv2d#img={image}")`.
    #[must_use]
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        let mut payload = Self::tag(current_pid(), "", layer, phase);
        payload.push_args(name);
        payload
    }

    /// `B|<pid>|[SW][NN_<layer>_<phase>]<name>`: ends the section that is open and begins another in its
    /// place.
    #[must_use]
    pub fn switch(layer: Layer, phase: Phase, name: &str) -> Self {
        let mut payload = Self::tag(current_pid(), "[SW]", layer, phase);
        payload.push(name);
        payload
    }

    /// `E|<pid>`.
    #[must_use]
    pub fn end() -> Self {
        let mut payload = Self::empty();
        payload.push("E|");
        payload.push_number(current_pid());
        payload
    }

    /// The text as C sees it: a NUL in a name ends it there.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        // The last byte is never written, so there is always a NUL to find.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Hands the text to the probe.
    #[inline]
    pub fn write(&self) {
        tracing_mark_write(self.bytes.as_ptr());
    }

    const fn empty() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }

    /// All of a begin but the name.
    fn tag(pid: u32, prefix: &str, layer: Layer, phase: Phase) -> Self {
        let mut payload = Self::empty();
        payload.push("B|");
        payload.push_number(pid);
        payload.push("|");
        payload.push(prefix);
        payload.push("[NN_");
        payload.push(layer.code());
        payload.push("_");
        payload.push(phase.code());
        payload.push("]");
        payload
    }

    /// Appends as many whole characters as fit; whether that was all of them.
    fn push(&mut self, text: &str) -> bool {
        let fitting = &text[..text.floor_char_boundary(CAPACITY - 1 - self.len)];
        self.bytes[self.len..self.len + fitting.len()].copy_from_slice(fitting.as_bytes());
        self.len += fitting.len();
        fitting.len() == text.len()
    }

    /// Appends a number in decimal, much faster than the formatting machinery does.
    fn push_number(&mut self, mut number: u32) {
        let mut digits = [0; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        // Only prefixes come before a pid, so it always fits.
        let digits = &digits[first..];
        self.bytes[self.len..self.len + digits.len()].copy_from_slice(digits);
        self.len += digits.len();
    }

    /// Appends formatted text until it no longer fits.
    fn push_args(&mut self, text: fmt::Arguments<'_>) {
        /// Stops at the first piece that does not fit, so that nothing is lost in the middle of a name.
        struct Tail<'a>(&'a mut Payload);
        impl fmt::Write for Tail<'_> {
            fn write_str(&mut self, piece: &str) -> fmt::Result {
                if self.0.push(piece) { Ok(()) } else { Err(fmt::Error) }
            }
        }
        // An error says that the name was cut, which is what is promised.
        let _ = Tail(self).write_fmt(text);
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&self.as_c_str()).finish()
    }
}

/// A section of one layer and phase: begun when it is made, ended when it is dropped.
///
/// It stays on its thread, for marks pair up by thread. Sections must be dropped in the reverse order of
/// their making, as local variables are; the lifetime makes sure of it for a section that was switched to.
#[must_use = "a section that is dropped at once has no duration"]
#[derive(Debug)]
pub struct Section<'outer> {
    /// Neither `Send` nor `Sync`, and not outliving the section it replaced.
    bound: PhantomData<(&'outer (), *const ())>,
}

impl Section<'static> {
    /// Begins a section.
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Payload::begin(layer, phase, name).write();
        Self { bound: PhantomData }
    }

    /// Begins a section whose name is to be formatted: `format_args!("execute#img={image}")` gives it an
    /// attribute.
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        Payload::begin_args(layer, phase, name).write();
        Self { bound: PhantomData }
    }
}

impl Section<'_> {
    /// Ends this section and begins another in its place, at one point in time.
    ///
    /// The two guards still write one end each, which is how the contract counts: the first closes the new
    /// section, the second closes what is left of this one and takes no time. Switches chain.
    pub fn switch(&self, layer: Layer, phase: Phase, name: &str) -> Section<'_> {
        Payload::switch(layer, phase, name).write();
        Section { bound: PhantomData }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        Payload::end().write();
    }
}

fn current_pid() -> u32 {
    PID.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload as text, with the process id that the test set.
    fn text(payload: &Payload) -> String {
        payload.as_c_str().to_str().unwrap().to_owned()
    }

    #[test]
    fn formats_begin_switch_and_end() {
        let mut begin = Payload::tag(1234, "", Layer::Runtime, Phase::Execution);
        begin.push("compute|now");
        assert_eq!(text(&begin), "B|1234|[NN_LR_PE]compute|now");
        let mut switch = Payload::tag(u32::MAX, "[SW]", Layer::CpuFallback, Phase::Computation);
        switch.push("conv2d");
        assert_eq!(text(&switch), "B|4294967295|[SW][NN_LC_PCO]conv2d");
        // No test sets the process id, so it is still 0 here.
        assert_eq!(text(&Payload::begin(Layer::Application, Phase::Overall, "")), "B|0|[NN_LA_PO]");
        assert_eq!(text(&Payload::switch(Layer::Driver, Phase::Results, "r")), "B|0|[SW][NN_LD_PR]r");
        assert_eq!(text(&Payload::end()), "E|0");
    }

    #[test]
    fn formats_attributes() {
        let payload =
            Payload::begin_args(Layer::Application, Phase::Execution, format_args!("image#iter={}", 7));
        assert_eq!(text(&payload), "B|0|[NN_LA_PE]image#iter=7");
    }

    #[test]
    fn cuts_long_names_at_a_character() {
        for padding in 0..4 {
            let name = format!("{}{}", "x".repeat(padding), "ü€".repeat(200));
            for payload in [
                Payload::begin(Layer::Driver, Phase::Execution, &name),
                Payload::begin_args(Layer::Driver, Phase::Execution, format_args!("{name}")),
            ] {
                let text = text(&payload);
                assert!((CAPACITY - 3..CAPACITY).contains(&text.len()), "{}", text.len());
                assert!(name.starts_with(text.strip_prefix("B|0|[NN_LD_PE]").unwrap()));
            }
        }
    }

    #[test]
    fn keeps_a_name_that_just_fits() {
        let room = CAPACITY - 1 - "B|0|[NN_LD_PE]".len();
        let name = "n".repeat(room);
        let payload = Payload::begin(Layer::Driver, Phase::Execution, &name);
        assert!(text(&payload).ends_with(&name));
        assert_eq!(payload.bytes[CAPACITY - 1], 0);
    }

    #[test]
    fn nothing_follows_a_piece_that_was_cut() {
        let payload =
            Payload::begin_args(Layer::Driver, Phase::Execution, format_args!("{}{}", "€".repeat(200), "x"));
        assert!(text(&payload).ends_with('€'));
    }

    #[test]
    fn a_nul_ends_the_name() {
        assert_eq!(text(&Payload::begin(Layer::Driver, Phase::Execution, "a\0b")), "B|0|[NN_LD_PE]a");
    }

    /// The kernel optimises the probe only when it finds exactly this instruction, within one page.
    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn the_function_starts_with_a_nop() {
        const NOP: &[u8] =
            if cfg!(target_arch = "x86_64") { &[0x0f, 0x1f, 0x44, 0, 0] } else { &[0x1f, 0x20, 0x03, 0xd5] };
        let start = (tracing_mark_write as *const ()).cast::<u8>();
        // SAFETY: the function is at least as long as the nop, and code is readable for as long as the
        // program runs.
        let code = unsafe { core::slice::from_raw_parts(start, NOP.len()) };
        assert_eq!(code, NOP);
        assert_eq!(start as usize % 16, 0);
    }

    #[test]
    fn sections_nest_and_switch() {
        // Nobody listens; this shows that the lifetimes let a chain through.
        let section = Section::begin(Layer::CpuFallback, Phase::Transformation, "layout");
        let computation = section.switch(Layer::CpuFallback, Phase::Computation, "conv2d");
        let _results = computation.switch(Layer::CpuFallback, Phase::Results, "copy");
    }
}
