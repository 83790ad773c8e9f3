//! Functions of a library that a map may be made of.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::live::{
    demangling,
    engines::{
        bounds::FunctionBounds,
        demangled_names::{self, SymbolName},
        engine_map::ClassName,
        examination::with_image,
        image::Image,
        rtti::{NoSlot, Overrides, Rtti},
    },
    target::{
        ElfErrorReason,
        examiner::{Examination, Folders},
    },
};

/// Exported functions at most, the likeliest ones: each costs a probe.
const MOST_EXPORTS: usize = 1200;
/// Slots at most, and functions in all of them.
const MOST_SLOTS: usize = 160;
const MOST_FUNCTIONS: u64 = 2400;
/// Base classes whose slots are looked at, those that most classes derive from, and slots of each.
const MOST_BASES: usize = 64;
const MOST_OF_BASE: usize = 48;
/// Functions in a slot at least: fewer are no operators.
const FEWEST: usize = 3;
/// Bytes of an exported function at least: shorter ones return a value.
const SHORTEST: u64 = 24;
/// Bytes of a name at most.
const LONGEST_NAME: usize = 1 << 10;

/// Namespaces of libraries that engines use: their functions are no operators.
const FOREIGN: [&str; 17] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "google::protobuf::",
    "boost::",
    "fmt::",
    "pybind11::",
    "spdlog::",
    "re2::",
    "absl::",
    "testing::",
    "nlohmann::",
    "Xbyak::",
    "dmlc::",
    "Eigen::",
    "grpc::",
    "grpc_core::",
];

/// Words in the names of functions that run a model.
const OF_RUNS: [&str; 16] = [
    "run",
    "infer",
    "inference",
    "forward",
    "predict",
    "invoke",
    "execute",
    "eval",
    "decode",
    "encode",
    "generate",
    "transcribe",
    "translate",
    "search",
    "detect",
    "classify",
];
/// Words in the names of classes that are operators.
const OF_OPERATORS: [&str; 9] =
    ["layer", "op", "operator", "kernel", "node", "module", "function", "primitive", "executor"];

/// Search for the functions of a library that a map may be made of.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct CandidateSearch;

/// Functions of a library that a map may be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Candidates {
    /// Exported functions, the likeliest first.
    pub(super) exports: Vec<ExportedCandidate>,
    /// Slots of classes, the likeliest first.
    pub(super) slots: Vec<SlotCandidate>,
}

/// Exported function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct ExportedCandidate {
    /// Symbol.
    pub(super) symbol: String,
    /// Name for people.
    pub(super) shown: String,
    /// Bytes of its code.
    pub(super) size: u64,
    /// Whether its name suggests that it runs something.
    pub(super) is_named_so: bool,
}

/// Functions in a slot of the classes that derive from one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct SlotCandidate {
    /// Class, as a map has it.
    pub(super) class: String,
    /// Number of the slot.
    pub(super) slot: u32,
    /// Number of functions.
    pub(super) functions: u64,
    /// Number of classes that have one.
    pub(super) classes: u64,
    /// Bytes of their code.
    pub(super) size: u64,
    /// Whether the class's name suggests that it is an operator.
    pub(super) is_named_so: bool,
}

impl Candidates {
    /// Whether there are no candidates.
    pub(super) fn is_empty(&self) -> bool {
        self.exports.is_empty() && self.slots.is_empty()
    }
}

impl Examination for CandidateSearch {
    type Findings = Candidates;

    const NAME: &'static str = "candidates of a map";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Candidates, ElfErrorReason> {
        with_image(bytes, |_, image| {
            let bounds = FunctionBounds::of(image);
            // A function in a slot is not an exported candidate as well.
            let mut covered = BTreeSet::new();
            let slots = slots(image, &bounds, &mut covered);
            Candidates { exports: exports(image, &bounds, covered), slots }
        })
    }
}

/// Returns the bytes of a function's code; 0 where its end is not known.
fn size(bounds: &FunctionBounds<'_, '_>, address: u64) -> u64 {
    bounds.at(address).map_or(0, |bounds| bounds.end.saturating_sub(bounds.start))
}

/// Returns the exported functions that are not yet seen, by their addresses.
fn exports(
    image: &Image<'_>,
    bounds: &FunctionBounds<'_, '_>,
    mut seen: BTreeSet<u64>,
) -> Vec<ExportedCandidate> {
    let mut found = Vec::new();
    for symbol in image.symbols().filter(|symbol| symbol.is_exported) {
        let is_whole = SymbolName::of(symbol.name).base == symbol.name && symbol.name.len() <= LONGEST_NAME;
        if !is_whole || !image.is_code(symbol.address) || !is_literal(symbol.name) {
            continue;
        }
        let shown = demangling::function(symbol.name).unwrap_or_else(|| symbol.name.to_owned());
        let short = demangled_names::short_function(&shown);
        let size = if symbol.size > 0 { symbol.size } else { size(bounds, symbol.address) };
        if size < SHORTEST || is_foreign(&shown) || is_of_language(symbol.name, &short) {
            continue;
        }
        if !seen.insert(symbol.address) {
            continue;
        }
        let is_named_so = has_word(demangled_names::last_part(&short), &OF_RUNS);
        let shown = shown.chars().take(LONGEST_NAME).collect();
        found.push(ExportedCandidate { symbol: symbol.name.to_owned(), shown, size, is_named_so });
    }
    found.sort_by(|a, b| {
        b.is_named_so.cmp(&a.is_named_so).then(b.size.cmp(&a.size)).then_with(|| a.symbol.cmp(&b.symbol))
    });
    found.truncate(MOST_EXPORTS);
    found
}

/// Returns the slots that many classes override. The addresses of their functions are added to those that are covered: a class
/// between another one and those that derive from both has the same functions again.
fn slots(
    image: &Image<'_>,
    bounds: &FunctionBounds<'_, '_>,
    covered: &mut BTreeSet<u64>,
) -> Vec<SlotCandidate> {
    let rtti = Rtti::of(image);
    let names = rtti.base_names().into_iter().filter(|name| name.len() <= LONGEST_NAME);
    let mut bases: Vec<(usize, String, &str)> = names
        .filter_map(|name| {
            let class = demangling::class(name);
            // A map can only have it as people write it.
            let is_clear = ClassName::parse(&class).is_ok_and(|class| class.mangled.needle() == name);
            let classes = if is_clear && !is_foreign(&class) { rtti.descendant_count(name) } else { 0 };
            (classes >= FEWEST).then_some((classes, class, name))
        })
        .collect();
    bases.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut found = Vec::new();
    for (_, class, name) in bases.into_iter().take(MOST_BASES) {
        let is_named_so = has_word(demangled_names::last_part(&class), &OF_OPERATORS);
        for slot in 0..MOST_OF_BASE {
            let Overrides { functions, without } = rtti.overrides(name, slot);
            let is_beyond = |why: &NoSlot<'_>| matches!(why, NoSlot::Beyond { .. } | NoSlot::NoVtable);
            // No class has this many slots.
            if functions.is_empty() && without.iter().all(|(_, why)| is_beyond(why)) {
                break;
            }
            let own: Vec<_> = functions.iter().filter(|function| !function.is_inherited_from_base).collect();
            let new = own.iter().filter(|function| !covered.contains(&function.address)).count();
            if new < FEWEST {
                continue;
            }
            covered.extend(own.iter().map(|function| function.address));
            found.push(SlotCandidate {
                class: class.clone(),
                slot: slot as u32,
                functions: own.len() as u64,
                classes: own.iter().map(|function| function.classes.len() as u64).sum(),
                size: own.iter().map(|function| size(bounds, function.address)).sum(),
                is_named_so,
            });
        }
    }
    found.sort_by(|a, b| {
        let key = |slot: &SlotCandidate| (slot.is_named_so, slot.size, slot.functions);
        key(b).cmp(&key(a)).then_with(|| (&a.class, a.slot).cmp(&(&b.class, b.slot)))
    });
    let mut functions = 0;
    found.retain(|slot| {
        let fits = functions + slot.functions <= MOST_FUNCTIONS;
        functions += if fits { slot.functions } else { 0 };
        fits
    });
    found.truncate(MOST_SLOTS);
    found
}

/// Whether a symbol contains no character that a pattern gives a meaning.
fn is_literal(symbol: &str) -> bool {
    symbol.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}

/// Whether a name belongs to one of the [`FOREIGN`] libraries.
fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|namespace| name.starts_with(namespace))
}

/// Whether a function is one that compilers ask for: a constructor, a destructor, an operator, a thunk, or the start and end of a
/// library or of a module of Python.
fn is_of_language(symbol: &str, short: &str) -> bool {
    let mut parts = short.rsplit("::");
    let (name, class) = (parts.next().unwrap_or_default(), parts.next());
    let is_special =
        symbol.starts_with("_ZT") || symbol.starts_with("PyInit_") || matches!(symbol, "_init" | "_fini");
    is_special || name.starts_with(['~', '{']) || name.starts_with("operator") || class == Some(name)
}

/// Whether a name contains one of these words: `translate_batch`, `InferRequest`.
fn has_word(name: &str, words: &[&str]) -> bool {
    let mut word = String::new();
    let mut last_is_lower = false;
    let is_one = |word: &str| words.contains(&word);
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() && last_is_lower;
        if (!c.is_ascii_alphabetic() || begins) && !word.is_empty() {
            if is_one(&word) {
                return true;
            }
            word.clear();
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        last_is_lower = c.is_ascii_lowercase();
    }
    is_one(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_names_of_all_styles() {
        for name in ["run", "XGBoosterPredict", "translate_batch", "doInfer", "sp_encode", "Run2"] {
            assert!(has_word(name, &OF_RUNS), "{name}");
        }
        for name in ["trunk", "RunnerUp", "decoder", "prune", "unrun"] {
            assert!(!has_word(name, &OF_RUNS), "{name}");
        }
    }

    #[test]
    fn functions_that_compilers_ask_for_are_no_candidates() {
        for (symbol, short) in [
            ("_ZN1a1bC1Ev", "b::b"),
            ("_ZN1a1bD1Ev", "b::~b"),
            ("_ZN1aplEv", "a::operator+"),
            ("_ZThn16_N1a1fEv", "a::f"),
            ("_init", "_init"),
            ("PyInit_net", "PyInit_net"),
        ] {
            assert!(is_of_language(symbol, short), "{symbol}");
        }
        assert!(!is_of_language("_ZN1a1fEv", "a::f") && !is_of_language("run", "run"));
    }
}
