//! Names in a file beside its events: of threads and functions, and texts of the kernel.

use memchr::memmem;
use rustc_hash::FxHashMap;

/// Kernel function that writes marks.
const MARK: &[u8] = b"tracing_mark_write";

/// Names of threads, from `saved_cmdlines`, with lines `TID NAME`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comms(FxHashMap<u32, Box<[u8]>>);

impl Comms {
    /// Parses the file. An invalid line costs no more than a name.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n');
        Self(lines.filter_map(line).collect())
    }

    /// Adds a name from an event, for a thread without one; returns whether it did.
    #[inline]
    pub(crate) fn learn(&mut self, tid: u32, comm: &[u8]) -> bool {
        let comm = comm.trim_ascii_start();
        let is_new = !comm.is_empty() && !self.0.contains_key(&tid);
        if is_new {
            self.0.insert(tid, comm.into());
        }
        is_new
    }

    /// Returns a thread's name; `<...>` where it was not saved, `<idle>` for the kernel's idle threads.
    #[inline]
    pub(crate) fn get(&self, tid: u32) -> &[u8] {
        match self.0.get(&tid) {
            _ if tid == 0 => b"<idle>",
            Some(comm) => comm,
            None => b"<...>",
        }
    }
}

fn line(line: &[u8]) -> Option<(u32, Box<[u8]>)> {
    let line = line.trim_ascii_start();
    let blank = line.iter().position(|&byte| byte == b' ')?;
    let tid = str::from_utf8(&line[..blank]).ok()?.parse().ok()?;
    // As in the text of a trace, blanks at the start of a name are lost.
    let comm = line[blank..].trim_ascii_start();
    (!comm.is_empty()).then(|| (tid, comm.into()))
}

/// Addresses of code that writes marks, from `/proc/kallsyms`, with lines `ADDRESS TYPE NAME` and maybe `[MODULE]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// First address of the function, and the one after its last.
    marks: Vec<(u64, u64)>,
    /// Lowest address with a name.
    lowest: Option<u64>,
}

impl Symbols {
    /// Parses the file. Where the kernel hides addresses they are all 0, which is treated as no file.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let symbols = text.split(|&byte| byte == b'\n').filter_map(symbol).filter(|symbol| symbol.0 > 0);
        let (mut addresses, mut marks) = (Vec::new(), Vec::new());
        for (address, name) in symbols {
            addresses.push(address);
            if name == MARK {
                marks.push(address);
            }
        }
        let end =
            |start| addresses.iter().copied().filter(|&address| address > start).min().unwrap_or(u64::MAX);
        Self {
            marks: marks.into_iter().map(|start| (start, end(start))).collect(),
            lowest: addresses.iter().copied().min(),
        }
    }

    /// Whether a text that this code wrote into the trace is a mark: as in a textual trace, also where the address
    /// has no name.
    #[inline]
    pub(crate) fn writes_marks(&self, address: u64) -> bool {
        self.lowest.is_none_or(|lowest| address < lowest)
            || self.marks.iter().any(|&(start, end)| (start..end).contains(&address))
    }
}

fn symbol(line: &[u8]) -> Option<(u64, &[u8])> {
    let blank = line.iter().position(|&byte| byte == b' ')?;
    let address = hexadecimal(&line[..blank])?;
    let name = line.get(blank + 3..)?;
    let end = name.iter().position(|byte| b" \t\r".contains(byte)).unwrap_or(name.len());
    Some((address, &name[..end]))
}

/// Texts of the kernel by address, from `printk_formats`, with lines `0xADDRESS : "TEXT"`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(FxHashMap<u64, Box<[u8]>>);

impl Texts {
    /// Parses the file.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let entry = |line: &[u8]| {
            let colon = memmem::find(line, b" : \"")?;
            let address = hexadecimal(line[..colon].trim_ascii().strip_prefix(b"0x")?)?;
            Some((address, line[colon + 4..].strip_suffix(b"\"")?.into()))
        };
        Self(text.split(|&byte| byte == b'\n').filter_map(entry).collect())
    }

    /// Returns the text at an address.
    pub(crate) fn get(&self, address: u64) -> Option<&[u8]> {
        self.0.get(&address).map(AsRef::as_ref)
    }
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}
