//! How the calls of a function are seen to end.

use std::collections::BTreeMap;

use super::{NAMED, stubs};
use crate::live::engines::{
    bounds::FunctionBounds,
    code::{self, EntryPoint, ShapeError, TailJump, TailJumps},
    image::Image,
    probe::End,
};

/// Reason why a function is not probed whose jumps are not understood.
const UNCLEAR: &str = "an indirect jump may lead into the function or out of it, so that its end is unclear";

/// Peculiarity of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ends {
    /// It is not probed.
    NotProbed(String),
    /// It ends by jumps to other functions.
    Jumps,
    /// It ends by jumps to other functions on some of its ways.
    JumpsToo,
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
                named = format!("{named} and {} others", functions.len() - NAMED);
            }
            match what {
                Ends::NotProbed(reason) => format!("not probed: {named}: {reason}"),
                Ends::Jumps => {
                    format!("ends by jumps to other functions, and is closed by the stack pointer: {named}")
                }
                Ends::JumpsToo => {
                    format!("ends by jumps to other functions too, and is closed by the stack pointer then: {named}")
                }
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

type Ended = Result<(EntryPoint, End, Option<Ends>), Ends>;

/// Returns the entry alone, which is all that counts of a bracket.
pub(super) fn of_entry_alone<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Ended {
    Ok((entry(image, bounds, address)?, End::None, None))
}

/// A return probe sees the end, whatever the code is.
pub(super) fn of_nothrow<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Ended {
    Ok((entry(image, bounds, address)?, End::ReturnProbe, None))
}

/// The returns of the function, and jumps that are as good.
pub(super) fn of_returns<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Ended {
    let shape = code::shape(image, bounds, address).map_err(not_probed)?;
    let jumps = match &shape.tail_jumps {
        TailJumps::None => &[][..],
        TailJumps::Known(jumps) => jumps,
        TailJumps::Unclear(_) => return Err(Ends::NotProbed(UNCLEAR.to_owned())),
    };
    let (releasing, others): (Vec<&TailJump>, Vec<&TailJump>) =
        jumps.iter().partition(|jump| is_as_good_as_a_return(image, jump));
    let places = shape.returns.iter().copied().chain(releasing.iter().map(|jump| jump.address));
    let mut places: Vec<u64> = places.filter_map(|address| image.file_offset(address)).collect();
    places.sort_unstable();
    // Calls that are left by a jump are closed as those that are left by an exception.
    let remark = match (places.is_empty(), others.is_empty(), shape.refused_returns.is_empty()) {
        (_, _, false) => Some(Ends::Refused),
        (true, false, true) => Some(Ends::Jumps),
        (false, false, true) => Some(Ends::JumpsToo),
        (_, true, true) => None,
    };
    // Without an end, it throws, or runs for ever.
    let end = match (places.is_empty(), &remark) {
        (true, _) => End::StackPointer,
        (false, None) => End::Returns(places),
        (false, Some(_)) => End::SomeReturns(places),
    };
    Ok((shape.entry, end, remark))
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
