//! Values of maps that user space reads and writes directly.

use aya::Pod;

use crate::app_events::{AppEvent, AppEventCounts, ExecutionCount, ExecutionKey};
use crate::async_runs::{AsyncRun, AsyncRunKey};
use crate::creds::CredsOffsets;
use crate::diagnostic::DiagnosticCount;
use crate::driver_calls::DriverDevice;
use crate::engine::{EngineProbe, EnumKey, ObjectNames};
use crate::hidl_calls::Meaning;
use crate::nested_functions::MarkCode;
use crate::opened_files::PathOffsets;
use crate::other_power_events::{CpuEvidence, PsciKey, Suspends};
use crate::pid_namespace::PidNamespace;
use crate::power::{CpuFrequency, CpuIdle};
use crate::record::{Forwarding, FrequencyKey, NameText, RingCount, Thread, Total, TotalKey};
use crate::run_queue::{RunQueueOffsets, RunQueueSample};
use crate::sched::{PreemptCount, SchedOffsets};
use crate::stack::PathStep;
use crate::time_count::TimeCount;
use crate::window::Window;

macro_rules! pod {
    ($($name:ty),+) => {$(
        // SAFETY: `repr(C)` without padding, and the maps hold only what this crate's own code wrote as that type.
        unsafe impl Pod for $name {}
    )+};
}
pod!(
    Forwarding,
    FrequencyKey,
    NameText,
    RingCount,
    Thread,
    Total,
    TotalKey,
    DiagnosticCount,
    Meaning,
    CpuFrequency,
    CredsOffsets,
    CpuIdle,
    CpuEvidence,
    RunQueueSample,
    RunQueueOffsets,
    MarkCode,
    PathOffsets,
    PidNamespace,
    PathStep,
    PreemptCount,
    PsciKey,
    SchedOffsets,
    Suspends,
    TimeCount,
    Window,
    AppEvent,
    AppEventCounts,
    ExecutionCount,
    ExecutionKey,
    DriverDevice,
    EngineProbe,
    ObjectNames,
    EnumKey,
    AsyncRun,
    AsyncRunKey
);
