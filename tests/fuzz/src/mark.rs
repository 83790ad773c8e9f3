//! Checks that the functions of the grammar of marks agree with each other.

use nntrace_common::{
    hidl_calls::{self, Role},
    mark::{self, BUFFER_BYTES, Captured, Kind, MARK_BYTES},
    track::TrackMark,
};

/// Checks one input.
///
/// # Panics
/// When two of its functions contradict each other, or when a name is not part of the payload.
pub fn check(data: &[u8]) {
    track(data);
    let captured = &data[..data.len().min(MARK_BYTES - 1)];
    let mut buffer = [0; BUFFER_BYTES];
    buffer[..captured.len()].copy_from_slice(captured);
    let buffer = Captured::of(&buffer);
    assert_eq!(mark::kind(buffer), mark::kind(captured));
    let begin = mark::begin(captured);
    assert_eq!(mark::begin(buffer), begin);
    if mark::kind(buffer) == Some(Kind::Begin) {
        assert_eq!(mark::hashed_name(buffer, begin.name_at), mark::hashed_name(captured, begin.name_at));
    }

    let kind = mark::kind(data);
    if let Some(pid) = mark::pid(data) {
        let digits = data[2..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        assert_eq!(std::str::from_utf8(&data[2..2 + digits]).map(str::parse), Ok(Ok(pid)));
    }
    if kind == Some(Kind::Begin) {
        begins(data);
    }
}

fn begins(data: &[u8]) {
    let begin = mark::begin(data);
    let name = mark::name(data, begin.name_at);
    super::lies_in(name, data);
    assert!(name.len() <= MARK_BYTES && !name.iter().any(|byte| b"\0\n#".contains(byte)));
    assert_eq!(data.get(usize::from(begin.name_at)..).map(|rest| rest.starts_with(name)), Some(true));
    let hash = mark::name_hash(data, begin.name_at);
    assert_eq!(hash, mark::name_hash(name, 0), "a hash depends on the name alone");
    let other = [b"B|77|[SW][NN_LR_PE]", name, b"#of=another"].concat();
    let other_begin = mark::begin(other.as_slice());
    assert_eq!(mark::name(&other, other_begin.name_at), name);
    assert_eq!(mark::name_hash(other.as_slice(), other_begin.name_at), hash);
    if begin.label.is_tagged() {
        let tag = begin.label.tag().expect("it is tagged");
        assert_eq!(nntrace_common::layer::Tag::from_index(tag.index()), Some(tag));
    }

    let is_call = hidl_calls::is_interface_call(name);
    assert_eq!(mark::may_be_interface_call(data, begin.name_at), is_call);
    let (meaning, role) = (hidl_calls::meaning(name), Role::of(name));
    let is_callback = hidl_calls::method(name).is_some_and(|(method, _)| hidl_calls::is_callback(method));
    assert_eq!(meaning.report_begin != 0, role == Role::DriverStart || is_callback);
    assert!(is_callback || role != Role::DriverDone);
    assert!(is_call || meaning.driver == 0);
}

fn track(data: &[u8]) {
    let Some(mark) = TrackMark::read(data) else { return };
    // The process id is left out.
    let written = match mark {
        TrackMark::Counter { name, value } => {
            // With a further field, as the name may end like a value.
            [b"C|1|", name, format!("|{value}|0").as_bytes()].concat()
        }
        TrackMark::SliceBegin { track: b"", name, cookie } => [b"S|1|", name, b"|", cookie].concat(),
        TrackMark::SliceBegin { track, name, cookie } => [b"G|1|", track, b"|", name, b"|", cookie].concat(),
        TrackMark::SliceEnd { track: b"", name, cookie } => [b"F|1|", name, b"|", cookie].concat(),
        TrackMark::SliceEnd { track, cookie, .. } => [b"H|1|", track, b"|", cookie].concat(),
        TrackMark::Instant { track: b"", name } => [b"I|1|", name].concat(),
        TrackMark::Instant { track, name } => [b"N|1|", track, b"|", name].concat(),
    };
    assert_eq!(TrackMark::read(&written), Some(mark), "{}", written.escape_ascii());
    let (track, name, cookie) = match mark {
        TrackMark::Counter { name, .. } => (&data[..0], name, &data[..0]),
        TrackMark::SliceBegin { track, name, cookie } | TrackMark::SliceEnd { track, name, cookie } => {
            (track, name, cookie)
        }
        TrackMark::Instant { track, name } => (track, name, &data[..0]),
    };
    for part in [track, name, cookie].into_iter().filter(|part| !part.is_empty()) {
        super::lies_in(part, data);
    }
}
