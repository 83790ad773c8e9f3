//! Our own form of model files, in TOML: units, CPUs, energies of entries.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::{Range, RangeInclusive},
};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use toml::Spanned;

use super::{
    ModelError,
    model::{AMOUNTS, ClusterModel, Cost, EnergyModel, EnergyUnit, IdleState, PState, PowerUnit},
};
use crate::model::cpu_list;

/// Clusters of a model at most. A list of a few characters names thousands of CPUs.
const MOST_CLUSTERS: usize = 1_024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    unit: Option<PowerUnit>,
    energy_unit: Option<Spanned<EnergyUnit>>,
    cluster: Vec<Spanned<ClusterForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterForm {
    name: Spanned<String>,
    cpus: Option<Spanned<CpuList>>,
    #[serde(default)]
    opps: Vec<Spanned<OppForm>>,
    #[serde(default)]
    idle: Vec<IdleForm>,
    wakeup: Option<Spanned<CostForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OppForm {
    khz: Option<Amount>,
    mhz: Option<Amount>,
    #[serde(default)]
    cluster: Amount,
    #[serde(default)]
    core: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleForm {
    name: Spanned<String>,
    #[serde(default)]
    cluster: Amount,
    #[serde(default)]
    core: Amount,
    entry: Option<Spanned<CostForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostForm {
    #[serde(default)]
    cluster: Amount,
    #[serde(default)]
    core: Amount,
}

/// A number in [`AMOUNTS`].
#[derive(Clone, Copy, Default)]
struct Amount(f64);

/// CPUs of a list such as `0-3,6`.
struct CpuList(Vec<RangeInclusive<u32>>);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from {:?} to {:?}", AMOUNTS.start(), AMOUNTS.end())
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Amount, E> {
                self.visit_f64(value as f64)
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Amount, E> {
                let unexpected = serde::de::Unexpected::Float(value);
                AMOUNTS
                    .contains(&value)
                    .then_some(Amount(value))
                    .ok_or_else(|| E::invalid_value(unexpected, &self))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        cpu_list::ranges(&String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

impl From<CostForm> for Cost {
    fn from(form: CostForm) -> Self {
        Self { cluster: form.cluster.0, core: form.core.0 }
    }
}

/// The model in a text.
///
/// # Errors
/// When it is no TOML, or no model.
pub(super) fn parse(file: &str, text: &str) -> Result<EnergyModel, ModelError> {
    let reader = Reader { file, text };
    let form: Form = toml::from_str(text).map_err(|error| {
        // An error without a place concerns the whole.
        reader.error(error.span().unwrap_or(0..0), sentence(error.message()))
    })?;
    reader.model(form)
}

/// The message of the parser in one line.
fn sentence(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn error(&self, span: Range<usize>, what: impl Into<String>) -> ModelError {
        ModelError::at(self.file, self.text, self.line(&span), what)
    }

    /// The line, from 1, in which something begins.
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(span.start);
        before.filter(|&&byte| byte == b'\n').count() + 1
    }

    fn model(&self, form: Form) -> Result<EnergyModel, ModelError> {
        if let (None, Some(unit)) = (form.unit, &form.energy_unit) {
            let what = "expected a `unit` of powers too: energies in joules do not add to powers without one";
            return Err(self.error(unit.span(), what));
        }
        if form.cluster.is_empty() {
            return Err(self.error(0..0, "expected at least one `[[cluster]]`"));
        }
        if let Some(cluster) = form.cluster.get(MOST_CLUSTERS) {
            return Err(self.error(cluster.span(), format!("expected {MOST_CLUSTERS} clusters at most")));
        }
        let lacks_unit = form.unit.is_some() && form.energy_unit.is_none();
        let energy = |cost: Option<Spanned<CostForm>>| match cost {
            Some(cost) if lacks_unit => {
                let what = "expected an `energy_unit` at the top, such as \"uJ\": here is an energy";
                Err(self.error(cost.span(), what))
            }
            cost => Ok(cost.map_or_else(Cost::default, |cost| cost.into_inner().into())),
        };
        let mut clusters: Vec<ClusterModel> = Vec::new();
        let (mut names, mut groups) = (BTreeMap::new(), BTreeMap::new());
        for cluster in form.cluster {
            let cluster = cluster.into_inner();
            if let Some(cpus) = &cluster.cpus {
                self.once(&mut groups, cpu_list::expand(&cpus.get_ref().0), cpus.span(), "list of CPUs")?;
            }
            let mut states = BTreeMap::new();
            let mut idle = Vec::new();
            for state in cluster.idle {
                idle.push(IdleState {
                    name: self.name(&mut states, state.name, "idle state")?,
                    power: CostForm { cluster: state.cluster, core: state.core }.into(),
                    entry: energy(state.entry)?,
                });
            }
            clusters.push(ClusterModel {
                name: self.name(&mut names, cluster.name, "cluster")?,
                cpus: cluster.cpus.map(|cpus| cpu_list::expand(&cpus.into_inner().0)),
                p_states: self.p_states(cluster.opps)?,
                idle,
                wakeup: energy(cluster.wakeup)?,
            });
        }
        let energy_unit = form.energy_unit.map(Spanned::into_inner);
        let file = self.file.into();
        Ok(EnergyModel { file, unit: form.unit, energy_unit, clusters, notes: Vec::new() }.settle())
    }

    /// A name that is not empty, and that none before had.
    fn name(
        &self,
        lines: &mut BTreeMap<String, usize>,
        name: Spanned<String>,
        of: &str,
    ) -> Result<String, ModelError> {
        let span = name.span();
        let name = name.into_inner();
        if name.is_empty() {
            return Err(self.error(span, format!("expected the name of a {of}, found nothing in it")));
        }
        self.once(lines, name.clone(), span, of)?;
        Ok(name)
    }

    /// Nothing before was this, too; `lines` are those of all before.
    fn once<K: Ord>(
        &self,
        lines: &mut BTreeMap<K, usize>,
        key: K,
        span: Range<usize>,
        what: &str,
    ) -> Result<(), ModelError> {
        match lines.insert(key, self.line(&span)) {
            Some(line) => {
                Err(self.error(span, format!("expected each {what} once: line {line} has this one")))
            }
            None => Ok(()),
        }
    }

    fn p_states(&self, opps: Vec<Spanned<OppForm>>) -> Result<Vec<PState>, ModelError> {
        let mut states: Vec<PState> = Vec::new();
        let mut frequencies = BTreeSet::new();
        for opp in opps {
            let span = opp.span();
            let opp = opp.into_inner();
            let (khz, in_mhz) = match (opp.khz, opp.mhz) {
                (Some(Amount(khz)), None) => (khz, false),
                (None, Some(Amount(mhz))) => (mhz * 1e3, mhz.fract() == 0.0),
                _ => return Err(self.error(span, "expected one of `khz` and `mhz`")),
            };
            let khz = khz.round();
            if !(1.0..=f64::from(u32::MAX)).contains(&khz) {
                return Err(self.error(span, "expected a frequency from 1 kHz to 4 THz"));
            }
            #[expect(clippy::cast_sign_loss, reason = "it is at least 1")]
            let khz = khz as u32;
            if !frequencies.insert(khz) {
                return Err(self.error(span, format!("expected each frequency once, {khz} kHz came before")));
            }
            let power = CostForm { cluster: opp.cluster, core: opp.core }.into();
            states.push(PState { khz, in_mhz, power });
        }
        Ok(states)
    }
}
