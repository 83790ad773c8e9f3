//! Notes on probes in a file, in the format of SystemTap's `sys/sdt.h`: unlike symbols, they outlive `strip`.

use object::read::elf::{FileHeader as _, SectionHeader as _};

use super::{ENDIAN, Elf, ElfErrorReason};

/// Section of the notes.
const NOTES: &[u8] = b".note.stapsdt";
/// Section whose address shows whether the file was moved after its notes were written.
const BASE: &[u8] = b".stapsdt.base";
/// Type of a note on a probe.
const PROBE: u32 = 3;
/// Description in a mark function's note: provider, name, and the argument that holds the text.
const MARK: &[u8] =
    if cfg!(target_arch = "aarch64") { b"nntrace\0mark\08@x0\0" } else { b"nntrace\0mark\08@%rdi\0" };
/// Description in the note of the function that offers lanes: provider, name, descriptor and key.
const LANE: &[u8] = if cfg!(target_arch = "aarch64") {
    b"nntrace\0lane\0-8@x0 8@x1\0"
} else {
    b"nntrace\0lane\0-8@%rdi 8@%rsi\0"
};

/// Probe in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live::target) struct Note {
    /// Address of the probe.
    pub(in crate::live::target) address: u64,
    /// Address of its semaphore; 0 for none.
    pub(in crate::live::target) semaphore: u64,
}

impl Elf<'_> {
    /// Returns the mark functions in the notes that `nntrace.h` and `nntrace_common::emit` write.
    pub(in crate::live::target) fn mark_notes(&self) -> Result<Vec<Note>, ElfErrorReason> {
        self.notes_of(MARK)
    }

    /// Returns the functions that offer lanes, by such notes.
    pub(in crate::live::target) fn lane_notes(&self) -> Result<Vec<Note>, ElfErrorReason> {
        self.notes_of(LANE)
    }

    /// Returns the probes of a description.
    ///
    /// A note has three addresses (the probe's; that of [`BASE`] when the note was written, for prelink, which moves
    /// code and not notes; the semaphore's), then the strings of the description. A damaged note ends the list, since most
    /// notes are foreign.
    fn notes_of(&self, description: &[u8]) -> Result<Vec<Note>, ElfErrorReason> {
        let sections = self.header.sections(ENDIAN, self.data)?;
        let Some((_, notes)) = sections.section_by_name(ENDIAN, NOTES) else {
            return Ok(Vec::new());
        };
        let base = sections.section_by_name(ENDIAN, BASE).map(|(_, base)| base.sh_addr(ENDIAN));
        let mut found = Vec::new();
        let Ok(Some(mut notes)) = notes.notes(ENDIAN, self.data) else {
            return Ok(found);
        };
        while let Ok(Some(note)) = notes.next() {
            let is_probe = note.name() == b"stapsdt" && note.n_type(ENDIAN).0 == PROBE;
            if let Some((addresses, words)) = note.desc().split_first_chunk::<24>()
                && is_probe
                && words.starts_with(description)
            {
                let (addresses, _) = addresses.as_chunks::<8>();
                let [address, written, semaphore] =
                    [addresses[0], addresses[1], addresses[2]].map(u64::from_ne_bytes);
                let moved = base.map_or(0, |base| base.wrapping_sub(written));
                let semaphore = if semaphore == 0 { 0 } else { semaphore.wrapping_add(moved) };
                found.push(Note { address: address.wrapping_add(moved), semaphore });
            }
        }
        Ok(found)
    }
}
