//! Files that a guest wrote in sequence: a line with name and length each, then the content.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

/// Writes each of them into `folder`.
pub fn unpack(stream: &Path, folder: &Path) -> Result<()> {
    let bytes = fs::read(stream).unwrap_or_default();
    for (name, content) in split(&bytes)? {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}

fn split(mut bytes: &[u8]) -> Result<Vec<(&str, &[u8])>> {
    let mut files = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|&byte| byte == b'\n').context("the guest's files end in a name")?;
        let line = str::from_utf8(&bytes[..end]).context("the guest's files are garbled")?;
        let (name, length) = line.rsplit_once(' ').with_context(|| format!("no file: {line}"))?;
        ensure!(!name.contains('/'), "the guest names a file {name}");
        let length: usize = length.parse().with_context(|| format!("no length: {line}"))?;
        let content = bytes.get(end + 1..end + 1 + length).with_context(|| format!("{name} is cut"))?;
        files.push((name, content));
        bytes = &bytes[end + 1 + length..];
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_each_other() {
        let files = split(b"a 3\nx\nyb.txt 0\n").unwrap();
        assert_eq!(files, [("a", &b"x\ny"[..]), ("b.txt", b"")]);
        assert!(split(b"a 4\nx\ny").is_err());
        assert!(split(b"../a 0\n").is_err());
    }
}
