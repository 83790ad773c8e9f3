use super::*;
use crate::live::engines::test_files::{Pointers, Writer, library};

const SOURCE: &str = r"
    int seen;
    int leaf(int n) { return n + 1; }
    __attribute__((noinline)) int calls(int n) { char text[100]; text[n] = 1; seen = text[0]; return leaf(n) + seen; }
    int many(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += calls(i) * calls(sum); return sum; }
";

#[test]
fn call_frames_and_symbols_agree() {
    let whole = library("c", SOURCE, &["-O1", "-funwind-tables"]);
    let stripped = library("c", SOURCE, &["-O1", "-funwind-tables", "-s"]);
    let frameless = library("c", SOURCE, &["-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
    let whole = Image::parse(&whole).unwrap();
    for (file, source) in [(&stripped, BoundsSource::Frames), (&frameless, BoundsSource::Symbol)] {
        let image = Image::parse(file).unwrap();
        let bounds = FunctionBounds::of(&image);
        for name in ["leaf", "calls", "many"] {
            let start = image.exported(name).unwrap().address;
            let length = whole.exported(name).unwrap().size;
            let function = bounds.at(start).unwrap();
            assert_eq!(function, Bounds { start, end: start + length, source }, "{name}");
            assert_eq!(bounds.around(start + length - 1), Ok(function));
            assert_eq!(bounds.at(start + 1), Err(BoundsError::Within { address: start + 1, start }));
            assert!(!function.contains(start + length) && function.contains(start));
        }
        let data = image.exported("seen").unwrap().address;
        assert_eq!(bounds.around(data), Err(BoundsError::Unknown(data)));
        assert_eq!(bounds.at(u64::MAX), Err(BoundsError::Unknown(u64::MAX)));
    }
}

#[test]
fn frames_are_empty_at_begin_and_end_only() {
    let file = library("c", SOURCE, &["-O1", "-fasynchronous-unwind-tables"]);
    let image = Image::parse(&file).unwrap();
    let bounds = FunctionBounds::of(&image);
    let frames = |name: &str| -> Vec<_> {
        let function = image.exported(name).unwrap();
        (function.address..function.address + function.size).map(|at| bounds.frame(at)).collect()
    };
    assert!(frames("leaf").iter().all(|&frame| frame == Some(Frame::Empty)));
    let calls = frames("calls");
    assert_eq!(calls.first(), Some(&Some(Frame::Empty)));
    assert!(calls.contains(&Some(Frame::Set)));
    assert_eq!(bounds.frame(0), None);
}

#[test]
fn symbols_are_taken_where_there_are_no_frames() {
    let mut writer = Writer::new(Machine::Arm64, Pointers::Relocated);
    let long = writer.function(&[0; 40]);
    let outside = writer.function(&[0; 8]);
    writer.export("long", long, 40);
    writer.export("same", long, 24);
    writer.export("unsized", outside, 0);
    writer.export("beyond", outside + 4, 100);
    let data = writer.word(0);
    writer.export("data", data, 8);
    let file = writer.file();
    let image = Image::parse(&file).unwrap();
    let bounds = FunctionBounds::of(&image);
    let found = Bounds { start: long, end: long + 40, source: BoundsSource::Symbol };
    assert_eq!((bounds.at(long), bounds.around(long + 39)), (Ok(found), Ok(found)));
    for address in [long + 40, outside, outside + 4, data] {
        assert_eq!(bounds.around(address), Err(BoundsError::Unknown(address)));
    }
    assert_eq!(bounds.frame(long), None);
}
