//! Where a target leads: its upstream, as its quota file says now, and the address there.

use std::sync::Arc;

use url::Url;

use super::base::Base;
use super::problem::Problem;
use super::target::Target;
use crate::address;
use crate::quota::Upstream;
use crate::quota::declare::nearest;
use crate::quota::library::{Library, LibraryError};
use crate::template::Template;

/// Where a request goes.
#[derive(Debug)]
pub(super) struct Place {
    pub upstream: Arc<Upstream>,
    pub url: Url,
    /// The upstream's base, where the caller sees its paths under the gateway's own.
    pub base: Option<Base>,
}

/// Finds places.
#[derive(Debug)]
pub(super) struct Places {
    library: Arc<Library>,
    /// The upstreams that are served; none named are all.
    served: Vec<String>,
}

impl Places {
    pub fn new(library: Arc<Library>, served: Vec<String>) -> Places {
        Places { library, served }
    }

    /// Finds where a target leads.
    ///
    /// # Errors
    ///
    /// An upstream that is not there or not served, and what leads to none.
    pub fn find(&self, target: Target) -> Result<Place, Problem> {
        match target {
            Target::Root => Err(self.unnamed()),
            Target::Address(address) => self.proxied(&address),
            Target::Path { name, rest } => {
                let upstream = self.upstream(&name)?;
                let base = Base::of(&upstream).ok_or_else(|| no_base(&name))?;
                let url = base.join(&rest).ok_or_else(|| {
                    let detail = format!("`{rest}` leads out of the base address of {name}");
                    Problem::bad_request("target", detail).of(&name)
                })?;
                Ok(Place { upstream, url, base: Some(base) })
            }
        }
    }

    fn proxied(&self, address: &str) -> Result<Place, Problem> {
        let url = address::parse(address).map_err(|error| {
            Problem::bad_request("target", format!("the address cannot be called: {error}"))
        })?;
        let found = self.library.match_url(address);
        let found = found.filter(|upstream| self.is_served(&upstream.name));
        let upstream = found.ok_or_else(|| self.undeclared(&url))?;
        if sends_secrets(&upstream)
            && let Err(error) = address::for_secrets(address)
        {
            let name = &upstream.name;
            let detail =
                format!("{error}. Call http://GATEWAY/{name}/path instead of using it as a proxy");
            return Err(Problem::forbidden("insecure", detail).of(name));
        }
        Ok(Place { upstream, url, base: None })
    }

    /// An upstream, as its file was when it was last read: whoever paces its calls looks for changes.
    fn upstream(&self, name: &str) -> Result<Arc<Upstream>, Problem> {
        if !self.is_served(name) {
            return Err(self.unknown(name));
        }
        self.library.get(name).map_err(|error| match error {
            LibraryError::Unknown { .. } => self.unknown(name),
            error => Problem::new(500, "quota_file", error.to_string()).of(name),
        })
    }

    fn is_served(&self, name: &str) -> bool {
        self.served.is_empty() || self.served.iter().any(|served| served == name)
    }

    fn names(&self) -> Vec<String> {
        let declared = || self.library.names().into_iter().collect();
        if self.served.is_empty() { declared() } else { self.served.clone() }
    }

    fn unknown(&self, name: &str) -> Problem {
        let names = self.names();
        let near = nearest(name, names.iter().map(String::as_str));
        let mut detail = match near {
            Some(near) => format!("there is no upstream `{name}` (did you mean `{near}`?)"),
            None => format!("there is no upstream `{name}`"),
        };
        if !self.served.is_empty() {
            detail.push_str(&format!("; this gateway serves {}", self.served.join(", ")));
        } else if near.is_none() {
            detail.push_str("; `paceline quotas list` shows those there are");
        }
        let problem = Problem::new(404, "unknown_upstream", detail);
        near.map_or(problem.clone(), |near| problem.with("did_you_mean", near))
    }

    fn unnamed(&self) -> Problem {
        let names = self.names();
        let detail = format!(
            "name an upstream: http://GATEWAY/UPSTREAM/path; there are {}",
            names.join(", ")
        );
        Problem::new(404, "unknown_upstream", detail).with("upstreams", names)
    }

    fn undeclared(&self, url: &Url) -> Problem {
        let host = url.host_str().unwrap_or_default();
        let mut detail = format!(
            "no upstream is for {host}{}: this is no open proxy. Declare one, as in quotas/NAME.toml with \
             [match] and hosts = [\"{host}\"]",
            url.path()
        );
        if !self.served.is_empty() {
            detail.push_str(&format!("; this gateway serves {}", self.served.join(", ")));
        }
        Problem::forbidden("undeclared", detail)
    }
}

fn no_base(name: &str) -> Problem {
    let detail = format!(
        "the quota file of {name} does not say where its calls go: write base_url = \"https://...\" under \
         [request]"
    );
    Problem::new(500, "quota_file", detail).of(name)
}

/// Whether secrets go along with its calls.
fn sends_secrets(upstream: &Upstream) -> bool {
    let request = &upstream.request;
    let has_secret =
        |text: &String| Template::parse(text).is_ok_and(|template| !template.secrets().is_empty());
    request.headers.values().chain(request.url.as_ref()).any(has_secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(served: &[&str], files: &[(&str, &str)]) -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let library = Arc::new(Library::new(vec![folder.path().to_owned()]));
        let served = served.iter().map(|name| (*name).to_owned()).collect();
        (folder, Places::new(library, served))
    }

    fn path(name: &str, rest: &str) -> Target {
        Target::Path { name: name.to_owned(), rest: rest.to_owned() }
    }

    const SHOP: &str = "[match]\nhosts = [\"shop.example\"]\n[request]\n\
        base_url = \"https://shop.example/v1\"\nheaders = { X-Key = \"${env:KEY}\" }\n";
    const OPEN: &str = "[match]\nhosts = [\"open.example\"]\n";

    #[test]
    fn a_path_leads_under_its_upstreams_base() {
        let (_folder, places) = places(&[], &[("shop", SHOP)]);
        let place = places.find(path("shop", "/stock?x=1")).unwrap();
        assert_eq!(place.url.as_str(), "https://shop.example/v1/stock?x=1");
        let problem = places.find(path("shop", "/../x")).unwrap_err();
        assert_eq!(problem.status, 400);
        let problem = places.find(path("shp", "/x")).unwrap_err();
        assert_eq!(problem.status, 404);
        assert!(problem.detail.contains("did you mean `shop`?"), "{}", problem.detail);
    }

    #[test]
    fn a_proxy_goes_only_where_an_upstream_is_declared() {
        let (_folder, places) = places(&[], &[("shop", SHOP), ("open", OPEN)]);
        let find = |address: &str| places.find(Target::Address(address.to_owned()));
        assert_eq!(find("http://open.example/x").unwrap().url.as_str(), "http://open.example/x");
        let problem = find("http://other.example/x").unwrap_err();
        assert_eq!(problem.status, 403);
        assert!(problem.detail.contains("hosts = [\"other.example\"]"), "{}", problem.detail);
        let problem = find("http://shop.example/v1/x").unwrap_err();
        assert_eq!((problem.status, problem.reason.as_str()), (403, "insecure"));
    }

    #[test]
    fn others_than_those_that_were_named_are_not_served() {
        let (_folder, places) = places(&["open"], &[("shop", SHOP), ("open", OPEN)]);
        let problem = places.find(path("shop", "/x")).unwrap_err();
        assert!(problem.detail.contains("this gateway serves open"), "{}", problem.detail);
        assert!(places.find(path("open", "/x")).is_ok());
    }
}
