//! An answer as the readers see it: header names in any case, the body parsed at most once.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::Value;

use super::{Answer, dates};
use crate::clock::Timestamp;

/// How much of a body is searched for words. Whoever has something to say says it at the beginning; a
/// page of megabytes must not stop the process that reads it.
const TEXT_READ: usize = 64 * 1024;

/// An answer, with what several readers ask for kept.
pub(crate) struct View<'a> {
    answer: &'a Answer<'a>,
    json: OnceCell<Option<Value>>,
    text: OnceCell<Cow<'a, str>>,
}

impl<'a> View<'a> {
    /// A view of `answer`; nothing is parsed yet.
    pub(crate) fn new(answer: &'a Answer<'a>) -> Self {
        View { answer, json: OnceCell::new(), text: OnceCell::new() }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.answer.status
    }

    /// Whether the status is 2xx.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.answer.status)
    }

    /// When the answer came in, by our wall clock.
    pub(crate) fn received_at(&self) -> Timestamp {
        self.answer.received_at
    }

    /// The address that was called.
    pub(crate) fn url(&self) -> &'a str {
        self.answer.url
    }

    /// All fields that have a value: the name as received, the value without outer blanks.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let fields = self.answer.headers.iter();
        fields
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(_, value)| !value.is_empty())
    }

    /// The values of one field, in the order received; the empty value is no value.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.fields().filter(move |(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The first value of one field.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.values(name).next()
    }

    /// All lines of a list field as one (RFC 9110 section 5.3).
    pub(crate) fn joined(&self, name: &str) -> Option<String> {
        let lines: Vec<&str> = self.values(name).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }

    /// The upstream's own time of the answer: its `Date`, unless a cache may have kept the answer
    /// (`Age`, RFC 9111 section 5.1), which makes the date old.
    pub(crate) fn server_time(&self) -> Option<Timestamp> {
        if self.header("age").is_some() {
            return None;
        }
        dates::parse(self.header("date")?, self.received_at())
    }

    /// The beginning of the body as text; what is no UTF-8 is replaced.
    pub(crate) fn text(&self) -> &str {
        let body = self.answer.body;
        let head = body.get(..TEXT_READ).unwrap_or(body);
        self.text.get_or_init(|| String::from_utf8_lossy(head))
    }

    /// The body as JSON, whatever its content type says.
    pub(crate) fn json(&self) -> Option<&Value> {
        let parse = || {
            let body = self.answer.body;
            let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
            serde_json::from_slice(body).ok()
        };
        self.json.get_or_init(parse).as_ref()
    }

    /// What stands at a JSON pointer (RFC 6901); `null` is nothing. An error that stands alone in an
    /// array, as Google's streams answer, counts as the error itself.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        let body = self.json()?;
        let found = body.pointer(pointer).or_else(|| self.wrapped(body)?.pointer(pointer));
        found.filter(|value| !value.is_null())
    }

    fn wrapped<'j>(&self, body: &'j Value) -> Option<&'j Value> {
        let [only] = body.as_array()?.as_slice() else { return None };
        Some(only).filter(|only| self.answer.status >= 400 && only.get("error").is_some())
    }

    /// The text at a JSON pointer.
    pub(crate) fn text_at(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    /// Whether the body is a page for people.
    pub(crate) fn is_html(&self) -> bool {
        let said = self.header("content-type").is_some_and(|kind| contains(kind, "html"));
        let starts = ["<!doctype html", "<html", "<title", "<head", "<body", "<h1"];
        let body = self.text().trim_start();
        said || starts.iter().any(|start| {
            body.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
        })
    }
}

/// Whether `text` contains `part`, which is in lower case, in any case of ASCII letters.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    text.as_bytes()
        .windows(part.len().max(1))
        .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}
