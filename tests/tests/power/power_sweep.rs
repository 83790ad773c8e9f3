//! Random traces of power events, in any disorder, with windows and losses, against sweeps that look at every CPU at
//! every instant.
//!
//! `NNTRACE_CASES` changes the number of traces of each kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;
use nntrace_tests::{
    power::{
        EXIT, Event, Residency,
        cluster::ClusterResidency,
        recording::{Line, window},
    },
    recorded::for_policies,
    rows,
    trace::{self, Random, power_line},
};
use nntrace_user::{
    model::topology::{ClusterDescription, Domain, Topology},
    replay::{Options, TimeRange},
    report::snapshot::{CpuRow, Snapshot},
};

/// Returns the number of traces of a kind.
fn traces(unless_told: u64) -> u64 {
    std::env::var("NNTRACE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(unless_told)
}

/// Returns a host with 2 to 16 CPUs, with gaps in their numbers, in 1 to 3 clusters; some CPUs share a policy.
fn machine(random: &mut Random) -> Result<Topology> {
    let mut cpus: Vec<u32> = (0..2 + random.below(15) as u32).collect();
    if random.below(3) == 0 {
        cpus.iter_mut().skip(2).for_each(|cpu| *cpu *= 3);
    }
    let mut topology = Topology::default();
    for &cpu in &cpus {
        topology.cpus.entry(cpu).or_default();
    }
    let mut clusters: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let count = 1 + random.below(3);
    for &cpu in &cpus {
        clusters.entry(random.below(count)).or_default().push(cpu);
    }
    if random.below(2) == 0 {
        topology.set_policies(clusters.values().cloned().collect())?;
    }
    let clusters = clusters.into_iter().map(|(number, cpus)| ClusterDescription {
        name: number.to_string(),
        cpus,
        domain: Domain::Both,
    });
    topology.set_clusters(clusters.collect())?;
    Ok(topology)
}

/// Returns events of all CPUs except the silent ones, in order of time: with duplicates and strays, and several at
/// one instant.
fn events(random: &mut Random, topology: &Topology) -> Vec<(u64, u32, Event)> {
    let loud: Vec<u32> = topology.cpus.keys().copied().filter(|_| random.below(8) > 0).collect();
    let mut now = 7_000_000_000;
    let mut events = Vec::new();
    for _ in 0..random.below(300) {
        now += [0, 0, 1, 7, 1_000, 2_500_000][random.below(6) as usize];
        let Some(&cpu) = loud.get(random.below(loud.len().max(1) as u64) as usize) else { break };
        let event = match random.below(10) {
            0..4 => Event::Idle(random.below(4) as u32),
            4..7 => Event::Idle(EXIT),
            7 if random.below(4) == 0 => Event::Online(random.below(2) == 0),
            _ => Event::Frequency(100_000 * (1 + random.below(4) as u32)),
        };
        events.push((now, cpu, event));
    }
    // Within one instant, events of the lower CPU count first.
    events.sort_by_key(|&(at, cpu, _)| (at, cpu));
    events
}

/// Shuffles the lines, except that those of each CPU keep their order.
fn shuffled(lines: &[(u32, String)], random: &mut Random) -> Vec<String> {
    let mut keyed: Vec<(u64, usize)> = Vec::new();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, (cpu, _)) in lines.iter().enumerate() {
        let key = last.entry(*cpu).or_default();
        *key += random.below(50);
        keyed.push((*key, number));
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, number)| lines[number].1.clone()).collect()
}

#[test]
fn streaming_is_the_sweep_and_every_row_tiles_the_window() -> Result<()> {
    let (mut compared, traces) = (0, traces(300));
    for seed in 0..traces {
        let mut random = Random::new(seed);
        let topology = machine(&mut random)?;
        let events = events(&mut random, &topology);
        let (Some(&(begin, ..)), Some(&(end, ..))) = (events.first(), events.last()) else { continue };
        if events.iter().all(|(.., event)| *event == Event::Online(true)) {
            // The CPU was not offline before: that is no power event.
            continue;
        }
        let lines: Vec<(u32, String)> =
            events.iter().map(|&(at, cpu, event)| (cpu, power_line(at, cpu, event))).collect();
        // Events of one instant and of different CPUs have no order.
        let shuffled = shuffled(&lines, &mut random).into_iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        });
        let options = Options { topology: Some(topology.clone()), ..Options::default() };
        let snapshot = trace::replay_with(shuffled, &options)?;
        let plain = lines.iter().fold(String::new(), |text, (_, line)| text + line + "\n");
        assert_eq!(trace::replay_with(plain, &options)?, snapshot, "shuffling changes nothing, seed {seed}");

        rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, end - begin);
        assert_eq!(snapshot.cpus.len(), topology.cpus.len());
        let events = for_policies(&events, &topology);
        for row in &snapshot.cpus {
            let of_cpu = events.iter().filter(|(_, cpu, _)| *cpu == row.cpu);
            let of_cpu: Vec<(u64, Event)> = of_cpu.map(|&(at, _, event)| (at, event)).collect();
            rows::assert_cpu(row, &Residency::sweep(&of_cpu, begin, end, None));
        }
        for row in &snapshot.clusters {
            let swept = ClusterResidency::sweep(&row.cpus, &events, begin, end, &BTreeMap::new());
            rows::assert_cluster(row, &snapshot.cpus, &swept);
        }
        compared += 1;
    }
    assert!(compared > traces / 2, "{compared} traces had any event");
    Ok(())
}

/// Notation of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// No loss.
    None,
    /// Gaps, with or without a number.
    Gaps,
    /// Overwritten rings: the numbers in the header alone.
    Header,
    /// Overwritten rings, with a notice at the begin of each, too.
    Started,
    /// Overwritten rings, and gaps after their begin.
    Both,
}

/// Returns a recording of power events, with other lines between them.
fn recording(random: &mut Random, topology: &Topology, notation: Notation) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, cpu, event) in events(random, topology) {
        lines.push(Line::of(at, cpu, event));
        if random.below(10) == 0 {
            lines.push(Line { at, on: cpu, event: None, after_loss: false });
        }
    }
    // Within one instant, events of the lower CPU count first.
    lines.sort_by_key(|line| (line.at, line.event.map_or(line.on, |(cpu, _)| cpu)));
    let mut begun = BTreeSet::new();
    for line in &mut lines {
        let is_first = begun.insert(line.on);
        line.after_loss = match notation {
            Notation::None => false,
            Notation::Gaps => random.below(12) == 0,
            Notation::Header | Notation::Started => is_first,
            Notation::Both => is_first || random.below(12) == 0,
        };
    }
    lines
}

/// Formats a recording, with lines of one instant in random order; returns the text, the number of lost events, and
/// whether that is exact.
fn written(lines: &[Line], notation: Notation, random: &mut Random) -> (String, u64, bool) {
    let (mut of_gaps, mut is_exact) = (0, true);
    let mut begun = BTreeSet::new();
    let mut keys: BTreeMap<u64, u64> = BTreeMap::new();
    let mut texts = Vec::new();
    for line in lines {
        let key = *keys.entry(line.at).or_insert_with(|| random.below(1 << 30));
        let is_first = begun.insert(line.on);
        let marks_begin =
            is_first && matches!(notation, Notation::Header | Notation::Started | Notation::Both);
        let notice = match (line.after_loss, random.below(4)) {
            (false, _) => String::new(),
            _ if marks_begin && notation != Notation::Header => {
                // The ring of the first line has no notice.
                if begun.len() > 1 {
                    format!("##### CPU {} buffer started ####\n", line.on)
                } else {
                    String::new()
                }
            }
            _ if marks_begin => String::new(),
            (true, form) => {
                let events = 1 + random.below(50);
                of_gaps += if form < 2 { events } else { 1 };
                is_exact &= form < 2;
                match form {
                    0 => format!("CPU:{} [LOST {events} EVENTS]\n", line.on),
                    1 => format!("CPU:{} [{events} EVENTS DROPPED]\n", line.on),
                    2 => format!("CPU:{} [LOST EVENTS]\n", line.on),
                    _ => format!("CPU:{} [EVENTS DROPPED]\n", line.on),
                }
            }
        };
        texts.push((key, notice + &line.text() + "\n"));
    }
    texts.sort_by_key(|(key, _)| *key);
    let mut text = String::from("# tracer: nop\n#\n");
    if matches!(notation, Notation::Header | Notation::Started | Notation::Both) {
        let overwritten = 1 + random.below(1_000);
        let left = lines.len() as u64;
        let _ = writeln!(text, "# entries-in-buffer/entries-written: {left}/{}   #P:16", left + overwritten);
        is_exact = overwritten >= of_gaps;
        of_gaps = of_gaps.max(overwritten);
    }
    text.extend(texts.into_iter().map(|(_, text)| text));
    (text, of_gaps, is_exact)
}

/// Checks every row of a snapshot of a window against the sweeps.
fn assert_swept(snapshot: &Snapshot, lines: &[Line], topology: &Topology, begin: u64, end: u64) {
    assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (begin, end));
    rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, end - begin);
    let events = for_policies(&window(lines, begin, end), topology);
    for row in &snapshot.cpus {
        let of_cpu = events.iter().filter(|(_, cpu, _)| *cpu == row.cpu);
        let of_cpu: Vec<(u64, Event)> = of_cpu.map(|&(at, _, event)| (at, event)).collect();
        rows::assert_cpu(row, &Residency::sweep(&of_cpu, begin, end, None));
    }
    for row in &snapshot.clusters {
        let swept = ClusterResidency::sweep(&row.cpus, &events, begin, end, &BTreeMap::new());
        rows::assert_cluster(row, &snapshot.cpus, &swept);
    }
}

/// Whether a recording has any power event.
fn has_power(lines: &[Line], begin: u64, end: u64) -> bool {
    let says = |&(_, _, event): &(u64, u32, Event)| !matches!(event, Event::Online(true) | Event::Lost);
    window(lines, begin, end).iter().any(says)
}

#[test]
fn windows_of_traces_in_no_order_are_the_sweep() -> Result<()> {
    let traces = traces(150);
    let [mut compared, mut disorder_before, mut known_from_behind] = [0_u64; 3];
    for seed in 0..traces {
        let mut random = Random::new(10_000 + seed);
        let topology = machine(&mut random)?;
        let notation = if seed % 3 == 0 { Notation::Gaps } else { Notation::None };
        let mut lines = recording(&mut random, &topology, notation);
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { continue };
        let length = last.at - first.at + 1;
        let (one, other) = (first.at + random.below(length), first.at + random.below(length));
        let (begin, end) = (one.min(other), one.max(other));
        if !has_power(&lines, begin, end) {
            continue;
        }
        let mut options = Options { topology: Some(topology.clone()), ..Options::default() };
        let (mut text, ..) = written(&lines, notation, &mut random);
        if seed % 2 == 0 {
            options.range = Some(TimeRange { begin, end });
        } else {
            // On a CPU of its own, which shows nothing about the others.
            for (at, word) in [(begin, "nntrace_start"), (end, "nntrace_end")] {
                let (seconds, fraction) = (at / 1_000_000_000, at % 1_000_000_000);
                let _ = writeln!(text, "a-1 [999] .... {seconds}.{fraction:09}: tracing_mark_write: {word}");
            }
        }
        let snapshot = trace::replay_with(&text, &options)?;
        let known: Vec<u32> = topology.cpus.keys().copied().collect();
        let snapshot = Snapshot {
            cpus: snapshot.cpus.into_iter().filter(|row| known.contains(&row.cpu)).collect(),
            ..snapshot
        };
        assert_swept(&snapshot, &lines, &topology, begin, end);
        compared += 1;

        let order = |line: &Line| text.find(&line.text());
        let early = lines.iter().filter(|line| line.at < begin);
        disorder_before += u64::from(!early.clone().map(order).is_sorted() && early.count() > 1);
        let is_known = |cpu: u32| snapshot.cpus.iter().any(|row| row.cpu == cpu && row.unknown_ns == 0);
        lines.retain(|line| line.event.is_some_and(|(_, event)| !matches!(event, Event::Frequency(_))));
        let is_silent = |cpu: u32| {
            !lines.iter().any(|line| line.at <= end && line.event.is_some_and(|(of, _)| of == cpu))
        };
        known_from_behind += u64::from(known.iter().any(|&cpu| is_known(cpu) && is_silent(cpu)));
    }
    assert!(compared > traces / 2, "{compared} traces had any event");
    // The traces have these properties.
    assert!(disorder_before > traces / 4, "{disorder_before} of {traces} are out of order before the window");
    assert!(
        known_from_behind > traces / 20,
        "{known_from_behind} of {traces} have a CPU that is known from behind it"
    );
    Ok(())
}

#[test]
fn losses_in_every_notation_are_the_sweep() -> Result<()> {
    let traces = traces(150);
    let (mut compared, mut unknown) = (0, 0);
    for seed in 0..traces {
        let mut random = Random::new(20_000 + seed);
        let topology = machine(&mut random)?;
        let notations = [Notation::Gaps, Notation::Header, Notation::Started, Notation::Both];
        let notation = notations[seed as usize % notations.len()];
        let lines = recording(&mut random, &topology, notation);
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { continue };
        let (begin, end) = (first.at, last.at);
        if !has_power(&lines, begin, end) {
            continue;
        }
        let options = Options { topology: Some(topology.clone()), ..Options::default() };
        let (text, lost, is_exact) = written(&lines, notation, &mut random);
        let snapshot = trace::replay_with(&text, &options)?;
        assert_swept(&snapshot, &lines, &topology, begin, end);
        let loss = &snapshot.loss;
        assert_eq!((loss.records_dropped, loss.at_least), (lost, !is_exact), "{notation:?}, seed {seed}");
        assert_eq!(loss.records_produced, loss.records_drained + lost);
        compared += 1;
        let is_part = |row: &&CpuRow| row.unknown_ns > 0 && row.unknown_ns < end - begin;
        unknown += u64::from(snapshot.cpus.iter().find(is_part).is_some());
    }
    assert!(compared > traces / 2, "{compared} traces had any event");
    assert!(unknown > traces / 2, "{unknown} of {traces} have a CPU that is unknown for a part");
    Ok(())
}
