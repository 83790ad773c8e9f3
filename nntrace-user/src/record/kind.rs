//! Kinds of the entries in a block's content.

/// Bits of an entry's first integer that are its kind; above them is the distance in numbers from the event before.
pub(super) const BITS: u32 = 5;

/// First kind whose entries have a length after their first integer, and share no times with others: readers that do not know
/// one pass over it.
pub(super) const FIRST_WITH_LENGTH: u64 = 25;

/// First of these whose entries define something for later ones, and have no number.
pub(super) const FIRST_WITHOUT_NUMBER: u64 = 30;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal,)+) => {
        /// Kind of an entry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind {
            $($(#[$doc])* $kind = $code,)+
        }

        impl Kind {
            /// Returns the kind with this code.
            #[inline]
            pub(super) const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($code => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Definition of a site: what the sections of one place on one thread have in common.
    Site = 0,
    /// Text of a name.
    Name = 1,
    /// Section that ended.
    Span = 2,
    /// Section that ended, at whatever place in the order of time.
    SpanAnywhere = 3,
    /// Begin of a section that matters beyond its thread.
    Begin = 4,
    /// Idle state that a CPU enters or leaves.
    Idle = 5,
    /// Frequency that is requested.
    Frequency = 6,
    /// CPU that goes offline or online.
    Hotplug = 7,
    /// Loss of a CPU's events of power.
    Lost = 8,
    /// Context switch or wake-up.
    Sched = 9,
    /// Fork.
    Fork = 10,
    /// Exec.
    Exec = 11,
    /// End of a thread.
    Exit = 12,
    /// Loader that maps or unmaps libraries.
    Loader = 13,
    /// Thread that takes part in the accounting from here on.
    TakesPart = 14,
    /// Thread that takes part, as user space accounts it.
    ThreadMarked = 15,
    /// Counter, instant, or end of an asynchronous slice.
    Track = 16,
    /// Begin with its text.
    AnnotatedBegin = 17,
    /// Change of the application's phases.
    AppEvent = 18,
    /// Begin of the window of scheduling.
    SchedulingBegins = 19,
    /// Thread whose events all come from here on.
    ThreadWatched = 20,
    /// Loss of a CPU's events of scheduling.
    SchedulingLost = 21,
    /// Begin of the window of power, with CPUs, clusters and their states.
    PowerBegins = 22,
    /// Names that are forgotten.
    NamesForgotten = 23,
    /// Time up to which everything was taken.
    Advance = 24,
    /// Call of a function.
    Call = 25,
    /// Function whose calls come from here on, in JSON.
    CallDefinition = 26,
    /// Limits of a policy's frequency that change.
    FrequencyLimit = 27,
    /// State of a cooling device that changes.
    Cooling = 28,
    /// Turn of a rival on a CPU that a traced thread waited for.
    Rival = 29,
}
