//! Limits of frequencies, from the events of their policies and of cooling devices.
//!
//! Source: `cpu_frequency_limits` (include/trace/events/power.h), `cdev_update` (`drivers/thermal/thermal_trace.h`).
//!
//! ```text
//! cpu_frequency_limits: min=600000 max=1200000 cpu_id=4
//! cdev_update: type=thermal-cpufreq-1 target=3
//! ```

use super::{event_fields::value, ftrace::number};
use crate::model::timeline::{CoolingState, FrequencyLimits, PolicyLimit};

/// Changes that are kept at most, of each kind; later ones are not.
const MOST: usize = 1 << 16;

/// Part of the type of a cooling device that limits the frequency of CPUs.
const CPU_COOLING: &str = "cpufreq";

/// Takes an event at a time (ns), if it is one of these.
pub(crate) fn take(name: &[u8], fields: &[u8], time: u64, limits: &mut FrequencyLimits) -> bool {
    let of = |key: &[u8]| number(value(fields, key)?).map(|(value, _)| value);
    match name {
        b"cpu_frequency_limits" => {
            let khz = of(b"max").or_else(|| of(b"max_freq"));
            if let (Some(khz), Some(cpu)) = (khz, of(b"cpu_id"))
                && limits.policies.len() < MOST
            {
                limits.policies.push(PolicyLimit { time, cpu, khz });
            }
            true
        }
        b"cdev_update" => {
            let device = value(fields, b"type").map(|device| String::from_utf8_lossy(device).into_owned());
            if let (Some(device), Some(state)) = (device, of(b"target"))
                && device.contains(CPU_COOLING)
                && limits.cooling.len() < MOST
            {
                limits.cooling.push(CoolingState { time, device, state });
            }
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_policies_and_of_cooling_devices_are_read() {
        let mut limits = FrequencyLimits::default();
        for (name, fields) in [
            ("cpu_frequency_limits", "min=600000 max=1200000 cpu_id=4"),
            ("cdev_update", "type=thermal-cpufreq-1 target=3"),
            ("cdev_update", "type=Fan target=1"),
            ("cpu_frequency_limits", "min=600000 max=much"),
        ] {
            assert!(take(name.as_bytes(), fields.as_bytes(), 7, &mut limits), "{name} {fields}");
        }
        assert!(!take(b"cpu_frequency", b"state=1 cpu_id=0", 7, &mut limits));
        assert_eq!(limits.policies, [PolicyLimit { time: 7, cpu: 4, khz: 1_200_000 }]);
        let cooling = CoolingState { time: 7, device: "thermal-cpufreq-1".into(), state: 3 };
        assert_eq!(limits.cooling, [cooling]);
    }
}
