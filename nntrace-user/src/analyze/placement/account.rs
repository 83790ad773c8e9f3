//! Account of where the operators of each process ran.
//!
//! The sections of a thread nest. Counted are *operators* with no other in them, and *parts* with all that is in them. What is
//! around operators, such as a loop or a plugin's request, has the time that no operator in it takes. A run is the outermost
//! execution in the runtime. All of these are apart in time, and so their times add up. Calls of drivers are a part of the
//! operators and parts around them, and apart from operators where there is none.

use std::collections::BTreeMap;

use nntrace_common::{driver_calls, layer::Layer};

use super::{
    collect::{Function, Kind, Piece, Pieces},
    providers::{Processor, Provider},
};

/// Place where operators run: who runs them, and on what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// Name of the provider; `None` for the engine's own code, and where it is not known.
    pub(super) provider: Option<String>,
    /// `None` where it is not known.
    pub(super) processor: Option<Processor>,
    /// Whether a driver or a provider has it, instead of the engine's own code.
    pub(super) is_handed_over: bool,
}

/// Calls and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) count: u64,
    pub(super) ns: u64,
}

impl Calls {
    pub(super) fn add(&mut self, ns: u64) {
        self.add_all(Self { count: 1, ns });
    }

    pub(super) fn add_all(&mut self, other: Self) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Calls of drivers, by device.
pub(super) type DriverCalls = BTreeMap<String, Calls>;

/// Sum of the sections of one function that are in no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionSum {
    pub(super) function: Function,
    /// Number of its place.
    pub(super) place: usize,
    /// Calls with no operator in them, and those of a part.
    pub(super) calls: Calls,
    /// Longest of these, ns.
    pub(super) max_ns: u64,
    /// Calls with operators in them, and the time that is not these operators'.
    pub(super) around: Calls,
    /// Time of both that is in runs, ns.
    pub(super) in_runs_ns: u64,
    /// Operators on the CPU in the part that call no driver.
    pub(super) on_cpu_inside: Calls,
    /// Calls of drivers in it.
    pub(super) driver_calls: DriverCalls,
}

/// Account of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Runs of models.
    pub(super) runs: Calls,
    /// Operators and parts with no run around them that has ended.
    pub(super) outside_runs: Calls,
    /// Times that an operator in a run followed one of another place, with the time from the end of the one to the start of
    /// the other.
    pub(super) crossings: Calls,
    /// Calls of drivers outside of operators.
    pub(super) driver_calls: DriverCalls,
    /// Places, by number.
    pub(super) places: Vec<Place>,
    /// Functions that were operators, parts, or around them.
    pub(super) functions: Vec<FunctionSum>,
}

/// What a section is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A run, which counts unless it is in another one, or in an operator.
    Run { counts: bool },
    /// A part of a graph.
    Part,
    /// An operator, unless there are others in it.
    Operator,
    /// A call of a driver.
    DriverCall,
    /// A section in a call of a driver, which has none of the program's.
    Ignored,
}

/// Section that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    piece: Piece,
    role: Role,
    /// Time of the operators and parts directly in it, ns.
    inside_ns: u64,
    has_operators: bool,
    has_driver_calls: bool,
}

/// Walk along the sections of one process.
struct Walk<'a> {
    account: Account,
    functions: &'a [Function],
    /// Processor of the engine's own code.
    own_processor: Option<Processor>,
    /// Numbers in the account, by function.
    sums: BTreeMap<u32, usize>,
    open: Vec<Open>,
    /// Place and end of the last operator in the open run.
    last: Option<(usize, u64)>,
}

/// Returns the account of each process. The engine's own code runs on this processor.
pub(super) fn accounts(pieces: &mut Pieces, own_processor: Option<Processor>) -> BTreeMap<u32, Account> {
    let Pieces { all, functions, .. } = pieces;
    let pid = |piece: &Piece| functions[piece.function as usize].pid;
    all.sort_unstable_by_key(|piece| (pid(piece), piece.tid, piece.begin, piece.depth, piece.end));
    let processes = all.chunk_by(|one, other| pid(one) == pid(other));
    let walk = || Walk {
        account: Account::default(),
        functions,
        own_processor,
        sums: BTreeMap::new(),
        open: Vec::new(),
        last: None,
    };
    processes.map(|pieces| (pid(&pieces[0]), walk().account(pieces))).collect()
}

impl Walk<'_> {
    fn account(mut self, pieces: &[Piece]) -> Account {
        for thread in pieces.chunk_by(|one, other| one.tid == other.tid) {
            for &piece in thread {
                self.close(|open| open.piece.depth >= piece.depth || open.piece.end < piece.end);
                let open = Open {
                    piece,
                    role: self.role(&piece),
                    inside_ns: 0,
                    has_operators: false,
                    has_driver_calls: false,
                };
                self.open.push(open);
            }
            self.close(|_| true);
            self.last = None;
        }
        self.account
    }

    fn role(&self, piece: &Piece) -> Role {
        if self.open.iter().any(|open| open.role == Role::DriverCall) {
            return Role::Ignored;
        }
        match self.functions[piece.function as usize].kind {
            Kind::Run => Role::Run { counts: self.open.is_empty() },
            Kind::Part => Role::Part,
            Kind::Operator => Role::Operator,
            Kind::DriverCall => Role::DriverCall,
        }
    }

    /// Closes the innermost sections, as long as they have ended.
    fn close(&mut self, has_ended: impl Fn(&Open) -> bool) {
        while let Some(open) = self.open.pop_if(|open| has_ended(open)) {
            let ns = open.piece.end.time.saturating_sub(open.piece.begin.time);
            match open.role {
                Role::Run { counts: true } => {
                    self.account.runs.add(ns);
                    self.last = None;
                }
                Role::Run { counts: false } | Role::Ignored => {}
                Role::DriverCall => self.close_driver_call(open.piece.function, ns),
                Role::Part | Role::Operator => self.close_operator(&open, ns),
            }
        }
    }

    /// Adds a call of a driver to the outermost part around it, or else to the operator.
    fn close_driver_call(&mut self, function: u32, ns: u64) {
        let Some(device) = driver_calls::device_of(&self.functions[function as usize].name) else { return };
        let device = device.to_owned();
        for open in &mut self.open {
            open.has_driver_calls = true;
        }
        let part = self.open.iter().find(|open| open.role == Role::Part);
        let around = part.or_else(|| self.open.iter().rfind(|open| open.role == Role::Operator));
        let calls = match around.map(|open| open.piece.function) {
            Some(around) => &mut self.sum(around).driver_calls,
            None => &mut self.account.driver_calls,
        };
        calls.entry(device).or_default().add(ns);
    }

    fn close_operator(&mut self, open: &Open, ns: u64) {
        let is_operator = |open: &&mut Open| matches!(open.role, Role::Part | Role::Operator);
        if let Some(around) = self.open.iter_mut().rev().find(is_operator) {
            around.has_operators = true;
            around.inside_ns = around.inside_ns.saturating_add(ns);
        }
        let part = self.open.iter().find(|open| open.role == Role::Part).map(|open| open.piece.function);
        if let Some(part) = part {
            if open.role == Role::Operator && !open.has_operators && !open.has_driver_calls {
                self.sum(part).on_cpu_inside.add(ns);
            }
            return;
        }
        let is_in_run = self.open.iter().any(|open| matches!(open.role, Role::Run { counts: true }));
        let is_around = open.role == Role::Operator && open.has_operators;
        let own = if is_around { ns.saturating_sub(open.inside_ns) } else { ns };
        let sum = self.sum(open.piece.function);
        if is_around {
            sum.around.add(own);
        } else {
            sum.calls.add(own);
            sum.max_ns = sum.max_ns.max(own);
        }
        if is_in_run {
            sum.in_runs_ns = sum.in_runs_ns.saturating_add(own);
        }
        let place = sum.place;
        if is_around {
            return;
        }
        if !is_in_run {
            self.account.outside_runs.add(own);
            return;
        }
        if let Some((_, before)) = self.last.filter(|(last, _)| *last != place) {
            self.account.crossings.add(open.piece.begin.time.saturating_sub(before));
        }
        self.last = Some((place, open.piece.end.time));
    }

    /// Returns the sum of a function.
    fn sum(&mut self, number: u32) -> &mut FunctionSum {
        let Self { account: Account { places, functions: sums, .. }, functions, .. } = self;
        let at = *self.sums.entry(number).or_insert_with(|| {
            let function = functions[number as usize].clone();
            let place = Place::of(&function, self.own_processor);
            let known = places.iter().position(|known| *known == place);
            let place = known.unwrap_or_else(|| {
                places.push(place);
                places.len() - 1
            });
            sums.push(FunctionSum {
                function,
                place,
                calls: Calls::default(),
                max_ns: 0,
                around: Calls::default(),
                in_runs_ns: 0,
                on_cpu_inside: Calls::default(),
                driver_calls: BTreeMap::new(),
            });
            sums.len() - 1
        });
        &mut sums[at]
    }
}

impl Place {
    fn of(function: &Function, own_processor: Option<Processor>) -> Self {
        if let Some(Provider { name, processor }) = Provider::named_by(&function.name) {
            return Self { provider: Some(name), processor, is_handed_over: true };
        }
        let is_handed_over = function.tag.layer() == Layer::Driver;
        let processor = own_processor.filter(|_| !is_handed_over);
        Self { provider: None, processor, is_handed_over }
    }
}
