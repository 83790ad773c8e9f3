use super::*;
use crate::live::engines::test_files::{Pointers, Writer, library};

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Arm64];
const SOURCE: &str = r#"
    extern int elsewhere(void);
    int first(void) { return 1; }
    static __attribute__((noinline, used)) int hidden(void) { return 2; }
    int (*const table[])(void) = { first, hidden, elsewhere, 0 };
    const char *const text = "some text";
"#;

fn function<'data>(image: &Image<'data>, name: &str) -> Symbol<'data> {
    image.symbols().find(|symbol| symbol.name == name).unwrap()
}

#[test]
fn pointers_of_a_compiled_library() {
    let packings: &[&[&str]] = &[&[], &["-Wl,-z,pack-relative-relocs"]];
    for flags in packings {
        let file = library("c", SOURCE, flags);
        let image = Image::parse(&file).unwrap();
        let table = image.exported("table").unwrap().address;
        let (first, hidden) = (function(&image, "first"), function(&image, "hidden"));
        assert!(first.is_exported && !hidden.is_exported && first.size > 0);
        assert_eq!(image.pointer(table), Some(Pointer::Address(first.address)), "{flags:?}");
        assert_eq!(image.pointer(table + 8), Some(Pointer::Address(hidden.address)));
        assert_eq!(image.pointer(table + 16), Some(Pointer::Import("elsewhere")));
        assert_eq!((image.pointer(table + 24), image.pointer(table + 4)), (None, None));
        let text = image.local_pointer(image.exported("text").unwrap().address).unwrap();
        assert_eq!(image.text(text), Some("some text"));
        assert!(image.is_code(first.address) && image.is_code(hidden.address));
        assert!(!image.is_code(table) && !image.is_code(text));
        // Each pointer that is found by its address is met in the whole, too.
        let mut all = Vec::new();
        image.for_each_pointer(|address, target| all.push((address, target)));
        assert!(all.iter().all(|&(address, target)| image.target(address) == Some(target)), "{flags:?}");
        assert!(all.contains(&(table, Target::Address(first.address))));
    }
}

#[test]
fn a_stripped_library() {
    let (whole, stripped) = (library("c", SOURCE, &[]), library("c", SOURCE, &["-s", "-Wl,--build-id"]));
    let (whole, stripped) = (Image::parse(&whole).unwrap(), Image::parse(&stripped).unwrap());
    assert!(!whole.is_stripped() && stripped.is_stripped());
    assert!(stripped.symbols().any(|symbol| symbol.name == "first"));
    assert!(!stripped.symbols().any(|symbol| symbol.name == "hidden"));
    assert_eq!(stripped.exported("first").unwrap().size, function(&whole, "first").size);
    assert_eq!((stripped.exported("elsewhere"), stripped.exported("firs")), (None, None));
    assert!(stripped.imports().any(|(_, name)| name == "elsewhere"));
    assert!(stripped.build_id().is_some_and(|id| id.len() >= 8));
}

#[test]
fn every_exported_name_is_found() {
    for style in ["gnu", "sysv"] {
        let functions: Vec<_> = (0..300).map(|n| format!("int f{n}(void) {{ return {n}; }}")).collect();
        let file = library("c", &functions.join("\n"), &["-s", &format!("-Wl,--hash-style={style}")]);
        let image = Image::parse(&file).unwrap();
        let symbols: Vec<_> = image.symbols().collect();
        assert!(symbols.len() >= 300, "{style}: {}", symbols.len());
        for symbol in symbols {
            assert_eq!(image.exported(symbol.name), Some(symbol), "{style}");
        }
        assert_eq!(image.exported("f300"), None);
    }
}

#[test]
fn pointers_of_either_architecture() {
    for machine in MACHINES {
        for pointers in [Pointers::Relocated, Pointers::Packed, Pointers::Fixed] {
            let mut writer = Writer::new(machine, pointers);
            let code = writer.function(&[0; 8]);
            // Some words between pointers, so that packed ones need several groups of bits.
            let places: Vec<_> = (0..200_u64)
                .map(|n| {
                    for _ in 0..n % 7 * (n % 3) * 20 {
                        writer.word(7);
                    }
                    (writer.pointer(code + n % 8), code + n % 8)
                })
                .collect();
            let nothing = writer.word(7);
            writer.export("code", code, 8);
            let (import, own) = (writer.symbol("elsewhere"), writer.symbol("code"));
            let file = writer.file();
            let image = Image::parse(&file).unwrap();
            assert_eq!(image.machine(), machine);
            for &(place, to) in &places {
                assert_eq!(image.pointer(place), Some(Pointer::Address(to)), "{machine} {pointers:?}");
            }
            assert_eq!(image.pointer(nothing), None);
            assert_eq!(image.pointer(import), Some(Pointer::Import("elsewhere")));
            assert_eq!(image.pointer(own), Some(Pointer::Address(code)));
            let mut met = Vec::new();
            // Tables for the loader, which lie after the code, hold addresses, too.
            image.for_each_pointer(|address, target| {
                met.extend((address < code && target != Target::Import(2)).then_some(address));
            });
            met.sort_unstable();
            let mut wanted: Vec<_> = places.iter().map(|&(place, _)| place).collect();
            wanted.push(own);
            assert_eq!(met, wanted, "{machine} {pointers:?}");
        }
    }
}

#[test]
fn addresses_and_offsets() {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    let code = writer.function(b"instructions");
    let text = writer.text("constant");
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let at = |address| usize::try_from(image.file_offset(address).unwrap()).unwrap();
    assert_eq!((&file[at(code)..][..12], &file[at(text)..][..8]), (&b"instructions"[..], &b"constant"[..]));
    assert_eq!(image.address_at(at(code + 3) as u64), Some(code + 3));
    assert_eq!(image.address_at(at(text) as u64), None, "no instructions");
    assert_eq!(image.bytes(code + 4, 8), Some(&b"ructions"[..]));
    assert_eq!((image.bytes(code + 4, 9), image.bytes(code - 1, 1)), (None, None));
    assert_eq!((image.bytes(u64::MAX, 1), image.bytes(code, u64::MAX)), (None, None));
    assert_eq!(image.text(code), None, "no zero byte ends it");
    assert_eq!(image.occurrences(b"constant\0"), [text]);
    assert!(image.is_code(code) && !image.is_code(code + 12) && !image.is_code(text));
}

#[test]
fn other_files_are_refused() {
    let refusal = |bytes: &[u8]| Image::parse(bytes).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refusal(b"text").starts_with("not an ELF file"));
    let mut file = Writer::new(Machine::X86_64, Pointers::Relocated).file();
    file[18] = elf::EM_RISCV.0 as u8;
    assert!(refusal(&file).starts_with("it is for risc-v"));
    assert!(refusal(&file[..63]).starts_with("it is for risc-v"));
    file[18] = elf::EM_X86_64.0 as u8;
    assert!(refusal(&file[..63]).starts_with("damaged ELF file"));
    file[4] = 1;
    assert!(refusal(&file).starts_with("a 32-bit file"));
}
