//! Rows come in: from CSV, JSON lines, sitemaps, or lines of one value each.
//!
//! | file | noun |
//! | --- | --- |
//! | [`csv`] | a CSV file's rows by column |
//! | `frames` | where a CSV record begins and ends, and which line cannot be one |
//! | [`jsonl`] | an object a line |
//! | [`lines`] | one value a line |
//! | [`sitemap`] | a sitemap's URLs, an index's sitemaps |
//! | `counted` | how far a stream was read |
//! | [`gzip`] | what is packed, unpacked |
//! | [`encoding`] | text of other encodings, as UTF-8 |
//! | `rejects` | a file of rejected rows that is read again |
//!
//! Readers hold one row at a time. A row that cannot be read is told with its line, and reading goes
//! on with the next one.

mod counted;
pub mod csv;
pub mod encoding;
mod frames;
pub mod gzip;
pub mod jsonl;
pub mod lines;
mod rejects;
pub mod sitemap;

use std::io::{self, BufRead, Read as _};

use crate::job::{Columns, Own};

/// Bytes of one row; a longer one is refused, so that memory stays flat.
pub const LONGEST_ROW: usize = 1 << 20;

/// What one row turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Values by column.
    Row(Row),
    /// It cannot be read.
    Bad(BadRow),
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line that it begins on, from 1.
    pub line: u64,
    /// Its values.
    pub columns: Columns,
    /// What it says of its own request.
    pub own: Own,
    /// Its bytes, without the line break at its end.
    pub raw: Vec<u8>,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The line that it begins on, from 1.
    pub line: u64,
    /// Its bytes, without the line break at its end; cut where it is too long.
    pub raw: Vec<u8>,
    /// Why.
    pub problem: RowProblem,
}

/// Why a row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// More or fewer values than columns.
    #[error("it has {}, and there {}", some(.found, "value"), are(.expected, "column"))]
    Count {
        /// The values.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// Bytes that are no UTF-8.
    #[error(
        "its value in the column `{column}` is no UTF-8 text; if the file is of another encoding, say so, \
         as in --encoding windows-1252"
    )]
    NotText {
        /// The column.
        column: String,
    },
    /// The file ends, or too much follows, before a quote is closed.
    #[error("a quote in it is never closed")]
    OpenQuote,
    /// Something other than a delimiter follows a closing quote.
    #[error("text follows a closing quote; a quote inside a value is written twice")]
    AfterQuote,
    /// More than [`LONGEST_ROW`] bytes.
    #[error("it is longer than {} bytes", LONGEST_ROW)]
    TooLong,
    /// No JSON, or another kind of it.
    #[error("it is no JSON object: {what} (at character {column})")]
    NoJson {
        /// What was met.
        what: String,
        /// Where, from 1.
        column: usize,
    },
    /// Two fields of one name.
    #[error("its field `{field}` is there twice")]
    Twice {
        /// The name.
        field: String,
    },
    /// A field whose name is empty.
    #[error("a field of it has no name")]
    Nameless,
    /// XML that no reader can make out.
    #[error("its XML is broken: {what}")]
    Xml {
        /// What was met.
        what: String,
    },
    /// XML of something else.
    #[error("it is no sitemap: its root is <{root}>, not <urlset> or <sitemapindex>")]
    NoSitemap {
        /// The name of its root.
        root: String,
    },
    /// It cannot be read to its end.
    #[error("it cannot be read further: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// More than [`sitemap::MOST_BYTES`].
    #[error("it is larger than {} MiB, which the protocol does not allow: split it", sitemap::MOST_BYTES >> 20)]
    TooLarge,
    /// More than [`sitemap::MOST_ENTRIES`].
    #[error(
        "there are more than {} entries in it, which the protocol does not allow: split it",
        sitemap::MOST_ENTRIES
    )]
    TooManyEntries,
    /// An entry of the other kind.
    #[error("a <{entry}> stands in a <{root}>, which has none")]
    Misplaced {
        /// What it is.
        entry: String,
        /// What it is in.
        root: String,
    },
    /// An entry without an address.
    #[error("it has no <loc>")]
    NoLoc,
    /// An address of [`sitemap::LOC_BOUND`] characters or more.
    #[error("its <loc> has {} characters or more", sitemap::LOC_BOUND)]
    LongLoc,
    /// An `&` that begins nothing.
    #[error("it has an `&` that is not written as `&amp;`")]
    Ampersand,
    /// An entity that only a document type could declare.
    #[error("it has an entity `&{name};`, which XML does not know")]
    Entity {
        /// Its name.
        name: String,
    },
    /// `headers` of another form.
    #[error("its `headers` are no object of texts")]
    Headers,
}

fn some(count: &usize, one: &str) -> String {
    format!("{count} {one}{}", if *count == 1 { "" } else { "s" })
}

fn are(count: &usize, one: &str) -> String {
    format!("{} {}", if *count == 1 { "is" } else { "are" }, some(count, one))
}

/// One line with its break, and whether it was cut at [`LONGEST_ROW`]; `None` at the end.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, bool)>> {
    let Some(line) = read_piece(input)? else { return Ok(None) };
    let cut = line.len() >= LONGEST_ROW && !line.ends_with(b"\n");
    if cut {
        skip_line(input)?;
    }
    Ok(Some((line, cut)))
}

/// A line with its break, or as much of one as [`LONGEST_ROW`] lets through; `None` at the end.
fn read_piece(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut piece = Vec::new();
    let most = u64::try_from(LONGEST_ROW).unwrap_or(u64::MAX);
    let read = input.by_ref().take(most).read_until(b'\n', &mut piece)?;
    Ok((read > 0).then_some(piece))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        let done = end.is_some() || buffer.is_empty();
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// Lines with their number, from 1, without their breaks; blank ones are passed over, and so is a
/// byte order mark.
#[derive(Debug)]
struct SourceLines<R> {
    input: R,
    line: u64,
}

impl<R: BufRead> SourceLines<R> {
    fn new(input: R) -> SourceLines<R> {
        SourceLines { input, line: 0 }
    }

    /// Its number, its bytes, and whether it was cut.
    fn next(&mut self) -> Option<io::Result<(u64, Vec<u8>, bool)>> {
        loop {
            let (text, cut) = match read_line(&mut self.input) {
                Ok(Some(read)) => read,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            self.line += 1;
            let mut raw = without_break(&text);
            if self.line == 1 {
                raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
            }
            if !raw.trim_ascii().is_empty() {
                return Some(Ok((self.line, raw.to_vec(), cut)));
            }
        }
    }
}

/// The line without its break.
fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
