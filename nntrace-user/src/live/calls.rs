//! Functions whose calls are recorded with arguments and results: each is found and probed once in a file, however many
//! processes map it.
//!
//! ```text
//! spec: what is asked for ─► functions: where it is in a file ─► places: where its arguments are ─► kernel/calls
//! ```

mod functions;
mod places;
mod spec;

use std::collections::HashSet;

use nntrace_common::calls::{
    CALL_HEADER, CallCounts, CallEnd, CallItem, CallRecord, Form, MAX_CALL_PROBES, Memory, MemoryState, Place,
};
use zerocopy::{FromZeros as _, IntoBytes as _};

pub(in crate::live) use self::functions::{Named, Soname};
pub use self::spec::CallSpec;
use self::{
    functions::{Found, Function},
    spec::LibraryName,
};
use super::{
    engines::examination::handler_entry,
    kernel::{Kernel, calls::CallPlaces},
    target::{ElfErrorReason, Object, ObjectId, PinnedFile, Processes, examiner},
};
use crate::model::{
    Model,
    calls::{Call, CallDefinition, Captured},
    plurals::{counted, one_or_many},
};

/// Decodes the record of a call; `None` when it is none.
pub(super) fn decode(bytes: &[u8]) -> Option<CallRecord> {
    let mut record = CallRecord::new_zeroed();
    let room = record.as_mut_bytes().get_mut(..bytes.len()).filter(|room| room.len() >= CALL_HEADER)?;
    room.copy_from_slice(bytes);
    let is_call = record.kind == nntrace_common::record::RecordKind::Call as u32;
    (is_call && bytes.len() == CALL_HEADER + record.len as usize).then_some(record)
}

/// Functions that are probed for their calls, and files that were searched for them.
#[derive(Default)]
pub(super) struct CallProbes {
    wanted: Vec<Wanted>,
    /// Files that were searched for each of those, by its place.
    searched: HashSet<(ObjectId, usize)>,
    /// Files whose soname is known to be none that is wanted, or is searched for all that want it.
    examined: HashSet<ObjectId>,
    /// Files in which the begin of handlers of exceptions was looked for.
    handlers: HashSet<ObjectId>,
    /// Probed functions, by file and offset.
    attached: HashSet<(ObjectId, u64)>,
    /// Values that the kernel programs read for each function, by its number.
    items: Vec<Vec<CallItem>>,
    notes: Vec<String>,
}

/// Function that is asked for.
struct Wanted {
    spec: CallSpec,
    /// File at the path that is asked for, on our side.
    file: Option<ObjectId>,
    /// Whether a file of that name was found.
    is_mapped: bool,
    /// Whether a function was found.
    is_found: bool,
}

impl CallProbes {
    /// Creates the state for these functions, without any probe.
    pub(super) fn new(specs: Vec<CallSpec>) -> Self {
        let wanted = specs.into_iter().map(|spec| {
            let file = match &spec.library {
                LibraryName::Path(path) => Object::at(path).ok().map(|object| object.id()),
                _ => None,
            };
            Wanted { spec, file, is_mapped: false, is_found: false }
        });
        Self { wanted: wanted.collect(), ..Self::default() }
    }

    /// Whether any function is asked for.
    pub(super) fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Searches the files among these, which a process maps, that are new, and probes the functions in them.
    pub(super) fn follow(
        &mut self,
        kernel: &mut Kernel,
        model: &mut Model,
        processes: &Processes,
        pid: u32,
        objects: &[Object],
    ) {
        if !self.are_wanted() {
            return;
        }
        let executable = ObjectId::at(&processes.dir(pid).join("exe")).ok();
        for object in objects {
            let soname = self.examined.insert(object.id()).then(|| soname(object)).flatten();
            for place in 0..self.wanted.len() {
                let wanted = &self.wanted[place];
                if wanted.is_for(object, executable, soname.as_deref())
                    && self.searched.insert((object.id(), place))
                {
                    self.search(kernel, model, object, place);
                }
            }
        }
        if self.attached.is_empty() {
            return;
        }
        for object in objects {
            if self.handlers.insert(object.id())
                && let Err(reason) = probe_handlers(kernel, object)
            {
                let file = object.display_path.display();
                self.notes.push(format!("{file}: calls that exceptions leave end late: {reason}"));
            }
        }
    }

    fn search(&mut self, kernel: &mut Kernel, model: &mut Model, object: &Object, place: usize) {
        let wanted = &mut self.wanted[place];
        wanted.is_mapped = true;
        let file = object.display_path.display();
        let found = object.pin().map_err(ElfErrorReason::from).and_then(|pinned| {
            let named = Named { symbol: wanted.spec.symbol.clone() };
            Ok((examiner::examine(&pinned, &named)?, pinned))
        });
        let (Found { functions, notes }, pinned) = match found {
            Ok(found) => found,
            Err(error) => {
                self.notes.push(format!("--call {}: {file}: {error}", wanted.spec));
                return;
            }
        };
        wanted.is_found |= !functions.is_empty() || !notes.is_empty();
        let spec = wanted.spec.clone();
        self.notes.extend(notes.into_iter().map(|note| format!("--call {spec}: {file}: {note}")));
        for function in functions {
            if let Err(reason) = self.attach(kernel, model, (object, &pinned), &spec, &function) {
                self.notes.push(format!("--call {spec}: {file}: {}: not probed: {reason}", function.name));
            }
        }
    }

    fn attach(
        &mut self,
        kernel: &mut Kernel,
        model: &mut Model,
        (object, pinned): (&Object, &PinnedFile),
        spec: &CallSpec,
        function: &Function,
    ) -> Result<(), String> {
        if !self.attached.insert((object.id(), function.entry)) {
            return Err("it is probed already, as another --call wants it".to_owned());
        }
        let probe = places::probe(&spec.signature, function.machine, function.pushed);
        let number = kernel.add_call_probe(probe).map_err(|error| error.to_string())?;
        let number = number.ok_or_else(|| format!("{MAX_CALL_PROBES} functions are probed already"))?;
        self.items.push(probe.items.iter().take(probe.count as usize).copied().collect());
        let file = object.display_path.display().to_string();
        let Function { entry, returns, jumps, name, .. } = function;
        let places = CallPlaces { number, entry: *entry, returns: returns.clone(), jumps: jumps.clone() };
        kernel.attach_call(pinned, &places).map_err(|error| error.to_string())?;
        log::info!("calls of {name} in {file} are recorded: offset {entry:#x}, {} returns", returns.len());
        if let Some(remark) = &function.remark {
            self.notes
                .push(format!("calls of {name} in {file} may seem to be left, and to end late: {remark}"));
        }
        let (function, signature) = (name.clone(), spec.signature.clone());
        model.call_definition(&CallDefinition { number, file, function, signature });
        Ok(())
    }

    /// Hands a call to the model. One that is open ends at `end` (ns).
    pub(super) fn take(&self, record: &CallRecord, end: u64, model: &mut Model) {
        let CallRecord { tid, tgid, probe, begin, len, .. } = *record;
        let (Some(items), Some(ended)) = (self.items.get(probe as usize), CallEnd::from_number(record.ended))
        else {
            return;
        };
        let data = record.data.get(..len as usize).unwrap_or_default();
        let values = items.iter().zip(record.words).map(|(item, word)| captured(*item, word, ended, data));
        model.call(&Call {
            definition: probe,
            pid: tgid,
            tid,
            begin,
            end: if ended == CallEnd::Open { end } else { record.end },
            ended,
            values: values.collect(),
        });
    }

    /// Returns notes on functions that were not found, and on calls that are not recorded.
    pub(super) fn notes(&self, counts: &CallCounts) -> Vec<String> {
        let mut notes = Vec::new();
        for Wanted { spec, is_mapped, is_found, .. } in &self.wanted {
            if !is_mapped {
                notes.push(format!("--call {spec}: no target maps {}", spec.library.described()));
            } else if !is_found {
                notes.push(format!("--call {spec}: the file has no function of this name"));
            }
        }
        let CallCounts { calls, too_deep, no_room, dropped } = *counts;
        let mut lost = |count: u64, reason: &str| {
            let are = one_or_many(count, "is", "are");
            let calls = counted(calls, "call");
            notes.extend((count > 0).then(|| format!("{count} of {calls} {are} not recorded: {reason}")));
        };
        lost(too_deep, "their threads were in 16 recorded calls already, one in the other");
        lost(no_room, "more than 1,024 threads, or 2,048 calls, were to be recorded at once");
        lost(dropped, "a ring was full when they ended; --ring-size makes it larger");
        notes
    }

    /// Takes the remarks since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

impl Wanted {
    /// Whether a file is the one that is asked for.
    fn is_for(&self, object: &Object, executable: Option<ObjectId>, soname: Option<&str>) -> bool {
        match &self.spec.library {
            LibraryName::Executable => executable == Some(object.id()),
            LibraryName::Path(path) => self.file == Some(object.id()) || object.display_path == *path,
            LibraryName::Name(name) => {
                object.display_path.file_name().is_some_and(|file| file == name.as_str())
                    || soname == Some(name.as_str())
            }
        }
    }
}

impl LibraryName {
    fn described(&self) -> String {
        match self {
            Self::Executable => "an executable that can be read".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Returns a value as it was read.
fn captured(item: CallItem, word: u64, ended: CallEnd, data: &[u8]) -> Captured<'_> {
    const UNREAD: Captured<'_> = Captured::Memory { state: MemoryState::Unread, bytes: &[] };
    if ended != CallEnd::Returned && (item.is_at_return != 0 || item.place == Place::Result as u8) {
        return UNREAD;
    }
    if item.form == Form::Word as u8 {
        return Captured::Word(word);
    }
    let Some(Memory { at, len, state }) = Memory::from_word(word) else { return UNREAD };
    let from = usize::from(at);
    Captured::Memory { state, bytes: data.get(from..from + usize::from(len)).unwrap_or_default() }
}

/// Returns the name by which other files refer to a file.
fn soname(object: &Object) -> Option<String> {
    examiner::examine(&object.pin().ok()?, &Soname).ok().flatten()
}

/// Probes the function of a C++ runtime in this file that each handler of exceptions calls first.
fn probe_handlers(kernel: &mut Kernel, object: &Object) -> Result<(), String> {
    let Some((file, entry)) = handler_entry(object).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    kernel.attach_call_caught(&file, entry.offset, entry.pushed).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data: &[u8], words: &[u64]) -> CallRecord {
        let mut record = CallRecord::new_zeroed();
        (record.kind, record.len) = (nntrace_common::record::RecordKind::Call as u32, data.len() as u32);
        record.data[..data.len()].copy_from_slice(data);
        record.words[..words.len()].copy_from_slice(words);
        record
    }

    #[test]
    fn records_are_as_long_as_their_texts() {
        let whole = record(b"text", &[7]);
        let bytes = &whole.as_bytes()[..CALL_HEADER + 4];
        let read = decode(bytes).unwrap();
        assert_eq!((read.words[0], &read.data[..5]), (7, &b"text\0"[..]));
        assert!(decode(&whole.as_bytes()[..CALL_HEADER + 3]).is_none());
        assert!(decode(whole.as_bytes()).is_none(), "longer than its texts");
        assert!(decode(&bytes[..CALL_HEADER - 1]).is_none());
        assert!(decode(&[]).is_none() && decode(&[0; CALL_HEADER + 4096]).is_none());
    }

    #[test]
    fn what_a_call_that_did_not_return_had_to_write_is_not_read() {
        let unread = Captured::Memory { state: MemoryState::Unread, bytes: &[] };
        // A pointer that looks like the word of memory.
        let pointer = 1 << 32;
        let out = CallItem { form: Form::Bytes as u8, is_at_return: 1, ..CallItem::NONE };
        let result = CallItem { place: Place::Result as u8, ..CallItem::NONE };
        for ended in [CallEnd::Open, CallEnd::Left, CallEnd::Jumped] {
            assert_eq!(captured(out, pointer, ended, b""), unread);
            assert_eq!(captured(result, 0, ended, b""), unread);
            assert_eq!(captured(CallItem::NONE, 5, ended, b""), Captured::Word(5));
        }
        let memory = Memory { at: 1, len: 2, state: MemoryState::Cut };
        let read = |data| captured(out, memory.word(), CallEnd::Returned, data);
        assert_eq!(read(b"abc"), Captured::Memory { state: MemoryState::Cut, bytes: b"bc" });
        assert_eq!(
            read(b"ab"),
            Captured::Memory { state: MemoryState::Cut, bytes: b"" },
            "outside of the record"
        );
    }
}
