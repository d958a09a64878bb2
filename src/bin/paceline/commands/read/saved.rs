//! A saved answer, as a line of JSON has it.

use paceline::clock::Timestamp;
use serde_json::{Map, Value};

/// A saved answer.
#[derive(Debug)]
pub struct Saved {
    pub id: Value,
    pub upstream: Option<String>,
    /// In capitals; `GET` where none is named.
    pub method: String,
    pub url: String,
    pub received_at: Option<Timestamp>,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Saved {
    /// Reads a line; what is wrong with it names the field, and what to write.
    pub fn read(line: &[u8]) -> Result<Saved, String> {
        let fields = match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => {
                return Err("it is no saved answer: write a JSON object on one line".to_owned());
            }
            Err(error) if error.is_eof() => {
                return Err("it is no JSON: it ends too early, so it may be cut".to_owned());
            }
            Err(error) => {
                let column = error.column();
                return Err(format!("it is no JSON: look at its column {column}"));
            }
        };
        let method = text(&fields, "method")?.unwrap_or_else(|| "GET".to_owned());
        let body = match fields.get("body") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        Ok(Saved {
            id: fields.get("id").cloned().unwrap_or_default(),
            upstream: text(&fields, "upstream")?,
            method: method.to_ascii_uppercase(),
            url: text(&fields, "url")?
                .ok_or("it has no `url`: write the address that was called")?,
            received_at: text(&fields, "received_at")?.map(|text| instant(&text)).transpose()?,
            status: status(&fields)?,
            headers: headers(&fields)?,
            body,
        })
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("its `{name}` is no text but {}", kind(other))),
    }
}

fn status(fields: &Map<String, Value>) -> Result<u16, String> {
    let Some(status) = fields.get("status") else {
        return Err("it has no `status`: write the answer's, such as 429".to_owned());
    };
    let number = status.as_u64().and_then(|number| u16::try_from(number).ok());
    let wrong = || format!("its `status` is {}: write a number such as 429", kind(status));
    number.ok_or_else(wrong)
}

fn headers(fields: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let all = match fields.get("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all,
        Some(other) => return Err(format!("its `headers` are {}{HEADERS}", kind(other))),
    };
    let pair = |(n, one): (usize, &Value)| match one.as_array().map(Vec::as_slice) {
        Some([Value::String(name), Value::String(value)]) => Ok((name.clone(), value.clone())),
        _ => Err(format!("header {} of its `headers` is no pair of texts{HEADERS}", n + 1)),
    };
    all.iter().enumerate().map(pair).collect()
}

const HEADERS: &str = ": write [[\"Retry-After\", \"60\"], ...]";

fn instant(text: &str) -> Result<Timestamp, String> {
    let at = chrono::DateTime::parse_from_rfc3339(text);
    at.map(|at| at.to_utc().into()).map_err(|_| {
        format!("its `received_at` `{text}` is no instant: write one such as 2026-03-01T12:00:00Z")
    })
}

/// A value for people: short ones as they are.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        short => short.to_string(),
    }
}
