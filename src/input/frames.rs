//! Where a CSV record begins and ends.
//!
//! A quote that is never closed would make one value of all the rest of a file. So records are cut
//! out before they are parsed: a line whose quotes do not come out is bad by itself, and the next
//! line is looked at afresh.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use super::{BadRow, LONGEST_ROW, RowProblem, read_line, without_break};

/// A record's bytes, or a line that is none.
pub(super) enum Frame {
    /// It begins on that line; the line break at its end is not part of it.
    Record(u64, Vec<u8>),
    Bad(BadRow),
}

/// Cuts a stream into records.
#[derive(Debug)]
pub(super) struct Frames<R> {
    input: R,
    delimiter: u8,
    /// Lines that were looked at while a quote was open.
    ahead: VecDeque<(Vec<u8>, bool)>,
    /// Lines given out so far.
    line: u64,
}

/// Where in a record a byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the beginning of a value.
    Start,
    /// In a value without quotes.
    Plain,
    /// In a quoted value.
    Quoted,
    /// After a quote inside a quoted value: its end, or half of a doubled one.
    Quote,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R, delimiter: u8) -> Frames<R> {
        Frames { input, delimiter, ahead: VecDeque::new(), line: 0 }
    }

    /// The next record or bad line; blank lines are neither.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let Some((mut text, cut)) = self.line_at(0)? else { return Ok(None) };
            self.ahead.pop_front();
            self.line += 1;
            if self.line == 1 && text.starts_with(b"\xef\xbb\xbf") {
                text.drain(..3);
            }
            if without_break(&text).is_empty() {
                continue;
            }
            return self.frame(text, cut).map(Some);
        }
    }

    fn frame(&mut self, text: Vec<u8>, cut: bool) -> io::Result<Frame> {
        let line = self.line;
        let bad =
            |problem| Ok(Frame::Bad(BadRow { line, raw: without_break(&text).to_vec(), problem }));
        if cut {
            return bad(RowProblem::TooLong);
        }
        let mut place = self.scan(Place::Start, &text);
        let mut record = text.clone();
        let mut more = 0;
        while place == Ok(Place::Quoted) {
            match self.line_at(more)? {
                Some((next, false)) if record.len() + next.len() <= LONGEST_ROW => {
                    record.extend_from_slice(&next);
                    more += 1;
                    place = self.scan(Place::Quoted, &next);
                }
                _ => return bad(RowProblem::OpenQuote),
            }
        }
        if let Err(problem) = place {
            return bad(problem);
        }
        self.ahead.drain(..more);
        self.line += u64::try_from(more).unwrap_or(0);
        Ok(Frame::Record(line, without_break(&record).to_vec()))
    }

    /// The line that lies `ahead` lines ahead; read where it was not yet.
    fn line_at(&mut self, ahead: usize) -> io::Result<Option<(Vec<u8>, bool)>> {
        while self.ahead.len() <= ahead {
            match read_line(&mut self.input)? {
                Some(line) => self.ahead.push_back(line),
                None => return Ok(None),
            }
        }
        Ok(self.ahead.get(ahead).cloned())
    }

    /// Where a record stands at the end of `text`.
    fn scan(&self, mut place: Place, text: &[u8]) -> Result<Place, RowProblem> {
        let body = without_break(text).len();
        for (at, byte) in text.iter().enumerate() {
            place = match (place, *byte) {
                // The break is part of a value that is still open, and else the record's end.
                (Place::Quoted, b'"') => Place::Quote,
                (Place::Quoted, _) => Place::Quoted,
                _ if at >= body => return Ok(Place::Start),
                (Place::Start, b'"') | (Place::Quote, b'"') => Place::Quoted,
                (_, byte) if byte == self.delimiter => Place::Start,
                (Place::Quote, _) => return Err(RowProblem::AfterQuote),
                _ => Place::Plain,
            };
        }
        Ok(place)
    }
}
