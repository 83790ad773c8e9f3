use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::live::engines::{
    image::Symbol,
    test_files::{Pointers, Writer, compiled, library},
};

const SOURCE: &str = r#"
    void say(const char *);
    __attribute__((cold)) void fail(const char *);
    extern int other(int);
    struct Error { int n; };
    extern "C" {
        int run(int n) { say("running the model"); return other(n) + 1; }
        int load(int n) { if (n < 0) { fail("cannot load the model"); } return other(n) + 2; }
        int one(int n) { say("said by two"); return other(n) + 3; }
        int two(int n) { say("said by two"); return other(n) + 4; }
        int tail(int n) { say("before the model is loaded"); say("is loaded"); return other(n) + 5; }
        int catches(int n) {
            try { return other(n) + 6; }
            catch (const Error &error) { say("caught an error"); return other(error.n); }
        }
        int moved(int n) {
            if (__builtin_expect(n > 1000, 0)) { fail("seldom said"); if (other(n) > 3) return other(n + 1) * 7; }
            return other(n) + 7;
        }
        extern const char *const unused = "nothing refers to this";
        int unrelated(int n) { return other(n) + 8; }
    }
"#;

fn referring_to(file: &[u8], text: &str) -> Vec<u64> {
    let image = Image::parse(file).unwrap();
    functions(&image, &FunctionBounds::of(&image), text)
}

/// The exported function with this name.
fn function(file: &[u8], name: &str) -> u64 {
    let image = Image::parse(file).unwrap();
    let found: Symbol<'_> = image.exported(name).unwrap();
    found.address
}

/// Checks texts of the source in a file.
fn check(file: &[u8], name_of: impl Fn(&str) -> u64) {
    for (text, names) in [
        ("running the model", &["run"][..]),
        ("cannot load the model", &["load"]),
        ("said by two", &["one", "two"]),
        ("before the model is loaded", &["tail"]),
        // The end of the other one, if the linker found that.
        ("is loaded", &["tail"]),
        ("caught an error", &["catches"]),
        ("seldom said", &["moved"]),
        ("nothing refers to this", &[]),
        ("running the mode", &[]),
        ("a text that is not there", &[]),
    ] {
        let mut expected: Vec<u64> = names.iter().map(|name| name_of(name)).collect();
        expected.sort_unstable();
        assert_eq!(referring_to(file, text), expected, "{text}");
    }
}

#[test]
fn functions_are_found_by_what_they_say() {
    for flags in [&["-O0", "-s"][..], &["-O2", "-s"], &["-O3", "-s", "-freorder-blocks-and-partition"]] {
        let file = library("cc", SOURCE, flags);
        check(&file, |name| function(&file, name));
    }
}

#[test]
fn programs_at_fixed_addresses_hold_them_in_instructions() {
    let rest = "__attribute__((noipa)) void say(const char *) {} __attribute__((noipa)) void fail(const char *) {} \
                __attribute__((noipa)) int other(int n) { if (n == 12345) throw 1; return n; } int main() {}";
    let source = [SOURCE, rest].concat();
    let file = compiled("cc", &source, &["-O1", "-no-pie", "-fno-pie", "-fno-inline", "-rdynamic"]);
    check(&file, |name| function(&file, name));
}

#[test]
fn a_branch_that_was_moved_away_before_there_is_a_frame_belongs_to_its_function() {
    let source = r#"
        __asm__(".section .text.unlikely\n.cfi_startproc\nmoved: lea text(%rip), %rdi\nret\n.cfi_endproc\n"
                ".section .rodata\ntext: .asciz \"seldom said\"\n.text\n.globl runs\n.type runs, @function\nruns:\n.cfi_startproc\n"
                "test %edi, %edi\njs moved\nret\n.cfi_endproc\n.size runs, . - runs\n");
    "#;
    if cfg!(target_arch = "x86_64") {
        let file = library("c", source, &["-s"]);
        assert_eq!(referring_to(&file, "seldom said"), [function(&file, "runs")]);
    }
}

#[test]
fn callers_are_counted() {
    let file = library("cc", SOURCE, &["-O1", "-s", "-Wl,-Bsymbolic"]);
    let image = Image::parse(&file).unwrap();
    let callers = Callers::of(&image);
    assert_eq!(callers.count(function(&file, "unrelated")), Some(0));
    for absent in 0..MOST_COUNTED as u64 - 1 {
        assert_eq!(callers.count(absent), Some(0));
    }
    assert_eq!(callers.count(1 << 40), None);
    let (file, all) = arm64(&[
        // `bl` and `b` to the next one, `cbz` to it
        &|_, _| vec![0x9400_0004, 0x1400_0003, 0xb400_0040, RETURN],
        &|_, _| vec![RETURN],
    ]);
    let image = Image::parse(&file).unwrap();
    assert_eq!(Callers::of(&image).count(all[1]), Some(3));
}

#[test]
fn code_that_was_moved_away_belongs_to_its_function() {
    let file = library("cc", SOURCE, &["-O2", "-s"]);
    let image = Image::parse(&file).unwrap();
    let bounds = FunctionBounds::of(&image);
    let text = image.occurrences(b"seldom said\0");
    let wanted: Vec<_> = text.iter().map(|&address| address..address + 1).collect();
    let direct = referring(&image, &bounds, &wanted, Reference::Data);
    assert_eq!(direct.len(), 1);
    assert!(bounds.is_part(&direct[0]), "the compiler has moved nothing: {direct:?}");
    assert!(!bounds.is_part(&bounds.at(function(&file, "moved")).unwrap()));
}

/// Encodes `adrp` of a register.
fn adrp(register: u32, at: u64, to: u64) -> u32 {
    let pages = ((to & !0xfff).wrapping_sub(at & !0xfff) >> 12) as u32 & 0x1f_ffff;
    0x9000_0000 | (pages & 3) << 29 | (pages >> 2) << 5 | register
}

/// Encodes an addition of a place within a page to a register.
fn add(to: u32, from: u32, place: u64) -> u32 {
    0x9100_0000 | ((place & 0xfff) as u32) << 10 | from << 5 | to
}

const RETURN: u32 = 0xd65f_03c0;
/// `mov x3, #0`, which replaces the page in x3.
const OVERWRITTEN: u32 = 0xd280_0003;
const NOTHING: u32 = 0xd503_201f;

/// Writes a file for arm64 with functions of these instructions, which get their address and that of the text.
fn arm64(functions: &[&dyn Fn(u64, u64) -> Vec<u32>]) -> (Vec<u8>, Vec<u64>) {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    writer.bytes(&[1; 40]);
    let text = writer.text("said on arm64");
    let mut all = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        let start = writer.function(&[]);
        let code: Vec<u8> = function(start, text).into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(writer.function(&code), start);
        let mut name = String::new();
        write!(name, "function{number}").unwrap();
        writer.export(&name, start, code.len() as u64);
        all.push(start);
    }
    (writer.file(), all)
}

#[test]
fn a_page_and_a_place_in_it_are_a_reference_on_arm64() {
    let (file, all) = arm64(&[
        &|at, text| vec![adrp(3, at, text), add(0, 3, text), RETURN],
        &|at, text| vec![adrp(3, at, text), NOTHING, NOTHING, add(3, 3, text), RETURN],
        // Other places: of the page, of another register, after the register has another value, in another function.
        &|at, text| vec![adrp(3, at, text), add(0, 3, text + 8), RETURN],
        &|at, text| vec![adrp(3, at, text), add(0, 4, text), RETURN],
        &|at, text| vec![adrp(3, at, text), OVERWRITTEN, add(0, 3, text), RETURN],
        &|at, text| vec![RETURN, adrp(3, at + 4, text)],
        &|_, text| vec![add(0, 3, text), RETURN],
    ]);
    assert_eq!(referring_to(&file, "said on arm64"), all[..2]);
}

proptest! {
    #[test]
    fn bytes_that_only_look_like_references_are_none(code in proptest::collection::vec(any::<u32>(), 1..200)) {
        let (file, _) = arm64(&[&|_, _| code.clone()]);
        let found = referring_to(&file, "said on arm64");
        prop_assert!(found.len() <= 1);
    }

    #[test]
    fn damaged_files_are_searched_without_harm(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut file = library_once().to_vec();
        let at = at.index(file.len());
        file[at] = value;
        if let Ok(image) = Image::parse(&file) {
            functions(&image, &FunctionBounds::of(&image), "seldom said");
        }
    }
}

fn library_once() -> &'static [u8] {
    static FILE: std::sync::LazyLock<Vec<u8>> =
        std::sync::LazyLock::new(|| library("cc", SOURCE, &["-O2", "-s"]));
    &FILE
}
