//! Frequencies of devfreq devices: the fields of `devfreq_frequency` (`include/trace/events/devfreq.h`), as printed by the kernel and
//! as the bare fields of a record.
//!
//! ```text
//! dev_name=fb000000.gpu                   freq=800000000    prev_freq=300000000    load=50
//! dev_name=fb000000.gpu freq=800000000 prev_freq=300000000 busy_time=50 total_time=100
//! ```

use super::event_fields::{number, text};

/// Frequency of a device, Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFrequency<'a> {
    /// Name of the device.
    pub device: &'a [u8],
    /// Frequency from now on.
    pub hz: u64,
    /// Frequency before.
    pub before: Option<u64>,
}

/// Parses the fields.
pub(crate) fn frequency(fields: &[u8]) -> Option<DeviceFrequency<'_>> {
    let device = text(fields, b"dev_name").filter(|name| !name.is_empty())?;
    Some(DeviceFrequency { device, hz: number(fields, b"freq")?, before: number(fields, b"prev_freq") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let expected =
            DeviceFrequency { device: b"0000:00:02.0", hz: 800_000_000, before: Some(300_000_000) };
        for text in [
            "dev_name=0000:00:02.0                   freq=800000000    prev_freq=300000000    load=50",
            "dev_name=0000:00:02.0 freq=800000000 prev_freq=300000000 busy_time=50 total_time=100",
        ] {
            assert_eq!(frequency(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "dev_name= freq=1", "dev_name=x", "dev_name=x freq=-1", "freq=7"] {
            assert_eq!(frequency(text.as_bytes()), None, "{text}");
        }
    }
}
