//! Choice of sections that are shown, and how many it hides.

use std::fmt;

use nntrace_common::layer::{Layer, Phase, Tag};

use super::{name_pattern::NamePattern, plurals::counted, section::Section};

/// Choice of sections. A list without entries leaves nothing out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionFilter {
    /// Threads.
    pub tids: Vec<u32>,
    /// Patterns of names.
    pub names: Vec<NamePattern>,
    /// Layers.
    pub layers: Vec<Layer>,
    /// Phases.
    pub phases: Vec<Phase>,
    /// First and last instant, ns; sections that overlap are shown.
    pub range: Option<(u64, u64)>,
    /// Duration at least, ns.
    pub least_ns: u64,
}

impl SectionFilter {
    /// Whether nothing is hidden.
    #[must_use]
    pub fn shows_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a section is shown.
    #[must_use]
    #[inline]
    pub fn shows(&self, section: &Section<'_>) -> bool {
        self.shows_times(section.begin_ns, section.end_ns)
            && self.shows_place(section.tid, section.tag, &section.name)
    }

    /// Whether sections of a thread, of this layer and phase, and of this name are shown.
    #[must_use]
    pub(crate) fn shows_place(&self, tid: u32, tag: Tag, name: &str) -> bool {
        let Self { layers, phases, .. } = self;
        (layers.is_empty() || layers.contains(&tag.layer()))
            && (phases.is_empty() || phases.contains(&tag.phase()))
            && self.shows_name(tid, name)
    }

    /// Whether a section is shown that began at a time (ns) and has not ended: it may be longer than whatever is asked for. Its
    /// layer and phase need not be known.
    #[must_use]
    pub fn shows_unfinished(&self, tid: u32, begin: u64, tag: Option<Tag>, name: &str) -> bool {
        let is_place = match tag {
            Some(tag) => self.shows_place(tid, tag, name),
            None => self.layers.is_empty() && self.phases.is_empty() && self.shows_name(tid, name),
        };
        is_place && self.shows_times(begin, u64::MAX)
    }

    fn shows_name(&self, tid: u32, name: &str) -> bool {
        let Self { tids, names, .. } = self;
        (tids.is_empty() || tids.contains(&tid))
            && (names.is_empty() || names.iter().any(|pattern| pattern.fits(name)))
    }

    /// Whether sections with these times (ns) are shown.
    #[must_use]
    #[inline]
    pub(crate) fn shows_times(&self, begin: u64, end: u64) -> bool {
        let is_inside = self.range.is_none_or(|(first, last)| begin <= last && first <= end);
        is_inside && end.saturating_sub(begin) >= self.least_ns
    }
}

/// Sections that a filter hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Number of sections.
    pub sections: u64,
    /// Sum of their durations, ns.
    pub ns: u128,
}

impl Hidden {
    /// Adds a section.
    #[inline]
    pub fn add(&mut self, duration_ns: u64) {
        self.sections += 1;
        self.ns += u128::from(duration_ns);
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sections, ns } = self;
        let (sections, micros) = (counted(*sections, "section"), ns / 1_000);
        write!(formatter, "hidden: {sections}, {}.{:03} ms", micros / 1_000, micros % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use nntrace_common::stack::Class;

    use super::*;

    fn section(tid: u32, tag: Tag, name: &str, times: (u64, u64)) -> Section<'_> {
        Section {
            pid: 1,
            tid,
            begin_ns: times.0,
            end_ns: times.1,
            own_ns: 0,
            exclusive_ns: 0,
            depth: 0,
            tag,
            class: Class::Section,
            path: 0,
            name: Cow::Borrowed(name),
            attributes: Cow::Borrowed(""),
            is_provisional: false,
            in_itself: false,
            sequences: (0, 0),
        }
    }

    #[test]
    fn each_condition_hides_what_it_is_not_about() {
        let tag = Tag::new(Layer::Runtime, Phase::Execution);
        let shown = section(7, tag, "conv2d", (100, 200));
        let all = SectionFilter {
            tids: vec![7],
            names: vec!["pool*".parse().unwrap(), "conv?d".parse().unwrap()],
            layers: vec![Layer::Runtime],
            phases: vec![Phase::Execution],
            range: Some((200, 300)),
            least_ns: 100,
        };
        assert!(all.shows(&shown) && SectionFilter::default().shows(&shown));
        for hidden in [
            section(8, tag, "conv2d", (100, 200)),
            section(7, Tag::new(Layer::Driver, Phase::Execution), "conv2d", (100, 200)),
            section(7, Tag::new(Layer::Runtime, Phase::Results), "conv2d", (100, 200)),
            section(7, tag, "conv22d", (100, 200)),
            section(7, tag, "conv2d", (99, 199)),
            section(7, tag, "conv2d", (201, 300)),
        ] {
            assert!(!all.shows(&hidden), "{hidden:?}");
        }
    }

    #[test]
    fn what_is_hidden_is_counted() {
        let mut hidden = Hidden::default();
        hidden.add(1_234_567);
        hidden.add(u64::MAX);
        assert_eq!(hidden.to_string(), "hidden: 2 sections, 18446744073710.786 ms");
    }
}
