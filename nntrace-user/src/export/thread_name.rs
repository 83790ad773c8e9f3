//! Names of threads, which formats take from whoever knows them.

/// Thread with its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadName {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name; empty where it is not known.
    pub name: String,
}
