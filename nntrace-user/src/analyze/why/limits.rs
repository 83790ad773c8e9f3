//! Limits of frequencies that were in force at a time.

use crate::{model::frequency_limits::FrequencyLimits, report::number_format::khz};

/// Returns the limit that made a cluster slower than typical, in words: it was in force in the middle of a slow execution (ns),
/// is below the typical frequency (kHz), and was not in force in a typical one.
pub(super) fn limited(
    limits: &FrequencyLimits,
    cpus: &[u32],
    slow: &[u64],
    typical: &[u64],
    usual_khz: u32,
) -> Option<String> {
    let policy = |time: u64| {
        let of_cluster = limits.policies.iter().filter(|limit| cpus.contains(&limit.cpu));
        of_cluster.take_while(|limit| limit.time <= time).last().map(|limit| limit.khz)
    };
    let lowest = slow.iter().filter_map(|time| policy(*time)).min()?;
    let was_usual = typical.iter().filter_map(|time| policy(*time)).any(|khz| khz <= lowest);
    if lowest >= usual_khz || was_usual {
        return None;
    }
    let cools = |time: u64| {
        let mut devices: Vec<&str> = Vec::new();
        for change in limits.cooling.iter().take_while(|change| change.time <= time) {
            devices.retain(|device| *device != change.device);
            if change.state > 0 {
                devices.push(&change.device);
            }
        }
        devices
    };
    let usually: Vec<&str> = typical.iter().flat_map(|time| cools(*time)).collect();
    let device = slow.iter().flat_map(|time| cools(*time)).find(|device| !usually.contains(device));
    let by = device.map_or_else(|| "a limit of the policy".into(), |device| format!("cooling: {device}"));
    Some(format!("limited to {} by {by}", khz(lowest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::frequency_limits::{CoolingState, PolicyLimit};

    #[test]
    fn a_limit_counts_that_was_in_force_in_slow_executions_only() {
        let policy = |time, khz| PolicyLimit { time, cpu: 4, khz };
        let mut limits = FrequencyLimits {
            policies: vec![policy(0, 2_000_000), policy(100, 1_000_000), policy(200, 2_000_000)],
            ..FrequencyLimits::default()
        };
        let of = |limits: &FrequencyLimits, slow, typical| {
            limited(limits, &[4, 5], &[slow], &[typical], 2_000_000)
        };
        assert_eq!(of(&limits, 150, 50).unwrap(), "limited to 1.00 GHz by a limit of the policy");
        assert_eq!(of(&limits, 150, 160), None);
        assert_eq!(of(&limits, 250, 50), None);
        assert_eq!(limited(&limits, &[0], &[150], &[50], 2_000_000), None);
        limits.cooling.push(CoolingState { time: 99, device: "thermal-cpufreq-0".into(), state: 2 });
        assert_eq!(of(&limits, 150, 50).unwrap(), "limited to 1.00 GHz by cooling: thermal-cpufreq-0");
    }
}
