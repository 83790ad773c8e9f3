//! Files that are cut, packed, damaged, or no traces at all.

use flate2::{Compression, write::ZlibEncoder};
use proptest::prelude::*;

use super::*;
use crate::replay::perfetto::is_perfetto;

fn some_packets() -> Vec<TracePacket> {
    let section = |us| vec![print(us, 20, "B|20|[NN_LR_PE]f"), print(us + 1, 20, "E|20")];
    (0..20).map(|number| bundle(number % 2, section(u64::from(number) * 10))).collect()
}

fn count(bytes: &[u8]) -> (u64, Vec<String>) {
    let snapshot = snapshot(bytes);
    (snapshot.phases[0].count, snapshot.notes)
}

#[test]
fn of_a_file_that_is_cut_the_rest_is_read() {
    let whole = file(&some_packets());
    let (all, _) = count(&whole);
    assert_eq!(all, 20);
    let (some, notes) = count(&whole[..whole.len() - 3]);
    assert_eq!(some, 19);
    let end = format!("FILE: read only in part: at byte {}: the end of the file", whole.len() - 3);
    assert!(notes.iter().any(|note| note.starts_with(&end)), "{notes:?}");
}

#[test]
fn a_packet_that_is_damaged_is_left_out() {
    let packets = some_packets();
    let mut bytes = file(&packets[..5]);
    let place = bytes.len();
    // A message that is longer than the packet.
    bytes.extend([PACKET_KEY, 2, 0x0a, 0x7f]);
    bytes.extend(file(&packets[5..]));
    let snapshot = snapshot(&bytes);
    assert_eq!((snapshot.phases[0].count, snapshot.loss.records_dropped), (20, 1));
    let note = format!("FILE: read only in part: the packet at byte {place}: ");
    assert!(snapshot.notes.iter().any(|told| told.starts_with(&note)), "{:?}", snapshot.notes);

    // What follows a field that a later schema may have is read; what follows no field is not.
    bytes.truncate(place);
    bytes.extend([0x12, 1, 0]);
    bytes.extend(file(&packets[5..10]));
    bytes.extend([0x07, 1, 0]);
    bytes.extend(file(&packets[10..]));
    let (some, notes) = count(&bytes);
    assert_eq!(some, 10);
    assert!(notes.iter().any(|note| note.contains("0x7, where a packet was expected")), "{notes:?}");
}

const PACKET_KEY: u8 = crate::perfetto_schema::PACKET;

#[test]
fn packed_packets_are_read_and_bombs_are_not() {
    let packets = some_packets();
    let packed = |bytes: &[u8]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        let packed = encoder.finish().unwrap();
        TracePacket { compressed_packets: Some(packed.into()), ..TracePacket::default() }
    };
    let inner = packed(&file(&packets[..15]));
    let mixed = [std::slice::from_ref(&inner), &packets[15..]].concat();
    assert_eq!(count(&file(&mixed)), count(&file(&packets)));
    let bomb = packed(&vec![0; 17 << 20]);
    let nested = packed(&file(&[inner]));
    let bytes = file(&[&packets[..], &[bomb, nested]].concat());
    let (all, notes) = count(&bytes);
    assert_eq!(all, 20);
    for what in ["more than 16777216 bytes", "packed packets in packed packets"] {
        assert!(notes.iter().any(|note| note.contains(what)), "{what}: {notes:?}");
    }
}

#[test]
fn columns_of_a_bundle_and_packets_are_bounded() {
    let sched = CompactSched { switch_timestamp: vec![1; 300_000], ..CompactSched::default() };
    let mut long = bundle(0, Vec::new());
    long.ftrace_events.as_mut().unwrap().compact_sched = Some(sched);
    let snapshot = snapshot(&file(&[long]));
    assert_eq!(snapshot.loss.records_dropped, 300_000 - (1 << 18));

    let mut huge = file(&some_packets()[..5]);
    huge.extend(file(&[TracePacket {
        compressed_packets: Some(vec![0; 5 << 20].into()),
        ..TracePacket::default()
    }]));
    let (some, notes) = count(&[huge, file(&some_packets()[5..])].concat());
    assert_eq!(some, 20);
    assert!(notes.iter().any(|note| note.contains("where 4194304 at most were expected")), "{notes:?}");
}

#[test]
fn texts_are_no_traces() {
    let heads: [&[u8]; 9] = [
        b"",
        b"\n",
        b"\n# tracer: nop\n#\n",
        b"\n\n\n# tracer: nop\n#\n#  entries-in-buffer/entries-written: 1/1   #P:4\n",
        b"\n          <idle>-0     [000] d..1.     1.000000: cpu_idle: state=1 cpu_id=0\n",
        b"\n \n",
        b"\x17\x08\x44tracing6\0",
        b"\n\x7f<...>-1 [000] 1.0: x",
        b"{\"traceEvents\":[]}",
    ];
    for head in heads {
        assert!(!is_perfetto(head), "{}", head.escape_ascii());
    }
    let whole = file(&some_packets());
    for end in [100, 500, whole.len()] {
        assert!(is_perfetto(&whole[..end]), "{end}");
    }
    // The first packet may be longer than the head.
    let long = file(&[bundle(0, (0..500).map(|us| print(us, 20, "E|20")).collect())]);
    assert!(is_perfetto(&long[..1024]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_damage_is_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = file(&some_packets());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let options = Options { files: vec![file.path().to_owned()], ..Options::default() };
        if let Ok(replayed) = replay(&options) {
            let _ = Snapshot::of(&replayed.findings());
        }
    }
}
