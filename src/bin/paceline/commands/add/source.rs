//! Where rows come from.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use paceline::input::csv::{CsvError, CsvRows, Format};
use paceline::input::lines::Lines;
use paceline::input::{Input, Row};
use paceline::job::Columns;

use crate::args::add::AddArgs;
use crate::exit::{Usage, wrong};

/// What the command line names.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    format: Format,
}

#[derive(Debug)]
enum Kind {
    /// One job without a row.
    Bare,
    Arguments(Vec<String>),
    Lines(Place),
    Csv(Place),
}

#[derive(Debug)]
enum Place {
    Stdin,
    /// stdin, kept in a file that vanishes with the program: it is read twice.
    Spool(File),
    File(PathBuf),
}

/// Rows, one by one.
pub struct Rows {
    iter: Box<dyn Iterator<Item = io::Result<Input>>>,
    /// The columns that every row has.
    pub columns: Option<BTreeSet<String>>,
    /// The same of a CSV file, in its order.
    pub names: Vec<String>,
    /// The header row of a CSV file.
    pub header: Option<Vec<u8>>,
    /// Between the values of a row.
    pub delimiter: u8,
    /// The file that is read.
    pub file: Option<PathBuf>,
    /// What a row's number is one of, as in `line 7 of x.csv`.
    pub place: String,
    noun: &'static str,
}

impl Rows {
    /// A row, for people.
    pub fn name(&self, line: u64) -> String {
        format!("{} {line}{}", self.noun, self.place)
    }

    /// The next row.
    pub fn next(&mut self) -> anyhow::Result<Option<Input>> {
        let cannot = || format!("the rows{} cannot be read further", self.place);
        self.iter.next().transpose().with_context(cannot)
    }
}

impl Source {
    /// Reads nothing yet, unless stdin must be kept to be read twice.
    pub fn new(args: &AddArgs) -> anyhow::Result<Source> {
        let format = Format {
            delimiter: args.delimiter.map_or(b',', |delimiter| delimiter.0),
            columns: args.columns.clone(),
        };
        let stdin = args.strict && !args.dry_run;
        let kind = match (&args.csv, args.urls.as_slice()) {
            (Some(file), _) => Kind::Csv(Place::new(file, stdin)?),
            (None, []) => Kind::Bare,
            (None, [dash]) if dash == "-" => Kind::Lines(Place::new(Path::new("-"), stdin)?),
            (None, urls) if urls.iter().any(|url| url == "-") => {
                return wrong("`-` stands alone: the URLs are read from stdin, one a line");
            }
            (None, urls) => Kind::Arguments(urls.to_vec()),
        };
        Ok(Source { kind, format })
    }

    /// The rows from the beginning.
    pub fn open(&self) -> anyhow::Result<Rows> {
        let url = || Some(BTreeSet::from(["url".to_owned()]));
        match &self.kind {
            Kind::Bare => {
                let row = Row { line: 1, columns: Columns::new(), raw: Vec::new() };
                let one = std::iter::once(Ok(Input::Row(row)));
                Ok(rows(Box::new(one), Some(BTreeSet::new()), ("job", String::new())))
            }
            Kind::Arguments(urls) => {
                let all = (1..).zip(urls.clone()).map(|(line, url)| Ok(argument(line, url)));
                Ok(rows(Box::new(all), url(), ("URL", String::new())))
            }
            Kind::Lines(place) => {
                let lines = Lines::new(place.open()?, "url");
                Ok(rows(Box::new(lines), url(), ("line", place.name())))
            }
            Kind::Csv(place) => self.csv(place),
        }
    }

    fn csv(&self, place: &Place) -> anyhow::Result<Rows> {
        let name = place.name();
        let csv = CsvRows::new(place.open()?, &self.format).map_err(|error| match error {
            CsvError::Io(error) => {
                anyhow::Error::new(error).context(format!("the rows{name} cannot be read"))
            }
            error => Usage(format!("the columns{name} cannot be told: {error}")).into(),
        })?;
        let columns = csv.columns().iter().cloned().collect();
        let header = csv.header().map(<[u8]>::to_vec);
        let names = csv.columns().to_vec();
        let mut rows = rows(Box::new(csv), Some(columns), ("line", name));
        rows.header = header;
        rows.names = names;
        rows.delimiter = self.format.delimiter;
        if let Place::File(path) = place {
            rows.file = Some(path.clone());
        }
        Ok(rows)
    }
}

fn rows(
    iter: Box<dyn Iterator<Item = io::Result<Input>>>,
    columns: Option<BTreeSet<String>>,
    (noun, place): (&'static str, String),
) -> Rows {
    let (names, header) = (Vec::new(), None);
    Rows { iter, columns, names, header, delimiter: b',', file: None, place, noun }
}

fn argument(line: u64, url: String) -> Input {
    let raw = url.clone().into_bytes();
    Input::Row(Row { line, columns: Columns::from([("url".to_owned(), url)]), raw })
}

impl Place {
    fn new(path: &Path, twice: bool) -> anyhow::Result<Place> {
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

    fn open(&self) -> anyhow::Result<Box<dyn BufRead>> {
        match self {
            Place::Stdin => Ok(Box::new(BufReader::new(io::stdin()))),
            Place::Spool(file) => {
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(Box::new(BufReader::new(file)))
            }
            Place::File(path) => {
                let file = File::open(path).map_err(|error| {
                    Usage(format!("`{}` cannot be read: {error}", path.display()))
                })?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Place::Stdin | Place::Spool(_) => " of stdin".to_owned(),
            Place::File(path) => format!(" of {}", path.display()),
        }
    }
}
