//! Packages in Debian's format (deb(5)): an `ar` archive of a version, a description and the files.

use std::fmt::Write as _;

use anyhow::Result;

use crate::{
    arch::Arch,
    dist::{NAME, VERSION, tree::Tree},
};

/// Maintainer of the package.
const MAINTAINER: &str = "The nntrace-bpf developers <nntrace-bpf@localhost>";

/// Builds a package of these files.
pub fn package(arch: Arch, time: u64, files: &Tree) -> Result<Vec<u8>> {
    let size: usize = files.files().map(|(_, content)| content.len().div_ceil(1024)).sum();
    let control = format!(
        "Package: {NAME}\nVersion: {VERSION}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n\
         Section: devel\nPriority: optional\n\
         Description: where the time of a neural network goes\n \
         Shows in which layer and phase of the neural-network stack a process spends its\n \
         time, and what CPUs and clusters did meanwhile: idle states, frequencies.\n \
         One static program; it needs Linux 5.8 or newer with BPF.\n",
        arch = arch.debian(),
    );
    let mut sums = String::new();
    for (path, content) in files.files() {
        writeln!(sums, "{:x}  {path}", md5::compute(content))?;
    }
    let mut about = Tree::new(time);
    about.add("control".into(), control.as_bytes(), false);
    about.add("md5sums".into(), sums.as_bytes(), false);
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", about.packed()?),
        ("data.tar.gz", files.packed()?),
    ] {
        member(&mut archive, name, time, &content);
    }
    Ok(archive)
}

/// Adds a member to an `ar` archive: name, time, user, group, mode and length in columns, then the content, of even
/// length.
fn member(archive: &mut Vec<u8>, name: &str, time: u64, content: &[u8]) {
    archive.extend(
        format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", content.len()).bytes(),
    );
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(2), b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_headers_of_sixty_bytes_and_are_padded() {
        let mut archive = Vec::new();
        member(&mut archive, "a", 5, b"123");
        let header = "a               5           0     0     100644  3         `\n";
        assert_eq!(String::from_utf8(archive).unwrap(), format!("{header}123\n"));
        assert_eq!(header.len(), 60);
    }
}
