//! PURE: what next? One reading and the facts about its job lead to exactly one move.

use std::time::Duration;

use crate::clock::{Now, Timestamp};
use crate::quota::RetryPolicy;
use crate::reading::{Reading, Reason};
use crate::retry::{after_hint, backoff};

/// What is known about a call's job, its partition and the instance that a refusal concerns.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Both times.
    pub now: Now,
    /// How failures and refusals are waited for.
    pub policy: &'a RetryPolicy,
    /// Whether sending twice does no harm.
    pub repeatable: bool,
    /// Whether any of the call may have reached the upstream.
    pub left: bool,
    /// The jobs that the reading speaks of: all of a batch, where it tells none of them apart.
    pub jobs: usize,
    /// How many of them the upstream says could go, where it refused them for being too many.
    pub could_go: Option<usize>,
    /// Whether it is refused for another job of its batch, which ends with this call.
    pub dependent: bool,
    /// Whether it ends with this call: nobody sends it again.
    pub once: bool,
    /// Whether a process waits for what becomes of it.
    pub owned: bool,
    /// Whether the answer sent the call on to another address, and the job is to follow.
    pub redirected: bool,
    /// Worthless after this (store time).
    pub deadline_at: Option<Timestamp>,
    /// The job's failures before this call.
    pub failures: u32,
    /// Whether the job's last try met a refusal that only a person can lift.
    pub job_refused_hard: bool,
    /// Such refusals in a row of the partition, before this call.
    pub hard_refusals: u32,
    /// Whether the partition's last call but for refusals was answered: somebody got through once.
    pub answered: bool,
    /// What the refusal says of the token that the call carried, where it carried one.
    pub token: Option<Token>,
    /// Refusals in a row of the instance that this one concerns, before this call.
    pub refusals: u32,
    /// Since when this same reason stands at the instance (store time), where it may for a time only.
    pub reason_since: Option<Timestamp>,
    /// A number from 0 to 1 that jitter is made of.
    pub random: f64,
}

/// What a refusal says of a call's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// It may have expired before its time: another one takes its place.
    Replaced,
    /// It had just taken the place of one that was refused: another one would not help.
    Fresh,
}

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobNext {
    /// It was answered as wished.
    Done,
    /// It will not be.
    Failed,
    /// It may have been done and must not be sent twice.
    Unsure,
    /// It could have gone again at `could_go_at` (store time), which is past its deadline.
    Expired {
        /// The instant.
        could_go_at: Timestamp,
    },
    /// It is queued again.
    Again {
        /// Not before this (store time).
        due_at: Timestamp,
        /// Whether this counts towards `max_attempts`.
        failure: bool,
    },
}

/// The move that a reading leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// Of the job.
    pub job: JobNext,
    /// The reason, after `for_at_most` turned it into another.
    pub reason: Reason,
    /// The instance, or the partition, closes until then (store time).
    pub block: Option<Timestamp>,
    /// The partition stops until a person acts: why, for people.
    pub hold: Option<String>,
    /// Until when the upstream wants to be left alone, where that is so far off that it holds (store time).
    pub hold_until: Option<Timestamp>,
    /// Whether this was a refusal that only a person can lift.
    pub refused_hard: bool,
    /// A batch was refused for what is in it: its jobs go again, fewer at a time.
    pub split: bool,
    /// A batch was refused for asking for more than is left of a limit, which so counted none of it.
    pub uncounted: bool,
    /// Whether it says nothing new of the partition: a new token may be all that it takes, or it is the same
    /// job's second refusal.
    pub uncounted_hard: bool,
}

impl Next {
    fn of(job: JobNext, reason: Reason) -> Next {
        let (block, hold, hold_until) = (None, None, None);
        let (refused_hard, split, uncounted, uncounted_hard) = (false, false, false, false);
        Next {
            job,
            reason,
            block,
            hold,
            hold_until,
            refused_hard,
            split,
            uncounted,
            uncounted_hard,
        }
    }

    /// Whether the upstream's answer shows that nothing stands in the partition's way.
    pub fn is_open(&self) -> bool {
        self.block.is_none() && self.hold.is_none() && !self.refused_hard
    }
}

/// Refusals in a row that only a person can lift, at which a partition is held.
const HARD_REFUSALS: u32 = 2;

/// What follows from a reading.
pub fn next(reading: &Reading, facts: &Facts<'_>) -> Next {
    let next = of_any(reading, facts);
    match next.job {
        JobNext::Again { .. } | JobNext::Expired { .. } if facts.once => {
            Next { job: JobNext::Failed, ..next }
        }
        _ => next,
    }
}

/// What follows from it for a job that can be sent again.
fn of_any(reading: &Reading, facts: &Facts<'_>) -> Next {
    if facts.redirected || facts.dependent {
        return at_once(reading, facts);
    }
    if reading.reason.is_success() {
        return Next::of(JobNext::Done, reading.reason);
    }
    if facts.jobs > 1 && reading.reason.is_permanent() {
        return in_parts(reading, facts);
    }
    if facts.could_go.is_some_and(|jobs| jobs > 0 && jobs < facts.jobs) {
        // Not used up: what is left is less than was asked for, and the next claim asks for no more.
        let again = JobNext::Again { due_at: facts.now.store, failure: false };
        let next = Next { uncounted: true, ..Next::of(again, reading.reason) };
        return within_deadline(next, facts);
    }
    if let Some(then) = outlived(reading, facts) {
        if then.is_retryable() {
            return refused(&Reading { reason: then, becomes: None, ..reading.clone() }, facts);
        }
        let at_most = reading.becomes.map_or(Duration::ZERO, |(at_most, _)| at_most);
        let why = format!("{} did not pass within {}", reading.reason, told(at_most));
        let mut next = hold(then, facts, why);
        next.refused_hard = true;
        return next;
    }
    match (reading.retryable, reading.reason) {
        (true, Reason::Transient) => failure(reading, facts),
        (true, Reason::Overloaded) if reading.retry_at.is_none() && reading.wait.is_none() => {
            let mut next = failure(reading, facts);
            next.block =
                Some(facts.now.store + backoff(facts.policy, facts.refusals + 1, facts.random));
            within_deadline(next, facts)
        }
        (true, _) => refused(reading, facts),
        (false, Reason::AuthExpired) if facts.token.is_some() => refused_token(facts),
        (false, Reason::Transient) if facts.left && !facts.repeatable => {
            Next::of(JobNext::Unsure, reading.reason)
        }
        (false, reason) => for_good(reason, facts),
    }
}

/// In the job's own place, to the other address or without the job that failed: this one did not, and its
/// partition was not refused.
fn at_once(reading: &Reading, facts: &Facts<'_>) -> Next {
    let again = JobNext::Again { due_at: facts.now.store, failure: false };
    within_deadline(Next::of(again, reading.reason), facts)
}

/// A batch is refused as a whole. One job of it may be what is wrong, or that there are so many: none of
/// them fails for another's fault.
fn in_parts(reading: &Reading, facts: &Facts<'_>) -> Next {
    if reading.reason == Reason::Unknown && !facts.repeatable {
        return Next::of(JobNext::Failed, reading.reason);
    }
    let again = JobNext::Again { due_at: facts.now.store, failure: false };
    within_deadline(Next { split: true, ..Next::of(again, reading.reason) }, facts)
}

/// A declared time, for people.
fn told(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// The reason that this one becomes, where it has stood for longer than its rule allows.
fn outlived(reading: &Reading, facts: &Facts<'_>) -> Option<Reason> {
    let (at_most, then) = reading.becomes?;
    let stood = facts.now.store.since(facts.reason_since?);
    (stood >= at_most).then_some(then)
}

/// A fault of the upstream's, or no answer: the job backs off, and fails when its tries are used up.
fn failure(reading: &Reading, facts: &Facts<'_>) -> Next {
    let reason = reading.reason;
    if reason == Reason::Transient && facts.left && !facts.repeatable {
        return Next::of(JobNext::Unsure, reason);
    }
    let failures = facts.failures + 1;
    if failures >= facts.policy.max_attempts {
        return Next::of(JobNext::Failed, reason);
    }
    let own = facts.now.store + backoff(facts.policy, failures, facts.random);
    let due_at = come_back(reading, facts).map_or(own, |hint| hint.max(own));
    within_deadline(Next::of(JobNext::Again { due_at, failure: true }, reason), facts)
}

/// Told to wait: everybody on the instance does, and nobody loses an attempt.
fn refused(reading: &Reading, facts: &Facts<'_>) -> Next {
    let now = facts.now.store;
    if let Some(hint) = reading.retry_at {
        let until = facts.now.to_store(hint);
        let wait = until.since(now);
        if reading.clamped || wait > facts.policy.max_hint {
            let days = facts.policy.max_hint.as_secs() / 86_400;
            let why = match (reading.clamped, days) {
                (true, _) => "find out why, or let it go on when that is over".to_owned(),
                (false, 0) => "find out why it asks for so long, or raise `max_hint`".to_owned(),
                (false, days) => {
                    format!(
                        "find out why it asks for so long, or raise `max_hint`, now {days} days"
                    )
                }
            };
            return Next { hold_until: Some(until), ..hold(reading.reason, facts, why) };
        }
    }
    let own = || now + backoff(facts.policy, facts.refusals + 1, facts.random);
    let until = come_back(reading, facts).unwrap_or_else(own);
    let mut next = Next::of(JobNext::Again { due_at: now, failure: false }, reading.reason);
    next.block = Some(until);
    within_deadline(next, facts)
}

/// The upstream's hint, else the rule's own wait, with jitter on top (store time).
fn come_back(reading: &Reading, facts: &Facts<'_>) -> Option<Timestamp> {
    let now = facts.now.store;
    let hint = reading.retry_at.map(|hint| facts.now.to_store(hint));
    let at = hint.or_else(|| reading.wait.map(|wait| now + wait))?;
    (at > now).then(|| after_hint(now, at, facts.random))
}

/// Waiting alone will not help.
fn for_good(reason: Reason, facts: &Facts<'_>) -> Next {
    match reason {
        Reason::Blocked => hold(reason, facts, "the upstream shut us out".to_owned()),
        Reason::Misconfigured | Reason::Forbidden | Reason::AuthExpired => hard(reason, facts),
        Reason::QuotaExhausted
        | Reason::RateLimited
        | Reason::ConcurrencyLimited
        | Reason::Overloaded
        | Reason::KeyPending => {
            hold(reason, facts, "the upstream says that waiting will not help".to_owned())
        }
        _ => Next::of(JobNext::Failed, reason),
    }
}

/// A refusal that only a person can lift. The second in a row holds the partition; a job that meets it again
/// after others got through is at fault itself, and fails. So is one that a process waits for, where anybody
/// ever got through: one bad call is not to hold the queue.
fn hard(reason: Reason, facts: &Facts<'_>) -> Next {
    let is_own = facts.owned && facts.job_refused_hard && facts.answered;
    if facts.hard_refusals + 1 >= HARD_REFUSALS && !is_own {
        let mut next = hold(reason, facts, format!("refused {HARD_REFUSALS} times in a row"));
        next.refused_hard = true;
        return next;
    }
    if facts.job_refused_hard {
        // Whether others get through is not known yet where none did since: the next refusal still holds.
        let in_doubt = facts.hard_refusals > 0;
        let next = Next::of(JobNext::Failed, reason);
        return Next { refused_hard: in_doubt, uncounted_hard: in_doubt, ..next };
    }
    let due_at = facts.now.store + backoff(facts.policy, 1, facts.random);
    let mut next = Next::of(JobNext::Again { due_at, failure: false }, reason);
    next.refused_hard = true;
    within_deadline(next, facts)
}

/// A token was refused. With another one the job goes again at once; if that is refused too, its
/// partition is held; and a job that is, where others got through, is at fault itself.
fn refused_token(facts: &Facts<'_>) -> Next {
    let reason = Reason::AuthExpired;
    let mut next = match facts.token {
        Some(Token::Fresh) => hold(reason, facts, "a new token was refused too".to_owned()),
        _ if facts.job_refused_hard => return Next::of(JobNext::Failed, reason),
        _ => {
            let again = JobNext::Again { due_at: facts.now.store, failure: false };
            Next { uncounted_hard: true, ..Next::of(again, reason) }
        }
    };
    next.refused_hard = true;
    within_deadline(next, facts)
}

fn hold(reason: Reason, facts: &Facts<'_>, why: String) -> Next {
    let again = JobNext::Again { due_at: facts.now.store, failure: false };
    Next { hold: Some(why), ..Next::of(again, reason) }
}

/// A job that could go again only past its deadline expires now.
fn within_deadline(mut next: Next, facts: &Facts<'_>) -> Next {
    if let (JobNext::Again { due_at, .. }, Some(deadline)) = (next.job, facts.deadline_at) {
        let could_go_at = next.block.map_or(due_at, |until| until.max(due_at));
        if could_go_at > deadline {
            next.job = JobNext::Expired { could_go_at };
        }
    }
    next
}
