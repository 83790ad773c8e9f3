//! Resources that sections used, as rows.

use std::collections::BTreeMap;

use nntrace_common::layer::Tag;

use crate::{
    model::{
        causality::Site,
        energy::{self, PlacePrices, Share},
        findings::Findings,
        usage::{Place, Usage},
    },
    report::snapshot::{
        AccountUsageRow, EnergyRow, EnergyShareRow, FunctionUsageRow, IterationUsageRow, PhaseEnergyRow,
        PhaseUsageRow, UsageFrequencyRow, UsageRow, UsageTable, WakeRow,
    },
};

/// kHz x ns of one cycle.
const KHZ_NS_PER_CYCLE: u128 = 1_000_000;

impl Findings<'_> {
    /// `None` where no context switch was taken.
    pub(super) fn usage(&self) -> Option<UsageTable> {
        let tables = self.usage.as_ref()?;
        // Rows that add up to the whole: functions, and other time of each process.
        let all = tables.functions.values().chain(tables.others.values());
        let (shares, rest) = self.shares(&all.collect::<Vec<_>>());
        let (of_functions, of_others) = shares.split_at(tables.functions.len());
        let mut phases: BTreeMap<_, (Usage, Option<Share>)> = BTreeMap::new();
        let mut functions = Vec::new();
        for ((&(pid, tag, name), usage), share) in tables.functions.iter().zip(of_functions) {
            let phase = phases.entry((pid, false, Some(tag))).or_default();
            phase.0.merge(usage);
            phase.1 = sum(phase.1, *share);
            functions.push(FunctionUsageRow {
                site: self.site(Site { pid, tag, name }),
                usage: self.usage_row(usage, *share),
            });
        }
        for ((&pid, usage), share) in tables.others.iter().zip(of_others) {
            phases.insert((pid, true, None), (usage.clone(), *share));
        }
        let phases = phases.into_iter().map(|((pid, _, tag), (usage, share))| PhaseUsageRow {
            pid,
            comm: self.name_of_process(pid),
            layer: tag.map(Tag::layer),
            phase: tag.map(Tag::phase),
            usage: self.usage_row(&usage, share),
        });
        functions.sort_by(|a, b| {
            let key = |row: &FunctionUsageRow| (row.site.pid, row.site.layer, row.site.phase);
            key(a).cmp(&key(b)).then_with(|| a.site.name.cmp(&b.site.name))
        });
        Some(UsageTable {
            phases: phases.collect(),
            functions,
            iterations: self.iteration_usage(&tables.iterations),
            accounts: self.account_usage(&tables.accounts),
            rest: rest.map(share_row),
        })
    }

    /// Returns the name of a process: that of its main thread, where it has no mark.
    fn name_of_process(&self, pid: u32) -> String {
        let process = self.run.processes.get(&pid).map(|process| process.comm.clone());
        let of_thread = || self.run.thread_names?.get(pid, Some(pid));
        process.or_else(of_thread).unwrap_or_default()
    }

    fn iteration_usage(&self, iterations: &BTreeMap<u32, Usage>) -> Vec<IterationUsageRow> {
        let all = &self.marks.causality.iterations;
        let (shares, _) = self.shares(&iterations.values().collect::<Vec<_>>());
        let rows = iterations.iter().zip(shares).filter_map(|((&root, usage), share)| {
            let (pid, name) = all.root_key(root)?;
            Some(IterationUsageRow {
                pid,
                name: self.marks.names.text(name),
                iter: None,
                usage: self.usage_row(usage, share),
            })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (a.pid, &a.name).cmp(&(b.pid, &b.name)));
        rows
    }

    fn account_usage(&self, accounts: &BTreeMap<Option<u32>, Usage>) -> Vec<AccountUsageRow> {
        let known = &self.marks.causality.accounts;
        if !known.is_used() {
            return Vec::new();
        }
        let (shares, _) = self.shares(&accounts.values().collect::<Vec<_>>());
        let rows = accounts.iter().zip(shares).map(|((&account, usage), share)| AccountUsageRow {
            account: account.map(|account| known.names.text(account).to_owned()),
            usage: self.usage_row(usage, share),
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (a.account.is_none(), &a.account).cmp(&(b.account.is_none(), &b.account)));
        rows
    }

    /// Shares of the energy, and the rest; `None` without a model.
    fn shares(&self, all: &[&Usage]) -> (Vec<Option<Share>>, Option<Share>) {
        let Some(model) = self.run.energy_model else { return (vec![None; all.len()], None) };
        let energy = energy::price(model, self.topology, &self.sums.cpus, &self.clusters);
        let mut prices = PlacePrices::new(model, self.topology);
        let mut shares: Vec<Share> = all.iter().map(|usage| prices.share(usage)).collect();
        let rest = energy::divide(&energy, &mut shares);
        (shares.into_iter().map(Some).collect(), Some(rest))
    }

    fn usage_row(&self, usage: &Usage, share: Option<Share>) -> UsageRow {
        let mut cycles = 0;
        let mut frequencies: BTreeMap<(Option<usize>, Option<u32>), u64> = BTreeMap::new();
        for (&place, &ns) in &usage.ran {
            let (cluster, khz) = match place {
                Place::Clock { cluster, khz, .. } => (Some(cluster as usize), khz),
                Place::Unknown { cpu } | Place::NoClock { cpu } => (self.topology.clock_of(cpu), None),
            };
            cycles += u128::from(khz.unwrap_or(0)) * u128::from(ns);
            *frequencies.entry((cluster, khz)).or_default() += ns;
        }
        let frequencies = frequencies.into_iter().map(|((cluster, khz), ns)| UsageFrequencyRow {
            cluster: self.cluster_name(cluster),
            khz,
            ns,
        });
        UsageRow {
            on_cpu_ns: usage.on_cpu(),
            runnable_ns: usage.runnable,
            sleeping_ns: usage.sleeping,
            uninterruptible_ns: usage.uninterruptible,
            unknown_ns: usage.unknown,
            cycles: u64::try_from(cycles / KHZ_NS_PER_CYCLE).unwrap_or(u64::MAX),
            frequencies: frequencies.collect(),
            wakes: self.wakes(usage),
            energy: share.map(share_row),
        }
    }

    fn wakes(&self, usage: &Usage) -> Vec<WakeRow> {
        let mut rows: BTreeMap<(Option<usize>, Option<u32>), WakeRow> = BTreeMap::new();
        for (&(cpu, state), wakes) in &usage.wakes {
            let described = || self.topology.cpus.get(&cpu)?.idle_states.get(state? as usize);
            let cluster = self.topology.clock_of(cpu);
            let row = rows.entry((cluster, state)).or_insert_with(|| WakeRow {
                cluster: self.cluster_name(cluster),
                state: state.map(|state| self.topology.idle_name(cpu, state)),
                exit_latency_ns: described().and_then(|described| described.exit_latency_ns),
                ..WakeRow::default()
            });
            row.count += wakes.count;
            row.measured += wakes.measured;
            row.latency_ns += wakes.latency;
            row.max_latency_ns = row.max_latency_ns.max(wakes.longest);
        }
        rows.into_values().collect()
    }

    fn cluster_name(&self, number: Option<usize>) -> Option<String> {
        number.and_then(|number| self.topology.clusters.get(number)).map(|cluster| cluster.name.clone())
    }
}

impl EnergyRow {
    /// Adds the energy of the phases.
    pub(super) fn with_phases(self, usage: Option<&UsageTable>) -> Self {
        let Some(usage) = usage else { return self };
        let phases = usage.phases.iter().filter_map(|row| {
            Some(PhaseEnergyRow {
                pid: Some(row.pid),
                layer: row.layer,
                phase: row.phase,
                energy: row.usage.energy?,
            })
        });
        let rest = usage.rest.map(|energy| PhaseEnergyRow { pid: None, layer: None, phase: None, energy });
        Self { phases: phases.chain(rest).collect(), ..self }
    }
}

fn share_row(share: Share) -> EnergyShareRow {
    let Share { total, total_min, total_max } = share;
    EnergyShareRow { total, total_min, total_max }
}

fn sum(sum: Option<Share>, share: Option<Share>) -> Option<Share> {
    let share = share?;
    let sum = sum.unwrap_or_default();
    Some(Share {
        total: sum.total + share.total,
        total_min: sum.total_min + share.total_min,
        total_max: sum.total_max + share.total_max,
    })
}
