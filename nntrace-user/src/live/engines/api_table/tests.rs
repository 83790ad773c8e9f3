use super::*;
use crate::live::engines::test_files::{Pointers, Writer, library};

/// Interface of three versions; the newest table has the most functions.
const SOURCE: &str = r#"
    typedef int function(int);
    #define F(name, n) static __attribute__((noinline, used)) int name(int x) { return x + n; }
    F(one, 1) F(two, 2) F(three, 3) F(four, 4) F(five, 5)
    struct table { function *functions[5]; };
    static const struct table oldest = { { one, two } }, older = { { one, two, three } };
    static const struct table newest = { { one, two, three, four, five } };
    void complain(unsigned version) __attribute__((weak));
    static const struct table *get(unsigned version) {
        if (version == 0 || version > 30) { if (complain) complain(version); return 0; }
        return version < 5 ? &oldest : version < 10 ? &older : &newest;
    }
    static const char *version(void) { return "1.30.2"; }
    struct base { const struct table *(*get)(unsigned); const char *(*version)(void); };
    static const struct base base = { get, version };
    const struct base *GetBase(void) { return &base; }
    const struct table *GetTable(void) { return &newest; }
    const struct table *Wrapped(void) { return GetTable(); }
    int Number(void) { return 17; }
"#;

#[test]
fn tables_of_a_compiled_interface() {
    for flags in
        [&["-O0"][..], &["-O1"], &["-O2"], &["-Os"], &["-O2", "-fvisibility=hidden", "-Wl,-Bsymbolic"]]
    {
        let source = SOURCE.replace(
            "const struct base *GetBase",
            "__attribute__((visibility(\"default\"))) const struct base *GetBase",
        );
        let file = library("c", &source, flags);
        let image = Image::parse(&file).unwrap();
        let functions = ["one", "two", "three", "four", "five"]
            .map(|name| image.symbols().find(|symbol| symbol.name == name).unwrap().address);
        let table = table_behind(&image, "GetBase").unwrap();
        assert_eq!(table.functions[..5], functions, "{flags:?}");
        assert_eq!(table.version, Some("1.30.2"), "{flags:?}");
        assert_eq!((table.entry(4), table.entry(table.len())), (Some(functions[4]), None));
    }
}

#[test]
fn tables_without_versions() {
    let file = library("c", SOURCE, &["-O2"]);
    let image = Image::parse(&file).unwrap();
    let four = image.symbols().find(|symbol| symbol.name == "four").unwrap().address;
    for export in ["GetTable", "Wrapped"] {
        let table = table_behind(&image, export).unwrap();
        assert_eq!((table.entry(3), table.version), (Some(four), None), "{export}");
    }
    let error = table_behind(&image, "Number").unwrap_err();
    assert!(matches!(error, TableError::NoTable { .. }), "{error}");
    for export in ["Missing", "base"] {
        assert_eq!(table_behind(&image, export), Err(TableError::NotExported(export.to_owned())));
    }
}

/// Adds a table of functions that do nothing.
fn table(writer: &mut Writer, length: usize) -> u64 {
    let functions: Vec<_> = (0..length).map(|_| writer.function(&[0; 4])).collect();
    let address = writer.word(0) + 8;
    for function in functions {
        writer.pointer(function);
    }
    writer.word(0);
    address
}

/// Returns four bytes for the distance to an address from the end of an instruction.
fn distance(to: u64, from: u64) -> [u8; 4] {
    (to.wrapping_sub(from) as u32).to_le_bytes()
}

#[test]
fn conditional_moves_and_calls_of_x86_64() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let (short, long) = (table(&mut writer, 2), table(&mut writer, 3));
    let slot = writer.pointer(long);
    let at = writer.next_function();
    let mut code = vec![0xf3, 0x0f, 0x1e, 0xfa]; // endbr64
    code.extend([0x48, 0x8d, 0x05]); // lea rax, [rip + short]
    code.extend(distance(short, at + 11));
    code.extend([0x48, 0x8b, 0x15]); // mov rdx, [rip + slot]
    code.extend(distance(slot, at + 18));
    code.extend([0x83, 0xff, 0x05]); // cmp edi, 5
    code.extend([0x48, 0x0f, 0x47, 0xc2, 0xc3]); // cmova rax, rdx; ret
    let choose = writer.function(&code);
    writer.export("choose", choose, code.len() as u64);
    // A call may change the register: nothing is known after it.
    let at = writer.next_function();
    let mut code = vec![0x48, 0x8d, 0x05];
    code.extend(distance(short, at + 7));
    code.extend([0xe8, 0, 0, 0, 0, 0xc3]);
    let calls = writer.function(&code);
    writer.export("calls", calls, code.len() as u64);
    // A ring of jumps, and code that ends.
    let ring = writer.function(&[0xeb, 0xfe]);
    writer.export("ring", ring, 2);
    let ends = writer.function(&[0x0f, 0x0b]);
    writer.export("ends", ends, 2);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    assert_eq!(returned(&image, choose), [short, long]);
    assert_eq!(table_behind(&image, "choose").map(|table| table.address), Ok(long));
    for export in ["calls", "ring", "ends"] {
        assert!(table_behind(&image, export).is_err(), "{export}");
    }
}

#[test]
fn ways_of_arm64() {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    let (short, long) = (table(&mut writer, 2), table(&mut writer, 3));
    let slot = writer.pointer(long);
    let adrp = |register: u32, to: u64, at: u64| {
        let pages = ((to >> 12).wrapping_sub(at >> 12)) as u32;
        0x9000_0000 | (pages & 3) << 29 | (pages >> 2 & 0x7_ffff) << 5 | register
    };
    let low = |to: u64| (to & 0xfff) as u32;
    let at = writer.next_function();
    let choose = writer.words(&[
        0xd503_245f, // bti c
        adrp(1, short, at + 4),
        0x9100_0021 | low(short) << 10, // add x1, x1, #low
        adrp(2, slot, at + 12),
        0xf940_0042 | (low(slot) / 8) << 10, // ldr x2, [x2, #low]
        0x7100_141f,                         // cmp w0, #5
        0x9a81_8040,                         // csel x0, x2, x1, hi
        0xd65f_03c0,                         // ret
    ]);
    writer.export("choose", choose, 32);
    let at = writer.next_function();
    // cbz w0, over; adrp x8; add x0, x8, #low; ret; over: mov x0, xzr; ret
    let branches = writer.words(&[
        0x3400_0080,
        adrp(8, long, at + 4),
        0x9100_0100 | low(long) << 10,
        0xd65f_03c0,
        0xaa1f_03e0,
        0xd65f_03c0,
    ]);
    writer.export("branches", branches, 24);
    let at = writer.next_function();
    // adr x0; bl; ret
    let near = (long.wrapping_sub(at)) as u32;
    let calls = writer.words(&[
        0x1000_0000 | (near & 3) << 29 | (near >> 2 & 0x7_ffff) << 5,
        0x9400_0000,
        0xd65f_03c0,
    ]);
    writer.export("calls", calls, 12);
    let jumps = writer.words(&[
        0xd503_201f,
        0x17ff_ffff & !0x3ff_ffff | ((branches.wrapping_sub(calls + 20) as u32 / 4) & 0x3ff_ffff),
    ]);
    writer.export("jumps", jumps, 8);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    assert_eq!(returned(&image, choose), [short, long]);
    assert_eq!(returned(&image, branches), [long]);
    assert_eq!(returned(&image, jumps), [long]);
    assert_eq!(table_behind(&image, "choose").map(|table| table.address), Ok(long));
    assert!(matches!(table_behind(&image, "calls"), Err(TableError::NoTable { .. })));
}

#[test]
fn of_tables_of_equal_length_none_is_taken() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let (first, second) = (table(&mut writer, 2), table(&mut writer, 2));
    let at = writer.next_function();
    // test edi, edi; je over; lea rax, first; ret; over: lea rax, second; ret
    let mut code = vec![0x85, 0xff, 0x74, 0x08, 0x48, 0x8d, 0x05];
    code.extend(distance(first, at + 11));
    code.extend([0xc3, 0x48, 0x8d, 0x05]);
    code.extend(distance(second, at + 19));
    code.push(0xc3);
    let function = writer.function(&code);
    writer.export("either", function, code.len() as u64);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let error = table_behind(&image, "either").unwrap_err();
    assert_eq!(error, TableError::Several { export: "either".to_owned(), length: 2, first, second });
}
