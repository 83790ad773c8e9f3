//! Why some executions of a function were slow: their difference to typical ones, split by its causes.
//!
//! Each execution is walked from its end to its begin. Where its thread waits for another one, the walk goes on there, so that
//! every nanosecond is work, or a wait, of one thread. The sums of slow executions less those of typical ones are the parts of
//! the difference; what ran is split further by calls, frequencies and clusters. The parts add up to the difference.

mod answer;
mod chain;
mod compared;
mod cpu_use;
mod crowding;
mod describe;
mod device_activity;
mod executions;
mod limits;
mod line;
mod pauses;
mod rounding;
mod split;
mod tally;
#[cfg(test)]
mod tests;
mod text;

pub use answer::{Answer, Options};
pub use executions::Share;
