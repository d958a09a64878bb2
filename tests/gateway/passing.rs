//! What goes through, goes through as it is: paths, headers, bodies, redirects, HTTP/2.

use paceline::practice::{Answer, Config, Script};

use crate::support::gateway::{Gateway, client, read};
use crate::support::world::World;

const KEYED: &str = "headers = { Authorization = \"Bearer ${env:SHOP_KEY}\", Accept = \"application/json\", \
    X-Version = \"2\" }\n";

fn keyed() -> (World, Gateway) {
    let world = World::with(Config::new().keep_headers(), KEYED);
    let gateway = Gateway::start_with(&world, &[], &[("SHOP_KEY", "k3y-of-the-shop")]);
    (world, gateway)
}

#[test]
fn a_call_arrives_as_it_was_made() {
    let world = World::with(Config::new().keep_headers(), "");
    let gateway = Gateway::start(&world, &[]);
    let call = gateway.request("PUT", "/shop/v1/a%20b//c?q=1&x={y}").body("{\"n\": {m}}");
    let call = call.header("X-Own", "mine").header("Connection", "x-hop").header("X-Hop", "1");
    let answer = gateway.send(call.header("Paceline-Deadline", "30s"));
    assert_eq!((answer.status, answer.reason()), (200, ""), "{answer:?}");
    let arrival = world.arrivals().remove(0);
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("PUT", "/v1/a%20b//c"));
    assert_eq!(arrival.query.as_deref(), Some("q=1&x={y}"));
    assert_eq!(&arrival.body[..], b"{\"n\": {m}}");
    let headers = arrival.headers.unwrap();
    assert_eq!(headers["x-own"], "mine");
    assert_eq!(headers["content-length"], "10");
    assert_eq!(headers["host"], world.url("").strip_prefix("http://").unwrap());
    for stays in ["x-hop", "paceline-deadline"] {
        assert!(!headers.contains_key(stays), "{headers:?}");
    }
}

#[test]
fn an_answer_comes_back_as_it_is() {
    let answer = Answer::new(404).header("x-shop", "a").header("set-cookie", "c=1");
    let answer = answer.header("set-cookie", "d=2").body("no such thing");
    let world = World::with(Config::new().script(Script::new("/x", answer)), "");
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.text().as_str()), (404, "no such thing"));
    assert_eq!(answer.field("x-shop"), "a");
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(answer.reason(), "", "it is the upstream's own");
    let job = answer.field("paceline-job");
    let shown = world.json(&["show", job]);
    assert_eq!((&shown["state"], &shown["load"]), (&"failed".into(), &"gateway".into()));
    assert_eq!(shown["attempts"][0]["status"], 404);
}

#[test]
fn secrets_are_added_and_defaults_stand_in() {
    let (world, gateway) = keyed();
    let call = gateway.request("GET", "/shop/x").header("Authorization", "Bearer dummy");
    let answer = gateway.send(call.header("Accept", "text/csv"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let headers = world.arrivals().remove(0).headers.unwrap();
    assert_eq!(
        headers["authorization"], "Bearer k3y-of-the-shop",
        "whose quota is spent, the file says"
    );
    assert_eq!(
        (&headers["accept"], &headers["x-version"]),
        (&"text/csv".parse().unwrap(), &"2".parse().unwrap())
    );
    let shown = world.run(&["show", answer.field("paceline-job")]);
    assert!(!shown.stdout.contains("k3y"), "{shown}");
}

#[test]
fn a_key_in_the_query_is_added_and_never_stored() {
    let world = World::new(Config::new());
    world.quota("shop", "/{id}?key=${env:SHOP_KEY}", "");
    let gateway = Gateway::start_with(&world, &[], &[("SHOP_KEY", "k 3y")]);
    let answer = gateway.get("/shop/x?q=1");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(world.arrivals().remove(0).query.as_deref(), Some("q=1&key=k%203y"));
    let stored = "SELECT count(*) FROM job WHERE url LIKE '%/x?q=1&key=${env:SHOP_KEY}'
        AND NOT (url || columns) LIKE '%k%3y%'";
    assert_eq!(world.number(stored), 1);
}

#[test]
fn a_secret_that_the_caller_writes_out_is_not_stored() {
    let (world, gateway) = keyed();
    assert_eq!(gateway.get("/shop/first").status, 200);
    assert_eq!(gateway.get("/shop/x?key=k3y-of-the-shop").status, 200);
    assert_eq!(world.arrivals()[1].query.as_deref(), Some("key=k3y-of-the-shop"));
    let stored = "SELECT count(*) FROM job WHERE (url || columns) LIKE '%k3y-of%'";
    assert_eq!(world.number(stored), 0);
}

#[test]
fn a_redirect_is_the_callers_and_stays_in_the_gateway() {
    let inner = Answer::new(302).header("location", "/v1/next?x=1");
    let outer = Answer::new(301).header("location", "https://elsewhere.example/x");
    let config = Config::new().script(Script::new("/in", inner)).script(Script::new("/out", outer));
    let world = World::with(config, "");
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shop/in");
    assert_eq!((answer.status, answer.field("location")), (302, "/shop/v1/next?x=1"));
    let answer = gateway.get("/shop/out");
    assert_eq!((answer.status, answer.field("location")), (301, "https://elsewhere.example/x"));
    assert_eq!(world.count(), 2, "none was followed");
}

#[test]
fn http_2_is_spoken_without_asking() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let client = client().http2_prior_knowledge().no_proxy().build().unwrap();
    let url = format!("{}/shop/x", gateway.url);
    let version =
        gateway.runtime.block_on(async { client.get(&url).send().await.unwrap().version() });
    assert_eq!(version, reqwest::Version::HTTP_2);
    let posted = gateway.runtime.block_on(read(client.post(&url).body("x"))).unwrap();
    assert_eq!((posted.status, posted.reason()), (200, ""));
    let unknown = client.get(format!("{}/shp/x", gateway.url));
    let unknown = gateway.runtime.block_on(read(unknown)).unwrap();
    assert_eq!((unknown.status, unknown.reason()), (404, "unknown_upstream"));
}

#[test]
fn head_has_no_body_and_keeps_its_length() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let whole = gateway.get("/shop/x").body.len();
    let answer = gateway.send(gateway.request("HEAD", "/shop/x"));
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    // One digit more: the practice upstream counts its calls in the body.
    assert_eq!(answer.field("content-length"), whole.to_string());
}
