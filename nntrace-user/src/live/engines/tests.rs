use std::sync::LazyLock;

use proptest::prelude::*;

use super::{
    api_table::table_behind,
    bounds::FunctionBounds,
    code::{entry_point, shape},
    examination::exported_function,
    image::{Image, Machine},
    rtti::Rtti,
    test_files::{Pointers, Writer, library},
};
use crate::live::target::PinnedFile;

/// Library with classes, exceptions, a table of functions, and a function with many cases.
const SOURCE: &str = r#"
    struct Base { virtual ~Base() {} virtual int run(int n) { return n; } };
    struct Other { virtual int more(int n) { return n + 1; } };
    struct Derived : Base { int run(int n) override { if (n < 0) throw n; return n + 2; } };
    struct Both : Other, virtual Derived { int run(int n) override { return n + 3; } };
    extern "C" {
        Base *make(int n) { return n ? new Derived : static_cast<Base *>(new Both); }
        int cases(int n, int m) {
            switch (n) {
                case 0: return m; case 1: return m * m; case 2: return m / 3; case 3: return m - 1;
                case 4: return m ^ 5; case 5: return m << 2; default: return cases(n % 6, m + 1);
            }
        }
        typedef int function(int, int);
        static function *const functions[] = { cases, cases, cases };
        static function *const *get(unsigned version) { return version ? functions : 0; }
        static const char *version() { return "1.2.3"; }
        static void *const base[] = { (void *)get, (void *)version };
        void *const *Interface() { return base; }
    }
"#;
/// Name of the exported function that leads to the table.
const INTERFACE: &str = "Interface";

static COMPILED: LazyLock<Vec<u8>> = LazyLock::new(|| library("cc", SOURCE, &["-O2", "-s"]));
static PACKED: LazyLock<Vec<u8>> =
    LazyLock::new(|| library("cc", SOURCE, &["-O1", "-Wl,-z,pack-relative-relocs", "-static-libstdc++"]));
static WRITTEN: LazyLock<Vec<u8>> = LazyLock::new(|| written(Machine::Arm64));

/// Makes a file with one class, one table, and some instructions.
fn written(machine: Machine) -> Vec<u8> {
    let mut writer = Writer::new(machine, Pointers::Packed);
    let code = match machine {
        Machine::Arm64 => {
            writer.words(&[0xd503_245f, 0x9000_0001, 0x3860_4822, 0x8b22_8863, 0xd61f_0060, 0xd65f_03c0])
        }
        Machine::X86_64 => {
            writer.function(&[0x55, 0x48, 0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3])
        }
    };
    writer.export(INTERFACE, code, 24);
    let name = writer.text("4Base");
    let information = writer.symbol("_ZTVN10__cxxabiv117__class_type_infoE");
    writer.pointer(name);
    writer.word(0);
    writer.pointer(information);
    for _ in 0..70 {
        writer.pointer(code);
    }
    writer.file()
}

/// Does all that can be done with a file, whatever is in it; returns the number of functions.
fn examine(file: &[u8]) -> usize {
    let Ok(image) = Image::parse(file) else { return 0 };
    image.build_id();
    let rtti = Rtti::of(&image);
    let bounds = FunctionBounds::of(&image);
    let mut functions: Vec<_> = image.symbols().map(|symbol| symbol.address).collect();
    for class in ["4Base", "5Other", "7Derived"] {
        let overrides = [0, 2].map(|slot| rtti.overrides(class, slot).functions);
        functions.extend(overrides.iter().flatten().map(|function| function.address));
        functions.extend(rtti.class(class).and_then(|class| rtti.slot(class.vtable, 3).ok()));
    }
    if let Ok(table) = table_behind(&image, INTERFACE) {
        functions.extend((0..table.len()).filter_map(|index| table.entry(index)));
    }
    for &function in &functions {
        let found = shape(&image, &bounds, function);
        let entry = entry_point(&image, &bounds, function);
        assert!(found.is_err() || found.map(|shape| shape.entry) == entry);
    }
    functions.len()
}

/// Changes bytes of a file.
fn changed(file: &[u8], changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (place, value) in changes {
        let place = place.index(file.len());
        file[place] = *value;
    }
    file
}

#[test]
fn the_files_are_what_the_others_are_made_from() {
    assert!(examine(&COMPILED) > 4 && examine(&PACKED) > 4);
    assert!(examine(&WRITTEN) > 1 && examine(&written(Machine::X86_64)) > 1);
    let image = Image::parse(&COMPILED).unwrap();
    assert_eq!(table_behind(&image, INTERFACE).unwrap().version, Some("1.2.3"));
}

proptest! {
    #[test]
    fn changed_bytes_are_harmless(
        kind in 0..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        kept in any::<prop::sample::Index>(),
    ) {
        let file = match kind {
            0 => &COMPILED,
            1 => &PACKED,
            _ => &WRITTEN,
        };
        let mut file = changed(file, &changes);
        examine(&file);
        file.truncate(kept.index(file.len()));
        examine(&file);
    }

    #[test]
    fn changed_headers_are_harmless(
        changes in prop::collection::vec((0..0x400_usize, any::<u8>()), 1..8),
    ) {
        for file in [&COMPILED, &WRITTEN] {
            let mut file = file.to_vec();
            for &(place, value) in &changes {
                file[place] = value;
            }
            examine(&file);
        }
    }

    #[test]
    fn any_words_behind_a_header_are_harmless(words in prop::collection::vec(any::<u64>(), 0..64)) {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let file: Vec<_> = WRITTEN[..64].iter().copied().chain(words).collect();
        examine(&file);
    }
}

#[test]
fn the_begin_of_an_exported_function_is_found_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.so");
    std::fs::write(&path, &*COMPILED).unwrap();
    let entry = exported_function(&PinnedFile::at(&path).unwrap(), INTERFACE).unwrap().unwrap();
    let image = Image::parse(&COMPILED).unwrap();
    let address = image.exported(INTERFACE).unwrap().address;
    let function = image.address_at(entry.offset).unwrap();
    assert!((address..address + 16).contains(&function) && entry.pushed.is_multiple_of(8), "{entry:x?}");
    assert_eq!(exported_function(&PinnedFile::at(&path).unwrap(), "Interfac").unwrap(), None);
    std::fs::write(&path, "no library").unwrap();
    assert!(exported_function(&PinnedFile::at(&path).unwrap(), INTERFACE).is_err());
}
