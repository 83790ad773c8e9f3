//! Tables that a file has for the dynamic loader: symbols, their names and hashes, relocations.

use object::read::elf::{Dyn as _, GnuHashTable, HashTable, SectionHeader as _, Sym as _};
use object::{LittleEndian, Pod, ReadRef as _, elf};

use super::{ENDIAN, Header, Image};

pub(super) type Rela = elf::Rela64<LittleEndian>;
pub(super) type Relr = elf::Relr64<LittleEndian>;
pub(super) type Sym = elf::Sym64<LittleEndian>;
type Word = object::U32<LittleEndian>;

/// Tables for the dynamic loader; those that are missing or damaged are empty.
#[derive(Default)]
pub(super) struct Dynamic<'data> {
    /// Relocations, and those of calls of other files.
    pub rela: [&'data [Rela]; 2],
    /// Packed relocations of words that hold addresses of the same file.
    pub relr: &'data [Relr],
    pub symbols: &'data [Sym],
    /// Name by which other files refer to this one.
    pub soname: Option<&'data str>,
    names: &'data [u8],
    hash: Option<Hash<'data>>,
}

/// `.gnu.hash`: for each remainder of a hash the index of its first symbol, and the hashes of all defined symbols.
struct Hash<'data> {
    buckets: &'data [Word],
    /// Index of the first symbol that has a hash.
    base: u32,
    /// The lowest bit is set for the last one of a bucket.
    hashes: &'data [Word],
}

impl<'data> Dynamic<'data> {
    /// Finds the tables by the entries of the dynamic segment.
    pub(super) fn read(image: &Image<'data>, entries: &'data [elf::Dyn64<LittleEndian>]) -> Self {
        let value = |tag: elf::DynamicTag| {
            let used = entries.iter().take_while(|entry| entry.tag(ENDIAN) != elf::DT_NULL);
            used.into_iter().find(|entry| entry.tag(ENDIAN) == tag).map(|entry| entry.val(ENDIAN))
        };
        let table = |address, size| image.bytes(value(address)?, value(size)?);
        let hash_data = value(elf::DT_GNU_HASH).and_then(|address| image.rest(address));
        let symbols = value(elf::DT_SYMTAB).and_then(|address| {
            let count = number_of_symbols(image, address, hash_data, value(elf::DT_HASH))?;
            Some(records(image.bytes(address, count.checked_mul(size_of::<Sym>() as u64)?)?))
        });
        let names = table(elf::DT_STRTAB, elf::DT_STRSZ).unwrap_or_default();
        Self {
            soname: value(elf::DT_SONAME).and_then(|at| text_at(names, usize::try_from(at).ok()?)),
            rela: [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)]
                .map(|(address, size)| table(address, size).map(records).unwrap_or_default()),
            relr: table(elf::DT_RELR, elf::DT_RELRSZ).map(records).unwrap_or_default(),
            symbols: symbols.unwrap_or_default(),
            names,
            hash: hash_data.and_then(Hash::parse),
        }
    }

    /// Returns the name of the symbol with an index.
    pub(super) fn name(&self, symbol: u32) -> Option<&'data str> {
        name_at(self.names, self.symbols.get(symbol as usize)?)
    }

    /// Returns the index of the defined symbol with a name.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let is_it = |index: u32| {
            let symbol = self.symbols.get(index as usize);
            symbol.is_some_and(|symbol| {
                !symbol.is_undefined(ENDIAN) && name_at(self.names, symbol) == Some(name)
            })
        };
        match &self.hash {
            Some(hash) => hash.candidates(elf::gnu_hash(name.as_bytes())).find(|&index| is_it(index)),
            None => (0..u32::try_from(self.symbols.len()).ok()?).find(|&index| is_it(index)),
        }
    }

    /// Returns the names and symbols of the table.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'data str, &'data Sym)> {
        named(self.symbols, self.names)
    }
}

impl<'data> Hash<'data> {
    fn parse(data: &'data [u8]) -> Option<Self> {
        let mut offset = 0;
        let header = data.read::<elf::GnuHashHeader<LittleEndian>>(&mut offset).ok()?;
        data.read_bytes(&mut offset, u64::from(header.bloom_count.get(ENDIAN)) * 8).ok()?;
        let buckets = data.read_slice(&mut offset, header.bucket_count.get(ENDIAN) as usize).ok()?;
        let hashes = records(data.get(usize::try_from(offset).ok()?..)?);
        Some(Self { buckets, base: header.symbol_base.get(ENDIAN), hashes })
    }

    /// Returns the indexes of the symbols whose names may have a hash.
    fn candidates(&self, hash: u32) -> impl Iterator<Item = u32> {
        let bucket = (hash as usize).checked_rem(self.buckets.len());
        let first = bucket.map_or(0, |bucket| self.buckets[bucket].get(ENDIAN));
        // A bucket without symbols holds 0.
        let within = first.checked_sub(self.base).filter(|_| first > 0);
        let chain = within.and_then(|within| self.hashes.get(within as usize..)).unwrap_or_default();
        let last = chain.iter().position(|other| other.get(ENDIAN) & 1 == 1).map_or(0, |last| last + 1);
        let same = move |(index, other): (u32, &Word)| (other.get(ENDIAN) | 1 == hash | 1).then_some(index);
        (first..u32::MAX).zip(&chain[..last]).filter_map(same)
    }
}

/// Returns the number of dynamic symbols, which has no entry of its own: the section header has it, and the hash tables
/// end with the last symbol.
fn number_of_symbols(
    image: &Image<'_>,
    address: u64,
    gnu_hash: Option<&[u8]>,
    hash: Option<u64>,
) -> Option<u64> {
    let is_it = |section: &&elf::SectionHeader64<LittleEndian>| {
        section.sh_type(ENDIAN) == elf::SHT_DYNSYM && section.sh_addr(ENDIAN) == address
    };
    let by_section =
        || image.sections.iter().find(is_it).map(|section| section.sh_size(ENDIAN) / size_of::<Sym>() as u64);
    let by_gnu_hash = || {
        let table = GnuHashTable::<Header>::parse(ENDIAN, gnu_hash?).ok()?;
        table.symbol_table_length(ENDIAN).map(u64::from)
    };
    let by_hash = || {
        let table = HashTable::<Header>::parse(ENDIAN, image.rest(hash?)?).ok()?;
        Some(u64::from(table.symbol_table_length()))
    };
    by_section().or_else(by_gnu_hash).or_else(by_hash)
}

/// Returns the whole records at the begin of some bytes; none where they are not aligned.
pub(super) fn records<T: Pod>(bytes: &[u8]) -> &[T] {
    bytes.read_slice_at(0, bytes.len() / size_of::<T>()).unwrap_or_default()
}

/// Returns the names and symbols of a table.
pub(super) fn named<'data>(
    symbols: &'data [Sym],
    names: &'data [u8],
) -> impl Iterator<Item = (&'data str, &'data Sym)> {
    symbols.iter().filter_map(move |symbol| Some((name_at(names, symbol)?, symbol)))
}

fn name_at<'data>(names: &'data [u8], symbol: &Sym) -> Option<&'data str> {
    text_at(names, symbol.st_name(ENDIAN) as usize)
}

fn text_at(names: &[u8], at: usize) -> Option<&str> {
    let from = names.get(at..)?;
    str::from_utf8(&from[..memchr::memchr(0, from)?]).ok()
}
