//! Collection of the sections of runs and operators.

use std::{cell::RefCell, rc::Rc};

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::Class,
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use crate::model::{
    input::Observer,
    section::{Section, SectionObserver},
};

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
}

/// Function of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) pid: u32,
    pub(super) tag: Tag,
    pub(super) name: String,
}

/// Collected sections of a run.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) all: Vec<Piece>,
    pub(super) functions: Vec<Function>,
    /// Numbers of functions, by process, layer and phase, and name.
    numbers: FxHashMap<(u32, Tag), FxHashMap<String, u32>>,
    /// Sections that there was no room for.
    pub(super) left_out: u64,
}

/// Collector of the sections of runs and operators.
pub struct Collector {
    pieces: Rc<RefCell<Pieces>>,
    most: usize,
}

impl Collector {
    /// Creates a collector that takes so much memory at most, bytes.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let most = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<Piece>();
        Self { pieces: Rc::default(), most }
    }

    /// Returns an observer of a model that collects again.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.pieces.take();
        let (pieces, most) = (Rc::clone(&self.pieces), self.most);
        Observer::new(SectionObserver::new(move |section: &Section<'_>| {
            pieces.borrow_mut().take(section, most);
        }))
    }

    /// Returns the sections.
    pub(super) fn finish(&self) -> Pieces {
        self.pieces.take()
    }
}

/// Whether sections with this layer and phase are runs of a model.
pub(super) fn is_run(tag: Tag) -> bool {
    tag.layer() == Layer::Runtime && tag.phase() == Phase::Execution
}

/// Whether sections with this layer and phase are operators, or parts of a graph.
fn is_operator(tag: Tag) -> bool {
    matches!(tag.layer(), Layer::Driver | Layer::CpuFallback) && tag.phase().is_execution()
}

impl Pieces {
    pub(super) fn take(&mut self, section: &Section<'_>, most: usize) {
        // What a thread of a pool does is a part of what another thread executes.
        if !(is_run(section.tag) || is_operator(section.tag)) || section.class == Class::Handed {
            return;
        }
        if self.all.len() >= most {
            self.left_out += 1;
            return;
        }
        let function = self.number(section);
        self.all.push(Piece {
            tid: section.tid,
            begin: section.begin_stamp(),
            end: section.end_stamp(),
            depth: section.depth,
            function,
        });
    }

    fn number(&mut self, section: &Section<'_>) -> u32 {
        let names = self.numbers.entry((section.pid, section.tag)).or_default();
        if let Some(number) = names.get(&*section.name) {
            return *number;
        }
        let number = self.functions.len() as u32;
        let name = section.name.to_string();
        names.insert(name.clone(), number);
        self.functions.push(Function { pid: section.pid, tag: section.tag, name });
        number
    }
}
