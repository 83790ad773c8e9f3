//! Random traces of a machine: threads that mark, hand work over, sleep, wake each other, start and end on CPUs that idle,
//! change their frequency, go offline and come back, and devices that do jobs for them.

use std::fmt::Write as _;

use super::{
    Event, Kind, State, Task, Thread, Trace,
    devices::{DeviceEvent, Job},
};
use crate::trace::Random;

const NAMES: [&str; 7] = [
    "[NN_LA_PO]capture",
    "[NN_LA_PE]run",
    "[NN_LR_PE]infer",
    "[NN_LD_PE]conv",
    "[NN_LR_PC]pool",
    "[SUB][NN_LC_PCO]copy",
    "foreign",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    Ready,
    Asleep,
    Over,
}

struct Worker {
    thread: Thread,
    life: Life,
    open: u32,
}

struct Cpu {
    /// Index of the worker that runs; `None`: the idle thread.
    running: Option<usize>,
    is_idle: bool,
    is_online: bool,
}

struct Machine {
    random: Random,
    time: u64,
    workers: Vec<Worker>,
    cpus: Vec<Cpu>,
    handles: u64,
    iterations: u64,
    transactions: u32,
    devices: Devices,
    events: Vec<Event>,
}

/// Jobs of devices.
#[derive(Default)]
struct Devices {
    is_early: bool,
    jobs: u32,
    queued: Vec<Job>,
    running: Vec<Job>,
}

/// Returns the trace of this seed, of about as many events.
#[must_use]
pub fn trace(seed: u64, events: usize) -> Trace {
    let mut random = Random::new(seed);
    let cpus = 1 + random.below(4) as usize;
    let processes = 1 + random.below(3) as u32;
    let mut machine = Machine {
        random,
        time: 1_000_000_000,
        workers: Vec::new(),
        cpus: (0..cpus).map(|_| Cpu { running: None, is_idle: false, is_online: true }).collect(),
        handles: 0,
        iterations: 0,
        transactions: 0,
        devices: Devices { is_early: seed.is_multiple_of(3), ..Devices::default() },
        events: Vec::new(),
    };
    for process in 1..=processes {
        machine.start(100 * process, 100 * process, Life::Ready);
    }
    while machine.events.len() < events {
        machine.step();
    }
    let threads = machine.workers.into_iter().map(|worker| worker.thread).collect();
    Trace { threads, events: machine.events }
}

impl Machine {
    fn percent(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn pick(&mut self, count: usize) -> usize {
        self.random.below(count.max(1) as u64) as usize
    }

    fn start(&mut self, tid: u32, pid: u32, life: Life) {
        let name = format!("{} {tid}", ["app", "pool", "b:c=d"][self.pick(3)]);
        self.workers.push(Worker { thread: Thread { tid, pid, name }, life, open: 0 });
    }

    fn task(&self, worker: Option<usize>) -> Task {
        match worker {
            Some(worker) => {
                let Thread { tid, name, .. } = &self.workers[worker].thread;
                Task { tid: *tid, name: name.clone() }
            }
            None => Task { tid: 0, name: "swapper".into() },
        }
    }

    fn write(&mut self, cpu: usize, kind: Kind) {
        // Events of several CPUs have an order by their times only.
        let is_same = self.events.last().is_some_and(|last| last.cpu == cpu as u32);
        self.time += match self.random.below(20) {
            0 if is_same => 0,
            0..=12 => 1 + self.random.below(900),
            13..=18 => 1_000 + self.random.below(200_000),
            _ => 1_000_000 + self.random.below(300_000_000),
        };
        let tid = self.task(self.cpus[cpu].running).tid;
        self.events.push(Event { time: self.time, cpu: cpu as u32, tid, kind });
    }

    /// Another worker that satisfies a condition.
    fn one_of(&mut self, is: impl Fn(&Worker) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.workers.len()).filter(|at| is(&self.workers[*at])).collect();
        let at = self.pick(all.len());
        all.get(at).copied()
    }

    fn switch(&mut self, cpu: usize, state: State, next: Option<usize>) {
        let (prev, others) = (self.cpus[cpu].running, self.task(next));
        let kind = Kind::Switch(self.task(prev), state, others);
        self.write(cpu, kind);
        if let Some(prev) = prev {
            self.workers[prev].life = match state {
                State::Runnable => Life::Ready,
                State::Sleeping | State::Blocked => Life::Asleep,
                State::Dead => Life::Over,
            };
        }
        if let Some(next) = next {
            self.workers[next].life = Life::Running;
        }
        self.cpus[cpu].running = next;
    }

    fn wake(&mut self, cpu: usize) {
        let Some(woken) = self.one_of(|worker| worker.life == Life::Asleep) else { return };
        let (task, target) = (self.task(Some(woken)), self.pick(self.cpus.len()) as u32);
        if self.percent(80) {
            self.write(cpu, Kind::Waking(task.clone(), target));
        }
        if self.percent(50) {
            self.write(cpu, Kind::Wakeup(task, target));
        }
        self.workers[woken].life = Life::Ready;
    }

    fn step(&mut self) {
        let cpu = self.pick(self.cpus.len());
        if !self.cpus[cpu].is_online {
            if self.percent(30) {
                self.hotplug(cpu);
            }
            return;
        }
        if self.percent(6) {
            return self.power(cpu);
        }
        if self.percent(10) {
            return self.device(cpu);
        }
        match self.cpus[cpu].running {
            Some(worker) => self.run(cpu, worker),
            None => self.idle(cpu),
        }
    }

    /// A step of a device or of its scheduler, or a job for it.
    fn device(&mut self, cpu: usize) {
        let [queued, running] =
            [self.devices.queued.len(), self.devices.running.len()].map(|count| self.pick(count));
        let event = match self.random.below(10) {
            0..=2 if self.cpus[cpu].running.is_some() => {
                let Devices { is_early, jobs: number, .. } = self.devices;
                let job = Job { number, ring: self.random.below(2) as u32, is_early };
                self.devices.jobs += 1;
                self.devices.queued.push(job);
                DeviceEvent::Queue(job)
            }
            3..=5 if !self.devices.queued.is_empty() => {
                let job = self.devices.queued.remove(queued);
                self.devices.running.push(job);
                DeviceEvent::Run(job)
            }
            6..=7 if !self.devices.running.is_empty() => {
                DeviceEvent::Done(self.devices.running.remove(running))
            }
            8 if !self.devices.queued.is_empty() && !self.devices.is_early => {
                let on = (20 + self.random.below(5) as u32, 1 + self.random.below(9) as u32);
                let job = self.devices.queued[queued];
                if self.percent(50) {
                    DeviceEvent::AddDependency(job, on)
                } else {
                    DeviceEvent::Unschedulable(job, on)
                }
            }
            9 => DeviceEvent::Signaled((23 + self.random.below(2) as u32, 1 + self.random.below(9) as u32)),
            _ => return,
        };
        self.write(cpu, Kind::Device(event));
    }

    /// A step of the idle thread.
    fn idle(&mut self, cpu: usize) {
        let next = self.one_of(|worker| worker.life == Life::Ready);
        if self.cpus[cpu].is_idle {
            self.write(cpu, Kind::Idle(u32::MAX, cpu as u32));
            self.cpus[cpu].is_idle = false;
        } else if next.is_some() && self.percent(70) {
            self.switch(cpu, State::Runnable, next);
        } else if self.percent(30) {
            self.wake(cpu);
        } else {
            let state = self.random.below(3) as u32;
            self.write(cpu, Kind::Idle(state, cpu as u32));
            self.cpus[cpu].is_idle = true;
        }
    }

    fn power(&mut self, cpu: usize) {
        let (of, khz) = (self.pick(self.cpus.len()) as u32, 300_000 * (1 + self.random.below(6) as u32));
        match self.random.below(11) {
            0..=4 => self.write(cpu, Kind::Frequency(khz, of)),
            5 | 6 => self.write(cpu, Kind::Limits(300_000, khz, of)),
            7 => {
                let state = self.random.below(4) as u32;
                self.write(cpu, Kind::Cooling("thermal-cpufreq-0", state));
            }
            8 => self.hotplug(cpu),
            9 => {
                let before = 300_000_000 * (1 + self.random.below(6) as u32);
                self.write(cpu, Kind::DeviceFrequency("fdab0000.npu", khz * 1_000, before));
            }
            _ => self.write(cpu, Kind::Unknown(khz)),
        }
    }

    /// Takes a CPU that only idles down, or brings one back.
    fn hotplug(&mut self, cpu: usize) {
        let Some(of) = (0..self.cpus.len()).find(|of| *of != cpu && self.cpus[*of].running.is_none()) else {
            return;
        };
        if self.cpus[cpu].is_online && self.cpus[of].is_online {
            self.write(cpu, Kind::HotplugEnter(of as u32, 0, 87));
            let result = if self.percent(90) { 0 } else { -16 };
            self.write(cpu, Kind::HotplugExit(of as u32, 86, 87, result));
            self.cpus[of].is_online = result != 0;
            self.cpus[of].is_idle &= result != 0;
        } else if !self.cpus[cpu].is_online {
            self.write(cpu, Kind::HotplugEnter(cpu as u32, 238, 147));
            self.cpus[cpu].is_online = true;
        }
    }

    /// A step of a thread.
    fn run(&mut self, cpu: usize, worker: usize) {
        match self.random.below(100) {
            0..=49 => self.mark(cpu, worker),
            50..=69 => {
                let next = self.one_of(|other| other.life == Life::Ready);
                let state = [State::Sleeping, State::Sleeping, State::Blocked, State::Runnable][self.pick(4)];
                self.switch(cpu, state, next);
            }
            70..=84 => self.wake(cpu),
            85..=88 => self.fork(cpu, worker),
            89 if self.percent(30) => {
                let task = self.task(Some(worker));
                self.write(cpu, Kind::Exit(task));
                let next = self.one_of(|other| other.life == Life::Ready);
                self.switch(cpu, State::Dead, next);
            }
            90 | 91 if self.workers[worker].thread.tid == self.workers[worker].thread.pid => {
                let task = self.task(Some(worker));
                let former = task.tid;
                self.write(cpu, Kind::Exec(task, former));
                self.workers[worker].open = 0;
            }
            92..=95 => {
                self.transactions += 1;
                let (reply, flags) = (self.percent(30), if self.percent(30) { 0x11 } else { 0x10 });
                self.write(cpu, Kind::Binder(self.transactions, reply, flags));
            }
            _ if self.transactions > 0 => {
                let sent = 1 + self.random.below(self.transactions.into()) as u32;
                self.write(cpu, Kind::BinderReceived(sent));
            }
            _ => {}
        }
    }

    fn fork(&mut self, cpu: usize, worker: usize) {
        let Thread { pid, .. } = self.workers[worker].thread;
        let of_process = self.workers.iter().filter(|other| other.thread.pid == pid).count() as u32;
        if of_process > 40 {
            return;
        }
        self.start(pid + of_process, pid, Life::Ready);
        let child = self.task(Some(self.workers.len() - 1));
        let parent = self.task(Some(worker));
        self.write(cpu, Kind::Fork(parent, child.clone()));
        let target = self.pick(self.cpus.len()) as u32;
        self.write(cpu, Kind::WakeupNew(child, target));
    }

    fn mark(&mut self, cpu: usize, worker: usize) {
        let pid = self.workers[worker].thread.pid;
        let open = self.workers[worker].open;
        let text = match self.random.below(100) {
            0..=44 if open < 6 => {
                self.workers[worker].open += 1;
                let mut text = format!("B|{pid}|{}", NAMES[self.pick(NAMES.len())]);
                if !text.ends_with("foreign") && self.percent(20) {
                    text += if self.percent(50) { "#acct=alice" } else { "#acct=bob" };
                }
                if !text.ends_with("foreign") && self.percent(20) {
                    let _ = write!(text, "#iter={}", self.iterations);
                    self.iterations += 1;
                }
                text
            }
            45..=79 if open > 0 => {
                self.workers[worker].open -= 1;
                format!("E|{pid}")
            }
            80..=86 => {
                self.handles += 1;
                format!("I|{pid}|nn.send#h={}", self.handles)
            }
            87..=93 if self.handles > 0 => {
                let back = self.random.below(self.handles.min(3));
                format!("I|{pid}|nn.recv#h={}", self.handles - back)
            }
            94..=96 => format!("C|{pid}|queue|{}", self.random.below(9)),
            97 => format!("S|{pid}|job|{}", self.random.below(3)),
            98 => format!("F|{pid}|job|{}", self.random.below(3)),
            _ => format!("I|{pid}|here"),
        };
        self.write(cpu, Kind::Mark(text));
    }
}
