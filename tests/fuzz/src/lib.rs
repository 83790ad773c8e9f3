//! What must hold for any input, one subject a module. Each has a function `check` that panics where it does not hold.
//!
//! `cargo xtask fuzz` runs them on inputs that libFuzzer makes up, the tests on those that are kept in `corpus`.

pub mod accounting;
pub mod ftrace_line;
pub mod lines;
pub mod mark;
pub mod replay;

/// Checks one input.
pub type Check = fn(&[u8]);

/// Every target by its name, which is also that of its folder in `corpus`.
pub const TARGETS: [(&str, Check); 5] = [
    ("accounting", accounting::check),
    ("ftrace_line", ftrace_line::check),
    ("lines", lines::check),
    ("mark", mark::check),
    ("replay", replay::check),
];

/// Panics when `part` does not lie in `whole`.
fn lies_in(part: &[u8], whole: &[u8]) {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    assert!(whole.start <= part.start && part.end <= whole.end, "a slice that is no part of the input");
}
