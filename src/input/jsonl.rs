//! JSON lines: an object a line, its fields being columns; `headers` and `body` are of the request, and
//! `method` is both.
//!
//! ```
//! use paceline::input::Input;
//! use paceline::input::jsonl::JsonRows;
//!
//! let text = r#"{"url": "https://www.example.com/a", "price": 1.10, "body": {"id": 7}}"#;
//! let rows = JsonRows::new(text.as_bytes()).collect::<Result<Vec<_>, _>>()?;
//! let Some(Input::Row(row)) = rows.first() else { unreachable!() };
//! assert_eq!(row.columns["price"], "1.10"); // as it is written
//! assert_eq!(row.own.body.as_deref(), Some(r#"{"id": 7}"#));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{BadRow, Input, Row, RowProblem, SourceLines};
use crate::job::{Columns, Own};

/// Reads JSON lines. Blank ones are passed over.
#[derive(Debug)]
pub struct JsonRows<R> {
    lines: SourceLines<R>,
}

impl<R: BufRead> JsonRows<R> {
    /// Reads `input`.
    pub fn new(input: R) -> JsonRows<R> {
        JsonRows { lines: SourceLines::new(input) }
    }
}

impl<R: BufRead> Iterator for JsonRows<R> {
    type Item = io::Result<Input>;

    fn next(&mut self) -> Option<io::Result<Input>> {
        let (line, raw, cut) = match self.lines.next()? {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        let read = if cut { Err(RowProblem::TooLong) } else { parts(&raw) };
        Some(Ok(match read {
            Ok((columns, own)) => Input::Row(Row { line, columns, own, raw }),
            Err(problem) => Input::Bad(BadRow { line, raw, problem }),
        }))
    }
}

/// The fields of an object in their order, each value as it is written.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn parts(raw: &[u8]) -> Result<(Columns, Own), RowProblem> {
    let Fields(fields) = serde_json::from_slice(raw).map_err(problem)?;
    let (mut columns, mut own) = (Columns::new(), Own::default());
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in fields {
        if !seen.insert(name.clone()) {
            return Err(RowProblem::Twice { field: name });
        }
        // What is null is not there.
        let Some(text) = text(&value)? else { continue };
        match name.as_str() {
            "headers" => own.headers = headers(&value)?,
            "body" => own.body = Some(text),
            "" => return Err(RowProblem::Nameless),
            _ => {
                if name == "method" {
                    own.method = Some(text.clone());
                }
                columns.insert(name, text);
            }
        }
    }
    Ok((columns, own))
}

/// A string's text; any other value as it is written.
fn text(value: &RawValue) -> Result<Option<String>, RowProblem> {
    match value.get() {
        "null" => Ok(None),
        text if text.starts_with('"') => serde_json::from_str(text).map_err(problem),
        text => Ok(Some(text.to_owned())),
    }
}

fn headers(value: &RawValue) -> Result<BTreeMap<String, String>, RowProblem> {
    let wrong = |_| RowProblem::Headers;
    let Fields(fields) = serde_json::from_str(value.get()).map_err(wrong)?;
    let mut headers = BTreeMap::new();
    for (name, value) in fields {
        if matches!(value.get().as_bytes().first(), Some(b'{' | b'[')) {
            return Err(RowProblem::Headers);
        }
        let Some(text) = text(&value)? else { continue };
        if headers.keys().any(|known: &String| known.eq_ignore_ascii_case(&name)) {
            return Err(RowProblem::Twice { field: name });
        }
        headers.insert(name, text);
    }
    Ok(headers)
}

/// The line is known, so only the place in it is told.
fn problem(error: serde_json::Error) -> RowProblem {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text).to_owned();
    RowProblem::NoJson { what, column: error.column() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(text: &str) -> Vec<String> {
        let rows = JsonRows::new(text.as_bytes()).map(Result::unwrap);
        rows.map(|input| match input {
            Input::Row(row) => format!("{}: {:?} {:?}", row.line, row.columns, row.own.body),
            Input::Bad(bad) => format!("{}: {}", bad.line, bad.problem),
        })
        .collect()
    }

    #[test]
    fn values_are_as_they_are_written() {
        let text = "\u{feff}{\"a\": \"x\\n\\u00e4\", \"b\": 1.10, \"c\": true, \"d\": null}\r\n\n{\"e\": {\"f\": [1, 2]}, \"body\": \"{x}\"}";
        assert_eq!(
            tell(text),
            [
                r#"1: {"a": "x\nä", "b": "1.10", "c": "true"} None"#,
                r#"3: {"e": "{\"f\": [1, 2]}"} Some("{x}")"#,
            ]
        );
    }

    #[test]
    fn a_bad_line_takes_no_other_with_it() {
        let text = "{\"a\": 1\n[1]\n{\"a\": 1, \"a\": 2}\n{\"headers\": [1]}\n{\"headers\": {\"x\": {}}}\n{\"\": 1}\n{\"a\": \"\\ud800\"}\n{} {}\n{\"a\": 7}";
        assert_eq!(
            tell(text),
            [
                "1: it is no JSON object: EOF while parsing an object (at character 7)",
                "2: it is no JSON object: invalid type: sequence, expected a JSON object (at character 0)",
                "3: its field `a` is there twice",
                "4: its `headers` are no object of texts",
                "5: its `headers` are no object of texts",
                "6: a field of it has no name",
                "7: it is no JSON object: unexpected end of hex escape (at character 8)",
                "8: it is no JSON object: trailing characters (at character 4)",
                r#"9: {"a": "7"} None"#,
            ]
        );
    }

    #[test]
    fn a_line_too_long_is_passed_over() {
        let text =
            format!("{{\"a\": \"{}\"}}\n{{\"a\": 1}}", "x".repeat(super::super::LONGEST_ROW));
        assert_eq!(tell(&text), ["1: it is longer than 1048576 bytes", r#"2: {"a": "1"} None"#]);
    }
}
