//! An ftrace recording of our own, separate from all others.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{power::Event, wait};

/// Private instance of the kernel's tracer. It is removed when dropped.
pub struct Instance {
    path: PathBuf,
}

/// Recorded events of one CPU: times in ns, accurate to microseconds.
pub type Events = Vec<(u64, Event)>;

impl Instance {
    /// Creates an instance that records idle events by the monotonic clock.
    ///
    /// # Errors
    /// When tracefs is not mounted, or refuses.
    pub fn recording_idle() -> Result<Self> {
        Self::recording(&["power/cpu_idle"])
    }

    /// Creates an instance that records these events by the monotonic clock.
    ///
    /// # Errors
    /// When tracefs is not mounted, or refuses.
    pub fn recording(events: &[&str]) -> Result<Self> {
        let path = Path::new("/sys/kernel/tracing/instances").join(format!("nntrace-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let instance = Self { path };
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", "16384")?;
        for event in events {
            instance.set(&format!("events/{event}/enable"), "1")?;
        }
        instance.set("tracing_on", "1")?;
        Ok(instance)
    }

    /// Ends the recording; returns the events by CPU.
    ///
    /// # Errors
    /// When there is a line in another format, or when events were lost.
    pub fn finish(&self, cpus: usize) -> Result<Vec<Events>> {
        parse(&self.text(cpus)?, cpus)
    }

    /// Ends the recording; returns its text.
    ///
    /// # Errors
    /// When events of the first `cpus` CPUs were lost.
    pub fn text(&self, cpus: usize) -> Result<String> {
        self.set("tracing_on", "0")?;
        for cpu in 0..cpus {
            let stats = fs::read_to_string(self.path.join(format!("per_cpu/cpu{cpu}/stats")))?;
            for kind in ["overrun: ", "dropped events: "] {
                let lost = stats.lines().find_map(|line| line.strip_prefix(kind));
                if lost != Some("0") {
                    bail!("ftrace lost events of CPU {cpu}:\n{stats}");
                }
            }
        }
        Ok(fs::read_to_string(self.path.join("trace"))?)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Busy for a moment after its last reader.
        let removed = wait::until("the tracer instance to go", || match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            result => Ok(Some(result)),
        });
        if !matches!(removed, Ok(Ok(()))) {
            eprintln!("{} is left behind: {removed:?}", self.path.display());
        }
    }
}

/// Parses lines such as `<idle>-0  [001] d..1.  5021.564829: cpu_idle: state=1 cpu_id=1`: the events of each CPU, in
/// order, no two of them at the same time.
fn parse(text: &str, cpus: usize) -> Result<Vec<Events>> {
    let mut events = vec![Vec::new(); cpus];
    for (at, cpu, event) in lines(text)? {
        events.get_mut(cpu as usize).with_context(|| format!("no CPU {cpu}"))?.push((at, event));
    }
    for of_cpu in &mut events {
        of_cpu.sort_by_key(|&(at, _)| at);
        // Within one microsecond they are still in order, and each has a length.
        let mut earliest = 0;
        for (at, _) in of_cpu {
            *at = earliest.max(*at);
            earliest = *at + 1;
        }
    }
    Ok(events)
}

/// Parses the events of a text in their order: time in ns, CPU, event.
///
/// # Errors
/// When there is a line in another format.
pub fn lines(text: &str) -> Result<Vec<(u64, u32, Event)>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse_line(line).with_context(|| format!("not understood: {line}"))).collect()
}

fn parse_line(line: &str) -> Option<(u64, u32, Event)> {
    let idle = line.split_once(": cpu_idle: ");
    let (head, fields) = idle.or_else(|| line.split_once(": cpu_frequency: "))?;
    let (seconds, microseconds) = head.rsplit(' ').next()?.split_once('.')?;
    if microseconds.len() != 6 {
        return None;
    }
    let at = (seconds.parse::<u64>().ok()? * 1_000_000 + microseconds.parse::<u64>().ok()?) * 1_000;
    let field =
        |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)?.parse::<u32>().ok());
    let state = field("state=")?;
    let event = if idle.is_some() { Event::Idle(state) } else { Event::Frequency(state) };
    Some((at, field("cpu_id=")?, event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::EXIT;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let text = "\
# tracer: nop
          <idle>-0       [001] d..1.  5021.564829: cpu_idle: state=1 cpu_id=1
          <idle>-0       [000] d..1.  5021.564800: cpu_idle: state=4294967295 cpu_id=0
          <idle>-0       [001] d..1.  5021.564829: cpu_idle: state=4294967295 cpu_id=1
";
        let events = parse(text, 2).unwrap();
        assert_eq!(events[0], [(5_021_564_800_000, Event::Idle(EXIT))]);
        let of_one = [(5_021_564_829_000, Event::Idle(1)), (5_021_564_829_001, Event::Idle(EXIT))];
        assert_eq!(events[1], of_one);
        assert!(parse("CPU:0 [LOST 3 EVENTS]", 2).is_err());
        let line = "  sugov:4-77  [005] d..2.  7.039163: cpu_frequency: state=1800000 cpu_id=4";
        assert_eq!(lines(line).unwrap(), [(7_039_163_000, 4, Event::Frequency(1_800_000))]);
    }
}
