//! Functions that the entries of a map mean in a file.

use crate::{
    live::{
        demangling,
        engines::{
            api_table::table_behind,
            bounds::FunctionBounds,
            demangled_names,
            engine_map::{ClassName, FunctionPlace, ProbeEntry},
            examined_file::{Library, common_name},
            references,
            rtti::NoSlot,
            symbol_search::{self, FoundFunction, Names, Wanted},
        },
    },
    model::plurals::{counted, one_or_many},
};

/// Classes that one pattern is for at most.
const MOST_CLASSES: usize = 64;

/// Function to probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Address of its first instruction.
    pub(super) address: u64,
    /// Name for people.
    pub(super) function: String,
    /// Name of its sections.
    pub(super) fallback: String,
    /// Whether its arguments may be others than the source's.
    pub(super) has_other_arguments: bool,
}

/// Functions that one entry means.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Functions, by place and address.
    pub(super) functions: Vec<Candidate>,
    /// Functions that are not there.
    pub(super) notes: Vec<String>,
    /// Functions that are there, and left out as the map wants it.
    pub(super) left_out: Vec<String>,
}

/// Returns what each entry means. The symbols are read once for all of them.
pub(super) fn of_entries(
    library: &Library<'_, '_>,
    bounds: &FunctionBounds<'_, '_>,
    entries: &[&ProbeEntry],
) -> Vec<Found> {
    let places = entries.iter().flat_map(|entry| &entry.places);
    let wanted: Vec<Wanted<'_>> = places.filter_map(wanted).collect();
    let mut by_name = symbol_search::functions(library.image(), &wanted).into_iter();
    let mut all = Vec::new();
    for entry in entries {
        let mut found = Found::default();
        let mut missing = Vec::new();
        for place in &entry.places {
            match place {
                FunctionPlace::Export(pattern)
                | FunctionPlace::Symbol(pattern)
                | FunctionPlace::Demangled(pattern) => {
                    let functions = by_name.next().unwrap_or_default();
                    if functions.is_empty() {
                        missing.push(pattern.to_string());
                    }
                    found.functions.extend(functions.into_iter().map(named));
                }
                FunctionPlace::Table { export, index } => found.table(library, export, *index),
                FunctionPlace::Text { text, all } => {
                    let functions = references::functions(library.image(), bounds, text);
                    match functions.len() {
                        0 => missing.push(format!("that refers to {text:?}")),
                        2.. if !all => found.notes.push(format!(
                            "{} functions refer to {text:?}, expected one; `all = true` takes them",
                            functions.len()
                        )),
                        _ => found.functions.extend(functions.into_iter().map(|it| referring(it, text))),
                    }
                }
                FunctionPlace::Rtti { class, slot, with_base } => {
                    found.slots(library, class, *slot, *with_base);
                }
            }
        }
        found.functions.retain(|candidate| {
            entry.except.iter().all(|pattern| {
                [&candidate.function, &candidate.fallback]
                    .into_iter()
                    .all(|name| pattern.matches(name).is_none())
            })
        });
        // Of several names some are for other builds: only when none is there is something amiss.
        if !missing.is_empty() && found.functions.is_empty() && found.notes.is_empty() {
            let is_by_text = entry.places.iter().all(|place| matches!(place, FunctionPlace::Text { .. }));
            let is_unnamed = library.image().is_stripped() && !is_by_text;
            let why = if is_unnamed { ", it names its exports only" } else { "" };
            found.notes.push(format!("the file has no function {}{why}", missing.join(", nor ")));
        }
        if entry.is_optional && found.functions.is_empty() {
            found.notes.clear();
            found.left_out.clear();
        }
        all.push(found);
    }
    all
}

fn wanted(place: &FunctionPlace) -> Option<Wanted<'_>> {
    let (pattern, names) = match place {
        FunctionPlace::Export(pattern) => (pattern, Names::Exported),
        FunctionPlace::Symbol(pattern) => (pattern, Names::All),
        FunctionPlace::Demangled(pattern) => (pattern, Names::Demangled),
        FunctionPlace::Table { .. } | FunctionPlace::Rtti { .. } | FunctionPlace::Text { .. } => return None,
    };
    Some(Wanted { pattern, names })
}

fn named(found: FoundFunction) -> Candidate {
    let fallback = match &found.captured {
        Some(captured) => demangled_names::last_part(captured).to_owned(),
        None => demangled_names::short_function(&found.shown),
    };
    Candidate {
        address: found.address,
        fallback: if fallback.is_empty() { found.shown.clone() } else { fallback },
        function: found.shown,
        has_other_arguments: found.has_other_arguments,
    }
}

fn referring(address: u64, text: &str) -> Candidate {
    let function = format!("the function that refers to {text:?}");
    Candidate { address, fallback: text.trim().to_owned(), function, has_other_arguments: false }
}

impl Found {
    fn table(&mut self, library: &Library<'_, '_>, export: &str, index: u32) {
        let table = match table_behind(library.image(), export) {
            Ok(table) => table,
            Err(error) => return self.notes.push(error.to_string()),
        };
        let Some(address) = table.entry(index as usize) else {
            let functions = counted(table.len() as u64, "function");
            self.notes
                .push(format!("the table behind {export} has {functions}, expected one with number {index}"));
            return;
        };
        let function = format!("{export}, function {index}");
        self.functions.push(Candidate {
            address,
            fallback: function.clone(),
            function,
            has_other_arguments: false,
        });
    }

    fn slots(&mut self, library: &Library<'_, '_>, class: &ClassName, slot: u32, with_base: bool) {
        let classes = library.classes(class);
        if classes.is_empty() {
            let is_without = library.rtti().is_empty();
            let why = if is_without { ", and no class at all (C, or -fno-rtti)" } else { "" };
            self.notes.push(format!("the file has no class {class}{why}"));
        }
        for class in classes.iter().take(MOST_CLASSES) {
            self.slot(library, class, slot, with_base);
        }
        if classes.len() > MOST_CLASSES {
            self.notes
                .push(format!("only the first {MOST_CLASSES} of {} classes {class} count", classes.len()));
        }
        if self.functions.is_empty() && self.notes.is_empty() && self.left_out.is_empty() {
            self.notes.push(format!("no class of the file has a function in slot {slot} of {class}"));
        }
    }

    /// Adds the functions in a slot of the class with this mangled name, and of those that derive from it.
    fn slot(&mut self, library: &Library<'_, '_>, class: &str, slot: u32, with_base: bool) {
        let rtti = library.rtti();
        let overrides = rtti.overrides(class, slot as usize);
        let own = rtti.class(class).map(|own| rtti.slot(own.vtable, slot as usize));
        let (mangled, class) = (class, demangling::class(class));
        let overridden = overrides.functions.iter().any(|function| !function.is_inherited_from_base);
        let add = |classes: &[&str], address| {
            let name = common_name(classes);
            let others = match classes.len() {
                0 | 1 => String::new(),
                all => format!(" and {}", counted(all as u64 - 1, "other")),
            };
            Candidate {
                address,
                function: format!("{name}::slot {slot}{others}"),
                fallback: demangled_names::last_part(&name).to_owned(),
                has_other_arguments: false,
            }
        };
        match own {
            // A function that classes override is an empty one for those that do not.
            Some(Ok(address)) if overridden && !with_base => {
                let sharing = overrides.functions.iter().find(|function| function.address == address);
                let classes = sharing.map_or(0, |function| function.classes.len());
                if classes > 0 {
                    self.left_out.push(format!(
                        "{class}'s own function in slot {slot}, which {classes} derived {} left out; `base = true` takes it",
                        one_or_many(classes as u64, "class shares, is", "classes share, is")
                    ));
                }
            }
            Some(Ok(address)) => self.functions.push(add(&[mangled], address)),
            Some(Err(NoSlot::PureVirtual | NoSlot::Null)) | None => {}
            Some(Err(reason)) => self.notes.push(format!("slot {slot} of {class}: {reason}")),
        }
        for function in overrides.functions.iter().filter(|function| !function.is_inherited_from_base) {
            self.functions.push(add(&function.classes, function.address));
        }
        let is_unusual =
            |reason: &NoSlot<'_>| !matches!(reason, NoSlot::PureVirtual | NoSlot::Null | NoSlot::NoVtable);
        let mut unusual = overrides.without.iter().filter(|(_, reason)| is_unusual(reason));
        if let Some((name, reason)) = unusual.next() {
            let others = match unusual.count() {
                0 => String::new(),
                count => {
                    format!(", and {count} other {}", one_or_many(count as u64, "class", "classes"))
                }
            };
            self.notes.push(format!("slot {slot} of {}: {reason}{others}", demangling::class(name)));
        }
    }
}
