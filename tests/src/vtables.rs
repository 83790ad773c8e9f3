//! Virtual functions of classes in a library without symbols, by another way than the profiler's: what `readelf` prints
//! of the file, and the layout of type information and virtual tables (Itanium C++ ABI, sections 2.5 and 2.9.5), for
//! classes whose first base class is the one that is asked for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::child::Child;

/// Base classes of a class at most of which one is looked for.
const MOST_BASES: u64 = 8;

/// Slots of a virtual table that are counted at most.
const MOST_SLOTS: usize = 1000;

/// Part of a file that is loaded.
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
    is_code: bool,
}

/// File with its pointers.
pub struct Classes {
    data: Vec<u8>,
    segments: Vec<Segment>,
    /// Pointers by their place; `None` points to something in another file.
    pointers: HashMap<u64, Option<u64>>,
    /// Places of the pointers to an address.
    places: BTreeMap<u64, Vec<u64>>,
}

/// Class by its mangled name, with the function in one slot of its virtual table.
pub type Function = (String, u64);

impl Classes {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or `readelf` prints something unexpected of it.
    pub fn of(path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| path.display().to_string())?;
        let mut own =
            Self { data, segments: segments(path)?, pointers: HashMap::new(), places: BTreeMap::new() };
        own.read_pointers(path)?;
        for (&place, target) in &own.pointers {
            if let Some(target) = target {
                own.places.entry(*target).or_default().push(place);
            }
        }
        Ok(own)
    }

    /// Returns the address of an offset in the file.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|it| (it.offset..it.offset + it.size).contains(&offset))?;
        Some(segment.address + offset - segment.offset)
    }

    /// Returns the functions in a slot of the class of this mangled name, and of those that derive from it.
    #[must_use]
    pub fn functions(&self, class: &str, slot: u64) -> Vec<Function> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next: Vec<u64> = self.named(class);
        while let Some(information) = next.pop() {
            if seen.insert(information) {
                let name = self.name(information).unwrap_or_default();
                all.extend(self.slot(information, slot).map(|function| (name, function)));
                next.extend(self.derived(information));
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// Places of the information on classes of this name.
    fn named(&self, class: &str) -> Vec<u64> {
        let name = [class.as_bytes(), b"\0"].concat();
        let places = self.data.windows(name.len()).enumerate().filter(|(_, bytes)| *bytes == name);
        // At the end of a longer name, too, which nothing points to as a name.
        let names = places.filter_map(|(offset, _)| self.address(offset as u64));
        names.flat_map(|name| self.places_of(name)).map(|place| place - 8).collect()
    }

    /// Places of the information on classes that derive from one.
    fn derived(&self, information: u64) -> Vec<u64> {
        let mut derived = Vec::new();
        for &place in self.places_of(information) {
            // One base class, or several in a list.
            let several = (0..MOST_BASES).map(|number| (number, place.wrapping_sub(24 + 16 * number)));
            let several = several.filter(|&(number, start)| {
                let is_first = self.word(place + 8).is_some_and(|word| word >> 8 == 0 && word & 1 == 0);
                let count = self.word(start + 16).map(|word| word >> 32);
                is_first && count.is_some_and(|count| number < count && count <= MOST_BASES)
            });
            let starts = [place.wrapping_sub(16)].into_iter().chain(several.map(|(_, start)| start));
            derived.extend(
                starts.filter(|start| self.pointers.contains_key(start) && self.name(*start).is_some()),
            );
        }
        derived
    }

    /// The function in a slot of a class's first virtual table: of what looks like one, the longest.
    fn slot(&self, information: u64, slot: u64) -> Option<u64> {
        let is_table = |place: u64| {
            self.word(place - 8) == Some(0)
                && !self.pointers.contains_key(&(place - 8))
                && self.name(place - 8).is_none()
        };
        let length = |place: u64| {
            let mut slots = (place + 8..).step_by(8).take(MOST_SLOTS);
            // Functions of other files, too, such as that of a pure virtual one.
            slots.position(|slot| self.pointers.get(&slot) != Some(&None) && self.function(slot).is_none())
        };
        let tables = self.places_of(information).iter().copied().filter(|&place| is_table(place));
        let table = tables.min_by_key(|&place| (Reverse(length(place)), place))?;
        self.function(table + 8 + 8 * slot)
    }

    /// The function that a place points to.
    fn function(&self, place: u64) -> Option<u64> {
        let address = (*self.pointers.get(&place)?)?;
        let is_code = |it: &&Segment| it.is_code && (it.address..it.address + it.size).contains(&address);
        self.segments.iter().find(is_code).map(|_| address)
    }

    /// The name in the information on a class.
    fn name(&self, information: u64) -> Option<String> {
        let text = self.bytes((*self.pointers.get(&(information + 8))?)?)?;
        let text = &text[..text.iter().position(|&byte| byte == 0)?];
        let is_name = text.first().is_some_and(|&byte| byte.is_ascii_digit() || b"NSI*".contains(&byte))
            && text.iter().all(u8::is_ascii_graphic);
        is_name.then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn places_of(&self, target: u64) -> &[u64] {
        self.places.get(&target).map_or(&[], Vec::as_slice)
    }

    /// Bytes of the file from an address on.
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        let is_in = |it: &&Segment| (it.address..it.address + it.size).contains(&address);
        let segment = self.segments.iter().find(is_in)?;
        self.data.get((segment.offset + address - segment.address) as usize..)
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn read_pointers(&mut self, path: &Path) -> Result<()> {
        for line in readelf("-rW", path)?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(place) = words.first().and_then(|word| hex(word)) else { continue };
            let target = match words[..] {
                // A list of places alone: what they point to is in the file.
                [_] => self.word(place),
                [_, _, "R_X86_64_RELATIVE" | "R_AARCH64_RELATIVE" | "R_AARCH64_RELATIV", to] => hex(to),
                [_, _, "R_X86_64_64" | "R_AARCH64_ABS64", value, _, "+", more] => {
                    let (value, more) = (hex(value).context("a value")?, hex(more).context("an addend")?);
                    (value > 0).then_some(value + more)
                }
                _ => continue,
            };
            self.pointers.insert(place, target);
        }
        ensure!(!self.pointers.is_empty(), "readelf tells of no pointer in {}", path.display());
        Ok(())
    }
}

/// Returns the parts of a file that are loaded.
fn segments(path: &Path) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for line in readelf("-lW", path)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["LOAD", offset, address, _, size, _, flags @ ..] = &words[..] {
            let number = |word: &str| hex(word).with_context(|| line.to_owned());
            let is_code = flags.iter().any(|flag| flag.contains('E'));
            segments.push(Segment {
                offset: number(offset)?,
                address: number(address)?,
                size: number(size)?,
                is_code,
            });
        }
    }
    ensure!(!segments.is_empty(), "readelf tells of no segment in {}", path.display());
    Ok(segments)
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

fn readelf(option: &str, path: &Path) -> Result<String> {
    let ended = Child::run(Command::new("readelf").arg(option).arg(path))
        .context("readelf: run `cargo xtask test`, which installs it")?;
    Ok(ended.expect_code(0)?.text())
}
