//! Functions of other files that the code of a file calls through pointers, which the dynamic loader fills in.

use object::read::elf::Rela as _;

use super::{ENDIAN, Image, Pointer};

impl<'data> Image<'data> {
    /// Returns the name of the function of another file that the pointer at an address leads to, also if the loader
    /// fills it in at the first call only.
    pub(in crate::live) fn imported_function(&self, address: u64) -> Option<&'data str> {
        let [_, slots] = self.dynamic.rela;
        // Linkers put them by address, but need not.
        let place = slots
            .binary_search_by_key(&address, |slot| slot.r_offset(ENDIAN))
            .ok()
            .or_else(|| slots.iter().position(|slot| slot.r_offset(ENDIAN) == address));
        match place {
            Some(place) => self.dynamic.name(slots[place].r_sym(ENDIAN, false)),
            None => match self.pointer(address)? {
                Pointer::Import(name) => Some(name),
                Pointer::Address(_) => None,
            },
        }
    }
}
