//! What people are told.

use std::time::Duration;

use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::reading::remaining::Left;
use paceline::store::views::Turn;
use paceline::store::{AttemptFilter, Settlement, Store};

use crate::world::{FREE, Make, World, columns, daily, limit, refusal, said, secs};

pub fn the_binding_limit_is_named_as_it_changes<S: Store>(make: Make<'_, S>) {
    let second = limit("second", "rate", "rate = \"3/s\"");
    let minute = limit("minute", "rolling", "amount = 100\nper = \"1m\"");
    let w = World::new(make, &format!("{second}{minute}{}", daily(150, "")));
    let jobs = w.add(300, &[]);
    let binds = |id| w.view(id).waiting.and_then(|wait| wait.limit);
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let claimed = w.claimed(64);
        for call in &claimed.calls {
            w.ok(call);
        }
        if let Some(limit) = binds(jobs[299])
            && seen.last() != Some(&limit)
        {
            seen.push(limit);
        }
        if seen.len() >= 4 {
            break;
        }
        let Some(next) = claimed.next_at else { continue };
        w.pass_to(next);
    }
    assert_eq!(seen, ["second", "minute", "second", "daily"]);
}

pub fn a_budget_tells_spent_amount_and_reset<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(5, ""));
    w.add(9, &[]);
    w.claim(64);
    let view = w.look();
    let daily = &view.limits[0];
    assert_eq!((daily.name.as_str(), daily.kind), ("daily", "budget"));
    assert_eq!((daily.spent, daily.amount, daily.remaining), (Some(5), 5, None));
    let reset = daily.resets_at.unwrap();
    assert_eq!(reset.to_rfc3339(), "2026-06-02T00:00:00Z");
    assert_eq!(daily.next_at, Some(reset + secs(2)));
    assert_eq!(view.partitions.len(), 1);
    assert_eq!(view.partitions[0].jobs, 4, "five run");
    let wait = &view.partitions[0].wait;
    assert_eq!((wait.turn, wait.limit.as_deref()), (Turn::Waiting, Some("daily")));
    assert_eq!(wait.until, Some(reset + secs(2)));
    assert_eq!(view.next_at, Some(reset + secs(2)));
}

pub fn each_turn_is_told_apart<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(1, "key = [\"site\"]"));
    let ready = w.add(1, &[("site", "ready")])[0];
    let mut later = w.job(&[("site", "later")]);
    later.not_before = Some(w.now() + secs(60));
    let later = w.add_one(later);
    let held = w.add(1, &[("site", "held")])[0];
    w.hold(&[("site", "held")]);
    let turn = |id| w.view(id).waiting.map(|wait| (wait.turn, wait.until, wait.reason));
    assert_eq!(turn(ready), None);
    let due = Some(w.store.now().wall + secs(60));
    assert_eq!(turn(later), Some((Turn::Scheduled, due, "not_before".to_owned())));
    assert_eq!(turn(held), Some((Turn::Held, None, "by_hand".to_owned())));
    let first = w.one();
    assert_eq!(turn(first.job.id), None, "it runs");
    w.say(&first, said(Reason::Transient));
    let waits = turn(first.job.id).unwrap();
    assert_eq!(waits.0, Turn::Waiting, "the limit binds for longer than its back-off");
}

pub fn a_block_is_told_with_the_servers_words<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, ""));
    let id = w.add(2, &[])[0];
    let call = w.one();
    let hint = w.store.now().wall + secs(60);
    w.say(&call, refusal(Reason::RateLimited, hint, "daily"));
    let wait = w.view(id).waiting.unwrap();
    assert_eq!((wait.limit.as_deref(), wait.until), (Some("daily"), Some(hint)));
    assert_eq!((wait.reason.as_str(), wait.detail.as_str()), ("rate_limited", "it said rate_limited"));
    let limit = &w.look().limits[0];
    assert_eq!(limit.blocked_until, Some(hint));
    assert_eq!(limit.reason.as_deref(), Some("rate_limited"));
}

pub fn the_log_is_filtered_and_ordered<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(3, &[]);
    for call in w.claim(3) {
        w.say(&call, said(Reason::Ok));
        w.pass(secs(10));
    }
    let log = |filter: AttemptFilter| w.wait(w.store.attempts(filter)).unwrap();
    let all = log(AttemptFilter::default());
    assert_eq!(all.iter().map(|attempt| attempt.job).collect::<Vec<_>>(), jobs);
    let latest = log(AttemptFilter { limit: Some(2), ..AttemptFilter::default() });
    assert_eq!(latest.iter().map(|attempt| attempt.job).collect::<Vec<_>>(), jobs[1..]);
    assert!(log(AttemptFilter { upstreams: vec!["down".to_owned()], ..AttemptFilter::default() }).is_empty());
    assert_eq!(log(AttemptFilter { url: Some(w.view(jobs[0]).url), ..AttemptFilter::default() }).len(), 1);
    let since = Some(w.store.now().wall);
    assert!(log(AttemptFilter { since, ..AttemptFilter::default() }).is_empty());
}

pub fn columns_and_instants_are_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, "key = [\"site\"]"));
    let mut job = w.job(&[("site", "a"), ("title", "A \"book\"")]);
    (job.priority, job.deadline_at) = (3, Some(w.now() + secs(60)));
    let id = w.add_one(job.clone());
    let view = w.view(id);
    assert_eq!((view.columns, view.partition), (job.columns, columns(&[("site", "a")])));
    assert_eq!((view.priority, view.load.as_str(), view.upstream.as_str()), (3, "load", "up"));
    assert_eq!(view.added_at, w.store.now().wall);
    assert_eq!(view.deadline_at, Some(w.store.now().wall + secs(60)));
    assert_eq!(view.state, JobState::Queued);
    assert_eq!(view.due_at.since(view.added_at), Duration::ZERO);
}

pub fn an_attempt_that_is_under_way_is_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    let view = w.view(id);
    let detail = view.detail.unwrap();
    assert_eq!((view.state, view.reason), (JobState::Running, None));
    let process = format!("process {}", std::process::id());
    assert!(detail.contains("attempt 1") && detail.contains(&process), "{detail}");
    w.ok(&call);
    assert!(!w.view(id).detail.unwrap_or_default().contains(&process));
}

/// The spans in which the day may begin, as answers show; `None`: they show nothing.
fn day_begins<S: Store>(w: &World<S>) -> Option<Vec<String>> {
    let mut seen = w.wait(w.store.resets(std::sync::Arc::clone(&w.upstream))).unwrap();
    let spans = seen.pop()?.allowed.spans().into_iter();
    Some(spans.map(|(from, to)| format!("{}-{}", from.format("%H:%M"), to.format("%H:%M"))).collect())
}

pub fn only_a_day_that_was_used_up_shows_when_it_begins<S: Store>(make: Make<'_, S>) {
    let unstated = limit("daily", "budget", "amount = 1000\nper = \"day\"\ntime_zone = \"unknown\"");
    let w = World::new(make, &unstated);
    w.add(9, &[]);
    // (Some of) the day's units were left for whoever asks for less; nothing was refused for its end.
    let refused = |left: Option<u64>| {
        let call = w.one();
        let told = left.map(|left| Left { limit: "daily".to_owned(), left, resets_at: None });
        let hint = w.store.now().wall + secs(60);
        let answer = w.answer(&call, refusal(Reason::QuotaExhausted, hint, "daily"));
        w.settle(Settlement { remaining: told.into_iter().collect(), ..answer });
        w.pass(secs(1800));
    };
    assert_eq!(w.store.now().wall.to_rfc3339(), "2026-06-01T12:30:00Z");
    refused(Some(10));
    w.ok(&w.one());
    assert_eq!(day_begins(&w), None, "no reset took place");
    // Used up at 13:00, and at 13:30 a few are there again, though fewer than are asked for.
    refused(None);
    refused(Some(10));
    assert_eq!(day_begins(&w).unwrap(), ["13:00-13:31"]);
}
