//! Trace files, compressed or not.

use std::{
    borrow::Cow,
    error::Error,
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, IsTerminal as _, Read, Write as _},
    mem,
    os::unix::fs::FileTypeExt as _,
    path::Path,
    sync::Arc,
};

use flate2::{Decompress, FlushDecompress, Status, bufread::MultiGzDecoder};
use memchr::memmem;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use thiserror::Error;

use super::{
    file_cursor::FileCursor,
    json_text::JsonText,
    perfetto::{self, Perfetto},
    recognition,
    tracedat::{self, Damage, TraceDat},
};
use crate::caller;

/// Bytes at the start that are examined.
const HEAD: u64 = 16 * 1024;

/// Bytes at the start of a pipe that may all be NUL: a trace has other bytes before.
const MOST_NULS: u64 = 1 << 20;

/// Compressed bytes read at once.
const BUFFER: usize = 128 * 1024;

/// Window that zstd's own tool accepts by default, bytes.
const ZSTD_WINDOW: u64 = 128 << 20;

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
    packed: Packed,
    /// Offset of atrace's stream in the unpacked text.
    atrace: Option<u64>,
    /// Whether the text is that in a JSON.
    is_json: bool,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    Plain,
    Gzip,
    Zstd,
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
            packed: Packed::Plain,
            atrace: None,
            is_json: false,
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
        input.packed = match input.head.as_slice() {
            [0x1f, 0x8b, ..] => Packed::Gzip,
            // A file may begin with a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packed::Zstd,
            _ => Packed::Plain,
        };
        if input.packed != Packed::Plain {
            input.head = input.read_head().0;
        }
        input.atrace = atrace_stream(&input.head);
        if input.atrace.is_some() {
            input.head = input.read_head().0;
        }
        if tracedat::is_trace_dat(&input.head) {
            input.contents = Contents::Dat(Box::new(input.open_dat()?));
        } else if perfetto::is_perfetto(&input.head) {
            input.contents = Contents::Perfetto(Box::new(Perfetto::open(input.reader())));
        } else {
            input.recognize()?;
        }
        Ok(input)
    }

    /// Checks that the input is not a file of another tool. A JSON may have the text of a trace in it.
    fn recognize(&mut self) -> Result<(), InputError> {
        let Some(foreign) = recognition::foreign(&self.head) else { return Ok(()) };
        if recognition::is_json(&self.head) {
            self.is_json = true;
            let (head, _) = self.read_head();
            if !head.is_empty() {
                self.head = head;
                return Ok(());
            }
        }
        Err(InputError::Foreign { name: self.name.clone(), what: foreign.what, remedy: foreign.remedy })
    }

    /// Opens a `trace.dat`; a compressed one is unpacked to a temporary file, as it is read at random.
    fn open_dat(&mut self) -> Result<TraceDat, InputError> {
        let mut damage = None;
        if self.packed != Packed::Plain || self.atrace.is_some() {
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
            (self.packed, self.atrace) = (Packed::Plain, None);
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
        let has = |byte: u8| self.head.contains(&byte);
        match self.head.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, b'#' | b' ', ..] | [b'#' | b' ', 0, ..] => {
                Some("is UTF-16, where UTF-8 was expected: `iconv -f UTF-16 -t UTF-8` converts it")
            }
            _ if has(b'\r') && !has(b'\n') => {
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

    /// Reads the text from its start. Readers are independent of each other.
    ///
    /// Each of their errors contains an [`InputError`], and comes after everything that could be read.
    #[must_use]
    pub(crate) fn reader(&self) -> InputReader {
        let raw = FileCursor { file: Arc::clone(&self.file), offset: 0 };
        let unpacked: Box<dyn Read + Send> = match self.packed {
            Packed::Plain => Box::new(raw),
            Packed::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, raw))),
            Packed::Zstd => Box::new(Zstd::new(BufReader::with_capacity(BUFFER, raw))),
        };
        let text: Box<dyn Read + Send> = match self.atrace {
            Some(start) => Box::new(Atrace::new(BufReader::with_capacity(BUFFER, unpacked), start)),
            None => unpacked,
        };
        let text: Box<dyn Read + Send> =
            if self.is_json { Box::new(JsonText::new(BufReader::with_capacity(BUFFER, text))) } else { text };
        let packed = self.packed != Packed::Plain || self.atrace.is_some();
        InputReader { text, name: self.name.clone(), packed, count: 0 }
    }
}

/// Returns the offset of the data in the output of `atrace -z`: messages, `TRACE:`, and a zlib stream.
fn atrace_stream(head: &[u8]) -> Option<u64> {
    let mut start = memmem::find(head, b"TRACE:")? + b"TRACE:".len();
    start += head[start..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
    // 0x78 alone is an x.
    matches!(head[start..], [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]).then_some(start as u64)
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

/// Decoder of all frames of a zstd file.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Error that follows the rest in the decoder.
    error: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        Self { source, decoder, in_frame: false, error: None }
    }

    /// Begins the next frame; false when there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => skip(&mut self.source, length.into())?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // An empty last block, and some checksum. The decoder holds back a window of text until a frame ends.
        const END_OF_FRAME: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            self.in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                if let Err(error) =
                    self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                {
                    self.error = Some(io::Error::other(error));
                    let end = self.decoder.decode_blocks(END_OF_FRAME, BlockDecodingStrategy::All);
                    if end.is_err() {
                        break;
                    }
                }
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            self.in_frame = false;
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(ErrorKind::InvalidData, "the checksum differs"));
            }
        }
    }
}

/// Decoder of atrace's stream. flate2's own reader takes a stream that ends early for a complete one.
struct Atrace<R> {
    source: R,
    /// Bytes still to skip before the stream.
    skip: u64,
    stream: Decompress,
    ended: bool,
}

impl<R: BufRead> Atrace<R> {
    fn new(source: R, skip: u64) -> Self {
        Self { source, skip, stream: Decompress::new(true), ended: false }
    }
}

impl<R: BufRead> Read for Atrace<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        skip(&mut self.source, mem::take(&mut self.skip))?;
        while !self.ended && !buffer.is_empty() {
            let input = self.source.fill_buf()?;
            let no_more = input.is_empty();
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(input, buffer, FlushDecompress::None)?;
            self.source.consume((self.stream.total_in() - read) as usize);
            self.ended = status == Status::StreamEnd;
            let written = (self.stream.total_out() - written) as usize;
            if written > 0 {
                return Ok(written);
            }
            if no_more && !self.ended {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

fn skip(source: &mut impl Read, length: u64) -> io::Result<()> {
    let skipped = io::copy(&mut source.take(length), &mut io::sink())?;
    if skipped < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
