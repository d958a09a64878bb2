//! The presets: each says where its figures are from, and works with the columns and secrets that it
//! asks for; without them it says what is missing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Real processes are waited for by the machine's own clock.
#![allow(clippy::disallowed_methods)]
#![cfg(all(feature = "cli", feature = "practice"))]

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use paceline::practice::{Config, Practice};
use paceline::quota::auth::Auth;
use paceline::quota::library::Library;
use paceline::report::limits::describe;
use rsa::pkcs8::{EncodePrivateKey as _, LineEnding};
use serde_json::Value;
use support::Home;
use support::tokens::{Manner, TOKEN, TokenServer};

/// A preset, with the least that it must be given.
struct Preset {
    name: &'static str,
    /// What follows `add NAME`.
    arguments: &'static [&'static str],
    /// The variables that it takes secrets from.
    secrets: &'static [&'static str],
    /// The call that this makes.
    call: &'static str,
    /// Columns that nobody can supply but who adds the job.
    columns: &'static [&'static str],
}

/// The value of every secret.
const SECRET: &str = "s3cr3t-of-the-test";

macro_rules! presets {
    ($($test:ident: $name:literal $arguments:expr, $secrets:expr, $columns:expr, $call:literal;)+) => {
        const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            arguments: &$arguments,
            secrets: &$secrets,
            call: $call,
            columns: &$columns,
        }),+];

        $(#[tokio::test]
        async fn $test() {
            let preset = PRESETS.iter().find(|preset| preset.name == $name).unwrap();
            preset.is_sound();
            preset.says_what_is_missing();
            preset.is_sent().await;
        })+
    };
}

presets! {
    airtable: "airtable" ["https://api.airtable.com/v0/appX/T"], ["AIRTABLE_TOKEN"], [],
        "GET https://api.airtable.com/v0/appX/T";
    amazon_sp_api: "amazon-sp-api" ["https://sellingpartnerapi-eu.amazon.com/orders/v0/orders"],
        ["SP_API_CLIENT_ID", "SP_API_CLIENT_SECRET", "SP_API_REFRESH_TOKEN"], [], "GET https://sellingpartnerapi-eu.amazon.com/orders/v0/orders";
    anthropic: "anthropic" ["--set", "model=m", "--set", "prompt=Say \"hello\""],
        ["ANTHROPIC_API_KEY"], ["model", "prompt"], "POST https://api.anthropic.com/v1/messages";
    azure_arm: "azure-arm" ["https://management.azure.com/subscriptions?api-version=2022-12-01"],
        ["AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"], [],
        "GET https://management.azure.com/subscriptions?api-version=2022-12-01";
    bing_webmaster: "bing-webmaster" ["https://www.example.com/a"], ["BING_WEBMASTER_KEY"], [],
        "POST https://ssl.bing.com/webmaster/api.svc/json/SubmitUrlBatch?apikey=${env:BING_WEBMASTER_KEY}";
    cloudflare_api: "cloudflare-api" ["https://api.cloudflare.com/client/v4/zones"],
        ["CLOUDFLARE_API_TOKEN"], [], "GET https://api.cloudflare.com/client/v4/zones";
    crossref: "crossref" ["--set", "doi=10.5555/12345678"], ["CROSSREF_MAILTO"], ["doi"],
        "GET https://api.crossref.org/works/10.5555%2F12345678";
    discord: "discord" ["https://discord.com/api/v10/users/@me"], ["DISCORD_BOT_TOKEN"], [],
        "GET https://discord.com/api/v10/users/@me";
    ebay: "ebay" ["https://api.ebay.com/buy/browse/v1/item_summary/search?q=x"],
        ["EBAY_CLIENT_ID", "EBAY_CLIENT_SECRET"], [],
        "GET https://api.ebay.com/buy/browse/v1/item_summary/search?q=x";
    github: "github" ["https://api.github.com/repos/o/r"], ["GITHUB_TOKEN"], [],
        "GET https://api.github.com/repos/o/r";
    google_books: "google-books" ["--set", "isbn=9780000000002"], ["GOOGLE_BOOKS_KEY"], ["isbn"],
        "GET https://www.googleapis.com/books/v1/volumes?q=isbn:9780000000002";
    google_indexing: "google-indexing" ["https://www.example.com/a"],
        ["GOOGLE_APPLICATION_CREDENTIALS"], [],
        "POST https://indexing.googleapis.com/v3/urlNotifications:publish";
    google_search_console: "google-search-console"
        ["https://www.example.com/a", "--set", "siteUrl=sc-domain:example.com"],
        ["GOOGLE_APPLICATION_CREDENTIALS"], ["siteUrl"],
        "POST https://searchconsole.googleapis.com/v1/urlInspection/index:inspect";
    hubspot: "hubspot" ["https://api.hubapi.com/crm/v3/objects/contacts"], ["HUBSPOT_TOKEN"], [],
        "GET https://api.hubapi.com/crm/v3/objects/contacts";
    indexnow: "indexnow" ["https://www.example.com/a"], ["INDEXNOW_KEY"], [],
        "POST https://api.indexnow.org/indexnow";
    internet_archive: "internet-archive" ["https://www.example.com/a"],
        ["ARCHIVE_ACCESS_KEY", "ARCHIVE_SECRET_KEY"], [], "POST https://web.archive.org/save";
    isbndb: "isbndb" ["--set", "isbn=9780000000002"], ["ISBNDB_KEY"], ["isbn"],
        "GET https://api2.isbndb.com/book/9780000000002";
    jira: "jira" ["https://s.atlassian.net/rest/api/3/issue/A-1"], ["JIRA_BASIC"], [],
        "GET https://s.atlassian.net/rest/api/3/issue/A-1";
    naver_indexnow: "naver-indexnow" ["https://www.example.com/a"], ["INDEXNOW_KEY"], [],
        "POST https://searchadvisor.naver.com/indexnow";
    ncbi_eutils: "ncbi-eutils" ["--set", "id=31452104"], ["NCBI_EMAIL"], ["id"],
        "GET https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esummary.fcgi?db=pubmed&id=31452104&\
         retmode=json&tool=paceline&email=${env:NCBI_EMAIL}";
    nominatim: "nominatim" ["--set", "q=Bremen, Germany"], ["PACELINE_USER_AGENT"], ["q"],
        "GET https://nominatim.openstreetmap.org/search?q=Bremen%2C%20Germany&format=jsonv2";
    notion: "notion" ["https://api.notion.com/v1/users/me"], ["NOTION_TOKEN"], [],
        "GET https://api.notion.com/v1/users/me";
    open_library: "open-library" ["--set", "isbn=9780000000002"], ["PACELINE_USER_AGENT"], ["isbn"],
        "GET https://openlibrary.org/isbn/9780000000002.json";
    openai: "openai" ["--set", "model=m", "--set", "prompt=Say \"hello\""], ["OPENAI_API_KEY"],
        ["model", "prompt"], "POST https://api.openai.com/v1/chat/completions";
    reddit: "reddit" ["https://oauth.reddit.com/api/v1/me"],
        ["PACELINE_USER_AGENT", "REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"], [], "GET https://oauth.reddit.com/api/v1/me";
    seznam_indexnow: "seznam-indexnow" ["https://www.example.com/a"], ["INDEXNOW_KEY"], [],
        "POST https://search.seznam.cz/indexnow";
    shopify_graphql: "shopify-graphql"
        [
            "https://s.myshopify.com/admin/api/2026-01/graphql.json",
            "--set", "query={ shop { name } }", "--set", "points=1",
        ],
        ["SHOPIFY_TOKEN"], ["points", "query"],
        "POST https://s.myshopify.com/admin/api/2026-01/graphql.json";
    shopify_rest: "shopify-rest" ["https://s.myshopify.com/admin/api/2026-01/products/1.json"],
        ["SHOPIFY_TOKEN"], [], "GET https://s.myshopify.com/admin/api/2026-01/products/1.json";
    slack: "slack" ["--set", "channel=C1", "--set", "text=Say \"hello\""], ["SLACK_TOKEN"],
        ["channel", "text"], "POST https://slack.com/api/chat.postMessage";
    stripe: "stripe" ["https://api.stripe.com/v1/charges/ch_1"], ["STRIPE_KEY"], [],
        "GET https://api.stripe.com/v1/charges/ch_1";
    wikimedia: "wikimedia" ["https://en.wikipedia.org/w/api.php?action=query&format=json"],
        ["PACELINE_USER_AGENT"], [],
        "GET https://en.wikipedia.org/w/api.php?action=query&format=json";
    x: "x" ["https://api.x.com/2/users/me"], ["X_BEARER_TOKEN"], [],
        "GET https://api.x.com/2/users/me";
    yandex_indexnow: "yandex-indexnow" ["https://www.example.com/a"], ["INDEXNOW_KEY"], [],
        "POST https://yandex.com/indexnow";
    yandex_webmaster: "yandex-webmaster"
        ["https://www.example.com/a", "--set", "host_id=https:www.example.com:443"],
        ["YANDEX_USER_ID", "YANDEX_WEBMASTER_TOKEN"], ["host_id"],
        "POST https://api.webmaster.yandex.net/v4/user/${env:YANDEX_USER_ID}/hosts/\
         https%3Awww.example.com%3A443/recrawl/queue";
    zendesk: "zendesk" ["https://s.zendesk.com/api/v2/tickets/1.json"], ["ZENDESK_BASIC"], [],
        "GET https://s.zendesk.com/api/v2/tickets/1.json";
}

impl Preset {
    /// Its figures have a source and a day, its limits lose nothing, its calls are found by `[match]`.
    fn is_sound(&self) {
        let library = Library::new(Vec::new());
        let upstream = library.get(self.name).unwrap();
        assert!(upstream.docs.is_some() && upstream.checked.is_some());
        assert!(!upstream.limits.is_empty(), "nothing is paced");
        for limit in &upstream.limits {
            let exceptions = limit.exceptions.iter().map(|exception| &exception.rule);
            for rule in std::iter::once(&limit.rule).chain(exceptions) {
                assert_eq!(describe(rule).warning, None, "{}", limit.name);
            }
        }
        for (name, column) in &upstream.columns {
            assert!(column.help.is_some() || column.from.is_some(), "{name}");
        }
        let (_, url) = self.call.split_once(' ').unwrap();
        let url = url.replace("${env:", "").replace('}', "");
        assert_eq!(library.match_url(&url).unwrap().name, self.name);
    }

    /// Each column that is not given is asked for with its help, each secret by its name.
    fn says_what_is_missing(&self) {
        let home = Home::new();
        let upstream = Library::new(Vec::new()).get(self.name).unwrap();
        let url: Vec<&str> =
            self.arguments.iter().copied().filter(|text| text.starts_with("https://")).collect();
        let bare = home.run(&[&["add", self.name, "--dry-run"], &url[..]].concat());
        if !self.columns.is_empty() {
            assert_eq!(bare.code, 2, "{bare}");
        }
        for column in self.columns {
            assert!(bare.stderr.contains(&format!("`{column}`")), "{column}: {bare}");
            let help = upstream.columns[*column].help.as_ref().unwrap();
            assert!(bare.stderr.contains(help), "{column}: {bare}");
        }
        let added = home.run(&[&["add", self.name], self.arguments].concat());
        assert_eq!(added.code, 0, "{added}");
        for name in self.secrets {
            let note = format!(
                "note: `${{env:{name}}}` is not set here; {} sends nothing until a run finds it",
                self.name
            );
            assert!(added.stderr.contains(&note), "{note}: {added}");
        }
        let ran = home.run(&["run", self.name, "--max-wait", "0"]);
        assert_eq!(ran.code, 4, "{ran}");
        let asked = |name: &&str| ran.stderr.contains(&format!("set {name} (as in"));
        assert!(self.secrets.iter().any(asked), "{ran}");
    }

    /// Has a preset that asks what is left ask here, and nobody else. Tells whether it asks at all.
    fn asks_here(&self, home: &Home, url: &str) -> bool {
        let asks = Library::new(Vec::new()).get(self.name).unwrap().quota_call.is_some();
        if asks {
            let name = self.name;
            let text = format!("extends = \"{name}\"\n[quota_call]\nurl = \"{url}\"\n");
            home.quota(name, &text);
        }
        asks
    }

    /// The call is the one that is meant, and with its secrets it leaves: here to a practice upstream.
    async fn is_sent(&self) {
        let home = Home::new();
        let looked =
            home.run(&[&["add", self.name], self.arguments, &["--dry-run", "--json"]].concat());
        assert_eq!(looked.code, 0, "{looked}");
        let told: Value = serde_json::from_str(&looked.stdout).unwrap();
        let request = &told["requests"][0];
        let text = |field: &str| request[field].as_str().unwrap();
        assert_eq!(format!("{} {}", text("method"), text("url")), self.call);
        assert_eq!(told["unset"], serde_json::json!(self.secrets));
        let kind = request["headers"]["Content-Type"].as_str().unwrap_or_default();
        if kind.starts_with("application/json") {
            serde_json::from_str::<Value>(text("body")).unwrap();
        }

        let server = TokenServer::start(Manner::default());
        let upstream = Library::new(Vec::new()).get(self.name).unwrap();
        if upstream.auth.is_some() {
            let (name, url) = (self.name, server.url("/token"));
            home.quota(name, &format!("extends = \"{name}\"\n[auth]\ntoken_url = \"{url}\"\n"));
        }
        let practice = Practice::start(Config::new().keep_headers()).await.unwrap();
        let url = practice.url("/here");
        let asks = self.asks_here(&home, &practice.url("/left"));
        let added = home.run(&[&["add", self.name], self.arguments, &["--url", &url]].concat());
        assert_eq!(added.code, 0, "{added}");
        // The job takes its turn behind the question.
        let max_wait = if asks { "5s" } else { "0" };
        let mut command = home.paceline(&["run", self.name, "--max-wait", max_wait]);
        command.envs(self.secrets.iter().map(|name| (name, SECRET)));
        if let Some(Auth::ServiceAccount(_)) = &upstream.auth {
            home.write("key.json", &key_file());
            command.env("GOOGLE_APPLICATION_CREDENTIALS", "key.json");
        }
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let arrivals = practice.arrivals();
        let paths: Vec<&str> = arrivals.iter().map(|arrival| arrival.path.as_str()).collect();
        assert_eq!(paths, if asks { vec!["/left", "/here"] } else { vec!["/here"] });
        let arrival = arrivals.last().unwrap();
        assert_eq!(server.asked().len(), usize::from(upstream.auth.is_some()));
        let secret = if upstream.auth.is_some() { TOKEN } else { SECRET };
        // `--url` stands in place of the preset's own address, and of the secrets in it.
        if self.secrets.iter().any(|name| !self.call.contains(name)) {
            let headers = arrival.headers.as_ref().unwrap();
            let in_headers = headers.values().any(|value| value.to_str().unwrap().contains(secret));
            let in_body = String::from_utf8_lossy(&arrival.body).contains(secret);
            assert!(in_headers || in_body);
        }
    }
}

/// A service account's.
fn key_file() -> String {
    let key = rsa::PrivateKey::new(&mut rand::rng(), 2048).unwrap();
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    serde_json::json!({
        "type": "service_account", "client_email": "a@b.example", "private_key": pem.as_str(),
        "token_uri": "https://oauth2.googleapis.com/token",
    })
    .to_string()
}

/// A token from elsewhere takes the place of the preset's own, by another kind or without any.
#[test]
fn who_has_a_token_from_elsewhere_says_so_in_three_lines() {
    let server = TokenServer::start(Manner::default());
    let home = Home::new();
    let url = server.url("/here");
    let own = [
        "[auth]\nkind = \"command\"\ncommand = [\"printf\", \"tok-hunter2-1\"]\n",
        "[auth]\nremove = true\n[request]\nheaders = { Authorization = \"Bearer tok-hunter2-1\" }\n",
    ];
    for (n, text) in own.iter().enumerate() {
        home.quota("ebay", &format!("extends = \"ebay\"\n{text}"));
        let checked = home.run(&["quotas", "check", "ebay"]);
        assert_eq!((checked.code, checked.stderr.contains("note")), (0, false), "{checked}");
        let added = home.run(&["add", "ebay", "https://api.ebay.com/x", "--url", &url]);
        assert_eq!(added.code, 0, "{added}");
        home.run(&["run", "ebay", "--count", "1"]);
        assert_eq!(server.calls().len(), n + 1);
        assert!(server.asked().is_empty());
    }
}

/// Every file of `quotas/` is built in, and has its test above; what only a person does has its own.
#[test]
fn every_preset_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("quotas");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(Library::new(Vec::new()).names(), files);
    let tested =
        PRESETS.iter().map(|preset| preset.name).chain(["google-request-indexing", "sitemaps"]);
    assert_eq!(tested.map(str::to_owned).collect::<BTreeSet<_>>(), files);
}

/// The README names each preset with what it needs.
#[test]
fn the_readme_tells_of_each() {
    let readme = include_str!("../README.md");
    for preset in PRESETS {
        let name = format!("`{}`", preset.name);
        let row = readme.lines().find(|line| line.starts_with('|') && line.contains(&name));
        let row = row.unwrap_or_else(|| panic!("{name}"));
        for needed in preset.secrets.iter().chain(preset.columns) {
            assert!(row.contains(&format!("`{needed}`")), "{name}: {needed}");
        }
    }
}

/// Nothing of it can be sent; a person's presses are counted.
#[test]
fn google_request_indexing() {
    let home = Home::new();
    let refused = home.run(&["add", "google-request-indexing", "https://www.example.com/a"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("Google has no API for this button"), "{refused}");
    let key = "siteUrl=https://www.example.com";
    let spent = home.run(&["budget", "spend", "google-request-indexing", "3", "--key", key]);
    assert!(spent.stdout.contains("3 of 11 spent"), "{spent}");
}

/// Any site's files: no host is its own, and nothing secret goes to any.
#[test]
fn sitemaps() {
    let upstream = Library::new(Vec::new()).get("sitemaps").unwrap();
    assert!(upstream.matches.hosts.is_empty() && upstream.credentials.is_empty());
    let texts = upstream.request.headers.values().chain(&upstream.request.url);
    for text in texts {
        assert!(!text.contains("${"), "{text}");
    }
    assert!(!upstream.limits.is_empty() && upstream.limits.iter().all(|l| l.key == ["host"]));
}

/// Known upstreams are listed with every limit, and how sure its figures are.
#[test]
fn the_list_shows_how_sure_figures_are() {
    let home = Home::new();
    let listed = home.run(&["quotas", "list"]).stdout;
    let after = |name: &str| {
        let at = listed.lines().position(|line| line.starts_with(name)).unwrap();
        listed.lines().skip(at).take(2).collect::<Vec<_>>().join("\n")
    };
    let bing = after("bing-webmaster");
    assert!(bing.contains("daily: 100 a day in an unknown zone, in items, each siteUrl"), "{bing}");
    assert!(bing.contains("observed") && bing.contains("documented"), "{bing}");
}

/// What a person is told to do: an order, in one sentence.
const ORDERS: &[&str] = &[
    "add", "ask", "assign", "attach", "buy", "enable", "get", "give", "grant", "invite", "make",
    "put", "see", "set", "use", "verify",
];

/// Every rule that can hold a partition says what a person must do about it.
#[test]
fn every_rule_that_holds_says_what_to_do() {
    use paceline::reading::Reason;
    use paceline::reading::rules::StatusPattern;
    let hard = [Reason::Misconfigured, Reason::Forbidden, Reason::Blocked, Reason::AuthExpired];
    let library = Library::new(Vec::new());
    let mut rules = 0;
    for name in library.names() {
        let upstream = library.get(&name).unwrap();
        for rule in &upstream.readings {
            let holds = rule.retryable == Some(false) && rule.reason.is_retryable()
                || [Some(rule.reason), rule.then].iter().flatten().any(|one| hard.contains(one));
            if !holds {
                continue;
            }
            rules += 1;
            // What a fixed key lacks is said of any upstream, with the name of the call's own key.
            let of_key = rule.reason == Reason::Misconfigured
                && rule.when.status.iter().all(|status| *status == StatusPattern::Exact(401));
            if of_key && !rule.when.status.is_empty() && rule.says.is_none() {
                continue;
            }
            let says = rule.says.as_deref().unwrap_or_else(|| panic!("{name}: {}", rule.reason));
            let order = says.split(' ').next().unwrap();
            assert!(ORDERS.contains(&order), "{name}: {says}");
            assert!(
                !says.contains(". ") && !says.ends_with('.') && says.len() <= 140,
                "{name}: {says}"
            );
        }
    }
    assert!(rules >= 30, "{rules} rules hold");
}
