//! Functions of a file by name, and the places where their calls begin and end.

use serde::{Deserialize, Serialize};

use crate::live::{
    demangling,
    engines::{
        bounds::FunctionBounds,
        code::{self, Shape, TailJumps},
        demangled_names::SymbolName,
        examination::with_image,
        image::{Image, Machine},
        resolve::stubs,
    },
    target::{
        ElfErrorReason,
        examiner::{Examination, Folders},
    },
};

/// Functions of one name that are probed at most: overloads and instances of templates.
const MOST_FUNCTIONS: usize = 64;

/// Function whose calls can be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Function {
    /// Name, demangled.
    pub(super) name: String,
    /// Architecture.
    pub(super) machine: Machine,
    /// Offset in the file of the instruction that is probed at the begin.
    pub(super) entry: u64,
    /// Bytes that the function has pushed on the stack before it.
    pub(super) pushed: u32,
    /// Offsets of its returns.
    pub(super) returns: Vec<u64>,
    /// Offsets of the jumps to other functions by which it ends whenever it reaches them.
    pub(super) jumps: Vec<u64>,
    /// Remark on calls whose end or arguments are not seen as they are.
    pub(super) remark: Option<String>,
}

/// Functions of one name in a file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Found {
    /// Functions, by address.
    pub(super) functions: Vec<Function>,
    /// Remarks on those that cannot be probed.
    pub(super) notes: Vec<String>,
}

/// Search for the functions of a name.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Named {
    pub(super) symbol: String,
}

impl Examination for Named {
    type Findings = Found;

    const NAME: &'static str = "functions by name";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Found, ElfErrorReason> {
        with_image(bytes, |_, image| named(image, &self.symbol))
    }
}

/// Search for the name by which other files refer to a file.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Soname;

impl Examination for Soname {
    type Findings = Option<String>;

    const NAME: &'static str = "soname";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Option<String>, ElfErrorReason> {
        with_image(bytes, |_, image| image.soname().map(str::to_owned))
    }
}

/// Finds the functions of a name: that of the symbol, or the demangled one with its arguments or without.
pub(super) fn named(image: &Image<'_>, wanted: &str) -> Found {
    let mut addresses: Vec<(u64, String, bool)> = Vec::new();
    for symbol in image.symbols() {
        let name = SymbolName::of(symbol.name);
        if name.is_part || !image.is_code(symbol.address) {
            continue;
        }
        let demangled = || demangling::function(name.base);
        let is_named = name.base == wanted || symbol.name == wanted;
        let shown = if is_named {
            demangled().or_else(|| Some(name.base.to_owned()))
        } else if demangling::is_mangled(name.base) {
            demangled().filter(|text| is_name_of(wanted, text))
        } else {
            None
        };
        addresses.extend(shown.map(|shown| (symbol.address, shown, name.has_other_arguments)));
    }
    addresses.sort();
    addresses.dedup_by_key(|(address, ..)| *address);
    let mut found = Found::default();
    if addresses.is_empty() && image.exported(wanted).is_some_and(|symbol| image.is_code(symbol.address)) {
        found.notes.push(format!(
            "{wanted} is chosen when the file is loaded (an indirect function): name one of those that it chooses from"
        ));
    }
    if addresses.len() > MOST_FUNCTIONS {
        let count = addresses.len();
        found
            .notes
            .push(format!("of {count} functions named {wanted} the first {MOST_FUNCTIONS} are probed"));
        addresses.truncate(MOST_FUNCTIONS);
    }
    let bounds = FunctionBounds::of(image);
    for (address, name, has_other_arguments) in addresses {
        match function(image, &bounds, address, &name, has_other_arguments) {
            Ok(function) => found.functions.push(function),
            Err(reason) => found.notes.push(format!("{name}: not probed: {reason}")),
        }
    }
    found
}

/// Whether a name is that of a demangled function, with or without its arguments.
fn is_name_of(name: &str, demangled: &str) -> bool {
    demangled.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}

fn function<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
    name: &str,
    has_other_arguments: bool,
) -> Result<Function, String> {
    let offset = |address: u64| image.file_offset(address);
    let (entry, returns, jumps, mut remark) = match code::shape(image, bounds, address) {
        Ok(shape) => {
            let (jumps, remark) = jumps(image, &shape);
            (shape.entry, shape.returns, jumps, remark)
        }
        Err(error) => {
            let entry = code::entry_point(image, bounds, address).map_err(|_| error.to_string())?;
            (entry, Vec::new(), Vec::new(), Some("where it ends is not known"))
        }
    };
    if has_other_arguments {
        remark = Some("the compiler has changed its arguments, which may be others than the source's");
    }
    Ok(Function {
        name: name.to_owned(),
        machine: image.machine(),
        entry: offset(entry.address).ok_or("its code is not in the file")?,
        pushed: u32::try_from(entry.sp_offset).map_err(|error| error.to_string())?,
        returns: returns.into_iter().filter_map(offset).collect(),
        jumps: jumps.into_iter().filter_map(offset).collect(),
        remark: remark.map(str::to_owned),
    })
}

/// Returns the jumps by which a function ends whenever it reaches them, and a remark on ends without a probe.
fn jumps(image: &Image<'_>, shape: &Shape) -> (Vec<u64>, Option<&'static str>) {
    let (all, is_unclear) = match &shape.tail_jumps {
        TailJumps::None => (&[][..], false),
        TailJumps::Known(jumps) => (jumps.as_slice(), false),
        TailJumps::Unclear(_) => (&[][..], true),
    };
    let (probed, others): (Vec<u64>, Vec<u64>) =
        all.iter().map(|jump| jump.address).partition(|&address| stubs::is_unconditional(image, address));
    let remark = if !shape.refused_returns.is_empty() {
        Some("it ends by returns with pointer authentication, which kernels do not probe")
    } else if is_unclear {
        Some("an indirect jump may lead into it or out of it")
    } else if !others.is_empty() {
        Some("it also ends by jumps to other functions that are taken on a condition")
    } else {
        None
    };
    (probed, remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangled_names_are_known_with_arguments_and_without() {
        assert!(is_name_of("a::f", "a::f(int)"));
        assert!(is_name_of("a::f(int)", "a::f(int)"));
        assert!(is_name_of("a::operator()", "a::operator()(int)"));
        assert!(is_name_of("core::f", "core::f"));
        for other in ["a::fg(int)", "b::a::f(int)", "a::f<int>(int)", "a::f(int) const"] {
            assert!(!is_name_of("a::f(int)", other) || other.starts_with("a::f(int)("), "{other}");
        }
        assert!(!is_name_of("a::f", "a::fg(int)"));
    }
}
