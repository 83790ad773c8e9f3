//! Collection of the sections of runs and operators.

use std::{cell::RefCell, rc::Rc};

use nntrace_common::{
    driver_calls,
    layer::{Layer, Phase, Tag},
    stack::Class,
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::providers::Provider;
use crate::model::{
    input::Observer,
    section::{Section, SectionObserver},
};

/// Functions at most.
const MOST_FUNCTIONS: usize = 1 << 16;

/// Section of a run or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) tid: u32,
    pub(super) begin: Stamp,
    pub(super) end: Stamp,
    /// Sections that were open around it.
    pub(super) depth: u8,
    /// Number of its function.
    pub(super) function: u32,
    /// Whether it is a call that starts an asynchronous run, or waits for one: the run counts, and not the call.
    pub(super) is_call_of_run: bool,
}

/// Function of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) pid: u32,
    pub(super) tag: Tag,
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Kind of a function's sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Execution in the runtime.
    Run,
    /// A part of a graph, which a provider or a driver runs as a whole.
    Part,
    /// An operator, or what is done for a part: its inputs, outputs and results.
    Operator,
    /// A call to a driver.
    DriverCall,
}

impl Kind {
    /// Whether sections with this layer and phase are of any kind.
    fn is_any(tag: Tag) -> bool {
        match tag.layer() {
            Layer::Runtime => tag.phase() == Phase::Execution,
            Layer::Driver | Layer::CpuFallback => tag.phase().is_execution(),
            _ => false,
        }
    }

    /// Returns the kind of sections for which [`is_any`](Self::is_any) holds.
    fn of(tag: Tag, name: &str) -> Self {
        match tag.layer() {
            Layer::Runtime => Self::Run,
            Layer::Driver if driver_calls::device_of(name).is_some() => Self::DriverCall,
            Layer::Driver if matches!(tag.phase(), Phase::Execution | Phase::Computation) => Self::Part,
            _ if Provider::named_by(name).is_some() => Self::Part,
            _ => Self::Operator,
        }
    }
}

/// Collected sections of a run.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) all: Vec<Piece>,
    pub(super) functions: Vec<Function>,
    /// Numbers of functions, by process, layer and phase, and name.
    numbers: FxHashMap<(u32, Tag), FxHashMap<String, u32>>,
    /// Sections for which there was no memory.
    pub(super) left_out: u64,
}

/// Collector of the sections of runs and operators.
pub struct Collector {
    pieces: Rc<RefCell<Pieces>>,
    most: usize,
}

impl Collector {
    /// Creates a collector that takes this much memory for sections at most, bytes.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let most = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<Piece>();
        Self { pieces: Rc::default(), most }
    }

    /// Returns an observer of a model that starts a new collection.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.pieces.take();
        let (pieces, most) = (Rc::clone(&self.pieces), self.most);
        Observer::new(SectionObserver::new(move |section: &Section<'_>| {
            pieces.borrow_mut().take(section, most);
        }))
    }

    /// Takes the sections out.
    pub(super) fn take(&self) -> Pieces {
        self.pieces.take()
    }
}

impl Pieces {
    fn take(&mut self, section: &Section<'_>, most: usize) {
        // The thread of a pool works for a section of another thread; threads that take no part are shown nowhere.
        if !Kind::is_any(section.tag) || section.class == Class::Handed || section.is_provisional {
            return;
        }
        let function = if self.all.len() < most { self.number(section) } else { None };
        let Some(function) = function else {
            self.left_out += 1;
            return;
        };
        self.all.push(Piece {
            tid: section.tid,
            begin: section.begin_stamp(),
            end: section.end_stamp(),
            depth: section.depth,
            function,
            is_call_of_run: section.class == Class::Part,
        });
    }

    /// Returns the number of a section's function; `None` for a new one when there are too many.
    fn number(&mut self, section: &Section<'_>) -> Option<u32> {
        let names = self.numbers.entry((section.pid, section.tag)).or_default();
        if let Some(number) = names.get(&*section.name) {
            return Some(*number);
        }
        let number = self.functions.len();
        if number >= MOST_FUNCTIONS {
            return None;
        }
        let name = section.name.to_string();
        names.insert(name.clone(), number as u32);
        let kind = Kind::of(section.tag, &name);
        self.functions.push(Function { pid: section.pid, tag: section.tag, name, kind });
        Some(number as u32)
    }
}
