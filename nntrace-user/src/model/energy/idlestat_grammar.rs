//! The form of idlestat's model files.
//!
//! ```text
//! clusters N
//! clusterNAME: P cap states C C states
//! P-states:      P rows: MHz, power of the cluster, power of a core
//! C-states:      C rows: name, power of the cluster, power of a core
//! wakeup CLUSTER CORE                                                    (may be left out)
//! ```
//!
//! Empty lines count nowhere, nor does anything from a `#` on. Powers have no unit here.

use std::collections::BTreeSet;

use super::{
    ModelError,
    model::{AMOUNTS, ClusterModel, Cost, EnergyModel, IdleState, PState},
};

const P_STATE: &str = "expected a P-state: a frequency in MHz, power of the cluster, power of a core";
const C_STATE: &str = "expected a C-state: a name, power of the cluster, power of a core";
const HEADER: &str = "expected `clusterNAME: P cap states C C states`, P and C the numbers of rows";

/// The model in a text.
///
/// # Errors
/// When a line is not what the grammar asks for, or there are more or fewer clusters or rows than announced.
pub(super) fn parse(file: &str, text: &str) -> Result<EnergyModel, ModelError> {
    let mut parser =
        Parser { file, text, section: Section::None, announced: Vec::new(), clusters: Vec::new() };
    let mut lines = text.lines().zip(1..).filter_map(|(line, number)| {
        let words: Vec<&str> = content(line).split_whitespace().collect();
        (!words.is_empty()).then_some((number, words))
    });
    let Some((first, words)) = lines.next() else {
        let what = "expected `clusters` and their number, found nothing";
        return Err(parser.error(text.lines().count().max(1), what));
    };
    let count = match words[..] {
        ["clusters", count] => count.parse().ok().filter(|&count: &usize| count > 0),
        _ => None,
    };
    let Some(count) = count else {
        return Err(parser.error(first, "expected `clusters` and their number, such as `clusters 2`"));
    };
    for (number, words) in lines {
        parser.line(number, &words)?;
    }
    parser.check_rows()?;
    if parser.clusters.len() != count {
        let what =
            format!("expected as many clusters as announced: {count}, but {} came", parser.clusters.len());
        return Err(parser.error(first, what));
    }
    Ok(EnergyModel { file: file.into(), clusters: parser.clusters, ..EnergyModel::default() }.settle())
}

/// A line without its comment.
fn content(line: &str) -> &str {
    let comments = line.match_indices('#').map(|(at, _)| at);
    let begin =
        comments.into_iter().find(|&at| line[..at].chars().next_back().is_none_or(char::is_whitespace));
    &line[..begin.unwrap_or(line.len())]
}

#[derive(Clone, Copy)]
enum Section {
    /// Between a header and its first table.
    None,
    PStates,
    CStates,
}

/// Counts in the header of a cluster.
struct Announced {
    line: usize,
    p_states: usize,
    c_states: usize,
    /// Frequencies (kHz) and names of the rows that came.
    frequencies: BTreeSet<u32>,
    names: BTreeSet<String>,
    has_wakeup: bool,
}

struct Parser<'a> {
    file: &'a str,
    text: &'a str,
    section: Section,
    /// Beside `clusters`.
    announced: Vec<Announced>,
    clusters: Vec<ClusterModel>,
}

impl Parser<'_> {
    fn error(&self, line: usize, what: impl Into<String>) -> ModelError {
        ModelError::at(self.file, self.text, line, what)
    }

    fn line(&mut self, number: usize, words: &[&str]) -> Result<(), ModelError> {
        let is_header = words[0].starts_with("cluster") && words.iter().any(|word| word.ends_with(':'));
        if is_header || self.clusters.is_empty() {
            return self.header(number, words);
        }
        match (words, self.section) {
            (["P-states:"], _) => self.section = Section::PStates,
            (["C-states:"], _) => self.section = Section::CStates,
            (["wakeup", ..], _) => self.wakeup(number, words)?,
            (_, Section::PStates) => self.p_state(number, words)?,
            (_, Section::CStates) => self.c_state(number, words)?,
            (_, Section::None) => return Err(self.error(number, "expected `P-states:` or `C-states:`")),
        }
        Ok(())
    }

    fn header(&mut self, number: usize, words: &[&str]) -> Result<(), ModelError> {
        let joined = words.join(" ");
        let parsed = joined.strip_prefix("cluster").and_then(|rest| rest.split_once(':'));
        let (name, counts) = parsed.ok_or_else(|| self.error(number, HEADER))?;
        let counts: Vec<&str> = counts.split_whitespace().collect();
        let ([p_states, "cap", "states", c_states, "C", "states"], name) = (&counts[..], name.trim()) else {
            return Err(self.error(number, HEADER));
        };
        let (Ok(p_states), Ok(c_states)) = (p_states.parse(), c_states.parse()) else {
            return Err(self.error(number, HEADER));
        };
        if name.is_empty() {
            return Err(self.error(number, HEADER));
        }
        if let Some(at) = self.clusters.iter().position(|cluster| cluster.name == name) {
            let what =
                format!("expected a cluster of another name: line {} has one", self.announced[at].line);
            return Err(self.error(number, what));
        }
        self.check_rows()?;
        self.section = Section::None;
        self.announced.push(Announced {
            line: number,
            p_states,
            c_states,
            frequencies: BTreeSet::new(),
            names: BTreeSet::new(),
            has_wakeup: false,
        });
        self.clusters.push(ClusterModel { name: name.into(), ..ClusterModel::default() });
        Ok(())
    }

    /// The cluster that ends here has as many rows as it announced.
    fn check_rows(&self) -> Result<(), ModelError> {
        let (Some(announced), Some(cluster)) = (self.announced.last(), self.clusters.last()) else {
            return Ok(());
        };
        for (what, expected, found) in [
            ("P-states", announced.p_states, cluster.p_states.len()),
            ("C-states", announced.c_states, cluster.idle.len()),
        ] {
            if expected != found {
                let what = format!("expected as many {what} as announced: {expected}, but {found} came");
                return Err(self.error(announced.line, what));
            }
        }
        Ok(())
    }

    fn p_state(&mut self, number: usize, words: &[&str]) -> Result<(), ModelError> {
        let [mhz, cluster, core] = words else { return Err(self.error(number, P_STATE)) };
        let khz = mhz.parse::<u32>().ok().and_then(|mhz| mhz.checked_mul(1_000)).filter(|&khz| khz > 0);
        let (Some(khz), Some(power)) = (khz, cost(cluster, core)) else {
            return Err(self.error(number, P_STATE));
        };
        let (Some(announced), Some(current)) = (self.announced.last_mut(), self.clusters.last_mut()) else {
            return Ok(());
        };
        if !announced.frequencies.insert(khz) {
            return Err(self.error(number, format!("expected each frequency once, {mhz} MHz came before")));
        }
        current.p_states.push(PState { khz, in_mhz: true, power });
        Ok(())
    }

    fn c_state(&mut self, number: usize, words: &[&str]) -> Result<(), ModelError> {
        let [name, cluster, core] = words else { return Err(self.error(number, C_STATE)) };
        let Some(power) = cost(cluster, core) else { return Err(self.error(number, C_STATE)) };
        let (Some(announced), Some(current)) = (self.announced.last_mut(), self.clusters.last_mut()) else {
            return Ok(());
        };
        if !announced.names.insert((*name).into()) {
            return Err(self.error(number, format!("expected each C-state once, {name} came before")));
        }
        current.idle.push(IdleState { name: (*name).into(), power, entry: Cost::default() });
        Ok(())
    }

    fn wakeup(&mut self, number: usize, words: &[&str]) -> Result<(), ModelError> {
        let cost = match words {
            [_, cluster, core] => cost(cluster, core),
            _ => None,
        };
        let Some(cost) = cost else {
            let what = "expected `wakeup`, energy of a wake-up of the cluster, of a core";
            return Err(self.error(number, what));
        };
        if let (Some(announced), Some(cluster)) = (self.announced.last_mut(), self.clusters.last_mut()) {
            if announced.has_wakeup {
                return Err(self.error(number, "expected one `wakeup` for each cluster, another came before"));
            }
            announced.has_wakeup = true;
            cluster.wakeup = cost;
        }
        Ok(())
    }
}

fn cost(cluster: &str, core: &str) -> Option<Cost> {
    Some(Cost { cluster: amount(cluster)?, core: amount(core)? })
}

fn amount(text: &str) -> Option<f64> {
    // Nothing but digits and a point: Rust takes `inf` for a number, too.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|value| is_plain && AMOUNTS.contains(value))
}
