mod arm64;
mod x86_64;

use proptest::prelude::*;

use super::*;
use crate::live::engines::image::{Machine, Symbol};
use crate::live::engines::test_files::{Pointers, Writer, library};

/// Names the code that a file ends with, which has these bytes, and returns its shape.
fn shape_of(mut writer: Writer, function: u64, length: usize) -> Result<Shape, ShapeError> {
    writer.export("function", function, length as u64);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    shape(&image, &FunctionBounds::of(&image), function)
}

/// Functions that end by returns, whatever happens in them, and one that ends by a jump where the compiler may.
const SOURCE: &str = r"
    extern void use(int), fail(const char *);
    extern int other(int, int), last(int);
    struct Error { int n; };
    int switches(int n, int m) {
        switch (n) {
            case 0: use(m); return 3;
            case 1: use(n + m); return m * 7;
            case 2: return other(n, m) + 1;
            case 3: use(3); use(m); return other(m, n) + 5;
            case 4: return m - 1;
            case 5: fail(nullptr); return 1;
            case 6: use(m + 8); return m / (n + 1);
            default: return 11;
        }
    }
    int loops(int n, int m) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            switch (other(i, m)) {
                case 0: sum += 3; use(sum); break;
                case 1: sum *= other(sum, m); break;
                case 2: use(i); sum = -sum; break;
                case 3: sum ^= m; break;
                case 4: use(m); sum <<= 1; break;
                case 5: return sum;
                default: sum--;
            }
        }
        return sum;
    }
    int catches(int n) {
        try { use(n); return other(n, n) + 1; }
        catch (const Error &error) { return error.n; }
        catch (...) { use(-n); }
        return other(n, 0) + 2;
    }
    int throws(int n) {
        struct Guard { int n; ~Guard() { use(n); } } guard{n};
        if (__builtin_expect(n < 0, 0)) throw Error{n};
        if (__builtin_expect(n > 100, 0)) { fail(nullptr); use(n); return other(n, 1) + 2; }
        return other(n, 2) + 3;
    }
    int tail(int n) { use(n); return last(n); }
    typedef int pointed(int);
    int pointer(pointed *function, int n) { use(n); return function(n + 1); }
";
/// Functions that return.
const RETURNING: [&str; 4] = ["switches", "loops", "catches", "throws"];

/// Returns the function of an unmangled name.
fn named<'data>(image: &Image<'data>, name: &str) -> Symbol<'data> {
    let mangled = format!("_Z{}{name}", name.len());
    let is_it = |symbol: &Symbol<'_>| symbol.name.starts_with(&mangled) && !symbol.name.contains('.');
    image.symbols().find(is_it).unwrap()
}

#[test]
fn compiled_functions() {
    let flags = ["-O0", "-O1", "-O2", "-Os", "-O3"];
    let more: [&[&str]; 3] = [&[], &["-fcf-protection=full"], &["-mbranch-protection=standard"]];
    let is_for_host = |flags: &&[&str]| match flags.first() {
        Some(flag) => cfg!(target_arch = "x86_64") == flag.starts_with("-fcf"),
        None => true,
    };
    for (level, more) in flags
        .iter()
        .flat_map(|level| more.iter().filter(|flags| is_for_host(flags)).map(move |more| (level, more)))
    {
        let flags = [&[*level], *more].concat();
        let whole = library("cc", SOURCE, &flags);
        let returning = library("cc", SOURCE, &[&flags[..], &["-fno-optimize-sibling-calls"]].concat());
        for (file, may_jump) in [(&whole, true), (&returning, false)] {
            let image = Image::parse(file).unwrap();
            let bounds = FunctionBounds::of(&image);
            let shape = |name: &str| shape(&image, &bounds, named(&image, name).address).unwrap();
            for name in RETURNING {
                let symbol = named(&image, name);
                let shape = shape(name);
                assert_eq!(shape.tail_jumps, TailJumps::None, "{name} {flags:?}");
                // A distant part has a name of its own.
                let cold = format!("{}.cold", symbol.name);
                let parts: Vec<_> = image
                    .symbols()
                    .filter(|part| part.name == symbol.name || part.name == cold)
                    .map(|part| part.address..part.address + part.size)
                    .collect();
                assert!(!shape.returns.is_empty(), "{name} {flags:?}");
                for at in &shape.returns {
                    assert!(parts.iter().any(|part| part.contains(at)), "{name} {at:x} {parts:x?}");
                }
                let point = shape.entry;
                assert!((symbol.address..symbol.address + 64).contains(&point.address));
                assert_eq!(entry_point(&image, &bounds, symbol.address), Ok(point));
            }
            for name in ["tail", "pointer"] {
                let shape = shape(name);
                match shape.tail_jumps {
                    TailJumps::None => {
                        assert!(!shape.returns.is_empty(), "{name} {flags:?}");
                        assert!(!may_jump || *level != "-O2", "{name} {flags:?}");
                    }
                    TailJumps::Known(jumps) => {
                        assert!(may_jump, "{name} {flags:?}");
                        assert_eq!(jumps[0].target.is_some(), name == "tail", "{flags:?}");
                    }
                    TailJumps::Unclear(jump) => panic!("{name} {flags:?}: {jump}"),
                }
            }
        }
    }
}

#[test]
fn reasons() {
    let mut writer = Writer::new(Machine::X86_64, Pointers::Relocated);
    let long = writer.function(&vec![0x90; (LONGEST + 16) as usize]);
    writer.export("long", long, LONGEST + 1);
    let short = writer.function(&[0xc3]);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let bounds = FunctionBounds::of(&image);
    assert_eq!(shape(&image, &bounds, long), Err(ShapeError::Long { start: long, length: LONGEST + 1 }));
    assert_eq!(shape(&image, &bounds, short), Err(BoundsError::Unknown(short).into()));
    // Its begin can be probed all the same.
    let point = |address, is_emulated| Ok(EntryPoint { address, sp_offset: 0, is_emulated });
    assert_eq!(entry_point(&image, &bounds, short), point(short, false));
    assert_eq!(entry_point(&image, &bounds, long), point(long, true));
    assert_eq!(entry_point(&image, &bounds, 0), Err(BoundsError::Unknown(0).into()));
}
