//! The parts of a rule's `when`, which must all agree.

use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::body::words::shown;
use super::rules::{StatusPattern, ValuePattern, When};
use super::view::View;

/// One condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'r> {
    /// One of these statuses.
    Status(&'r [StatusPattern]),
    /// A header and what it must be.
    Header(&'r str, &'r ValuePattern),
    /// What must stand at a JSON pointer.
    Json(&'r str, &'r ValuePattern),
    /// What must be found in the body.
    Body(&'r Regex),
}

impl When {
    /// All conditions that are given, the cheap ones first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let status = (!self.status.is_empty()).then_some(Part::Status(&self.status));
        let headers = self.header.iter().map(|(name, value)| Part::Header(name, value));
        let json = self.json.iter().map(|(pointer, value)| Part::Json(pointer, value));
        status.into_iter().chain(headers).chain(json).chain(self.body.iter().map(Part::Body))
    }
}

impl Part<'_> {
    /// Whether the answer is so.
    pub(crate) fn fits(self, view: &View<'_>) -> bool {
        match self {
            Part::Status(patterns) => patterns.iter().any(|pattern| pattern.fits(view.status())),
            Part::Header(name, pattern) => pattern.fits(view.values(name)),
            Part::Json(pointer, pattern) => {
                let value = view.at(pointer).map(text_of);
                pattern.fits(value.as_deref().into_iter())
            }
            Part::Body(pattern) => pattern.is_match(view.text()),
        }
    }

    /// What the answer has in its place, for people.
    pub(crate) fn found(self, view: &View<'_>) -> String {
        let told = |value: Option<String>| match value {
            Some(value) => format!("is `{}`", shown(&value)),
            None => "is not there".to_owned(),
        };
        match self {
            Part::Status(_) => format!("the status is {}", view.status()),
            Part::Header(name, _) => {
                format!("header {name} {}", told(view.header(name).map(str::to_owned)))
            }
            Part::Json(pointer, _) => format!("{pointer} {}", told(view.at(pointer).map(text_of))),
            Part::Body(_) => "the body has no such text".to_owned(),
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Status(patterns) => {
                let all: Vec<_> = patterns.iter().map(StatusPattern::to_string).collect();
                write!(f, "status {}", all.join(" or "))
            }
            Part::Header(name, pattern) => write!(f, "header {name} {pattern}"),
            Part::Json(pointer, pattern) => write!(f, "json {pointer} {pattern}"),
            Part::Body(pattern) => write!(f, "body matches `{pattern}`"),
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusPattern::Exact(status) => write!(f, "{status}"),
            StatusPattern::Class(class) => write!(f, "{class}xx"),
        }
    }
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePattern::Equals(text) => write!(f, "= `{text}`"),
            ValuePattern::Matches(pattern) => write!(f, "matches `{pattern}`"),
            ValuePattern::Present(true) => f.write_str("is there"),
            ValuePattern::Present(false) => f.write_str("is not there"),
        }
    }
}

/// A JSON value as a rule compares it: a string itself, anything else as it is written.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
