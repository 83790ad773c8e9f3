//! Kernel events, written as the text of ftrace, as `trace.dat` and as a trace of Perfetto.
//!
//! [`Kind::description`] has everything that the three formats say of an event. They are written by hand from their
//! specifications, so that nothing here is shared with the readers.

pub mod devices;
pub mod perfetto;
pub mod random;
pub mod text;
pub mod trace_dat;

/// Thread: its id, its process, its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Id.
    pub tid: u32,
    /// Process.
    pub pid: u32,
    /// Name, 15 bytes at most.
    pub name: String,
}

/// Trace: threads, and the events of each CPU in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Threads that have events.
    pub threads: Vec<Thread>,
    /// Events in the order of time; those of one CPU may share a time.
    pub events: Vec<Event>,
}

impl Trace {
    /// Returns the name of a thread.
    #[must_use]
    pub fn name(&self, tid: u32) -> &str {
        self.thread(tid).map_or("swapper", |thread| &thread.name)
    }

    fn thread(&self, tid: u32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.tid == tid)
    }

    /// Returns the number of CPUs that have events.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.events.iter().map(|event| event.cpu + 1).max().unwrap_or(0)
    }
}

/// Kernel event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time, ns.
    pub time: u64,
    /// CPU that wrote it.
    pub cpu: u32,
    /// Thread that ran there; 0 is the idle thread.
    pub tid: u32,
    /// Kind and fields.
    pub kind: Kind,
}

/// Task as scheduling events name it.
#[derive(Clone, Debug)]
pub struct Task {
    /// Id.
    pub tid: u32,
    /// Name.
    pub name: String,
}

/// Kind of a kernel event, with its fields.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A mark.
    Mark(String),
    /// `cpu_idle`: idle state and CPU.
    Idle(u32, u32),
    /// `cpu_frequency`: kHz and CPU.
    Frequency(u32, u32),
    /// `cpu_frequency_limits`: least and most kHz, CPU.
    Limits(u32, u32, u32),
    /// `cdev_update`: device and its state.
    Cooling(&'static str, u32),
    /// `sched_switch`: from a task that is left in a state, to another.
    Switch(Task, State, Task),
    /// `sched_waking`: task and CPU.
    Waking(Task, u32),
    /// `sched_wakeup`: task and CPU.
    Wakeup(Task, u32),
    /// `sched_wakeup_new`: task and CPU.
    WakeupNew(Task, u32),
    /// `sched_process_fork`: parent and child.
    Fork(Task, Task),
    /// `sched_process_exit`.
    Exit(Task),
    /// `sched_process_exec`: task and its former id.
    Exec(Task, u32),
    /// `cpuhp_enter`: CPU, target, step.
    HotplugEnter(u32, u32, u32),
    /// `cpuhp_exit`: CPU, state, step, result.
    HotplugExit(u32, u32, u32, i32),
    /// `binder_transaction`: id, whether it is a reply, flags.
    Binder(u32, bool, u32),
    /// `binder_transaction_received`: id.
    BinderReceived(u32),
    /// An event of a device's queue.
    Device(devices::DeviceEvent),
    /// `devfreq_frequency`: device, frequency, frequency before.
    DeviceFrequency(&'static str, u32, u32),
    /// An event that no reader knows.
    Unknown(u32),
}

/// State in which a thread leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It could go on: it was preempted.
    Runnable,
    /// It sleeps.
    Sleeping,
    /// It sleeps and cannot be interrupted.
    Blocked,
    /// It ended.
    Dead,
}

impl State {
    /// Returns the letter and the number of the kernel (`include/trace/events/sched.h`).
    fn of_kernel(self) -> (&'static str, i64) {
        match self {
            Self::Runnable => ("R", 0),
            Self::Sleeping => ("S", 1),
            Self::Blocked => ("D", 2),
            Self::Dead => ("X", 16),
        }
    }
}

/// Value of a field.
#[derive(Clone, Debug)]
pub enum Value {
    /// Number of 4 bytes.
    Word(i64),
    /// Number of 8 bytes.
    Long(i64),
    /// Address of 8 bytes.
    Address(u64),
    /// Text of 16 bytes.
    Name(String),
    /// Text at the end of the record.
    Elsewhere(String),
}

/// Field of an event.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name in the kernel.
    pub name: &'static str,
    /// Its number in Perfetto's message; `None` where that has no such field.
    pub number: Option<u32>,
    /// Value.
    pub value: Value,
}

/// An event as each of the formats says it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name in the kernel.
    pub name: &'static str,
    /// Number of Perfetto's message.
    pub message: u32,
    /// Fields as the kernel prints them.
    pub text: String,
    /// Fields.
    pub fields: Vec<Field>,
}

fn word(name: &'static str, number: u32, value: impl Into<i64>) -> Field {
    Field { name, number: Some(number), value: Value::Word(value.into()) }
}

fn name(name: &'static str, number: u32, value: &str) -> Field {
    Field { name, number: Some(number), value: Value::Name(value.to_owned()) }
}

fn elsewhere(name: &'static str, number: u32, value: &str) -> Field {
    Field { name, number: Some(number), value: Value::Elsewhere(value.to_owned()) }
}

/// Priority of all threads.
const PRIORITY: u32 = 120;

fn woken(event: &'static str, message: u32, task: &Task, cpu: u32) -> Description {
    Description {
        name: event,
        message,
        text: format!("comm={} pid={} prio={PRIORITY} target_cpu={cpu:03}", task.name, task.tid),
        fields: vec![
            name("comm", 1, &task.name),
            word("pid", 2, task.tid),
            word("prio", 3, PRIORITY),
            word("target_cpu", 5, cpu),
        ],
    }
}

fn switched(prev: &Task, state: State, next: &Task) -> Description {
    let (letter, number) = state.of_kernel();
    let text = format!(
        "prev_comm={} prev_pid={} prev_prio={PRIORITY} prev_state={letter} ==> next_comm={} next_pid={} \
         next_prio={PRIORITY}",
        prev.name, prev.tid, next.name, next.tid
    );
    let fields = vec![
        name("prev_comm", 1, &prev.name),
        word("prev_pid", 2, prev.tid),
        word("prev_prio", 3, PRIORITY),
        Field { name: "prev_state", number: Some(4), value: Value::Long(number) },
        name("next_comm", 5, &next.name),
        word("next_pid", 6, next.tid),
        word("next_prio", 7, PRIORITY),
    ];
    Description { name: "sched_switch", message: 4, text, fields }
}

impl Kind {
    /// Returns what the formats say of it. Source: `include/trace/events/` of Linux and `protos/perfetto/trace/ftrace/`
    /// of Perfetto.
    #[must_use]
    pub fn description(&self) -> Description {
        let of = |name, message, text, fields| Description { name, message, text, fields };
        match self {
            Self::Mark(text) => {
                let buf =
                    Field { name: "buf", number: Some(2), value: Value::Elsewhere(format!("{text}\n")) };
                of("print", 3, text.clone(), vec![buf])
            }
            Self::Idle(state, cpu) | Self::Frequency(state, cpu) => {
                let (name, message) =
                    if matches!(self, Self::Idle(..)) { ("cpu_idle", 13) } else { ("cpu_frequency", 11) };
                let fields = vec![word("state", 1, *state), word("cpu_id", 2, *cpu)];
                of(name, message, format!("state={state} cpu_id={cpu}"), fields)
            }
            Self::Limits(least, most, cpu) => of(
                "cpu_frequency_limits",
                12,
                format!("min={least} max={most} cpu_id={cpu}"),
                vec![word("min_freq", 1, *least), word("max_freq", 2, *most), word("cpu_id", 3, *cpu)],
            ),
            Self::Cooling(device, state) => {
                let target = Field { name: "target", number: Some(1), value: Value::Long((*state).into()) };
                let fields = vec![elsewhere("type", 2, device), target];
                of("cdev_update", 342, format!("type={device} target={state}"), fields)
            }
            Self::Switch(prev, state, next) => switched(prev, *state, next),
            Self::Waking(task, cpu) => woken("sched_waking", 20, task, *cpu),
            Self::Wakeup(task, cpu) => woken("sched_wakeup", 17, task, *cpu),
            Self::WakeupNew(task, cpu) => woken("sched_wakeup_new", 114, task, *cpu),
            Self::Fork(parent, child) => of(
                "sched_process_fork",
                239,
                format!(
                    "comm={} pid={} child_comm={} child_pid={}",
                    parent.name, parent.tid, child.name, child.tid
                ),
                vec![
                    name("parent_comm", 1, &parent.name),
                    word("parent_pid", 2, parent.tid),
                    name("child_comm", 3, &child.name),
                    word("child_pid", 4, child.tid),
                ],
            ),
            Self::Exit(task) => of(
                "sched_process_exit",
                238,
                format!("comm={} pid={} prio={PRIORITY}", task.name, task.tid),
                vec![name("comm", 1, &task.name), word("pid", 2, task.tid), word("prio", 4, PRIORITY)],
            ),
            Self::Exec(task, former) => of(
                "sched_process_exec",
                237,
                format!("filename=/bin/{} pid={} old_pid={former}", task.name, task.tid),
                vec![
                    elsewhere("filename", 1, &format!("/bin/{}", task.name)),
                    word("pid", 2, task.tid),
                    word("old_pid", 3, *former),
                ],
            ),
            Self::HotplugEnter(cpu, target, step) => of(
                "cpuhp_enter",
                345,
                format!("cpu: {cpu:04} target: {target:3} step: {step:3} (takedown_cpu)"),
                vec![word("cpu", 1, *cpu), word("target", 4, *target), word("idx", 3, *step)],
            ),
            Self::HotplugExit(cpu, state, step, result) => of(
                "cpuhp_exit",
                343,
                format!(" cpu: {cpu:04}  state: {state:3} step: {step:3} ret: {result}"),
                vec![
                    word("cpu", 1, *cpu),
                    word("state", 4, *state),
                    word("idx", 2, *step),
                    word("ret", 3, *result),
                ],
            ),
            Self::Binder(id, is_reply, flags) => {
                let reply = u32::from(*is_reply);
                let text = format!(
                    "transaction={id} dest_node=1 dest_proc=20 dest_thread=0 reply={reply} flags=0x{flags:x} code=0x1"
                );
                let fields =
                    vec![word("debug_id", 1, *id), word("reply", 5, reply), word("flags", 7, *flags)];
                of("binder_transaction", 50, text, fields)
            }
            Self::BinderReceived(id) => of(
                "binder_transaction_received",
                51,
                format!("transaction={id}"),
                vec![word("debug_id", 1, *id)],
            ),
            Self::Device(event) => event.description(),
            Self::DeviceFrequency(device, hz, before) => devices::frequency(device, *hz, *before),
            Self::Unknown(value) => {
                of("ipi_raise", 74, format!("value={value}"), vec![word("value", 1, *value)])
            }
        }
    }
}
