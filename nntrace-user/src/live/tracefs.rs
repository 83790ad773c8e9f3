//! The kernel's descriptions of its trace events.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use nix::sys::statfs::{TRACEFS_MAGIC, statfs};

use super::privilege;

/// Mount points of tracefs, preferred first.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the mount point of tracefs that this user may read; `None` when there is none.
#[must_use]
pub(crate) fn mount_point() -> Option<PathBuf> {
    MOUNTS.iter().map(PathBuf::from).find(|mount| mount.join("events").is_dir())
}

/// Command that mounts tracefs.
pub(crate) const MOUNT: &str = "sudo mount -t tracefs tracefs /sys/kernel/tracing";

/// Returns the mount point of tracefs, whether this user may read it or not.
pub(crate) fn mounted() -> Option<&'static str> {
    let is_tracefs =
        |mount: &&str| statfs(*mount).is_ok_and(|found| found.filesystem_type() == TRACEFS_MAGIC);
    MOUNTS.into_iter().find(is_tracefs)
}

/// Returns the reason why there is no [`mount_point`], and a remedy.
#[must_use]
pub(crate) fn lacking() -> String {
    match mounted() {
        Some(mount) => format!(
            "tracefs is mounted on {mount}, but this user may not read it; run with `sudo`, or {}",
            privilege::setcap()
        ),
        None => format!("tracefs is not mounted; `{MOUNT}`"),
    }
}

/// Returns the offset of a field in the record of an event, bytes. `event` is `group/name`.
///
/// # Errors
/// When tracefs is not mounted or may not be read, or the kernel has no such event or field.
pub fn field_offset(event: &str, field: &str) -> io::Result<u32> {
    let mount = mount_point().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, lacking()))?;
    let path = mount.join("events").join(event).join("format");
    let text = fs::read_to_string(&path)?;
    parse_offset(&text, field).ok_or_else(|| missing(&path, field))
}

fn missing(path: &Path, field: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} describes no field `{field}`", path.display()))
}

/// Parses `offset:N` of a field in the text of a `format` file.
fn parse_offset(text: &str, field: &str) -> Option<u32> {
    text.lines().filter_map(|line| line.trim().strip_prefix("field:")).find_map(|line| {
        let mut parts = line.split(';');
        let declared = parts.next()?.rsplit([' ', '*']).next()?;
        if declared.split('[').next() != Some(field) {
            return None;
        }
        parts.find_map(|part| part.trim().strip_prefix("offset:")?.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORK: &str = "\
name: sched_process_fork
ID: 300
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:__data_loc char[] parent_comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t parent_pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:char child_comm[16];\toffset:16;\tsize:16;\tsigned:0;
\tfield:pid_t child_pid;\toffset:32;\tsize:4;\tsigned:1;
";

    #[test]
    fn offsets_come_from_the_format() {
        assert_eq!(parse_offset(FORK, "child_pid"), Some(32));
        assert_eq!(parse_offset(FORK, "child_comm"), Some(16));
        assert_eq!(parse_offset(FORK, "common_type"), Some(0));
        assert_eq!(parse_offset(FORK, "pid"), None);
    }
}
