//! Where bytes come from: a file, or stdin. What is packed is unpacked, and what was read is counted.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use paceline::input::encoding::{Encoding, utf8};
use paceline::input::gzip::unpacked;

use crate::exit::Usage;

/// A file, or stdin.
#[derive(Debug)]
pub enum Place {
    Stdin,
    /// stdin, kept in a file that vanishes with the program: it is read twice.
    Spool(File),
    File(PathBuf),
}

/// How far something was read.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Bytes read, packed as they were.
    pub read: Rc<Cell<u64>>,
    /// Bytes that there are, where that is known.
    pub total: Option<u64>,
}

/// Counts what is read.
struct Counting<R> {
    input: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

impl Place {
    /// Reads nothing yet, unless it is stdin that is to be read twice.
    pub fn new(path: &Path, twice: bool) -> anyhow::Result<Place> {
        if path != Path::new("-") {
            return Ok(Place::File(path.to_owned()));
        }
        if !twice {
            return Ok(Place::Stdin);
        }
        let spool = || {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut io::stdin().lock(), &mut file)?;
            Ok(file)
        };
        let kept: io::Result<File> = spool();
        Ok(Place::Spool(kept.context("what stands on stdin cannot be kept for --strict")?))
    }

    /// Its text from the beginning.
    pub fn open(&self, encoding: Option<Encoding>) -> anyhow::Result<(Box<dyn BufRead>, Reach)> {
        let cannot = || format!("what is read{} cannot be read", self.name());
        let file = match self {
            Place::Stdin => {
                let reach = Reach::default();
                return Ok((text(io::stdin(), encoding, &reach).with_context(cannot)?, reach));
            }
            Place::Spool(file) => again(file).with_context(cannot)?,
            Place::File(path) => File::open(path)
                .map_err(|error| Usage(format!("`{}` cannot be read: {error}", path.display())))?,
        };
        let size = file.metadata().ok().filter(|known| known.is_file()).map(|known| known.len());
        let reach = Reach { total: size, ..Reach::default() };
        Ok((text(file, encoding, &reach).with_context(cannot)?, reach))
    }

    /// The file's path.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Place::File(path) => Some(path.clone()),
            Place::Stdin | Place::Spool(_) => None,
        }
    }

    /// What a line is one of, as in `line 7 of x.csv`.
    pub fn name(&self) -> String {
        match self {
            Place::Stdin | Place::Spool(_) => " of stdin".to_owned(),
            Place::File(path) => format!(" of {}", path.display()),
        }
    }
}

/// The file from its beginning.
pub fn again(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// What stands in `input`, unpacked, as UTF-8.
pub fn text(
    input: impl Read + 'static,
    encoding: Option<Encoding>,
    reach: &Reach,
) -> io::Result<Box<dyn BufRead>> {
    let counting = Counting { input, read: Rc::clone(&reach.read) };
    utf8(unpacked(BufReader::with_capacity(1 << 16, counting))?, encoding)
}
