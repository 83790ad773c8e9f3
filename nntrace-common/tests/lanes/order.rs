//! Marks of a thread while its lanes are read.

use std::{
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::Duration,
};

use nntrace_common::mark;

use crate::{
    alone,
    collector::Lane,
    hooks::{Call, timed_calls},
    offered,
};

/// Sections are written in fours.
const ROUNDS: u32 = 50_000;

/// Accepts lanes and reads them until there will be no more; returns the records with their times.
fn read_all(offers: &Receiver<Lane>) -> Vec<(u64, String)> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut records = Vec::new();
    loop {
        let offer = offers.try_recv();
        for lane in &mut lanes {
            records.extend(lane.read_timed());
        }
        match offer {
            // An offer that is not accepted for 10 ms is repeated, so that one lane may come twice.
            Ok(lane) if lanes.iter().any(|known| known.key() == lane.key()) => {}
            Ok(lane) => {
                lane.lease(u64::MAX);
                lanes.push(lane);
            }
            // Late enough for rings to be full now and then.
            Err(TryRecvError::Empty) => thread::sleep(Duration::from_micros(300)),
            Err(TryRecvError::Disconnected) => return records,
        }
    }
}

fn round(number: u32) {
    let _execution = mark!(LR, PE, "execute", iter = number);
    let layout = mark!(LC, PTR, "layout");
    let _conv = mark!(switch layout; LC, PCO, "conv2d");
    let _late = mark!(subtract; LR, PC, "late");
}

#[test]
fn lanes_and_probes_are_one_sequence_by_time() {
    alone(|| {
        let (offer, offers) = channel();
        let reader = thread::spawn(move || read_all(&offers));
        offer.send(offered()).unwrap();
        let mut marks = Vec::new();
        for number in 0..ROUNDS {
            round(number);
            let mut offered = None;
            for (time, call) in timed_calls() {
                match call {
                    Call::Offer(-1, _) => {}
                    // In place of the one before, if that was not accepted yet.
                    Call::Offer(file, key) => offered = Some((file, key)),
                    Call::Mark(text) => marks.push((time, text)),
                }
            }
            if let Some((file, key)) = offered {
                offer.send(Lane::open(file, key)).unwrap();
            }
        }
        drop(offer);
        let by_probe = marks.len();
        for (time, record) in reader.join().unwrap() {
            if let Some(site) = record.strip_prefix("begin ") {
                marks.push((time, format!("B|{site}")));
            } else if !record.starts_with("define ") {
                marks.push((time, if record == "end" { "E".to_owned() } else { record }));
            }
        }
        marks.sort_by_key(|(time, _)| *time);
        assert_eq!(marks.len(), 8 * ROUNDS as usize);
        assert!(by_probe > 0 && by_probe < marks.len() / 2, "{by_probe} by the probe");
        for (number, of_round) in (0..).zip(marks.chunks(8)) {
            let texts: Vec<&str> = of_round.iter().map(|(_, text)| text.as_str()).collect();
            let first = format!("B|[NN_LR_PE]execute#iter={number}");
            let begins = [&first, "B|[NN_LC_PTR]layout", "B|[SW][NN_LC_PCO]conv2d", "B|[SUB][NN_LR_PC]late"];
            assert_eq!(texts, [begins, ["E"; 4]].concat());
        }
    });
}
