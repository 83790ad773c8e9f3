use super::*;
use crate::live::engines::image::Machine;
use crate::live::engines::test_files::{Pointers, Writer, compiled, library};

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Arm64];
const ALL_POINTERS: [Pointers; 3] = [Pointers::Relocated, Pointers::Packed, Pointers::Fixed];
/// Flags of base classes.
const PUBLIC: u64 = 2;
const VIRTUAL: u64 = 1;

/// Classes for the compiled libraries: their names show how they derive from `Layer`.
const SOURCE: &str = r"
    struct Layer { virtual ~Layer(); virtual int run(int); virtual int load(int); long name; };
    Layer::~Layer() {}
    int Layer::run(int n) { return n; }
    int Layer::load(int n) { return -n; }
    struct Other { virtual ~Other() {} virtual int more(int n) { return n + 1; } long word; };
    struct Direct : Layer { int run(int n) override { return n + 2; } };
    struct Deep : Direct { int run(int n) override { return n + 3; } };
    struct Inherits : Direct { int load(int n) override { return n + 4; } };
    struct Second : Other, Layer { int run(int n) override { return n + word; } };
    struct Virtually : virtual Layer { int run(int n) override { return n + name; } int own; };
    struct Mixed : Other, Virtually { int load(int n) override { return n - word - own; } };
    struct Abstract : Layer { int run(int) override = 0; };
    struct Concrete : Abstract { int run(int n) override { return n + 7; } };
    struct Unrelated : Other { int more(int n) override { return n + 8; } };
    namespace { struct Local : Layer { int run(int n) override { return n + 9; } }; }
    template<typename T> Layer *make() { return new T; }
    template Layer *make<Direct>(); template Layer *make<Deep>(); template Layer *make<Inherits>();
    template Layer *make<Second>(); template Layer *make<Virtually>(); template Layer *make<Mixed>();
    template Layer *make<Concrete>();
    Other *unrelated() { return new Unrelated; }
    Layer *local() { return new Local; }
    int main() { return 0; }
";
/// Class, and the name of the function in its slot of `run` for `Layer`: its own, an inherited one, or one that first
/// corrects the address of the object.
const RUNS: [(&str, &str); 8] = [
    ("6Direct", "_ZN6Direct3runEi"),
    ("4Deep", "_ZN4Deep3runEi"),
    ("8Inherits", "_ZN6Direct3runEi"),
    ("6Second", "_ZThn16_N6Second3runEi"),
    ("9Virtually", "_ZTv0_n32_N9Virtually3runEi"),
    ("5Mixed", "_ZTv0_n32_N9Virtually3runEi"),
    ("8Concrete", "_ZN8Concrete3runEi"),
    ("N12_GLOBAL__N_15LocalE", "_ZN12_GLOBAL__N_15Local3runEi"),
];
/// Slot of `run`, after those of the destructor.
const RUN: usize = 2;

/// Returns the classes that have a function, by its address, and checks that no class is among them twice.
fn by_class<'data>(overrides: &Overrides<'data>) -> BTreeMap<&'data str, u64> {
    let pairs = overrides
        .functions
        .iter()
        .flat_map(|function| function.classes.iter().map(move |class| (*class, function.address)));
    let by_class: BTreeMap<_, _> = pairs.clone().collect();
    assert_eq!(by_class.len(), pairs.count());
    by_class
}

#[test]
fn functions_of_compiled_classes() {
    let flags: [&[&str]; 5] = [
        &["-O0"],
        &["-O2"],
        &["-O2", "-Wl,-z,pack-relative-relocs"],
        &["-O2", "-fvisibility=hidden", "-Wl,-Bsymbolic"],
        // The runtime library is a part of the file.
        &["-O2", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"],
    ];
    for flags in flags {
        let (whole, stripped) =
            (library("cc", SOURCE, flags), library("cc", SOURCE, &[flags, &["-s"]].concat()));
        let (whole, stripped) = (Image::parse(&whole).unwrap(), Image::parse(&stripped).unwrap());
        let rtti = Rtti::of(&stripped);
        assert!(!rtti.is_empty() && rtti.knows("5Layer") && !rtti.knows("5Laye"));
        let overrides = rtti.overrides("5Layer", RUN);
        let by_class = by_class(&overrides);
        // Both files have the same code at the same addresses, and one has its names.
        let is_named = |class: &str, name: &str| {
            whole.symbols().any(|symbol| symbol.name == name && by_class.get(class) == Some(&symbol.address))
        };
        for (class, name) in RUNS {
            assert!(is_named(class, name), "{class} {flags:?}: {overrides:x?}");
        }
        assert_eq!(by_class.len(), RUNS.len(), "{flags:?}: {overrides:x?}");
        let own = rtti.class("5Layer").unwrap();
        assert_eq!(own.base_offset, 0);
        assert!(overrides.functions.iter().all(|function| !function.is_inherited_from_base));
        let loads = rtti.overrides("5Layer", RUN + 1).functions;
        let inherited = loads.iter().find(|function| function.is_inherited_from_base).unwrap();
        assert!(inherited.classes.contains(&"6Direct") && !inherited.classes.contains(&"8Inherits"));
        assert_eq!(Ok(inherited.address), rtti.slot(own.vtable, RUN + 1));
        let offsets: BTreeMap<_, _> =
            rtti.derived_from("5Layer").iter().map(|class| (class.name, class.base_offset)).collect();
        assert_eq!((offsets["4Deep"], offsets["6Second"], offsets["9Virtually"]), (0, 16, 16));
        assert!(offsets["5Mixed"] > 16, "{offsets:?}");
    }
}

#[test]
fn functions_of_a_program() {
    for flags in [&["-no-pie"][..], &["-pie", "-fPIE"], &["-static"]] {
        let flags = [flags, &["-O1"]].concat();
        let whole = compiled("cc", SOURCE, &flags);
        let image = Image::parse(&whole).unwrap();
        let overrides = Rtti::of(&image).overrides("5Layer", RUN);
        let by_class = by_class(&overrides);
        for (class, name) in RUNS {
            let symbol = image.symbols().find(|symbol| symbol.name == name).unwrap();
            assert_eq!(by_class.get(class), Some(&symbol.address), "{class} {flags:?}");
        }
    }
}

#[test]
fn without_type_information() {
    let source = "struct A { virtual int run() { return 1; } }; A *make() { return new A; }";
    let file = library("cc", source, &["-fno-rtti"]);
    let image = Image::parse(&file).unwrap();
    let rtti = Rtti::of(&image);
    assert!(rtti.is_empty() && !rtti.knows("1A") && rtti.class("1A").is_none());
    assert_eq!(rtti.overrides("1A", 0), Overrides::default());
}

/// Adds type information; base classes by address or symbol, with offset and flags.
fn class(writer: &mut Writer, name: &str, bases: &[(Result<u64, &str>, u64)]) -> u64 {
    let name = writer.text(name);
    let base = |writer: &mut Writer, base| match base {
        Ok(address) => writer.pointer(address),
        Err(symbol) => writer.symbol(symbol),
    };
    let kind = match bases {
        [] => "_ZTVN10__cxxabiv117__class_type_infoE",
        [(_, PUBLIC)] => "_ZTVN10__cxxabiv120__si_class_type_infoE",
        _ => "_ZTVN10__cxxabiv121__vmi_class_type_infoE",
    };
    let address = writer.symbol(kind);
    writer.pointer(name);
    match bases {
        [] => {}
        &[(only, PUBLIC)] => {
            base(writer, only);
        }
        _ => {
            writer.word((bases.len() as u64) << 32);
            for &(one, place) in bases {
                base(writer, one);
                writer.word(place);
            }
        }
    }
    address
}

/// Adds a virtual table for the part of objects at an offset; 0 stands for an empty slot.
fn table(writer: &mut Writer, information: u64, offset: i64, functions: &[u64]) -> u64 {
    writer.word((-offset).cast_unsigned());
    writer.pointer(information);
    let address = writer.next();
    for &function in functions {
        if function == 0 {
            writer.word(0)
        } else {
            writer.pointer(function)
        };
    }
    address
}

#[test]
fn classes_made_word_by_word() {
    for (machine, pointers) in
        MACHINES.into_iter().flat_map(|machine| ALL_POINTERS.map(|kind| (machine, kind)))
    {
        let mut writer = Writer::new(machine, pointers);
        let [first, second, third] = [(); 3].map(|()| writer.function(&[0; 16]));
        let base = class(&mut writer, "4Base", &[]);
        let base_table = table(&mut writer, base, 0, &[first, second]);
        let shares = class(&mut writer, "6Shares", &[(Ok(base), PUBLIC)]);
        table(&mut writer, shares, 0, &[first, second]);
        let local = class(&mut writer, "*5Local", &[(Ok(shares), PUBLIC)]);
        let local_table = table(&mut writer, local, 0, &[third, second]);
        let empty = class(&mut writer, "5Empty", &[(Ok(base), PUBLIC)]);
        table(&mut writer, empty, 0, &[0, 0, third]);
        let pure = class(&mut writer, "4Pure", &[(Ok(base), PUBLIC)]);
        table(&mut writer, pure, 0, &[]);
        writer.symbol("__cxa_pure_virtual");
        writer.symbol("elsewhere");
        class(&mut writer, "7Nowhere", &[(Ok(base), PUBLIC)]);
        writer.word(1);
        let file = writer.file();
        let image = Image::parse(&file).unwrap();
        let rtti = Rtti::of(&image);
        let overrides = rtti.overrides("4Base", 0);
        let function = |address, classes: &[&'static str], is_inherited_from_base| Override {
            address,
            classes: classes.to_vec(),
            is_inherited_from_base,
        };
        let functions = [function(first, &["6Shares"], true), function(third, &["5Local"], false)];
        assert_eq!(overrides.functions, functions, "{machine} {pointers:?}");
        let without =
            [("4Pure", NoSlot::PureVirtual), ("5Empty", NoSlot::Null), ("7Nowhere", NoSlot::NoVtable)];
        assert_eq!(overrides.without, without);
        assert_eq!(rtti.overrides("5Local", 0), Overrides::default());
        let of_pure = rtti.class("4Pure").unwrap().vtable;
        assert_eq!(rtti.slot(of_pure, 1), Err(NoSlot::Imported("elsewhere")));
        assert_eq!(rtti.slot(of_pure, 2), Err(NoSlot::Beyond { slots: 2 }));
        assert_eq!(rtti.slot(rtti.class("5Empty").unwrap().vtable, 2), Ok(third));
        let found = Class { name: "5Local", vtable: local_table, base_offset: 0 };
        assert_eq!(rtti.class("5Local"), Some(found));
        assert_eq!(rtti.class("4Base").map(|class| class.vtable), Some(base_table));
    }
}

#[test]
fn base_classes_of_other_files_and_at_offsets() {
    for machine in MACHINES {
        let mut writer = Writer::new(machine, Pointers::Relocated);
        let [first, second, other] = [(); 3].map(|()| writer.function(&[0; 16]));
        let single = class(&mut writer, "6Single", &[(Err("_ZTI4Base"), PUBLIC)]);
        table(&mut writer, single, 0, &[first]);
        // At offset 24, after a part of another class.
        let bases = [(Err("_ZTI5Other"), PUBLIC), (Ok(single), 24 << 8 | PUBLIC)];
        let several = class(&mut writer, "7Several", &bases);
        table(&mut writer, several, 0, &[other]);
        table(&mut writer, several, 24, &[second]);
        // The table holds the offset of the virtual base class, 40, two words before the usual ones.
        let place = (-24_i64 << 8).cast_unsigned() | PUBLIC | VIRTUAL;
        let virtually = class(&mut writer, "9Virtually", &[(Ok(several), place)]);
        writer.word(40);
        table(&mut writer, virtually, 0, &[other]);
        table(&mut writer, virtually, 64, &[first, second]);
        let file = writer.file();
        let image = Image::parse(&file).unwrap();
        let rtti = Rtti::of(&image);
        assert!(rtti.knows("4Base") && rtti.knows("5Other") && rtti.class("4Base").is_none());
        let derived = rtti.derived_from("4Base");
        let names: Vec<_> = derived.iter().map(|class| (class.name, class.base_offset)).collect();
        assert_eq!(names, [("6Single", 0), ("7Several", 24), ("9Virtually", 64)]);
        let functions: Vec<_> = derived.iter().map(|class| rtti.slot(class.vtable, 0)).collect();
        assert_eq!(functions, [Ok(first), Ok(second), Ok(first)]);
        assert_eq!(rtti.slot(derived[2].vtable, 1), Ok(second));
    }
}

#[test]
fn several_tables_of_a_class() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let [first, second] = [(); 2].map(|()| writer.function(&[0; 16]));
    let base = class(&mut writer, "4Base", &[]);
    let same = class(&mut writer, "4Same", &[(Ok(base), PUBLIC)]);
    table(&mut writer, same, 0, &[first]);
    let fuller = table(&mut writer, same, 0, &[first, second, first]);
    table(&mut writer, same, 0, &[first, 0, first, second]);
    let differs = class(&mut writer, "7Differs", &[(Ok(base), PUBLIC)]);
    table(&mut writer, differs, 0, &[first]);
    table(&mut writer, differs, 0, &[second]);
    // Neither an exception's list of classes nor other pointers to the information are virtual tables.
    writer.pointer(base);
    writer.word(0);
    writer.pointer(base);
    writer.pointer(base);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let rtti = Rtti::of(&image);
    let overrides = rtti.overrides("4Base", 0);
    assert_eq!(overrides.functions.len(), 1, "{overrides:?}");
    assert_eq!(overrides.without, [("7Differs", NoSlot::Ambiguous)]);
    assert_eq!(rtti.class("4Same").map(|class| class.vtable), Some(fuller));
    assert!(rtti.class("4Base").is_none());
}

#[test]
fn classes_in_a_ring_are_each_met_once() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let function = writer.function(&[0; 16]);
    // Each derives from the other one, which no compiler makes.
    let name = writer.text("1A");
    let first = writer.symbol("_ZTVN10__cxxabiv120__si_class_type_infoE");
    writer.pointer(name);
    let second = writer.next() + 16;
    writer.pointer(second);
    let name = writer.text("1B");
    assert_eq!(writer.symbol("_ZTVN10__cxxabiv120__si_class_type_infoE"), second);
    writer.pointer(name);
    writer.pointer(first);
    table(&mut writer, second, 0, &[function]);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let derived = Rtti::of(&image).derived_from("1A");
    assert_eq!(derived.iter().map(|class| class.name).collect::<Vec<_>>(), ["1B"]);
}
