//! Speeds by name, as the command line gives them.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use nntrace_common::layer::{Layer, Phase, Tag};

use super::predict::Speeds;
use crate::analyze::run_graph::{
    component::{self, Component, Components, UNMARKED_NAME, layer_phase},
    graph::UNMARKED,
};

/// Speeds that a prediction says anything about.
const SPEEDS: RangeInclusive<f64> = 0.001..=1_000.0;

/// Speed of what has a name: a layer, a layer and phase, or a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    name: String,
    factor: f64,
}

impl FromStr for Speed {
    type Err = String;

    /// Parses `driver=2x`, `LD_PE=1.5`, `LD_PE:conv=inf`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a name and a speed from 0.001x to 1000x or inf, such as driver=2x, LD_PE=1.5x or conv=inf, and not {text}"
            )
        };
        let (name, factor) =
            text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(expected)?;
        let number = factor.strip_suffix(['x', 'X']).unwrap_or(factor);
        let is_possible = |factor: &f64| SPEEDS.contains(factor) || *factor == f64::INFINITY;
        let factor = number.parse::<f64>().ok().filter(is_possible).ok_or_else(expected)?;
        Ok(Self { name: name.into(), factor })
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, factor(self.factor))
    }
}

/// Returns a factor in words.
pub(super) fn factor(factor: f64) -> String {
    if factor.is_infinite() { "free".into() } else { format!("{factor}x") }
}

/// Meaning of a name, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    Layer(Layer),
    LayerPhase(Tag),
    Component(u32),
}

impl Meaning {
    fn has(self, number: u32, component: &Component) -> bool {
        match self {
            Self::Layer(layer) => component.tag.layer() == layer,
            Self::LayerPhase(tag) => component.tag == tag,
            Self::Component(only) => number == only,
        }
    }

    fn name(self, components: &Components) -> String {
        match self {
            Self::Layer(layer) => layer.code().into(),
            Self::LayerPhase(tag) => layer_phase(tag),
            Self::Component(number) => components.name(number),
        }
    }
}

/// Speeds with their meanings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Selection {
    /// Numbers and speeds of components.
    pub(super) components: Vec<(u32, f64)>,
    /// Full names of what was chosen, with its speed and the number of its components.
    pub(super) names: Vec<(String, f64, usize)>,
}

impl Selection {
    /// Finds what speeds are of. Of several that are of one component, the narrowest counts, of equal ones the last.
    ///
    /// # Errors
    /// With the reason, when a name means nothing in the run, or several things.
    pub(super) fn new(speeds: &[Speed], components: &Components) -> Result<Self, String> {
        let mut meanings = Vec::new();
        for speed in speeds {
            meanings.push((meaning(&speed.name, components)?, speed.factor));
        }
        let names = meanings.iter().map(|(meaning, factor)| {
            let count =
                components.iter().filter(|(number, component)| meaning.has(*number, component)).count();
            (meaning.name(components), *factor, count.max(1))
        });
        let names = names.collect();
        // Stable: the last of equal ones stays behind the others.
        meanings.sort_by_key(|(meaning, _)| rank(*meaning));
        let of_one = |number: u32, has: &dyn Fn(Meaning) -> bool| {
            let factor = meanings.iter().rev().find(|(meaning, _)| has(*meaning))?.1;
            Some((number, factor))
        };
        let marked = components
            .iter()
            .filter_map(|(number, component)| of_one(number, &|it| it.has(number, component)));
        let unmarked = of_one(UNMARKED, &|meaning| meaning == Meaning::Component(UNMARKED));
        Ok(Self { components: marked.chain(unmarked).collect(), names })
    }

    /// Returns the speeds of all components.
    pub(super) fn speeds(&self, components: &Components) -> Speeds {
        self.components
            .iter()
            .fold(Speeds::recorded(components.len()), |all, (number, factor)| all.with(*number, *factor))
    }

    /// Returns the same with one speed for all that was chosen.
    pub(super) fn at(&self, factor: f64, components: &Components) -> Speeds {
        self.components
            .iter()
            .fold(Speeds::recorded(components.len()), |all, (number, _)| all.with(*number, factor))
    }
}

const fn rank(meaning: Meaning) -> u8 {
    match meaning {
        Meaning::Layer(_) => 0,
        Meaning::LayerPhase(_) => 1,
        Meaning::Component(_) => 2,
    }
}

/// Returns the meaning of a name.
fn meaning(name: &str, components: &Components) -> Result<Meaning, String> {
    let is = |word: &str| word.eq_ignore_ascii_case(name);
    let mut found: Vec<Meaning> = Vec::new();
    for layer in Layer::ALL.into_iter().filter(|layer| is(layer.code()) || is(layer.name())) {
        found.push(Meaning::Layer(layer));
    }
    for tag in tags() {
        if is(&layer_phase(tag)) {
            found.push(Meaning::LayerPhase(tag));
        }
    }
    found.retain(|meaning| components.iter().any(|(number, component)| meaning.has(number, component)));
    let of_name = components.iter().filter(|(_, it)| it.function == name || it.to_string() == name);
    found.extend(of_name.map(|(number, _)| Meaning::Component(number)));
    if is(UNMARKED_NAME) {
        found.push(Meaning::Component(UNMARKED));
    }
    found.sort_unstable();
    found.dedup_by_key(|meaning| meaning.name(components));
    match found[..] {
        [] => Err(not_found(name, components)),
        [one] => Ok(one),
        _ => {
            let names: Vec<String> = found.iter().map(|meaning| described(*meaning, components)).collect();
            Err(format!("{name} may be any of {}: name one of them", names.join(", ")))
        }
    }
}

/// Returns what a meaning is, where its name may be that of something else.
fn described(meaning: Meaning, components: &Components) -> String {
    let name = meaning.name(components);
    if let Meaning::Layer(layer) = meaning { format!("{name} (layer {})", layer.name()) } else { name }
}

fn tags() -> impl Iterator<Item = Tag> {
    Layer::ALL.into_iter().flat_map(|layer| Phase::ALL.map(|phase| Tag::new(layer, phase)))
}

fn not_found(name: &str, components: &Components) -> String {
    let mut names: Vec<String> = components.iter().map(|(_, component)| component.function.clone()).collect();
    names.extend(components.iter().flat_map(|(_, component)| {
        [component.tag.layer().code().into(), component.tag.layer().name().into(), layer_phase(component.tag)]
    }));
    component::not_found(name, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components() -> Components {
        let mut components = Components::default();
        let functions = [
            (Layer::Driver, Phase::Execution, "conv"),
            (Layer::CpuFallback, Phase::Execution, "conv"),
            (Layer::Driver, Phase::Execution, "pool"),
            (Layer::Runtime, Phase::Execution, "driver"),
            (Layer::Runtime, Phase::Compilation, "compile"),
        ];
        for (number, (layer, phase, function)) in (0..).zip(functions) {
            let _ = components.number(Tag::new(layer, phase), number, || function.into());
        }
        components
    }

    fn selected(texts: &[&str]) -> Result<Vec<(u32, f64)>, String> {
        let speeds: Vec<Speed> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Selection::new(&speeds, &components()).map(|selection| selection.components)
    }

    #[test]
    fn speeds_are_parsed() {
        for (text, factor) in
            [("driver=2x", 2.0), ("LD_PE=1.5", 1.5), ("a=b=0.5X", 0.5), ("conv=inf", f64::INFINITY)]
        {
            assert_eq!(text.parse::<Speed>().unwrap().factor.to_bits(), f64::to_bits(factor), "{text}");
        }
        for wrong in [
            "driver",
            "=2x",
            "driver=",
            "driver=0x",
            "driver=-1",
            "driver=fast",
            "driver=NaN",
            "a=1e-9x",
            "a=1001",
            "a=-inf",
        ] {
            assert!(wrong.parse::<Speed>().unwrap_err().contains("such as driver=2x"), "{wrong}");
        }
    }

    #[test]
    fn names_are_layers_phases_and_functions() {
        assert_eq!(selected(&["LD=2x"]).unwrap(), [(1, 2.0), (3, 2.0)]);
        assert_eq!(selected(&["ld_pe=2x"]).unwrap(), [(1, 2.0), (3, 2.0)]);
        assert_eq!(selected(&["LR=3"]).unwrap(), [(4, 3.0), (5, 3.0)]);
        assert_eq!(selected(&["pool=2"]).unwrap(), [(3, 2.0)]);
        assert_eq!(selected(&["LC_PE:conv=2"]).unwrap(), [(2, 2.0)]);
        assert_eq!(selected(&["unmarked=2"]).unwrap(), [(0, 2.0)]);
        // The narrowest counts, then the last.
        assert_eq!(selected(&["pool=4", "LD=2", "LD=3"]).unwrap(), [(1, 3.0), (3, 4.0)]);
    }

    #[test]
    fn names_of_several_things_are_refused_with_all_of_them() {
        let error = selected(&["conv=2"]).unwrap_err();
        assert!(error.contains("LD_PE:conv, LC_PE:conv"), "{error}");
        let error = selected(&["driver=2"]).unwrap_err();
        assert!(error.contains("LD (layer Driver), LR_PE:driver"), "{error}");
    }

    #[test]
    fn names_of_nothing_are_refused_with_close_ones() {
        assert!(selected(&["pol=2"]).unwrap_err().ends_with("close to it: pool"));
        assert!(selected(&["Pool2=2"]).unwrap_err().ends_with("close to it: pool"));
        // No utility in the run.
        assert!(selected(&["LU=2"]).unwrap_err().contains("nothing in the run is named LU"));
        assert!(selected(&["something else=2"]).unwrap_err().contains("there is"));
    }
}
