//! `read`: what saved answers mean. JSON lines in, readings out.

mod how;
mod saved;

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::sync::Arc;

use paceline::quota::Upstream;
use paceline::quota::library::{Library, LibraryError};
use paceline::reading::{Answer, Reading, explain, read};
use saved::Saved;
use serde_json::{Value, json};

use crate::args::tools::ReadArgs;
use crate::context::Context;
use crate::exit::Exit;

/// Reads answers until the input ends. A line that is none is told, and the others are read.
pub fn run(args: &ReadArgs, context: &Context) -> anyhow::Result<Exit> {
    let library = context.library();
    let named = args.upstream.as_deref().map(|name| library.get(name)).transpose()?;
    let explain = args.explain;
    let mut reader = Reader { library, named, explain, unknown: BTreeSet::new(), context };
    let mut input = std::io::stdin().lock();
    let mut exit = Exit::Done;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match reader.line(&line, number) {
            Ok(told) => {
                match told {
                    Told::Json(value) => context.out.json_line(&value)?,
                    Told::Text(text) => context.out.text(&text)?,
                }
                // Whoever feeds lines one by one waits for each answer.
                context.out.flush()?;
            }
            Err(problem) => {
                exit = Exit::Usage;
                context.complain(&format!("line {number}: {problem}"));
            }
        }
    }
    Ok(exit)
}

/// What comes out for one answer.
enum Told {
    Json(Value),
    Text(String),
}

struct Reader<'c> {
    library: Arc<Library>,
    named: Option<Arc<Upstream>>,
    explain: bool,
    /// Names without a quota file that were told already.
    unknown: BTreeSet<String>,
    context: &'c Context,
}

impl Reader<'_> {
    fn line(&mut self, line: &[u8], number: u64) -> Result<Told, String> {
        let saved = Saved::read(line)?;
        let received_at = saved.received_at.unwrap_or_else(|| self.context.wall());
        let upstream = self.upstream(&saved, number)?;
        let answer = Answer {
            method: &saved.method,
            url: &saved.url,
            received_at,
            status: saved.status,
            headers: &saved.headers,
            body: saved.body.as_bytes(),
        };
        Ok(self.told(saved.id.clone(), upstream.as_deref(), &answer, number))
    }

    fn told(
        &self,
        id: Value,
        upstream: Option<&Upstream>,
        answer: &Answer<'_>,
        number: u64,
    ) -> Told {
        if !self.explain {
            return Told::Json(told(id, &read(upstream, answer)));
        }
        let explanation = explain(upstream, answer);
        if !self.context.global.json {
            let name = id.as_str().map_or_else(|| format!("line {number}"), str::to_owned);
            return Told::Text(how::text(&name, &explanation));
        }
        let mut value = told(id, &explanation.reading);
        if let Value::Object(fields) = &mut value {
            fields.insert("explain".to_owned(), how::json(&explanation.steps));
        }
        Told::Json(value)
    }

    /// The upstream that the line names, else that of `--upstream`, else the one that its URL matches.
    fn upstream(&mut self, saved: &Saved, number: u64) -> Result<Option<Arc<Upstream>>, String> {
        let by_url = || self.library.match_url(&saved.url);
        let Some(name) = &saved.upstream else {
            return Ok(self.named.clone().or_else(by_url));
        };
        match self.library.get(name) {
            Ok(upstream) => Ok(Some(upstream)),
            Err(error @ LibraryError::Unknown { .. }) => {
                let found = by_url();
                if self.unknown.insert(name.clone()) {
                    let how = found.as_ref().map_or("the built-in readers".to_owned(), |found| {
                        format!("the rules of {}", found.name)
                    });
                    self.context.note(&format!("line {number}: {error}; read by {how}"));
                }
                Ok(found)
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn told(id: Value, reading: &Reading) -> Value {
    json!({
        "id": id, "reason": reading.reason, "retryable": reading.retryable,
        "retry_at": paceline::report::instant(reading.retry_at), "source": reading.source,
        "limit": reading.limit, "detail": reading.detail,
    })
}
