//! Virtual functions of C++ classes, found without symbols: by the type information that classes carry for
//! `dynamic_cast` and exceptions (Itanium C++ ABI, sections 2.5 and 2.9.5).
//!
//! The information on a class holds its mangled name, which `strip` keeps, and leads to its base classes; each virtual
//! table of the class holds the address of the information. Files built with `-fno-rtti` have none.

mod types;
mod vtables;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use thiserror::Error;

use self::types::{Base, Types};
use self::vtables::Vtables;
use super::engine_map::Pattern;
use super::image::{Image, Target};

/// Base classes between a class and one that it derives from virtually, at most.
const DEEPEST: usize = 64;

/// Class that has a virtual table in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct Class<'data> {
    /// Mangled name.
    pub name: &'data str,
    /// Address of the first virtual function's slot: the value of an object's first word.
    pub vtable: u64,
    /// Offset in an object of the part that the virtual table is for, in bytes.
    pub base_offset: i64,
}

/// Functions in one slot of the virtual tables of a class's descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::live) struct Overrides<'data> {
    /// Functions by address, each once.
    pub functions: Vec<Override<'data>>,
    /// Classes without a function there, by name.
    pub without: Vec<(&'data str, NoSlot<'data>)>,
}

/// Function in one slot of the virtual tables of some classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Override<'data> {
    /// Address of its first instruction.
    pub address: u64,
    /// Mangled names of the classes, sorted. There are several if it is inherited, or if the linker merged equal
    /// functions.
    pub classes: Vec<&'data str>,
    /// Whether it is the base class's own function.
    pub is_inherited_from_base: bool,
}

/// Reason why a virtual table has no function of this file in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::live) enum NoSlot<'data> {
    /// The class has no virtual table here: it is in another file, or the compiler left it out.
    #[error("the file has no virtual table of the class")]
    NoVtable,
    /// The class has several virtual tables that differ.
    #[error("the file has several virtual tables of the class, which differ")]
    Ambiguous,
    /// The slot is after the last one.
    #[error("the virtual table has {slots} slots")]
    Beyond {
        /// Number of slots.
        slots: usize,
    },
    /// The slot is empty, as that of an abstract class's destructor.
    #[error("the slot is empty")]
    Null,
    /// The class is abstract: the function is left to derived classes.
    #[error("the function is pure virtual")]
    PureVirtual,
    /// The function is in another file.
    #[error("the function {0} is in another file")]
    Imported(&'data str),
}

/// Index of a file's type information and virtual tables.
pub(in crate::live) struct Rtti<'image, 'data> {
    image: &'image Image<'data>,
    types: Types<'data>,
    vtables: Vtables,
}

/// First step of the path from a class to one that it derives from.
struct Descendant {
    /// Index of the class.
    class: u32,
    /// Next class on the path.
    base: Base,
    /// Offset of the base class's part, in bytes; `None` if a virtual base class is on the path.
    offset: Option<i64>,
}

impl<'image, 'data> Rtti<'image, 'data> {
    /// Reads all pointers of the file twice.
    pub(in crate::live) fn of(image: &'image Image<'data>) -> Self {
        let types = Types::find(image);
        let vtables = Vtables::find(image, &types);
        Self { image, types, vtables }
    }

    /// Whether the file has no type information at all.
    pub(in crate::live) fn is_empty(&self) -> bool {
        self.types.list.is_empty()
    }

    /// Whether the file has information on a class of this mangled name, or on one that derives from it.
    pub(in crate::live) fn knows(&self, name: &str) -> bool {
        !self.types.targets(self.image, name).is_empty()
    }

    /// Returns the mangled names of the file's classes that a pattern is for, sorted.
    pub(in crate::live) fn names_like(&self, pattern: &Pattern) -> Vec<String> {
        let names = self.types.list.iter().map(|class| class.name);
        let fitting: BTreeSet<&str> = names.filter(|name| pattern.matches(name).is_some()).collect();
        fitting.into_iter().map(str::to_owned).collect()
    }

    /// Returns the mangled names of the classes that others derive from, each once.
    pub(in crate::live) fn base_names(&self) -> BTreeSet<&'data str> {
        self.types.base_names(self.image).collect()
    }

    /// Returns the number of classes that derive from the one of this mangled name, directly or not.
    pub(in crate::live) fn descendant_count(&self, base: &str) -> usize {
        self.paths_to(base).len()
    }

    /// Returns the class of this mangled name, if its virtual table is in the file.
    pub(in crate::live) fn class(&self, name: &str) -> Option<Class<'data>> {
        self.types.named(name).find_map(|class| {
            let vtable = self.vtables.of_part(self.image, class, 0).ok()?;
            Some(Class { name: self.types.list[class as usize].name, vtable, base_offset: 0 })
        })
    }

    /// Returns the classes that derive from the one of this mangled name, directly or not, with those of their virtual
    /// tables that serve pointers to it. Where it is a base of a class more than once, one of the parts is taken.
    #[cfg(test)]
    pub(in crate::live) fn derived_from(&self, base: &str) -> Vec<Class<'data>> {
        self.descendants(base).into_iter().filter_map(|(_, class)| class.ok()).collect()
    }

    /// Returns the function in a slot of a virtual table.
    ///
    /// # Errors
    /// When the slot holds no function of this file.
    pub(in crate::live) fn slot(&self, vtable: u64, slot: usize) -> Result<u64, NoSlot<'data>> {
        vtables::slot(self.image, vtable, slot)
    }

    /// Returns the functions in a slot of the classes that derive from the one of this mangled name.
    pub(in crate::live) fn overrides(&self, base: &str, slot: usize) -> Overrides<'data> {
        let own = self.class(base).and_then(|class| self.slot(class.vtable, slot).ok());
        let mut functions = BTreeMap::<u64, Vec<&str>>::new();
        let mut without = Vec::new();
        for (name, class) in self.descendants(base) {
            match class.and_then(|class| self.slot(class.vtable, slot)) {
                Ok(address) => functions.entry(address).or_default().push(name),
                Err(reason) => without.push((name, reason)),
            }
        }
        without.sort_by_key(|&(name, _)| name);
        let functions = functions.into_iter().map(|(address, mut classes)| {
            classes.sort_unstable();
            Override { address, classes, is_inherited_from_base: own == Some(address) }
        });
        Overrides { functions: functions.collect(), without }
    }

    /// Returns the names of the classes that derive from one, each with its virtual table for it.
    fn descendants(&self, base: &str) -> Vec<(&'data str, Result<Class<'data>, NoSlot<'data>>)> {
        let descendants = self.paths_to(base);
        let by_class: FxHashMap<u32, &Descendant> =
            descendants.iter().map(|descendant| (descendant.class, descendant)).collect();
        let class = |descendant: &Descendant| {
            let name = self.types.list[descendant.class as usize].name;
            let offset = descendant.offset.or_else(|| self.virtual_offset(descendant, &by_class));
            let class = offset.ok_or(NoSlot::NoVtable).and_then(|base_offset| {
                let vtable = self.vtables.of_part(self.image, descendant.class, base_offset)?;
                Ok(Class { name, vtable, base_offset })
            });
            (name, class)
        };
        descendants.iter().map(class).collect()
    }

    /// Returns the classes that derive from one, the nearest first.
    fn paths_to(&self, base: &str) -> Vec<Descendant> {
        let roots = self.types.targets(self.image, base);
        let mut is_reached = vec![false; self.types.list.len()];
        for class in roots.iter().filter_map(|&root| self.types.index(root)) {
            is_reached[class as usize] = true;
        }
        let mut descendants = Vec::<Descendant>::new();
        let mut offsets: Vec<_> = roots.into_iter().map(|root| (root, Some(0))).collect();
        let mut next = 0;
        while let Some(&(target, offset)) = offsets.get(next) {
            next += 1;
            for base in self.types.derived(target) {
                if std::mem::replace(&mut is_reached[base.derived as usize], true) {
                    continue;
                }
                let offset = offset
                    .filter(|_| !base.is_virtual())
                    .map(|offset: i64| offset.wrapping_add(base.offset()));
                descendants.push(Descendant { class: base.derived, base: *base, offset });
                offsets.push((Target::Address(self.types.list[base.derived as usize].address), offset));
            }
        }
        descendants
    }

    /// Returns the offset in a class's objects of a base class's part that is reached through a virtual base class. The
    /// class's virtual tables hold the offsets of virtual base classes.
    fn virtual_offset(&self, descendant: &Descendant, by_class: &FxHashMap<u32, &Descendant>) -> Option<i64> {
        let (mut offset, mut step) = (0_i64, descendant);
        for _ in 0..DEEPEST {
            let distance = if step.base.is_virtual() {
                let vtable = self.vtables.of_part(self.image, descendant.class, offset).ok()?;
                self.image.word(vtable.wrapping_add_signed(step.base.offset()))?.cast_signed()
            } else {
                step.base.offset()
            };
            offset = offset.checked_add(distance)?;
            match self.types.index(step.base.target).and_then(|base| by_class.get(&base)) {
                Some(next) => step = next,
                None => return Some(offset),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
