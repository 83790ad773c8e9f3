//! Virtual tables of the classes in a file, and their slots.
//!
//! ```text
//! address - 16   offset from the part that the table is for to the object's begin: 0 or negative
//! address - 8    type information of the object's class
//! address        functions
//! ```
//!
//! A class with several base classes has a table for each part of its objects that needs one. While the parts of an
//! object with virtual base classes are built, they use tables of their own (construction vtables), which bear the type
//! information of the part's class. They have the same functions as that class's table, but no destructors.

use super::NoSlot;
use super::types::Types;
use crate::live::engines::image::{Image, Pointer, Target};

/// Offset to an object's begin at most, in bytes.
const LARGEST_OFFSET: i64 = 1 << 31;
/// Virtual tables of a file at most, and slots of one.
const MOST_TABLES: usize = 1 << 21;
const MOST_SLOTS: usize = 1 << 12;
/// Destructors that an abstract class may lack: the complete object's, and the one that frees it.
const MOST_EMPTY: usize = 2;
/// Functions of the runtime library in slots of abstract classes, and of deleted functions.
const PURE: [&str; 2] = ["__cxa_pure_virtual", "__cxa_deleted_virtual"];
/// Begins of the names of variables of a class: type information, its name, virtual tables and tables of these.
const VARIABLES: [&str; 4] = ["_ZTI", "_ZTS", "_ZTV", "_ZTT"];

/// Virtual tables of a file.
pub(super) struct Vtables {
    /// By class and address.
    list: Vec<Vtable>,
}

/// Virtual table, or the part of one that serves one base class.
struct Vtable {
    /// Index of the class.
    class: u32,
    /// Offset of the part of the objects that it is for.
    offset: i64,
    /// Address of the first slot.
    address: u64,
}

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot<'data> {
    Function(u64),
    Imported(&'data str),
    Empty,
}

impl Vtables {
    pub(super) fn find(image: &Image<'_>, types: &Types<'_>) -> Self {
        let mut list = Vec::new();
        let range = match &types.list[..] {
            [] => return Self { list },
            [first, .., last] => first.address..=last.address,
            [only] => only.address..=only.address,
        };
        image.for_each_pointer(|at, target| {
            let Target::Address(information) = target else { return };
            if list.len() < MOST_TABLES
                && range.contains(&information)
                && let Some(class) = types.index(target)
                && let Some(offset) = offset(image, at)
                && !types.contains(image, at)
            {
                list.push(Vtable { class, offset, address: at.wrapping_add(8) });
            }
        });
        list.sort_by_key(|table| (table.class, table.address));
        list.dedup_by_key(|table| (table.class, table.address));
        Self { list }
    }

    /// Returns the virtual table of a class for the part of its objects at an offset.
    pub(super) fn of_part<'data>(
        &self,
        image: &Image<'data>,
        class: u32,
        offset: i64,
    ) -> Result<u64, NoSlot<'data>> {
        let from = self.list.partition_point(|table| table.class < class);
        let of_class = self.list[from..].iter().take_while(|table| table.class == class);
        let mut candidates = of_class.filter(|table| table.offset == offset).map(|table| table.address);
        let first = candidates.next().ok_or(NoSlot::NoVtable)?;
        candidates.try_fold(first, |best, other| fuller(image, best, other))
    }
}

/// Returns that one of two virtual tables of a class that has more functions, if they do not contradict each other. Those
/// for use while an object is built lack destructors.
fn fuller<'data>(image: &Image<'data>, one: u64, other: u64) -> Result<u64, NoSlot<'data>> {
    let (mut slots_of_one, mut slots_of_other) = (slots(image, one), slots(image, other));
    let mut fuller = None;
    loop {
        match (slots_of_one.next(), slots_of_other.next()) {
            (Some(Slot::Empty), Some(Slot::Function(_))) => fuller = fuller.or(Some(other)),
            (Some(Slot::Function(_)), Some(Slot::Empty)) => fuller = fuller.or(Some(one)),
            (Some(slot), Some(same)) if slot == same => {}
            (Some(_), Some(_)) => return Err(NoSlot::Ambiguous),
            (None, Some(_)) => return Ok(fuller.unwrap_or(other)),
            (_, None) => return Ok(fuller.unwrap_or(one)),
        }
    }
}

/// Returns the function in a slot of the virtual table at an address.
pub(super) fn slot<'data>(image: &Image<'data>, vtable: u64, number: usize) -> Result<u64, NoSlot<'data>> {
    match slots(image, vtable).nth(number) {
        Some(Slot::Function(function)) => {
            let is_pure = |name: &&str| image.exported(name).is_some_and(|pure| pure.address == function);
            if PURE.iter().any(is_pure) { Err(NoSlot::PureVirtual) } else { Ok(function) }
        }
        Some(Slot::Imported(name)) if PURE.contains(&name) => Err(NoSlot::PureVirtual),
        Some(Slot::Imported(name)) => Err(NoSlot::Imported(name)),
        Some(Slot::Empty) => Err(NoSlot::Null),
        None => Err(NoSlot::Beyond { slots: slots(image, vtable).count() }),
    }
}

/// Returns the offset of the part of objects that a virtual table is for, if a pointer to type information is that of a
/// virtual table.
fn offset(image: &Image<'_>, at: u64) -> Option<i64> {
    let before = at.checked_sub(8)?;
    let to_begin = image.word(before)?.cast_signed();
    let is_offset = (-LARGEST_OFFSET..=0).contains(&to_begin) && image.target(before).is_none();
    let is_table = is_offset && slots(image, at.checked_add(8)?).next().is_some();
    is_table.then(|| -to_begin)
}

/// Returns the slots of a virtual table. Its length is written nowhere: it ends before the first word that is neither a
/// function nor an empty slot between functions. If functions follow it in other tables, these are taken for its own.
fn slots<'data>(image: &Image<'data>, vtable: u64) -> impl Iterator<Item = Slot<'data>> {
    let address = move |number: usize| vtable.checked_add(8 * number as u64);
    let function = move |number: usize| function(image, address(number)?);
    (0..MOST_SLOTS).map_while(move |number| {
        function(number).or_else(|| {
            // Where all of the next words are empty, too, the table has ended before them.
            let is_empty = |number| {
                address(number).is_some_and(|at| image.word(at) == Some(0) && image.target(at).is_none())
            };
            let next = (number..=number + MOST_EMPTY).find(|&number| !is_empty(number))?;
            (next > number && function(next).is_some()).then_some(Slot::Empty)
        })
    })
}

fn function<'data>(image: &Image<'data>, at: u64) -> Option<Slot<'data>> {
    match image.pointer(at)? {
        Pointer::Address(to) => image.is_code(to).then_some(Slot::Function(to)),
        Pointer::Import(name) => {
            let is_variable = VARIABLES.iter().any(|begin| name.starts_with(begin));
            (!is_variable).then_some(Slot::Imported(name))
        }
    }
}
