//! `/proc/<pid>/maps`: the mappings of a process, line by line.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const DELETED: &[u8] = b" (deleted)";

/// Mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Offset of the mapping in the file.
    pub offset: u64,
    /// Device, (major, minor), as shown in maps: on btrfs and overlayfs not the one that `stat` returns.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Path as printed, without the escapes, with ` (deleted)` if it ends so.
    pub path: PathBuf,
}

impl Mapping {
    /// Returns the path without a final ` (deleted)`. A file may really be called that: only its inode shows.
    #[must_use]
    pub(crate) fn path_before_deletion(&self) -> Option<&Path> {
        let path = self.path.as_os_str().as_bytes().strip_suffix(DELETED)?;
        Some(Path::new(OsStr::from_bytes(path)))
    }
}

/// Parses the executable mappings of files in the text of a maps file. Other lines are skipped.
///
/// Paths are bytes, and are read to the end of the line: they may hold spaces, and need not be UTF-8.
pub(crate) fn executable(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    of_files(maps, |perms| perms.contains(&b'x'))
}

/// Parses the mappings of files that can be read and not written, executable or not.
pub(crate) fn read_only(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    of_files(maps, |perms| perms.contains(&b'r') && !perms.contains(&b'w'))
}

/// Parses the mappings of files that the process has to itself, and can write to.
pub(crate) fn own_writable(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    of_files(maps, |perms| perms.contains(&b'w') && perms.contains(&b'p'))
}

/// Parses the mappings of all files.
pub(super) fn all(maps: &[u8]) -> impl Iterator<Item = Mapping> {
    of_files(maps, |_| true)
}

fn of_files(maps: &[u8], wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Mapping> {
    maps.split(|&byte| byte == b'\n').filter_map(parse).filter_map(move |(perms, mapping)| {
        let is_file = mapping.inode != 0 && mapping.path.is_absolute();
        (wanted(perms) && is_file).then_some(mapping)
    })
}

/// Parses `start-end perms offset major:minor inode   path`: the permissions and the rest.
fn parse(line: &[u8]) -> Option<(&[u8], Mapping)> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (field, tail) = rest.split_at(end);
        rest = tail.strip_prefix(b" ").unwrap_or(tail);
        field
    };
    let (range, perms, offset, device, inode) = (field(), field(), field(), field(), field());
    let (start, end) = pair(range, '-')?;
    let (major, minor) = pair(device, ':')?;
    let mapping = Mapping {
        start,
        end,
        offset: hex(offset)?,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode: str::from_utf8(inode).ok()?.parse().ok()?,
        path: unescape(rest.trim_ascii_start()),
    };
    Some((perms, mapping))
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn pair(text: &[u8], separator: char) -> Option<(u64, u64)> {
    let (left, right) = str::from_utf8(text).ok()?.split_once(separator)?;
    Some((hex(left.as_bytes())?, hex(right.as_bytes())?))
}

/// Undoes the escapes of a path: the kernel writes a newline as `\012`, and escapes nothing else here.
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"\\012") {
            bytes.push(b'\n');
            rest = tail;
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Mapping {
        let found: Vec<_> = executable(line.as_bytes()).collect();
        assert_eq!(found.len(), 1, "{line}");
        found[0].clone()
    }

    #[test]
    fn a_usual_line() {
        let mapping = only("55d0c0-55d0d5 r-xp 00002000 fe:01 1441799                    /usr/bin/app");
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x55_d0c0, 0x55_d0d5, 0x2000));
        assert_eq!((mapping.device, mapping.inode), ((0xfe, 1), 1_441_799));
        assert_eq!(mapping.path, Path::new("/usr/bin/app"));
        assert_eq!(mapping.path_before_deletion(), None);
    }

    #[test]
    fn odd_paths() {
        for (text, path, before) in [
            ("/opt/my app/lib  two.so", "/opt/my app/lib  two.so", None),
            ("/opt/new\\012line.so", "/opt/new\nline.so", None),
            ("/opt/gone.so (deleted)", "/opt/gone.so (deleted)", Some("/opt/gone.so")),
            ("/memfd:jit (deleted)", "/memfd:jit (deleted)", Some("/memfd:jit")),
            ("/a\\b (deleted) (deleted)", "/a\\b (deleted) (deleted)", Some("/a\\b (deleted)")),
            ("/tail ", "/tail ", None),
        ] {
            let mapping = only(&format!("1000-2000 r-xp 00000000 00:1f 7 {text}"));
            assert_eq!(mapping.path, Path::new(path));
            assert_eq!(mapping.path_before_deletion(), before.map(Path::new));
        }
    }

    #[test]
    fn a_path_that_is_not_text() {
        let found: Vec<_> = executable(b"1000-2000 r-xp 0 00:1f 7 /lib\xff.so").collect();
        assert_eq!(found[0].path.as_os_str().as_bytes(), b"/lib\xff.so");
    }

    #[test]
    fn what_is_no_executable_file_is_left_out() {
        let text = "1000-2000 r--p 00000000 fe:01 7 /usr/bin/app\n\
                    2000-3000 rwxp 00000000 00:00 0 \n\
                    3000-4000 rwxp 00000000 00:00 0\n\
                    4000-5000 r-xp 00000000 00:00 0                   [vdso]\n\
                    5000-6000 r-xp 00000000 00:0b 9 anon_inode:[perf_event]\n\
                    nonsense\n\
                    -- r-xp zz fe:01 7 /x\n\
                    6000-7000 r-xp 00000000 fe:01 -7 /x\n\n";
        assert_eq!(executable(text.as_bytes()).count(), 0);
    }

    #[test]
    fn literals_are_where_nothing_can_be_written() {
        let text = "1000-2000 r--p 00000000 fe:01 7 /usr/bin/app\n\
                    2000-3000 r-xp 00001000 fe:01 7 /usr/bin/app\n\
                    3000-4000 rw-p 00002000 fe:01 7 /usr/bin/app\n\
                    4000-5000 ---p 00003000 fe:01 7 /usr/bin/app\n\
                    5000-6000 r--p 00000000 00:00 0 [vvar]\n";
        let starts: Vec<u64> = read_only(text.as_bytes()).map(|mapping| mapping.start).collect();
        assert_eq!(starts, [0x1000, 0x2000]);
    }

    #[test]
    fn data_is_where_a_process_writes_to_its_own_copy() {
        let text = "1000-2000 r-xp 00001000 fe:01 7 /usr/bin/app\n\
                    2000-3000 rw-p 00002000 fe:01 7 /usr/bin/app\n\
                    3000-4000 rw-s 00002000 fe:01 7 /usr/bin/app\n\
                    4000-5000 rw-p 00000000 00:00 0 [heap]\n";
        let starts: Vec<u64> = own_writable(text.as_bytes()).map(|mapping| mapping.start).collect();
        assert_eq!(starts, [0x2000]);
    }

    #[test]
    fn any_bytes_are_survived() {
        let line = b"55d0c0-55d0d5 r-xp 00002000 fe:01 1441799 /usr/bin/app";
        for cut in 0..line.len() {
            let _ = executable(&line[..cut]).count();
            let _ = executable(&line[cut..]).count();
        }
    }
}
