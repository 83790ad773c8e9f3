//! Ids of traces and spans: equal for equal runs, so that what is sent twice is the same.

use sha2::{Digest as _, Sha256};

/// Id of a span, and of the trace that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
}

impl SpanContext {
    /// Creates the ids of a section by the number of its run, its thread, and how many began on the thread before it. An
    /// outermost one begins a trace.
    pub(super) fn new(run: u64, (pid, tid): (u32, u32), number: u64, parent: Option<&Self>) -> Self {
        let mut hash = Sha256::new();
        hash.update(run.to_le_bytes());
        hash.update(pid.to_le_bytes());
        hash.update(tid.to_le_bytes());
        hash.update(number.to_le_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let (trace, span) = (part(&hash, 0), part(&hash, 16));
        Self { trace: parent.map_or(trace, |parent| parent.trace), span }
    }
}

/// Returns bytes of a hash, which are not all zero: such ids are invalid.
fn part<const N: usize>(hash: &[u8; 32], from: usize) -> [u8; N] {
    let mut id: [u8; N] = std::array::from_fn(|at| hash[from + at]);
    id[N - 1] |= u8::from(id == [0; N]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_everything_and_the_trace_on_the_outermost() {
        let root = SpanContext::new(1, (2, 3), 4, None);
        assert_eq!(root, SpanContext::new(1, (2, 3), 4, None));
        for other in [(9, (2, 3), 4), (1, (9, 3), 4), (1, (2, 9), 4), (1, (2, 3), 9)] {
            let other = SpanContext::new(other.0, other.1, other.2, None);
            assert!(other.trace != root.trace && other.span != root.span);
        }
        let inner = SpanContext::new(1, (2, 3), 5, Some(&root));
        assert!(inner.trace == root.trace && inner.span != root.span);
        assert_eq!(part::<8>(&[0; 32], 0), [0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
