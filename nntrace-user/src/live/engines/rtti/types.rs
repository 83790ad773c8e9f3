//! Type information of the classes in a file: names and base classes.
//!
//! An object of type information begins with the virtual table of its own class, which is one of three of the C++
//! runtime library; by that it is found. Then follow the class's name, and its base classes:
//!
//! ```text
//! __class_type_info       vtable, name
//! __si_class_type_info    vtable, name, base
//! __vmi_class_type_info   vtable, name, flags (32 bits), count (32 bits), count x (base, offset << 8 | flags)
//! ```

use rustc_hash::FxHashMap;

use crate::live::engines::image::{Image, Pointer, Target};

/// Names of the runtime library's classes of type information, mangled.
const KINDS: [(&str, Kind); 3] = [
    ("N10__cxxabiv117__class_type_infoE", Kind::Plain),
    ("N10__cxxabiv120__si_class_type_infoE", Kind::Single),
    ("N10__cxxabiv121__vmi_class_type_infoE", Kind::Several),
];
/// Classes of a file at most; the largest libraries have a tenth of these.
const MOST_CLASSES: usize = 1 << 20;
/// Offset in a virtual table of what objects point to.
const ADDRESS_POINT: u64 = 16;
/// Offsets in an object of type information.
const NAME: u64 = 8;
const BASE: u64 = 16;
const BASE_COUNT: u64 = 20;
const BASES: u64 = 24;
/// Flag of a virtual base class.
const VIRTUAL: i64 = 1;

/// Kind of an object of type information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The class has no base class.
    Plain,
    /// It has one, which is public, not virtual, and at offset 0.
    Single,
    /// It has others.
    Several,
}

/// Class with type information in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type<'data> {
    /// Address of the information.
    pub address: u64,
    /// Mangled name.
    pub name: &'data str,
    kind: Kind,
}

/// Base class of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// Information on the base class, which may be in another file.
    pub target: Target,
    /// Index of the class that derives from it.
    pub derived: u32,
    /// Offset, shifted by 8, and flags.
    place: i64,
}

impl Base {
    pub(super) fn is_virtual(&self) -> bool {
        self.place & VIRTUAL != 0
    }

    /// Returns the offset of its part in objects of the derived class, or, if it is virtual, the offset of that offset
    /// in the virtual table, in bytes.
    pub(super) fn offset(&self) -> i64 {
        self.place >> 8
    }
}

/// Classes with type information in a file.
pub(super) struct Types<'data> {
    /// By address.
    pub list: Vec<Type<'data>>,
    /// By base class.
    bases: Vec<Base>,
}

impl<'data> Types<'data> {
    pub(super) fn find(image: &Image<'data>) -> Self {
        let mut list = typed(image, &runtime_tables(image));
        if list.is_empty() {
            // The runtime library is linked into the file.
            list = typed(image, &own_tables(image));
        }
        list.sort_by_key(|found| found.address);
        list.dedup_by_key(|found| found.address);
        let mut bases: Vec<_> = (0..list.len()).flat_map(|index| bases(image, &list, index)).collect();
        bases.sort_by_key(|base| (base.target, base.derived));
        Self { list, bases }
    }

    /// Returns the indexes of the classes of a name: several, where a file was linked from parts with hidden symbols.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        (0..).zip(&self.list).filter(move |(_, class)| class.name == name).map(|(index, _)| index)
    }

    /// Returns all that leads to the information on the classes of a name.
    pub(super) fn targets(&self, image: &Image<'data>, name: &str) -> Vec<Target> {
        let symbol = format!("_ZTI{name}");
        let mut targets: Vec<_> =
            self.named(name).map(|index| Target::Address(self.list[index as usize].address)).collect();
        // A copy that the loader makes of another file's.
        targets.extend(image.exported(&symbol).map(|copy| Target::Address(copy.address)));
        let of_others = self.bases.chunk_by(|a, b| a.target == b.target).map(|same| same[0].target);
        targets.extend(of_others.filter(
            |&target| matches!(target, Target::Import(index) if image.symbol_name(index) == Some(&symbol)),
        ));
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|&target| self.index(target).is_some() || !self.derived(target).is_empty());
        targets
    }

    /// Returns the names of the classes that others derive from, as often as they do.
    pub(super) fn base_names(&self, image: &Image<'data>) -> impl Iterator<Item = &'data str> {
        self.bases.iter().filter_map(|base| match base.target {
            Target::Address(_) => Some(self.list[self.index(base.target)? as usize].name),
            Target::Import(index) => image.symbol_name(index)?.strip_prefix("_ZTI"),
        })
    }

    /// Returns the index of the class whose information is there.
    pub(super) fn index(&self, target: Target) -> Option<u32> {
        let Target::Address(address) = target else { return None };
        let found = self.list.binary_search_by_key(&address, |class| class.address).ok()?;
        u32::try_from(found).ok()
    }

    /// Whether an address is within the information on some class.
    pub(super) fn contains(&self, image: &Image<'_>, address: u64) -> bool {
        let next = self.list.partition_point(|class| class.address <= address);
        next.checked_sub(1).is_some_and(|last| address < end(image, &self.list, last))
    }

    /// Returns the classes that derive from one directly.
    pub(super) fn derived(&self, target: Target) -> &[Base] {
        let from = self.bases.partition_point(|base| base.target < target);
        let to = self.bases.partition_point(|base| base.target <= target);
        &self.bases[from..to]
    }
}

/// Values of the first word of objects of type information.
#[derive(Default)]
struct Tables {
    addresses: Vec<(u64, Kind)>,
    /// Kinds by imported symbol, once met; `None` for other symbols.
    imports: FxHashMap<u32, Option<Kind>>,
}

impl Tables {
    fn kind(&self, target: Target) -> Option<Kind> {
        match target {
            Target::Address(to) => {
                self.addresses.iter().find(|(address, _)| *address == to).map(|(_, kind)| *kind)
            }
            Target::Import(symbol) => *self.imports.get(&symbol)?,
        }
    }
}

/// Returns the virtual tables of the runtime library as symbols.
fn runtime_tables(image: &Image<'_>) -> Tables {
    let symbols = KINDS.map(|(name, kind)| (format!("_ZTV{name}"), kind));
    let mut tables = Tables::default();
    for (symbol, kind) in &symbols {
        let table = image.exported(symbol);
        tables.addresses.extend(table.map(|table| (table.address.wrapping_add(ADDRESS_POINT), *kind)));
    }
    for (index, name) in image.imports() {
        if let Some((_, kind)) = symbols.iter().find(|(symbol, _)| symbol == name) {
            tables.imports.insert(index, Some(*kind));
        }
    }
    tables
}

/// Returns the virtual tables of a runtime library in the file itself, which are found as those of other classes: the
/// name leads to the type information, that to the table.
fn own_tables(image: &Image<'_>) -> Tables {
    let leading_to = |targets: &[(u64, Kind)]| {
        let mut found = Vec::new();
        image.for_each_pointer(|address, target| {
            let kind = targets.iter().find(|(to, _)| Target::Address(*to) == target);
            found.extend(kind.map(|(_, kind)| (address, *kind)));
        });
        found
    };
    let names = KINDS.iter().flat_map(|(name, kind)| {
        let text = [name.as_bytes(), &[0]].concat();
        image.occurrences(&text).into_iter().map(move |address| (address, *kind))
    });
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        return Tables::default();
    }
    let information =
        leading_to(&names).into_iter().map(|(address, kind)| (address.wrapping_sub(NAME), kind));
    let tables = leading_to(&information.collect::<Vec<_>>()).into_iter().filter_map(|(address, kind)| {
        let first = address.wrapping_add(8);
        let is_table = image.word(address.wrapping_sub(8)) == Some(0)
            && image.local_pointer(first).is_some_and(|function| image.is_code(function));
        is_table.then_some((first, kind))
    });
    Tables { addresses: tables.collect(), ..Tables::default() }
}

/// Returns the objects of type information that begin with one of these virtual tables.
fn typed<'data>(image: &Image<'data>, tables: &Tables) -> Vec<Type<'data>> {
    let mut list = Vec::new();
    if tables.addresses.is_empty() && tables.imports.is_empty() {
        return list;
    }
    image.for_each_pointer(|address, target| {
        if list.len() < MOST_CLASSES
            && let Some(kind) = tables.kind(target)
            && let Some(Pointer::Address(name)) = image.pointer(address.wrapping_add(NAME))
            && let Some(name) = image.text(name).filter(|name| is_type_name(name))
        {
            // A star marks names that are to be compared by address.
            list.push(Type { address, name: name.strip_prefix('*').unwrap_or(name), kind });
        }
    });
    list
}

/// Whether a text may be a mangled name of a class.
fn is_type_name(name: &str) -> bool {
    let name = name.strip_prefix('*').unwrap_or(name);
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns the base classes of the class with an index.
fn bases(image: &Image<'_>, list: &[Type<'_>], index: usize) -> Vec<Base> {
    let Type { address, kind, .. } = list[index];
    let end = end(image, list, index);
    let base = |at: u64, place: i64| {
        Some(Base { target: image.target(at)?, derived: u32::try_from(index).ok()?, place })
    };
    match kind {
        Kind::Plain => Vec::new(),
        Kind::Single => base(address.wrapping_add(BASE), 0).into_iter().collect(),
        Kind::Several => (address.saturating_add(BASES)..end)
            .step_by(16)
            .map_while(|at| base(at, image.word(at.checked_add(8)?)?.cast_signed()))
            .collect(),
    }
}

/// Returns the end of the information on the class with an index, which is at most the begin of the next one.
fn end(image: &Image<'_>, list: &[Type<'_>], index: usize) -> u64 {
    let Type { address, kind, .. } = list[index];
    let length = match kind {
        Kind::Plain => BASE,
        Kind::Single => BASES,
        Kind::Several => {
            let count = image.bytes(address.saturating_add(BASE_COUNT), 4).and_then(<[u8]>::first_chunk);
            BASES + 16 * count.map_or(0, |count| u64::from(u32::from_le_bytes(*count)))
        }
    };
    let next = list.get(index + 1).map_or(u64::MAX, |next| next.address);
    address.saturating_add(length).min(next)
}
