//! The kernel's description of its types (BTF): offsets of members in structures.
//!
//! Source: Documentation/bpf/btf.rst. Only what is needed for these offsets is kept.

use std::{fs, ops::Range, path::Path};

use bytes::Buf as _;

/// File of the kernel's BTF, present with `CONFIG_DEBUG_INFO_BTF`.
pub(crate) const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
/// Limit on nested structures and on chains of type names, beyond any in the kernel.
const MAX_DEPTH: usize = 32;

const PTR: u32 = 2;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const TYPE_TAG: u32 = 18;
const SECTION: u32 = 15;

/// Section of the variables that each CPU has in memory of its own.
const PER_CPU: &str = ".data..percpu";

/// Structures and pointers of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Btf {
    /// Types by number less one: number 0 is `void`.
    types: Vec<Type>,
    /// Members of all structures and unions.
    members: Vec<Member>,
    /// Variables of each CPU: number of the type entry, and offset, bytes.
    per_cpu: Vec<(u32, u32)>,
    texts: Vec<u8>,
}

#[derive(Debug)]
struct Type {
    kind: u32,
    /// Offset of its name in the strings.
    name: u32,
    /// Type that a pointer, type name or qualifier refers to.
    of: u32,
    /// Range of its members.
    members: Range<usize>,
}

#[derive(Debug)]
struct Member {
    name: u32,
    type_id: u32,
    bit: u32,
}

impl Btf {
    /// Reads a BTF file; `None` when there is none, or it is something else.
    #[must_use]
    pub(crate) fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read(path).ok()?)
    }

    /// Parses BTF in the byte order of this host; `None` when it is something else.
    #[must_use]
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut header = bytes;
        if header.try_get_u16_ne().ok()? != MAGIC {
            return None;
        }
        header.try_get_u16_ne().ok()?;
        let mut next = || header.try_get_u32_ne().ok().map(|word| word as usize);
        let (length, types, types_length, texts, texts_length) =
            (next()?, next()?, next()?, next()?, next()?);
        let section = |at: usize, len: usize| bytes.get(length..)?.get(at..)?.get(..len);
        let mut rest = section(types, types_length)?;
        let mut btf = Self { texts: section(texts, texts_length)?.to_vec(), ..Self::default() };
        while !rest.is_empty() {
            btf.take_type(&mut rest)?;
        }
        Some(btf)
    }

    /// Parses the next type; `None` when it is truncated or of an unknown kind: its length, and so the next type,
    /// could not be found then.
    fn take_type(&mut self, rest: &mut &[u8]) -> Option<()> {
        let mut next = || rest.try_get_u32_ne().ok();
        let (name, info, of) = (next()?, next()?, next()?);
        let (kind, count, packs_sizes) = (info >> 24 & 0x1f, (info & 0xffff) as usize, info >> 31 != 0);
        let first = self.members.len();
        let further = match kind {
            STRUCT | UNION => {
                for _ in 0..count {
                    let (name, type_id, place) = (next()?, next()?, next()?);
                    // With bit fields in the structure, the upper byte is the member's size.
                    let bit = if packs_sizes { place & 0x00ff_ffff } else { place };
                    self.members.push(Member { name, type_id, bit });
                }
                0
            }
            // Pointers, forward declarations, type names, qualifiers, functions, floats and tags.
            PTR | 7..=12 | 16 | TYPE_TAG => 0,
            // Integers, variables and declaration tags.
            1 | 14 | 17 => 4,
            // Arrays.
            3 => 12,
            // Enumerations and the parameters of functions.
            6 | 13 => 8 * count,
            SECTION if self.is(name, PER_CPU) => {
                for _ in 0..count {
                    let (variable, offset, _size) = (next()?, next()?, next()?);
                    self.per_cpu.push((variable, offset));
                }
                0
            }
            // Other sections, and enumerations of 64 bits.
            SECTION | 19 => 12 * count,
            _ => return None,
        };
        *rest = rest.get(further..)?;
        self.types.push(Type { kind, name, of, members: first..self.members.len() });
        Some(())
    }

    /// Returns the offset of a member in the structure of that name, bytes; also of a member of a nameless structure
    /// or union in it.
    #[must_use]
    pub(crate) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        self.member(structure, member).map(|(offset, _)| offset)
    }

    /// Like [`Btf::offset`], for a member that is a pointer, `levels` deep, to the structure named `to`.
    #[must_use]
    pub(crate) fn pointer_offset(
        &self,
        structure: &str,
        member: &str,
        levels: usize,
        to: &str,
    ) -> Option<u32> {
        let (offset, mut type_id) = self.member(structure, member)?;
        for _ in 0..levels {
            let pointer = self.plain(type_id)?;
            if pointer.kind != PTR {
                return None;
            }
            type_id = pointer.of;
        }
        let target = self.plain(type_id)?;
        (target.kind == STRUCT && self.is(target.name, to)).then_some(offset)
    }

    /// Returns the offset of a variable in the memory of each CPU, bytes. They have one distance from their addresses.
    #[must_use]
    pub(crate) fn per_cpu(&self, variable: &str) -> Option<u32> {
        let is_named = |number: u32| {
            let found = usize::try_from(number).ok()?.checked_sub(1).and_then(|at| self.types.get(at));
            Some(self.is(found?.name, variable))
        };
        let mut all = self.per_cpu.iter();
        all.find(|(number, _)| is_named(*number) == Some(true)).map(|(_, offset)| *offset)
    }

    fn member(&self, structure: &str, member: &str) -> Option<(u32, u32)> {
        let mut named =
            self.types.iter().filter(|found| found.kind == STRUCT && self.is(found.name, structure));
        let (bit, type_id) = named.find_map(|found| self.member_in(found, member, MAX_DEPTH))?;
        bit.is_multiple_of(8).then_some((bit / 8, type_id))
    }

    fn member_in(&self, structure: &Type, name: &str, depth: usize) -> Option<(u32, u32)> {
        self.members.get(structure.members.clone())?.iter().find_map(|member| {
            if self.is(member.name, name) {
                return Some((member.bit, member.type_id));
            }
            if member.name != 0 || depth == 0 {
                return None;
            }
            let (bit, type_id) = self.member_in(self.plain(member.type_id)?, name, depth - 1)?;
            Some((member.bit.checked_add(bit)?, type_id))
        })
    }

    /// Whether the string at `name` is this text.
    fn is(&self, name: u32, text: &str) -> bool {
        let tail = self.texts.get(name as usize..).and_then(|tail| tail.strip_prefix(text.as_bytes()));
        tail.is_some_and(|tail| tail.first() == Some(&0))
    }

    /// Resolves type names and qualifiers.
    fn plain(&self, mut number: u32) -> Option<&Type> {
        for _ in 0..MAX_DEPTH {
            let found = self.types.get(usize::try_from(number.checked_sub(1)?).ok()?)?;
            if !matches!(found.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG) {
                return Some(found);
            }
            number = found.of;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds
    /// `struct rq { int cpu : 8 (packed); union { struct task *curr; }; struct rq **all; const int bit : 3; }`.
    fn sample() -> Vec<u8> {
        let texts = b"\0int\0rq\0cpu\0curr\0task\0all\0bit\0";
        let at = |name: &[u8]| {
            let name = [&[0], name, &[0]].concat();
            texts.windows(name.len()).position(|window| window == name).unwrap() as u32 + 1
        };
        let info = |kind: u32, count: u32| kind << 24 | count;
        let types: Vec<u32> = [
            vec![at(b"int"), info(1, 0), 4, 32],            // 1: int
            vec![at(b"task"), info(STRUCT, 0), 0],          // 2: struct task
            vec![0, info(PTR, 0), 2],                       // 3: struct task *
            vec![0, info(UNION, 1), 8, at(b"curr"), 3, 0],  // 4: union
            vec![0, info(PTR, 0), 8],                       // 5: struct rq *
            vec![0, info(PTR, 0), 7],                       // 6: struct rq *const *
            vec![0, info(CONST, 0), 5],                     // 7: struct rq *const
            vec![at(b"rq"), info(STRUCT, 4) | 1 << 31, 24], // 8: struct rq
            vec![at(b"cpu"), 1, 8 << 24 | 8, 0, 4, 64, at(b"all"), 6, 128, at(b"bit"), 1, (3 << 24) + 195],
        ]
        .concat();
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        for word in [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, texts.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(types.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn members_are_found_also_in_nameless_unions_and_behind_qualifiers() {
        let btf = Btf::parse(&sample()).unwrap();
        assert_eq!(btf.offset("rq", "cpu"), Some(1));
        assert_eq!(btf.offset("rq", "curr"), Some(8));
        assert_eq!(btf.offset("rq", "all"), Some(16));
        assert_eq!(btf.offset("rq", "bit"), None, "no byte begins there");
        assert_eq!(btf.offset("rq", "idle"), None);
        assert_eq!(btf.offset("task", "cpu"), None);
        assert_eq!(btf.pointer_offset("rq", "curr", 1, "task"), Some(8));
        assert_eq!(btf.pointer_offset("rq", "all", 2, "rq"), Some(16));
        assert_eq!(btf.pointer_offset("rq", "all", 1, "rq"), None, "it is deeper");
        assert_eq!(btf.pointer_offset("rq", "curr", 2, "task"), None, "it is less deep");
        assert_eq!(btf.pointer_offset("rq", "curr", 1, "rq"), None);
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_refused() {
        let whole = sample();
        for length in 0..whole.len() {
            assert!(Btf::parse(&whole[..length]).is_none(), "{length} bytes");
        }
        assert!(Btf::parse(b"not a description of types at all").is_none());
    }

    #[test]
    fn the_kernel_that_runs_is_understood() {
        let path = Path::new(KERNEL);
        if path.exists() {
            let btf = Btf::read(path).unwrap();
            assert!(btf.offset("task_struct", "pid").is_some());
            assert_eq!(
                btf.pointer_offset("task_struct", "group_leader", 1, "task_struct"),
                btf.offset("task_struct", "group_leader")
            );
        }
    }
}
