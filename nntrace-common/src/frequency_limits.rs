//! Limits of the frequency of CPUs: those of policies, and the states of cooling devices that may be behind them.
//!
//! Sources: `cpu_frequency_limits` in include/trace/events/power.h, `cdev_update` in `drivers/thermal/thermal_trace.h`.

/// Bytes of the type of a cooling device, with its NUL: `THERMAL_NAME_LENGTH` in include/linux/thermal.h. Newer kernels have
/// longer ones, of other devices than CPUs; these are cut off.
pub const DEVICE_BYTES: usize = 20;

/// Part of the type of each cooling device that limits the frequency of CPUs: `thermal-cpufreq-0`, `cpufreq-cpu0`.
const CPU_COOLING: &[u8] = b"cpufreq";

/// Whether a cooling device of this type limits the frequency of CPUs.
#[must_use]
pub fn cools_cpus(device: &[u8]) -> bool {
    device.windows(CPU_COOLING.len()).any(|part| part == CPU_COOLING)
}

/// Limits of the frequency of a policy from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct LimitRecord {
    /// [`RecordKind::FrequencyLimit`](crate::record::RecordKind::FrequencyLimit).
    pub kind: u32,
    /// CPU of the policy.
    pub cpu: u32,
    /// Time, ns.
    pub time: u64,
    /// Lower limit, kHz; 0 when unknown.
    pub min_khz: u32,
    /// Upper limit, kHz.
    pub max_khz: u32,
}

/// State of a cooling device from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct CoolingRecord {
    /// [`RecordKind::Cooling`](crate::record::RecordKind::Cooling).
    pub kind: u32,
    /// Type of the device, followed by zeros.
    pub device: [u8; DEVICE_BYTES],
    /// Time, ns.
    pub time: u64,
    /// State; 0 does not cool.
    pub state: u64,
}

impl CoolingRecord {
    /// Returns the type of the device.
    #[must_use]
    pub fn device(&self) -> &[u8] {
        self.device.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Returns the type of a device as a [`CoolingRecord`] has it: up to a NUL; a longer one is cut off.
#[must_use]
pub fn device(text: &[u8]) -> [u8; DEVICE_BYTES] {
    let mut device = [0; DEVICE_BYTES];
    // The last one is the NUL, as in the kernel.
    let text = text.iter().take_while(|byte| **byte != 0);
    device[..DEVICE_BYTES - 1].iter_mut().zip(text).for_each(|(byte, given)| *byte = *given);
    device
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;

    fn read_back(text: &[u8]) -> Vec<u8> {
        let record =
            CoolingRecord { kind: RecordKind::Cooling as u32, device: device(text), time: 0, state: 0 };
        record.device().to_vec()
    }

    #[test]
    fn types_of_devices_are_cut_off_where_the_kernel_does() {
        assert_eq!(read_back(b"cpufreq-cpu0"), b"cpufreq-cpu0");
        assert_eq!(read_back(b"a-device-with-a-long-name"), b"a-device-with-a-lon");
        assert_eq!(read_back(b"a\0b"), b"a");
        assert_eq!(read_back(b""), b"");
    }

    #[test]
    fn devices_of_cpus_are_known_by_their_types() {
        for (device, cools) in
            [("thermal-cpufreq-0", true), ("cpufreq-cpu4", true), ("thermal-devfreq-0", false), ("", false)]
        {
            assert_eq!(cools_cpus(device.as_bytes()), cools, "{device}");
        }
    }
}
