//! A practice upstream by itself: strict, counting, on 127.0.0.1 until it is ended.
//!
//! ```sh
//! cargo run --release --example upstream -- 18090              # takes all that comes
//! cargo run --release --example upstream -- 18090 200 20       # 200 a second, a bucket of 20
//! curl http://127.0.0.1:18090/_stats
//! ```

use std::io;
use std::time::Duration;

use paceline::practice::{Config, Limit, Practice, Rule};

const USAGE: &str = "usage: upstream PORT [RATE BURST]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments: Result<Vec<u64>, _> =
        std::env::args().skip(1).map(|text| text.parse()).collect();
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, USAGE);
    let (port, rule) = match arguments.map_err(|_| usage())?.as_slice() {
        [port] => (*port, None),
        [port, units, burst] => {
            let limit = Limit::Bucket { units: *units, per: Duration::from_secs(1), burst: *burst };
            (*port, Some(Rule::new("plan", limit)))
        }
        _ => return Err(usage()),
    };
    let config = Config::new().port(u16::try_from(port).map_err(|_| usage())?);
    let practice = Practice::start(rule.into_iter().fold(config, Config::rule)).await?;
    println!("{}", practice.url("/"));
    tokio::signal::ctrl_c().await?;
    practice.stop().await;
    Ok(())
}
