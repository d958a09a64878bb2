//! Finding quota files in folders and among the presets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::presets::{self, PRESETS};
use super::{Entry, LibraryError};
use crate::quota::declare::Source;

/// The places that are searched.
#[derive(Debug)]
pub(super) struct Search {
    folders: Vec<PathBuf>,
}

/// Files with their time of change and length, as they were; `None`: not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<PathBuf, Option<(Option<SystemTime>, u64)>>);

impl Seen {
    fn note(&mut self, path: &Path) {
        self.0.insert(path.to_owned(), stamp(path));
    }

    /// The same files as they are now.
    pub(super) fn again(&self) -> Seen {
        Seen(self.0.keys().map(|path| (path.clone(), stamp(path))).collect())
    }
}

fn stamp(path: &Path) -> Option<(Option<SystemTime>, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

impl Search {
    pub(super) fn new(folders: Vec<PathBuf>) -> Search {
        Search { folders }
    }

    /// Where is looked, for people.
    pub(super) fn places(&self) -> Vec<String> {
        // Whoever is in another folder than usual sees it by that.
        let whole =
            |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        let folders = self.folders.iter().map(|folder| whole(folder).display().to_string());
        folders.chain(["the built-in presets".to_owned()]).collect()
    }

    /// All names and where each is first found.
    pub(super) fn names(&self) -> BTreeMap<String, Entry> {
        let mut names = BTreeMap::new();
        for &(name, _) in PRESETS {
            let entry = Entry { name: name.to_owned(), file: presets::file(name), built_in: true };
            names.insert(name.to_owned(), entry);
        }
        for path in self.folders.iter().rev().flat_map(|folder| files(folder)) {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let Some(name) = stem.filter(|name| is_name(name)) {
                let file = path.display().to_string();
                let entry = Entry { name: name.to_owned(), file, built_in: false };
                names.insert(name.to_owned(), entry);
            }
        }
        names
    }

    pub(super) fn finder(&self) -> Finder<'_> {
        Finder { search: self, state: RefCell::default() }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect()
}

/// A name that is one file's in a folder, and no other path.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// Finds the files of one upstream, noting all that were looked at.
pub(super) struct Finder<'a> {
    search: &'a Search,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    seen: Seen,
    /// The place of each file that was found.
    places: BTreeMap<String, usize>,
}

impl Finder<'_> {
    /// What was looked at.
    pub(super) fn seen(self) -> Seen {
        self.state.into_inner().seen
    }

    /// The first file of that name.
    pub(super) fn find(&self, name: &str) -> Result<Option<Source>, LibraryError> {
        if !is_name(name) {
            return Ok(None);
        }
        self.from(0, name)
    }

    /// What a file means by `extends`: with `.toml` a path from its own folder, else a name; its own
    /// name is the next file of that name.
    pub(super) fn base(&self, from: &Source, base: &str) -> Result<Source, String> {
        if base.ends_with(".toml") {
            return self.file(from, base);
        }
        let own = Path::new(&from.file).file_stem().is_some_and(|stem| stem == base);
        let known = self.state.borrow().places.get(&from.file).copied();
        let place = if own { known.map_or(0, |place| place + 1) } else { 0 };
        let found = if is_name(base) { self.from(place, base) } else { Ok(None) };
        match found {
            Ok(Some(source)) => Ok(source),
            Ok(None) => Err(self.not_found(base)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn not_found(&self, base: &str) -> String {
        let names = self.search.names();
        match crate::quota::declare::nearest(base, names.keys().map(String::as_str)) {
            Some(near) if near != base => format!("did you mean \"{near}\"?"),
            _ => format!("there is none in {}", self.search.places().join(", ")),
        }
    }

    fn file(&self, from: &Source, base: &str) -> Result<Source, String> {
        let folder = Path::new(&from.file).parent().unwrap_or(Path::new(""));
        let path = folder.join(base);
        match self.read(&path) {
            Ok(Some(source)) => Ok(source),
            Ok(None) => Err(format!("there is no file `{}`", path.display())),
            Err(error) => Err(format!("`{}` cannot be read: {error}", path.display())),
        }
    }

    fn from(&self, first: usize, name: &str) -> Result<Option<Source>, LibraryError> {
        for (place, folder) in self.search.folders.iter().enumerate().skip(first) {
            let path = folder.join(format!("{name}.toml"));
            let unreadable = |source: std::io::Error| match source.kind() {
                ErrorKind::InvalidData => LibraryError::NotText(path.clone()),
                _ => LibraryError::Unreadable { path: path.clone(), source },
            };
            if let Some(source) = self.read(&path).map_err(unreadable)? {
                self.state.borrow_mut().places.insert(source.file.clone(), place);
                return Ok(Some(source));
            }
        }
        let place = self.search.folders.len();
        if first > place {
            return Ok(None);
        }
        let preset = PRESETS.iter().find(|(known, _)| *known == name);
        Ok(preset.map(|(name, text)| {
            let source = Source { file: presets::file(name), text: (*text).to_owned() };
            self.state.borrow_mut().places.insert(source.file.clone(), place);
            source
        }))
    }

    /// The file's text; `None` where there is none. Looked at before it is read, so that a change in
    /// between is noticed later.
    fn read(&self, path: &Path) -> std::io::Result<Option<Source>> {
        self.state.borrow_mut().seen.note(path);
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(Source { file: path.display().to_string(), text })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(error),
        }
    }
}
