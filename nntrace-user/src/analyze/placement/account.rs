//! Account of where the operators of each process ran.
//!
//! The sections of a thread nest. An *operator* is a section of the driver's or the CPU's layer with no other in it; a *part*
//! is one in which a provider works, with all that is in it. What is around operators, such as a loop or a plugin's request,
//! has the time that no operator in it takes. A run is the outermost execution in the runtime. All of these are apart in
//! time, and so their times add up. Calls of drivers in operators and parts are a part of their time.

use std::collections::BTreeMap;

use nntrace_common::{driver_calls, layer::Layer};

use super::{
    collect::{Function, Piece, Pieces, is_run},
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
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}

/// Sum of the sections of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionSum {
    pub(super) function: Function,
    /// Number of its place.
    pub(super) place: usize,
    /// Whether a provider or a driver works in it: it is a part of a graph.
    pub(super) is_part: bool,
    /// Whether it was around operators.
    pub(super) is_around: bool,
    /// Sections that are not in a part, with the time that is theirs alone.
    pub(super) calls: Calls,
    /// Longest of them, ns.
    pub(super) max_ns: u64,
    /// Operators on the CPU inside of the part.
    pub(super) on_cpu_inside: Calls,
    /// Calls of drivers, by device.
    pub(super) driver_calls: BTreeMap<String, Calls>,
}

/// Account of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Runs of models.
    pub(super) runs: Calls,
    /// Time of operators that is in runs, ns.
    pub(super) in_runs_ns: u64,
    /// Times that an operator in a run followed one of another place, with the time between the two.
    pub(super) crossings: Calls,
    /// Places, by number.
    pub(super) places: Vec<Place>,
    /// Functions that were operators, parts, or around them.
    pub(super) functions: Vec<FunctionSum>,
}

/// What a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run, which counts unless it is in another one, or in an operator.
    Run { counts: bool },
    /// A part of a graph.
    Part,
    /// An operator, unless there are others in it.
    Operator,
    /// A call of a driver.
    DriverCall,
}

/// Section that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    piece: Piece,
    kind: Kind,
    /// Time of the operators and parts directly in it, ns.
    inside_ns: u64,
    has_operators: bool,
}

/// Walk along the sections of one process.
struct Walk<'a> {
    account: Account,
    functions: &'a [Function],
    /// Number in the account of each function.
    sums: Vec<Option<usize>>,
    open: Vec<Open>,
    /// Place and end of the last operator in the open run.
    last: Option<(usize, u64)>,
}

/// Returns the account of each process.
pub(super) fn accounts(pieces: &mut Pieces) -> BTreeMap<u32, Account> {
    let Pieces { all, functions, .. } = pieces;
    let pid = |piece: &Piece| functions[piece.function as usize].pid;
    all.sort_unstable_by_key(|piece| (pid(piece), piece.tid, piece.begin, piece.depth));
    let processes = all.chunk_by(|one, other| pid(one) == pid(other));
    processes.map(|pieces| (pid(&pieces[0]), Walk::new(functions).account(pieces))).collect()
}

impl<'a> Walk<'a> {
    fn new(functions: &'a [Function]) -> Self {
        let sums = vec![None; functions.len()];
        Self { account: Account::default(), functions, sums, open: Vec::new(), last: None }
    }

    fn account(mut self, pieces: &[Piece]) -> Account {
        for thread in pieces.chunk_by(|one, other| one.tid == other.tid) {
            for &piece in thread {
                self.close(|open| open.piece.depth >= piece.depth || open.piece.end < piece.end);
                let kind = self.kind(&piece);
                self.open.push(Open { piece, kind, inside_ns: 0, has_operators: false });
            }
            self.close(|_| true);
            self.last = None;
        }
        self.account
    }

    fn kind(&self, piece: &Piece) -> Kind {
        let Function { tag, name, .. } = &self.functions[piece.function as usize];
        if is_run(*tag) {
            Kind::Run { counts: self.open.iter().all(|open| open.kind == Kind::DriverCall) }
        } else if driver_calls::device_of(name).is_some() {
            Kind::DriverCall
        } else if tag.layer() == Layer::Driver || Provider::named_by(name).is_some() {
            Kind::Part
        } else {
            Kind::Operator
        }
    }

    /// Closes the innermost sections as long as they have ended.
    fn close(&mut self, has_ended: impl Fn(&Open) -> bool) {
        while let Some(open) = self.open.pop_if(|open| has_ended(open)) {
            let ns = open.piece.end.time.saturating_sub(open.piece.begin.time);
            match open.kind {
                Kind::Run { counts } => self.close_run(counts, ns),
                Kind::DriverCall => self.close_driver_call(&open, ns),
                Kind::Part | Kind::Operator => self.close_operator(&open, ns),
            }
        }
    }

    fn close_run(&mut self, counts: bool, ns: u64) {
        if counts {
            self.account.runs.add(ns);
            self.last = None;
        }
    }

    /// Adds a call of a driver to the outermost part, or else to the operator around it. With neither around it, it stands for
    /// what the driver does.
    fn close_driver_call(&mut self, call: &Open, ns: u64) {
        let part = self.open.iter().find(|open| open.kind == Kind::Part);
        let around = part.or_else(|| self.open.iter().rfind(|open| open.kind == Kind::Operator));
        let around = around.map(|open| open.piece.function);
        if around.is_none() {
            self.close_operator(call, ns);
        }
        let functions = self.functions;
        if let Some(device) = driver_calls::device_of(&functions[call.piece.function as usize].name) {
            let sum = self.sum(around.unwrap_or(call.piece.function));
            sum.driver_calls.entry(device.to_owned()).or_default().add(ns);
        }
    }

    fn close_operator(&mut self, open: &Open, ns: u64) {
        let is_operator = |open: &&mut Open| matches!(open.kind, Kind::Part | Kind::Operator);
        if let Some(around) = self.open.iter_mut().rev().find(is_operator) {
            around.has_operators = true;
            around.inside_ns = around.inside_ns.saturating_add(ns);
        }
        let part = self.open.iter().find(|open| open.kind == Kind::Part).map(|open| open.piece.function);
        if let Some(part) = part {
            if open.kind == Kind::Operator && !open.has_operators {
                self.sum(part).on_cpu_inside.add(ns);
            }
            return;
        }
        let is_around = open.kind == Kind::Operator && open.has_operators;
        let own = if is_around { ns.saturating_sub(open.inside_ns) } else { ns };
        let sum = self.sum(open.piece.function);
        sum.calls.add(own);
        sum.max_ns = sum.max_ns.max(own);
        sum.is_around |= is_around;
        let place = sum.place;
        if !self.open.iter().any(|open| matches!(open.kind, Kind::Run { counts: true })) {
            return;
        }
        let account = &mut self.account;
        account.in_runs_ns = account.in_runs_ns.saturating_add(own);
        if !is_around {
            let (begin, end) = (open.piece.begin.time, open.piece.end.time);
            if let Some((_, before)) = self.last.filter(|(last, _)| *last != place) {
                account.crossings.add(begin.saturating_sub(before));
            }
            self.last = Some((place, end));
        }
    }

    /// Returns the sum of a function.
    fn sum(&mut self, number: u32) -> &mut FunctionSum {
        let Self { account, functions, sums, .. } = self;
        let number = number as usize;
        let next = account.functions.len();
        let at = *sums[number].get_or_insert(next);
        if at == next {
            let function = functions[number].clone();
            let place = Place::of(&function);
            let is_part = place.is_handed_over;
            let known = account.places.iter().position(|known| *known == place);
            let place = known.unwrap_or_else(|| {
                account.places.push(place);
                account.places.len() - 1
            });
            account.functions.push(FunctionSum {
                function,
                place,
                is_part,
                is_around: false,
                calls: Calls::default(),
                max_ns: 0,
                on_cpu_inside: Calls::default(),
                driver_calls: BTreeMap::new(),
            });
        }
        &mut account.functions[at]
    }
}

impl Place {
    fn of(function: &Function) -> Self {
        if let Some(Provider { name, processor }) = Provider::named_by(&function.name) {
            return Self { provider: Some(name), processor, is_handed_over: true };
        }
        let is_handed_over = function.tag.layer() == Layer::Driver;
        let processor = (!is_handed_over).then_some(Processor::Cpu);
        Self { provider: None, processor, is_handed_over }
    }
}
