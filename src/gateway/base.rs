//! PURE: where an upstream's calls go, and how its addresses are shown to callers.

use std::fmt;

use url::Url;

use crate::address;
use crate::quota::Upstream;
use crate::template::Template;

/// An upstream's base address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base(Url);

impl Base {
    /// `base_url`, else the origin of `url`, else the first host of `[match]` that is a whole name.
    pub fn of(upstream: &Upstream) -> Option<Base> {
        let declared = upstream.request.base_url.as_deref();
        if let Some(url) = declared.and_then(|text| address::parse(text).ok()) {
            return Some(Base(url));
        }
        if let Some(origin) = upstream.request.url.as_deref().and_then(origin) {
            return Some(Base(origin));
        }
        let host = upstream.matches.hosts.iter().find(|host| !host.contains('*'))?;
        address::parse(&format!("https://{host}/")).ok().map(Base)
    }

    /// The address that `rest` (empty, or from `/` or `?` on) leads to; `None` where it leads out of
    /// the base's path.
    pub fn join(&self, rest: &str) -> Option<Url> {
        let path = self.0.path().trim_end_matches('/');
        let whole = match rest.starts_with('/') {
            true => format!("{path}{rest}"),
            false if path.is_empty() => format!("/{rest}"),
            false => format!("{path}{rest}"),
        };
        // As text, so that a path that begins with two slashes names no host.
        let joined =
            Url::parse(&format!("{}{whole}", self.0.origin().ascii_serialization())).ok()?;
        let is_within = joined.path() == path || joined.path().starts_with(&format!("{path}/"));
        is_within.then_some(joined)
    }

    /// A redirect's `Location` from `sent`, as a caller follows it through the gateway: `None` where it
    /// leads elsewhere, or needs no change.
    pub fn through_gateway(&self, sent: &Url, location: &str, upstream: &str) -> Option<String> {
        let to = sent.join(location).ok()?;
        if to.origin() != self.0.origin() {
            return None;
        }
        let path = self.0.path().trim_end_matches('/');
        let rest = to.as_str().strip_prefix(&to.origin().ascii_serialization())?;
        let rest = rest.strip_prefix(path).filter(|rest| rest.starts_with(['/', '?', '#']))?;
        Some(format!("/{upstream}{rest}"))
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Scheme, host and port of a template, where no placeholder has a part in them.
fn origin(template: &str) -> Option<Url> {
    let template = Template::parse(template).ok()?;
    let prefix = template.prefix();
    let (_, rest) = prefix.split_once("://")?;
    let is_text = template.columns().is_empty() && template.secrets().is_empty();
    let is_whole = is_text || rest.contains(['/', '?', '#']);
    let url = is_whole.then(|| address::parse(prefix))?.ok()?;
    address::parse(&format!("{}/", url.origin().ascii_serialization())).ok()
}

/// The parameters of the file's `url` that hold secrets, as they are written there: `key=${env:KEY}`.
pub(super) fn secret_parameters(upstream: &Upstream) -> Vec<&str> {
    let Some(url) = upstream.request.url.as_deref() else { return Vec::new() };
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let holds_secret =
        |pair: &&str| Template::parse(pair).is_ok_and(|template| !template.secrets().is_empty());
    query.split('&').filter(holds_secret).collect()
}

/// The template of an address with these parameters, in place of the caller's own of the same names.
pub(super) fn with_parameters(mut url: Url, parameters: &[&str]) -> String {
    if parameters.is_empty() {
        return Template::literal(url.as_str());
    }
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let ours: Vec<String> = parameters.iter().map(|pair| name(pair)).collect();
    let query = url.query().unwrap_or_default().to_owned();
    url.set_query(None);
    url.set_fragment(None);
    let own = query.split('&').filter(|pair| !pair.is_empty() && !ours.contains(&name(pair)));
    let pairs = own.map(Template::literal).chain(parameters.iter().map(|pair| (*pair).to_owned()));
    let pairs: Vec<String> = pairs.collect();
    format!("{}?{}", Template::literal(url.as_str()), pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::declare;

    fn upstream(text: &str) -> Upstream {
        declare::parse("shop", "shop.toml", text).unwrap()
    }

    fn base(request: &str) -> Option<String> {
        Base::of(&upstream(request)).map(|Base(url)| url.to_string())
    }

    #[test]
    fn the_base_is_declared_or_told_by_the_address() {
        let hosts = "[match]\nhosts = [\"*.b.example\", \"b.example\"]\n";
        let url = "url = \"https://a.example:8443/v1/{isbn}\"\n";
        let declared = format!("{hosts}[request]\n{url}base_url = \"https://c.example/api\"\n");
        assert_eq!(base(&declared).unwrap(), "https://c.example/api");
        assert_eq!(base(&format!("{hosts}[request]\n{url}")).unwrap(), "https://a.example:8443/");
        assert_eq!(base(hosts).unwrap(), "https://b.example/");
        assert_eq!(base("[request]\nurl = \"https://a.example\"\n").unwrap(), "https://a.example/");
        assert_eq!(base("[request]\nurl = \"{url}\"\n"), None);
    }

    #[test]
    fn a_path_stays_under_its_base() {
        let under = |base: &str, rest: &str| {
            let joined = Base(Url::parse(base).unwrap()).join(rest);
            joined.map(|url| url.to_string())
        };
        let at = |rest: &str| under("https://a.example/api/", rest);
        assert_eq!(at("/x?y=1").unwrap(), "https://a.example/api/x?y=1");
        assert_eq!(at("").unwrap(), "https://a.example/api");
        assert_eq!(at("?y").unwrap(), "https://a.example/api?y");
        assert_eq!(at("/a%2Fb//c").unwrap(), "https://a.example/api/a%2Fb//c");
        assert_eq!(at("/../secret"), None);
        assert_eq!(at("/%2e%2e/apis"), None);
        assert_eq!(under("https://a.example", "").unwrap(), "https://a.example/");
        assert_eq!(
            under("https://a.example", "//evil.example/x").unwrap(),
            "https://a.example//evil.example/x"
        );
    }

    #[test]
    fn a_redirect_within_stays_in_the_gateway() {
        let base = Base(Url::parse("https://a.example/api").unwrap());
        let sent = Url::parse("https://a.example/api/x/y").unwrap();
        let through = |location: &str| base.through_gateway(&sent, location, "shop");
        assert_eq!(through("/api/z?q=1").unwrap(), "/shop/z?q=1");
        assert_eq!(through("https://a.example/api/z").unwrap(), "/shop/z");
        assert_eq!(through("w").unwrap(), "/shop/x/w");
        assert_eq!(through("https://b.example/api/z"), None);
        assert_eq!(through("/other"), None);
        assert_eq!(through("/apis/z"), None);
    }

    #[test]
    fn a_key_in_the_query_goes_along() {
        let file = upstream("[request]\nurl = \"https://a.example/x?q={q}&key=${env:KEY}#f\"\n");
        let parameters = secret_parameters(&file);
        assert_eq!(parameters, ["key=${env:KEY}"]);
        let url = Url::parse("https://a.example/y?key=mine&z={q}").unwrap();
        let template = with_parameters(url.clone(), &parameters);
        assert_eq!(Template::parse(&template).unwrap().columns(), Vec::<&str>::new());
        let filled = Template::parse(&template).unwrap();
        let filled = filled
            .render(&Default::default(), crate::template::Place::Url, &|_| Some("k".to_owned()));
        assert_eq!(filled.unwrap(), "https://a.example/y?z={q}&key=k");
        let plain = Template::parse(&with_parameters(url, &[])).unwrap();
        let plain =
            plain.render(&Default::default(), crate::template::Place::Url, &|_| None).unwrap();
        assert_eq!(plain, "https://a.example/y?key=mine&z={q}");
    }
}
