//! Rules that can never match: what they ask for cannot be, or earlier rules take it.
//!
//! Only what is certain is told. That a rule of the user's own takes what one of the extended file
//! would have read is meant, and is not told.

use std::fmt;

use super::marks;
use super::rules::{Place, Rule, StatusPattern, ValuePattern, When};

/// A rule that can never match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Its number, from 1.
    pub number: usize,
    /// Where it is written.
    pub place: Option<Place>,
    /// Why, and what to do.
    pub why: Never,
}

/// Why a rule can never match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Never {
    /// Earlier rules take every such answer: their numbers and lines.
    Taken(Vec<(usize, Option<usize>)>),
    /// No answer has this status: the sender waits for the one that follows.
    Interim(u16),
    /// An answer with this header is a challenge, which is read before all rules.
    Challenge(String),
    /// A header must be there and not be there.
    HeaderAbsent(String),
    /// No header has this value: the blanks around it are dropped, and the empty one is none.
    HeaderValue(String, String),
    /// Something must stand within what is not there, or is no object or array.
    Within {
        /// The pointer of the whole.
        whole: String,
        /// The pointer of the part.
        part: String,
    },
}

impl Never {
    /// What to do about it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Never::Taken(_) => "write it before them, or remove it",
            Never::Interim(_) => "write the status of a final answer",
            Never::Challenge(_) => "remove it: the answer is read as blocked",
            Never::HeaderAbsent(_) | Never::Within { .. } => {
                "remove one of the two, or make two rules"
            }
            Never::HeaderValue(..) => "write the value alone, or { present = false }",
        }
    }
}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Never::Taken(rules) => {
                let one = |(number, line): &(usize, Option<usize>)| match line {
                    Some(line) => format!("rule {number} (line {line})"),
                    None => format!("rule {number}"),
                };
                let takes = if rules.len() == 1 { "takes" } else { "take" };
                let rules: Vec<_> = rules.iter().map(one).collect();
                write!(f, "{} {takes} every such answer before it", rules.join(" and "))
            }
            Never::Interim(status) => {
                write!(f, "status {status} is never the last word: another answer follows it")
            }
            Never::Challenge(header) => {
                write!(f, "an answer with this `{header}` is a challenge, read before all rules")
            }
            Never::HeaderAbsent(header) => {
                write!(f, "header `{header}` must be there and not be there")
            }
            Never::HeaderValue(header, value) => {
                write!(f, "header `{header}` is never `{value}`: blanks around a value are dropped")
            }
            Never::Within { whole, part } => {
                write!(f, "nothing can stand at `{part}` where `{whole}` is so")
            }
        }
    }
}

/// All rules that can never match, in their order.
pub fn unreachable(rules: &[Rule]) -> Vec<Unreachable> {
    let never = |(n, rule): (usize, &Rule)| {
        let earlier = rules.get(..n).unwrap_or_default();
        let why = impossible(&rule.when).or_else(|| taken(rule, earlier))?;
        Some(Unreachable { number: n + 1, place: rule.place.clone(), why })
    };
    rules.iter().enumerate().filter_map(never).collect()
}

/// What of the conditions themselves cannot be.
fn impossible(when: &When) -> Option<Never> {
    interim(when).or_else(|| header(when)).or_else(|| json(when))
}

fn interim(when: &When) -> Option<Never> {
    let interim = |pattern: &StatusPattern| match pattern {
        StatusPattern::Exact(status @ (100 | 102..=199)) => Some(*status),
        _ => None,
    };
    let all: Option<Vec<u16>> = when.status.iter().map(interim).collect();
    all?.first().copied().map(Never::Interim)
}

fn header(when: &When) -> Option<Never> {
    when.header.iter().find_map(|(name, pattern)| {
        let absent = |(other, pattern): (&String, &ValuePattern)| {
            other.eq_ignore_ascii_case(name) && matches!(pattern, ValuePattern::Present(false))
        };
        match pattern {
            ValuePattern::Equals(value) if value.is_empty() || value.trim() != value => {
                Some(Never::HeaderValue(name.clone(), value.clone()))
            }
            ValuePattern::Equals(value) if marks::is_challenge(name, value) => {
                Some(Never::Challenge(name.clone()))
            }
            ValuePattern::Present(false) => None,
            _ => when.header.iter().any(absent).then(|| Never::HeaderAbsent(name.clone())),
        }
    })
}

fn json(when: &When) -> Option<Never> {
    // A number, a word: whatever is written without brackets holds nothing.
    let is_leaf = |pattern: &ValuePattern| match pattern {
        ValuePattern::Present(present) => !present,
        ValuePattern::Equals(text) => !text.starts_with(['{', '[']),
        ValuePattern::Matches(_) => false,
    };
    let leaves = || when.json.iter().filter(|(_, pattern)| is_leaf(pattern));
    when.json.iter().filter(|(_, pattern)| needs_a_value(pattern)).find_map(|(part, _)| {
        let (whole, _) = leaves().find(|(whole, _)| is_within(part, whole))?;
        Some(Never::Within { whole: whole.clone(), part: part.clone() })
    })
}

/// The earlier rules of the same file that together take all that `rule` would match.
fn taken(rule: &Rule, earlier: &[Rule]) -> Option<Never> {
    let file = |rule: &Rule| rule.place.as_ref().map(|place| place.file.clone());
    let own: Vec<(usize, &Rule)> =
        (1..).zip(earlier).filter(|(_, other)| file(other) == file(rule)).collect();
    let taker = |status: Option<StatusPattern>| {
        let takes = |other: &Rule| has(&other.when, status) && is_wider(&other.when, &rule.when);
        own.iter().find(|(_, other)| takes(other))
    };
    let statuses: Vec<Option<StatusPattern>> = match rule.when.status.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let takers: Option<Vec<_>> = statuses.into_iter().map(taker).collect();
    let line = |rule: &Rule| rule.place.as_ref().map(|place| place.line);
    let mut found: Vec<_> = takers?.iter().map(|(number, rule)| (*number, line(rule))).collect();
    found.sort_unstable();
    found.dedup();
    Some(Never::Taken(found))
}

/// Whether the rule takes answers of that status; `None` is any.
fn has(when: &When, status: Option<StatusPattern>) -> bool {
    let covers = |own: &StatusPattern| match (own, status) {
        (_, None) => false,
        (own, Some(StatusPattern::Exact(status))) => own.fits(status),
        (own, Some(class)) => *own == class,
    };
    when.status.is_empty() || when.status.iter().any(covers)
}

/// Whether all conditions of `wide`, its status aside, follow from those of `narrow`.
fn is_wider(wide: &When, narrow: &When) -> bool {
    let header = |(name, needed): (&String, &ValuePattern)| {
        narrow
            .header
            .iter()
            .any(|(other, given)| other.eq_ignore_ascii_case(name) && follows(given, needed))
    };
    let json = |(pointer, needed): (&String, &ValuePattern)| {
        narrow.json.iter().any(|(other, given)| match needed {
            _ if other == pointer => follows(given, needed),
            ValuePattern::Present(true) => needs_a_value(given) && is_within(other, pointer),
            ValuePattern::Present(false) => !needs_a_value(given) && is_within(pointer, other),
            _ => false,
        })
    };
    let body = match (&wide.body, &narrow.body) {
        (None, _) => true,
        (Some(wide), narrow) => narrow.as_ref().is_some_and(|own| own.as_str() == wide.as_str()),
    };
    body && wide.header.iter().all(header) && wide.json.iter().all(json)
}

/// Whether a value that is as `given` is as `needed`, too.
fn follows(given: &ValuePattern, needed: &ValuePattern) -> bool {
    use ValuePattern::{Equals, Matches, Present};
    match (given, needed) {
        (given, Present(present)) => needs_a_value(given) == *present,
        (Equals(given), Equals(needed)) => given == needed,
        (Equals(given), Matches(needed)) => needed.is_match(given),
        (Matches(given), Matches(needed)) => given.as_str() == needed.as_str(),
        (Matches(_) | Present(_), _) => false,
    }
}

const fn needs_a_value(pattern: &ValuePattern) -> bool {
    !matches!(pattern, ValuePattern::Present(false))
}

/// Whether one pointer leads into what stands at the other.
fn is_within(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::unreachable;
    use crate::quota::declare::parse;

    /// The rules of these `when`s: number, line, column and why.
    fn told(whens: &[&str]) -> Vec<String> {
        let rules: Vec<_> = whens
            .iter()
            .map(|when| format!("[[reading]]\nwhen = {{ {when} }}\nreason = \"blocked\"\n"))
            .collect();
        let upstream = parse("shop", "shop.toml", &rules.concat()).unwrap();
        let all = unreachable(&upstream.readings).into_iter();
        all.map(|never| {
            let place = never.place.unwrap();
            format!("{}: {}:{}: {}", never.number, place.line, place.column, never.why)
        })
        .collect()
    }

    #[track_caller]
    fn never(whens: &[&str], expected: &str) {
        let told = told(whens);
        assert!(told.len() == 1 && told.concat().contains(expected), "{whens:?}: {told:?}");
    }

    #[track_caller]
    fn fine(whens: &[&str]) {
        assert_eq!(told(whens), Vec::<String>::new(), "{whens:?}");
    }

    #[test]
    fn an_earlier_rule_takes_it() {
        never(&["status = 403", "status = 403"], "2: 4:1: rule 1 (line 1) takes every such");
        never(&["status = \"4xx\"", "status = [403, 429]"], "rule 1 (line 1)");
        never(&["status = 403", "status = 403, json = { \"/a\" = 1 }"], "rule 1");
        never(
            &["status = 403", "status = 429", "status = [403, 429]"],
            "rule 1 (line 1) and rule 2",
        );
        never(&["header = { X-A = { present = true } }", "header = { x-a = \"1\" }"], "rule 1");
        never(
            &["json = { \"/a\" = { matches = \"^x\" } }", "json = { \"/a\" = \"xy\" }"],
            "rule 1",
        );
        never(&["json = { \"/a\" = { present = true } }", "json = { \"/a/b\" = 1 }"], "rule 1");
        never(
            &[
                "json = { \"/a/b\" = { present = false } }",
                "json = { \"/a\" = { present = false } }",
            ],
            "rule 1",
        );
        never(&["body = \"x\"", "body = \"x\", status = 500"], "rule 1");
    }

    #[test]
    fn an_earlier_rule_leaves_some() {
        fine(&["status = 403", "status = \"4xx\""]);
        fine(&["status = 403", "json = { \"/a\" = 1 }"]);
        fine(&["status = 403, json = { \"/a\" = 1 }", "status = 403"]);
        fine(&["status = 403, json = { \"/a\" = 1 }", "status = 403, json = { \"/a\" = 2 }"]);
        fine(&["status = 403", "status = [403, 429]"]);
        fine(&["body = \"x\"", "body = \"xy\""]);
        fine(&[
            "json = { \"/a\" = { matches = \"^x\" } }",
            "json = { \"/a\" = { matches = \"^xy\" } }",
        ]);
        fine(&["json = { \"/ab\" = { present = true } }", "json = { \"/ab2\" = 1 }"]);
        fine(&["header = { x-a = { present = false } }", "header = { x-a = \"1\" }"]);
    }

    #[test]
    fn conditions_that_cannot_be() {
        never(&["status = [100, 102]"], "1: 1:1: status 100 is never the last word");
        never(
            &["header = { X-A = { present = false }, x-a = \"1\" }"],
            "`x-a` must be there and not",
        );
        never(&["header = { x-a = \"\" }"], "header `x-a` is never ``");
        never(&["header = { x-a = \" 1\" }"], "blanks around");
        never(&["header = { CF-Mitigated = \"Challenge\" }"], "is a challenge, read before");
        never(
            &["json = { \"/a\" = { present = false }, \"/a/b\" = 1 }"],
            "nothing can stand at `/a/b`",
        );
        never(&["json = { \"\" = { present = false }, \"/a\" = 1 }"], "nothing can stand at `/a`");
        never(&["json = { \"/a\" = \"x\", \"/a/b\" = { present = true } }"], "where `/a` is so");
    }

    #[test]
    fn conditions_that_can_be() {
        fine(&["status = [100, 429]"]);
        fine(&["status = \"1xx\""]);
        fine(&["header = { cf-mitigated = \"other\" }"]);
        fine(&["header = { X-A = \"1\", x-a = \"2\" }"]);
        fine(&["json = { \"/a\" = { present = false }, \"/ab\" = 1 }"]);
        fine(&["json = { \"/a\" = { matches = \"x\" }, \"/a/b\" = 1 }"]);
        fine(&["json = { \"/a\" = \"\" }"]);
    }
}
