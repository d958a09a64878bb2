//! `[auth]`: tokens are fetched as often as they live, cost nothing, and are kept nowhere.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use paceline::practice::Config;
use rsa::pkcs1v15::{Signature, VerifyingKey};
use rsa::pkcs8::{EncodePrivateKey as _, LineEnding};
use rsa::signature::Verifier as _;
use serde_json::{Value, json};

use crate::support::process::until;
use crate::support::tokens::{Manner, TOKEN, TokenServer};
use crate::support::world::{STORE, World};

const SECRET: &str = "client-hunter2-secret";
const REFRESH: &str = "refresh-hunter2-token";

/// What every process finds.
const SET: [(&str, &str); 2] = [("SHOP_SECRET", SECRET), ("SHOP_REFRESH", REFRESH)];

/// Quota file `shop`: calls `/api/{id}` with a token for a refresh token; `text` follows.
pub fn refreshing(world: &World, server: &TokenServer, text: &str) {
    let (api, token) = (server.url("/api/{id}"), server.url("/token"));
    world.home.quota(
        "shop",
        &format!(
            r#"
[request]
url = "{api}"
headers = {{ Authorization = "Bearer ${{token}}" }}
[auth]
kind = "oauth-refresh"
token_url = "{token}"
client_id = "shop-client"
client_secret = "${{env:SHOP_SECRET}}"
refresh_token = "${{env:SHOP_REFRESH}}"
[[limit]]
name = "daily"
kind = "budget"
amount = 1000
per = "day"
time_zone = "UTC"
{text}"#
        ),
    );
}

const RATE: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\nburst = 1\n\
    counted = \"bucket\"\n";

/// No file of the store, and nothing that is shown, holds any of them.
pub fn nothing_is_kept(world: &World, secrets: &[&str]) {
    let is_clean = |what: &str, bytes: &[u8]| {
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {what}");
        }
    };
    for file in [STORE.to_owned(), format!("{STORE}-wal")] {
        is_clean(&file, &std::fs::read(world.home.path(&file)).unwrap_or_default());
    }
    for arguments in [
        &["status", "--json"][..],
        &["why", "shop"],
        &["log", "--json"],
        &["show", "1", "--json"],
        &["results", "--json"],
        &["quotas", "show", "shop"],
    ] {
        let ran = world.run(arguments);
        is_clean(&arguments.join(" "), ran.stdout.as_bytes());
        is_clean(&arguments.join(" "), ran.stderr.as_bytes());
    }
}

#[test]
fn as_many_tokens_are_fetched_as_lives_are_lived_and_never_two_at_once() {
    let life = Duration::from_secs(2);
    let server = TokenServer::start(Manner { life, ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, &format!("{RATE}[keep]\nbody = \"all\"\n"));
    world.add(0, 80);
    let begun = Instant::now();
    let ran = world.start_with(&["run", "-v", "--concurrency", "8"], &SET).finish();
    assert_eq!(ran.code, 0, "{ran}");
    // Each is replaced a second before its end: never earlier, and nearly as soon.
    let lived = begun.elapsed().as_secs() as usize;
    assert!((3..=lived + 1).contains(&server.issued()), "{} in {lived} s", server.issued());
    assert_eq!((server.most_at_once(), server.answered(401)), (1, 0));
    assert_eq!((server.answered(200), world.spent()), (80, 80));
    let asked = server.asked();
    let form = &asked[0].form;
    assert_eq!(
        (form["grant_type"].as_str(), form["refresh_token"].as_str()),
        ("refresh_token", REFRESH)
    );
    assert_eq!(
        (form["client_id"].as_str(), form["client_secret"].as_str()),
        ("shop-client", SECRET)
    );
    assert!(!ran.stderr.contains("hunter2"), "{ran}");
    nothing_is_kept(&world, &[TOKEN, SECRET, REFRESH]);
    let kept = world.run(&["show", "1", "--json"]).stdout;
    assert!(kept.contains("your token was ${token}"), "{kept}");
}

#[test]
fn a_token_server_in_trouble_is_waited_for_and_costs_no_unit() {
    let refusals = vec![(503, None, ""), (503, Some("1"), "")];
    let server = TokenServer::start(Manner { refusals, ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, "");
    world.add(0, 30);
    // Whoever does not wait is told why, and that it passes.
    let ran = world.start_with(&["run", "-v", "--max-wait", "0"], &SET).finish();
    assert_eq!(ran.code, 75, "{ran}");
    assert!(ran.stderr.contains("answered 503; next try in"), "{ran}");
    assert_eq!((server.answered(200), world.spent()), (0, 0));
    let why = world.json(&["why", "shop"]);
    assert_eq!(why[0]["reason"], "no_token", "{why}");
    assert!(why[0]["until"].is_string() && why[0]["state"] == "blocked", "{why}");
    let ran = world.start_with(&["run", "-v"], &SET).finish();
    assert_eq!(ran.code, 0, "{ran}");
    let asked = server.asked();
    assert_eq!(asked.len(), 3, "{ran}");
    assert!(asked[2].at - asked[1].at >= Duration::from_secs(1), "Retry-After");
    assert_eq!((server.answered(200), world.spent()), (30, 30));
    assert_eq!(world.number("SELECT count(*) FROM attempt"), 30);
}

#[test]
fn a_slow_token_server_delays_no_other_upstream() {
    let delay = Duration::from_secs(3);
    let server = TokenServer::start(Manner { delay, ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, RATE);
    world.quota("other", "/other/{id}", RATE);
    world.add(0, 10);
    world.add_to("other", 0, 30, &[]);
    let begun = Instant::now();
    let run = world.start_with(&["run"], &SET);
    until("the other upstream's calls", || world.count() == 30);
    assert!(begun.elapsed() < delay && server.calls().is_empty(), "beside the wait");
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!((server.answered(200), server.issued(), world.spent()), (10, 1, 10));
    // Nothing was claimed meanwhile that could not go: not much more than was sent.
    let claimed = world.number("SELECT call_seq FROM store");
    assert!(claimed < 80, "{claimed} calls were made for 40 jobs");
}

#[test]
fn a_service_account_signs_for_its_token() {
    let key = rsa::PrivateKey::new(&mut rand::rng(), 2048).unwrap();
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    let server = TokenServer::start(Manner::default());
    let world = World::new(Config::new());
    let file = json!({
        "type": "service_account", "client_email": "robot@p.example", "private_key_id": "k1",
        "private_key": pem.as_str(), "token_uri": server.url("/token"),
    });
    world.home.write("key.json", &file.to_string());
    let text = "headers = { Authorization = \"Bearer ${token}\" }\n[auth]\n\
        kind = \"google-service-account\"\nkey_file = \"${env:KEY_FILE}\"\n\
        scopes = [\"https://a.example/one\", \"https://a.example/two\"]\n";
    let url = server.url("/api/{id}");
    world.home.quota("shop", &format!("[request]\nurl = \"{url}\"\n{text}"));
    world.add(0, 3);
    let ran = world.start_with(&["run", "-v"], &[("KEY_FILE", "key.json")]).finish();
    assert_eq!((ran.code, server.issued()), (0, 1), "{ran}");

    let form = server.asked().remove(0).form;
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let (signed, signature) = form["assertion"].rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let public = VerifyingKey::<sha2::Sha256>::new(key.to_public_key());
    public.verify(signed.as_bytes(), &Signature::try_from(&*signature).unwrap()).unwrap();
    let part = |text: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    };
    let (header, claims) = signed.split_once('.').unwrap();
    assert_eq!(part(header), json!({"typ": "JWT", "alg": "RS256", "kid": "k1"}));
    let claims = part(claims);
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("robot@p.example"), &file["token_uri"]));
    assert_eq!(claims["scope"], "https://a.example/one https://a.example/two");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    let lines: Vec<&str> = pem.lines().collect();
    nothing_is_kept(&world, &[TOKEN, &form["assertion"], lines[1]]);

    // A key file that is not there: what to do is said, and it goes on once it is.
    world.add(10, 1);
    let run = |path: &str| world.start_with(&["run"], &[("KEY_FILE", path)]).finish();
    let ran = run("nowhere.json");
    assert_eq!(ran.code, 4, "{ran}");
    let missing =
        "the key file nowhere.json (by KEY_FILE) cannot be read (No such file or directory";
    let fix = "download a JSON key of the service account, and set KEY_FILE to its path";
    assert!(ran.stderr.contains(missing) && ran.stderr.contains(fix), "{ran}");
    let told = world.run(&["why", "shop"]).stdout;
    assert!(told.contains(missing) && told.contains(fix), "{told}");
    // A key that is cut; and one that stands in the variable itself, where it is a secret and not told.
    let cut = file.to_string().replace(lines[3], "");
    world.home.write("cut.json", &cut);
    let ran = run("cut.json");
    assert!(
        ran.stderr.contains(
            "the key file cut.json (by KEY_FILE) holds a `private_key` that cannot sign ("
        ),
        "{ran}"
    );
    assert!(ran.stderr.contains(fix), "{ran}");
    let ran = run(&cut);
    assert!(
        ran.stderr.contains("the key in KEY_FILE holds a `private_key` that cannot sign ("),
        "{ran}"
    );
    nothing_is_kept(&world, &[lines[1], "robot@p.example"]);
    assert_eq!(run("key.json").code, 0);
}

#[test]
fn a_client_shows_who_it_is_in_a_header_where_it_is_asked_to() {
    let server = TokenServer::start(Manner::default());
    let world = World::new(Config::new());
    let (api, token) = (server.url("/api/{id}"), server.url("/token"));
    let text = format!(
        "[request]\nurl = \"{api}\"\nheaders = {{ Authorization = \"Bearer ${{token}}\", \
         User-Agent = \"a-client-of-mine\" }}\n[auth]\nkind = \"client-credentials\"\n\
         token_url = \"{token}\"\nclient_id = \"a b\"\nclient_secret = \"${{env:SHOP_SECRET}}\"\n\
         client_auth = \"basic\"\nscopes = [\"one\", \"two\"]\nform = {{ audience = \"https://api\" }}\n"
    );
    world.home.quota("shop", &text);
    world.add(0, 1);
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!(ran.code, 0, "{ran}");
    let asked = server.asked().remove(0);
    let basic = format!("Basic {}", STANDARD.encode(format!("a+b:{SECRET}")));
    assert_eq!(asked.headers["authorization"], basic);
    assert_eq!(asked.headers["user-agent"], "a-client-of-mine");
    let form =
        [("audience", "https://api"), ("grant_type", "client_credentials"), ("scope", "one two")];
    let told: Vec<_> =
        asked.form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(told, form);
}

mod command {
    use super::*;

    /// Quota file `shop` with a command that is a line of shell.
    fn with(world: &World, server: &TokenServer, line: &str) {
        let api = server.url("/api/{id}");
        let line = serde_json::to_string(line).unwrap();
        let text = format!(
            "[request]\nurl = \"{api}\"\nheaders = {{ Authorization = \"Bearer ${{token}}\" }}\n\
             [auth]\nkind = \"command\"\ncommand = [\"bash\", \"-c\", {line}, \"x\", \"${{env:SHOP_SECRET}}\"]\n"
        );
        world.home.quota("shop", &text);
    }

    #[test]
    fn what_a_program_writes_is_the_token() {
        let server = TokenServer::start(Manner::default());
        let world = World::new(Config::new());
        // Any program; this one asks the server.
        let url = server.url("/token");
        let line = format!(
            "echo run >> runs; exec 3<>/dev/tcp/127.0.0.1/{}; printf 'POST /token HTTP/1.0\\r\\n\
             content-length: 0\\r\\n\\r\\n' >&3; tail -n 1 <&3",
            url.rsplit(':').next().unwrap().trim_end_matches("/token")
        );
        with(&world, &server, &line);
        world.add(0, 20);
        let ran = world.start_with(&["run"], &SET).finish();
        assert_eq!((ran.code, server.answered(200)), (0, 20), "{ran}");
        assert_eq!(std::fs::read_to_string(world.home.path("runs")).unwrap(), "run\n");
        nothing_is_kept(&world, &[TOKEN, SECRET]);
    }

    #[test]
    fn a_program_that_fails_is_told_by_its_last_line_without_secrets() {
        let server = TokenServer::start(Manner::default());
        let world = World::new(Config::new());
        with(&world, &server, "echo hm >&2; echo \"no login with $1\" >&2; exit 3");
        world.add(0, 2);
        let ran = world.start_with(&["run"], &SET).finish();
        assert_eq!((ran.code, server.calls().len()), (4, 0), "{ran}");
        assert!(ran.stderr.contains("no login with ${env:SHOP_SECRET}"), "{ran}");
        assert!(!ran.stderr.contains(SECRET) && !ran.stderr.contains("hm"), "{ran}");
    }

    #[test]
    fn a_program_that_writes_nothing_is_told_with_what_to_do() {
        let server = TokenServer::start(Manner::default());
        let world = World::new(Config::new());
        with(&world, &server, "true");
        world.add(0, 1);
        let ran = world.start_with(&["run"], &SET).finish();
        assert_eq!(ran.code, 4, "{ran}");
        let told = "`bash` gave no token: it is empty; see that it writes the token alone";
        assert!(ran.stderr.contains(told), "{ran}");
    }

    #[test]
    fn a_program_that_hangs_ends_with_the_run() {
        let server = TokenServer::start(Manner::default());
        let world = World::new(Config::new());
        with(&world, &server, "echo $$ > pid; exec sleep 600");
        world.add(0, 2);
        let run = world.start_with(&["run"], &SET);
        let pid = || std::fs::read_to_string(world.home.path("pid")).unwrap_or_default();
        until("the program runs", || pid().ends_with('\n'));
        run.signal("TERM");
        let ran = run.finish();
        assert_eq!(ran.code, 130, "{ran}");
        let gone = || !std::path::Path::new(&format!("/proc/{}/fd/0", pid().trim())).exists();
        until("the program is gone", gone);
        assert_eq!(world.spent(), 0);
        world.nothing_is_left_over();
    }
}
