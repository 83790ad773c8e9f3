//! How the calls of a function are seen to end.

use std::collections::BTreeMap;

use super::{NAMED, stubs};
use crate::{
    live::engines::{
        bounds::FunctionBounds,
        code::{self, EntryPoint, Shape, ShapeError, TailJump, TailJumps, UnclearJump},
        image::Image,
        probe::End,
        references::Callers,
    },
    model::plurals::counted,
};

/// Reason why a function is not probed whose jumps are not understood.
const UNCLEAR: &str = "an indirect jump may lead into the function or out of it, so that its end is unclear";

/// Jumps from one function to the next that are followed at most.
const MOST_JUMPS: usize = 4;
/// Callers of a function from which on it is a helper of all kinds of code: probes on its returns would cost all of them.
const MANY_CALLERS: usize = 64;
/// Length of a helper at most, bytes: it does little.
const LONGEST_HELPER: u64 = 512;

/// Peculiarity of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ends {
    /// It is not probed.
    NotProbed(String),
    /// It ends by jumps to other functions.
    Jumps,
    /// It ends by jumps to other functions on some of its ways.
    JumpsToo,
    /// It ends by jumps to functions that are called in many places, whose time is not in it.
    JumpsToHelper,
    /// It ends by instructions that kernels do not let be probed.
    Refused,
    /// No recipe for its sections' name is for this version and machine.
    NoName,
    /// Its arguments may be others than the source's, so that the name is not where it should be.
    OtherArguments,
}

/// Peculiarities of the functions of one entry.
#[derive(Debug, Default)]
pub(super) struct Left {
    functions: BTreeMap<Ends, Vec<String>>,
}

impl Left {
    /// Takes note of one function.
    pub(super) fn take(&mut self, what: Ends, function: &str) {
        self.functions.entry(what).or_default().push(function.to_owned());
    }

    /// Returns the notes, one for all functions of which the same is to be said.
    pub(super) fn notes(self) -> impl Iterator<Item = String> {
        self.functions.into_iter().map(|(what, functions)| {
            let mut named = functions.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            if functions.len() > NAMED {
                named = format!("{named} and {}", counted((functions.len() - NAMED) as u64, "other"));
            }
            match what {
                Ends::NotProbed(reason) => format!("not probed: {named}: {reason}"),
                Ends::Jumps => {
                    format!("ends by jumps to other functions, and is closed by the stack pointer: {named}")
                }
                Ends::JumpsToo => {
                    format!("ends by jumps to other functions too, and is closed by the stack pointer then: {named}")
                }
                Ends::JumpsToHelper => format!(
                    "ends by a jump to a function that is called in many places, whose time is not counted: {named}"
                ),
                Ends::Refused => format!(
                    "ends by returns with pointer authentication, which kernels do not probe, and is closed by the stack \
                     pointer: {named}"
                ),
                Ends::NoName => format!("no `name` is for this version and machine: {named}"),
                Ends::OtherArguments => {
                    format!("the compiler has changed the arguments, the name cannot be read: {named}")
                }
            }
        })
    }
}

/// Probes of a function.
pub(super) struct Ending {
    /// Place at its begin.
    pub(super) entry: EntryPoint,
    pub(super) end: End,
    /// Peculiarity of the function, if it has one.
    pub(super) remark: Option<Ends>,
    /// Returns among the ends that are those of other functions.
    pub(super) of_others: Vec<ReturnOfOther>,
}

/// Return of a function that another one jumps to.
pub(super) struct ReturnOfOther {
    /// Address of the function.
    pub(super) function: u64,
    /// Offset of the instruction in the file.
    pub(super) place: u64,
}

impl Ending {
    fn new(entry: EntryPoint, end: End) -> Self {
        Self { entry, end, remark: None, of_others: Vec::new() }
    }
}

type Ended = Result<Ending, Ends>;

/// Returns the entry alone, which is all that counts of a bracket.
pub(super) fn of_entry_alone<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Ended {
    Ok(Ending::new(entry(image, bounds, address)?, End::None))
}

/// A return probe sees the end, whatever the code is.
pub(super) fn of_nothrow<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Ended {
    Ok(Ending::new(entry(image, bounds, address)?, End::ReturnProbe))
}

/// The returns of the function, and jumps that are as good; where `callers` is given, also the returns of the functions
/// that it jumps to: when they return, the stack pointer is as at its own returns.
pub(super) fn of_returns<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    callers: Option<&Callers<'image, 'data>>,
    address: u64,
) -> Ended {
    let shape = code::shape(image, bounds, address).map_err(not_probed)?;
    let mut ways = Ways::new(image, bounds, callers, address);
    ways.add(&shape, address, 0).map_err(|_| Ends::NotProbed(UNCLEAR.to_owned()))?;
    let all: Vec<ReturnOfOther> = ways
        .places
        .iter()
        .filter_map(|&(function, at)| Some(ReturnOfOther { function, place: image.file_offset(at)? }))
        .collect();
    let mut places: Vec<u64> = all.iter().map(|found| found.place).collect();
    places.sort_unstable();
    places.dedup();
    // Calls that are left by a jump are closed as those that are left by an exception.
    let remark = match (places.is_empty(), ways.is_left_unseen, shape.refused_returns.is_empty()) {
        (_, _, false) => Some(Ends::Refused),
        (true, true, true) => Some(Ends::Jumps),
        (false, true, true) => Some(Ends::JumpsToo),
        (_, false, true) => ways.jumps_to_helper.then_some(Ends::JumpsToHelper),
    };
    // A function that it jumps to may be probed as well, and then begins in its place.
    let is_all = remark.is_none() && ways.followed.len() == 1;
    let end = match (places.is_empty(), is_all) {
        // Without an end, it throws, or runs for ever.
        (true, _) => End::StackPointer,
        (false, true) => End::Returns(places),
        (false, false) => End::SomeReturns(places),
    };
    let of_others = all.into_iter().filter(|found| found.function != address).collect();
    Ok(Ending { entry: shape.entry, end, remark, of_others })
}

/// Instructions with which the calls of a function end.
struct Ways<'a, 'image, 'data> {
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    callers: Option<&'a Callers<'image, 'data>>,
    /// The function, and those that it jumps to whose ends are its own.
    followed: Vec<u64>,
    /// Addresses of the functions that the instructions are in, and of these.
    places: Vec<(u64, u64)>,
    /// Whether it ends in other ways, too.
    is_left_unseen: bool,
    /// Whether a jump to a function with many callers is one of these instructions.
    jumps_to_helper: bool,
}

impl<'a, 'image, 'data> Ways<'a, 'image, 'data> {
    fn new(
        image: &'image Image<'data>,
        bounds: &'image FunctionBounds<'image, 'data>,
        callers: Option<&'a Callers<'image, 'data>>,
        function: u64,
    ) -> Self {
        Self {
            image,
            bounds,
            callers,
            followed: vec![function],
            places: Vec::new(),
            is_left_unseen: false,
            jumps_to_helper: false,
        }
    }

    /// Adds the ends of the function, or of one that is this many jumps away from it.
    fn add(&mut self, shape: &Shape, function: u64, jumps: usize) -> Result<(), UnclearJump> {
        self.places.extend(shape.returns.iter().map(|&place| (function, place)));
        match &shape.tail_jumps {
            TailJumps::None => {}
            TailJumps::Known(all) => {
                for jump in all {
                    self.is_left_unseen |= !self.follows(jump, function, jumps);
                }
            }
            TailJumps::Unclear(jump) => return Err(*jump),
        }
        Ok(())
    }

    /// Adds the ends of what a jump leads to; returns whether that is all of them.
    fn follows(&mut self, jump: &TailJump, function: u64, jumps: usize) -> bool {
        if is_as_good_as_a_return(self.image, jump) {
            self.places.push((function, jump.address));
            return true;
        }
        let Some(target) = jump.target else { return false };
        let stub = stubs::imported_by(self.image, target).map(|_| target);
        let own = stub.map(|stub| stubs::own_function(self.image, stub));
        // Nothing is known of functions of other files.
        let Some(target) = own.unwrap_or(Some(target)) else { return false };
        if self.followed[1..].contains(&target) {
            return true;
        }
        // A jump to its own start is another call of it.
        let Some(callers) = self.callers.filter(|_| target != self.followed[0]) else { return false };
        let count = callers.count(target).zip(stub.map_or(Some(0), |stub| callers.count(stub)));
        match count.map(|(direct, by_stub)| direct + by_stub) {
            None => false,
            Some(MANY_CALLERS..) => {
                let length = self.bounds.at(target).map_or(u64::MAX, |bounds| bounds.end - bounds.start);
                let is_end = length <= LONGEST_HELPER && stubs::is_unconditional(self.image, jump.address);
                if is_end {
                    self.places.push((function, jump.address));
                    self.jumps_to_helper = true;
                }
                is_end
            }
            Some(_) if jumps == MOST_JUMPS => false,
            Some(_) => match code::shape(self.image, self.bounds, target) {
                Ok(shape) if shape.refused_returns.is_empty() => {
                    self.followed.push(target);
                    self.add(&shape, target, jumps + 1).is_ok()
                }
                _ => false,
            },
        }
    }
}

/// Whether a jump to another function leaves next to nothing to do.
fn is_as_good_as_a_return(image: &Image<'_>, jump: &TailJump) -> bool {
    jump.target.is_some_and(|target| stubs::releases_memory(image, target))
        && stubs::is_unconditional(image, jump.address)
}

fn entry<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Result<EntryPoint, Ends> {
    code::entry_point(image, bounds, address).map_err(not_probed)
}

fn not_probed(error: ShapeError) -> Ends {
    Ends::NotProbed(error.to_string())
}
