//! As `http_proxy` of programs that know nothing of gateways.

use paceline::practice::Config;

use crate::support::gateway::{Gateway, client, read};
use crate::support::world::World;

/// A client that sends everything to the gateway as its proxy.
fn through(gateway: &Gateway) -> reqwest::Client {
    let proxy = reqwest::Proxy::http(&gateway.url).unwrap();
    client().proxy(proxy).build().unwrap()
}

#[test]
fn a_declared_host_is_called_within_its_limits() {
    let world = World::new(Config::new());
    let text = "schema = 1\nname = \"shop\"\n[match]\nhosts = [\"127.0.0.1\"]\npaths = [\"/v1/*\"]\n\
        [[limit]]\nname = \"daily\"\nkind = \"rolling\"\namount = 1\nper = \"24h\"\n";
    world.home.write("quotas/shop.toml", text);
    let gateway = Gateway::start(&world, &["--max-wait", "5s"]);
    let client = through(&gateway);
    let get = |url: String| gateway.runtime.block_on(read(client.get(url))).unwrap();
    let answer = get(world.url("/v1/x?y=1"));
    assert_eq!((answer.status, answer.reason()), (200, ""), "{answer:?}");
    let answer = get(world.url("/v1/x"));
    assert_eq!((answer.status, answer.json()["limit"].as_str()), (429, Some("daily")));
    assert_eq!(world.arrivals()[0].query.as_deref(), Some("y=1"));
}

#[test]
fn it_is_no_open_proxy() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let other = world.url("/x");
    let answer = gateway.runtime.block_on(read(through(&gateway).get(other))).unwrap();
    assert_eq!((answer.status, answer.reason()), (403, "undeclared"));
    assert!(answer.text().contains("hosts = ["), "{}", answer.text());
    assert_eq!(world.count(), 0);
}
