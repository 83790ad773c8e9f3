//! ELF files for tests: compiled for the host, or made word by word for either architecture.

use std::{fs, process::Command};

use object::elf;

use super::image::Machine;

/// Addresses of the parts of a file made by [`Writer`].
const DATA: u64 = 0x1_0000;
const CODE: u64 = 0x20_0000;
const TABLES: u64 = 0x40_0000;
/// Offset of the data in the file.
const DATA_OFFSET: usize = 0x1000;

/// Compiles a library from C (`"c"`) or C++ (`"cc"`).
pub(super) fn library(language: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    compiled(language, source, &[&["-shared", "-fPIC"], flags].concat())
}

/// Compiles a file, and returns its bytes.
pub(super) fn compiled(language: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("source").with_extension(language), folder.path().join("file"));
    fs::write(&from, source).unwrap();
    let compiler = if language == "cc" { "c++" } else { "cc" };
    let status = Command::new(compiler).arg("-o").arg(&to).arg(&from).args(flags).status();
    assert!(status.unwrap().success(), "{compiler} {flags:?}");
    fs::read(to).unwrap()
}

/// Kinds of pointers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointers {
    /// Each has a relocation.
    Relocated,
    /// They are packed: only their places are listed.
    Packed,
    /// The file is loaded at its own addresses.
    Fixed,
}

/// File without section headers.
pub(super) struct Writer {
    machine: Machine,
    pointers: Pointers,
    data: Vec<u8>,
    code: Vec<u8>,
    /// Place, type, symbol, addend.
    relocations: Vec<(u64, u32, u64, u64)>,
    packed: Vec<u64>,
    /// Name, address (0 of an import), size.
    symbols: Vec<(String, u64, u64)>,
}

impl Writer {
    pub(super) fn new(machine: Machine, pointers: Pointers) -> Self {
        let (data, code) = (Vec::new(), Vec::new());
        Self {
            machine,
            pointers,
            data,
            code,
            relocations: Vec::new(),
            packed: Vec::new(),
            symbols: vec![Default::default()],
        }
    }

    /// Returns the address of the next word.
    pub(super) fn next(&self) -> u64 {
        DATA + self.data.len() as u64
    }

    /// Adds a word; returns its address.
    pub(super) fn word(&mut self, value: u64) -> u64 {
        let address = self.next();
        self.data.extend(value.to_le_bytes());
        address
    }

    /// Adds bytes, padded to whole words.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let address = self.next();
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        address
    }

    /// Adds a text.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.bytes(&[text.as_bytes(), &[0]].concat())
    }

    /// Adds a pointer to an address of the file.
    pub(super) fn pointer(&mut self, to: u64) -> u64 {
        let kind = match self.machine {
            Machine::X86_64 => elf::R_X86_64_RELATIVE,
            Machine::Arm64 => elf::R_AARCH64_RELATIVE,
        };
        match self.pointers {
            Pointers::Relocated => {
                self.relocations.push((self.next(), kind.0, 0, to));
                self.word(0)
            }
            Pointers::Packed => {
                self.packed.push(self.next());
                self.word(to)
            }
            Pointers::Fixed => self.word(to),
        }
    }

    /// Adds a pointer to a symbol, which is another file's unless it is [exported](Self::export) before.
    pub(super) fn symbol(&mut self, name: &str) -> u64 {
        let kind = match self.machine {
            Machine::X86_64 => elf::R_X86_64_64,
            Machine::Arm64 => elf::R_AARCH64_ABS64,
        };
        let known = self.symbols.iter().position(|(other, ..)| other == name);
        let index = known.unwrap_or_else(|| {
            self.symbols.push((name.to_owned(), 0, 0));
            self.symbols.len() - 1
        });
        let addend = if name.starts_with("_ZTV") { 16 } else { 0 };
        self.relocations.push((self.next(), kind.0, index as u64, addend));
        self.word(0)
    }

    /// Adds instructions; returns the address of the first one.
    pub(super) fn function(&mut self, code: &[u8]) -> u64 {
        self.code.resize(self.code.len().next_multiple_of(16), 0xcc);
        let address = self.next_function();
        self.code.extend(code);
        address
    }

    /// Returns the address of the next function.
    pub(super) fn next_function(&self) -> u64 {
        CODE + self.code.len().next_multiple_of(16) as u64
    }

    /// As [`Self::function`], for the words of arm64 instructions.
    pub(super) fn words(&mut self, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.function(&bytes)
    }

    /// Names an address.
    pub(super) fn export(&mut self, name: &str, address: u64, size: u64) {
        self.symbols.push((name.to_owned(), address, size));
    }

    /// Returns the file.
    pub(super) fn file(&self) -> Vec<u8> {
        let code_offset = (DATA_OFFSET + self.data.len()).next_multiple_of(4096);
        let tables_offset = (code_offset + self.code.len()).next_multiple_of(4096);
        let (tables, dynamic) = self.tables();
        let machine = match self.machine {
            Machine::X86_64 => elf::EM_X86_64,
            Machine::Arm64 => elf::EM_AARCH64,
        };
        let kind = if self.pointers == Pointers::Fixed { elf::ET_EXEC } else { elf::ET_DYN };
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend([kind.0.to_le_bytes(), machine.0.to_le_bytes()].concat());
        file.extend(1_u32.to_le_bytes());
        // Entry point, program headers, section headers
        file.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
        file.extend(0_u32.to_le_bytes());
        // Sizes of the header and of a program header, number of these; no section headers
        file.extend([64_u16, 56, 4, 64, 0, 0].map(u16::to_le_bytes).concat());
        let dynamic_size = tables.len() as u64 - dynamic;
        let programs = [
            (elf::PT_LOAD.0, 6_u32, DATA_OFFSET as u64, DATA, self.data.len() as u64),
            (elf::PT_LOAD.0, 5, code_offset as u64, CODE, self.code.len() as u64),
            (elf::PT_LOAD.0, 6, tables_offset as u64, TABLES, tables.len() as u64),
            (elf::PT_DYNAMIC.0, 6, tables_offset as u64 + dynamic, TABLES + dynamic, dynamic_size),
        ];
        for (kind, flags, offset, address, size) in programs {
            file.extend([kind, flags].map(u32::to_le_bytes).concat());
            file.extend([offset, address, address, size, size, 8].map(u64::to_le_bytes).concat());
        }
        for (offset, part) in [(DATA_OFFSET, &self.data), (code_offset, &self.code), (tables_offset, &tables)]
        {
            file.resize(offset, 0);
            file.extend(part);
        }
        file
    }

    /// Returns the tables for the loader, and where among them the dynamic table begins.
    fn tables(&self) -> (Vec<u8>, u64) {
        let (mut tables, mut names, mut symbols) = (Vec::new(), vec![0], Vec::new());
        for (name, address, size) in &self.symbols {
            symbols.extend((names.len() as u32 * u32::from(!name.is_empty())).to_le_bytes());
            // A global function, in some section unless it is undefined
            symbols.extend([0x12, 0, u8::from(*address > 0), 0]);
            symbols.extend([*address, *size].map(u64::to_le_bytes).concat());
            names.extend([name.as_bytes(), &[0]].concat());
        }
        let relocation = |&(place, kind, symbol, addend): &(u64, u32, u64, u64)| {
            [place, symbol << 32 | u64::from(kind), addend].map(u64::to_le_bytes).concat()
        };
        let relocations: Vec<u8> = self.relocations.iter().flat_map(relocation).collect();
        let packed: Vec<u8> = self.packed_words().into_iter().flat_map(u64::to_le_bytes).collect();
        // Buckets, symbols; only the number of symbols is used.
        let hash = [1, self.symbols.len() as u32, 0].map(u32::to_le_bytes).concat();
        let hash = [hash, vec![0; 4 * self.symbols.len()]].concat();
        let mut entries = Vec::new();
        for (part, address, size) in [
            (symbols, elf::DT_SYMTAB, None),
            (names, elf::DT_STRTAB, Some(elf::DT_STRSZ)),
            (relocations, elf::DT_RELA, Some(elf::DT_RELASZ)),
            (packed, elf::DT_RELR, Some(elf::DT_RELRSZ)),
            (hash, elf::DT_HASH, None),
        ] {
            entries.push((address, TABLES + tables.len() as u64));
            entries.extend(size.map(|tag| (tag, part.len() as u64)));
            tables.extend(part);
            tables.resize(tables.len().next_multiple_of(8), 0);
        }
        let dynamic = tables.len() as u64;
        for (tag, value) in entries {
            tables.extend([tag.0.cast_unsigned(), value].map(u64::to_le_bytes).concat());
        }
        tables.extend([0; 16]);
        (tables, dynamic)
    }

    /// Returns the places of packed pointers: an address, then bits for the 63 words after it, and so on.
    fn packed_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        let mut places = self.packed.iter().copied().peekable();
        while let Some(first) = places.next() {
            words.push(first);
            let mut base = first + 8;
            loop {
                let mut bits = 0;
                while let Some(place) = places.next_if(|&place| place < base + 63 * 8) {
                    bits |= 1 << ((place - base) / 8);
                }
                if bits == 0 {
                    break;
                }
                words.push(bits << 1 | 1);
                base += 63 * 8;
            }
        }
        words
    }
}
