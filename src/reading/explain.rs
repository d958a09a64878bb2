//! How a reading came about: who was asked, what each looked at, said, and who decided.
//!
//! It walks over the tables that [`read`](super::read) itself goes by, so that it can say nothing else.

use super::body::words::shown;
use super::candidate::Candidate;
use super::hint::{self, Asked, Hint, SOURCES};
use super::readers::{Question, REFINERS, decide, questions};
use super::rules::Place;
use super::verdict::Verdict;
use super::view::View;
use super::{Answer, Reading, Reason, conclude};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::Upstream;

/// A reading, and how it came about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// What [`read`](super::read) says.
    pub reading: Reading,
    /// All who were asked, or could have been, in their order.
    pub steps: Vec<Step>,
}

/// One who was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What about.
    pub topic: Topic,
    /// Its name: `rule 2`, `status table`.
    pub reader: String,
    /// Where a rule is written.
    pub place: Option<Place>,
    /// Where it looks, or what it found there.
    pub looked_at: String,
    /// What it says, or would have said.
    pub said: Option<Said>,
    /// Whether that counts.
    pub decided: bool,
    /// Why it does not; `None` too where it found nothing that it knows.
    pub why: Option<String>,
}

/// What somebody is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The reason.
    Reason,
    /// When to come back.
    Hint,
}

/// What somebody says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A reason.
    Reason {
        /// The reason.
        reason: Reason,
        /// Whether waiting alone can help.
        retryable: bool,
        /// What it goes by.
        source: String,
    },
    /// The earliest instant to come back; not clamped.
    Hint(Timestamp),
}

impl Step {
    /// Whether it found nothing that it knows.
    pub const fn is_silent(&self) -> bool {
        self.said.is_none() && self.why.is_none()
    }
}

impl Topic {
    /// Its name, as shown.
    pub const fn name(self) -> &'static str {
        match self {
            Topic::Reason => "reason",
            Topic::Hint => "hint",
        }
    }
}

impl Said {
    fn verdict(verdict: &Verdict) -> Said {
        Said::Reason {
            reason: verdict.reason,
            retryable: verdict.retryable,
            source: verdict.source.clone(),
        }
    }
}

/// Reads an answer as [`read`](super::read) does, and tells how.
///
/// ```
/// use paceline::clock::Timestamp;
/// use paceline::reading::{Answer, explain};
///
/// let headers = [("Retry-After".to_owned(), "120".to_owned())];
/// let explanation = explain(None, &Answer {
///     method: "GET",
///     url: "https://api.example.com/v1/items",
///     received_at: Timestamp::from_secs(1_772_366_400),
///     status: 429,
///     headers: &headers,
///     body: b"",
/// });
/// let decided = explanation.steps.iter().filter(|step| step.decided);
/// let names: Vec<&str> = decided.map(|step| step.reader.as_str()).collect();
/// assert_eq!(names, ["status table", "Retry-After"]);
/// ```
pub fn explain(upstream: Option<&Upstream>, answer: &Answer<'_>) -> Explanation {
    let view = &View::new(answer);
    let mut steps = reasons(upstream, view);
    let (verdict, rule) = decide(upstream, view);
    let verdict = refinements(upstream, view, verdict, &mut steps);
    let asked = Asked { view, upstream, rule, verdict: &verdict, partition: &Columns::new() };
    let hint = if verdict.may_wait() { hint::find(&asked) } else { None };
    steps.extend(hints(&asked, hint.as_ref()));
    Explanation { reading: conclude(&asked, hint.as_ref()), steps }
}

fn reasons(upstream: Option<&Upstream>, view: &View<'_>) -> Vec<Step> {
    let mut decided = false;
    let step = |question: Question<'_>| {
        let verdict = question.ask(view);
        let first = verdict.is_some() && !decided;
        decided |= first;
        let why = match &verdict {
            Some(_) => (!first).then(|| "an earlier reader decided".to_owned()),
            None => silence(question, view),
        };
        Step { said: verdict.as_ref().map(Said::verdict), decided: first, why, ..asked(question) }
    };
    questions(upstream).map(step).collect()
}

fn asked(question: Question<'_>) -> Step {
    let Question { reader, rule } = question;
    let numbered = rule.map(|(number, _)| format!("{} {number}", reader.name));
    let conditions = rule.map(|(_, rule)| {
        let parts: Vec<_> = rule.when.parts().map(|part| part.to_string()).collect();
        parts.join(", ")
    });
    Step {
        topic: Topic::Reason,
        reader: numbered.unwrap_or_else(|| reader.name.to_owned()),
        place: rule.and_then(|(_, rule)| rule.place.clone()),
        looked_at: conditions.unwrap_or_else(|| reader.looks_at.to_owned()),
        said: None,
        decided: false,
        why: None,
    }
}

/// What of a rule does not agree.
fn silence(question: Question<'_>, view: &View<'_>) -> Option<String> {
    let (_, rule) = question.rule?;
    let mut parts = rule.when.parts();
    parts.find(|part| !part.fits(view)).map(|part| part.found(view))
}

fn refinements(
    upstream: Option<&Upstream>,
    view: &View<'_>,
    verdict: Verdict,
    steps: &mut Vec<Step>,
) -> Verdict {
    REFINERS.iter().fold(verdict, |verdict, refiner| {
        let refined = (refiner.refine)(upstream, view, verdict.clone());
        let changed = refined != verdict;
        steps.push(Step {
            topic: Topic::Reason,
            reader: refiner.name.to_owned(),
            place: None,
            looked_at: refiner.looks_at.to_owned(),
            said: changed.then(|| Said::verdict(&refined)),
            decided: changed,
            why: None,
        });
        refined
    })
}

/// One step for each value that may be a hint; one for each source that has none.
fn hints(asked: &Asked<'_, '_>, hint: Option<&Hint<'_>>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (from, source) in SOURCES.iter().enumerate() {
        let candidates = source.candidates(asked);
        let step = |looked_at| Step {
            topic: Topic::Hint,
            reader: source.name.to_owned(),
            place: None,
            looked_at,
            said: None,
            decided: false,
            why: None,
        };
        if candidates.is_empty() {
            steps.push(step(source.looks_at.to_owned()));
        }
        for candidate in candidates {
            let decided = hint.is_some_and(|hint| hint.from == from && hint.candidate == candidate);
            let why = (!decided).then(|| passed_over(asked, &candidate, from, hint));
            let looked_at = shown(&format!("{}: {}", candidate.source, candidate.value));
            let said = candidate.at.ok().map(Said::Hint);
            steps.push(Step { said, decided, why, ..step(looked_at) });
        }
    }
    steps
}

fn passed_over(
    asked: &Asked<'_, '_>,
    candidate: &Candidate<'_>,
    from: usize,
    hint: Option<&Hint<'_>>,
) -> String {
    match (candidate.at, hint) {
        (Err(why), _) => why.to_string(),
        (Ok(_), _) if !asked.verdict.may_wait() => "waiting alone does not help".to_owned(),
        (Ok(_), Some(hint)) if hint.from == from => "another of them is later".to_owned(),
        (Ok(_), Some(hint)) if hint.from > from => {
            "both conditions count here, and the other is later".to_owned()
        }
        (Ok(_), _) => "an earlier source decided".to_owned(),
    }
}
