//! Sets of CPUs.

use crate::model::MAX_CPU;

/// Set of CPUs, a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuSet(Vec<u64>);

impl CpuSet {
    /// Adds a CPU and returns whether it is new; a number that no CPU has, of a trace, adds none.
    pub(crate) fn insert(&mut self, cpu: u32) -> bool {
        if cpu > MAX_CPU {
            return false;
        }
        let (word, bit) = (cpu as usize / 64, cpu % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & (1 << bit) == 0;
        self.0[word] |= 1 << bit;
        is_new
    }

    /// Removes a CPU.
    pub(crate) fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    /// Whether it has a CPU.
    #[must_use]
    pub(crate) fn contains(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// Whether it has no CPU.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added() {
        let mut set = CpuSet::default();
        assert!(set.is_empty());
        for cpu in [63, 200, u32::MAX] {
            set.insert(cpu);
        }
        let all: Vec<u32> = (0..500).filter(|cpu| set.contains(*cpu)).collect();
        assert_eq!((all, set.is_empty()), (vec![63, 200], false));
    }
}
