//! Lines for whoever debugs a board.
//!
//! They are in every build. Which are on is decided by aya-log's level, a constant by the time a program is checked: where it
//! is lower than a line's, the verifier removes the call, and with its last call the function. A line that is off leaves
//! the load of that constant in its place (two instructions), and lines are where something is rare or wrong: a mark, an
//! idle state or a context switch that is taken as it should be runs no instruction for them.
//!
//! Each line is a function, by its linkage one that the verifier looks at once, for any arguments: what it needs of the stack
//! is free again when it returns. Before Linux 6.8 the verifier looks at it also when nobody calls it; a few instructions of
//! it stay there that nobody runs. aya-log writes it into room that it
//! reserves in a ring of its own, in no buffer that two runs could share, so that programs that are preempted or sleep may
//! log as well.
//!
//! What is lost for want of room in a ring has no line: that is where the stack is deepest, and every loss is counted.

// The macros check the level themselves, but what it takes to call them is to be gone as well.
use aya_log_ebpf::macro_support::{Level, level_enabled};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    event_counts::Table,
    log_limit::{LogEvent, LogKind},
};

use crate::{atomic::add, helpers::monotonic_ns, maps::LOG_GATES, task_ids};

/// Declares lines: the function that logs one, its level, its kind, its text.
macro_rules! lines {
    ($($(#[$doc:meta])* $name:ident($($number:ident),*): $level:ident, $kind:ident, $text:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($($number: u32),*) {
            #[unsafe(export_name = concat!("log_", stringify!($name)))]
            #[inline(never)]
            extern "C" fn line($($number: u32),*) -> u32 {
                if level_enabled(Level::$level) && passes(LogKind::Event(LogEvent::$kind).number()) {
                    aya_log_ebpf::log!(&(), target: "kernel", Level::$level, $text $(, $number)*);
                }
                0
            }
            if level_enabled(Level::$level) {
                line($($number),*);
            }
        }
    )*};
}

lines! {
    /// The child of a target is a target.
    fork(child, parent): Info, Fork, "task {} is a target: target {} forked it";
    /// A target runs another program.
    exec(tgid): Info, Exec, "target {} runs another program";
    /// A target ends.
    exit(tgid): Debug, Exit, "target {} ends";
    /// A thread marks for the first time.
    first_mark(tid): Debug, FirstMark, "thread {} marks for the first time";
    /// A process has shown that it is a driver.
    driver(tgid): Info, Driver, "process {} is a driver";
    /// A loader maps or unmaps libraries.
    loader(tgid): Debug, Loader, "the loader of target {} maps or unmaps libraries";
    /// A launched program is at its entry point.
    entry_point(tgid): Debug, EntryPoint, "target {} is stopped at its entry point";
    /// A thread waits for the page with the text of its mark.
    page_wait(tid): Debug, PageWait, "thread {} waits for the page with the text of its mark";
    /// A mark function that another one called.
    nested_mark(tid): Trace, NestedMark, "thread {}: a mark function called another one, for one mark";
    /// A CPU goes offline or comes back.
    hotplug(cpu, online): Info, Hotplug, "cpu {}: online is {}";
    /// A task that the table of targets has no room for.
    targets_full(tid): Warn, TargetsFull, "task {} is no target: the table of targets is full";
    /// A thread that the table of waiting threads has no room for.
    page_waits_full(tid): Warn, PageWaitsFull, "thread {}: too many others wait for a page, the text is not read";
    /// A frequency of a CPU that the table of these has no room for.
    frequencies_full(cpu): Warn, FrequenciesFull, "cpu {}: the table of frequencies is full";
}

/// An entry that a full table turned away, of the thread that runs.
#[inline(always)]
pub fn table_full(table: Table) {
    #[unsafe(export_name = "log_table_full")]
    #[inline(never)]
    extern "C" fn line(table: u32) -> u32 {
        if level_enabled(Level::Warn) && passes(LogKind::TableFull(Table::Threads).number() + table) {
            let name = padded(&TABLES, table);
            aya_log_ebpf::warn!(&(), target: "kernel", "thread {}: a table is full, see --map-memory: {}", task_ids::current().tid, name);
        }
        0
    }
    if level_enabled(Level::Warn) {
        line(table as u32);
    }
}

/// A diagnostic, by its number, of a thread or a CPU. A full table has a line of its own, which names it.
#[inline(always)]
pub fn diagnostic(kind: u32, of: u32) {
    #[unsafe(export_name = "log_diagnostic")]
    #[inline(never)]
    extern "C" fn line(kind: u32, of: u32) -> u32 {
        let is_left_to_others = kind == DiagnosticKind::TableFull as u32
            // It is so with every new name, for as long as it takes user space to answer.
            || kind == DiagnosticKind::NameNotYetKnown as u32 && !level_enabled(Level::Debug);
        if !level_enabled(Level::Warn) || is_left_to_others || !passes(LogKind::number_of_diagnostic(kind)) {
            return 0;
        }
        let name = padded(&DIAGNOSTICS, kind);
        if OF_CPUS >> (kind % 32) & 1 != 0 {
            aya_log_ebpf::warn!(&(), target: "kernel", "cpu {}: {}", of, name);
        } else {
            aya_log_ebpf::warn!(&(), target: "kernel", "thread {}: {}", of, name);
        }
        0
    }
    if level_enabled(Level::Warn) {
        line(kind, of);
    }
}

/// Whether another line of this kind passes; one that does not is counted.
#[inline(always)]
fn passes(kind: u32) -> bool {
    let Some(gate) = LOG_GATES.get_ptr_mut(kind) else { return false };
    // SAFETY: the pointer comes from the map and is not null; what programs on other CPUs do to it meanwhile lets a line
    // more pass, or less.
    let gate = unsafe { &mut *gate };
    let passes = gate.passes(monotonic_ns());
    if !passes {
        // SAFETY: a field of a value of the map.
        unsafe { add(&raw mut gate.left_out, 1) };
    }
    passes
}

/// Bytes of a name: one length for all, as the verifier has to see how much is copied.
const NAME_BYTES: usize = 20;
/// Names in a list: a power of two, so that a mask bounds their numbers.
const NAMES: usize = 32;

/// The diagnostics of CPUs, a bit for each number.
const OF_CPUS: u32 = {
    let (mut bits, mut at) = (0, 0);
    while at < DiagnosticKind::ALL.len() {
        bits |= (DiagnosticKind::ALL[at].is_of_cpu() as u32) << at;
        at += 1;
    }
    bits
};

/// Names with spaces after them.
type Names = [[u8; NAME_BYTES]; NAMES];

static TABLES: Names = {
    let mut names = [[b' '; NAME_BYTES]; NAMES];
    let mut at = 0;
    while at < Table::ALL.len() {
        names[at] = with_spaces(Table::ALL[at].name());
        at += 1;
    }
    names
};

static DIAGNOSTICS: Names = {
    let mut names = [[b' '; NAME_BYTES]; NAMES];
    let mut at = 0;
    while at < DiagnosticKind::ALL.len() {
        names[at] = with_spaces(DiagnosticKind::ALL[at].name());
        at += 1;
    }
    names
};

const fn with_spaces(name: &str) -> [u8; NAME_BYTES] {
    let (name, mut padded, mut at) = (name.as_bytes(), [b' '; NAME_BYTES], 0);
    while at < name.len() {
        padded[at] = name[at];
        at += 1;
    }
    padded
}

/// A name by its number.
#[inline(always)]
fn padded(names: &'static Names, number: u32) -> &'static str {
    // SAFETY: names are ASCII.
    unsafe { core::str::from_utf8_unchecked(&names[number as usize % NAMES]) }
}
