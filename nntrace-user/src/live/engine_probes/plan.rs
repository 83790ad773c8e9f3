//! Plans: the functions of an engine's file that are to be hooked, as the library reads them.
//!
//! The form is described in `nntrace-common/hooks/plan.c`.

use std::fmt::Write as _;

use nntrace_common::{
    engine::{IN_MEMORY, NameForm},
    layer::Layer,
    mark::Prefix,
};

use super::description::{describe, has_own_names, named};
use crate::live::engines::probe::{EngineProbe, Hook, Kind, MapLine};

/// Functions of a plan at most, as many as the library has thunks: `HOOKS` in nntrace-common/hooks/limits.h.
const MOST_FUNCTIONS: usize = 4096;

/// Functions of a file that are to be hooked.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// First instructions of the functions.
    addresses: Vec<u64>,
    /// Entries of maps whose names are compared.
    entries: Vec<MapLine>,
    lines: String,
}

impl Plan {
    /// Adds the function of a probe, if it can be hooked; returns whether it can.
    pub(super) fn add(&mut self, probe: &EngineProbe) -> bool {
        // What a driver or a provider runs is called once for many operators: a probe costs little there.
        let is_of_driver = probe.tag.layer() == Layer::Driver;
        let is_plain =
            probe.kind == Kind::Section && probe.prefix == Prefix::None && !probe.on_workers && !is_of_driver;
        let Some(hook) = probe.hook.as_ref().filter(|_| is_plain && self.addresses.len() < MOST_FUNCTIONS)
        else {
            return false;
        };
        let Ok(described) = describe(probe, None) else { return false };
        // Without its name it is probed, and that is said; counts of tokens, texts that stand for numbers, and arguments that
        // are in no register, are read by the kernel programs only.
        let recipe = described.probe.recipe;
        let is_readable =
            recipe.form != NameForm::Tokens as u8 && recipe.other == 0 && recipe.argument != IN_MEMORY;
        if described.remark.is_some() || !is_readable {
            return false;
        }
        self.addresses.push(hook.address);
        let entry = if has_own_names(probe) { self.entry(&probe.map_line) } else { 0 };
        let values = probe.name.as_ref().map_or(&[][..], |name| &name.values);
        let mut numbers =
            vec![hook.address, entry as u64, recipe.argument.into(), recipe.form.into(), recipe.steps.into()];
        numbers.extend(recipe.offsets.map(u64::from));
        numbers.extend([values.len() as u64, hook.words.len() as u64]);
        self.numbers(&numbers);
        // Writing to a string does not fail.
        let _ = writeln!(self.lines, "[NN_{}]\n{}", probe.tag, named(&probe.fallback_name).1);
        for value in values {
            let _ = writeln!(self.lines, "{}", named(value).1);
        }
        self.numbers(&hook.words);
        true
    }

    /// Whether the function of a probe is in the plan.
    pub(super) fn has(&self, probe: &EngineProbe) -> bool {
        let is_planned = |hook: &Hook| self.addresses.contains(&hook.address);
        probe.kind == Kind::Section && probe.hook.as_ref().is_some_and(is_planned)
    }

    /// Whether there is no function in it.
    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Returns its text.
    pub(super) fn text(&self) -> String {
        let head = format!("nntrace-hooks 1 {} {}\n", self.addresses.len(), self.entries.len());
        head + &self.lines
    }

    /// Returns the number of an entry, from 1.
    fn entry(&mut self, line: &MapLine) -> usize {
        let known = self.entries.iter().position(|known| known == line);
        1 + known.unwrap_or_else(|| {
            self.entries.push(line.clone());
            self.entries.len() - 1
        })
    }

    fn numbers(&mut self, numbers: &[u64]) {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        self.lines += &texts.join(" ");
        self.lines.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nntrace_common::{
        express::{FILES_UNANSWERED, SECTIONS_LEFT_OUT, WORDS_REFUSED},
        layer::{Phase, Tag},
    };

    use super::*;
    use crate::live::engines::probe::{self, End, Level, NameRecipe};

    fn probe(address: u64, line: u32, name: Option<NameRecipe>) -> EngineProbe {
        EngineProbe {
            function: "Conv::compute".to_owned(),
            map_line: MapLine { map: Arc::from("my.toml"), line },
            level: Level::Op,
            prefix: Prefix::None,
            tag: Tag::new(Layer::CpuFallback, Phase::Execution),
            name,
            fallback_name: "Conv#1".to_owned(),
            entry: address,
            entry_sp_offset: 0,
            entry_is_emulated: true,
            end: End::None,
            kind: Kind::Section,
            on_workers: false,
            hook: Some(Hook { address, words: vec![64, 128] }),
        }
    }

    #[test]
    fn a_plan_has_each_function_with_its_words_and_the_number_of_its_entry() {
        let chain = [8, 16, 0, 0];
        let name = NameRecipe {
            argument: 1,
            chain,
            length: 2,
            form: probe::NameForm::StdString,
            values: Vec::new(),
            other: 0,
            element: 0,
        };
        let mut plan = Plan::default();
        assert!(plan.is_empty());
        assert!(
            plan.add(&probe(4096, 7, Some(name.clone()))) && plan.add(&probe(8192, 7, Some(name.clone())))
        );
        assert!(plan.add(&probe(12288, 9, None)));
        assert_eq!(
            plan.text(),
            "nntrace-hooks 1 3 1\n\
             4096 1 1 1 2 8 16 0 0 0 2\n[NN_LC_PE]\nConv.1\n64 128\n\
             8192 1 1 1 2 8 16 0 0 0 2\n[NN_LC_PE]\nConv.1\n64 128\n\
             12288 0 0 0 0 0 0 0 0 0 2\n[NN_LC_PE]\nConv.1\n64 128\n"
        );
        for others in [
            EngineProbe { hook: None, ..probe(1, 7, None) },
            EngineProbe { on_workers: true, ..probe(1, 7, None) },
            EngineProbe { prefix: Prefix::Subtract, ..probe(1, 7, None) },
            EngineProbe { tag: Tag::new(Layer::Driver, Phase::Execution), ..probe(1, 7, None) },
            EngineProbe { kind: Kind::BracketBegin, ..probe(1, 7, None) },
            probe(1, 7, Some(NameRecipe { other: 8, ..name.clone() })),
            // The library reads offsets from 0 on.
            probe(1, 7, Some(NameRecipe { chain: [-8, 0, 0, 0], length: 1, ..name })),
        ] {
            assert!(!plan.add(&others) && !plan.has(&others), "{others:?}");
        }
        assert!(plan.has(&probe(8192, 9, None)));
    }

    #[test]
    fn the_library_has_the_same_numbers() {
        let limits = include_str!("../../../../nntrace-common/hooks/limits.h");
        assert!(limits.contains(&format!("#define HOOKS {MOST_FUNCTIONS}\n")));
        let sections = include_str!("../../../../nntrace-common/hooks/sections.c");
        for (name, number) in [
            ("SECTIONS_LEFT_OUT", SECTIONS_LEFT_OUT),
            ("WORDS_REFUSED", WORDS_REFUSED),
            ("FILES_UNANSWERED", FILES_UNANSWERED),
        ] {
            assert!(sections.contains(&format!("#define {name} ({number})\n")), "{name}");
        }
    }
}
