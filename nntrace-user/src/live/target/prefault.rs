//! Bringing the literals of a program into its memory, where its probes cannot wait for page faults.

use std::{io::IoSliceMut, path::Path};

use nix::{
    sys::uio::{RemoteIoVec, process_vm_readv},
    unistd::Pid,
};

use super::{
    proc_maps,
    process::{ProcessError, Processes},
};

/// Size of the smallest page, bytes.
const PAGE: u64 = 4096;
/// Pages read by one system call at most.
const BATCH: usize = 1024;
/// Bytes of a process that are read at most: a model may lie beside the literals.
const MOST: u64 = 64 << 20;

/// Reads a byte of each page that a process has mapped read-only from these files, given by its own paths, so that a
/// probe in it finds the page in memory afterwards. Returns the number of bytes that exceeded the limit and were left
/// out.
///
/// # Errors
/// When the process is gone, or may not be inspected.
pub(crate) fn touch_literals(processes: &Processes, pid: u32, files: &[&Path]) -> Result<u64, ProcessError> {
    let maps = processes.maps(pid)?;
    let (mut left, mut left_out) = (MOST, 0);
    for mapping in proc_maps::read_only(&maps).filter(|mapping| files.contains(&mapping.path.as_path())) {
        let length = mapping.end.saturating_sub(mapping.start);
        let touched = length.min(left);
        left -= touched;
        left_out += length - touched;
        touch(Pid::from_raw(pid.cast_signed()), mapping.start, mapping.start + touched);
    }
    Ok(left_out)
}

/// Reads a byte of each page of a range. A page that cannot be read, as after the end of its file, is skipped.
fn touch(pid: Pid, start: u64, end: u64) {
    let mut pages: Vec<RemoteIoVec> = (start..end)
        .step_by(PAGE as usize)
        .filter_map(|page| Some(RemoteIoVec { base: usize::try_from(page).ok()?, len: 1 }))
        .collect();
    let mut bytes = [0; BATCH];
    while !pages.is_empty() {
        let count = pages.len().min(BATCH);
        let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes[..count])], &pages[..count]);
        // The system call stops at the first page that cannot be read.
        let done = match read {
            Ok(read) if read == count => count,
            Ok(read) => read + 1,
            Err(nix::Error::EFAULT) => 1,
            // The process is gone, or not accessible to us: its unreadable marks are counted as such.
            Err(_) => return,
        };
        pages.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Write as _},
        process::{Command, Stdio},
    };

    use super::*;

    /// Returns the resident KiB of the mappings of a file.
    fn resident(pid: u32, path: &Path) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
        let mut sum = 0;
        let mut is_ours = false;
        for line in smaps.lines() {
            if line.split(' ').next().is_some_and(|first| first.contains('-')) {
                is_ours = line.ends_with(path.to_str().unwrap());
            } else if let Some(rss) = line.strip_prefix("Rss:").filter(|_| is_ours) {
                sum += rss.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn pages_of_the_files_that_are_named_are_there_afterwards() {
        // A copy of a program that maps itself, and does nothing for a while.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("waiting");
        std::fs::copy("/bin/cat", &path).unwrap();
        // After the end of the mapped part: without effect.
        File::options().append(true).open(&path).unwrap().write_all(&[0; 64]).unwrap();
        let mut child = Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        stdin.write_all(b"x").unwrap();
        stdout.read_exact(&mut [0]).unwrap();

        let processes = Processes::default();
        let maps = processes.maps(child.id()).unwrap();
        let all: u64 = proc_maps::read_only(&maps)
            .filter(|mapping| mapping.path == path)
            .map(|mapping| (mapping.end - mapping.start) / 1024)
            .sum();
        assert_eq!(touch_literals(&processes, child.id(), &[]).unwrap(), 0);
        assert_eq!(touch_literals(&processes, child.id(), &[path.as_path()]).unwrap(), 0);
        assert!(all > 0 && resident(child.id(), &path) >= all, "{} of {all} kB", resident(child.id(), &path));
        drop(stdin);
        child.wait().unwrap();
        assert!(touch_literals(&processes, child.id(), &[]).is_err());
    }
}
