//! Details of a function that the live view shows when it is opened.

/// Details of a function. They are not a part of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionDetails {
    /// Distribution of its times: values of ascending times (ns), and the calls of about that time.
    pub times: Vec<(u64, u64)>,
    /// Its slowest calls, the slowest first.
    pub slowest: Vec<SlowCallRow>,
    /// Threads that ran it, by their ids; 0 for those whose rows had no room. They may lack calls that were summed as others.
    pub threads: Vec<FunctionThreadRow>,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCallRow {
    /// Duration, less what is subtracted from it, ns.
    pub ns: u64,
    /// When it began, ns.
    pub begin_ns: u64,
    /// Thread id.
    pub tid: u32,
}

/// Calls of a function on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionThreadRow {
    /// Thread id.
    pub tid: u32,
    /// Calls.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u64,
    /// Duration without nested marked frames, ns.
    pub exclusive_ns: u64,
}
