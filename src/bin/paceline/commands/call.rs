//! `call`: one call within the limits, its answer printed.

mod printed;

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use base64::Engine as _;
use paceline::Paceline;
use paceline::client::Answer;
use paceline::job::JobState;
use serde_json::{Value, json};

use super::refused;
use crate::args::doors::{CallArgs, Terms};
use crate::args::select::columns;
use crate::commands::run::leave::Signals;
use crate::commands::run::lines::told;
use crate::context::Context;
use crate::exit::{Exit, Usage, wrong};
use crate::render::text::complain;
use printed::Printed;

/// Makes one call.
pub async fn run(mut args: CallArgs, context: &Context) -> anyhow::Result<Exit> {
    find_upstream(&mut args, context)?;
    args.output = args.output.filter(|path| path.as_os_str() != "-");
    let parts = args.data.iter().map(|typed| data(typed)).collect::<anyhow::Result<Vec<_>>>()?;
    let body = (!parts.is_empty()).then(|| parts.join(&b'&'));
    let printed =
        Arc::new(Printed::new(args.output.as_deref(), args.include && !context.global.json));
    printed.check()?;
    let paceline = handle(&args.terms, waits(&args.terms), context)?;
    let mut call = paceline.call(args.upstream.as_str());
    if let Some(url) = &args.url {
        call = call.url(url);
    }
    if let Some(method) = &args.method {
        call = call.method(method);
    }
    for header in &args.header {
        call = call.header(&header.name, &header.value);
    }
    if let Some(body) = body {
        call = call.body(body);
    }
    if !context.global.json || args.output.is_some() {
        let spool: Arc<dyn paceline::dispatch::transport::Spool> = Arc::clone(&printed) as _;
        call = call.into(spool);
    }
    let Terms { max_wait, use_reserve, .. } = args.terms;
    call = call.columns(columns(&args.set)).use_reserve(use_reserve);
    if let Some(name) = &args.terms.credential {
        call = call.credential(name);
    }
    if let Some(span) = max_wait {
        call = call.max_wait(span);
    }
    if let Some(at) = deadline(&args.terms, context)? {
        call = call.deadline(at);
    }
    let mut signals = Signals::new()?;
    let answered = tokio::select! {
        answered = call => Some(answered),
        () = signals.next() => None,
    };
    paceline.close().await;
    match answered {
        Some(Ok(answer)) => tell(&answer, &args, &printed, context),
        Some(Err(error)) => refused::tell(error, &args.upstream, context),
        None => Ok(Exit::Interrupted),
    }
}

/// A URL alone belongs to the upstream whose `[match]` has it.
fn find_upstream(args: &mut CallArgs, context: &Context) -> anyhow::Result<()> {
    let named = &args.upstream;
    let is_url = ["http://", "https://"].iter().any(|scheme| named.starts_with(scheme));
    if args.url.is_some() || !is_url {
        context.upstream(named)?;
        return Ok(());
    }
    let Some(upstream) = context.library().match_url(named) else {
        return wrong(format!(
            "no quota file's [match] has {named}; name its upstream: paceline call UPSTREAM {named}"
        ));
    };
    args.url = Some(std::mem::replace(&mut args.upstream, upstream.name.clone()));
    Ok(())
}

/// Whoever does not wait for long is told at its end what for.
fn waits(terms: &Terms) -> bool {
    terms.max_wait.is_none() && terms.deadline.is_none()
}

/// Over the usual store, with what happens meanwhile told on stderr; `blocks`: refusals too.
pub fn handle(terms: &Terms, blocks: bool, context: &Context) -> anyhow::Result<Paceline> {
    let (quiet, verbose) = (context.global.quiet, context.global.verbose > 0);
    let waits = waits(terms);
    let times = context.times();
    let tell = move |event: &paceline::dispatch::Event| {
        use paceline::dispatch::Event;
        let is_news = match event {
            Event::Waiting { .. } => waits,
            Event::Blocked { .. } => blocks || verbose,
            Event::StoreTrouble { .. } => true,
            _ => verbose,
        };
        if let Some(line) = told(event, &times).filter(|_| is_news && !quiet) {
            complain(&line);
        }
    };
    Ok(Paceline::telling(context.store()?, context.library(), Arc::new(tell)))
}

/// `--deadline`, as an instant.
pub fn deadline(
    terms: &Terms,
    context: &Context,
) -> anyhow::Result<Option<paceline::clock::Timestamp>> {
    match terms.deadline.map(|moment| moment.to_come(&context.times())) {
        Some(None) => wrong("--deadline is at no instant of this zone"),
        at => Ok(at.flatten()),
    }
}

/// What `--data` says.
fn data(typed: &OsStr) -> anyhow::Result<Vec<u8>> {
    match typed.as_bytes().split_first() {
        Some((b'@', b"-")) => {
            let mut read = Vec::new();
            std::io::stdin().lock().read_to_end(&mut read)?;
            Ok(read)
        }
        Some((b'@', path)) => {
            let path = std::path::Path::new(OsStr::from_bytes(path));
            let unread = |error| Usage(format!("`{}` cannot be read: {error}", path.display()));
            Ok(fs::read(path).map_err(unread)?)
        }
        _ => Ok(typed.as_bytes().to_vec()),
    }
}

fn tell(
    answer: &Answer,
    args: &CallArgs,
    printed: &Printed,
    context: &Context,
) -> anyhow::Result<Exit> {
    let exit = if answer.is_success() { Exit::Done } else { Exit::Failed };
    if context.global.json {
        context.out.json(&json_of(answer, &args.upstream, exit))?;
        if args.output.is_some() {
            printed.finish(context)?;
        }
        return Ok(exit);
    }
    if exit == Exit::Done || !args.fail {
        printed.finish(context)?;
    }
    if exit != Exit::Done {
        let status = answer.status.map_or("no answer".to_owned(), |status| status.to_string());
        let unsure = match answer.state {
            JobState::Unsure => "; it may have been done, and is not sent again",
            _ => "",
        };
        let (upstream, reason) = (&args.upstream, answer.reason);
        let line = format!("{upstream}: {status} {reason}: {}{unsure}", answer.detail);
        context.complain(&line);
    }
    Ok(exit)
}

fn json_of(answer: &Answer, upstream: &str, exit: Exit) -> Value {
    let mut value = json!({
        "job": answer.job, "upstream": upstream, "state": answer.state, "status": answer.status,
        "reason": answer.reason, "detail": answer.detail, "attempts": answer.attempts,
        "headers": answer.headers, "exit": exit.code(),
    });
    // Bytes that are no text are packed as text.
    let (name, body) = match std::str::from_utf8(&answer.body) {
        Ok(text) => ("body", Value::from(text)),
        Err(_) => {
            let packed = base64::engine::general_purpose::STANDARD.encode(&answer.body);
            ("body_base64", Value::from(packed))
        }
    };
    if let Value::Object(fields) = &mut value {
        fields.insert(name.to_owned(), body);
        if answer.cut {
            fields.insert("cut".to_owned(), Value::Bool(true));
        }
    }
    value
}
