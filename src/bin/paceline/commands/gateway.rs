//! `gateway`: a proxy on this machine, alone or beside a command.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use paceline::client::Paceline;
use paceline::dispatch::Event;
use paceline::gateway::{Gateway, GatewayError, Options, base_url};
use serde_json::json;
use tokio::sync::watch;
use url::Url;

use super::run::leave;
use super::run::progress::Progress;
use crate::args::gateway::GatewayArgs;
use crate::child::{NotStarted, code_of, passing_signals, start};
use crate::context::Context;
use crate::exit::{Exit, Usage, wrong};

/// The token, where no flag gives it.
const TOKEN: &str = "PACELINE_GATEWAY_TOKEN";

/// Variables by which clients of HTTP are told to use a proxy; ours is one.
const PROXIES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// Serves until it is told to leave.
pub async fn run(args: GatewayArgs, context: &Context) -> anyhow::Result<Exit> {
    check_names(&args, context)?;
    let progress = Progress::in_lines(context);
    let hear = Arc::new(move |event: &Event| progress.hear(event));
    let paceline = Paceline::telling(context.store()?, context.library(), hear);
    let gateway = open(&args, paceline.clone()).await?;
    check_proxies(gateway.at())?;
    let exit = match args.command.as_slice() {
        [] => {
            let leave = leave::on_signals(|| {})?;
            tell(&args, gateway.at(), context)?;
            gateway.serve(leave).await;
            Exit::Done
        }
        command => beside(command, gateway, context).await?,
    };
    paceline.close().await;
    Ok(exit)
}

/// Serves as long as a command runs.
async fn beside(command: &[OsString], gateway: Gateway, context: &Context) -> anyhow::Result<Exit> {
    let url = format!("http://{}", gateway.at());
    let mut child = match start(command, &[("PACELINE_GATEWAY", &url)]) {
        Ok(child) => child,
        Err(NotStarted { told, code }) => {
            context.complain(&format!("error: {told}"));
            return Ok(Exit::Command(code));
        }
    };
    let (tell, leave) = watch::channel(false);
    let ends = async {
        let status = passing_signals(&mut child).await;
        // Calls that something of it left behind are finished.
        let _ = tell.send(true);
        status
    };
    let (status, ()) = tokio::join!(ends, gateway.serve(leave));
    Ok(Exit::Command(code_of(status?)))
}

/// What is wrong with an upstream that was named is told at once, and not to its first caller.
fn check_names(args: &GatewayArgs, context: &Context) -> anyhow::Result<()> {
    for name in &args.upstreams {
        if base_url(&*context.upstream(name)?).is_none() {
            return wrong(format!(
                "the quota file of {name} does not say where its calls go: write base_url = \
                 \"https://...\" under [request]"
            ));
        }
    }
    Ok(())
}

async fn open(args: &GatewayArgs, paceline: Paceline) -> anyhow::Result<Gateway> {
    let token = args.token.clone().or_else(|| std::env::var(TOKEN).ok());
    let options = Options {
        listen: args.at(),
        upstreams: args.upstreams.clone(),
        max_wait: args.max_wait,
        use_reserve: args.use_reserve,
        token: token.filter(|token| !token.is_empty()),
    };
    match Gateway::bind(paceline, options).await {
        Err(error @ GatewayError::Open(_)) => {
            Err(Usage(format!("{error}; set {TOKEN}, or listen on 127.0.0.1")).into())
        }
        bound => Ok(bound?),
    }
}

/// Its own calls would come back to it, each with a permit of its own.
fn check_proxies(at: SocketAddr) -> anyhow::Result<()> {
    let leads_here = |name: &&&str| {
        let url = std::env::var(name).ok().and_then(|url| Url::parse(&url).ok());
        let port = url.as_ref().and_then(Url::port_or_known_default);
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        port == Some(at.port()) && (host == "localhost" || host == at.ip().to_string())
    };
    match PROXIES.iter().find(leads_here) {
        Some(name) => wrong(format!(
            "{name} leads to this gateway itself; set it for your programs, and not for the gateway"
        )),
        None => Ok(()),
    }
}

fn tell(args: &GatewayArgs, at: SocketAddr, context: &Context) -> anyhow::Result<()> {
    let url = format!("http://{at}");
    match context.global.json {
        true => context.out.json(&json!({ "gateway": url }))?,
        false => context.out.text(&url)?,
    }
    context.out.flush().context("the address cannot be told")?;
    let what = match args.upstreams.as_slice() {
        [] => "every declared upstream".to_owned(),
        names => names.join(", "),
    };
    context.note(&format!("serving {what}: call {url}/UPSTREAM/path; Ctrl-C ends it"));
    Ok(())
}
