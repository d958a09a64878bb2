//! Tokens: who waits for them, and when they are replaced.

use super::*;
use crate::clock::{Clock as _, ManualClock};

const UP: &str = "up";

/// One owner's token, on a clock that a test moves.
struct World {
    tokens: Tokens,
    clock: ManualClock,
    owner: Owner,
    auth: Auth,
}

impl World {
    fn new() -> World {
        let owner = Owner { upstream: UP.to_owned(), credential: None };
        let auth = Auth::Command(vec!["x".to_owned()]);
        let clock = ManualClock::new(Timestamp::from_secs(1_000));
        World { tokens: Tokens::default(), clock, owner, auth }
    }

    fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    fn give(&self) -> Option<Given> {
        self.tokens.give(&self.owner, &self.auth, self.now(), self.now())
    }

    fn starts(&self) -> usize {
        self.tokens.start(UP, self.now()).len()
    }

    fn take(&self, fetched: Result<Fetched, Failure>) -> Need {
        let now = Now::same(self.now());
        self.tokens.take(&self.owner, self.now(), now, fetched, 0.0).unwrap()
    }

    /// A token that lasts for so long comes.
    fn comes(&self, value: &str, lasts: u64) -> Need {
        let lasts = Some(Duration::from_millis(lasts)).filter(|lasts| !lasts.is_zero());
        self.take(Ok(Fetched { value: value.to_owned(), lasts, others: Vec::new() }))
    }

    fn fails(&self, failure: Failure) -> Trouble {
        match self.take(Err(failure)) {
            Need::Trouble { trouble, .. } => trouble,
            need => panic!("{need:?}"),
        }
    }
}

fn passing(retry_at: Option<Timestamp>) -> Failure {
    Failure::Passing { detail: "503".to_owned(), retry_at }
}

#[test]
fn nothing_is_fetched_before_a_call_needs_it_and_then_once() {
    let w = World::new();
    assert_eq!(w.starts(), 0);
    assert!(w.give().is_none() && w.give().is_none());
    assert_eq!((w.starts(), w.starts()), (1, 0), "one at a time");
    assert!(w.tokens.awaits(UP) && !w.tokens.awaits("other"));
    assert_eq!(w.comes("a", 10_000), Need::None { was_in_trouble: false });
    assert_eq!(&*w.give().unwrap().value, "a");
    assert!(!w.tokens.awaits(UP));
    assert_eq!(w.starts(), 0);
}

#[test]
fn the_next_is_fetched_while_the_last_is_still_used() {
    let w = World::new();
    w.give();
    w.starts();
    w.comes("a", 10_000);
    w.pass(8_999);
    assert!(w.give().is_some());
    assert_eq!(w.starts(), 0);
    w.pass(1);
    assert_eq!(w.starts(), 0, "nobody used it");
    assert_eq!(&*w.give().unwrap().value, "a");
    assert_eq!((w.starts(), w.starts()), (1, 0));
    assert!(!w.tokens.awaits(UP), "the old one is there");
    w.comes("b", 10_000);
    assert_eq!(&*w.give().unwrap().value, "b");
}

#[test]
fn a_call_whose_slot_comes_after_the_end_finds_none() {
    let w = World::new();
    w.give();
    w.starts();
    w.comes("a", 10_000);
    let slot = w.now() + Duration::from_millis(10_000);
    assert!(w.tokens.give(&w.owner, &w.auth, w.now(), slot).is_none());
    assert_eq!(w.starts(), 1);
}

#[test]
fn a_failure_is_tried_again_after_growing_pauses() {
    let w = World::new();
    w.give();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        assert_eq!(w.starts(), 1);
        let trouble = w.fails(passing(None));
        let until = trouble.until.unwrap();
        assert_eq!(w.tokens.retry_at(UP), Some(until));
        assert_eq!(w.tokens.trouble(&w.owner, w.now()), Some(trouble));
        pauses.push(until.since(w.now()).as_secs());
        assert_eq!(w.starts(), 0, "not before");
        w.clock.advance(until.since(w.now()));
        assert_eq!(w.tokens.trouble(&w.owner, w.now()), None);
    }
    assert_eq!(pauses, [1, 2, 4, 8]);
    w.starts();
    assert_eq!(w.comes("a", 0), Need::None { was_in_trouble: true });
    assert_eq!(w.tokens.retry_at(UP), None);
}

#[test]
fn what_the_server_asks_for_is_waited_for() {
    let w = World::new();
    w.give();
    w.starts();
    let trouble = w.fails(passing(Some(w.now() + Duration::from_secs(30))));
    assert_eq!(trouble.until, Some(w.now() + Duration::from_secs(30)));
    assert_eq!(trouble.detail, "503; next try in 30 s");
}

#[test]
fn what_a_person_must_mend_is_tried_again_seldom() {
    let w = World::new();
    w.give();
    w.starts();
    let trouble = w.fails(Failure::Lasting("revoked".to_owned()));
    assert_eq!((trouble.until, trouble.detail.as_str()), (None, "revoked"));
    w.pass(14_999);
    assert_eq!(w.starts(), 0);
    w.pass(1);
    assert_eq!(w.starts(), 1);
}

#[test]
fn a_refused_token_is_replaced_once_however_many_calls_carried_it() {
    let w = World::new();
    w.give();
    w.starts();
    w.comes("a", 0);
    let calls: Vec<Given> = (0..8).map(|_| w.give().unwrap()).collect();
    for call in &calls {
        assert_eq!(w.tokens.refused(call), Standing::Replaced);
    }
    assert_eq!((w.starts(), w.starts()), (1, 0));
    w.comes("b", 0);
    // A late one says nothing of the new token.
    assert_eq!(w.tokens.refused(&calls[0]), Standing::Replaced);
    assert!(w.give().is_some());
    assert_eq!(w.starts(), 0);
}

#[test]
fn a_second_refusal_in_a_row_is_not_the_tokens_age() {
    let w = World::new();
    w.give();
    w.starts();
    w.comes("a", 0);
    assert_eq!(w.tokens.refused(&w.give().unwrap()), Standing::Replaced);
    w.starts();
    w.comes("b", 0);
    let others = [w.give().unwrap(), w.give().unwrap()];
    assert_eq!(w.tokens.refused(&w.give().unwrap()), Standing::Fresh);
    others.iter().for_each(|other| assert_eq!(w.tokens.refused(other), Standing::Fresh));
    assert_eq!(w.starts(), 0, "nobody needs another one now");
    w.give();
    w.starts();
    w.comes("c", 0);
    w.tokens.proved(&w.give().unwrap());
    assert_eq!(w.tokens.refused(&w.give().unwrap()), Standing::Replaced, "it had worked");
}

#[test]
fn another_way_to_get_tokens_begins_anew() {
    let mut w = World::new();
    w.give();
    w.starts();
    w.fails(Failure::Lasting("no such program".to_owned()));
    let text = "[auth]\nkind = \"command\"\ncommand = [\"y\"]\n";
    let upstream = crate::quota::declare::parse(UP, "up.toml", text).unwrap();
    assert!(w.tokens.change(&upstream) && !w.tokens.change(&upstream));
    assert_eq!((w.starts(), w.tokens.retry_at(UP)), (0, None));
    w.auth = upstream.auth.unwrap();
    assert!(w.give().is_none());
    assert_eq!(w.starts(), 1);
}
