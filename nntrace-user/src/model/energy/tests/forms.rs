//! Both forms of files: what is read, and what is said about bad ones.

use super::*;

fn error(file: &str, text: &str) -> String {
    parse(file, text).unwrap_err().to_string()
}

#[test]
fn the_grammar_of_idlestat() {
    let model = tc2();
    assert_eq!((model.unit, model.result_unit()), (None, ResultUnit::Relative));
    let [a, b] = &model.clusters[..] else { panic!("{model:?}") };
    assert_eq!((a.name.as_str(), &a.cpus, a.p_states.len()), ("A", &None, 8));
    assert_eq!(a.p_state(1_200_000).unwrap().power, Cost { cluster: 15_200.0, core: 6_997.0 });
    assert_eq!(b.p_states[0].khz, 350_000);
    assert_eq!((b.idle[1].name.as_str(), b.idle[1].power.cluster), ("cluster-sleep-l", 10.0));
    assert_eq!(a.wakeup, Cost::default());
    assert_eq!(
        model.notes,
        ["cluster B: at 350000 kHz the cluster costs 2967, at 400000 kHz less (2792); taken as it is",]
    );
    let with_wakeup = TC2.replace("clusterB:", "wakeup 210 5.5\n clusterB:");
    let model = parse("tc2.txt", &with_wakeup).unwrap();
    assert_eq!(model.clusters[0].wakeup, Cost { cluster: 210.0, core: 5.5 });
}

#[test]
fn a_frequency_in_mhz_is_all_that_round_to_it() {
    let model = tc2();
    assert_eq!(model.clusters[0].p_state(1_200_999).unwrap().khz, 1_200_000);
    assert!(model.clusters[0].p_state(1_201_000).is_none());
    let model = dynamiq();
    assert!(model.clusters[1].p_state(2_304_123).is_some());
    assert!(model.clusters[1].p_state(2_304_000).is_none());
}

#[test]
fn line_ends_comments_and_a_mark_of_byte_order_do_not_matter() {
    let odd = format!("\u{feff}\r\n # first\r\n{}", TC2.replace('\n', " # and so on\r\n"));
    assert_eq!(parse("tc2.txt", &odd).unwrap(), tc2());
}

#[test]
fn our_form() {
    let model = dynamiq();
    assert_eq!((model.unit, model.energy_unit), (Some(PowerUnit::MilliW), Some(EnergyUnit::MicroJ)));
    assert_eq!(model.result_unit(), ResultUnit::Joule);
    let little = &model.clusters[0];
    assert_eq!(little.cpus, Some(vec![0, 1, 2, 3]));
    assert_eq!(little.p_states[1].power, Cost { cluster: 30.5, core: 150.0 });
    assert_eq!(little.idle[1].entry, Cost { cluster: 0.0, core: 2.0 });
    assert_eq!(little.wakeup, Cost { cluster: 0.0, core: 0.5 });
    assert_eq!(model.clusters[3].p_states, []);
    assert_eq!(model.notes, [] as [&str; 0]);
}

#[test]
fn a_model_of_nothing_but_zeros_says_so() {
    let model = parse("m.toml", "[[cluster]]\nname = \"A\"\nopps = [{ mhz = 1 }]").unwrap();
    assert_eq!(model.notes, ["every power in it is 0: nothing will cost anything"]);
}

/// Error of the parser for `TC2` with one line replaced.
fn tc2_error(line: &str, by: &str) -> String {
    assert!(TC2.lines().any(|other| other == line), "{line}");
    let changed: Vec<&str> = TC2.lines().map(|other| if other == line { by } else { other }).collect();
    error("tc2.txt", &changed.join("\n"))
}

#[test]
fn errors_of_clusters_tell_where_and_what() {
    let first = "expected `clusters` and their number, such as `clusters 2`";
    for (by, what) in [
        ("clusters two", first),
        ("clusters 0", first),
        ("clusters", first),
        ("clusters 3", "expected as many clusters as announced: 3, but 2 came"),
        ("clusters 1", "expected as many clusters as announced: 1, but 2 came"),
    ] {
        assert_eq!(tc2_error("clusters 2", by), format!("tc2.txt:2: `{by}`: {what}"));
    }
    let cluster = "clusterA: 8 cap states 2 C states";
    assert_eq!(tc2_error("clusters 2", ""), format!("tc2.txt:4: `{cluster}`: {first}"));
    let header = "expected `clusterNAME: P cap states C C states`, P and C the numbers of rows";
    for (by, what) in [
        ("clusterA 8 cap states 2 C states", header),
        ("cluster: 8 cap states 2 C states", header),
        ("clusterA: -8 cap states 2 C states", header),
        ("clusterA: 8 cap 2 C states", header),
        ("clusterA: 9 cap states 2 C states", "expected as many P-states as announced: 9, but 8 came"),
        ("clusterA: 7 cap states 2 C states", "expected as many P-states as announced: 7, but 8 came"),
        ("clusterA: 8 cap states 3 C states", "expected as many C-states as announced: 3, but 2 came"),
    ] {
        assert_eq!(tc2_error(cluster, by), format!("tc2.txt:4: `{by}`: {what}"));
    }
    assert_eq!(
        tc2_error(cluster, "clusterB: 8 cap states 2 C states"),
        "tc2.txt:19: `clusterB: 8 cap states 2 C states`: expected a cluster of another name: line 4 has one"
    );
    assert_eq!(error("m", ""), "m:1: ``: expected `clusters` and their number, found nothing");
    assert_eq!(error("m", "# none\n\n"), "m:2: ``: expected `clusters` and their number, found nothing");
}

#[test]
fn errors_of_rows_tell_where_and_what() {
    let p_state = "expected a P-state: a frequency in MHz, power of the cluster, power of a core";
    for by in [
        "1200 15200",
        "1200 15200 -1",
        "1200 inf 1",
        "0 1 1",
        "4294968 1 1",
        "1200 1 1e12",
        "1 1 9999999999999",
    ] {
        assert_eq!(tc2_error("1200  15200  6997", by), format!("tc2.txt:7: `{by}`: {p_state}"));
    }
    assert_eq!(
        tc2_error("1200  15200  6997", "1100 1 1"),
        "tc2.txt:8: `1100  11426  5177`: expected each frequency once, 1100 MHz came before"
    );
    let c_state = "expected a C-state: a name, power of the cluster, power of a core";
    for (by, what) in [
        ("cluster sleep  25  0", c_state),
        ("cluster-sleep-b 25", c_state),
        ("WFI  25  0", "expected each C-state once, WFI came before"),
        ("wakeup 1", "expected `wakeup`, energy of a wake-up of the cluster, of a core"),
    ] {
        assert_eq!(tc2_error("cluster-sleep-b  25  0", by), format!("tc2.txt:17: `{by}`: {what}"));
    }
    assert_eq!(
        tc2_error("P-states:", "P states:"),
        "tc2.txt:5: `P states:`: expected `P-states:` or `C-states:`"
    );
    assert_eq!(
        error("m", &TC2.replace("clusterB:", "wakeup 1 1\nwakeup 1 1\nclusterB:")),
        "m:20: `wakeup 1 1`: expected one `wakeup` for each cluster, another came before"
    );
}

#[test]
fn errors_of_our_form_tell_where_and_what() {
    let amount = "expected a number from 0.0 to 1000000000000.0";
    for (from, to, expected) in [
        ("unit = \"mW\"", "unit = \"kW\"", "2: `unit = \"kW\"`: unknown variant `kW`, expected one of `W`, `mW`, `uW`".into()),
        ("unit = \"mW\"\n", "", "2: `energy_unit = \"uJ\"`: expected a `unit` of powers too: energies in joules do not add to powers without one".into()),
        ("energy_unit = \"uJ\"\n", "", "13: `{ name = \"cpu-sleep\", core = 1, entry = { core = 2 } },`: expected an `energy_unit` at the top, such as \"uJ\": here is an energy".into()),
        ("\"0-3\"", "\"0-x\"", "7: `cpus = \"0-x\"`: \"0-x\" is not a list of CPUs: expected numbers below 8192 and ranges of them, such as 0-3,6".into()),
        ("\"4-6\"", "\"0-3\"", "20: `cpus = \"0-3\"`: expected each list of CPUs once: line 7 has this one".into()),
        ("\"middle\"", "\"little\"", "19: `name = \"little\"`: expected each cluster once: line 6 has this one".into()),
        ("\"middle\"", "\"\"", "19: `name = \"\"`: expected the name of a cluster, found nothing in it".into()),
        ("name = \"middle\"\n", "", "18: `[[cluster]]`: missing field `name`".into()),
        ("core = 20 }", "core = -20 }", format!("9: `{{ mhz = 500, cluster = 10, core = -20 }},`: invalid value: floating point `-20.0`, {amount}")),
        ("core = 20 }", "core = nan }", format!("9: `{{ mhz = 500, cluster = 10, core = nan }},`: invalid value: floating point `NaN`, {amount}")),
        ("core = 20 }", "core = \"20\" }", format!("9: `{{ mhz = 500, cluster = 10, core = \"20\" }},`: invalid type: string \"20\", {amount}")),
        ("core = 20 }", "cores = 20 }", "9: `{ mhz = 500, cluster = 10, cores = 20 },`: unknown field `cores`, expected one of `khz`, `mhz`, `cluster`, `core`".into()),
        ("mhz = 500", "khz = 1, mhz = 500", "9: `{ khz = 1, mhz = 500, cluster = 10, core = 20 },`: expected one of `khz` and `mhz`".into()),
        ("mhz = 500", "mhz = 0", "9: `{ mhz = 0, cluster = 10, core = 20 },`: expected a frequency from 1 kHz to 4 THz".into()),
        ("mhz = 500", "khz = 1.8e6", "10: `{ mhz = 1_800, cluster = 30.5, core = 150 },`: expected each frequency once, 1800000 kHz came before".into()),
        ("\"cpu-sleep\", core = 1", "\"WFI\", core = 1", "14: `{ name = \"WFI\", core = 1, entry = { core = 2 } },`: expected each idle state once: line 13 has this one".into()),
        ("[[cluster]]", "[cluster]", "18: `[cluster]`: duplicate key".into()),
        ("wakeup = {", "wakeup = ", "16: `wakeup =  core = 0.5 }`: unexpected key or value, expected newline, `#`".into()),
    ] {
        assert!(DYNAMIQ.contains(from), "{from}");
        let replaced = if from == "[[cluster]]" { DYNAMIQ.replace(from, to) } else { DYNAMIQ.replacen(from, to, 1) };
        assert_eq!(error("m.toml", &replaced), format!("m.toml:{expected}"));
    }
    assert_eq!(error("m.toml", ""), "m.toml:1: ``: missing field `cluster`");
    assert_eq!(
        error("m.toml", "cluster = []"),
        "m.toml:1: `cluster = []`: expected at least one `[[cluster]]`"
    );
}
