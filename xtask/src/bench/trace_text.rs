//! Generator of a trace as the kernel prints it, of any length: two programs that run networks and one that draws, on
//! four CPUs that become idle in between. The same each time.

use std::io::{self, Write};

/// Number of CPUs.
const CPUS: usize = 4;

/// Sections of a thread that runs a network, by the number of open ones around them.
const SECTIONS: [&[&str]; 3] = [
    &["[NN_LR_PE]ANeuralNetworksExecution_compute"],
    &["[NN_LC_PE]CpuExecutor::run"],
    &[
        "[NN_LC_PCO]conv2d",
        "[NN_LC_PCO]depthwise_conv2d",
        "[NN_LC_PCO]fully_connected",
        "[NN_LC_PCO]softmax",
        "[SW][NN_LC_PTR]reshape",
    ],
];

/// Sections of a thread that draws, without tags.
const FOREIGN: [&[&str]; 2] = [&["Choreographer#doFrame", "DrawFrame"], &["measure", "layout", "draw"]];

/// Frequencies that the governor requests, kHz.
const FREQUENCIES: [u32; 4] = [600_000, 1_200_000, 1_800_000, 2_400_000];

/// Writes a trace of `bytes` or a line more.
pub fn write(out: &mut impl Write, bytes: u64) -> io::Result<()> {
    let mut trace =
        Trace { out, written: 0, random: 1, us: 1_000_000_000, running: [None; CPUS], threads: threads() };
    trace.text(concat!(
        "# tracer: nop\n#\n",
        "#           TASK-PID    TGID   CPU#  |||||  TIMESTAMP  FUNCTION\n",
        "#              | |        |      |   |||||     |         |\n",
    ))?;
    while trace.written < bytes {
        trace.step()?;
    }
    Ok(())
}

/// Writes a trace of `marks` begins and ends of sections, by a thread on each CPU.
pub fn write_marks(out: &mut impl Write, marks: u64) -> io::Result<()> {
    let running = std::array::from_fn(Some);
    let mut trace = Trace { out, written: 0, random: 1, us: 1_000_000_000, running, threads: threads() };
    for _ in 0..marks {
        let thread = trace.below(CPUS);
        trace.mark(thread, thread)?;
    }
    Ok(())
}

/// Writes a trace of `events` power events in idlestat's own format, whose CPUs do little else than become idle.
pub fn write_idle(out: &mut impl Write, events: u64) -> io::Result<()> {
    writeln!(out, "idlestat version = 0.8\ncpus={CPUS}\nclusterA:")?;
    for cpu in 0..CPUS {
        writeln!(out, "\tcore{cpu}\n\t\tcpu{cpu}")?;
    }
    // Each table has room for 16 states.
    let states = "\tWFI\n\t1\n\tcpu-sleep-0\n\t2000\n\tcluster-sleep-0\n\t2500\n".to_owned()
        + &"\t(null)\n\t-1\n".repeat(13);
    for cpu in 0..CPUS {
        write!(out, "cpuid {cpu}:\n{states}")?;
    }
    let (mut random, mut us, mut idle) = (1, 1_000_000_000, [false; CPUS]);
    for _ in 0..events {
        us += 20 + next(&mut random, 200) as u64;
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let cpu = next(&mut random, CPUS);
        let (task, what, state) = match next(&mut random, 50) {
            0 => ("kworker/0:1-77", "cpu_frequency", FREQUENCIES[next(&mut random, FREQUENCIES.len())]),
            _ if idle[cpu] => ("<idle>-0", "cpu_idle", u32::MAX),
            _ => ("<idle>-0", "cpu_idle", next(&mut random, 3) as u32),
        };
        idle[cpu] ^= what == "cpu_idle";
        writeln!(
            out,
            "{task:>24} [{cpu:03}] d..1 {seconds:5}.{fraction:06}: {what}: state={state} cpu_id={cpu}"
        )?;
    }
    Ok(())
}

/// Returns a random number below `limit`; Knuth's MMIX generator.
fn next(random: &mut u64, limit: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize % limit
}

/// A thread.
struct Thread {
    name: &'static str,
    tid: u32,
    tgid: u32,
    sections: &'static [&'static [&'static str]],
    /// Number of open sections.
    depth: usize,
}

fn threads() -> Vec<Thread> {
    let thread = |name, tid, tgid, sections| Thread { name, tid, tgid, sections, depth: 0 };
    let mut threads: Vec<_> = (0..6).map(|n| thread("nn-worker", 1_000 + n, 1_000, &SECTIONS[..])).collect();
    threads.extend((0..3).map(|n| thread("camera-preview", 21_345 + n, 21_340, &SECTIONS[..])));
    threads.extend((0..2).map(|n| thread("RenderThread", 3_012 + n, 3_000, &FOREIGN[..])));
    threads
}

struct Trace<'a, W> {
    out: &'a mut W,
    written: u64,
    random: u64,
    us: u64,
    /// Thread that runs on each CPU; `None`: idle.
    running: [Option<usize>; CPUS],
    threads: Vec<Thread>,
}

impl<W: Write> Trace<'_, W> {
    /// Generates an event on one of the CPUs.
    fn step(&mut self) -> io::Result<()> {
        let cpu = self.below(CPUS);
        let Some(thread) = self.running[cpu] else {
            self.line(None, cpu, &format!("cpu_idle: state=4294967295 cpu_id={cpu}"))?;
            return self.switch(cpu, None);
        };
        match self.below(100) {
            0..3 => {
                let khz = FREQUENCIES[self.below(FREQUENCIES.len())];
                self.line(Some(thread), cpu, &format!("cpu_frequency: state={khz} cpu_id={cpu}"))
            }
            3..12 => self.switch(cpu, Some(thread)),
            12..24 => {
                self.to(cpu, Some(thread), None)?;
                let state = self.below(3);
                self.line(None, cpu, &format!("cpu_idle: state={state} cpu_id={cpu}"))
            }
            _ => self.mark(cpu, thread),
        }
    }

    /// Gives the CPU to a waiting thread.
    fn switch(&mut self, cpu: usize, from: Option<usize>) -> io::Result<()> {
        let mut next = self.below(self.threads.len());
        while self.running.contains(&Some(next)) {
            next = (next + 1) % self.threads.len();
        }
        self.to(cpu, from, Some(next))
    }

    fn to(&mut self, cpu: usize, from: Option<usize>, to: Option<usize>) -> io::Result<()> {
        let task = |task: Option<usize>| match task {
            Some(thread) => (self.threads[thread].name.to_owned(), self.threads[thread].tid),
            None => (format!("swapper/{cpu}"), 0),
        };
        let ((old, old_tid), (new, new_tid)) = (task(from), task(to));
        let state = if from.is_some() && to.is_none() { "S" } else { "R" };
        self.running[cpu] = to;
        self.line(
            from,
            cpu,
            &format!(
                "sched_switch: prev_comm={old} prev_pid={old_tid} prev_prio=120 prev_state={state} \
                 ==> next_comm={new} next_pid={new_tid} next_prio=120"
            ),
        )
    }

    /// Begins or ends a section of the thread.
    fn mark(&mut self, cpu: usize, thread: usize) -> io::Result<()> {
        let (begins, choice) = (self.below(100) < 60, self.below(usize::MAX));
        let Thread { tgid, sections, depth, .. } = &mut self.threads[thread];
        let tgid = *tgid;
        if *depth < sections.len() && (*depth == 0 || begins) {
            let names = sections[*depth];
            *depth += 1;
            let name = names[choice % names.len()];
            self.line(Some(thread), cpu, &format!("tracing_mark_write: B|{tgid}|{name}"))
        } else {
            *depth -= 1;
            self.line(Some(thread), cpu, &format!("tracing_mark_write: E|{tgid}"))
        }
    }

    /// Writes a line of a thread, or of the idle task of a CPU, some us after the previous one.
    fn line(&mut self, thread: Option<usize>, cpu: usize, event: &str) -> io::Result<()> {
        self.us += 1 + self.below(9) as u64;
        let flags = ["...1.", ".....", "d..2.", "d..1."][self.below(4)];
        let (name, tid, tgid) = thread.map_or(("<idle>", 0, 0), |thread| {
            let Thread { name, tid, tgid, .. } = self.threads[thread];
            (name, tid, tgid)
        });
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        let tgid = if tgid == 0 { "-".repeat(7) } else { format!("{tgid:7}") };
        self.text(&format!("{name:>16}-{tid:<7} ({tgid}) [{cpu:03}] {flags} {seconds:5}.{us:06}: {event}\n"))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.written += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    fn below(&mut self, limit: usize) -> usize {
        next(&mut self.random, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(bytes: u64) -> String {
        let mut text = Vec::new();
        write(&mut text, bytes).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_longer_trace_goes_on_where_a_shorter_one_ends() {
        let (short, long) = (trace(10_000), trace(100_000));
        assert!(long.starts_with(&short));
        assert!((10_000..10_300).contains(&short.len()));
        assert!(long.ends_with('\n'));
    }

    #[test]
    fn marks_can_be_had_alone() {
        let mut text = Vec::new();
        write_marks(&mut text, 1_000).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 1_000);
        assert_eq!(text.matches(": tracing_mark_write: ").count(), 1_000);
    }

    #[test]
    fn all_kinds_of_lines_are_in_it_in_order_of_time() {
        let text = trace(100_000);
        let time = |line: &str| {
            let (_, rest) = line.split_once("] ").unwrap();
            let (_, rest) = rest.split_once(' ').unwrap();
            rest.split_once(": ").unwrap().0.trim().parse::<f64>().unwrap()
        };
        let times: Vec<f64> = text.lines().filter(|line| !line.starts_with('#')).map(time).collect();
        assert!(times.is_sorted());
        let share = |event: &str| 100 * text.matches(event).count() / times.len();
        assert!((45..70).contains(&share(": tracing_mark_write: ")), "{}", share("mark"));
        assert!((10..25).contains(&share(": cpu_idle: ")));
        assert!((15..35).contains(&share(": sched_switch: ")));
        assert!((1..5).contains(&share(": cpu_frequency: ")));
        let balance = text.matches(": B|").count().abs_diff(text.matches(": E|").count());
        assert!(balance <= 3 * threads().len(), "every section ends, those that are open at the end aside");
    }
}
