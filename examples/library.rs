//! A program that keeps an upstream's limits: `cargo run --example library`.

use paceline::Paceline;
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
    for id in 1..=5 {
        let answer = paceline.call("shop").url(practice.url(&format!("/items/{id}"))).await?;
        println!("{id}: {:?} {}", answer.status, answer.reason);
    }
    paceline.close().await;
    Ok(())
}
