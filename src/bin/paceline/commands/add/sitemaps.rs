//! A sitemap, or an index and all its sitemaps, one after the other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use paceline::address;
use paceline::input::encoding::Encoding;
use paceline::input::sitemap::{Entry, MOST_ENTRIES, Sitemap};
use url::Url;

use super::fetch::{Fetcher, NotFetched};
use super::place::{Place, Reach, again, text};
use super::source::Item;
use crate::context::Context;
use crate::exit::Usage;

/// Indexes within indexes.
const DEEPEST: usize = 8;

/// Where a sitemap is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// stdin.
    Stdin,
    File(PathBuf),
    Url(Url),
}

impl Location {
    /// A URL where it begins like one, else a file; `-` is stdin.
    pub fn parse(text: &str) -> anyhow::Result<Location> {
        if text == "-" {
            return Ok(Location::Stdin);
        }
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Ok(Location::File(PathBuf::from(text)));
        }
        let wrong = |error| Usage(format!("--sitemap: the URL cannot be used: {error}"));
        Ok(Location::Url(address::parse(text).map_err(wrong)?))
    }

    /// Where an index that is here means by `loc`: of an index that is a file, what lies beside it under
    /// that name goes before what would have to be fetched.
    fn child(&self, loc: &str) -> Result<Location, String> {
        let url = match self {
            Location::Url(base) => base.join(loc),
            _ => Url::parse(loc),
        };
        let folder = match self {
            Location::File(path) => Some(path.parent().unwrap_or(Path::new(""))),
            _ => None,
        };
        match (url, folder) {
            (Ok(url), folder) if matches!(url.scheme(), "http" | "https") => {
                let name = url.path_segments().and_then(|mut segments| segments.next_back());
                let beside = folder.zip(name.filter(|name| !name.is_empty()));
                let beside = beside.map(|(folder, name)| folder.join(name));
                if let Some(file) = beside.filter(|file| file.is_file()) {
                    return Ok(Location::File(file));
                }
                let url = address::parse(url.as_str()).map_err(|error| error.to_string())?;
                Ok(Location::Url(url))
            }
            (Ok(url), Some(_)) if url.scheme() == "file" => {
                let path = url.to_file_path().map_err(|()| format!("`{loc}` is no path"))?;
                Ok(Location::File(path))
            }
            (Err(url::ParseError::RelativeUrlWithoutBase), Some(folder)) => {
                Ok(Location::File(folder.join(loc)))
            }
            (Ok(_), _) => Err(format!("`{loc}` is neither http nor https")),
            (Err(error), _) => Err(format!("`{loc}` is no URL: {error}")),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Stdin => f.write_str("stdin"),
            Location::File(path) => path.display().fmt(f),
            Location::Url(url) => url.fmt(f),
        }
    }
}

/// What `--sitemap` names.
#[derive(Clone, Debug)]
pub struct Sitemaps {
    root: Location,
    shared: Rc<Shared>,
}

/// What opens sitemaps.
#[derive(Debug)]
struct Shared {
    fetcher: Fetcher,
    stdin: Option<Place>,
    encoding: Option<Encoding>,
    /// What was fetched, where it is read twice.
    kept: Option<RefCell<BTreeMap<Url, File>>>,
}

impl Sitemaps {
    /// Nothing is read yet, but stdin where it is read twice.
    pub fn new(
        root: Location,
        twice: bool,
        encoding: Option<Encoding>,
        context: &Context,
    ) -> anyhow::Result<Sitemaps> {
        let stdin = match root {
            Location::Stdin => Some(Place::new(Path::new("-"), twice)?),
            _ => None,
        };
        let kept = twice.then(RefCell::default);
        let shared = Shared { fetcher: Fetcher::new(context), stdin, encoding, kept };
        Ok(Sitemaps { root, shared: Rc::new(shared) })
    }

    /// The file that is read.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.root {
            Location::File(path) => Some(path.clone()),
            _ => None,
        }
    }

    /// All its rows; `place` is told which sitemap the last one is of. Where the site does not give it,
    /// that is all there is to tell.
    pub fn walk(&self, place: Rc<RefCell<String>>) -> anyhow::Result<Walk> {
        let mut walk = Walk {
            shared: Rc::clone(&self.shared),
            open: Vec::new(),
            seen: BTreeSet::new(),
            failed: None,
            place,
        };
        match walk.enter(self.root.clone()) {
            Err(error) if error.is::<NotFetched>() => {
                *walk.place.borrow_mut() = format!(" of {}", self.root);
                walk.failed = Some(format!("the sitemap is not read: {error}"));
            }
            entered => entered?,
        }
        Ok(walk)
    }
}

impl Shared {
    fn open(&self, location: &Location) -> anyhow::Result<Box<dyn BufRead>> {
        let at = |place: &Place| Ok(place.open(self.encoding)?.0);
        let url = match (location, &self.stdin) {
            (Location::Url(url), _) => url,
            (Location::Stdin, Some(place)) => return at(place),
            (Location::Stdin, None) => return at(&Place::Stdin),
            (Location::File(path), _) => return at(&Place::File(path.clone())),
        };
        let cannot = || format!("what was fetched from {url} cannot be read");
        let file = match &self.kept {
            None => self.fetcher.fetch(url)?,
            Some(kept) => {
                let mut kept = kept.borrow_mut();
                if !kept.contains_key(url) {
                    kept.insert(url.clone(), self.fetcher.fetch(url)?);
                }
                kept.get(url).map(again).transpose().with_context(cannot)?.with_context(cannot)?
            }
        };
        text(file, self.encoding, &Reach::default()).with_context(cannot)
    }
}

/// Goes over sitemaps, those of an index where it names them.
pub struct Walk {
    shared: Rc<Shared>,
    /// The one that is read, and the indexes that led to it.
    open: Vec<(Location, Sitemap<Box<dyn BufRead>>)>,
    seen: BTreeSet<Location>,
    /// Why there is nothing to go over.
    failed: Option<String>,
    place: Rc<RefCell<String>>,
}

impl Walk {
    fn enter(&mut self, location: Location) -> anyhow::Result<()> {
        let text = self.shared.open(&location)?;
        let sitemap = Sitemap::new(text).with_context(|| format!("{location} cannot be read"))?;
        self.seen.insert(location.clone());
        self.open.push((location, sitemap));
        Ok(())
    }

    /// Begins one that an index names; tells what is wrong with that.
    fn follow(&mut self, loc: &str) -> Option<String> {
        let index = self.open.last().map(|(location, _)| location.clone())?;
        let child = match index.child(loc) {
            Ok(child) => child,
            Err(problem) => return Some(format!("its <loc> cannot be used: {problem}")),
        };
        if self.seen.contains(&child) {
            return Some(format!("the sitemap {child} was read already"));
        }
        if self.open.len() > DEEPEST || self.seen.len() > MOST_ENTRIES {
            let what =
                format!("indexes lie more than {DEEPEST} deep, or name more than {MOST_ENTRIES}");
            return Some(format!("the sitemap {child} is not read: {what}"));
        }
        let failed = self.enter(child.clone()).err()?;
        self.seen.insert(child.clone());
        Some(format!("the sitemap {child} is not read: {failed:#}"))
    }
}

impl Iterator for Walk {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if let Some(problem) = self.failed.take() {
            return Some(Item::Bad { line: 0, raw: Vec::new(), problem });
        }
        loop {
            let (location, sitemap) = self.open.last_mut()?;
            let entry = sitemap.next();
            *self.place.borrow_mut() = format!(" of {location}");
            match entry {
                None => {
                    self.open.pop();
                }
                Some(Entry::Row(input)) => return Some(input.into()),
                Some(Entry::Sitemap { line, loc }) => {
                    if let Some(problem) = self.follow(&loc) {
                        return Some(Item::Bad { line, raw: Vec::new(), problem });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_names_what_lies_beside_it_or_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.xml.gz"), "").unwrap();
        let index = Location::File(folder.path().join("index.xml"));
        let file = |name: &str| Location::File(folder.path().join(name));
        let url = |text: &str| Location::Url(Url::parse(text).unwrap());
        assert_eq!(index.child("https://a.example/maps/a.xml.gz?v=1"), Ok(file("a.xml.gz")));
        assert_eq!(index.child("https://a.example/b.xml"), Ok(url("https://a.example/b.xml")));
        assert_eq!(index.child("maps/b.xml"), Ok(file("maps/b.xml")));
        assert!(index.child("ftp://a.example/b.xml").is_err());
        let fetched = url("https://a.example/maps/index.xml");
        assert_eq!(fetched.child("b.xml"), Ok(url("https://a.example/maps/b.xml")));
        assert!(fetched.child("file:///etc/passwd").is_err());
        assert!(Location::Stdin.child("b.xml").is_err());
    }
}
