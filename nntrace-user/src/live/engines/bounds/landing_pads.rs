//! Landing pads: where exceptions continue in a function, to which no jump of it leads.
//!
//! Source: "C++ Exception Handling Tables" in the LSB and GCC's `gcc/except.cc`: the table of call sites of the area of
//! language-specific data that a function's call frames name.

use gimli::{EndianSlice, LittleEndian, Reader as _};

/// Encodings of pointers in DWARF that tables of call sites use (`DW_EH_PE_*`).
const OMITTED: u8 = 0xff;
const ULEB128: u8 = 0x01;
const UDATA4: u8 = 0x03;

/// Reads the landing pads of the function that begins at `start` from the begin of its area; `None` where it is not
/// understood.
pub(super) fn read(area: &[u8], start: u64) -> Option<Vec<u64>> {
    let mut area = EndianSlice::new(area, LittleEndian);
    // Where it is given, pads are not relative to the function: no compiler for Linux does that.
    if area.read_u8().ok()? != OMITTED {
        return None;
    }
    if area.read_u8().ok()? != OMITTED {
        let _types = area.read_uleb128().ok()?;
    }
    let encoding = area.read_u8().ok()?;
    let length = usize::try_from(area.read_uleb128().ok()?).ok()?;
    let mut sites = area.split(length).ok()?;
    let mut pads = Vec::new();
    while !sites.is_empty() {
        let mut number = || match encoding {
            ULEB128 => sites.read_uleb128().ok(),
            UDATA4 => sites.read_u32().ok().map(u64::from),
            _ => None,
        };
        let (_begin, _length, pad) = (number()?, number()?, number()?);
        let _action = sites.read_uleb128().ok()?;
        if pad != 0 {
            pads.push(start.checked_add(pad)?);
        }
    }
    Some(pads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_are_relative_to_the_function() {
        // Begin, length, pad and action of two sites; the second has no pad.
        let by_uleb128 = [OMITTED, OMITTED, ULEB128, 8, 0, 5, 0x20, 1, 5, 9, 0, 0];
        assert_eq!(read(&by_uleb128, 0x1000), Some(vec![0x1020]));
        let by_udata4 = [OMITTED, 0x9b, 0x30, UDATA4, 13, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1, 0, 0, 1];
        assert_eq!(read(&by_udata4, 0x1000), Some(vec![0x1100]));
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        let whole = [OMITTED, OMITTED, ULEB128, 4, 0, 5, 0x20, 1];
        assert!(read(&whole, 0).is_some());
        assert!((0..whole.len()).all(|length| read(&whole[..length], 0).is_none()));
        assert_eq!(read(&[0x1b, 0, 0, 0, 0, OMITTED, ULEB128, 0], 0), None);
        assert_eq!(read(&[OMITTED, OMITTED, 0x0b, 4, 0, 5, 0x20, 1], 0), None);
        assert_eq!(read(&whole, u64::MAX), None);
    }
}
