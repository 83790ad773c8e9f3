//! Separately compressed sections and chunks of version 7.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::FrameDecoder;

/// Window that zstd may require, bytes: the size of the longest section.
const ZSTD_WINDOW: u64 = super::bytes::LONGEST;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// zstd.
    Zstd,
    /// zlib.
    Zlib,
}

impl Compression {
    /// Returns the compression with the name in the file's header.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"zstd" => Some(Self::Zstd),
            b"zlib" => Some(Self::Zlib),
            _ => None,
        }
    }
}

/// Decompressor.
pub(crate) struct Unpacker {
    compression: Compression,
    zstd: FrameDecoder,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compression.fmt(formatter)
    }
}

impl Unpacker {
    /// Creates a decompressor.
    pub(crate) fn new(compression: Compression) -> Self {
        let mut zstd = FrameDecoder::new();
        zstd.set_max_window_size(ZSTD_WINDOW);
        Self { compression, zstd }
    }

    /// Unpacks to exactly `size` bytes, which the caller has bounded, into `out`; otherwise returns the reason.
    pub(crate) fn unpack(&mut self, packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        out.reserve_exact(size);
        match self.compression {
            Compression::Zstd => {
                self.zstd.decode_all_to_vec(packed, out).map_err(|error| error.to_string())?;
            }
            Compression::Zlib => {
                let status = Decompress::new(true)
                    .decompress_vec(packed, out, FlushDecompress::Finish)
                    .map_err(|error| error.to_string())?;
                if status != Status::StreamEnd {
                    return Err(format!("more than {size} bytes, or it ends early"));
                }
            }
        }
        if out.len() == size { Ok(()) } else { Err(format!("it unpacks to {} bytes, not {size}", out.len())) }
    }
}
