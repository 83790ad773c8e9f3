use serde::Deserialize;

use super::*;

/// Tables of the reference.
pub(crate) const VECTORS: &str = include_str!("vectors.json");

/// Cells by `<layer>_<phase>`, ns.
pub(crate) type Cells = BTreeMap<String, i64>;

#[derive(Deserialize)]
struct Vectors {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    /// Unit of the numbers, ns.
    unit_ns: i64,
    tables: Vec<Table>,
}

/// One table; what is 0 is left out.
#[derive(Deserialize)]
pub(crate) struct Table {
    /// Its name in its group.
    pub id: String,
    /// Totals, with what a table derives where that is known.
    pub total: Cells,
    /// Self times, with the Total row of the totals; empty where they are not known.
    #[serde(default, rename = "self")]
    pub self_times: Cells,
    /// Fields that are missing and not 0; empty where that is not known.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Tables by the name of their group.
pub(crate) fn read(text: &str) -> BTreeMap<String, Vec<Table>> {
    let vectors: Vectors = serde_json::from_str(text).unwrap();
    let scaled = |mut group: Group| {
        let cells = group.tables.iter_mut().flat_map(|table| [&mut table.total, &mut table.self_times]);
        cells.flat_map(BTreeMap::values_mut).for_each(|number| *number *= group.unit_ns);
        (group.name, group.tables)
    };
    vectors.groups.into_iter().map(scaled).collect()
}

fn tag(name: &str) -> Tag {
    name.parse().unwrap()
}

/// The totals that sections add up to: without what a table derives.
pub(crate) fn raw(cells: &Cells) -> Times {
    let mut times = Times::default();
    let derived = |name: &str| name.starts_with("LT_") || (name.ends_with("_PO") && name != "LA_PO");
    for (name, ns) in cells.iter().filter(|(name, _)| !derived(name)) {
        times.add(tag(name), *ns);
    }
    times
}

fn flat(table: &TimesByLayer) -> Cells {
    let cell = |(row, phase, ns): (TableRow, Phase, i64)| {
        let row = match row {
            TableRow::Layer(layer) => layer.code(),
            TableRow::Total => "LT",
        };
        (format!("{row}_{}", phase.code()), ns)
    };
    table.iter().map(cell).collect()
}

/// Where what was asked for and the rules differ: the reference's `--per-execution` writes the execution
/// times of the benchmark over those of the whole report, in its self times only.
const OVERWRITTEN: &str = "warmup_and_benchmark_per_execution";

#[test]
fn every_table_of_the_reference_follows_from_its_section_totals() {
    let mut seen = 0;
    for (group, tables) in read(VECTORS) {
        let is_app_phase = group.ends_with("by application phase");
        for mut table in tables {
            let times = raw(&table.total);
            let (total, self_times) = if is_app_phase {
                (times.app_phase_total(), times.app_phase_self_times())
            } else {
                (times.total(), times.self_times())
            };
            if table.id == OVERWRITTEN {
                for name in ["LR_PE", "LT_PE"] {
                    assert_eq!(table.self_times.insert(name.to_owned(), 100_000), Some(60_000));
                }
            }
            assert_eq!(flat(&total), table.total, "total of {group} / {}", table.id);
            assert_eq!(flat(&self_times), table.self_times, "self of {group} / {}", table.id);
            seen += 1;
        }
    }
    assert_eq!(seen, 121);
}

#[test]
fn helpers_and_application_phases_are_in_no_table() {
    let mut times = Times::default();
    for name in ["LU_PE", "LO_PE", "LA_PWU", "LA_PBM", "LR_PU"] {
        times.add(tag(name), 7);
    }
    assert_eq!(times.total(), TimesByLayer::new());
    assert_eq!(times.self_times(), TimesByLayer::new());
}

#[test]
fn an_overall_time_of_its_own_stays() {
    let mut times = Times::default();
    times.add(tag("LR_PO"), 5);
    times.add(tag("LR_PE"), 3);
    times.add(tag("LI_PE"), 2);
    let total = times.total();
    let overall = [TableRow::Layer(Layer::Runtime), TableRow::Layer(Layer::Ipc), TableRow::Total];
    assert_eq!(overall.map(|row| total.get(row, Phase::Overall)), [5, 2, 5]);
}

#[test]
fn without_an_execution_the_driver_stands_beside_the_cpu() {
    let mut times = Times::default();
    for (name, ns) in [("LC_PE", 100), ("LD_PC", 10), ("LI_PC", 15), ("LR_PE", 120), ("LR_PC", 20)] {
        times.add(tag(name), ns);
    }
    let overall = |times: &Times| {
        let own = times.self_times();
        [Layer::CpuFallback, Layer::Driver, Layer::Ipc, Layer::Runtime]
            .map(|layer| own.get(TableRow::Layer(layer), Phase::Overall))
    };
    assert_eq!(overall(&times), [100, 10, 5, 40]);
    times.add(tag("LD_PE"), 90);
    assert_eq!(overall(&times), [100, 0, -85, 125]);
}

#[test]
fn a_negative_total_never_makes_the_total_row() {
    let mut times = Times::default();
    times.add(tag("LR_PP"), -10);
    assert_eq!(flat(&times.total()), Cells::from([("LR_PO".to_owned(), -10), ("LR_PP".to_owned(), -10)]));
}
