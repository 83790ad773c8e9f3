//! Debian's busybox: the tools of a VM without any others.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{
    arch::Arch,
    debian::{self, Debian},
    vm::cpio::{Archive, Node},
};

/// Path of the program, also in its package.
const BUSYBOX: &str = "bin/busybox";

/// Statically linked program.
pub struct Busybox(Vec<u8>);

impl Busybox {
    /// Returns the cached program, else Debian's.
    ///
    /// # Errors
    /// When it is not available.
    pub fn get(arch: Arch) -> Result<Self> {
        let path = debian::cache()?.join(format!("busybox-{arch}"));
        fs::read(&path).or_else(|_| fetch(arch, &path)).map(Self)
    }

    /// Adds the program, and links with the names of these tools.
    pub fn add(&self, tools: &[&str], archive: &mut Archive) {
        archive.add(BUSYBOX, Node::File { content: self.0.clone(), executable: true });
        for tool in tools {
            archive.add(&format!("bin/{tool}"), Node::Link("busybox".into()));
        }
    }
}

fn fetch(arch: Arch, path: &Path) -> Result<Vec<u8>> {
    let debian = Debian::open()?;
    let package = debian.download(&format!("busybox-static:{}", arch.debian()))?;
    let mut program = Vec::new();
    package.files(|path, content| {
        // Newer releases of Debian have it under /usr.
        if path.ends_with(BUSYBOX) {
            content.read_to_end(&mut program)?;
        }
        Ok(())
    })?;
    ensure!(!program.is_empty(), "{} has no {BUSYBOX}", package.name());
    // Only a complete file gets the final name.
    let draft = path.with_extension("new");
    fs::write(&draft, &program).and_then(|()| fs::rename(&draft, path)).context(BUSYBOX)?;
    Ok(program)
}
