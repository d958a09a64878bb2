//! `gateway`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use crate::render::time::duration;

/// Where it listens that is not told otherwise. 429 is what it answers where it must.
const PORT: u16 = 4290;

/// A proxy on this machine: any program's calls go out paced.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "paceline gateway [OPTIONS] [UPSTREAM]... [-- COMMAND...]")]
pub struct GatewayArgs {
    /// Serve these upstreams only [default: all that are declared]
    #[arg(value_name = "UPSTREAM")]
    pub upstreams: Vec<String>,
    /// Listen there: HOST:PORT, or a port [default: 127.0.0.1:4290; before a COMMAND any free port]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// How long a call waits for its turn before it is answered 429, where the caller does not say so
    /// itself (Paceline-Deadline)
    #[arg(long, value_name = "SPAN", value_parser = duration, default_value = "60s")]
    pub max_wait: Duration,
    /// Use what budgets keep for people (`reserve`) too
    #[arg(long)]
    pub use_reserve: bool,
    /// What callers must send as `Paceline-Token`; better set as PACELINE_GATEWAY_TOKEN, which no list of
    /// processes shows
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Start this beside it, with PACELINE_GATEWAY=http://127.0.0.1:PORT, and end with it and its status
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl GatewayArgs {
    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        let port = if self.command.is_empty() { PORT } else { 0 };
        self.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}

/// `127.0.0.1:4290`, `[::1]:4290`, `localhost:4290`, `:4290`, `4290`.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let here = |port: &str| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?)));
    let found = match text.rsplit_once(':') {
        None => here(text),
        Some(("" | "localhost", port)) => here(port),
        Some((host, port)) => {
            let host: Option<IpAddr> = host.parse().ok();
            host.zip(port.parse().ok()).map(SocketAddr::from)
        }
    };
    found.ok_or_else(|| "write an address and port such as 127.0.0.1:4290, or a port".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  paceline gateway                                # http://127.0.0.1:4290/UPSTREAM/path
  curl http://127.0.0.1:4290/distributor/v1/stock/9780000000002
  paceline gateway distributor -- python3 check.py    # finds it in PACELINE_GATEWAY
  http_proxy=http://127.0.0.1:4290 wget http://api.distributor.example/v1/stock/1

/UPSTREAM/path goes to the upstream's base_url (else the origin of its url, else the first host of
[match]), with the headers, secrets and limits of its quota file. A call waits for its turn; one
that would wait longer than --max-wait is answered 429 with Retry-After, and a text that names the
limit and the instant. What Paceline itself answers has the header Paceline-Reason.

A caller may send: Paceline-Deadline (a span or an instant), Paceline-Set (name=value&name=value:
columns), Paceline-Credential, Paceline-Token. None of them goes to the upstream.

It listens on this machine alone; elsewhere it needs a token. Ctrl-C and SIGTERM let the calls that
are out finish. With a COMMAND it ends with that, and with its status.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_several_ways() {
        for text in ["127.0.0.1:80", "localhost:80", ":80", "80"] {
            assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:80", "{text}");
        }
        assert_eq!(address("0.0.0.0:80").unwrap().to_string(), "0.0.0.0:80");
        assert_eq!(address("[::1]:80").unwrap().to_string(), "[::1]:80");
        for text in ["", "box:80", "1.2.3.4", "99999"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_is_the_librarys() {
        assert_eq!(paceline::gateway::MAX_WAIT, Duration::from_secs(60));
    }
}
