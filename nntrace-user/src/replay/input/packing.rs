//! Packings of a trace: which one its first bytes show, and the decoders.

use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read},
    mem,
};

use flate2::{Decompress, FlushDecompress, Status, bufread::MultiGzDecoder};
use memchr::memmem;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use super::BUFFER;

/// Window that zstd's own tool accepts by default, bytes.
const ZSTD_WINDOW: u64 = 128 << 20;

/// Packing of a file, or of what another packing has in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packing {
    /// Members of gzip.
    Gzip,
    /// Frames of zstd.
    Zstd,
    /// Stream of zlib from this offset on.
    Zlib { start: u64 },
}

impl Packing {
    /// Returns the packing of a file that begins like this, if it has one.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A file may begin with a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ if is_zlib(head) && is_valid(head) => Some(Self::Zlib { start: 0 }),
            _ => atrace_stream(head).map(|start| Self::Zlib { start }),
        }
    }

    /// Returns a reader of what is packed in a file.
    pub(super) fn reader(self, packed: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let packed = BufReader::with_capacity(BUFFER, packed);
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Self::Zstd => Box::new(Zstd::new(packed)),
            Self::Zlib { start } => Box::new(Zlib::new(packed, start)),
        }
    }
}

/// Whether a stream of zlib may begin like this.
fn is_zlib(head: &[u8]) -> bool {
    // 0x78 alone is an x.
    matches!(head, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..])
}

/// Whether the begin of a stream of zlib can be decoded: a text may begin with `x^`, too.
fn is_valid(head: &[u8]) -> bool {
    Decompress::new(true).decompress(head, &mut [0; 64], FlushDecompress::None).is_ok()
}

/// Returns the offset of the data in the output of `atrace -z`: messages, `TRACE:`, and a stream of zlib.
fn atrace_stream(head: &[u8]) -> Option<u64> {
    let mut start = memmem::find(head, b"TRACE:")? + b"TRACE:".len();
    start += head[start..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
    is_zlib(&head[start..]).then_some(start as u64)
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

/// Decoder of a stream of zlib. flate2's own reader takes a stream that ends early for a complete one.
struct Zlib<R> {
    source: R,
    /// Bytes still to skip before the stream.
    skip: u64,
    stream: Decompress,
    ended: bool,
}

impl<R: BufRead> Zlib<R> {
    fn new(source: R, skip: u64) -> Self {
        Self { source, skip, stream: Decompress::new(true), ended: false }
    }
}

impl<R: BufRead> Read for Zlib<R> {
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
