//! Bodies that are an error: the messages in them, and whether there is nothing beside.

use serde_json::Value;

use crate::reading::view::{View, contains};

/// Names of what is said to people, in lower case and letters alone; objects and lists under them hold
/// such names again.
const MESSAGES: &[&str] = &[
    "message",
    "msg",
    "error",
    "errors",
    "errormessage",
    "errormessages",
    "errormsg",
    "errordescription",
    "detail",
    "details",
    "statusmessage",
    "statustext",
    "longmessage",
    "faultstring",
    "fault",
    "d",
];

/// Names of messages that data has too.
const WEAK: &[&str] = &["title", "description", "text", "reason", "info", "summary"];

/// What stands beside a message in an error, and says nothing of its own.
const BESIDE: &[&str] = &[
    "code",
    "status",
    "statuscode",
    "errorcode",
    "errorid",
    "errortype",
    "httpstatus",
    "httpcode",
    "type",
    "kind",
    "domain",
    "category",
    "module",
    "ok",
    "success",
    "requestid",
    "traceid",
    "correlationid",
    "timestamp",
    "path",
    "instance",
    "retryafter",
    "retryafterms",
    "retryafterseconds",
    "documentationurl",
    "docref",
    "moreinfo",
    "servedby",
    "jsonrpc",
    "apikey",
    "count",
    "limit",
];

/// How deep messages lie.
const DEPTH: usize = 5;

/// What a body says, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Parts<'v> {
    /// Messages under a name that only errors have.
    pub(crate) messages: Vec<&'v str>,
    /// Messages under a name that data has too.
    pub(crate) weak: Vec<&'v str>,
    /// Other texts of an error: codes, types, addresses.
    pub(crate) beside: Vec<&'v str>,
    /// Whether there is more than an error has.
    pub(crate) has_more: bool,
    /// Whether it is JSON-RPC, whose errors have the call's `id` beside.
    is_rpc: bool,
}

impl<'v> Parts<'v> {
    /// The parts of a JSON body; of a bare text, and of a short body that is no JSON, the message.
    pub(crate) fn of(view: &'v View<'_>) -> Parts<'v> {
        let is_rpc = view.at("/jsonrpc").is_some();
        let mut parts = Parts { is_rpc, ..Parts::default() };
        match view.json() {
            // A list is data, whatever it is of; an error that is wrapped in one has a status of its own.
            Some(Value::Array(_)) if view.is_success() => parts.has_more = true,
            Some(body) => parts.take("message", body, 0),
            None if view.is_html() => parts.has_more = true,
            None => parts.messages.push(view.text()),
        }
        parts
    }

    fn take(&mut self, name: &str, value: &'v Value, depth: usize) {
        match value {
            Value::Object(fields) if depth < DEPTH => {
                // Whatever an error tells of itself makes it no data.
                let is_error = matches!(name, "error" | "errors" | "fault");
                for (field, value) in fields {
                    let known = self.field(&normal(field), value, depth + 1);
                    self.has_more |= !(known || is_error);
                }
            }
            Value::Array(list) if depth < DEPTH => {
                list.iter().for_each(|value| self.take(name, value, depth + 1));
            }
            Value::Object(_) | Value::Array(_) => self.has_more = true,
            Value::String(text) if MESSAGES.contains(&name) => self.messages.push(text),
            Value::String(text) if WEAK.contains(&name) => self.weak.push(text),
            Value::String(text) => self.beside.push(text),
            _ => {}
        }
    }

    /// Takes one field; `false` where nobody knows its name and it is not empty.
    fn field(&mut self, name: &str, value: &'v Value, depth: usize) -> bool {
        let is_nothing = match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        let plain = !value.is_object() && !value.is_array();
        if MESSAGES.contains(&name) || plain && (WEAK.contains(&name) || BESIDE.contains(&name)) {
            self.take(name, value, depth);
            return true;
        }
        is_nothing || name == "warnings" || self.is_rpc && name == "id"
    }
}

/// Whether a success is an error and nothing beside: an object `error` (or `errors` of such) with the
/// likes of a code in it.
pub(crate) fn is_only_error(view: &View<'_>) -> bool {
    let object = |place: &str| view.at(place).and_then(Value::as_object);
    let told = ["/error", "/errors/0"].into_iter().filter_map(object);
    let told = { told }.any(|error| {
        let fine = error.get("code").is_some_and(|code| matches!(code.as_u64(), Some(0 | 200)));
        let names = error.keys().map(|name| normal(name));
        !fine && { names }.any(|name| matches!(name.as_str(), "code" | "message" | "type" | "info"))
    });
    told && !says_fine(view) && !Parts::of(view).has_more
}

/// Whether a body says of itself that all is well: by a flag, or a status that is no fault's.
pub(crate) fn says_fine(view: &View<'_>) -> bool {
    const FAULTS: [&str; 9] =
        ["err", "fail", "fault", "limit", "throttl", "too", "exhaust", "exceed", "reject"];
    let yes = |place| view.at(place).and_then(Value::as_bool) == Some(true);
    let status = match view.at("/status") {
        Some(Value::String(text)) => match text.parse::<u16>() {
            Ok(status) => status < 400,
            Err(_) => !FAULTS.iter().any(|part| contains(text, part)),
        },
        Some(Value::Number(status)) => status.as_u64().is_some_and(|status| status < 400),
        _ => false,
    };
    yes("/ok") || yes("/success") || status
}

/// A name in lower case, letters alone: `error_message`, `errorMessage`.
fn normal(name: &str) -> String {
    let kept = name.chars().take(64).filter(char::is_ascii_alphabetic);
    kept.map(|letter| letter.to_ascii_lowercase()).collect()
}
