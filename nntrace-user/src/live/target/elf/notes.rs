//! Notes on probes in a file, in the format of SystemTap's `sys/sdt.h`: unlike symbols, they outlive `strip`.

use object::ReadRef;
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

impl<'data, R: ReadRef<'data>> Elf<'data, R> {
    /// Returns the addresses of mark functions from the notes that `nntrace.h` and `nntrace_common::emit` write.
    ///
    /// A note has three addresses (the probe's; that of [`BASE`] when the note was written, for prelink, which moves
    /// code and not notes; a semaphore's, which is not used), then the strings of [`MARK`]. A damaged note ends the
    /// list, since most notes are foreign.
    pub(in crate::live::target) fn mark_notes(&self) -> Result<Vec<u64>, ElfErrorReason> {
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
                && words.starts_with(MARK)
            {
                let (addresses, _) = addresses.as_chunks::<8>();
                let [address, written] = [addresses[0], addresses[1]].map(u64::from_ne_bytes);
                let moved = base.map_or(0, |base| base.wrapping_sub(written));
                found.push(address.wrapping_add(moved));
            }
        }
        Ok(found)
    }
}
