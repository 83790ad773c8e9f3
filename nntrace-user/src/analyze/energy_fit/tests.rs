//! Runs that a known model priced, to be fitted by another one.

use nntrace_common::{power::Residency, time_count::TimeCount};
use proptest::prelude::*;

use super::*;
use crate::model::{
    Topology,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuResidency,
    rails::{RailKind, RailSource},
    run_facts::Clock,
    topology::{ClusterDescription, CpuDescription, Domain, IdleStateDescription},
};

const SECOND: u64 = 1_000_000_000;
const KHZ: [u32; 3] = [600_000, 1_200_000, 1_800_000];
const CLUSTERS: [(&str, &[u32]); 2] = [("little", &[0, 1, 2, 3]), ("big", &[4, 5])];

const TRUTH: &str = r#"
    unit = "mW"
    energy_unit = "uJ"
    [[cluster]]
    name = "little"
    opps = [
        { khz = 600000, cluster = 20, core = 45 },
        { khz = 1200000, cluster = 60, core = 130 },
        { khz = 1800000, cluster = 150, core = 310 },
    ]
    idle = [{ name = "WFI", cluster = 18, core = 9 }, { name = "sleep", cluster = 3, core = 1 }]
    [[cluster]]
    name = "big"
    opps = [
        { khz = 600000, cluster = 40, core = 120 },
        { khz = 1200000, cluster = 110, core = 420 },
        { khz = 1800000, cluster = 260, core = 1250 },
    ]
    idle = [{ name = "WFI", cluster = 30, core = 25 }, { name = "sleep", cluster = 4, core = 2 }]
    wakeup = { cluster = 30, core = 5 }
"#;

fn truth() -> EnergyModel {
    energy::parse("truth.toml", TRUTH).unwrap()
}

fn topology() -> Topology {
    let state = |(level, name): (u32, &str)| IdleStateDescription {
        name: name.into(),
        level,
        ..IdleStateDescription::default()
    };
    let idle_states: Vec<_> = [(0, "WFI"), (1, "sleep")].map(state).into();
    let cluster = |(name, cpus): (&str, &[u32])| ClusterDescription {
        name: name.into(),
        cpus: cpus.into(),
        domain: Domain::Both,
    };
    Topology {
        cpus: (0..6).map(|cpu| (cpu, CpuDescription { idle_states: idle_states.clone() })).collect(),
        clusters: CLUSTERS.map(cluster).into(),
        ..Topology::default()
    }
}

/// Residencies so far.
struct Host {
    cpus: Vec<CpuResidency>,
    clusters: Vec<ClusterResidency>,
}

impl Host {
    fn new() -> Self {
        Self {
            cpus: (0..6).map(CpuResidency::none).collect(),
            clusters: CLUSTERS.map(|_| ClusterResidency::default()).into(),
        }
    }

    /// Goes on by a second, in slices of this many ns each, by random numbers: each cluster has a frequency, and each CPU runs
    /// or is idle.
    fn go_on(&mut self, slices: u64, mut random: impl FnMut(u64) -> u64) {
        let ns = SECOND / slices;
        // Another load in each interval: how often CPUs run, and which frequencies there are.
        let (load, fastest) = (random(10), 1 + random(3));
        for _ in 0..slices {
            for ((_, cpus), cluster) in CLUSTERS.iter().zip(&mut self.clusters) {
                let khz = KHZ[random(fastest) as usize];
                let mut shallowest = None;
                let mut runs = false;
                for &cpu in *cpus {
                    let residency = &mut self.cpus[cpu as usize];
                    if random(10) < load {
                        add(residency.running.entry(Some(khz)).or_default(), ns);
                        *cluster.effective.entry(cpu).or_default().entry(Some(khz)).or_default() += ns;
                        runs = true;
                    } else {
                        let state = random(2) as u32;
                        stay(residency.idle.entry(state).or_insert_with(nothing), ns);
                        shallowest = Some(shallowest.map_or(state, |other: u32| other.min(state)));
                    }
                }
                if runs {
                    add(cluster.active.entry(Some(khz)).or_default(), ns);
                } else if let Some(state) = shallowest {
                    stay(cluster.idle.entry(state).or_insert_with(nothing), ns);
                }
            }
        }
    }

    fn joules(&self, model: &EnergyModel) -> f64 {
        price(model, &topology(), &self.cpus, &self.clusters).total
    }
}

fn nothing() -> Residency {
    Residency { ns: 0, hits: 0, min_ns: 0, max_ns: 0 }
}

fn add(sum: &mut TimeCount, ns: u64) {
    *sum = TimeCount::new(sum.ns + ns, sum.count + 1);
}

fn stay(residency: &mut Residency, ns: u64) {
    *residency = Residency { ns: residency.ns + ns, hits: residency.hits + 1, min_ns: 0, max_ns: ns };
}

fn rail(joules: f64, seconds: u64) -> RailRow {
    RailRow {
        source: RailSource::Hwmon,
        chip: "ina226".into(),
        name: "VDD_CPU".into(),
        kind: RailKind::Sampled,
        energy_nj: (joules * 1e9).round() as i64,
        begin_ns: SECOND + 1_000,
        end_ns: (seconds + 1) * SECOND + 1_000,
        readings: 10 * seconds,
        wraps: 0,
        gaps: 0,
        gap_ns: 0,
        failed: 0,
        failure: None,
    }
}

fn window(seconds: u64) -> Window {
    Window { clock: Clock::Monotonic, begin_ns: SECOND, end_ns: (seconds + 1) * SECOND }
}

/// Fits a model to a run of this many seconds by the truth, with noise (J) on the energy of each interval.
fn fitted(start: &EnergyModel, seconds: u64, noise: f64, seed: u64) -> Fit {
    let mut fit = EnergyFit::new(start.clone(), "VDD_CPU".into()).unwrap();
    let mut random = random(seed);
    let (mut host, mut added) = (Host::new(), 0.0);
    for second in 1..=seconds {
        host.go_on(50, &mut random);
        added += noise * (random(2_001) as f64 / 1_000.0 - 1.0);
        let rail = rail(host.joules(&truth()) + added, second);
        fit.add(&window(second), &rail, |model| price(model, &topology(), &host.cpus, &host.clusters));
    }
    fit.fit().unwrap()
}

/// Numbers below a bound, as good as random (splitmix64).
fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }
}

/// The truth with all powers at 0 but those that a fit keeps.
fn start(seed: u64) -> EnergyModel {
    let mut start = truth();
    for place in start.coefficients() {
        start.set_power(place, 0.0);
    }
    let kept = fitted(&start, 120, 0.0, seed).powers;
    for power in kept.iter().filter(|power| matches!(power.found, Found::Kept(_) | Found::NotMet)) {
        start.set_power(power.place, truth().power(power.place));
    }
    start
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn a_known_model_is_found_again(seed in any::<u64>()) {
        let start = start(seed);
        let fit = fitted(&start, 120, 0.0, seed);
        let kept = fit.powers.iter().filter(|power| matches!(power.found, Found::Kept(_))).count();
        // Of each cluster, the times of all its states and those of its CPUs' add up to the same. More need not be known.
        prop_assert!(kept <= 4, "{}", fit.comments());
        for place in truth().coefficients() {
            let (found, expected) = (fit.model.power(place), truth().power(place));
            prop_assert!((found - expected).abs() <= 1e-3 * expected.max(1.0), "{}", fit.comments());
        }
        prop_assert!(fit.r_squared.unwrap() > 0.999_999);
        prop_assert!(fit.rms_watts < 1e-5);
    }

    #[test]
    fn noise_gives_residuals_of_its_size_and_errors_that_cover_it(seed in any::<u64>()) {
        const NOISE: f64 = 5e-3;
        let fit = fitted(&start(seed), 120, NOISE, seed);
        // Even noise between two bounds, of which the free powers take up some.
        let expected = NOISE / 3.0_f64.sqrt() * ((120.0 - 16.0) / 120.0_f64).sqrt();
        prop_assert!((0.75..1.3).contains(&(fit.rms_watts / expected)), "{}", fit.comments());
        let mut far = 0;
        for power in &fit.powers {
            let Found::Value(Some(error)) = power.found else { continue };
            far += u32::from((fit.model.power(power.place) - truth().power(power.place)).abs() > 3.0 * error);
        }
        prop_assert!(far <= 2, "{}", fit.comments());
    }
}

#[test]
fn states_that_are_never_met_keep_their_powers_and_are_named() {
    let mut start = start(1);
    let unmet = start.clusters[0].p_states[0];
    start.clusters[0].p_states.push(unmet);
    start.clusters[0].p_states[3].khz = 2_000_000;
    start.clusters[0].p_states[3].power.core = 777.0;
    let fit = fitted(&start, 40, 0.0, 1);
    assert!((fit.model.clusters[0].p_states[3].power.core - 777.0).abs() < f64::EPSILON);
    assert!(fit.comments().contains("little 2000000 kHz core"), "{}", fit.comments());
    assert!(fit.comments().contains("kept: not met"), "{}", fit.comments());
    let text = fit.comments().to_string() + &fit.model();
    let again = energy::parse("fitted.toml", &text).unwrap();
    assert_eq!((again.unit, again.energy_unit), (fit.model.unit, fit.model.energy_unit));
    assert_eq!(again.clusters, fit.model.clusters);
    let csv = fit.residuals();
    assert_eq!((csv.lines().count(), fit.intervals.len()), (41, 40));
    assert!(csv.lines().nth(2).unwrap().starts_with("1000000000,1000000000,"), "{csv}");
}

#[test]
fn intervals_that_cannot_be_trusted_are_left_out() {
    let mut fit = EnergyFit::new(truth(), "VDD_CPU".into()).unwrap();
    let (mut host, mut random) = (Host::new(), random(3));
    let mut now = window(0);
    for second in 1..=12 {
        host.go_on(50, &mut random);
        now.end_ns += if second == 12 { SECOND / 10 } else { SECOND };
        let mut rail = rail(host.joules(&truth()), second);
        rail.gaps = u64::from(second >= 5);
        if second >= 8 {
            host.cpus[2].unknown_ns = SECOND / 5;
        }
        fit.add(&now, &rail, |model| price(model, &topology(), &host.cpus, &host.clusters));
    }
    let fit = fit.fit().unwrap();
    assert_eq!(fit.left_out, LeftOut { short: 1, gaps: 1, unknown: 1 });
    assert_eq!(fit.intervals.len(), 9);
    let expected = "left out: 1 too short, 1 with a gap of the rail, 1 with unknown or unpriced time";
    assert!(fit.comments().contains(expected), "{}", fit.comments());
}

#[test]
fn nothing_is_fitted_to_nothing() {
    let mut without_unit = truth();
    without_unit.unit = None;
    let error = EnergyFit::new(without_unit, "VDD_CPU".into()).err().unwrap();
    assert!(error.to_string().starts_with("truth.toml: the model states no unit"), "{error}");
    let mut fit = EnergyFit::new(truth(), "VDD_CPU".into()).unwrap();
    let mut host = Host::new();
    host.go_on(50, random(5));
    fit.add(&window(1), &rail(1.0, 1), |model| price(model, &topology(), &host.cpus, &host.clusters));
    let error = fit.fit().unwrap_err();
    assert_eq!(error, FitError::TooFew { usable: 1, all: 1, left_out: "none left out".into() });
}
