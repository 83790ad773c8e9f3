//! Rings that the programs write records to, one per CPU.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use aya::{
    EbpfLoader,
    maps::{Array, ArrayOfMaps, Map, MapData, PerCpuArray, RingBuf},
};
use nntrace_common::{power::CpuIdle, record::RingCount};

use super::{
    Kernel,
    error::{KernelError, map_error},
    object::Object,
};

/// Size of each ring, bytes.
pub(super) struct RingSize(u32);

impl RingSize {
    /// Rounds up to a size that the kernel accepts: a power of two of whole pages.
    pub(super) fn rounded(bytes: u32) -> Self {
        Self(bytes.clamp(4096, 1 << 30).next_power_of_two())
    }

    pub(super) fn bytes(&self) -> u32 {
        self.0
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>, cpus: u32) {
        loader.override_global("RING_BYTES", &self.0, true).map_max_entries("RINGS", cpus);
    }
}

/// Rings of all CPUs, as bytes.
pub struct RingBuffers(Vec<CpuRing>);

struct CpuRing {
    buffer: RingBuf<MapData>,
    /// Records that were taken.
    taken: u64,
}

impl RingBuffers {
    /// Creates a ring for each CPU, in the map where the programs look it up.
    pub(super) fn make(object: &mut Object, cpus: u32, size: &RingSize) -> Result<Self, KernelError> {
        let map = object.map_mut("RINGS").ok_or(KernelError::Missing("map RINGS"))?;
        let mut slots: ArrayOfMaps<_> = map.try_into().map_err(map_error("use the table of rings"))?;
        let rings = (0..cpus).map(|cpu| {
            let ring = aya_obj::Map::new_from_params(
                aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_RINGBUF as u32,
                0,
                0,
                size.0,
                0,
            );
            let ring =
                MapData::create(ring, &format!("ring{cpu}"), None).map_err(map_error("make a ring"))?;
            slots.set(cpu, &ring, 0).map_err(map_error("put a ring into its table"))?;
            let buffer = Map::RingBuf(ring).try_into().map_err(map_error("map a ring"))?;
            Ok(CpuRing { buffer, taken: 0 })
        });
        rings.collect::<Result<_, _>>().map(Self)
    }

    /// Passes all records in the rings to `sink`, ring by ring, and frees their space.
    pub(in crate::live) fn take(&mut self, mut sink: impl FnMut(&[u8])) {
        for CpuRing { buffer, taken } in &mut self.0 {
            while let Some(item) = buffer.next() {
                *taken += 1;
                sink(&item);
            }
        }
    }

    /// Whether as many records of each CPU are taken as [`Kernel::count_put_records`] has returned. A program that is
    /// preempted while it writes its record holds up all that are after it in the ring.
    pub(in crate::live) fn are_taken(&self, put: &[u64]) -> bool {
        self.0.iter().zip(put).all(|(ring, put)| ring.taken >= *put)
    }

    /// Returns duplicated descriptors that become readable when a ring asks to be drained.
    pub(in crate::live) fn alarms(&self) -> io::Result<Vec<OwnedFd>> {
        self.0.iter().map(|ring| ring.buffer.as_fd().try_clone_to_owned()).collect()
    }
}

impl Kernel {
    /// Reads the counts of lost power records, by the CPU that they were about.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_lost(&self) -> Result<Vec<u32>, KernelError> {
        let idles: Array<_, CpuIdle> = self.object.table("CPU_IDLE")?;
        (0..self.cpus()).map(|cpu| Ok(idles.get(&cpu, 0).map_err(KernelError::reading)?.lost)).collect()
    }

    /// Returns how many records programs have put into each CPU's ring, or are about to: all of those at least.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(in crate::live) fn count_put_records(&self) -> Result<Vec<u64>, KernelError> {
        // One that is dropped while both are read must not be subtracted if it was not produced yet.
        let dropped = self.read_ring_counts()?.into_iter().map(|counts| counts.dropped);
        let produced = self.read_ring_counts()?.into_iter().map(|counts| counts.produced);
        Ok(produced.zip(dropped).map(|(produced, dropped)| produced.saturating_sub(dropped)).collect())
    }

    /// Reads the counts of each CPU's ring, as its programs keep them.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_ring_counts(&self) -> Result<Vec<RingCount>, KernelError> {
        let map: PerCpuArray<_, RingCount> = self.object.table("RING_COUNTS")?;
        Ok(map.get(&0, 0).map_err(KernelError::reading)?.iter().copied().collect())
    }
}
