//! Account of where the operators of each process ran.
//!
//! The sections of a thread nest. An operator counts if no other is in it, a part with everything in it. A section around
//! operators, such as a loop or a plugin's request, has the time that no operator in it takes. A run is the outermost
//! execution in the runtime. None of these overlap, and so their times add up. Calls to drivers are a part of the operators
//! and parts around them, and apart from operators where there is none.

use std::collections::BTreeMap;

use nntrace_common::{driver_calls, layer::Layer, stack::ON_NO_STACK};

use super::{
    collect::{Function, Kind, Piece, Pieces},
    providers::{Processor, Provider},
};

/// Place where operators run: who runs them, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Name of the provider; `None` for the engine's own code, and where it is not known.
    pub(super) provider: Option<String>,
    /// `None` where it is not known.
    pub(super) processor: Option<Processor>,
    /// Whether a driver or a provider runs them, instead of the engine's own code.
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

/// Calls to drivers, by device.
pub(super) type DriverCalls = BTreeMap<String, Calls>;

/// Sum of the sections of one function at one place that are in no part.
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
    /// Those of [`calls`](Self::calls) that are in runs, with the time of both that is.
    pub(super) in_runs: Calls,
    /// Operators on the CPU in the part that spend no time in calls to drivers, by number of the function.
    pub(super) on_cpu_inside: BTreeMap<u32, Calls>,
    /// Calls to drivers in it.
    pub(super) driver_calls: DriverCalls,
}

/// Account of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Runs of models.
    pub(super) runs: Calls,
    /// Operators and parts with no run around them that has ended; the time is also that of sections around operators.
    pub(super) outside_runs: Calls,
    /// Operators in runs that follow one of another place, with the time from the end of the one to the start of the other.
    pub(super) crossings: Calls,
    /// Calls to drivers outside of operators.
    pub(super) driver_calls: DriverCalls,
    /// Places, by number.
    pub(super) places: Vec<Place>,
    /// Functions that were operators, parts, or around them.
    pub(super) functions: Vec<FunctionSum>,
}

/// Role of a section, given those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A run, which counts unless it is in another one, or in an operator.
    Run { counts: bool },
    /// A call that starts an asynchronous run, or waits for one: what is in it is in that run.
    CallOfRun,
    /// A part of a graph.
    Part,
    /// An operator, unless there are others in it.
    Operator,
    /// A call to a driver.
    DriverCall,
    /// A section in a call to a driver, in which the program has nothing to mark.
    Ignored,
}

/// Section that is open.
#[derive(Clone, Debug)]
struct Open {
    piece: Piece,
    role: Role,
    /// Time of the operators and parts directly in it, ns.
    inside_ns: u64,
    has_operators: bool,
    /// Time of the calls to drivers in it that are in no other operator, ns.
    driver_ns: u64,
    /// Calls to drivers that are counted here.
    driver_calls: DriverCalls,
}

impl Open {
    const fn is_operator(&self) -> bool {
        matches!(self.role, Role::Part | Role::Operator)
    }
}

/// Walk along the sections of one process.
struct Walk<'a> {
    account: Account,
    functions: &'a [Function],
    /// Numbers in the account, by function and whether a driver runs it.
    sums: BTreeMap<(u32, bool), usize>,
    open: Vec<Open>,
    /// Place and end of the last operator in the open run.
    last: Option<(usize, u64)>,
}

/// Returns the account of each process.
pub(super) fn accounts(pieces: &mut Pieces) -> BTreeMap<u32, Account> {
    let Pieces { all, functions, .. } = pieces;
    let pid = |piece: &Piece| functions[piece.function as usize].pid;
    all.sort_unstable_by_key(|piece| (pid(piece), piece.tid, piece.begin, piece.depth, piece.end));
    let processes = all.chunk_by(|one, other| pid(one) == pid(other));
    let walk = || Walk {
        account: Account::default(),
        functions,
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
                if piece.depth == ON_NO_STACK {
                    self.account.runs.add(piece.end.time.saturating_sub(piece.begin.time));
                    continue;
                }
                self.close(|open| open.piece.depth >= piece.depth || open.piece.end < piece.end);
                let open = Open {
                    piece,
                    role: self.role(&piece),
                    inside_ns: 0,
                    has_operators: false,
                    driver_ns: 0,
                    driver_calls: DriverCalls::new(),
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
            Kind::Run if piece.is_call_of_run && self.open.is_empty() => Role::CallOfRun,
            Kind::Run => Role::Run { counts: self.open.is_empty() },
            Kind::Part => Role::Part,
            Kind::Operator => Role::Operator,
            Kind::DriverCall => Role::DriverCall,
        }
    }

    /// Closes the sections that have ended, innermost first.
    fn close(&mut self, has_ended: impl Fn(&Open) -> bool) {
        while let Some(open) = self.open.pop_if(|open| has_ended(open)) {
            let ns = open.piece.end.time.saturating_sub(open.piece.begin.time);
            match open.role {
                Role::Run { counts: true } => {
                    self.account.runs.add(ns);
                    self.last = None;
                }
                Role::Run { counts: false } | Role::CallOfRun | Role::Ignored => {}
                Role::DriverCall => self.close_driver_call(open.piece.function, ns),
                Role::Part | Role::Operator => self.close_operator(open, ns),
            }
        }
    }

    /// Adds a call to a driver to the outermost part around it, or else to the operator.
    fn close_driver_call(&mut self, function: u32, ns: u64) {
        let Some(device) = driver_calls::device_of(&self.functions[function as usize].name) else { return };
        if let Some(innermost) = self.open.iter_mut().rfind(|open| open.is_operator()) {
            innermost.driver_ns = innermost.driver_ns.saturating_add(ns);
        }
        let part = self.open.iter().position(|open| open.role == Role::Part);
        let around = part.or_else(|| self.open.iter().rposition(Open::is_operator));
        let calls = match around {
            Some(around) => &mut self.open[around].driver_calls,
            None => &mut self.account.driver_calls,
        };
        calls.entry(device.to_owned()).or_default().add(ns);
    }

    fn close_operator(&mut self, open: Open, ns: u64) {
        if let Some(around) = self.open.iter_mut().rfind(|open| open.is_operator()) {
            around.has_operators = true;
            around.inside_ns = around.inside_ns.saturating_add(ns);
        }
        match self.open.iter().find(|open| open.role == Role::Part).map(|open| open.piece.function) {
            Some(part) => self.close_inside(part, &open, ns),
            None => self.close_counted(open, ns),
        }
    }

    /// Adds what has ended in a part.
    fn close_inside(&mut self, part: u32, open: &Open, ns: u64) {
        let function = open.piece.function;
        let is_on_cpu = self.functions[function as usize].tag.layer() == Layer::CpuFallback;
        if is_on_cpu && open.role == Role::Operator && !open.has_operators && open.driver_ns == 0 {
            self.sum(part, false).on_cpu_inside.entry(function).or_default().add(ns);
        }
    }

    /// Adds an operator or a part, or a section around operators.
    fn close_counted(&mut self, open: Open, ns: u64) {
        let is_of_run = |open: &Open| matches!(open.role, Role::Run { counts: true } | Role::CallOfRun);
        let is_in_run = self.open.iter().any(is_of_run);
        let is_around = open.role == Role::Operator && open.has_operators;
        let own = if is_around { ns.saturating_sub(open.inside_ns) } else { ns };
        // Most of the time in a driver: that is where the operator runs.
        let is_driven = open.role == Role::Operator && open.driver_ns > own / 2;
        let sum = self.sum(open.piece.function, is_driven);
        for (device, calls) in open.driver_calls {
            sum.driver_calls.entry(device).or_default().add_all(calls);
        }
        let counted = Calls { count: u64::from(!is_around), ns: own };
        if is_around {
            sum.around.add(own);
        } else {
            sum.calls.add(own);
            sum.max_ns = sum.max_ns.max(own);
        }
        if is_in_run {
            sum.in_runs.add_all(counted);
        }
        let place = sum.place;
        if !is_in_run {
            self.account.outside_runs.add_all(counted);
        }
        if !is_in_run || is_around {
            return;
        }
        if let Some((_, before)) = self.last.filter(|(last, _)| *last != place) {
            self.account.crossings.add(open.piece.begin.time.saturating_sub(before));
        }
        self.last = Some((place, open.piece.end.time));
    }

    /// Returns the sum of a function.
    fn sum(&mut self, number: u32, is_driven: bool) -> &mut FunctionSum {
        let Self { account: Account { places, functions: sums, .. }, functions, .. } = self;
        let at = *self.sums.entry((number, is_driven)).or_insert_with(|| {
            let function = functions[number as usize].clone();
            let place = Place::of(&function, is_driven);
            let known = places.iter().position(|known| *known == place);
            let place = known.unwrap_or_else(|| {
                places.push(place);
                places.len() - 1
            });
            sums.push(FunctionSum::new(function, place));
            sums.len() - 1
        });
        &mut sums[at]
    }
}

impl FunctionSum {
    fn new(function: Function, place: usize) -> Self {
        Self {
            function,
            place,
            calls: Calls::default(),
            max_ns: 0,
            around: Calls::default(),
            in_runs: Calls::default(),
            on_cpu_inside: BTreeMap::new(),
            driver_calls: BTreeMap::new(),
        }
    }

    /// Returns all operators on the CPU in the part.
    pub(super) fn all_on_cpu_inside(&self) -> Calls {
        self.on_cpu_inside.values().fold(Calls::default(), |mut sum, calls| {
            sum.add_all(*calls);
            sum
        })
    }
}

impl Place {
    fn of(function: &Function, is_driven: bool) -> Self {
        if let Some(Provider { name, processor }) = Provider::named_by(&function.name) {
            return Self { provider: Some(name), processor, is_handed_over: true };
        }
        let is_handed_over = is_driven || function.tag.layer() == Layer::Driver;
        let processor = (!is_handed_over).then_some(Processor::Cpu);
        Self { provider: None, processor, is_handed_over }
    }
}
