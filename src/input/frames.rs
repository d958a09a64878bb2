//! Where a CSV record begins and ends.
//!
//! A quote that is never closed would make one value of all the rest of a file. So records are cut
//! out before they are parsed: a line whose quotes do not come out is bad by itself, and the next
//! line is looked at afresh. A record whose quotes do come out is bad as a whole where it is too long.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use super::{BadRow, LONGEST_ROW, RowProblem, read_piece, skip_line, without_break};

/// How far an open quote is followed, to tell a value too long from a quote that is never closed.
const FARTHEST: usize = 8 * LONGEST_ROW;

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
    /// Lines that are looked at, each in pieces of at most [`LONGEST_ROW`].
    ahead: VecDeque<Vec<u8>>,
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

    pub(super) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
    }

    /// The next record or bad line; blank lines are neither.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        while self.reads(0)? {
            self.line += 1;
            let Some(piece) = self.ahead.front_mut() else { break };
            if self.line == 1 && piece.starts_with(b"\xef\xbb\xbf") {
                piece.drain(..3);
            }
            if !without_break(piece).is_empty() {
                return self.frame().map(Some);
            }
            self.ahead.pop_front();
        }
        Ok(None)
    }

    fn frame(&mut self) -> io::Result<Frame> {
        let (line, mut place) = (self.line, Place::Start);
        let (mut pieces, mut size) = (0, 0);
        let problem = loop {
            if size > FARTHEST {
                break Some(RowProblem::OpenQuote);
            }
            let known = self.reads(pieces)?;
            let Some(piece) = self.ahead.get(pieces).filter(|_| known) else {
                break (place == Place::Quoted).then_some(RowProblem::OpenQuote);
            };
            match self.scan(place, piece) {
                Ok(next) => place = next,
                Err(problem) => break Some(problem),
            }
            pieces += 1;
            size += piece.len();
            if piece.ends_with(b"\n") && place != Place::Quoted {
                break None;
            }
        };
        if let Some(problem) = problem {
            return self.bad_line(problem);
        }
        let taken: Vec<Vec<u8>> = self.ahead.drain(..pieces).collect();
        let breaks = taken.iter().filter(|piece| piece.ends_with(b"\n")).count();
        self.line += u64::try_from(breaks.saturating_sub(1)).unwrap_or(0);
        if size > LONGEST_ROW {
            let raw = taken.first().map(|piece| without_break(piece).to_vec()).unwrap_or_default();
            return Ok(Frame::Bad(BadRow { line, raw, problem: RowProblem::TooLong }));
        }
        let mut record = taken.concat();
        record.truncate(without_break(&record).len());
        Ok(Frame::Record(line, record))
    }

    /// Gives up the first line, and only that.
    fn bad_line(&mut self, problem: RowProblem) -> io::Result<Frame> {
        let end = self.ahead.iter().position(|piece| piece.ends_with(b"\n"));
        let pieces = end.map_or(self.ahead.len(), |end| end + 1);
        let taken: Vec<Vec<u8>> = self.ahead.drain(..pieces).collect();
        if end.is_none() {
            skip_line(&mut self.input)?;
        }
        let is_long = taken.iter().map(Vec::len).sum::<usize>() > LONGEST_ROW;
        let problem = if is_long { RowProblem::TooLong } else { problem };
        let raw = taken.first().map(|piece| without_break(piece).to_vec()).unwrap_or_default();
        Ok(Frame::Bad(BadRow { line: self.line, raw, problem }))
    }

    /// Whether there is a piece that far ahead; it is read where it was not yet.
    fn reads(&mut self, ahead: usize) -> io::Result<bool> {
        while self.ahead.len() <= ahead {
            match read_piece(&mut self.input)? {
                Some(piece) => self.ahead.push_back(piece),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Where a record stands at the end of `text`.
    fn scan(&self, mut place: Place, text: &[u8]) -> Result<Place, RowProblem> {
        let is_cut = text.len() >= LONGEST_ROW && !text.ends_with(b"\n");
        let body = if is_cut { text.len() } else { without_break(text).len() };
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
