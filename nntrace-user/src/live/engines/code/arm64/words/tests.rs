use proptest::prelude::*;

use super::*;

/// Set of registers, 31 being the stack pointer.
fn set(registers: &[u32]) -> u32 {
    registers.iter().fold(0, |set, register| set | 1 << register)
}

#[test]
fn registers_that_are_written() {
    let cases: [(u32, &str, &[u32]); 33] = [
        (0x9100_03fd, "mov x29, sp", &[29]),
        (0xd100_83ff, "sub sp, sp, #32", &[31]),
        (0xf100_041f, "cmp x0, #1", &[]),
        (0x927b_e93f, "and sp, x9, #-32", &[31]),
        (0xf240_001f, "tst x0, #1", &[]),
        (0xd280_0023, "mov x3, #1", &[3]),
        (0x1000_0005, "adr x5, .", &[5]),
        (0xaa01_03e0, "mov x0, x1", &[0]),
        (0xeb01_001f, "cmp x0, x1", &[]),
        (0xfa41_0800, "ccmp x0, #1, #0, eq", &[]),
        (0xcb29_63ff, "sub sp, sp, x9", &[31]),
        (0x9a82_0020, "csel x0, x1, x2, eq", &[0]),
        (0xa9be_7bfd, "stp x29, x30, [sp, #-32]!", &[31]),
        (0xa901_53f3, "stp x19, x20, [sp, #16]", &[]),
        (0xa8c2_7bfd, "ldp x29, x30, [sp], #32", &[29, 30, 31]),
        (0x6dbf_27e8, "stp d8, d9, [sp, #-16]!", &[31]),
        (0xad40_0400, "ldp q0, q1, [x0]", &[]),
        (0xf940_0008, "ldr x8, [x0]", &[8]),
        (0xf900_0008, "str x8, [x0]", &[]),
        (0xf840_8429, "ldr x9, [x1], #8", &[1, 9]),
        (0xf81f_0fe2, "str x2, [sp, #-16]!", &[31]),
        (0x3dc0_0000, "ldr q0, [x0]", &[]),
        (0x3860_4822, "ldrb w2, [x1, w0, uxtw]", &[2]),
        (0xf829_002a, "ldadd x9, x10, [x1]", &[1, 9, 10]),
        (0x5800_0049, "ldr x9, .+8", &[9]),
        (0x4cdf_2000, "ld1 {v0.16b-v3.16b}, [x0], #64", &[0]),
        (0xd53b_d041, "mrs x1, tpidr_el0", &[1]),
        (0x9e66_0001, "fmov x1, d0", &[1]),
        (0x4e08_3c01, "mov x1, v0.d[0]", &[1]),
        (0x6f00_e400, "movi v0.2d, #0", &[]),
        (0x1e60_2800, "fadd d0, d0, d0", &[]),
        (0x1400_0000, "b .", &[]),
        (0xd503_201f, "nop", &[17, 30]),
    ];
    for (word, text, registers) in cases {
        assert_eq!(written(word), set(registers), "{text}");
    }
    assert_eq!(written(0x9400_0000), CHANGED_BY_CALLS, "bl");
    assert_eq!(written(0xd63f_0100), CHANGED_BY_CALLS, "blr x8");
    // cntb x0, of the scalable vectors
    assert_eq!(written(0x0420_e3e0), u32::MAX);
}

#[test]
fn constants() {
    assert_eq!(page_or_place(0x1000_0081, 0x1000), Some(0x1010));
    assert_eq!(page_or_place(0x10ff_ffe1, 0x1000), Some(0xffc));
    assert_eq!(page_or_place(0xb000_0001, 0x1234), Some(0x2000));
    assert_eq!(page_or_place(0xf0ff_ffe1, 0x1234), Some(0));
    assert_eq!(page_or_place(0x9100_0021, 0), None);
    assert_eq!(added_constant(0x9140_0421), Some((1, 0x1000)));
    assert_eq!(added_constant(0xd100_4041), Some((2, -16)));
    assert_eq!(added_constant(0x1100_0421), None, "32 bits");
    assert_eq!(load_at_offset(0xf947_1c21), Some((1, 3640)));
    assert_eq!((copied(0xaa02_03f0), copied(0xaa02_0010)), (Some(2), None));
}

#[test]
fn growing_of_the_stack() {
    let cases = [
        (0xa9be_7bfd, Some(32)),
        (0xa8c2_7bfd, Some(-32)),
        (0x6dbf_27e8, Some(16)),
        (0xad80_07e0, Some(0)),
        (0xf81f_0fe2, Some(16)),
        (0xf841_07e2, Some(-16)),
        (0xd100_83ff, Some(32)),
        (0x9100_03ff, Some(0)),
        (0x9100_013f, None),
        (0xcb29_63ff, None),
        (0xa981_0400, None),
    ];
    for (word, grown) in cases {
        assert_eq!(pushed(word), grown, "{word:x}");
    }
}

#[test]
fn instructions_that_cannot_be_moved() {
    // autiasp, wfi, retaa, braaz, blraaz, bc.eq, svc, brk, msr, ldxr, stlxr, ldr literal of both kinds, cpyfp
    let refused = [
        0xd503_23bf,
        0xd503_207f,
        0xd65f_0bff,
        0xd61f_081f,
        0xd63f_081f,
        0x5400_0090,
        0xd400_0001,
        0xd420_0000,
        0xd51b_4200,
        0xc85f_7c09,
        0xc800_fc01,
        0x5800_0049,
        0x1c00_0040,
        0x1901_0440,
    ];
    assert_eq!(refused.iter().find(|&&word| !is_unsteppable(word)), None);
    // nop, bti c, paciasp, xpaclri, mrs, dmb, stp, ldr, ldar, cas, add, fadd
    let allowed = [
        0xd503_201f,
        0xd503_245f,
        0xd503_233f,
        0xd503_20ff,
        0xd53b_d041,
        0xd503_3bbf,
        0xa9be_7bfd,
        0xf940_0008,
        0xc8df_fc00,
        0xc8a0_7c01,
        0x9100_0021,
        0x1e60_2800,
    ];
    assert_eq!(allowed.iter().find(|&&word| is_unsteppable(word)), None);
}

proptest! {
    #[test]
    fn entries_of_tables(bytes in prop::array::uniform4(any::<u8>())) {
        let value = |load: u32, bytes: &[u8]| IndexedLoad::read(load).map(|load| load.value(bytes));
        let [first, second, ..] = bytes;
        prop_assert_eq!(value(0x3860_4822, &bytes[..1]), Some(i64::from(first)));
        prop_assert_eq!(value(0x38a0_4822, &bytes[..1]), Some(i64::from(first.cast_signed())));
        prop_assert_eq!(value(0x7860_5822, &bytes[..2]), Some(i64::from(u16::from_le_bytes([first, second]))));
        prop_assert_eq!(value(0xb8a0_7822, &bytes), Some(i64::from(i32::from_le_bytes(bytes))));
    }

    #[test]
    fn summands(value in any::<i64>()) {
        let summand = |word: u32| Sum::read(word).map(|sum| sum.summand(value));
        prop_assert_eq!(summand(0x8b22_8863), Some(i64::from(value as i8) << 2), "sxtb #2");
        prop_assert_eq!(summand(0x8b22_2063), Some(value & 0xffff), "uxth");
        prop_assert_eq!(summand(0x8b22_c863), Some(i64::from(value as i32) << 2), "sxtw #2");
        prop_assert_eq!(summand(0x8b02_0863), Some(value << 2), "lsl #2");
    }

    #[test]
    fn what_makes_the_stack_grow_writes_its_pointer(kind in 0..4_usize, fields in any::<u32>()) {
        // add and sub of a constant; pairs and single registers with write-back
        let (instruction, fixed) = [
            (0x9100_03e0, 0xbf80_03e0_u32),
            (0xd100_03e0, 0xff80_03e0),
            (0x2880_03e0, 0x3a80_03e0),
            (0x3800_07e0, 0x3b20_07e0),
        ][kind];
        let word = instruction | fields & !fixed;
        prop_assert!(pushed(word).is_none() || written(word) & SP != 0, "{:x}", word);
    }
}
