//! Sums of the records of marks, as they come.

use std::collections::BTreeSet;

use nntrace_common::{
    app_events::{AppChange, AppEvent},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    hidl_calls::Role,
    layer::{Layer, Phase, Tag},
    record::{BeginRecord, SpanRecord},
    stack::{Class, Frame},
    stamp::Stamp,
    track::TrackMark,
};

use super::{
    app_phase_numbers::AppSlots,
    app_phases::{AppPhase, AppPhases},
    async_executions::Executions,
    causality::{
        Causality, Origin, Questions,
        hand_overs::{HandOverEvent, Moment},
    },
    function_names::Names,
    language_models::LanguageModels,
    limits::Limits,
    recent_sections::RecentSections,
    scheduling::Scheduling,
    section_sites::{Sites, ends_app_phase, is_driver_execution},
    stacks::Paths,
    tracks::Tracks,
};

/// Everything that the records of marks add up to.
#[derive(Default)]
pub struct Marks {
    /// Names of functions. Whoever makes records puts a name in before the first record that has it.
    pub(crate) names: Names,
    /// Frames of stacks.
    pub(crate) paths: Paths,
    /// Sections by where they stand.
    pub(crate) sites: Sites,
    /// Reports and phases of the application, by time.
    pub(crate) timeline: AppPhases,
    /// Reports and phases of the application by number, where the kernel programs number them.
    pub(crate) slots: AppSlots,
    /// Executions that nobody waits for meanwhile.
    pub(crate) executions: Executions,
    /// Counters, instants and asynchronous slices.
    pub(crate) tracks: Tracks,
    /// Batches of tokens.
    pub(crate) language_models: LanguageModels,
    /// Which iteration work belongs to, whose account, and what handed it over.
    pub(crate) causality: Causality,
    /// Processes that are drivers by the user's choice.
    pub(crate) named_drivers: BTreeSet<u32>,
    /// Processes that the kernel programs saw to be drivers.
    pub(crate) seen_drivers: BTreeSet<u32>,
    /// Processes that call a driver of the kernel themselves.
    pub(crate) driver_callers: BTreeSet<u32>,
    /// Sections that ended last.
    pub(crate) recent: RecentSections,
    /// Sections that are open at the end.
    pub(crate) open: Vec<OpenSection>,
}

/// A section that was open at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSection {
    /// Process of its thread; `None` where it is not known.
    pub(crate) pid: Option<u32>,
    /// Thread.
    pub(crate) tid: u32,
    /// When it began.
    pub(crate) begin: Stamp,
    /// Hash of its name.
    pub(crate) name: u64,
    /// Layer and phase, as written; `None` where they are not known.
    pub(crate) tag: Option<Tag>,
    /// Whether it is a part of the section around it, or subtracted from that.
    pub(crate) class: Class,
    /// Number of the last change of the application's phases before it.
    pub(crate) slot: u16,
}

impl OpenSection {
    /// An open frame of a thread, with the [`Stamp::sequence`] of its begin.
    #[must_use]
    pub(crate) fn new(pid: Option<u32>, tid: u32, frame: &Frame, sequence: u32) -> Self {
        Self {
            pid,
            tid,
            begin: Stamp::new(frame.begin, sequence),
            name: frame.name,
            tag: frame.tag(),
            class: frame.class(),
            slot: frame.slot,
        }
    }
}

impl Marks {
    /// Nothing yet; no table grows beyond these limits.
    #[must_use]
    pub(crate) fn new(limits: &Limits, questions: Questions) -> Self {
        Self {
            names: Names::new(limits),
            sites: Sites::new(limits),
            executions: Executions::new(limits),
            tracks: Tracks::new(limits),
            language_models: LanguageModels::new(limits),
            causality: Causality::new(questions, limits),
            ..Self::default()
        }
    }

    /// The window begins at `begin` (ns): what is open then counts from there on.
    #[must_use]
    pub(crate) fn since(self, begin: u64) -> Self {
        let Self { causality, language_models, .. } = self;
        Self { causality: causality.since(begin), language_models: language_models.since(begin), ..self }
    }

    /// Where there are too many names, forgets those that no result and none of `open` needs; returns whether it did.
    #[inline]
    pub(crate) fn forget_names(&mut self, open: impl FnOnce() -> Vec<u64>) -> bool {
        let are_too_many = self.names.are_too_many();
        if are_too_many {
            let used = self.sites.names().chain(self.causality.names()).chain(open()).collect();
            self.names.retain(&used);
        }
        are_too_many
    }

    /// A section that matters beyond its thread begins. Records come in order of time; of one instant these come first.
    pub(crate) fn begin(&mut self, record: &BeginRecord) {
        let BeginRecord { tgid, tid, label, time, name, .. } = *record;
        let at = record.stamp();
        if let Some(tag) = label.tag().filter(|_| label.is_application_phase()) {
            match tag.phase() {
                Phase::WarmUp => self.timeline.phase_begins(tid, AppPhase::WarmUp, at),
                Phase::Benchmark => self.timeline.phase_begins(tid, AppPhase::Benchmark, at),
                _ => {
                    self.timeline.report_begins(tid, at, report_mark(tgid, &self.names, name));
                }
            }
            return;
        }
        match self.names.role(name) {
            Role::DriverStart => {
                let stretch = self.timeline.stretch(tid, at);
                self.executions.driver_begins(tgid, tid, stretch, time);
            }
            Role::DriverDone => {
                for (place, own) in self.executions.driver_done(tgid, time) {
                    self.sites.cover(place, own);
                }
            }
            _ => {}
        }
        if let Some(name) = self.names.get(name) {
            self.causality
                .callback(name.text.as_bytes(), Moment { pid: tgid, tid, time, sequence: record.sequence });
        }
    }

    /// The application's phases change; the kernel programs have numbered this after all before.
    pub(crate) fn app_event(&mut self, event: &AppEvent) {
        let AppEvent { change, tgid, tid, time, begin, name, .. } = *event;
        let mark = || report_mark(tgid, &self.names, name);
        self.slots.push(event, mark);
        match AppChange::from_code(change) {
            Some(AppChange::Report) => self.timeline.report_begins(tid, time.into(), mark()),
            Some(AppChange::WarmUp) => self.timeline.phase_begins(tid, AppPhase::WarmUp, time.into()),
            Some(AppChange::Benchmark) => self.timeline.phase_begins(tid, AppPhase::Benchmark, time.into()),
            Some(AppChange::PhaseEnds) => self.timeline.phase_ends(tid, begin.into(), time.into()),
            None => {}
        }
    }

    /// Number of the report that an open section belongs to.
    #[must_use]
    pub(crate) fn report_of(&self, open: &OpenSection) -> u32 {
        if self.slots.last() > 0 {
            self.slots.report(u32::from(open.slot))
        } else {
            self.timeline.stretch(open.tid, open.begin).report
        }
    }

    /// A section ended. Records come in order of time; `scheduling` has had its own of before.
    pub(crate) fn span(&mut self, span: &SpanRecord, scheduling: Option<&Scheduling>) {
        self.recent.take(span);
        let stretch = self.timeline.stretch(span.tid, span.begin_stamp());
        self.causality.span(span, scheduling);
        let names = &self.names;
        if LanguageModels::may_be_batch(span)
            && let Some(tokens) = names.get(span.name).and_then(|name| name.tokens)
        {
            self.language_models.batch(span, tokens);
        }
        self.causality.hand_over_section(span, || names.get(span.name).map(|name| &*name.text));
        let of_name =
            |name| names.get(name).map_or((Role::Ordinary, false), |name| (name.role, name.shows_driver));
        let Some(added) = self.sites.add(span, stretch, of_name).filter(|added| !added.is_plain) else {
            return;
        };
        let (pid, tid) = (span.tgid, span.tid);
        match added.role {
            Role::Start => self.executions.started(pid, tid, stretch, span.end),
            Role::Wait => self.executions.waited(pid, tid, span.begin, span.end),
            _ => {}
        }
        if is_driver_execution(added.tag) {
            if self.executions.covers(pid, span.begin, added.place, span.own) {
                self.sites.cover(added.place, span.own);
            }
        } else if ends_app_phase(added.tag) {
            self.timeline.phase_ends(tid, span.begin_stamp(), span.end_stamp());
        }
    }

    /// Takes a section that ended, at whatever place in the order of time; `false` if its place may matter: it has not been
    /// taken then.
    #[inline]
    pub(crate) fn span_anywhere(&mut self, span: &SpanRecord) -> bool {
        let Self { names, sites, timeline, causality, recent, .. } = self;
        let of_name = |name| names.get(name).map(|name| (name.role, name.shows_driver));
        let is_batch = LanguageModels::may_be_batch(span)
            && names.get(span.name).is_some_and(|name| name.tokens.is_some());
        let is_taken = !is_batch
            && !causality.needs_spans()
            && sites.add_plain(span, || timeline.stretch(span.tid, span.begin_stamp()), of_name);
        if is_taken {
            recent.take(span);
        }
        is_taken
    }

    /// Takes a counter, an instant or an end of an asynchronous slice; returns whether it could be read.
    pub(crate) fn track(&mut self, origin: Origin, time: u64, payload: &[u8]) -> bool {
        self.keep_causes(|causality| causality.instant(origin, time, payload));
        let Some(mark) = TrackMark::read(payload) else { return false };
        if let Some(event) = HandOverEvent::of_mark(origin, &mark) {
            self.keep_causes(|causality| causality.hand_over_event(event, Moment::new(origin, time)));
        }
        self.tracks.add(origin.pid, time, &mark);
        true
    }

    /// Takes the payload of a begin whose attributes matter; see [`Causality::begins`].
    pub(crate) fn annotated_begin(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        self.keep_causes(|causality| causality.begins(origin, time, payload, name_at));
    }

    fn keep_causes(&mut self, pass: impl FnOnce(&mut Causality)) {
        let were_kept = self.causality.is_needed();
        pass(&mut self.causality);
        self.charge_earlier(were_kept);
    }

    /// If causes were not kept before, and are now, sections so far were on no account.
    pub(crate) fn charge_earlier(&mut self, were_kept: bool) {
        if !were_kept && self.causality.is_needed() {
            self.causality.charge_to_none(self.sites.function_totals());
        }
    }

    /// Everything up to this moment (ns) has come.
    #[inline]
    pub(crate) fn advance(&mut self, until: u64) {
        self.causality.advance(until);
        self.executions.advance(until);
        self.tracks.advance(until);
    }

    /// The processes that are drivers: those that the user names, and those that show the server of a device.
    #[must_use]
    pub(crate) fn drivers(&self) -> BTreeSet<u32> {
        let mut drivers = &self.named_drivers | &self.seen_drivers;
        for site in self.sites.counted() {
            let name = self.names.get(site.key.name);
            if name.is_some_and(|name| name.shows_driver) {
                drivers.insert(site.key.pid);
            }
        }
        drivers
    }

    /// Whether any section is of that layer.
    #[must_use]
    pub(crate) fn shows(&self, layer: Layer) -> bool {
        self.sites.counted().any(|site| Tag::layer(site.tag) == layer)
    }

    /// Adds what never came to its end to the diagnostics: executions that nobody waited for, sections without end.
    pub(crate) fn add_unfinished(&self, diagnostics: &mut Vec<(DiagnosticKind, DiagnosticCount)>) {
        let drivers = self.drivers();
        let executions = self.executions.unfinished().filter(|e| !e.in_driver || drivers.contains(&e.pid));
        let mut all: Vec<_> = executions.map(|e| (e.time, e.tid, DiagnosticKind::WaitMissing)).collect();
        all.extend(self.open.iter().map(|open| (open.begin.time, open.tid, DiagnosticKind::OpenAtEnd)));
        all.sort_by_key(|&(time, tid, kind)| (time, tid, kind as u8));
        if let Some(time) = self.tracks.first_unmatched {
            let ends = self.tracks.unmatched_ends;
            let known = diagnostics.iter_mut().find(|(known, _)| *known == DiagnosticKind::UnmatchedEnd);
            if let Some((_, count)) = known {
                count.count = count.count.saturating_add(ends);
            } else {
                let first = DiagnosticCount::first(time, 0, b"the end of an asynchronous slice");
                diagnostics.push((DiagnosticKind::UnmatchedEnd, DiagnosticCount { count: ends, ..first }));
            }
        }
        for (time, tid, kind) in all {
            match diagnostics.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => {
                    count.count += 1;
                    if time < count.first_ns {
                        (count.first_ns, count.tid, count.len) = (time, tid, 0);
                    }
                }
                None => diagnostics.push((kind, DiagnosticCount::first(time, tid, b""))),
            }
        }
        diagnostics.sort_by_key(|(kind, _)| *kind as u8);
    }
}

/// The payload of the mark that begins a report.
fn report_mark(pid: u32, names: &Names, name: u64) -> String {
    format!("B|{pid}|[NN_LA_PO]{}", names.text(name))
}
