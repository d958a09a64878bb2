//! What is wrong in a quota file: every problem with its place and its fix.

use std::cell::RefCell;
use std::fmt;

use super::node::At;
use super::units::Wrong;

/// A quota file's text, and how the file is named to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path, or where else the text is from.
    pub file: String,
    /// TOML.
    pub text: String,
}

/// All that is wrong with one upstream's quota file and the files that it extends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct DeclareError {
    /// The file that was read.
    pub file: String,
    /// At least one, in the order of file and place.
    pub problems: Vec<Problem>,
}

impl fmt::Display for DeclareError {
    /// One line a problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file it stands in: the upstream's own or one that it extends.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { file, line, column, message, fix } = self;
        write!(f, "{file}:{line}:{column}: {message}")?;
        if fix.is_empty() { Ok(()) } else { write!(f, "; {fix}") }
    }
}

/// Collects problems while a file is read, so that all of them are told at once.
pub(super) struct Report {
    sources: Vec<Source>,
    found: RefCell<Vec<(At, Wrong)>>,
}

impl Report {
    pub(super) fn new() -> Report {
        Report { sources: Vec::new(), found: RefCell::default() }
    }

    /// Adds a file; its index is what an [`At`] names it by.
    pub(super) fn add(&mut self, source: Source) -> usize {
        self.sources.push(source);
        self.sources.len() - 1
    }

    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Notes a problem, once.
    pub(super) fn problem(&self, at: At, message: impl Into<String>, fix: impl Into<String>) {
        self.wrong(at, Wrong { message: message.into(), fix: fix.into() });
    }

    /// Notes what a reader of units found wrong, once.
    pub(super) fn wrong(&self, at: At, wrong: Wrong) {
        let mut found = self.found.borrow_mut();
        let known = found.iter().any(|(place, known)| *place == at && *known == wrong);
        if !known {
            found.push((at, wrong));
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Everything found, or nothing.
    pub(super) fn finish(&self) -> Result<(), DeclareError> {
        let mut found = self.found.borrow().clone();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(at, _)| *at);
        let file = self.sources.first().map(|source| source.file.clone()).unwrap_or_default();
        let problems = found.into_iter().map(|(at, wrong)| self.locate(at, wrong)).collect();
        Err(DeclareError { file, problems })
    }

    fn locate(&self, at: At, wrong: Wrong) -> Problem {
        let (file, line, column) = self.place(at);
        Problem { file, line, column, message: wrong.message, fix: wrong.fix }
    }

    /// File, line and column.
    pub(super) fn place(&self, at: At) -> (String, usize, usize) {
        let Some(source) = self.sources.get(at.file) else { return (String::new(), 1, 1) };
        let before = source.text.get(..at.start).unwrap_or(&source.text);
        let line = before.matches('\n').count() + 1;
        let last = before.rsplit('\n').next().unwrap_or_default();
        (source.file.clone(), line, last.chars().count() + 1)
    }
}
