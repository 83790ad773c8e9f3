//! Late wake-ups of a CPU from its deepest idle state, as hardware has them that takes long to leave it: an emulator does not.
//!
//! A BPF program on `cpu_idle` waits in the event of leaving the state. The kernel has that event before it lets interrupts in, one
//! of which makes a woken thread run: so the thread is as late, and everything after the program, too. Programs on one event run in
//! the order in which they were attached: this one has to be before a profiler's, which then sees the state left late.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use anyhow::{Context as _, Result};

use crate::{bpf::command, cpus::IdleState};

/// Calls of the clock in a round of the program, of which the last one ends the wait.
const CALLS: usize = 16;
/// Rounds at most: the verifier follows each of them, and remembers a branch of each.
const ROUNDS: i32 = 4_000;

/// Late wake-ups of a CPU, until this is dropped.
pub struct LateWakeUps {
    map: OwnedFd,
    /// Detached when it is closed.
    _link: OwnedFd,
}

/// Sums of the program; the form of its map's only value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// State that the CPU has entered last.
    entered: u64,
    /// Late wake-ups.
    pub count: u64,
    /// Time by which they were late, ns.
    pub ns: u64,
}

impl LateWakeUps {
    /// Makes wake-ups from a state late by this time, ns, or by what the rounds take if that is less.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(state: &IdleState, ns: i32) -> Result<Self> {
        let map = map().context("no map")?;
        let program = program(&instructions(&map, state, ns)).context("no program")?;
        let link = attach(&program).context("cpu_idle")?;
        Ok(Self { map, _link: link })
    }

    /// Returns the sums by now.
    ///
    /// # Errors
    /// When the kernel does not tell them.
    pub fn sums(&self) -> Result<Sums> {
        #[repr(C)]
        struct Request {
            map: u64,
            key: *const u32,
            value: *mut Sums,
        }
        const LOOKUP: i32 = 1;
        let mut sums = Sums::default();
        let mut request = Request { map: descriptor(&self.map), key: &raw const KEY, value: &raw mut sums };
        // SAFETY: the form of this command; the key and the value are as long as those of the map.
        unsafe { command(LOOKUP, &mut request) }?;
        Ok(sums)
    }
}

/// Key of the map's value.
static KEY: u32 = 0;

fn map() -> Result<OwnedFd> {
    const CREATE: i32 = 0;
    /// `BPF_MAP_TYPE_ARRAY`.
    const ARRAY: u32 = 2;
    // Type, bytes of a key and of a value, entries.
    let mut request = [ARRAY, size_of_val(&KEY) as u32, size_of::<Sums>() as u32, 1];
    // SAFETY: the form of this command.
    Ok(owned(unsafe { command(CREATE, &mut request) }?))
}

fn program(instructions: &[u64]) -> Result<OwnedFd> {
    const LOAD: i32 = 5;
    /// `BPF_PROG_TYPE_RAW_TRACEPOINT`.
    const RAW_TRACEPOINT: u32 = 17;
    #[repr(C)]
    struct Request {
        kind: u32,
        count: u32,
        instructions: *const u64,
        license: *const std::ffi::c_char,
        log_level: u32,
        log_size: u32,
        log: *mut u8,
    }
    let mut log = vec![0_u8; 1 << 16];
    let mut request = Request {
        kind: RAW_TRACEPOINT,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr(),
        // The clock is for such only.
        license: c"GPL".as_ptr(),
        log_level: 0,
        log_size: 0,
        log: std::ptr::null_mut(),
    };
    // SAFETY: the form of this command, which reads the instructions and the license.
    let loaded = unsafe { command(LOAD, &mut request) };
    if loaded.is_err() {
        (request.log_level, request.log_size, request.log) = (1, log.len() as u32, log.as_mut_ptr());
        // SAFETY: as before; it writes no more of the log than there is.
        let _ = unsafe { command(LOAD, &mut request) };
    }
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]).into_owned();
    Ok(owned(loaded.with_context(|| log)?))
}

fn attach(program: &OwnedFd) -> Result<OwnedFd> {
    const OPEN: i32 = 17;
    #[repr(C)]
    struct Request {
        name: *const std::ffi::c_char,
        program: u64,
    }
    let mut request = Request { name: c"cpu_idle".as_ptr(), program: descriptor(program) };
    // SAFETY: the form of this command, which reads the name.
    Ok(owned(unsafe { command(OPEN, &mut request) }?))
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just made the descriptor, for us alone.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Returns a descriptor, a number of 32 bits, where another one of such follows that is 0.
fn descriptor(of: &OwnedFd) -> u64 {
    u64::from(of.as_raw_fd().cast_unsigned())
}

/// Registers by their numbers: result and stack, those for arguments, and those that calls keep.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Register {
    Returned = 0,
    First = 1,
    Second = 2,
    Arguments = 6,
    Value = 7,
    Begin = 8,
    Rounds = 9,
    Stack = 10,
}

/// Returns an instruction in the form of the kernel.
const fn instruction(code: u8, to: Register, from: u8, offset: i16, number: i32) -> u64 {
    code as u64
        | (to as u64) << 8
        | (from as u64) << 12
        | (offset.cast_unsigned() as u64) << 16
        | (number.cast_unsigned() as u64) << 32
}

/// Returns the program for the arguments `(state, cpu)` of the event.
fn instructions(map: &OwnedFd, state: &IdleState, ns: i32) -> Vec<u64> {
    use Register::{Arguments, Begin, First, Returned, Rounds, Second, Stack, Value};
    /// State of the event of leaving one.
    const LEFT: i32 = -1;
    /// Helpers by their numbers.
    const LOOKUP: i32 = 1;
    const CLOCK: i32 = 5;
    /// Jump to the end, in its place until that is known.
    const TO_END: i16 = i16::MAX;
    let load = |to, from: Register, offset| instruction(0x79, to, from as u8, offset, 0);
    let store = |to, offset, from: Register| instruction(0x7b, to, from as u8, offset, 0);
    let store_word = |to, offset, number| instruction(0x62, to, 0, offset, number);
    let copy = |to, from: Register| instruction(0xbf, to, from as u8, 0, 0);
    let set = |to, number| instruction(0xb7, to, 0, 0, number);
    let add_number = |to, number| instruction(0x07, to, 0, 0, number);
    let add = |to, from: Register| instruction(0x0f, to, from as u8, 0, 0);
    let subtract = |to, from: Register| instruction(0x1f, to, from as u8, 0, 0);
    let call = |helper| instruction(0x85, Returned, 0, 0, helper);
    let jump = |offset| instruction(0x05, Returned, 0, offset, 0);
    let if_zero = |what, offset| instruction(0x15, what, 0, offset, 0);
    let if_not_zero = |what, offset| instruction(0x55, what, 0, offset, 0);
    let if_at_least = |what, number, offset| instruction(0x35, what, 0, offset, number);
    // Of the lower 32 bits.
    let if_equal = |what, number, offset| instruction(0x16, what, 0, offset, number);
    let if_other = |what, number, offset| instruction(0x56, what, 0, offset, number);
    let number = |number: u32| number.cast_signed();

    let mut all = vec![
        copy(Arguments, First),
        load(First, Arguments, 8),
        if_other(First, number(state.cpu), TO_END),
        store_word(Stack, -4, number(KEY)),
        copy(Second, Stack),
        add_number(Second, -4),
        // Two halves; 1 marks a map by its descriptor (`BPF_PSEUDO_MAP_FD`).
        instruction(0x18, First, 1, 0, map.as_raw_fd()),
        0,
        call(LOOKUP),
        if_zero(Returned, TO_END),
        copy(Value, Returned),
        load(Begin, Arguments, 0),
        if_equal(Begin, LEFT, 2),
        store(Value, 0, Begin),
        jump(TO_END),
        load(First, Value, 0),
        if_other(First, number(state.number), TO_END),
        call(CLOCK),
        copy(Begin, Returned),
        set(Rounds, ROUNDS),
    ];
    let round = all.len();
    all.extend([call(CLOCK); CALLS]);
    all.extend([
        copy(First, Returned),
        subtract(First, Begin),
        if_at_least(First, ns, 2),
        add_number(Rounds, -1),
    ]);
    all.extend([
        if_not_zero(Rounds, distance(all.len(), round)),
        subtract(Returned, Begin),
        load(First, Value, 16),
        add(First, Returned),
        store(Value, 16, First),
        load(First, Value, 8),
        add_number(First, 1),
        store(Value, 8, First),
    ]);
    let end = all.len();
    all.extend([set(Returned, 0), instruction(0x95, Returned, 0, 0, 0)]);
    for (place, instruction) in all.iter_mut().enumerate() {
        if (*instruction >> 16) as u16 == TO_END.cast_unsigned() {
            let offset = distance(place, end).cast_unsigned();
            *instruction = *instruction & !(0xffff << 16) | u64::from(offset) << 16;
        }
    }
    all
}

/// Returns the offset of a jump from one place to another: it counts from after the jump.
const fn distance(from: usize, to: usize) -> i16 {
    (to as u16).wrapping_sub(from as u16 + 1).cast_signed()
}
