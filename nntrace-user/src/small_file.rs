//! Small files that others may have made: read whole, up to a size that no such file has.

use std::{
    io::{self, Read as _},
    path::Path,
};

use crate::caller;

/// Bytes of a description at most: a topology, an energy model, an engine map.
pub const DESCRIPTION: u64 = 1 << 20;

/// Reads a file of this many bytes at most.
///
/// # Errors
/// When it cannot be read, or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    caller::open(path)?.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let most = if most < 1 << 20 { format!("{} KiB", most >> 10) } else { format!("{} MiB", most >> 20) };
        return Err(io::Error::other(format!("it is larger than {most}, which no such file is")));
    }
    Ok(content)
}

/// Reads a file of text, of this many bytes at most.
///
/// # Errors
/// As of [`read`], and when it is no UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        io::Error::other(format!("line {line}: expected text, found bytes that are not UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_are_refused() {
        assert!(read(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string().contains("larger than 1 MiB"));
        assert_eq!(read(Path::new("/dev/null"), 0).unwrap(), b"");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"a\nb\xff").unwrap();
        assert!(read_text(&path, 4).unwrap_err().to_string().starts_with("line 2: "));
        assert_eq!(read(&path, 4).unwrap().len(), 4);
        assert!(read(&path, 3).is_err());
    }
}
