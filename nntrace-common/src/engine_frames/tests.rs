use proptest::prelude::*;

use super::*;

/// Thread that enters and leaves functions as a program would, with the sections that its events make.
#[derive(Default)]
struct Followed {
    frames: EngineFrames,
    /// Open sections: the number of a probe.
    open: Vec<u32>,
    /// Sections that ended: number of a probe, and whether its return was seen.
    ended: Vec<(u32, bool)>,
}

impl Followed {
    fn close(&mut self, seen: bool) {
        let probe = self.open.pop().expect("a section is open");
        self.ended.push((probe, seen));
        self.frames.pop_closed(self.open.len() as u8);
    }

    fn unwind(&mut self, event: EngineEvent, probe: u32, sp: u64) {
        while self.frames.left(event, probe, sp).is_some() {
            self.close(false);
        }
    }

    fn enter(&mut self, probe: u32, sp: u64) {
        self.unwind(EngineEvent::Entry, probe, sp);
        self.open.push(probe);
        let depth = self.open.len() as u8;
        self.frames.push(EngineFrame { sp, probe, depth, ..EngineFrame::default() });
    }

    fn leave(&mut self, probe: u32, sp: u64) {
        self.unwind(EngineEvent::Return, probe, sp);
        if self.frames.returns(probe, sp) {
            self.close(true);
        }
    }
}

#[test]
fn a_function_that_returns_is_seen_and_one_that_is_left_ends_at_the_next_event() {
    let mut thread = Followed::default();
    thread.enter(1, 1000);
    thread.enter(2, 900);
    thread.leave(2, 900);
    thread.enter(2, 900);
    // An exception leaves both; the caller calls the first one again, at its place.
    thread.enter(1, 1000);
    thread.leave(1, 1000);
    assert_eq!(thread.ended, [(2, true), (2, false), (1, false), (1, true)]);
    assert!(thread.open.is_empty());
}

#[test]
fn functions_of_coroutines_that_never_go_on_leave_room_for_one_on_another_stack() {
    let mut thread = Followed::default();
    for number in 0..MAX_FRAMES as u64 {
        thread.enter(1, (100 - number) << 20);
    }
    assert!(!thread.frames.has_room() && thread.ended.is_empty());
    thread.enter(2, 1 << 20);
    thread.leave(2, 1 << 20);
    thread.enter(3, 1 << 20);
    thread.leave(3, 1 << 20);
    assert_eq!(thread.ended, [(1, false), (2, true), (3, true)]);
    // Without room, what is called by the innermost one is what is left out.
    thread.enter(2, 1 << 20);
    assert_eq!(thread.frames.left(EngineEvent::Entry, 3, (1 << 20) - 1000), None);
}

#[test]
fn a_return_of_a_function_that_was_not_entered_ends_nothing_around_it() {
    let mut thread = Followed::default();
    thread.enter(1, 1000);
    thread.leave(7, 800);
    assert_eq!(thread.open, [1]);
    // A return above it shows that it is left.
    thread.leave(7, 1100);
    assert_eq!(thread.ended, [(1, false)]);
}

#[test]
fn a_jump_to_another_function_ends_the_one_that_jumps() {
    let mut thread = Followed::default();
    thread.enter(1, 1000);
    thread.enter(2, 1000);
    thread.leave(2, 1000);
    assert_eq!(thread.ended, [(1, false), (2, true)]);
}

#[test]
fn a_function_that_is_left_by_a_jump_is_over_once_its_caller_calls_another() {
    let mut frames = EngineFrames::default();
    let frame = EngineFrame { sp: 1000, returns_to: 7, probe: 1, ends_unseen: 1, ..EngineFrame::default() };
    frames.push(frame);
    // Deeper on the stack: the address that it returns to, in memory, tells.
    assert_eq!(frames.left(EngineEvent::Entry, 2, 900), None);
    assert_eq!(frames.perhaps_left(900), Some(frame));
    assert_eq!(frames.perhaps_left(1000), None, "this shows by itself that it was left");
    let mut unknown = EngineFrames::default();
    unknown.push(EngineFrame { returns_to: 0, ..frame });
    assert_eq!(unknown.perhaps_left(900), None);
}

#[test]
fn what_may_have_ended_unseen_is_not_open_at_the_end() {
    let frame = |depth, ends_unseen| EngineFrame { depth, ends_unseen, ..EngineFrame::default() };
    let mut frames = EngineFrames::default();
    assert_eq!(frames.perhaps_ended(0), 0);
    frames.push(frame(1, 1));
    frames.push(frame(2, 0));
    assert_eq!(frames.perhaps_ended(2), 0, "it returns, and is in the other one");
    frames.push(frame(3, 1));
    frames.push(frame(4, 1));
    assert_eq!(frames.perhaps_ended(4), 2);
    assert_eq!(frames.perhaps_ended(5), 0, "there is the section of a mark in it");
}

#[test]
fn a_bracket_stays_open_beside_functions_of_its_caller_until_it_begins_again() {
    let mut frames = EngineFrames::default();
    frames.push(EngineFrame { sp: 10_000, probe: 1, depth: 1, is_bracket: 1, ..EngineFrame::default() });
    assert!(frames.has_bracket(1) && !frames.has_bracket(2));
    assert_eq!(frames.left(EngineEvent::Entry, 2, 10_000), None);
    assert_eq!(frames.left(EngineEvent::Return, 2, 10_500), None);
    assert!(frames.left(EngineEvent::Entry, 1, 10_000).is_some());
    assert!(frames.left(EngineEvent::Entry, 2, 20_000).is_some());
    assert!(!frames.returns(1, 10_000), "a bracket has no return");
}

#[test]
fn only_the_innermost_section_of_a_function_is_kept_from_marks() {
    let mut frames = EngineFrames::default();
    assert!(!frames.owns(0));
    frames.push(EngineFrame { sp: 100, probe: 1, depth: 3, ..EngineFrame::default() });
    assert!(frames.owns(3) && !frames.owns(4) && !frames.owns(2));
}

proptest! {
    /// Random programs: calls, returns, and jumps out of several functions at once.
    #[test]
    fn every_function_ends_once_and_in_order(steps in proptest::collection::vec((0_u8..8, 1_u32..4), 0..200)) {
        let mut thread = Followed::default();
        // What the program does: the functions that it is in, by number of their call, probe and stack pointer.
        let mut stack: Vec<(u32, u64)> = Vec::new();
        let (mut called, mut returned) = (0, 0);
        for (choice, probe) in steps {
            match choice {
                0..=3 if stack.len() < MAX_FRAMES => {
                    let sp = stack.last().map_or(1 << 20, |&(_, sp)| sp - 64);
                    stack.push((probe, sp));
                    thread.enter(probe, sp);
                    called += 1;
                }
                4..=6 => if let Some((probe, sp)) = stack.pop() {
                    thread.leave(probe, sp);
                    returned += 1;
                },
                // An exception leaves some of them; nobody sees it.
                _ => stack.truncate(stack.len().saturating_sub(probe as usize)),
            }
            // What is open is what the program is in, and perhaps functions below them that were left.
            let open: Vec<u32> = stack.iter().map(|&(probe, _)| probe).collect();
            prop_assert!(thread.open.starts_with(&open), "{:?} {:?}", thread.open, open);
        }
        let seen = thread.ended.iter().filter(|(_, seen)| *seen).count();
        prop_assert_eq!(seen, returned);
        prop_assert_eq!(thread.ended.len() + thread.open.len(), called);
    }
}

#[test]
fn an_execution_is_started_by_the_function_that_was_told_so_and_no_other() {
    let mut frames = EngineFrames::default();
    let frame = |sp, depth| EngineFrame { sp, probe: 1, depth, ..EngineFrame::default() };
    frames.push(frame(100, 1));
    frames.set_object(7, 20);
    assert_eq!(frames.object(), (7, 20));
    frames.push(frame(50, 2));
    assert_eq!(frames.object(), (0, 0), "a function in it starts nothing");
    frames.pop_closed(1);
    assert_eq!(frames.object(), (7, 20));
    frames.pop_closed(0);
    frames.push(frame(100, 1));
    assert_eq!(frames.object(), (0, 0), "the next call at its place starts nothing");
}
