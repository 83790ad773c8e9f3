use super::*;
use crate::model::causality::hand_overs::HandOver;

/// Handle, times, threads and iteration of a hand-over.
type Taken = (Handle, [Option<u64>; 2], [Option<u32>; 2], Option<u64>);

fn taken(questions: Questions) -> Vec<Taken> {
    // Work may be taken by a receive or by a section, and by several; of what nobody gave there is the receipt.
    let (causality, _) = replay(
        questions,
        &acts(
            "0 1 <frame#iter=3
             5 1 nn.send#h=1
             6 1 nn.send#h=g.2
             9 1 >
             10 1 nn.send#h=4
             20 9 <convert#h=1
             25 9 >
             27 8 <loop
             30 8 nn.recv#h=1
             31 8 nn.recv#h=g.2
             32 8 nn.recv#h=4
             33 8 nn.recv#h=5
             40 8 >",
        ),
    );
    let Some(hand_overs) = &causality.hand_overs else { return Vec::new() };
    let all = hand_overs.results().list.into_iter().map(|hand_over| {
        let HandOver { handle, dispatch, receive, iteration, .. } = hand_over;
        let iteration = iteration.map(|id| id.iter);
        let moments = [dispatch, receive];
        let (times, threads) =
            (moments.map(|at| at.map(|at| at.time)), moments.map(|at| at.map(|at| at.tid)));
        (handle.expect("it has one"), times, threads, iteration)
    });
    all.collect()
}

#[test]
fn every_take_is_listed_where_that_is_asked_for() {
    let questions = Questions { hand_overs: true, ..Questions::default() };
    let row = |handle, times: [u64; 2], threads: [u32; 2], iteration| {
        (handle, times.map(Some), threads.map(Some), iteration)
    };
    assert_eq!(
        taken(questions),
        [
            row(Handle::OfProcess(1), [5, 20], [1, 9], Some(3)),
            row(Handle::OfProcess(1), [5, 30], [1, 8], Some(3)),
            row(Handle::OfSystem(2), [6, 31], [1, 8], Some(3)),
            row(Handle::OfProcess(4), [10, 32], [1, 8], None),
            (Handle::OfProcess(5), [None, Some(33)], [None, Some(8)], None),
        ]
    );
    assert!(taken(Questions::default()).is_empty());
}
