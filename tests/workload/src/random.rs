//! Numbers determined by a seed, so that two processes build the same network.

use std::f32::consts::PI;

/// The `SplitMix64` generator: enough for weights and pictures, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator for one purpose: streams of one seed are independent of each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        // Neighbouring seeds start alike; one step separates them.
        random.0 = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to 1, the 1 exclusive.
    pub fn uniform(&mut self) -> f32 {
        // An f32 represents 24 bits exactly.
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Returns a normally distributed number with mean 0 and deviation 1, by Box and Muller.
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * PI * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_itself_and_tells_streams_apart() {
        let numbers = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [(); 4].map(|()| random.next())
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(7, 0);
        let numbers: Vec<f32> = (0..20_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / numbers.len() as f32;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
