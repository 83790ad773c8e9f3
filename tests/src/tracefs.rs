//! A recording of ftrace's own, beside everybody else's.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{power::Event, wait};

/// A private instance of the kernel's tracer. Dropped, it is removed.
pub struct Instance {
    path: PathBuf,
}

/// What was recorded of one CPU: times in ns, of microseconds' accuracy.
pub type Events = Vec<(u64, Event)>;

impl Instance {
    /// Makes an instance that records idle events by the monotonic clock.
    ///
    /// # Errors
    /// When tracefs is not mounted, or refuses.
    pub fn recording_idle() -> Result<Self> {
        let path = Path::new("/sys/kernel/tracing/instances").join(format!("nntrace-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let instance = Self { path };
        for (file, value) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", "16384"),
            ("events/power/cpu_idle/enable", "1"),
            ("tracing_on", "1"),
        ] {
            instance.set(file, value)?;
        }
        Ok(instance)
    }

    /// Ends the recording; returns the events by CPU.
    ///
    /// # Errors
    /// When there is a line of another form, or when something was lost.
    pub fn finish(&self, cpus: usize) -> Result<Vec<Events>> {
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
        parse(&fs::read_to_string(self.path.join("trace"))?, cpus)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Busy for moments after its last reader.
        let removed = wait::until("the tracer instance to go", || match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            result => Ok(Some(result)),
        });
        if !matches!(removed, Ok(Ok(()))) {
            eprintln!("{} is left behind: {removed:?}", self.path.display());
        }
    }
}

/// Reads lines such as `<idle>-0  [001] d..1.  5021.564829: cpu_idle: state=1 cpu_id=1`.
fn parse(text: &str, cpus: usize) -> Result<Vec<Events>> {
    let mut events = vec![Vec::new(); cpus];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (cpu, event) = parse_line(line).with_context(|| format!("not understood: {line}"))?;
        events.get_mut(cpu).with_context(|| format!("no such CPU: {line}"))?.push(event);
    }
    for of_cpu in &mut events {
        of_cpu.sort_by_key(|&(at, _)| at);
        // Within one microsecond they are in order still, and none is of no length.
        let mut earliest = 0;
        for (at, _) in of_cpu {
            *at = earliest.max(*at);
            earliest = *at + 1;
        }
    }
    Ok(events)
}

fn parse_line(line: &str) -> Option<(usize, (u64, Event))> {
    let (head, fields) = line.split_once(": cpu_idle: ")?;
    let (seconds, microseconds) = head.rsplit(' ').next()?.split_once('.')?;
    if microseconds.len() != 6 {
        return None;
    }
    let at = (seconds.parse::<u64>().ok()? * 1_000_000 + microseconds.parse::<u64>().ok()?) * 1_000;
    let field =
        |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)?.parse::<u32>().ok());
    Some((field("cpu_id=")? as usize, (at, Event::Idle(field("state=")?))))
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
    }
}
