//! Debian's busybox: the tools of a machine that has no others.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{
    arch::Arch,
    debian::{self, Debian},
    vm::cpio::{Archive, Node},
};

/// Where it lies, in its package too.
const BUSYBOX: &str = "bin/busybox";

/// Adds it, and these tools by their names.
///
/// # Errors
/// When it cannot be had.
pub fn add(arch: Arch, tools: &[&str], archive: &mut Archive) -> Result<()> {
    archive.add(BUSYBOX, Node::File { content: program(arch)?, executable: true });
    for tool in tools {
        archive.add(&format!("bin/{tool}"), Node::Link("busybox".into()));
    }
    Ok(())
}

/// Debian's busybox, which needs no library.
fn program(arch: Arch) -> Result<Vec<u8>> {
    let path = debian::cache()?.join(format!("busybox-{arch}"));
    if let Ok(program) = fs::read(&path) {
        return Ok(program);
    }
    let package = Debian::open()?.download(&format!("busybox-static:{}", arch.debian()))?;
    let mut program = Vec::new();
    package.files(|path, content| {
        // Newer releases of Debian have it under /usr.
        if path.ends_with(BUSYBOX) {
            content.read_to_end(&mut program)?;
        }
        Ok(())
    })?;
    ensure!(!program.is_empty(), "{} has no {BUSYBOX}", package.name());
    // Only a whole one gets the name by which it is found.
    let draft = path.with_extension("new");
    fs::write(&draft, &program).and_then(|()| fs::rename(&draft, &path)).context(BUSYBOX)?;
    Ok(program)
}
