//! Entries of a map in a file: the functions of its entries, and where each can be probed.

mod candidates;
mod ends;
mod hooks;
pub(in crate::live) mod stubs;

use std::{collections::HashSet, fmt::Write as _};

use nntrace_common::engine::IN_MEMORY;
use serde::{Deserialize, Serialize};

use super::{
    bounds::FunctionBounds,
    engine_map::{EngineMap, MachineName, NameEntry, ProbeEntry, Version},
    examined_file::Library,
    image::Machine,
    probe::{End, EngineProbe, Kind, LONGEST_CHAIN, Level, NameRecipe, Note},
    recognition::{Recognized, Sureness},
    references::Callers,
};
use candidates::Candidate;
use ends::{Ending, Ends, Left, ReturnOfOther};

/// Probes of one file at most.
const MOST_PROBES: usize = 16_384;
/// Functions that a note names at most.
const NAMED: usize = 3;

/// Engine in a file, ready to be probed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::live) struct Resolved {
    /// Name of the engine.
    pub(in crate::live) engine: String,
    /// Parts of it that are in the file, in a few words.
    pub(in crate::live) parts: Vec<String>,
    /// Signs by which it was recognized.
    pub(in crate::live) signs: Vec<String>,
    /// How sure it is.
    pub(in crate::live) sureness: Sureness,
    /// Whether all of these parts are tested on the real engine.
    pub(in crate::live) is_tested: bool,
    /// Build id of the file in hexadecimal digits, if it has one.
    pub(in crate::live) build_id: Option<String>,
    /// Version, if it is known.
    pub(in crate::live) version: Option<Version>,
    /// Probes, in the order of the map.
    pub(in crate::live) probes: Vec<EngineProbe>,
    /// Functions that are not probed, and why.
    pub(in crate::live) notes: Vec<Note>,
}

/// Resolves the engines that were recognized in a file, each with all its parts. Entries of a higher level are not
/// looked for, and words that lead to functions only where hooks are wanted.
pub(in crate::live) fn resolve(
    library: &Library<'_, '_>,
    recognized: &[Recognized<'_>],
    level: Level,
    wants_hooks: bool,
) -> Vec<Resolved> {
    let bounds = FunctionBounds::of(library.image());
    let callers = Callers::of(library.image());
    let mut probed = Probed::default();
    let mut all: Vec<Resolved> = Vec::new();
    for part in recognized {
        let number = all.iter().position(|resolved| resolved.engine == part.map.name).unwrap_or_else(|| {
            all.push(Resolved {
                engine: part.map.name.clone(),
                parts: Vec::new(),
                signs: Vec::new(),
                sureness: Sureness::Likely,
                is_tested: true,
                build_id: library.image().build_id().map(hexadecimal),
                version: None,
                probes: Vec::new(),
                notes: Vec::new(),
            });
            all.len() - 1
        });
        let resolved = &mut all[number];
        let version = library.version(&part.map.versions);
        resolved.parts.push(part.map.about.clone());
        resolved.signs.extend(
            part.signs.iter().filter(|sign| !resolved.signs.contains(sign)).cloned().collect::<Vec<_>>(),
        );
        resolved.sureness = resolved.sureness.max(part.sureness);
        resolved.is_tested &= part.map.is_tested;
        let mut resolver = Resolver {
            library,
            bounds: &bounds,
            callers: &callers,
            version: version.as_ref(),
            wants_hooks,
            number,
            probed: &mut probed,
            resolved,
        };
        resolver.part(part.map, level);
        resolved.version = resolved.version.take().or(version);
    }
    probed.separate(&mut all);
    for resolved in &mut all {
        resolved.note_missing_runs(recognized, level);
    }
    hooks::find_words(library.image(), all.iter_mut().flat_map(|resolved| &mut resolved.probes));
    all
}

/// Functions of a file that are probed, by any engine.
#[derive(Default)]
struct Probed {
    /// Their addresses.
    functions: HashSet<u64>,
    /// Numbers of engine and probe, and a return that it has of another function.
    of_others: Vec<(usize, usize, ReturnOfOther)>,
}

impl Probed {
    /// Takes the returns of probed functions away from those that jump to them, which are over when these begin.
    fn separate(self, all: &mut [Resolved]) {
        for (engine, probe, ReturnOfOther { function, place }) in self.of_others {
            let end = &mut all[engine].probes[probe].end;
            if self.functions.contains(&function)
                && let End::SomeReturns(places) = end
            {
                places.retain(|&other| other != place);
                if places.is_empty() {
                    *end = End::StackPointer;
                }
            }
        }
    }
}

impl Resolved {
    /// Says that whole runs are not seen, where no entry for them found anything.
    fn note_missing_runs(&mut self, recognized: &[Recognized<'_>], level: Level) {
        let is_run = |probe: &EngineProbe| probe.tag.phase().is_execution();
        if level > Level::Run || self.probes.iter().any(is_run) {
            return;
        }
        let mut parts = recognized.iter().filter(|part| part.map.name == self.engine);
        if let Some(part) = parts.find(|part| part.map.has_operators()) {
            let text =
                "whole runs are not seen in this file, its operators are: --engine-level op".to_owned();
            self.notes.push(Note { at: part.map.line.clone(), text, is_for_author: false });
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Resolver<'a, 'image, 'data> {
    library: &'a Library<'image, 'data>,
    bounds: &'a FunctionBounds<'image, 'data>,
    callers: &'a Callers<'image, 'data>,
    version: Option<&'a Version>,
    wants_hooks: bool,
    /// Number of the engine.
    number: usize,
    probed: &'a mut Probed,
    resolved: &'a mut Resolved,
}

impl Resolver<'_, '_, '_> {
    fn note(&mut self, entry: &ProbeEntry, text: String) {
        self.resolved.notes.push(Note { at: entry.line.clone(), text, is_for_author: false });
    }

    /// Adds the probes of one map.
    fn part(&mut self, map: &EngineMap, level: Level) {
        let mut entries = Vec::new();
        for entry in map.probes.iter().filter(|entry| entry.level <= level) {
            match (&entry.versions, self.version) {
                (Some(wanted), Some(version)) if !wanted.allows(version) => {}
                (Some(wanted), None) => {
                    self.note(
                        entry,
                        format!("it is for versions {wanted}, and that of the file is not known"),
                    );
                }
                _ => entries.push(entry),
            }
        }
        self.note_unknown_version(map, level);
        let found = candidates::of_entries(self.library, self.bounds, &entries);
        let mut taken: HashSet<u64> = HashSet::new();
        for (entry, found) in entries.into_iter().zip(found) {
            for text in found.notes {
                self.note(entry, text);
            }
            // If nothing else is found, users miss something as well.
            let is_for_author = !found.functions.is_empty();
            let note = |text| Note { at: entry.line.clone(), text, is_for_author };
            self.resolved.notes.extend(found.left_out.into_iter().map(note));
            let mut left = Left::default();
            for candidate in found.functions {
                if self.resolved.probes.len() >= MOST_PROBES {
                    self.note(
                        entry,
                        format!("only the first {MOST_PROBES} functions of the file are probed"),
                    );
                    return;
                }
                // The first entry that finds a function keeps it, in other parts of the engine as well.
                if !taken.insert(candidate.address) {
                    continue;
                }
                let function = candidate.address;
                let Some((probe, of_others)) = self.probe(entry, candidate, &mut left) else { continue };
                let probes = &mut self.resolved.probes;
                if probes.iter().all(|other| other.entry != probe.entry || other.kind != probe.kind) {
                    self.probed.functions.insert(function);
                    let of_others = of_others.into_iter().map(|it| (self.number, probes.len(), it));
                    self.probed.of_others.extend(of_others);
                    probes.push(probe);
                }
            }
            for text in left.notes() {
                self.note(entry, text);
            }
        }
    }

    /// Says that a version is one that a whole map does not know, rather than each of its entries.
    fn note_unknown_version(&mut self, map: &EngineMap, level: Level) {
        let Some(version) = self.version else { return };
        let limited = || map.probes.iter().filter(|entry| entry.level <= level && entry.versions.is_some());
        let is_known =
            |entry: &ProbeEntry| entry.versions.as_ref().is_some_and(|wanted| wanted.allows(version));
        if limited().next().is_some() && !limited().any(is_known) {
            let text = format!("none of the entries for certain versions is for {version}");
            self.resolved.notes.push(Note { at: map.line.clone(), text, is_for_author: false });
        }
    }

    /// Makes the probe of a function; takes note of what is not as usual.
    fn probe(
        &self,
        entry: &ProbeEntry,
        candidate: Candidate,
        left: &mut Left,
    ) -> Option<(EngineProbe, Vec<ReturnOfOther>)> {
        let image = self.library.image();
        let ending = match (entry.kind, entry.is_nothrow) {
            (Kind::BracketBegin | Kind::BracketEnd, _) => {
                ends::of_entry_alone(image, self.bounds, candidate.address)
            }
            (_, true) => ends::of_nothrow(image, self.bounds, candidate.address),
            (_, false) => {
                // Operators are soon closed by the next one, and return too often for more probes.
                let callers = (entry.level == Level::Run).then_some(self.callers);
                ends::of_returns(image, self.bounds, callers, candidate.address)
            }
        }
        .map_err(|reason: Ends| left.take(reason, &candidate.function))
        .ok()?;
        let Ending { entry: point, end, remark, of_others } = ending;
        if let Some(remark) = remark {
            left.take(remark, &candidate.function);
        }
        let offset = image.file_offset(point.address)?;
        let name = self.recipe(entry, &candidate, left);
        let hook = if self.wants_hooks { hooks::hook(entry, &candidate) } else { None };
        let probe = EngineProbe {
            function: candidate.function,
            map_line: entry.line.clone(),
            level: entry.level,
            prefix: entry.prefix,
            tag: entry.tag,
            name,
            fallback_name: entry.label.clone().unwrap_or(candidate.fallback),
            entry: offset,
            entry_sp_offset: u32::try_from(point.sp_offset).ok()?,
            entry_is_emulated: point.is_emulated,
            end,
            kind: self.kind(entry),
            on_workers: entry.on_workers,
            hook,
        };
        Some((probe, of_others))
    }

    /// Returns the register of an argument.
    fn register(&self, entry: &ProbeEntry, argument: u8) -> u8 {
        // On arm64 the address of a returned object has a register of its own, x8.
        let is_shifted = entry.returns_in_memory && self.library.image().machine() == Machine::X86_64;
        argument + u8::from(is_shifted)
    }

    fn kind(&self, entry: &ProbeEntry) -> Kind {
        match entry.kind {
            Kind::AsyncBegin { argument } => Kind::AsyncBegin { argument: self.register(entry, argument) },
            Kind::AsyncEnd { argument } => Kind::AsyncEnd { argument: self.register(entry, argument) },
            other => other,
        }
    }

    fn recipe(&self, entry: &ProbeEntry, candidate: &Candidate, left: &mut Left) -> Option<NameRecipe> {
        let machine = match self.library.image().machine() {
            Machine::X86_64 => MachineName::X86_64,
            Machine::Arm64 => MachineName::Arm64,
        };
        let fits = |name: &&NameEntry| {
            let is_version = match (&name.versions, self.version) {
                (Some(wanted), Some(version)) => wanted.allows(version),
                (Some(_), None) => false,
                (None, _) => true,
            };
            is_version && name.machine.is_none_or(|wanted| wanted == machine)
        };
        let Some(name) = entry.names.iter().find(fits) else {
            if !entry.names.is_empty() {
                left.take(Ends::NoName, &candidate.function);
            }
            return None;
        };
        if candidate.has_other_arguments {
            left.take(Ends::OtherArguments, &candidate.function);
            return None;
        }
        let mut chain = [0; LONGEST_CHAIN];
        chain[..name.chain.len()].copy_from_slice(&name.chain);
        Some(NameRecipe {
            argument: match machine {
                MachineName::X86_64 if name.is_by_value => IN_MEMORY,
                _ => self.register(entry, name.argument),
            },
            chain,
            length: name.chain.len() as u8,
            form: name.form,
            values: name.values.clone(),
            other: name.other,
            element: name.element,
        })
    }
}

#[cfg(test)]
mod tests;
