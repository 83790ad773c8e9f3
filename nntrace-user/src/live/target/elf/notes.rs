//! Probes that a file tells of in notes, in the form of SystemTap's `sys/sdt.h`: they outlive `strip`, which symbols do
//! not.

use object::ReadRef;
use object::read::elf::{FileHeader as _, SectionHeader as _};

use super::{ENDIAN, Elf, ElfErrorReason};

/// The section of the notes.
const NOTES: &[u8] = b".note.stapsdt";
/// The section whose address tells whether the file was moved after its notes were written.
const BASE: &[u8] = b".stapsdt.base";
/// The type of a note that tells of a probe.
const PROBE: u32 = 3;
/// What a mark function's note says: provider, name, and the argument that holds the text.
const MARK: &[u8] =
    if cfg!(target_arch = "aarch64") { b"nntrace\0mark\08@x0\0" } else { b"nntrace\0mark\08@%rdi\0" };

impl<'data, R: ReadRef<'data>> Elf<'data, R> {
    /// The addresses of mark functions by the notes that `nntrace.h` and `nntrace_common::emit` write.
    ///
    /// A note has three addresses (the probe's; that of [`BASE`] when the note was written, for prelink, which moves code
    /// and not notes; a semaphore's, which is not used), then the words of [`MARK`]. A damaged note ends the list: they
    /// are usually somebody else's.
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
