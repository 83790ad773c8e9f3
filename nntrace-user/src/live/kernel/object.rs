//! The object with the programs and their maps, as it is loaded: what is in it, by name.

/// The object that the build script compiled.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/nntrace-ebpf"));
