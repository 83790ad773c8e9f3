//! `nntrace-bpf print`: single sections of a recording or of trace files.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, Write as _},
    ops::ControlFlow,
    path::Path,
    process::ExitCode,
    rc::Rc,
};

use anyhow::{Context as _, Result};
use nntrace_user::{
    model::{
        causality::Questions,
        limits::Limits,
        plurals::one_or_many,
        section::Section,
        section_filter::{Hidden, SectionFilter},
        unfinished_sections::UnfinishedSection,
    },
    record::{self, OrderedSections},
    replay,
    report::{
        section_lines::{self, Nesting},
        section_list,
        snapshot::Snapshot,
    },
};

use super::info;
use crate::{
    arguments::{Group, Print, default_memory, usage},
    output, stderr,
};

/// Bytes that are written at once.
const AT_ONCE: usize = 64 << 10;

/// Prints the sections; returns the exit status.
pub fn run(cli: &Print) -> Result<ExitCode> {
    let Some(folder) = cli.files.iter().find(|file| record::is_recording(file)) else {
        if cli.command {
            return Err(usage(format!("--command is for recordings: {} is none", cli.files[0].display())));
        }
        return print_traces(cli);
    };
    if cli.files.len() > 1 {
        let folder = folder.display();
        return Err(usage(format!(
            "cannot print the recording {folder} together with other files: name it alone"
        )));
    }
    if cli.iteration_root.is_some() {
        return Err(usage(
            "--iteration-root is for traces: `replay` numbers the iterations of a recording".into(),
        ));
    }
    if cli.command {
        return info::print_command(folder);
    }
    print_recording(folder, cli)
}

/// Sections of traces that are shown, in the order in which they end, and those that are not.
#[derive(Default)]
struct Ended {
    sections: Vec<Section<'static>>,
    hidden: Hidden,
}

impl Ended {
    fn take(&mut self, section: &Section<'_>, filter: &SectionFilter) {
        if filter.shows(section) {
            let (name, attributes) =
                (section.name.clone().into_owned(), section.attributes.clone().into_owned());
            self.sections.push(Section { name: name.into(), attributes: attributes.into(), ..*section });
        } else {
            self.hidden.add(section.duration_ns());
        }
    }
}

fn print_traces(cli: &Print) -> Result<ExitCode> {
    if cli.json_lines && cli.iteration_root.is_some() {
        return Err(usage(
            "--json-lines has the attributes of marks, and no iterations: leave --iteration-root out, or use \
             `replay --table iterations`"
                .into(),
        ));
    }
    let options = replay::Options {
        files: cli.files.clone(),
        range: cli.sections.range,
        limits: Limits::of_memory(default_memory()),
        questions: Questions {
            graph: true,
            iteration_root: cli.iteration_root.clone(),
            ..Questions::default()
        },
        ..replay::Options::default()
    };
    // Nothing of the time outside is in it: what overlaps an end is cut there.
    let filter = SectionFilter { range: None, ..cli.sections.filter() };
    let ended = Rc::new(RefCell::new(Ended::default()));
    let replayed = if cli.json_lines {
        // Each pass through the traces begins again.
        let mut start = || {
            let (ended, filter) = (Rc::clone(&ended), filter.clone());
            ended.take();
            move |section: &Section<'_>| ended.borrow_mut().take(section, &filter)
        };
        replay::replay_with_sections(&options, &mut start)?
    } else {
        replay::replay(&options)?
    };
    let marks = replayed.marks();
    let Ended { sections, mut hidden } = ended.take();
    if cli.json_lines {
        let threads = sections.iter().map(|section| (section.pid, section.tid));
        let unfinished = replayed.findings().unfinished_sections(threads);
        output::write_stdout(&section_list::json_lines(&unfinished, sections, &filter, &mut hidden)?)?;
    } else {
        let show = match (cli.tree, cli.group) {
            (true, _) => section_list::tree,
            (false, Some(Group::Thread)) => section_list::list_by_thread,
            (false, _) => section_list::list,
        };
        output::print(&show(marks, &filter, &mut hidden))?;
    }
    for note in Snapshot::of(&replayed.findings()).notes {
        stderr::message(note);
    }
    tell_hidden(&filter, hidden);
    Ok(ExitCode::SUCCESS)
}

fn print_recording(folder: &Path, cli: &Print) -> Result<ExitCode> {
    let sections = OrderedSections::open(folder)?;
    let filter = cli.sections.filter();
    let by_thread = cli.group.map_or(cli.tree, |group| group == Group::Thread);
    let unfinished = unfinished(&sections, by_thread);
    let mut printer = Printer {
        sections: &sections,
        filter: &filter,
        unfinished,
        json: cli.json_lines,
        by_thread,
        nesting: cli.tree.then(Nesting::default),
        heading: None,
        lines: Vec::with_capacity(2 * AT_ONCE),
        hidden: Hidden::default(),
        failure: None,
    };
    let take = |section: &Section<'_>, thread: Option<u32>| printer.take(section, thread);
    let _ = if by_thread { sections.visit_by_thread(take) } else { sections.visit(take) };
    let hidden = printer.finish()?;
    for text in sections.damage() {
        stderr::message(text);
    }
    let lost = sections.loss().records_dropped;
    if lost > 0 {
        let were = one_or_many(lost, "record of the run was", "records of the run were");
        stderr::message(format_args!("{lost} {were} lost: sections are missing"));
    }
    tell_hidden(&filter, hidden);
    Ok(ExitCode::SUCCESS)
}

/// Section that had not ended, with the place of its thread.
type PlacedUnfinished = (UnfinishedSection, Option<u32>);

/// Returns the sections of a recording that had not ended, in the order in which those that ended are printed.
fn unfinished(sections: &OrderedSections, by_thread: bool) -> VecDeque<PlacedUnfinished> {
    let threads = sections.threads();
    let placed = sections.unfinished().into_iter().map(|section| {
        let place = section.pid.and_then(|pid| threads.place(pid, section.tid, section.begin_ns()));
        (section, place)
    });
    let mut placed: Vec<PlacedUnfinished> = placed.collect();
    placed.sort_by_key(|(section, place)| order(by_thread, *place, section.begin_ns()));
    placed.into()
}

/// Returns the order of a section: by its begin, or first by the place of its thread; threads without one come last.
fn order(by_thread: bool, place: Option<u32>, begin_ns: u64) -> (u32, u64) {
    (if by_thread { place.unwrap_or(u32::MAX) } else { 0 }, begin_ns)
}

/// Tells how many sections a filter has hidden.
pub fn tell_hidden(filter: &SectionFilter, hidden: Hidden) {
    if !filter.shows_all() {
        stderr::message(hidden);
    }
}

/// Thread of a heading.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Heading {
    /// Place of the thread; `None` where no fork shows it.
    place: Option<u32>,
    tid: u32,
}

/// Printer of the sections of a recording.
struct Printer<'a> {
    sections: &'a OrderedSections,
    filter: &'a SectionFilter,
    /// Sections that had not ended and are not printed yet, in order.
    unfinished: VecDeque<PlacedUnfinished>,
    json: bool,
    by_thread: bool,
    /// Open sections, for a tree.
    nesting: Option<Nesting>,
    /// Thread whose heading was printed last; `None` before the first.
    heading: Option<Heading>,
    lines: Vec<u8>,
    hidden: Hidden,
    failure: Option<io::Error>,
}

impl Printer<'_> {
    fn take(&mut self, section: &Section<'_>, thread: Option<u32>) -> ControlFlow<()> {
        self.take_unfinished(order(self.by_thread, thread, section.begin_ns))?;
        if !self.filter.shows(section) {
            self.hidden.add(section.duration_ns());
            return ControlFlow::Continue(());
        }
        self.head(thread, section.tid, Some(section.pid));
        if self.json {
            section_lines::json(&mut self.lines, section, Some(self.sections.threads().name(thread)));
        } else {
            let depth = self.nesting.as_mut().map_or(0, |nesting| nesting.depth(thread, section));
            section_lines::text(&mut self.lines, section, depth);
        }
        if self.lines.len() >= AT_ONCE { self.write() } else { ControlFlow::Continue(()) }
    }

    /// Takes the sections that have not ended and come before a place in the order, or at it: they are around others of their
    /// instant.
    fn take_unfinished(&mut self, until: (u32, u64)) -> ControlFlow<()> {
        let by_thread = self.by_thread;
        while let Some((section, thread)) = self
            .unfinished
            .pop_front_if(|(section, thread)| order(by_thread, *thread, section.begin_ns()) <= until)
        {
            let UnfinishedSection { pid, tid, tag, name, .. } = &section;
            if !self.filter.shows_unfinished(*tid, section.begin_ns(), *tag, name) {
                self.hidden.add(0);
                continue;
            }
            self.head(thread, *tid, *pid);
            if self.json {
                let name = self.sections.threads().name(thread);
                if let Err(error) = section_lines::unfinished_json(&mut self.lines, &section, Some(name)) {
                    self.failure = Some(error.into());
                    return ControlFlow::Break(());
                }
            } else {
                let depth =
                    self.nesting.as_mut().map_or(0, |nesting| nesting.unfinished_depth(thread, &section));
                section_lines::unfinished_text(&mut self.lines, &section, depth);
            }
            if self.lines.len() >= AT_ONCE {
                self.write()?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds the heading of a thread before its first section.
    fn head(&mut self, thread: Option<u32>, tid: u32, pid: Option<u32>) {
        let heading = Some(Heading { place: thread, tid });
        if !self.by_thread || self.heading == heading {
            return;
        }
        self.heading = heading;
        let name = self.sections.threads().name(thread);
        let process = pid.map_or_else(|| "an unknown process".into(), |pid| format!("process {pid}"));
        self.lines.extend_from_slice(format!("{name}: thread {tid} of {process}\n").as_bytes());
    }

    /// Writes the lines; breaks off when their reader went away, or on a failure.
    fn write(&mut self) -> ControlFlow<()> {
        // Not line by line, as the stdout of the library does.
        let written = io::stdout().lock().write_all(&self.lines);
        self.lines.clear();
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error).filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
                ControlFlow::Break(())
            }
        }
    }

    /// Writes what is left; returns what was hidden.
    fn finish(mut self) -> Result<Hidden> {
        let is_complete = self.failure.is_none() && self.take_unfinished((u32::MAX, u64::MAX)).is_continue();
        if is_complete && self.write().is_continue() {
            match io::stdout().lock().flush() {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => self.failure = Some(error),
                _ => {}
            }
        }
        self.failure.map_or(Ok(self.hidden), Err).context("cannot write to stdout")
    }
}
