//! What a gateway adds to a call: the same calls at the same pace, directly and through it, by turns in one
//! run on this machine.
//!
//! `cargo bench --bench gateway`, or with the calls a second: `cargo bench --bench gateway -- 500`

#![expect(clippy::unwrap_used, reason = "a bench may panic")]
#![expect(clippy::disallowed_methods, reason = "what is measured here is the machine's own time")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use paceline::practice::{Config, Practice};

/// Turns of each way.
const TURNS: usize = 5;

/// How long a turn takes.
const TURN: Duration = Duration::from_secs(2);

/// A limit that is asked and never binds.
const QUOTA: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"100000/s\"\nburst = 1000\n\
    counted = \"bucket\"\n";

#[tokio::main]
async fn main() {
    // `cargo bench` has a flag of its own among the arguments.
    let rate = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(500);
    let practice = Practice::start(Config::new()).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let quota = format!("[request]\nbase_url = \"{}\"\n{QUOTA}", practice.url("/"));
    std::fs::write(home.path().join("shop.toml"), quota).unwrap();
    let (mut gateway, through) = start(home.path());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ways = [("directly", practice.url("")), ("through the gateway", format!("{through}/shop"))];
    let mut took = [Vec::new(), Vec::new()];
    for (_, base) in &ways {
        turn(&client, base, rate, Duration::from_secs(1)).await;
    }
    for _ in 0..TURNS {
        for ((_, base), took) in ways.iter().zip(&mut took) {
            took.extend(turn(&client, base, rate, TURN).await);
        }
    }
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    println!("{rate} calls a second, {} each way, in microseconds:", took[0].len());
    println!("{:22}{:>9}{:>9}{:>9}{:>9}", "", "p50", "p90", "p99", "most");
    took.iter_mut().for_each(|took| took.sort_unstable());
    for ((name, _), took) in ways.iter().zip(&took) {
        row(name, &[50, 90, 99, 100].map(|percent| at(took, percent).as_micros()));
    }
    row(
        "added",
        &[50, 90, 99, 100]
            .map(|percent| at(&took[1], percent).saturating_sub(at(&took[0], percent)).as_micros()),
    );
}

fn row(name: &str, figures: &[u128]) {
    let figures: String = figures.iter().map(|figure| format!("{figure:>9}")).collect();
    println!("{name:22}{figures}");
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent / 100).min(sorted.len() - 1);
    sorted.get(place).copied().unwrap()
}

fn start(home: &std::path::Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paceline"))
        .args(["gateway", "--listen", "127.0.0.1:0", "--quiet", "--quotas"])
        .arg(home)
        .arg("--store")
        .arg(home.join("store.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
    (child, told.trim().to_owned())
}

/// Calls that begin at their instants, whether or not those before have been answered.
async fn turn(client: &reqwest::Client, base: &str, rate: u32, span: Duration) -> Vec<Duration> {
    let begun = tokio::time::Instant::now();
    let calls = rate * u32::try_from(span.as_secs()).unwrap();
    let mut out = tokio::task::JoinSet::new();
    for n in 0..calls {
        tokio::time::sleep_until(begun + span * n / calls).await;
        let request = client.get(format!("{base}/v1/stock/{n}"));
        out.spawn(async move {
            let sent = Instant::now();
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_success(), "{answer:?}");
            answer.bytes().await.unwrap();
            sent.elapsed()
        });
    }
    out.join_all().await
}
