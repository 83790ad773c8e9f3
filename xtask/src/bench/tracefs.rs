//! A trace buffer of our own: recordings of others are neither disturbed nor measured.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// ftrace instance, removed with this value.
pub struct Instance(PathBuf);

impl Instance {
    /// Creates an instance that records everything written to it.
    pub fn create(name: &str) -> Result<Self> {
        let path = Path::new(INSTANCES).join(name);
        // One left by a killed run; usually there is none.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path)
            .with_context(|| format!("cannot make the trace buffer {}; is it in use?", path.display()))?;
        let instance = Self(path);
        instance.write("tracing_on", "1")?;
        Ok(instance)
    }

    /// Returns the file that marks are written to.
    pub fn marker(&self) -> PathBuf {
        self.0.join("trace_marker")
    }

    /// Enables or disables the recording of an event; `false` if the kernel has no such event (`system/event`).
    pub fn record(&self, event: &str, on: bool) -> Result<bool> {
        let switch = format!("events/{event}/enable");
        if !self.0.join(&switch).is_file() {
            return Ok(false);
        }
        self.write(&switch, if on { "1" } else { "0" })?;
        Ok(true)
    }

    /// Returns the amount recorded so far, including overwritten entries.
    pub fn recorded(&self) -> Result<u64> {
        self.sum(&["entries", "overrun"])
    }

    /// Returns the bytes of an entry in the buffer, on average.
    pub fn bytes_per_entry(&self) -> Result<f64> {
        Ok(self.sum(&["bytes"])? as f64 / self.sum(&["entries"])? as f64)
    }

    /// Returns the sum of some counts over all CPUs.
    fn sum(&self, names: &[&str]) -> Result<u64> {
        let buffers = self.0.join("per_cpu");
        let context = || format!("cannot read the counts in {}", buffers.display());
        let mut sum = 0;
        for buffer in fs::read_dir(&buffers).with_context(context)? {
            let counts = fs::read_to_string(buffer.with_context(context)?.path().join("stats"));
            sum += counts.with_context(context)?.lines().filter_map(|line| count(line, names)).sum::<u64>();
        }
        Ok(sum)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.0.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {text} to {}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("the trace buffer {0} is left: {error}; remove it with rmdir {0}", self.0.display());
        }
    }
}

/// Parses the number in a line that has one of these names.
fn count(line: &str, names: &[&str]) -> Option<u64> {
    let (name, count) = line.split_once(": ")?;
    if names.contains(&name) { count.trim().parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_kept_and_those_overwritten() {
        let stats = "entries: 12\noverrun: 5\ncommit overrun: 1\nbytes: 400\nread events: 3\n";
        assert_eq!(stats.lines().filter_map(|line| count(line, &["entries", "overrun"])).sum::<u64>(), 17);
    }
}
