//! A sitemap's URLs with their `lastmod`, and an index's sitemaps, as <https://www.sitemaps.org/protocol.html>
//! has them; a text file of URLs is a sitemap too.
//!
//! ```
//! use paceline::input::Input;
//! use paceline::input::sitemap::{Entry, Sitemap};
//!
//! let text = "<urlset><url><loc>https://www.example.com/?a=1&amp;b=2</loc>\n\
//!     <lastmod>2026-11-30</lastmod></url></urlset>";
//! let entries = Sitemap::new(text.as_bytes())?.collect::<Vec<_>>();
//! let [Entry::Row(Input::Row(row))] = entries.as_slice() else { unreachable!() };
//! assert_eq!(row.columns["url"], "https://www.example.com/?a=1&b=2");
//! assert_eq!(row.columns["lastmod"], "2026-11-30");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Only what the protocol itself names is read: images, videos, news and `xhtml:link` alternates of a URL
//! are passed over. Where the XML is broken the sitemap ends, and all that was before it counts.

use std::io::{self, BufRead};

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use quick_xml::name::QName;

use super::counted::Counted;
use super::lines::Lines;
use super::{BadRow, Input, Row, RowProblem};
use crate::job::{Columns, Own};

/// Entries of one sitemap, or of one index.
pub const MOST_ENTRIES: usize = 50_000;

/// Bytes of one sitemap, unpacked.
pub const MOST_BYTES: u64 = 50 * 1024 * 1024;

/// An address is shorter than so many characters.
pub const LOC_BOUND: usize = 2048;

/// The columns of a sitemap's rows, as a CSV header: `lastmod` only where there is one.
pub const COLUMNS: [&str; 2] = ["url", "lastmod"];

/// What stands in a sitemap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A URL; its bytes are a row of CSV.
    Row(Input),
    /// In an index: another sitemap.
    Sitemap {
        /// The line that it begins on, from 1.
        line: u64,
        /// Where it is.
        loc: String,
    },
}

/// Reads a sitemap.
#[derive(Debug)]
pub struct Sitemap<R> {
    form: Form<R>,
}

#[derive(Debug)]
enum Form<R> {
    Xml(Box<Xml<R>>),
    Text(Lines<Counted<R>>, usize),
    Ended,
}

impl<R: BufRead> Sitemap<R> {
    /// Looks whether it is XML or text.
    ///
    /// # Errors
    ///
    /// Where its beginning cannot be read.
    pub fn new(input: R) -> io::Result<Sitemap<R>> {
        let mut input = Counted::new(input, MOST_BYTES);
        // Bytes may come one by one: past a byte order mark and white space, until something tells.
        let form = loop {
            match input.fill_buf()?.first().copied() {
                Some(b'\xef' | b'\xbb' | b'\xbf') if input.bytes < 3 => input.consume(1),
                Some(byte) if byte.is_ascii_whitespace() => input.consume(1),
                Some(b'<') | None => break Form::Xml(Box::new(Xml::new(input))),
                Some(_) => {
                    let passed = input.line - 1;
                    break Form::Text(Lines::after(input, "url", passed), 0);
                }
            }
        };
        Ok(Sitemap { form })
    }
}

impl<R: BufRead> Iterator for Sitemap<R> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let entry = match &mut self.form {
            Form::Xml(xml) => xml.next(),
            Form::Text(lines, count) => text_row(lines, count),
            Form::Ended => None,
        };
        let is_last = matches!(
            &entry,
            None | Some(Entry::Row(Input::Bad(BadRow {
                problem: RowProblem::Xml { .. }
                    | RowProblem::TooManyEntries
                    | RowProblem::TooLarge
                    | RowProblem::NoSitemap { .. }
                    | RowProblem::Unreadable { .. },
                ..
            })))
        );
        if is_last {
            self.form = Form::Ended;
        }
        entry
    }
}

fn text_row<R: BufRead>(lines: &mut Lines<Counted<R>>, count: &mut usize) -> Option<Entry> {
    *count += 1;
    Some(Entry::Row(match lines.next()? {
        Ok(input) if *count <= MOST_ENTRIES => input,
        Ok(Input::Row(Row { line, .. }) | Input::Bad(BadRow { line, .. })) => {
            bad(line, Vec::new(), RowProblem::TooManyEntries)
        }
        Err(error) => bad(0, Vec::new(), RowProblem::Unreadable { why: error.to_string() }),
    }))
}

fn bad(line: u64, raw: Vec<u8>, problem: RowProblem) -> Input {
    Input::Bad(BadRow { line, raw, problem })
}

/// The parts of an entry that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Loc,
    Lastmod,
}

/// What was read of an entry so far.
#[derive(Debug, Default)]
struct Draft {
    line: u64,
    loc: Option<String>,
    lastmod: Option<String>,
    problem: Option<RowProblem>,
}

#[derive(Debug)]
struct Xml<R> {
    reader: Reader<Counted<R>>,
    buffer: Vec<u8>,
    /// Elements that are open.
    depth: usize,
    /// The prefix of the root, which is that of all that the protocol names.
    prefix: Option<String>,
    /// What an entry is called: `url`, or in an index `sitemap`.
    entry: &'static str,
    draft: Option<Draft>,
    field: Option<Field>,
    entries: usize,
}

impl<R: BufRead> Xml<R> {
    fn new(input: Counted<R>) -> Xml<R> {
        let mut reader = Reader::from_reader(input);
        // An `&` that stands alone spoils its own entry, not all that follows.
        reader.config_mut().allow_dangling_amp = true;
        Xml {
            reader,
            buffer: Vec::new(),
            depth: 0,
            prefix: None,
            entry: "",
            draft: None,
            field: None,
            entries: 0,
        }
    }

    fn next(&mut self) -> Option<Entry> {
        loop {
            let line = self.reader.get_ref().line;
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let taken = match self.reader.read_event_into(&mut buffer) {
                Ok(Event::Eof) => return self.end(line),
                Ok(event) => self.take(event, line),
                Err(quick_xml::Error::Io(error)) => {
                    Err(RowProblem::Unreadable { why: error.to_string() })
                }
                Err(error) => Err(RowProblem::Xml { what: error.to_string() }),
            };
            self.buffer = buffer;
            match taken {
                Ok(None) => {}
                Ok(Some(entry)) => return Some(entry),
                // What is wrong inside of an event is told with the line that it begins on.
                Err(problem) => return Some(self.broken(line, problem)),
            }
        }
    }

    fn broken(&mut self, line: u64, problem: RowProblem) -> Entry {
        let raw = self.draft.take().map_or_else(Vec::new, |draft| draft.raw());
        Entry::Row(bad(line, raw, problem))
    }

    fn end(&mut self, line: u64) -> Option<Entry> {
        if self.reader.get_ref().is_too_large() {
            return Some(self.broken(line, RowProblem::TooLarge));
        }
        let is_whole = self.depth == 0 && !self.entry.is_empty();
        let what =
            if self.entry.is_empty() { "there is nothing in it" } else { "it ends too early" };
        (!is_whole).then(|| self.broken(line, RowProblem::Xml { what: what.to_owned() }))
    }

    fn take(&mut self, event: Event<'_>, line: u64) -> Result<Option<Entry>, RowProblem> {
        match event {
            Event::Start(start) => self.open(start.name(), line).map(|()| None),
            Event::Empty(empty) => {
                let opened = self.open(empty.name(), line);
                let closed = self.close();
                opened.map(|()| closed)
            }
            Event::End(_) => Ok(self.close()),
            Event::Text(text) => {
                let is_written_right = !text.contains('&');
                self.text(&text.xml10_content());
                if !is_written_right {
                    self.spoil(RowProblem::Ampersand);
                }
                Ok(None)
            }
            Event::CData(text) => {
                self.text(&text.xml10_content());
                Ok(None)
            }
            Event::GeneralRef(reference) => {
                self.refer(&reference);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn open(&mut self, name: QName<'_>, line: u64) -> Result<(), RowProblem> {
        self.depth += 1;
        let prefix = name.prefix().map(|prefix| prefix.into_inner());
        let local = name.local_name().into_inner();
        if self.depth == 1 {
            self.prefix = prefix.map(str::to_owned);
            self.entry = match local {
                "urlset" => "url",
                "sitemapindex" => "sitemap",
                _ => return Err(RowProblem::NoSitemap { root: local.to_owned() }),
            };
            return Ok(());
        }
        if prefix != self.prefix.as_deref() {
            return Ok(());
        }
        match (self.depth, local) {
            (2, local) if local == self.entry => {
                self.entries += 1;
                if self.entries > MOST_ENTRIES {
                    return Err(RowProblem::TooManyEntries);
                }
                self.draft = Some(Draft { line, ..Draft::default() });
            }
            (2, "url" | "sitemap") => {
                let root = if self.entry == "url" { "urlset" } else { "sitemapindex" };
                let (entry, root) = (local.to_owned(), root.to_owned());
                return Err(RowProblem::Misplaced { entry, root });
            }
            (3, "loc") => self.begin(Field::Loc),
            (3, "lastmod") => self.begin(Field::Lastmod),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, field: Field) {
        let Some(draft) = &mut self.draft else { return };
        self.field = Some(field);
        let name = if field == Field::Loc { "loc" } else { "lastmod" };
        if draft.of(field).replace(String::new()).is_some() {
            self.spoil(RowProblem::Twice { field: name.to_owned() });
        }
    }

    fn close(&mut self) -> Option<Entry> {
        self.depth = self.depth.saturating_sub(1);
        match self.depth {
            2 => self.field = None,
            1 => {
                let is_index = self.entry == "sitemap";
                return self.draft.take().map(|draft| draft.finish(is_index));
            }
            _ => {}
        }
        None
    }

    fn text(&mut self, text: &str) {
        if self.depth == 3
            && let (Some(draft), Some(field)) = (&mut self.draft, self.field)
            && let Some(value) = draft.of(field)
        {
            value.push_str(text);
        }
    }

    fn refer(&mut self, reference: &BytesRef<'_>) {
        match (reference.resolve_char_ref(), resolve_predefined_entity(reference)) {
            (Ok(Some(c)), _) => self.text(c.encode_utf8(&mut [0; 4])),
            (_, Some(text)) => self.text(text),
            _ => self.spoil(RowProblem::Entity { name: reference.to_string() }),
        }
    }

    /// The entry that is open cannot be used; what is wrong outside of what is read does not matter.
    fn spoil(&mut self, problem: RowProblem) {
        if let Some(draft) = self.draft.as_mut().filter(|_| self.field.is_some()) {
            draft.problem.get_or_insert(problem);
        }
    }
}

impl Draft {
    fn of(&mut self, field: Field) -> &mut Option<String> {
        match field {
            Field::Loc => &mut self.loc,
            Field::Lastmod => &mut self.lastmod,
        }
    }

    fn raw(&self) -> Vec<u8> {
        let mut row = csv::WriterBuilder::new().from_writer(Vec::new());
        let value = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
        // Writing to memory does not fail.
        let _ = row.write_record([value(&self.loc), value(&self.lastmod)]);
        let mut raw = row.into_inner().unwrap_or_default();
        raw.truncate(raw.trim_ascii_end().len());
        raw
    }

    fn finish(mut self, is_index: bool) -> Entry {
        let raw = self.raw();
        let line = self.line;
        let full = |text: Option<String>| {
            text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let (loc, lastmod) = (full(self.loc.take()), full(self.lastmod.take()));
        match (self.problem, loc) {
            (Some(problem), _) => Entry::Row(bad(line, raw, problem)),
            (None, None) => Entry::Row(bad(line, raw, RowProblem::NoLoc)),
            (None, Some(loc)) if loc.chars().nth(LOC_BOUND - 1).is_some() => {
                Entry::Row(bad(line, raw, RowProblem::LongLoc))
            }
            (None, Some(loc)) if is_index => Entry::Sitemap { line, loc },
            (None, Some(loc)) => {
                let mut columns = Columns::from([("url".to_owned(), loc)]);
                columns.extend(lastmod.map(|lastmod| ("lastmod".to_owned(), lastmod)));
                Entry::Row(Input::Row(Row { line, columns, own: Own::default(), raw }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
