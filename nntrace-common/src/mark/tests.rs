//! The grammar, mark by mark.

use super::*;

fn tagged(payload: &str) -> (Prefix, String, String) {
    let bytes = payload.as_bytes();
    assert_eq!(kind(bytes), Some(Kind::Begin), "{payload}");
    let begin = begin(bytes);
    let Some(tag) = begin.label.tag() else { panic!("{payload}: {:?}", begin.label) };
    (begin.prefix, tag.to_string(), String::from_utf8_lossy(name(bytes, begin.name_at)).into_owned())
}

#[test]
fn a_tag_is_read_after_an_optional_prefix() {
    assert_eq!(tagged("B|12|[NN_LR_PE]run"), (Prefix::None, "LR_PE".into(), "run".into()));
    assert_eq!(tagged("B|12|[SW][NN_LC_PCO]conv"), (Prefix::Switch, "LC_PCO".into(), "conv".into()));
    assert_eq!(tagged("B|12|[SUB][NN_LR_PC]x"), (Prefix::Subtract, "LR_PC".into(), "x".into()));
    assert_eq!(tagged("B|4194304|[NN_LA_PBM]b\n"), (Prefix::None, "LA_PBM".into(), "b".into()));
}

#[test]
fn a_section_without_kind_and_process_says_the_same() {
    for section in
        ["[NN_LR_PE]run", "[SW][NN_LC_PCO]conv#img=1", "[SUB][NN_LR_PC]", "vec[3]x", "", "[NN_LX_PE]x"]
    {
        let (bare, full) = (section.as_bytes(), format!("B|7|{section}"));
        let (of_bare, of_full) = (super::section(bare, 0), begin(full.as_bytes()));
        assert_eq!((of_bare.prefix, of_bare.label), (of_full.prefix, of_full.label), "{section}");
        assert_eq!(name(bare, of_bare.name_at), name(full.as_bytes(), of_full.name_at), "{section}");
    }
}

#[test]
fn an_empty_name_is_legal_and_attributes_are_no_part_of_a_name() {
    assert_eq!(tagged("B|1|[NN_LR_PP]").2, "");
    assert_eq!(tagged("B|1|[NN_LR_PP]f|g#iter=4#img=a.jpg").2, "f|g");
    let (long, short) = (b"B|1|[NN_LR_PP]f#iter=4".as_slice(), b"B|77|[NN_LR_PP]f".as_slice());
    assert_eq!(name_hash(long, begin(long).name_at), name_hash(short, begin(short).name_at));
}

#[test]
fn only_a_tag_at_the_start_counts() {
    for foreign in ["B|1|vec[3]x", "B|1|draw [NN_LR_PE]", "B|1|", "B|1", "B|", "B|1|[SW]x", "B|a|[NN_LR_PE]x"]
    {
        assert_eq!(begin(foreign.as_bytes()).label, Label::FOREIGN, "{foreign}");
        assert_eq!(begin(foreign.as_bytes()).prefix, Prefix::None, "{foreign}");
    }
    for unknown in ["B|1|[NN_LX_PE]x", "B|1|[NN_LR_PQ]x", "B|1|[NN_LR_PE", "B|1|[NN_", "B|1|[NN_LR_PEX]x"] {
        assert_eq!(begin(unknown.as_bytes()).label, Label::UNKNOWN, "{unknown}");
    }
}

#[test]
fn every_tag_can_be_written_and_read() {
    for layer in Layer::ALL {
        for phase in Phase::ALL {
            let text = format!("B|1|[NN_{}_{}]x", layer.code(), phase.code());
            assert_eq!(begin(text.as_bytes()).label, Label::tagged(Tag::new(layer, phase)));
        }
    }
}

#[test]
fn application_phases_are_the_first_tags() {
    for index in 0..=u8::MAX {
        let label = Label(index);
        let expected = label.tag().is_some_and(|tag| {
            Tag::from_index(index).is_some()
                && tag.layer() == Layer::Application
                && tag.phase().is_application_phase()
        });
        assert_eq!(label.is_application_phase(), expected, "{index}");
    }
}

#[test]
fn ends_are_told_from_free_text() {
    for end in ["E", "E|", "E|12", "E|12|name", "E\n"] {
        assert_eq!(kind(end.as_bytes()), Some(Kind::End), "{end}");
    }
    for text in ["", "Error", "Begin", "hello", "X|1|2"] {
        assert_eq!(kind(text.as_bytes()), None, "{text}");
    }
    assert_eq!(kind(b"C|1|x|2".as_slice()), Some(Kind::Counter));
}

proptest::proptest! {
    #[test]
    fn the_captured_buffer_reads_like_a_slice(
        payload in proptest::collection::vec(proptest::num::u8::ANY, 0..MARK_BYTES),
        tagged in proptest::bool::ANY,
    ) {
        let mut payload = payload;
        if tagged {
            payload.splice(0..0, *b"B|7|[SW][NN_LC_PTR]");
            payload.truncate(MARK_BYTES - 1);
        }
        let mut buffer = [0; BUFFER_BYTES];
        buffer[..payload.len()].copy_from_slice(&payload);
        let captured = Captured::of(&buffer);
        let slice = payload.as_slice();
        assert_eq!(kind(captured), kind(slice));
        assert_eq!(begin(captured), begin(slice));
        for at in 0..MARK_BYTES + 9 {
            assert_eq!((captured.byte(at), captured.word(at)), (slice.byte(at), slice.word(at)), "{at}");
        }
        if kind(slice) != Some(Kind::Begin) {
            return Ok(());
        }
        let at = begin(slice).name_at;
        assert_eq!(hashed_name(captured, at), hashed_name(slice, at));
        let after = slice.get(usize::from(at) + name(slice, at).len());
        assert_eq!(hashed_name(slice, at).has_attributes, after == Some(&b'#'));
        assert_eq!(name_hash(captured, at), name_hash(name(slice, at), 0));
    }
}
