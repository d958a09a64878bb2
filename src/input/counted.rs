//! How far a stream was read: its lines and bytes.

use std::io::{self, BufRead, Read};

/// A stream whose lines and bytes are counted, and that ends where it grows too large.
#[derive(Debug)]
pub(super) struct Counted<R> {
    input: R,
    most: u64,
    /// The line of the next byte, from 1.
    pub(super) line: u64,
    /// Bytes read.
    pub(super) bytes: u64,
}

impl<R> Counted<R> {
    /// It ends where it has more than `most` bytes.
    pub(super) fn new(input: R, most: u64) -> Counted<R> {
        Counted { input, most, line: 1, bytes: 0 }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.bytes > self.most
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let read = ready.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.is_too_large() { Ok(&[]) } else { self.input.fill_buf() }
    }

    fn consume(&mut self, amount: usize) {
        if let Some(read) = self.input.fill_buf().ok().and_then(|ready| ready.get(..amount)) {
            self.line += read.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        self.bytes += amount as u64;
        self.input.consume(amount);
    }
}
