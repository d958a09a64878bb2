//! Where quota files are found.
//!
//! By name, in this order: the folder given (`--quotas DIR`), `./quotas`, the user's config folder
//! (`paceline/quotas` in it), the presets built into the program. The first that has `NAME.toml` is
//! the upstream's; a file of the same name further on is what `extends = "NAME"` in it means.

mod presets;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcetera::BaseStrategy as _;
use url::Url;

use super::Upstream;
use super::declare::{self, DeclareError, Line, Source, nearest};
use search::{Search, Seen};

/// Why an upstream cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// No quota file of that name.
    #[error(
        "there is no upstream `{name}`{}; looked in {}; `paceline quotas list` shows all there are, \
         `paceline init {name}` writes a file for it",
        meant(.near.as_deref()), .looked.join(", ")
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// A known one nearly like it.
        near: Option<String>,
        /// Where was looked.
        looked: Vec<String>,
    },
    /// Its quota file, or one that it extends, is wrong.
    #[error(transparent)]
    Invalid(#[from] DeclareError),
    /// Its quota file is no text.
    #[error("`{}` is no UTF-8 text: save it as UTF-8", .0.display())]
    NotText(PathBuf),
    /// Its quota file cannot be read.
    #[error("`{}` cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// An upstream that can be had by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its file: a path, or that it is built in.
    pub file: String,
    /// Whether it is a preset of the program.
    pub built_in: bool,
}

/// The declared upstreams, each read when it is first asked for.
#[derive(Debug)]
pub struct Library {
    search: Search,
    held: Mutex<BTreeMap<String, Held>>,
}

/// An upstream that was read.
#[derive(Debug)]
struct Held {
    upstream: Arc<Upstream>,
    /// The files it was read from, and those that would have gone before them, as they were.
    seen: Seen,
}

impl Library {
    /// Looks in these folders, in this order, then among the presets.
    pub fn new(folders: Vec<PathBuf>) -> Library {
        Library { search: Search::new(folders), held: Mutex::default() }
    }

    /// The usual folders: `quotas` first where it is given, then `./quotas` and the user's own.
    pub fn usual(quotas: Option<&Path>) -> Library {
        let user = etcetera::choose_base_strategy().ok();
        let user = user.map(|strategy| strategy.config_dir().join("paceline").join("quotas"));
        let given = quotas.map(Path::to_owned);
        Library::new(given.into_iter().chain([PathBuf::from("quotas")]).chain(user).collect())
    }

    /// The upstream of that name, as it was when it was last read.
    ///
    /// # Errors
    ///
    /// No such name, or a file that is wrong or cannot be read.
    pub fn get(&self, name: &str) -> Result<Arc<Upstream>, LibraryError> {
        if let Some(held) = self.held().get(name) {
            return Ok(Arc::clone(&held.upstream));
        }
        let (upstream, seen) = self.read(name)?;
        let upstream = Arc::new(upstream);
        let held = Held { upstream: Arc::clone(&upstream), seen };
        self.held().insert(name.to_owned(), held);
        Ok(upstream)
    }

    /// Reads the upstream again where one of its files changed; `None` where none did. Cheap where
    /// nothing changed: it asks for sizes and times only.
    ///
    /// # Errors
    ///
    /// The change is wrong: told once, while [`Library::get`] goes on giving the last good one.
    pub fn reload(&self, name: &str) -> Result<Option<Arc<Upstream>>, LibraryError> {
        let seen = self.held().get(name).map(|held| held.seen.clone());
        let Some(seen) = seen else { return self.get(name).map(Some) };
        let now = seen.again();
        if now == seen {
            return Ok(None);
        }
        match self.read(name) {
            Ok((upstream, seen)) => {
                let upstream = Arc::new(upstream);
                let held = Held { upstream: Arc::clone(&upstream), seen };
                self.held().insert(name.to_owned(), held);
                Ok(Some(upstream))
            }
            Err(error) => {
                if let Some(held) = self.held().get_mut(name) {
                    held.seen = now;
                }
                Err(error)
            }
        }
    }

    /// The names of all upstreams.
    pub fn names(&self) -> BTreeSet<String> {
        self.search.names().into_keys().collect()
    }

    /// All upstreams with their files, by name. Nothing is read.
    pub fn list(&self) -> Vec<Entry> {
        self.search.names().into_values().collect()
    }

    /// The lines of an upstream's quota file, each with the file it comes from.
    ///
    /// # Errors
    ///
    /// As [`Library::get`]; what is merely wrong in the file does not matter.
    pub fn lines(&self, name: &str) -> Result<Vec<Line>, LibraryError> {
        let finder = self.search.finder();
        let own = finder.find(name)?.ok_or_else(|| self.unknown(name))?;
        Ok(declare::lines(own, &|from, base| finder.base(from, base))?)
    }

    /// The upstream that a call to `url` is of, by `[match]`: the one with the longest pattern that
    /// fits. Files that are wrong are passed over.
    pub fn match_url(&self, url: &str) -> Option<Arc<Upstream>> {
        let url = Url::parse(url).ok()?;
        let host = url.host_str()?;
        let upstreams = self.names().into_iter().filter_map(|name| self.get(&name).ok());
        let ranked = upstreams.filter_map(|upstream| {
            let rank = super::glob::rank(&upstream.matches, host, url.path())?;
            Some((rank, upstream))
        });
        // The first of several by name, so that the choice stays the same.
        let best = ranked.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, upstream)| upstream)
    }

    fn read(&self, name: &str) -> Result<(Upstream, Seen), LibraryError> {
        let finder = self.search.finder();
        let source = finder.find(name)?.ok_or_else(|| self.unknown(name))?;
        let declared =
            declare::read(name, source, &|from: &Source, base: &str| finder.base(from, base))?;
        Ok((declared.upstream, finder.seen()))
    }

    fn unknown(&self, name: &str) -> LibraryError {
        let names = self.names();
        let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        LibraryError::Unknown { name: name.to_owned(), near, looked: self.search.places() }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        // A map of whole values stays whole after any panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
