//! Trace files, compressed or not.

use std::{
    borrow::Cow,
    error::Error,
    fs::File,
    io::{self, BufReader, ErrorKind, IsTerminal as _, Read, Write as _},
    mem,
    os::unix::fs::FileTypeExt as _,
    path::Path,
    sync::Arc,
};

use thiserror::Error;

use super::{
    file_cursor::FileCursor,
    html,
    json_text::{JsonText, OtherEvents},
    perfetto::{self, Perfetto},
    recognition::{self, Foreign},
    tracedat::{self, Damage, TraceDat},
};
use crate::caller;
use packing::Packing;

mod packing;

/// Bytes at the start that are examined.
const HEAD: u64 = 16 * 1024;

/// Bytes at the start of a pipe that may all be NUL: a trace has other bytes before.
const MOST_NULS: u64 = 1 << 20;

/// Compressed bytes read at once.
const BUFFER: usize = 128 * 1024;

/// Packings of a file, one in another, that are unpacked at most.
const MOST_PACKINGS: usize = 4;

/// Reason why an input cannot be read.
#[derive(Debug, Error)]
pub enum InputError {
    /// The input cannot be opened.
    #[error("cannot open {name}: {reason}; check the path and its permissions")]
    Open {
        /// Name of the input.
        name: String,
        /// Error of the system.
        reason: io::Error,
    },
    /// The input is a directory.
    #[error(
        "{0} is a directory without a recording (no run.nnt); name a trace file, or a folder written by `record -o DIR`"
    )]
    Directory(String),
    /// The input is a device.
    #[error("{0} is a device, which has no end; give a trace file, or pipe one to `-`")]
    Device(String),
    /// The input begins with nothing but NULs.
    #[error("{0} begins with {MOST_NULS} bytes of NUL, so it is not a trace; was it written completely?")]
    Nuls(String),
    /// An input that can be read only once cannot be copied for reading it again.
    #[error("cannot copy {name} to a temporary file: {reason}")]
    Copy {
        /// Name of the input.
        name: String,
        /// Error of the system.
        reason: io::Error,
    },
    /// Reading fails.
    #[error("cannot read {name}: {reason}")]
    Read {
        /// Name of the input.
        name: String,
        /// Error of the system.
        reason: io::Error,
    },
    /// The compressed data ends early or is invalid.
    #[error("the compressed data is damaged after {decoded} bytes of text: {reason}")]
    Damaged {
        /// Bytes of text decoded before.
        decoded: u64,
        /// Error of the decoder.
        reason: io::Error,
    },
    /// The input is packed, what is in it is packed, and so on.
    #[error("{0} is packed more than {MOST_PACKINGS} times: unpack it, and give the trace that is in it")]
    PackedTooOften(String),
    /// The file is of a kind that is not read.
    #[error("{name} is {what}: {remedy}")]
    Foreign {
        /// Name of the input.
        name: String,
        /// Kind of the file.
        what: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// The file begins like trace-cmd's binary file, but no event in it can be read.
    #[error("cannot read {name} as trace-cmd's trace.dat: {damage}")]
    TraceDat {
        /// Name of the input.
        name: String,
        /// Kind and place of the damage.
        damage: Damage,
    },
}

/// File or standard input, to be read as often as needed.
#[derive(Debug)]
pub(crate) struct Input {
    name: String,
    file: Arc<File>,
    /// Packings, from the file's own to the innermost.
    packings: Vec<Packing>,
    /// Events beside the text in a JSON; `None` of any other input.
    json: Option<OtherEvents>,
    head: Vec<u8>,
    contents: Contents,
}

/// Kind of an input, with what its events need of a binary file.
#[derive(Debug, Default)]
pub(crate) enum Contents {
    /// Lines.
    #[default]
    Text,
    /// trace-cmd's binary file.
    Dat(Box<TraceDat>),
    /// Trace of Perfetto.
    Perfetto(Box<Perfetto>),
}

impl Input {
    /// Opens a file, or standard input for `-`. Pipes are copied to a temporary file.
    ///
    /// # Errors
    /// When it cannot be opened, read or copied, or is a directory. Damaged data is no error yet.
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Self::copied("standard input".to_owned(), &mut io::stdin().lock());
        }
        let name = path.display().to_string();
        let opened = caller::open(path).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Err(reason) => Err(InputError::Open { name, reason }),
            Ok((metadata, _)) if metadata.is_dir() => Err(InputError::Directory(name)),
            Ok((metadata, file)) if metadata.is_file() && metadata.len() > 0 => Self::new(name, file),
            Ok((metadata, mut file)) if metadata.file_type().is_char_device() && !file.is_terminal() => {
                // Of the devices /dev/null alone has an end.
                match file.read(&mut [0; 1]) {
                    Ok(0) => Self::copied(name, &mut file),
                    _ => Err(InputError::Device(name)),
                }
            }
            Ok((metadata, _)) if metadata.file_type().is_block_device() => Err(InputError::Device(name)),
            // A pipe, or a file that the kernel generates: without a length, and different each time it is read.
            Ok((_, mut file)) => Self::copied(name, &mut file),
        }
    }

    /// Copies an input that can be read only once to a file that is gone when it is closed.
    fn copied(name: String, mut from: &mut dyn Read) -> Result<Self, InputError> {
        let mut first = Vec::new();
        let copy = (&mut from).take(MOST_NULS).read_to_end(&mut first).and_then(|_| tempfile::tempfile());
        if first.len() as u64 == MOST_NULS && first.iter().all(|&byte| byte == 0) {
            return Err(InputError::Nuls(name));
        }
        let copy = copy.and_then(|mut file| {
            file.write_all(&first)?;
            drop(mem::take(&mut first));
            io::copy(&mut from, &mut file).map(|_| file)
        });
        match copy {
            Ok(file) => Self::new(name, file),
            Err(reason) => Err(InputError::Copy { name, reason }),
        }
    }

    fn new(name: String, file: File) -> Result<Self, InputError> {
        let mut input = Self {
            name,
            file: Arc::new(file),
            packings: Vec::new(),
            json: None,
            head: Vec::new(),
            contents: Contents::Text,
        };
        input.head = match input.read_head() {
            (head, None) => head,
            (_, Some(error)) => {
                return Err(error
                    .downcast()
                    .unwrap_or_else(|reason| InputError::Read { name: input.name, reason }));
            }
        };
        input.unpack()?;
        if tracedat::is_trace_dat(&input.head) {
            input.contents = Contents::Dat(Box::new(input.open_dat()?));
        } else if perfetto::is_perfetto(&input.head) {
            input.contents = Contents::Perfetto(Box::new(Perfetto::open(input.reader())));
        } else {
            input.recognize()?;
        }
        Ok(input)
    }

    /// Finds the packings, one in another.
    fn unpack(&mut self) -> Result<(), InputError> {
        while let Some(packing) = Packing::of(&self.head) {
            if self.packings.len() == MOST_PACKINGS {
                return Err(InputError::PackedTooOften(self.name.clone()));
            }
            self.packings.push(packing);
            self.head = self.read_head().0;
        }
        Ok(())
    }

    /// Checks that the input is not a file of another tool. A JSON may have the text of a trace in it.
    fn recognize(&mut self) -> Result<(), InputError> {
        if let Some(foreign) = recognition::foreign(&self.head) {
            self.json = recognition::is_json(&self.head).then(OtherEvents::default);
            let head = if self.json.is_some() { self.read_head().0 } else { Vec::new() };
            if head.is_empty() {
                return Err(self.refused(foreign));
            }
            self.head = head;
        }
        if html::looks_like_html(&self.head) {
            return Ok(());
        }
        recognition::foreign_text(self.reader()).map_or(Ok(()), |foreign| Err(self.refused(foreign)))
    }

    /// Returns the error of an input of a kind that is not read.
    fn refused(&self, foreign: &Foreign) -> InputError {
        InputError::Foreign { name: self.name.clone(), what: foreign.what, remedy: foreign.remedy }
    }

    /// Opens a `trace.dat`; a compressed one is unpacked to a temporary file, as it is read at random.
    fn open_dat(&mut self) -> Result<TraceDat, InputError> {
        let mut damage = None;
        if !self.packings.is_empty() {
            let copy = tempfile::tempfile().and_then(|mut file| {
                match io::copy(&mut self.reader(), &mut file) {
                    // The part unpacked so far is there.
                    Err(error)
                        if error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<InputError>) =>
                    {
                        damage = Some(error.to_string());
                    }
                    copied => _ = copied?,
                }
                Ok(file)
            });
            match copy {
                Ok(file) => self.file = Arc::new(file),
                Err(reason) => return Err(InputError::Copy { name: self.name.clone(), reason }),
            }
            self.packings.clear();
        }
        TraceDat::open(Arc::clone(&self.file), damage)
            .map_err(|damage| InputError::TraceDat { name: self.name.clone(), damage })
    }

    /// Reads the first bytes, and returns the error that ended them, if any.
    fn read_head(&self) -> (Vec<u8>, Option<io::Error>) {
        let mut head = Vec::new();
        let error = self.reader().take(HEAD).read_to_end(&mut head).err();
        (head, error)
    }

    /// Returns the name for messages.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text's first bytes, up to 16 KiB, to recognize its kind; fewer where the data is damaged.
    #[must_use]
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the text's encoding, where no line can be read in it, and a remedy.
    #[must_use]
    pub(crate) fn encoding(&self) -> Option<&'static str> {
        let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\r".contains(byte);
        match self.head.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, b'#' | b' ', ..] | [b'#' | b' ', 0, ..] => {
                Some("is UTF-16, where UTF-8 was expected: `iconv -f UTF-16 -t UTF-8` converts it")
            }
            // Other control characters show that it is not text, and LF that it has lines.
            head if head.contains(&b'\r') && !head.iter().any(is_control) => {
                Some("has lines that end in CR alone, where LF was expected: `tr '\\r' '\\n'` converts them")
            }
            _ => None,
        }
    }

    /// Returns its kind, with what its events need.
    #[must_use]
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns the name of the clock of its times, if it is known.
    #[must_use]
    pub(crate) fn clock_name(&self) -> Option<Cow<'_, str>> {
        match &self.contents {
            Contents::Text => None,
            Contents::Dat(dat) => dat.clock_name().map(Cow::Borrowed),
            Contents::Perfetto(trace) => Some(trace.clock_name().into()),
        }
    }

    /// Whether it declares its window.
    #[must_use]
    pub(crate) fn declares_window(&self) -> bool {
        matches!(&self.contents, Contents::Perfetto(trace) if trace.declared().window.is_some())
    }

    /// Returns a note on events in it that are not read, once a reader has come to its end.
    #[must_use]
    pub(crate) fn note(&self) -> Option<String> {
        Some(format!("{}: {}", self.name, self.json.as_ref()?.note()?))
    }

    /// Reads the text from its start. Readers are independent of each other.
    ///
    /// Each of their errors contains an [`InputError`], and comes after everything that could be read.
    #[must_use]
    pub(crate) fn reader(&self) -> InputReader {
        let file: Box<dyn Read + Send> = Box::new(FileCursor { file: Arc::clone(&self.file), offset: 0 });
        let mut text = self.packings.iter().fold(file, |packed, packing| packing.reader(packed));
        if let Some(events) = &self.json {
            text = Box::new(JsonText::new(BufReader::with_capacity(BUFFER, text), events.clone()));
        }
        InputReader { text, name: self.name.clone(), packed: !self.packings.is_empty(), count: 0 }
    }
}

/// Reader of the text of an [`Input`].
pub(crate) struct InputReader {
    text: Box<dyn Read + Send>,
    name: String,
    packed: bool,
    /// Bytes read so far.
    count: u64,
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.text.read(buffer) {
            Ok(count) => {
                self.count += count as u64;
                Ok(count)
            }
            Err(reason) if reason.kind() == ErrorKind::Interrupted => Err(reason),
            Err(reason) => {
                let kind = reason.kind();
                // Decoders pass on the system's errors unchanged.
                let error = if self.packed && reason.raw_os_error().is_none() {
                    InputError::Damaged { decoded: self.count, reason }
                } else {
                    InputError::Read { name: self.name.clone(), reason }
                };
                Err(io::Error::new(kind, error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
