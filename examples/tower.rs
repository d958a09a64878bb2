//! A tower service, paced by one line: `cargo run --example tower --features tower`.

use http::{Request, Response};
use paceline::Paceline;
use paceline::client::PacedLayer;
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let limit = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\n";
    let quota = format!("name = \"shop\"\n[match]\nhosts = [\"shop.example\"]\n{limit}");
    std::fs::write(folder.path().join("shop.toml"), quota)?;
    let builder = Paceline::builder().store(folder.path().join("store.db"));
    let paceline = builder.quotas(folder.path()).open()?;

    let mut client = ServiceBuilder::new()
        .layer(PacedLayer::new(&paceline, "shop")) // the one line
        .service_fn(|request: Request<String>| async move {
            // Here a real client would send it.
            Ok::<_, std::io::Error>(Response::new(format!("answer to {}", request.uri())))
        });
    for id in 1..=5 {
        let request = Request::get(format!("https://shop.example/items/{id}"));
        let response = client.ready().await?.call(request.body(String::new())?).await?;
        println!("{id}: {}", response.status());
    }
    paceline.close().await;
    Ok(())
}
