use super::*;

/// Handle, times, threads and iteration of a hand-over.
type Taken = (Handle, [u64; 2], [u32; 2], Option<u64>);

fn taken(questions: Questions) -> Vec<Taken> {
    // Work may be taken by a receive or by a section, and by several; what nobody gave is in no list.
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
    let all = causality.hand_over_list.all().iter().map(|hand_over| {
        let HandOver { handle, sent, received, iteration } = *hand_over;
        let iteration = iteration.map(|number| causality.iterations.all()[number as usize].key.2);
        (handle, [sent.time, received.time], [sent.tid, received.tid], iteration)
    });
    all.collect()
}

#[test]
fn every_take_is_listed_where_that_is_asked_for() {
    let questions = Questions { hand_overs: true, ..Questions::default() };
    assert_eq!(
        taken(questions),
        [
            (Handle::OfProcess(1), [5, 20], [1, 9], Some(3)),
            (Handle::OfProcess(1), [5, 30], [1, 8], Some(3)),
            (Handle::OfSystem(2), [6, 31], [1, 8], Some(3)),
            (Handle::OfProcess(4), [10, 32], [1, 8], None),
        ]
    );
    assert!(taken(Questions::default()).is_empty());
}

#[test]
fn a_list_that_is_full_counts() {
    let moment = Moment { pid: 1, tid: 2, time: 3 };
    let hand_over =
        HandOver { handle: Handle::OfProcess(1), sent: moment, received: moment, iteration: None };
    let limits = Limits { sections: 2, ..Limits::default() };
    for (wanted, kept, left_out) in [(true, 2, 3), (false, 0, 0)] {
        let mut list = HandOverList::new(wanted, &limits);
        (0..5).for_each(|_| list.add(hand_over));
        assert_eq!((list.all().len(), list.left_out), (kept, left_out));
    }
}
