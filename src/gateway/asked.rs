//! PURE: a caller's request as a job: its address, its columns, its partition.

use std::error::Error as _;

use url::Url;

use super::base::{secret_parameters, with_parameters};
use super::problem::Problem;
use super::wish::Wish;
use crate::job::{Columns, Dedupe, NewJob};
use crate::plan::{AddOptions, Missing, PlanError, Planner};
use crate::quota::Upstream;
use crate::template::Template;

/// The column that holds the address, or what the file's templates are about.
const URL: &str = "url";

/// The job of a request for `url` by `method`. Its body stays outside: it passes through, and is never
/// stored.
///
/// # Errors
///
/// What the caller must say, or say otherwise.
pub(super) fn job(
    upstream: &Upstream,
    method: &str,
    url: Url,
    wish: &Wish,
) -> Result<NewJob, Problem> {
    let mut columns = wish.set.clone();
    // Where the file's own requests are about a URL, that is another than the address called.
    if !columns.contains_key(URL) && !uses_url(upstream) {
        columns.insert(URL.to_owned(), url.to_string());
    }
    let template = with_parameters(url, &secret_parameters(upstream));
    let options = AddOptions {
        url: Some(template),
        method: Some(method.to_owned()),
        body: Some(String::new()),
        set: given(&columns, "host"),
        credential: wish.credential.clone(),
        dedupe: Dedupe::None,
        ..AddOptions::default()
    };
    let planned = Planner::new(upstream, options).and_then(|planner| planner.plan(columns));
    let mut job = planned.map_err(|error| problem(upstream, &error))?;
    job.request.body = None;
    Ok(job)
}

fn given(columns: &Columns, name: &str) -> Columns {
    columns.get(name).map(|value| (name.to_owned(), value.clone())).into_iter().collect()
}

/// Whether the file's templates have the column `url` beside other text: what is submitted, not called.
fn uses_url(upstream: &Upstream) -> bool {
    let address = upstream.request.url.as_deref().filter(|text| *text != "{url}");
    let headers = upstream.request.headers.values().map(String::as_str);
    let all = address.into_iter().chain(upstream.body().map(String::as_str)).chain(headers);
    let uses =
        |text: &str| Template::parse(text).is_ok_and(|template| template.columns().contains(&URL));
    all.into_iter().any(uses)
}

/// What is wrong with it, as the caller is told.
pub(super) fn problem(upstream: &Upstream, error: &PlanError) -> Problem {
    let problem = match error {
        PlanError::Missing(missing) => missing_columns(missing),
        PlanError::UnknownCredential { name, known } => {
            let detail = format!("there is no credential `{name}`; {}", credentials(known));
            Problem::bad_request("credential", detail)
        }
        PlanError::NoCredential { known, .. } => {
            let detail =
                format!("no credential is for this call by itself; {}", credentials(known));
            Problem::bad_request("credential", detail)
        }
        other => {
            let mut detail = other.to_string();
            let mut cause = other.source();
            while let Some(because) = cause {
                detail.push_str(&format!(": {because}"));
                cause = because.source();
            }
            Problem::bad_request("request", detail)
        }
    };
    problem.of(&upstream.name)
}

fn credentials(known: &[String]) -> String {
    match known {
        [] => "the quota file declares none".to_owned(),
        known => format!("send the header Paceline-Credential with one of {}", known.join(", ")),
    }
}

fn missing_columns(missing: &[Missing]) -> Problem {
    let names: Vec<&str> = missing.iter().map(|one| one.column.as_str()).collect();
    let told: Vec<String> = missing.iter().map(told).collect();
    let pairs: Vec<String> = names.iter().map(|name| format!("{name}=...")).collect();
    let detail =
        format!("{}; send it as a header: `Paceline-Set: {}`", told.join("; "), pairs.join("&"));
    Problem::bad_request("missing_column", detail).with("missing", names)
}

fn told(missing: &Missing) -> String {
    match (missing.column.as_str(), &missing.help) {
        (URL, _) => "the column `url` is missing: what the call is about".to_owned(),
        _ => missing.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::declare;

    fn plan(file: &str, address: &str, wish: Wish) -> Result<NewJob, Problem> {
        let upstream = declare::parse("shop", "shop.toml", file).unwrap();
        job(&upstream, "POST", Url::parse(address).unwrap(), &wish)
    }

    fn set(name: &str, value: &str) -> Wish {
        let set = Columns::from([(name.to_owned(), value.to_owned())]);
        Wish { set, ..Wish::default() }
    }

    const BY_HOST: &str = "[request]\nbase_url = \"https://a.example\"\nmethod = \"POST\"\n\
        body = \"{other}\"\n[[limit]]\nname = \"n\"\nkind = \"rate\"\nrate = \"1/s\"\nkey = [\"host\", \"method\"]\n";

    #[test]
    fn keys_are_derived_from_the_address() {
        let job = plan(BY_HOST, "https://a.example/x?{y}", Wish::default()).unwrap();
        assert_eq!(job.partition["host"], "a.example");
        assert_eq!(job.partition["method"], "POST");
        assert_eq!((job.request.body, job.dedupe), (None, Dedupe::None));
        let sent = Template::parse(&job.request.url).unwrap();
        assert_eq!(
            sent.render(&job.columns, crate::template::Place::Url, &|_| None).unwrap(),
            "https://a.example/x?{y}"
        );
    }

    const BY_SITE: &str = "[columns.siteUrl]\nfrom = \"url.origin\"\nhelp = \"the property\"\n[request]\n\
        method = \"POST\"\nurl = \"https://a.example/submit?key=${env:KEY}\"\nbody = '{\"u\": \"{url}\"}'\n\
        [[limit]]\nname = \"n\"\nkind = \"rate\"\nrate = \"1/s\"\nkey = [\"siteUrl\"]\n";

    #[test]
    fn what_is_submitted_is_not_what_is_called() {
        let address = "https://a.example/submit";
        let problem = plan(BY_SITE, address, Wish::default()).unwrap_err();
        assert_eq!((problem.status, problem.reason.as_str()), (400, "missing_column"));
        assert!(problem.detail.contains("the property"), "{}", problem.detail);
        assert!(problem.detail.contains("Paceline-Set: siteUrl=..."), "{}", problem.detail);
        let by_url = plan(BY_SITE, address, set("url", "https://www.example.com/new")).unwrap();
        assert_eq!(by_url.partition["siteUrl"], "https://www.example.com");
        assert_eq!(by_url.request.url, "https://a.example/submit?key=${env:KEY}");
        let by_hand = plan(BY_SITE, address, set("siteUrl", "https://b.example/")).unwrap();
        assert_eq!(by_hand.partition["siteUrl"], "https://b.example/");
    }

    #[test]
    fn a_credential_is_chosen_by_header() {
        let file = "[credential.main]\nwhen = { lang = \"en\" }\n[credential.other]\nwhen = { lang = \"de\" }\n\
            [request]\nbase_url = \"https://a.example\"\n";
        let address = "https://a.example/";
        let problem = plan(file, address, Wish::default()).unwrap_err();
        assert!(
            problem.detail.contains("Paceline-Credential with one of main, other"),
            "{}",
            problem.detail
        );
        let credential = Some("other".to_owned());
        let job = plan(file, address, Wish { credential, ..Wish::default() }).unwrap();
        assert_eq!(job.partition["credential"], "other");
    }
}
