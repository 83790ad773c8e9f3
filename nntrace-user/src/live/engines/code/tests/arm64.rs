use super::*;

const NOP: u32 = 0xd503_201f;
const BTI_C: u32 = 0xd503_245f;
const PACIASP: u32 = 0xd503_233f;
const RET: u32 = 0xd65f_03c0;
/// stp x29, x30, [sp, #-32]!
const PUSH: u32 = 0xa9be_7bfd;
/// adrp x1, .
const ADRP: u32 = 0x9000_0001;

/// Returns the shape of a function, and its address.
fn shape_at(words: &[u32]) -> (Result<Shape, ShapeError>, u64) {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    let function = writer.words(words);
    (shape_of(writer, function, 4 * words.len()), function)
}

/// Returns the number of the instruction, bytes on the stack, and whether the place is cheap.
fn entry(words: &[u32]) -> (u64, u64, bool) {
    let (shape, function) = shape_at(words);
    let EntryPoint { address, sp_offset, is_emulated } = shape.unwrap().entry;
    ((address - function) / 4, sp_offset, is_emulated)
}

#[test]
fn cheap_places() {
    assert_eq!(entry(&[RET]), (0, 0, true));
    assert_eq!(entry(&[BTI_C, ADRP, RET]), (1, 0, true));
    // mov x29, sp; stp x19, x20, [sp, #16]; mov x19, x0; str x2, [sp, #-16]!
    let saves = [PUSH, 0x9100_03fd, 0xa901_53f3, 0xaa00_03f3, 0xf81f_0fe2];
    assert_eq!(entry(&[&[PACIASP], &saves[..], &[ADRP, RET]].concat()), (6, 48, true));
    // sub sp, sp, #0x1000; sub sp, sp, #0x20; stp d8, d9, [sp, #-16]!; bl
    let grows = [0xd140_07ff, 0xd100_83ff, 0x6dbf_27e8, 0x9400_0010, RET];
    assert_eq!(entry(&grows), (3, 0x1030, true));
    assert_eq!(entry(&[NOP, 0xb400_0040, NOP, RET]), (1, 0, true), "cbz");
}

#[test]
fn no_cheap_places() {
    let none = (0, 0, false);
    // mov x0, x1; ldr x8, [x0]; ldp x2, x9, [x0]; ldr x9, [x1], #8; ldadd x9, x10, [x1]: they change arguments.
    for change in [0xaa01_03e0, 0xf940_0008, 0xa940_2402, 0xf840_8429, 0xf829_002a] {
        assert_eq!(entry(&[change, ADRP, RET]), none, "{change:x}");
    }
    // mov sp, x9; and sp, x9, #-32; add sp, sp, #16; sub sp, sp, x9: where the stack ends is not known, or above.
    for change in [0x9100_013f, 0x927b_e93f, 0x9100_43ff, 0xcb29_63ff] {
        assert_eq!(entry(&[change, ADRP, RET]), none, "{change:x}");
    }
    // A loop comes back to the first instruction, to the second one, or after these: nop; adrp; b.ne
    assert_eq!(entry(&[NOP, ADRP, NOP, 0x54ff_ffe1, RET]), (1, 0, true));
    assert_eq!(entry(&[NOP, ADRP, NOP, 0x54ff_ffc1, RET]), none);
}

#[test]
fn refused_places() {
    // brk, svc; ldxr x9, [x0]
    for refused in [0xd420_0020, 0xd400_0001, 0xc85f_7c09] {
        let (shape, function) = shape_at(&[refused, NOP, RET]);
        assert_eq!(shape, Err(ShapeError::Refused(function)), "{refused:x}");
    }
    // ldr x9, literal; autiasp; msr
    for passed in [0x5800_0049, 0xd503_23bf, 0xd51b_4200] {
        assert_eq!(entry(&[passed, NOP, RET]), (2, 0, true), "{passed:x}");
    }
}

#[test]
fn returns() {
    // Over each but the last: cbz x0. ret; ret x1; retaa; retab; br x30 is a jump.
    const OVER: u32 = 0xb400_0040;
    let (shape, function) = shape_at(&[NOP, OVER, RET, OVER, 0xd65f_0020, OVER, 0xd65f_0bff, 0xd65f_0fff]);
    let shape = shape.unwrap();
    assert_eq!(shape.returns, [function + 8, function + 16]);
    assert_eq!(
        (shape.refused_returns, shape.tail_jumps),
        (vec![function + 24, function + 28], TailJumps::None)
    );
    // b over; data; over: ret
    let (shape, function) = shape_at(&[0x1400_0003, RET, RET, RET]);
    assert_eq!(shape.unwrap().returns, [function + 12]);
}

#[test]
fn tail_jumps() {
    let known = |words: &[u32]| {
        let (shape, function) = shape_at(words);
        match shape.unwrap().tail_jumps {
            TailJumps::Known(jumps) => {
                let jump = jumps[0];
                (jump.address - function, jump.target.map(|target| target.wrapping_sub(function)))
            }
            other => panic!("{words:x?}: {other:?}"),
        }
    };
    assert_eq!(known(&[NOP, 0x1400_0010]), (4, Some(68)));
    assert_eq!(known(&[NOP, 0x17ff_ffff]), (4, Some(0)));
    assert_eq!(known(&[0xb400_0200, RET]), (0, Some(64)), "cbz");
    // ldr x1, [x0]; mov x16, x1; br x16
    assert_eq!(known(&[0xf940_0001, 0xaa01_03f0, 0xd61f_0200]), (8, None));
    assert_eq!(known(&[0xd61f_0020]), (0, None), "br x1, an argument");
    // cbz x0, over; ldr x1, [x0]; b go; over: ldr x1, [x2]; go: br x1
    assert_eq!(known(&[0xb400_0060, 0xf940_0001, 0x1400_0002, 0xf940_0041, 0xd61f_0020]), (16, None));
    // braaz x1
    assert_eq!(known(&[0xf940_0001, 0xd61f_083f]), (4, None));
}

#[test]
fn moved_instructions_are_no_tail_jumps() {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    // b to the moved one, 16 bytes after the begin; ret; there: ldr x1, [x1]; b back
    let function = writer.words(&[NOP, 0x1400_0003, RET, RET]);
    let moved = writer.words(&[0xf940_0021, 0x17ff_fffd]);
    assert_eq!(moved, function + 16);
    let shape = shape_of(writer, function, 16).unwrap();
    assert_eq!(shape.tail_jumps, TailJumps::None);
}

/// Adds a function that jumps by a table, with `load`, `add` of a place and a distance, and returns after the jump.
fn by_table(table: &[u8], load: u32, add: u32) -> TailJumps {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    let address = writer.bytes(table);
    let function = writer.next_function();
    let pages = ((address >> 12).wrapping_sub(function >> 12)) as u32;
    let words = [
        0x9000_0001 | (pages & 3) << 29 | (pages >> 2 & 0x7_ffff) << 5, // adrp x1, table
        0x9100_0021 | ((address & 0xfff) as u32) << 10,                 // add x1, x1, #low
        load,                                                           // .. x2, [x1, x0]
        0x1000_0083,                                                    // adr x3, 16 bytes on
        add,                                                            // add x3, x3, .. x2
        0xd61f_0060,                                                    // br x3
        NOP,
        RET,
        RET,
        RET,
        RET,
    ];
    assert_eq!(writer.words(&words), function);
    shape_of(writer, function, 4 * words.len()).unwrap().tail_jumps
}

#[test]
fn tables_of_distances() {
    // From the nop on, in words: ldrb w2, [x1, w0, uxtw]; add x3, x3, w2, sxtb #2
    let (byte, signed_byte) = (0x3860_4822, 0x8b22_8863);
    assert_eq!(by_table(&[1, 2, 3, 0xff, 0xfe], byte, signed_byte), TailJumps::None);
    assert!(matches!(by_table(&[100, 2, 3], byte, signed_byte), TailJumps::Unclear(_)));
    // ldrh w2, [x1, w0, uxtw #1]; add x3, x3, x2, lsl #2
    let (half, shifted) = (0x7860_5822, 0x8b02_0863);
    assert_eq!(by_table(&[1, 0, 2, 0, 3, 0], half, shifted), TailJumps::None);
    assert!(matches!(by_table(&[0, 1, 0, 1], half, shifted), TailJumps::Unclear(_)));
    // ldrsw x2, [x1, x0, lsl #2]; add x3, x3, x2
    let (word, plain) = (0xb8a0_7822, 0x8b02_0063);
    assert_eq!(by_table(&[[4, 0, 0, 0], [0xfc, 0xff, 0xff, 0xff]].concat(), word, plain), TailJumps::None);
    assert!(matches!(by_table(&[2, 0, 0, 0, 2, 0, 0, 0], word, plain), TailJumps::Unclear(_)));
}
