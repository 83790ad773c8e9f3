//! Names of threads, by id and, where two processes had an id one after the other, by process.

use rustc_hash::FxHashMap;

/// Last known name of each thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadNameTable {
    last: FxHashMap<u32, Entry>,
    /// Names of threads whose id another process's thread got, by id and process.
    former: FxHashMap<(u32, u32), Box<[u8]>>,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    /// Process; `None` while no event gives it.
    tgid: Option<u32>,
    comm: Box<[u8]>,
}

impl ThreadNameTable {
    /// Creates a table without names that keeps the first `most` threads.
    #[must_use]
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Whether a thread with this id has a name.
    #[must_use]
    #[inline]
    pub(crate) fn has(&self, tid: u32) -> bool {
        self.last.contains_key(&tid)
    }

    /// Sets the name of a thread, of this process where the event gives it.
    #[inline]
    pub(crate) fn set(&mut self, tid: u32, tgid: Option<u32>, comm: &[u8]) {
        let is_full = self.last.len() + self.former.len() >= self.most;
        let Some(known) = self.last.get_mut(&tid) else {
            if !is_full {
                self.last.insert(tid, Entry { tgid, comm: comm.into() });
            }
            return;
        };
        if let (Some(before), Some(now)) = (known.tgid, tgid)
            && before != now
            && !is_full
        {
            let comm = std::mem::take(&mut known.comm);
            self.former.insert((tid, before), comm);
        }
        known.tgid = tgid.or(known.tgid);
        if *known.comm != *comm {
            known.comm = comm.into();
        }
    }

    /// Returns the name of a thread: the last one of its id, or, where `tgid` is a process that had the id before, the last one
    /// there.
    #[must_use]
    pub(crate) fn get(&self, tid: u32, tgid: Option<u32>) -> Option<String> {
        let is_of_other = |last: &Entry| last.tgid.zip(tgid).is_some_and(|(last, tgid)| last != tgid);
        let comm = match self.last.get(&tid) {
            Some(last) if !is_of_other(last) => &last.comm,
            _ => self.former.get(&(tid, tgid?))?,
        };
        Some(String::from_utf8_lossy(comm).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_keeps_the_name_of_its_thread() {
        let mut names = ThreadNameTable::new(10);
        names.set(7, None, b"early");
        assert_eq!(names.get(7, Some(100)).as_deref(), Some("early"));
        names.set(7, Some(100), b"first");
        names.set(7, None, b"renamed");
        names.set(7, Some(200), b"second");
        assert_eq!(names.get(7, Some(100)).as_deref(), Some("renamed"));
        assert_eq!(names.get(7, Some(200)).as_deref(), Some("second"));
        assert_eq!(names.get(7, None).as_deref(), Some("second"));
        assert_eq!(names.get(7, Some(300)), None);
        assert_eq!(names.get(8, None), None);
        assert!(names.has(7) && !names.has(8));
    }

    #[test]
    fn a_full_table_keeps_what_it_has() {
        let mut names = ThreadNameTable::new(1);
        names.set(7, Some(100), b"first");
        names.set(8, Some(100), b"other");
        names.set(7, Some(200), b"second");
        assert_eq!(names.get(8, None), None);
        assert_eq!(names.get(7, Some(200)).as_deref(), Some("second"));
    }
}
