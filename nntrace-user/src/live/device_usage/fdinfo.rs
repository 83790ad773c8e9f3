//! Text of `/proc/PID/fdinfo/N` of an open device: `Documentation/gpu/drm-usage-stats.rst` of Linux.
//!
//! ```text
//! drm-driver:     panthor
//! drm-client-id:  3
//! drm-engine-panthor:     111110952750 ns
//! drm-cycles-panthor:     94439687187
//! drm-resident-memory:    19 MiB
//! ```

use std::collections::BTreeMap;

use crate::model::device_usage::{Client, EngineCounters};

/// Engines of a file at most.
const MOST_ENGINES: usize = 64;
/// Bytes of a name at most.
const LONGEST_NAME: usize = 64;

/// Sets a counter by its text.
type Set = fn(&mut EngineCounters, &str);
/// Keys of engines without their names, longer ones first.
const ENGINE_KEYS: [(&str, Set); 4] = [
    ("engine-capacity-", |engine, text| engine.capacity = text.parse().unwrap_or(0)),
    ("engine-", |engine, text| engine.ns = text.strip_suffix("ns").and_then(|ns| ns.trim().parse().ok())),
    ("total-cycles-", |engine, text| engine.total_cycles = text.parse().ok()),
    ("cycles-", |engine, text| engine.cycles = text.parse().ok()),
];
/// Keys of resident memory without the names of its regions: today's, and the one before.
const MEMORY_KEYS: [&str; 2] = ["resident-", "memory-"];

/// Open file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// `drm-client-id`.
    pub(super) id: u64,
    /// PCI address (`drm-pdev`); `None` for platform devices.
    pub(super) device: Option<String>,
    /// Counters.
    pub(super) client: Client,
}

/// Parses the text; `None` if it lacks the driver or the client. Unparsable lines are ignored.
pub(super) fn parse(text: &str) -> Option<Found> {
    let (mut driver, mut device, mut id) = (None, None, None);
    let mut engines: BTreeMap<String, EngineCounters> = BTreeMap::new();
    let mut memory: [Option<u64>; MEMORY_KEYS.len()] = [None; MEMORY_KEYS.len()];
    for (key, value) in text.lines().filter_map(|line| line.strip_prefix("drm-")?.split_once(':')) {
        let value = value.trim();
        match key {
            "driver" => driver = Some(value.chars().take(LONGEST_NAME).collect::<String>()),
            "pdev" => device = Some(value.chars().take(LONGEST_NAME).collect()),
            "client-id" => id = value.parse().ok(),
            _ => {
                let of_engine =
                    ENGINE_KEYS.iter().find_map(|(prefix, set)| Some((key.strip_prefix(prefix)?, set)));
                if let Some((name, set)) = of_engine {
                    let has_room = engines.len() < MOST_ENGINES || engines.contains_key(name);
                    if has_room && name.len() <= LONGEST_NAME {
                        set(engines.entry(name.to_owned()).or_default(), value);
                    }
                } else if let Some(which) = MEMORY_KEYS.iter().position(|prefix| key.starts_with(prefix)) {
                    let known = memory[which].unwrap_or(0);
                    memory[which] = bytes(value).map(|bytes| bytes.saturating_add(known)).or(memory[which]);
                }
            }
        }
    }
    engines.retain(|_, engine| engine.ns.is_some() || engine.cycles.is_some());
    let memory_bytes = memory[0].or(memory[1]);
    Some(Found { id: id?, device, client: Client { driver: driver?, engines, memory_bytes } })
}

/// Parses `19 MiB`.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let shift = match unit.trim() {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_of_boards_and_of_buses_write_is_read() {
        let panthor = "pos:\t0\nflags:\t02400002\nmnt_id:\t29\nino:\t491\ndrm-driver:\tpanthor\ndrm-client-id:\t3\n\
            drm-engine-panthor:\t111110952750 ns\ndrm-cycles-panthor:\t94439687187\n\
            drm-maxfreq-panthor:\t1000000000 Hz\ndrm-curfreq-panthor:\t1000000000 Hz\n\
            drm-total-memory:\t16480 KiB\ndrm-shared-memory:\t0\ndrm-active-memory:\t16200 KiB\n\
            drm-resident-memory:\t16480 KiB\ndrm-purgeable-memory:\t0\n";
        let found = parse(panthor).unwrap();
        assert_eq!((found.id, found.device.as_deref(), &*found.client.driver), (3, None, "panthor"));
        let counters = found.client.engines["panthor"];
        assert_eq!((counters.ns, counters.cycles), (Some(111_110_952_750), Some(94_439_687_187)));
        assert_eq!(found.client.memory_bytes, Some(16_480 << 10));
        let amdgpu = "drm-driver:\tamdgpu\ndrm-client-id:\t51\ndrm-pdev:\t0000:03:00.0\n\
            drm-memory-vram:\t1 MiB\ndrm-memory-gtt:\t3 KiB\ndrm-engine-gfx:\t4050 ns\n\
            drm-engine-capacity-gfx:\t2\ndrm-total-cycles-rcs:\t7655183225\ndrm-cycles-rcs:\t9\n";
        let found = parse(amdgpu).unwrap();
        assert_eq!(found.device.as_deref(), Some("0000:03:00.0"));
        assert_eq!(found.client.memory_bytes, Some((1 << 20) + (3 << 10)));
        assert_eq!(found.client.engines["gfx"].capacity, 2);
        assert_eq!(found.client.engines["rcs"].total_cycles, Some(7_655_183_225));
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert_eq!(parse("pos:\t0\nflags:\t02\n"), None);
        assert_eq!(parse("drm-driver:\tx\ndrm-client-id:\t-1\n"), None);
        let text = "drm-driver:\tx\ndrm-client-id:\t7\ndrm-engine-a:\t-5 ns\ndrm-engine-b:\t5\ndrm-engine-c:\t99999999999999999999 ns\n\
            drm-cycles-d:\tmany\ndrm-engine-capacity-e:\t3\ndrm-resident-m:\t5 GiB\ndrm-resident-n:\t99999999999999 MiB\ndrm-\ndrm-engine-f: 6 ns\n";
        let client = parse(text).unwrap().client;
        assert_eq!(client.engines.keys().collect::<Vec<_>>(), ["f"]);
        assert_eq!(client.memory_bytes, None);
    }

    #[test]
    fn engines_without_end_are_bounded() {
        let lines: Vec<String> = (0..10_000).map(|number| format!("drm-engine-{number}:\t5 ns\n")).collect();
        let lines = lines.concat();
        let text = format!("drm-driver:\tx\ndrm-client-id:\t7\n{lines}");
        assert_eq!(parse(&text).unwrap().client.engines.len(), MOST_ENGINES);
    }
}
