//! The packed program, in a VM whose root has busybox and nothing else: no library, no compiler, no tool that it
//! might have relied on.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;

use crate::{
    arch::Arch,
    debian,
    vm::{
        board::Board,
        busybox::Busybox,
        cpio::{Archive, Node},
        kernel::{Kernel, Version},
        machine::{End, First, Machine, SEED},
    },
};

/// First process: the checks.
const SCRIPT: &[u8] = include_bytes!("../../vm/bare.sh");
/// Path of the first process.
const INIT: &str = "/init";

/// Checks the contents of an archive (`.tar.gz`) for this architecture.
///
/// # Errors
/// When a check fails, with the last lines of the console; when Debian's kernel or busybox is not available.
pub fn run(arch: Arch, packed: &[u8]) -> Result<()> {
    let kernel = Kernel::get(arch, Version::V6_1)?;
    let mut archive = Archive::default();
    Busybox::get(arch)?.add(&[], &mut archive);
    archive.add(INIT, Node::File { content: SCRIPT.to_vec(), executable: true });
    unpack(packed, &mut archive)?;
    let archive = archive.bytes();
    let name = format!("bare-{arch}");
    let board = if arch == Arch::X86_64 { Board::Plain } else { Board::Lab };
    let first = First { path: INIT, words: &[], name: "bare", passed: "all passed", end: End::PowerOff };
    let machine =
        Machine { arch, board, threads: false, seed: SEED, kernel: &kernel, archive: &archive, first };
    machine.run(&debian::cache()?.join("runs").join(name))
}

/// Adds the files of a packed archive.
fn unpack(packed: &[u8], into: &mut Archive) -> Result<()> {
    let mut files = tar::Archive::new(GzDecoder::new(packed));
    for file in files.entries()? {
        let mut file = file?;
        if !file.header().entry_type().is_file() {
            continue;
        }
        let path = file.path()?.to_string_lossy().into_owned();
        let executable = file.header().mode()? & 0o111 != 0;
        let mut content = Vec::new();
        file.read_to_end(&mut content).with_context(|| path.clone())?;
        into.add(&path, Node::File { content, executable });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::tree::Tree;

    #[test]
    fn what_was_packed_is_there_and_programs_can_be_run() {
        let mut tree = Tree::new(7);
        tree.add("a/program".into(), b"1", true);
        tree.add("a/b/text".into(), b"2", false);
        let (mut unpacked, mut wanted) = (Archive::default(), Archive::default());
        unpack(&tree.packed().unwrap(), &mut unpacked).unwrap();
        wanted.add("a/program", Node::File { content: b"1".to_vec(), executable: true });
        wanted.add("a/b/text", Node::File { content: b"2".to_vec(), executable: false });
        assert_eq!(unpacked.bytes(), wanted.bytes());
        assert!(unpack(b"no archive", &mut unpacked).is_err());
    }
}
