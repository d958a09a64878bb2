//! What was sent and what was refused, against what is declared: evidence for the upstream's support.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use super::conclusion::conclude;
use super::instant;
use crate::clock::Timestamp;
use crate::job::{CallId, Columns};
use crate::quota::strict::{Strict, busiest};
use crate::quota::{Cost, Limit, Upstream};
use crate::reading::Reason;
use crate::store::views::AttemptView;

/// The spans whose busiest is told.
pub const SPANS: [(&str, Duration); 3] = [
    ("1s", Duration::from_secs(1)),
    ("10s", Duration::from_secs(10)),
    ("60s", Duration::from_secs(60)),
];

/// A refusal, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// When its call was sent (wall time).
    pub sent_at: Timestamp,
    /// The answer's status.
    pub status: Option<u16>,
    /// Why.
    pub reason: String,
    /// The server's words.
    pub detail: String,
    /// When to come back, as the answer said.
    pub hint_at: Option<Timestamp>,
}

/// Calls and refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Calls sent.
    pub calls: u64,
    /// Refused ones; of batches those of which no item went through.
    pub refused: u64,
}

/// What the attempts of an upstream show.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Evidence {
    /// All calls.
    pub all: Count,
    /// Batches that went through, less some items that were refused.
    pub refused_in_part: u64,
    /// Refused as too fast or too much, though all that was sent up to then kept to every limit.
    pub refused_inside: u64,
    /// Calls that were no success, by reason; the items of a batch may have several.
    pub by_reason: BTreeMap<String, u64>,
    /// By connection, where they are counted.
    pub by_connection: BTreeMap<u32, Count>,
    /// The most calls in any span of [`SPANS`].
    pub busiest: [u64; 3],
    /// The first call and the last (wall time).
    pub span: Option<(Timestamp, Timestamp)>,
    /// The first refusal.
    pub first: Option<Refusal>,
    /// The one with the longest wait.
    pub worst: Option<Refusal>,
}

/// One call, as little of it as is needed: there may be millions.
struct Sent {
    at: Timestamp,
    partition: u32,
    connection: Option<u32>,
    jobs: u32,
    /// Jobs of it that were refused.
    refused: u32,
    /// Of these, as too fast or too much.
    paced: u32,
}

impl Sent {
    fn is_refused(&self) -> bool {
        self.refused == self.jobs
    }

    fn is_of_pace(&self) -> bool {
        self.is_refused() && self.paced > 0
    }
}

/// Gathers attempts, in the order in which they were recorded.
pub struct Gatherer<'u> {
    upstream: &'u Upstream,
    evidence: Evidence,
    calls: Vec<Sent>,
    partitions: Vec<Columns>,
    known: HashMap<Columns, u32>,
    last: Option<CallId>,
    /// The reasons of the last call that were counted.
    counted: BTreeSet<String>,
}

impl<'u> Gatherer<'u> {
    /// Nothing yet.
    pub fn new(upstream: &'u Upstream) -> Gatherer<'u> {
        Gatherer {
            upstream,
            evidence: Evidence::default(),
            calls: Vec::new(),
            partitions: Vec::new(),
            known: HashMap::new(),
            last: None,
            counted: BTreeSet::new(),
        }
    }

    /// One attempt more. Those of one batch follow each other.
    pub fn take(&mut self, attempt: &AttemptView) {
        if self.last != Some(attempt.call) {
            self.begin(attempt);
        }
        let reason = attempt.reason.as_deref().and_then(|name| name.parse::<Reason>().ok());
        let refused = reason.is_some_and(Reason::is_refusal);
        let paced = reason.is_some_and(is_of_pace);
        if !reason.is_some_and(Reason::is_success) {
            let name = attempt.reason.clone().unwrap_or_else(|| "lost".to_owned());
            if self.counted.insert(name.clone()) {
                *self.evidence.by_reason.entry(name).or_default() += 1;
            }
        }
        if refused {
            self.refusal(attempt);
        }
        if let Some(call) = self.calls.last_mut() {
            call.jobs += 1;
            call.refused += u32::from(refused);
            call.paced += u32::from(paced);
        }
    }

    fn begin(&mut self, attempt: &AttemptView) {
        self.last = Some(attempt.call);
        self.counted.clear();
        let (at, connection) = (attempt.sent_at, attempt.connection);
        let partition = self.partition(&attempt.partition);
        self.calls.push(Sent { at, partition, connection, jobs: 0, refused: 0, paced: 0 });
    }

    fn partition(&mut self, columns: &Columns) -> u32 {
        if let Some(known) = self.known.get(columns) {
            return *known;
        }
        let number = u32::try_from(self.partitions.len()).unwrap_or(u32::MAX);
        self.partitions.push(columns.clone());
        self.known.insert(columns.clone(), number);
        number
    }

    fn refusal(&mut self, attempt: &AttemptView) {
        let told = || Refusal {
            sent_at: attempt.sent_at,
            status: attempt.status,
            reason: attempt.reason.clone().unwrap_or_default(),
            detail: attempt.detail.clone().unwrap_or_default(),
            hint_at: attempt.hint_at,
        };
        let wait = |sent_at: Timestamp, hint: Option<Timestamp>| hint.map(|at| at.since(sent_at));
        if self.evidence.first.is_none() {
            self.evidence.first = Some(told());
        }
        let longest = self.evidence.worst.as_ref().and_then(|w| wait(w.sent_at, w.hint_at));
        if self.evidence.worst.is_none() || wait(attempt.sent_at, attempt.hint_at) > longest {
            self.evidence.worst = Some(told());
        }
    }

    /// What they show.
    pub fn finish(mut self) -> Evidence {
        self.calls.sort_by_key(|call| call.at);
        let mut evidence = std::mem::take(&mut self.evidence);
        evidence.all.calls = self.calls.len() as u64;
        for call in &self.calls {
            let refused = u64::from(call.is_refused());
            evidence.all.refused += refused;
            evidence.refused_in_part += u64::from(call.refused > 0) - refused;
            if let Some(connection) = call.connection {
                let count = evidence.by_connection.entry(connection).or_default();
                count.calls += 1;
                count.refused += refused;
            }
        }
        evidence.refused_inside = self.refused_inside();
        let sent: Vec<Timestamp> = self.calls.iter().map(|call| call.at).collect();
        evidence.busiest = SPANS.map(|(_, span)| busiest(&sent, span));
        evidence.span = sent.first().copied().zip(sent.last().copied());
        evidence
    }

    fn refused_inside(&self) -> u64 {
        let mut instances: HashMap<(usize, Vec<&str>), Strict<'u>> = HashMap::new();
        let mut inside = 0;
        for call in &self.calls {
            let Some(columns) = self.partitions.get(call.partition as usize) else { continue };
            let mut within = true;
            for (position, limit) in self.upstream.limits.iter().enumerate() {
                let value = |name: &String| columns.get(name).map_or("", String::as_str);
                let key = (position, limit.key.iter().map(value).collect());
                let strict =
                    instances.entry(key).or_insert_with(|| Strict::new(limit.rule_for(columns)));
                within &= strict.sent(call.at, units(limit, call.jobs));
            }
            inside += u64::from(within && call.is_of_pace());
        }
        inside
    }
}

/// A figure in a column is not looked at: it counts as one a job.
fn units(limit: &Limit, jobs: u32) -> u64 {
    match limit.cost {
        Cost::Calls => 1,
        Cost::Items | Cost::Column(_) => u64::from(jobs),
    }
}

/// "Too fast" or "too much": what keeping to the limits should have spared us.
fn is_of_pace(reason: Reason) -> bool {
    use Reason::{ConcurrencyLimited, Overloaded, QuotaExhausted, RateLimited};
    matches!(reason, RateLimited | QuotaExhausted | ConcurrencyLimited | Overloaded)
}

impl Evidence {
    /// As JSON, with the conclusion. `since` (wall time): what is older was not looked at.
    pub fn to_json(&self, upstream: &Upstream, since: Option<Timestamp>) -> Value {
        let count = |count: &Count| json!({ "calls": count.calls, "refused": count.refused });
        let refusal = |refusal: &Option<Refusal>| {
            refusal.as_ref().map(|refusal| {
                json!({
                    "sent_at": instant(Some(refusal.sent_at)), "status": refusal.status,
                    "reason": refusal.reason, "detail": refusal.detail,
                    "hint_at": instant(refusal.hint_at),
                })
            })
        };
        let by_connection = self.by_connection.iter();
        let by_connection: serde_json::Map<String, Value> =
            by_connection.map(|(number, of)| (number.to_string(), count(of))).collect();
        let busiest = SPANS.iter().zip(self.busiest);
        let busiest: serde_json::Map<String, Value> =
            busiest.map(|((name, _), calls)| ((*name).to_owned(), calls.into())).collect();
        json!({
            "upstream": upstream.name, "since": instant(since),
            "first_at": instant(self.span.map(|(first, _)| first)),
            "last_at": instant(self.span.map(|(_, last)| last)),
            "calls": self.all.calls, "refused": self.all.refused,
            "refused_in_part": self.refused_in_part,
            "refused_inside_limit": self.refused_inside, "by_reason": self.by_reason,
            "busiest": busiest, "by_connection": by_connection,
            "limits": upstream.limits.iter().map(super::limits::limit).collect::<Vec<_>>(),
            "first_refusal": refusal(&self.first), "worst_refusal": refusal(&self.worst),
            "conclusion": conclude(upstream, self),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::quota::declare;

    /// What these calls show, each the reasons of its jobs.
    fn shown(calls: &[&[Reason]]) -> Evidence {
        let upstream = declare::parse("shop", "shop.toml", "name = \"shop\"\n").unwrap();
        let mut gatherer = Gatherer::new(&upstream);
        for (call, reasons) in (1..).zip(calls) {
            for reason in *reasons {
                let attempt = AttemptView {
                    id: 0,
                    job: JobId(0),
                    upstream: String::new(),
                    url: String::new(),
                    n: 1,
                    call: CallId(call),
                    sent_at: Timestamp::EPOCH,
                    ended_at: None,
                    status: None,
                    reason: Some(reason.name().to_owned()),
                    source: None,
                    limit: None,
                    hint_at: None,
                    detail: None,
                    redirect: None,
                    body: None,
                    connection: Some(1),
                    partition: Columns::new(),
                };
                gatherer.take(&attempt);
            }
        }
        gatherer.finish()
    }

    #[test]
    fn a_batch_is_one_call_and_refused_where_none_of_it_went() {
        let (ok, late, bad) = (Reason::Ok, Reason::QuotaExhausted, Reason::Unprocessable);
        let evidence = shown(&[&[late; 100], &[ok, bad, late, ok], &[bad, ok], &[ok]]);
        assert_eq!(evidence.all, Count { calls: 4, refused: 1 });
        assert_eq!((evidence.refused_in_part, evidence.refused_inside), (1, 1));
        let by_reason = [("quota_exhausted".to_owned(), 2), ("unprocessable".to_owned(), 2)];
        assert_eq!(evidence.by_reason, BTreeMap::from(by_reason));
        assert_eq!(evidence.by_connection[&1], Count { calls: 4, refused: 1 });
    }
}
