//! Collector of what traces have for their text: marks in memory, events of CPUs in a file without a name.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
    rc::Rc,
};

use nntrace_common::record::{BeginRecord, Record, SpanRecord};
use rustc_hash::FxHashMap;

use super::{
    super::{collect::Collection, error::EmitError, script::Script},
    power,
};
use crate::{
    model::{
        Findings,
        function_names::Names,
        input::{Input, Observe, Observer},
    },
    record::RecordedFacts,
};

/// Collector of a pass through traces.
#[derive(Debug, Default)]
pub struct Collector {
    collection: Collection,
    is_full: bool,
    names: FxHashMap<u64, String>,
    power: PowerLines,
}

/// Collector that an observer shares with who takes its results.
pub type SharedCollector = Rc<RefCell<Collector>>;

/// Lines of events of CPUs, each group after its time (ns) and length.
#[derive(Debug, Default)]
pub struct PowerLines {
    file: Option<BufWriter<File>>,
    lines: Vec<u8>,
    /// First failure; nothing is kept after it.
    failure: Option<io::Error>,
}

impl Collector {
    /// Makes the script of the marks; returns the events of CPUs, too.
    ///
    /// # Errors
    /// When there are too many marks.
    pub fn script(self, findings: &Findings<'_>) -> Result<(Script, PowerLines), EmitError> {
        let Self { collection, is_full, mut names, power } = self;
        if is_full {
            return Err(EmitError::TooManyMarks("the trace".into()));
        }
        let (run, marks) = (&findings.run, findings.marks);
        // Sections that have not ended were in no record.
        for open in &marks.open {
            if let Some(name) = marks.names.get(open.name) {
                names.entry(open.name).or_insert_with(|| name.text.clone());
            }
        }
        let facts = RecordedFacts {
            names,
            paths: marks.paths.iter().map(|(path, step)| (path, *step)).collect(),
            open: marks.open.clone(),
            processes: run.processes.iter().map(|(pid, process)| (*pid, process.comm.clone())).collect(),
            threads: run
                .threads
                .iter()
                .map(|thread| ((thread.pid, thread.tid), thread.comm.clone()))
                .collect(),
            damage: Vec::new(),
        };
        Ok((Script::made(collection, facts), power))
    }

    fn take(&mut self, input: &Input<'_>, names: &Names) {
        match input {
            Input::Record(
                record @ (Record::Idle(_)
                | Record::Frequency(_)
                | Record::Hotplug(_)
                | Record::FrequencyLimit(_)
                | Record::Cooling(_)
                | Record::Lost { .. }),
            ) => self.power.add(record),
            _ if self.is_full => {}
            Input::Record(
                Record::Span(SpanRecord { name, .. }) | Record::Begin(BeginRecord { name, .. }),
            )
            | Input::SpanAnywhere(SpanRecord { name, .. }) => {
                self.keep_name(*name, names);
                self.is_full = !self.collection.take(input);
            }
            _ => self.is_full = !self.collection.take(input),
        }
    }

    /// Keeps a name while the model has it: its table is bounded.
    fn keep_name(&mut self, hash: u64, names: &Names) {
        if !self.names.contains_key(&hash)
            && let Some(name) = names.get(hash)
        {
            self.names.insert(hash, name.text.clone());
        }
    }
}

impl PowerLines {
    fn add(&mut self, record: &Record) {
        if self.failure.is_none() {
            self.failure = self.write(record).err();
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        self.lines.clear();
        power::write(record, &mut self.lines);
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        file.write_all(&record.time().to_le_bytes())?;
        file.write_all(&(self.lines.len() as u64).to_le_bytes())?;
        file.write_all(&self.lines)
    }

    /// Hands out the lines, with their times (ns), in the order in which they came.
    ///
    /// # Errors
    /// When the file could not be written or read.
    pub fn visit(self, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Some(file) = self.file else { return Ok(()) };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let end = file.stream_position()?;
        file.rewind()?;
        let mut reader = BufReader::new(file);
        let mut lines = Vec::new();
        let mut at = 0;
        while at < end {
            let [mut time, mut length] = [[0; 8]; 2];
            reader.read_exact(&mut time)?;
            reader.read_exact(&mut length)?;
            let length = u64::from_le_bytes(length);
            lines.resize(length as usize, 0);
            reader.read_exact(&mut lines)?;
            take(u64::from_le_bytes(time), &lines);
            at += 16 + length;
        }
        Ok(())
    }
}

/// Returns an observer of a model that collects.
#[must_use]
pub fn observer(collector: &SharedCollector) -> Observer {
    Observer::new(SharedObserver(Rc::clone(collector)))
}

/// Observer with a shared collector.
struct SharedObserver(SharedCollector);

impl Observe for SharedObserver {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        self.0.borrow_mut().take(input, names);
    }
}
