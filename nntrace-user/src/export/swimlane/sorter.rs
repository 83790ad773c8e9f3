//! Sections sorted by thread and begin, in bounded memory: stretches of them are sorted, written to a file without a name,
//! and merged from there.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write as _},
    os::unix::fs::FileExt as _,
    rc::Rc,
};

use nntrace_common::{layer::Tag, stack::Class};
use prost::Message;

use crate::model::section::{Mark, Section};

/// Sections that are sorted at once: about 16 MB.
const TOGETHER: usize = 1 << 16;
/// Bytes of a stretch that are read at once.
const READ: usize = 16 << 10;

/// Sections that come in the order of their ends.
pub(super) struct SectionSorter {
    together: usize,
    waiting: Vec<KeptSection>,
    /// Number of the next section.
    number: u64,
    threads: BTreeSet<(u32, u32)>,
    /// Sorted stretches, once there are any.
    file: Option<BufWriter<File>>,
    written: u64,
    /// Ends of the stretches in the file.
    ends: Vec<u64>,
    /// First failure; nothing is kept after it.
    failure: Option<io::Error>,
}

/// Section that is kept, in the form in which it is in the file.
#[derive(Clone, PartialEq, Message)]
struct KeptSection {
    #[prost(uint32, tag = "1")]
    pid: u32,
    #[prost(uint32, tag = "2")]
    tid: u32,
    #[prost(uint64, tag = "3")]
    begin: u64,
    /// Number in the order of ends.
    #[prost(uint64, tag = "4")]
    number: u64,
    #[prost(uint64, tag = "5")]
    end: u64,
    #[prost(uint64, tag = "6")]
    own: u64,
    #[prost(uint64, tag = "7")]
    exclusive: u64,
    #[prost(uint32, tag = "8")]
    depth: u32,
    #[prost(uint32, tag = "9")]
    tag: u32,
    #[prost(uint32, tag = "10")]
    class: u32,
    #[prost(uint64, tag = "11")]
    path: u64,
    #[prost(string, tag = "12")]
    name: String,
    #[prost(string, tag = "13")]
    attributes: String,
    #[prost(bool, tag = "14")]
    is_provisional: bool,
    /// Whether it is a mark that is no section: then its text is the name, and all else but its place is 0.
    #[prost(bool, tag = "15")]
    is_mark: bool,
    #[prost(uint32, tag = "16")]
    begin_sequence: u32,
    #[prost(uint32, tag = "17")]
    end_sequence: u32,
    #[prost(bool, tag = "18")]
    in_itself: bool,
}

/// Section or mark, as it is handed out.
pub(super) enum Sorted<'a> {
    Section(&'a Section<'a>),
    Mark(&'a Mark<'a>),
}

/// Order of sections: thread, begin, number in the order of begins where that is known, number in the order of ends.
type Key = (u32, u32, u64, u32, u64);

impl KeptSection {
    fn new(section: &Section<'_>, number: u64) -> Self {
        Self {
            pid: section.pid,
            tid: section.tid,
            begin: section.begin_ns,
            number,
            end: section.end_ns,
            own: section.own_ns,
            exclusive: section.exclusive_ns,
            depth: section.depth.into(),
            tag: section.tag.index().into(),
            class: section.class as u32,
            path: section.path,
            name: section.name.as_ref().to_owned(),
            attributes: section.attributes.as_ref().to_owned(),
            is_provisional: section.is_provisional,
            in_itself: section.in_itself,
            is_mark: false,
            begin_sequence: section.sequences.0,
            end_sequence: section.sequences.1,
        }
    }

    fn of_mark(mark: &Mark<'_>, number: u64) -> Self {
        let Mark { pid, tid, time, sequence, depth, ref payload } = *mark;
        Self {
            pid,
            tid,
            begin: time,
            end: time,
            begin_sequence: sequence,
            end_sequence: sequence,
            number,
            depth: depth.into(),
            name: payload.as_ref().to_owned(),
            is_mark: true,
            ..Self::default()
        }
    }

    fn key(&self) -> Key {
        (self.pid, self.tid, self.begin, self.begin_sequence, self.number)
    }

    /// Returns the section; all that were kept have one.
    fn section(&self) -> Option<Section<'_>> {
        Some(Section {
            pid: self.pid,
            tid: self.tid,
            begin_ns: self.begin,
            end_ns: self.end,
            own_ns: self.own,
            exclusive_ns: self.exclusive,
            depth: self.depth as u8,
            tag: Tag::from_index(self.tag as u8)?,
            class: Class::from_code(self.class as u8)?,
            path: self.path,
            name: Cow::Borrowed(&self.name),
            attributes: Cow::Borrowed(&self.attributes),
            is_provisional: self.is_provisional,
            in_itself: self.in_itself,
            sequences: (self.begin_sequence, self.end_sequence),
        })
    }
}

impl Default for SectionSorter {
    fn default() -> Self {
        Self::with_together(TOGETHER)
    }
}

impl SectionSorter {
    /// Creates a sorter that keeps this many sections in memory.
    pub(super) fn with_together(together: usize) -> Self {
        Self {
            together,
            waiting: Vec::new(),
            number: 0,
            threads: BTreeSet::new(),
            file: None,
            written: 0,
            ends: Vec::new(),
            failure: None,
        }
    }

    /// Takes a section. A failure shows at the end.
    pub(super) fn take(&mut self, section: &Section<'_>) {
        self.keep(KeptSection::new(section, self.number));
    }

    /// Takes a mark that is no section. A failure shows at the end.
    pub(super) fn mark(&mut self, mark: &Mark<'_>) {
        self.keep(KeptSection::of_mark(mark, self.number));
    }

    fn keep(&mut self, section: KeptSection) {
        if self.failure.is_some() {
            return;
        }
        self.threads.insert((section.pid, section.tid));
        self.waiting.push(section);
        self.number += 1;
        if self.waiting.len() >= self.together {
            self.failure = self.write().err();
        }
    }

    /// Writes a sorted stretch.
    fn write(&mut self) -> io::Result<()> {
        self.waiting.sort_unstable_by_key(KeptSection::key);
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        let mut bytes = Vec::new();
        for section in self.waiting.drain(..) {
            bytes.clear();
            section.encode_length_delimited(&mut bytes).map_err(io::Error::other)?;
            file.write_all(&bytes)?;
            self.written += bytes.len() as u64;
        }
        self.ends.push(self.written);
        Ok(())
    }

    /// Returns the threads of the sections.
    pub(super) fn threads(&self) -> &BTreeSet<(u32, u32)> {
        &self.threads
    }

    /// Hands out the sections and marks by thread and begin; those of one instant from the outside in, by the order of their ends.
    ///
    /// # Errors
    /// When the file could not be written or read.
    pub(super) fn sorted(mut self, mut take: impl FnMut(Sorted<'_>)) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.waiting.sort_unstable_by_key(KeptSection::key);
        let file =
            self.file.map(|file| file.into_inner().map_err(io::IntoInnerError::into_error)).transpose()?;
        let mut stretches: Vec<Stretch> = Vec::new();
        if let Some(file) = file.map(Rc::new) {
            let begins = [0].into_iter().chain(self.ends.iter().copied());
            let parts = begins.zip(self.ends.iter().copied());
            stretches.extend(parts.map(|(at, end)| {
                let part = FilePart { file: Rc::clone(&file), at, end };
                Stretch::Written(BufReader::with_capacity(READ, part))
            }));
        }
        stretches.push(Stretch::InMemory(self.waiting.into_iter()));
        let mut next = BinaryHeap::new();
        let mut sections: Vec<Option<KeptSection>> = Vec::new();
        for (place, stretch) in stretches.iter_mut().enumerate() {
            let section = stretch.next()?;
            next.extend(section.as_ref().map(|section| Reverse((section.key(), place))));
            sections.push(section);
        }
        let mut of_instant = Instant::default();
        while let Some(Reverse((_, place))) = next.pop() {
            let after = stretches[place].next()?;
            next.extend(after.as_ref().map(|section| Reverse((section.key(), place))));
            let Some(section) = std::mem::replace(&mut sections[place], after) else { continue };
            if of_instant.is_before(&section) {
                of_instant.hand_out(&mut take);
            }
            of_instant.add(section);
        }
        of_instant.hand_out(&mut take);
        Ok(())
    }
}

/// Sections and marks of one thread that begin in one instant, from the outside in.
#[derive(Default)]
struct Instant {
    all: Vec<KeptSection>,
    /// Places of those that are in no other.
    outermost: Vec<usize>,
}

impl Instant {
    /// Whether a section is of another thread or instant.
    fn is_before(&self, section: &KeptSection) -> bool {
        let instant = |section: &KeptSection| (section.pid, section.tid, section.begin);
        self.all.first().is_some_and(|first| instant(first) != instant(section))
    }

    /// Adds the next one by its key.
    fn add(&mut self, section: KeptSection) {
        let mut place = self.all.len();
        // By the order of ends: it contains those that ended before it, with more around them. A mark contains nothing.
        if section.begin_sequence == 0 && !section.is_mark {
            let is_inside = |place: &mut usize| self.all[*place].depth > section.depth;
            while let Some(inside) = self.outermost.pop_if(is_inside) {
                place = inside;
            }
        }
        self.outermost.push(place);
        self.all.insert(place, section);
    }

    fn hand_out(&mut self, take: &mut impl FnMut(Sorted<'_>)) {
        self.outermost.clear();
        for section in self.all.drain(..) {
            hand_out(&section, take);
        }
    }
}

fn hand_out(section: &KeptSection, take: &mut impl FnMut(Sorted<'_>)) {
    if section.is_mark {
        let KeptSection { pid, tid, begin, begin_sequence, depth, .. } = *section;
        take(Sorted::Mark(&Mark {
            pid,
            tid,
            time: begin,
            depth: depth as u8,
            sequence: begin_sequence,
            payload: Cow::Borrowed(&section.name),
        }));
    } else if let Some(section) = section.section() {
        take(Sorted::Section(&section));
    }
}

/// Sorted stretch.
enum Stretch {
    Written(BufReader<FilePart>),
    InMemory(std::vec::IntoIter<KeptSection>),
}

impl Stretch {
    fn next(&mut self) -> io::Result<Option<KeptSection>> {
        let reader = match self {
            Self::InMemory(sections) => return Ok(sections.next()),
            Self::Written(reader) => reader,
        };
        let Some(length) = read_length(reader)? else { return Ok(None) };
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        KeptSection::decode(&*bytes).map(Some).map_err(io::Error::other)
    }
}

/// Reads the length before a section; `None` at the end.
fn read_length(reader: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut bytes = Vec::new();
    for byte in reader.bytes() {
        let byte = byte?;
        bytes.push(byte);
        if byte < 0x80 {
            return prost::decode_length_delimiter(&*bytes).map(Some).map_err(io::Error::other);
        }
    }
    Ok(None)
}

/// Part of a file that others read, too.
struct FilePart {
    file: Rc<File>,
    at: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
