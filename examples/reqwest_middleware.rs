//! A reqwest client, paced by one line: `cargo run --example reqwest_middleware --features reqwest-middleware`.

use paceline::Paceline;
use paceline::client::PacedMiddleware;
use paceline::practice::{Config, Practice};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let practice = Practice::start(Config::new()).await?; // stands in for somebody else's API
    let folder = tempfile::tempdir()?;
    let limit = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\n";
    let quota = format!("name = \"shop\"\n[request]\nbase_url = \"{}\"\n{limit}", practice.url(""));
    std::fs::write(folder.path().join("shop.toml"), quota)?;
    let builder = Paceline::builder().store(folder.path().join("store.db"));
    let paceline = builder.quotas(folder.path()).open()?;
    // Which cryptography TLS uses is the program's choice.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "chosen already")?;

    let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
        .with(PacedMiddleware::new(&paceline, "shop")) // the one line
        .build();
    for id in 1..=5 {
        let response = client.get(practice.url(&format!("/items/{id}"))).send().await?;
        println!("{id}: {} {}", response.status(), response.text().await?);
    }
    paceline.close().await;
    Ok(())
}
