//! Lists of CPUs as the kernel writes them: `0-3,6`.

use std::{fmt::Write as _, ops::RangeInclusive};

use thiserror::Error;

/// CPUs that a kernel has at most, by `NR_CPUS` of all architectures; a larger number is a typing error.
pub(crate) const MOST: u32 = 8_192;

/// Numbers that a list has at most, those that are in it twice too.
const MOST_NUMBERS: u32 = 2 * MOST;

/// A text that is no list of CPUs.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not a list of CPUs: expected numbers below {MOST} and ranges of them, such as 0-3,6")]
pub struct NoCpuList {
    text: String,
}

/// Characters of a list that an error shows.
const SHOWN: usize = 100;

/// The CPUs of a list, ascending. Commas or blanks stand between them; an empty text has none.
///
/// # Errors
/// When it is no such list.
pub fn parse(text: &str) -> Result<Vec<u32>, NoCpuList> {
    Ok(expand(&ranges(text)?))
}

/// The ranges of a list, as they are written: a few bytes, however many CPUs they have.
///
/// # Errors
/// When it is no such list.
pub(super) fn ranges(text: &str) -> Result<Vec<RangeInclusive<u32>>, NoCpuList> {
    let mut ranges = Vec::new();
    let mut numbers = 0;
    for part in text.split([',', ' ', '\t', '\n']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < MOST && numbers < MOST_NUMBERS => {
                numbers += last - first + 1;
                ranges.push(first..=last);
            }
            _ => return Err(NoCpuList { text: text.chars().take(SHOWN).collect() }),
        }
    }
    Ok(ranges)
}

/// The CPUs of ranges, ascending.
pub(super) fn expand(ranges: &[RangeInclusive<u32>]) -> Vec<u32> {
    let mut cpus: Vec<u32> = ranges.iter().cloned().flatten().collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The shortest list of these CPUs, which are in ascending order.
#[must_use]
pub fn format(cpus: &[u32]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [only] => write!(text, "{comma}{only}"),
            [] => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_ranges_and_holes() {
        assert_eq!(parse("0-3,6\n").unwrap(), [0, 1, 2, 3, 6]);
        assert_eq!(parse("0 3 4 5\n").unwrap(), [0, 3, 4, 5]);
        assert_eq!(parse("10,2,10").unwrap(), [2, 10]);
        assert_eq!(parse("").unwrap(), [] as [u32; 0]);
        for wrong in ["x", "1-", "3-1", "-1", "0-99999999", "8192", "1..3", &"0-8191,".repeat(4)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for (cpus, text) in [(&[0, 1, 2, 3, 6][..], "0-3,6"), (&[5], "5"), (&[1, 3, 4], "1,3-4"), (&[], "")] {
            assert_eq!(format(cpus), text);
            assert_eq!(parse(text).unwrap(), cpus);
        }
    }
}
