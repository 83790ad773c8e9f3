//! Clocks of devfreq devices, such as NPUs, GPUs and memory, as the kernel counts them: read at the window's ends.
//!
//! Source: `trans_stat_show` in `drivers/devfreq/devfreq.c`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::device_usage::{self, children};
use crate::model::device_clocks::{ClockSource, DeviceClock};

/// Reader of all clocks.
#[derive(Debug, Default)]
pub(crate) struct ClockReader {
    files: Vec<(String, PathBuf)>,
    first: BTreeMap<String, Counts>,
}

/// Counts of a clock since the device was added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Time by frequency, ms.
    times: BTreeMap<u64, u64>,
    transitions: u64,
}

impl ClockReader {
    /// Finds the clocks under the root of a sysfs; `None` where there are none.
    #[must_use]
    pub(crate) fn find(sysfs: &Path) -> Option<Self> {
        let named = children(&sysfs.join("class/devfreq")).into_iter().filter_map(|device| {
            let name = device.file_name()?.to_string_lossy().into_owned();
            Some((name, device.join("trans_stat")))
        });
        let files: Vec<_> = named.filter(|(_, path)| path.exists()).collect();
        (!files.is_empty()).then(|| Self { files, first: BTreeMap::new() })
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        self.first = self.counts();
    }

    /// Returns the clocks since then.
    #[must_use]
    pub(crate) fn read(&self) -> Vec<DeviceClock> {
        let rows = self.counts().into_iter().filter_map(|(device, now)| {
            let first = self.first.get(&device)?;
            // Counts that went back were reset.
            let since = |hz: &u64, ms: u64| ms.checked_sub(first.times.get(hz).copied().unwrap_or(0));
            let times =
                now.times.iter().map(|(hz, ms)| Some((Some(*hz), since(hz, *ms)?.checked_mul(1_000_000)?)));
            let times = times.collect::<Option<BTreeMap<_, _>>>()?;
            let transitions = now.transitions.checked_sub(first.transitions)?;
            Some(DeviceClock::new(device, ClockSource::Counter, transitions, times))
        });
        rows.collect()
    }

    fn counts(&self) -> BTreeMap<String, Counts> {
        let read = |path: &PathBuf| device_usage::read(path).and_then(|text| parse(&text));
        self.files.iter().filter_map(|(name, path)| Some((name.clone(), read(path)?))).collect()
    }
}

/// Parses `trans_stat`: a matrix of changes, with the time of each frequency (ms) in the last column. `None` where it is none, as
/// of a device without frequencies.
fn parse(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for line in text.lines() {
        if let Some(total) = line.trim().strip_prefix("Total transition :") {
            counts.transitions = total.trim().parse().ok()?;
            continue;
        }
        let line = line.trim_start().trim_start_matches('*');
        let Some((hz, rest)) = line.split_once(':') else { continue };
        if let (Ok(hz), Some(Ok(ms))) = (hz.trim().parse(), rest.split_whitespace().last().map(str::parse)) {
            counts.times.insert(hz, ms);
        }
    }
    (!counts.times.is_empty()).then_some(counts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FIRST: &str = "     From  :   To
           : 200000000 300000000 800000000   time(ms)
* 200000000:         0         2         1      1000
  300000000:         3         0         0       500
  800000000:         0         1         0         0
Total transition : 7
";

    #[test]
    fn times_are_those_since_the_first_reading() {
        let root = tempfile::tempdir().unwrap();
        let write = |text: &str| {
            let path = root.path().join("class/devfreq/fdab0000.npu/trans_stat");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(ClockReader::find(root.path()).is_none());
        write(FIRST);
        let mut reader = ClockReader::find(root.path()).unwrap();
        reader.begin();
        write(
            &FIRST
                .replace("      1000\n", "      1040\n")
                .replace("1         0         0\n", "2         0       160\n")
                .replace(": 7", ": 9"),
        );
        let clocks = reader.read();
        let [clock] = &clocks[..] else { panic!("{clocks:?}") };
        assert_eq!((&*clock.device, clock.transitions), ("fdab0000.npu", 2));
        let times: Vec<_> = clock.frequencies.iter().map(|time| (time.hz, time.ns)).collect();
        assert_eq!(times, [(Some(800_000_000), 160_000_000), (Some(200_000_000), 40_000_000)]);
        // A device that was added again has counted from 0 on.
        write(&FIRST.replace("1000", "10"));
        assert!(reader.read().is_empty());
    }

    #[test]
    fn what_is_no_matrix_is_no_clock() {
        for text in [
            "",
            "Not Supported.\n",
            "From : To\n",
            "  x: 1 2 3\nTotal transition : 4\n",
            "Total transition : -1\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
