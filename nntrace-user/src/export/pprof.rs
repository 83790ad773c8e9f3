//! A profile in the format of pprof: the sections of all processes as stacks, with their number and their exclusive time.

mod labels;
mod messages;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io};

use flate2::{Compression, GzBuilder};
use nntrace_common::layer::Tag;
use prost::Message as _;

use self::{
    labels::{Label, Labels, Value},
    messages::{Function, Line, Location, Mapping, Profile, Sample, ValueType},
};
use crate::{
    model::{Findings, stacked_functions::StackedFunction},
    report::terminal_text::clean,
};

/// Type of the values that are shown first.
const WALL: &str = "wall";
/// Frame of a function without a name.
const NAMELESS: &str = "(no name)";
/// Unit of times.
const NANOSECONDS: &str = "nanoseconds";

/// Renders the profile, compressed. `began_ns` is when the run began, ns since 1970, where that is known. Equal findings give
/// equal bytes.
///
/// # Errors
/// When it cannot be compressed.
pub fn render(findings: &Findings<'_>, began_ns: Option<u64>) -> io::Result<Vec<u8>> {
    let profile = profile(findings, began_ns);
    let encoder = GzBuilder::new().mtime(0).operating_system(255);
    let mut encoder = encoder.write(Vec::new(), Compression::default());
    io::Write::write_all(&mut encoder, &profile.encode_to_vec())?;
    encoder.finish()
}

/// Returns the profile.
fn profile(findings: &Findings<'_>, began_ns: Option<u64>) -> Profile {
    let mut builder = Builder::new();
    let has_threads = !findings.run.threads.is_empty();
    builder.value("sections", "count");
    builder.value(WALL, NANOSECONDS);
    if has_threads {
        builder.value("on_cpu", NANOSECONDS);
    }
    let labels = Labels::of(findings);
    for group in groups(findings.stacked_functions()) {
        for (function, total, own_labels) in labels.split(&group) {
            let mut stack = vec![findings.process_name(function.pid)];
            stack.extend(function.path.iter().map(ToString::to_string));
            stack.extend(function.name.map(|name| findings.marks.names.text(name)));
            let values = [total.count, total.exclusive, 0];
            builder.sample(&stack, &values, function.pid, &own_labels);
        }
    }
    for thread in findings.run.threads.iter() {
        let stack = [findings.process_name(thread.pid), thread.comm.clone()];
        let label = Label { key: "tid", value: Value::Number(thread.tid.into()) };
        builder.sample(&stack, &[0, 0, thread.times.on_cpu], thread.pid, &[label]);
    }
    let window = &findings.run.window;
    builder.finish(began_ns, window.length_ns())
}

/// Returns the functions with all stacks of each together, in the order of the first.
fn groups(functions: Vec<StackedFunction>) -> Vec<Vec<StackedFunction>> {
    let mut places: BTreeMap<(u32, Option<u8>, Option<u64>), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<StackedFunction>> = Vec::new();
    for function in functions {
        let key = (function.pid, function.tag().map(Tag::index), function.name);
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(function);
    }
    groups
}

/// Profile that is being put together.
struct Builder {
    profile: Profile,
    texts: BTreeMap<String, i64>,
    /// Numbers of locations, by the text of their frames.
    locations: BTreeMap<i64, u64>,
}

impl Builder {
    fn new() -> Self {
        let profile = Profile { mapping: vec![Mapping { id: 1, has_functions: true }], ..Profile::default() };
        let mut builder = Self { profile, texts: BTreeMap::new(), locations: BTreeMap::new() };
        // The first text is the empty one.
        builder.text("");
        builder
    }

    /// Returns the index of a text, made clean.
    fn text(&mut self, text: &str) -> i64 {
        let text = clean(text);
        if let Some(known) = self.texts.get(&*text) {
            return *known;
        }
        let table = &mut self.profile.string_table;
        let index = signed(table.len() as u64);
        table.push(text.clone().into_owned());
        self.texts.insert(text.into_owned(), index);
        index
    }

    /// Adds a type of values.
    fn value(&mut self, name: &str, unit: &str) {
        let value = ValueType { r#type: self.text(name), unit: self.text(unit) };
        self.profile.sample_type.push(value);
    }

    /// Returns the number of the location of a frame.
    fn location(&mut self, frame: &str) -> u64 {
        let name = self.text(if frame.is_empty() { NAMELESS } else { frame });
        if let Some(known) = self.locations.get(&name) {
            return *known;
        }
        let id = self.profile.location.len() as u64 + 1;
        self.profile.function.push(Function { id, name });
        self.profile.location.push(Location { id, mapping_id: 1, line: vec![Line { function_id: id }] });
        self.locations.insert(name, id);
        id
    }

    /// Adds a sample of a process, with a stack from the outermost frame in, and a value of each type that there is.
    fn sample(&mut self, stack: &[String], values: &[u64], pid: u32, labels: &[Label]) {
        let own = [
            Label { key: "process", value: Value::Text(stack.first().cloned().unwrap_or_default()) },
            Label { key: "pid", value: Value::Number(pid.into()) },
        ];
        let label = own.iter().chain(labels).map(|label| self.label(label)).collect();
        let location_id = stack.iter().rev().map(|frame| self.location(frame)).collect();
        let value = self.profile.sample_type.iter().zip(values).map(|(_, value)| signed(*value)).collect();
        self.profile.sample.push(Sample { location_id, value, label });
    }

    fn label(&mut self, label: &Label) -> messages::Label {
        let key = self.text(label.key);
        match &label.value {
            Value::Text(text) => messages::Label { key, str: self.text(text), ..messages::Label::default() },
            // Without a unit, pprof takes a number that is 0 for none.
            Value::Number(number) => messages::Label { key, num: signed(*number), num_unit: key, str: 0 },
        }
    }

    fn finish(mut self, began_ns: Option<u64>, length_ns: u64) -> Profile {
        let tool = self.text(concat!("nntrace-bpf ", env!("CARGO_PKG_VERSION")));
        let shown_first = self.text(WALL);
        Profile {
            time_nanos: began_ns.map_or(0, signed),
            duration_nanos: signed(length_ns),
            comment: vec![tool],
            default_sample_type: shown_first,
            ..self.profile
        }
    }
}

/// Returns a number as the format has it, which knows those with a sign only.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
