//! Where rows come from.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use paceline::input::csv::{CsvError, CsvRows, Format};
use paceline::input::encoding::Encoding;
use paceline::input::jsonl::JsonRows;
use paceline::input::lines::Lines;
use paceline::input::sitemap;
use paceline::input::{BadRow, Input, Row};
use paceline::job::{Columns, Own};

use super::place::{Place, Reach};
use super::sitemaps::{Location, Sitemaps};
use crate::args::add::AddArgs;
use crate::context::Context;
use crate::exit::{Usage, wrong};

/// What the command line names.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    format: Format,
    encoding: Option<Encoding>,
}

#[derive(Debug)]
enum Kind {
    /// One job without a row.
    Bare,
    Arguments(Vec<String>),
    Lines(Place),
    Csv(Place),
    Json(Place),
    Sitemaps(Sitemaps),
}

/// One row, or why it is none.
#[derive(Debug)]
pub enum Item {
    Row(Row),
    Bad { line: u64, raw: Vec<u8>, problem: String },
}

impl From<Input> for Item {
    fn from(input: Input) -> Item {
        match input {
            Input::Row(row) => Item::Row(row),
            Input::Bad(BadRow { line, raw, problem }) => {
                Item::Bad { line, raw, problem: problem.to_string() }
            }
        }
    }
}

/// Rows, one by one.
pub struct Rows {
    iter: Box<dyn Iterator<Item = io::Result<Item>>>,
    /// The columns that rows have; `None`: each its own.
    pub columns: Option<BTreeSet<String>>,
    /// The same of a CSV file, in its order.
    pub names: Vec<String>,
    /// The header row of what rejected rows are collected as.
    pub header: Option<Vec<u8>>,
    /// Between the values of a row.
    pub delimiter: u8,
    /// The file that is read.
    pub file: Option<PathBuf>,
    /// What the last row's number is one of, as in `line 7 of x.csv`.
    place: Rc<RefCell<String>>,
    noun: &'static str,
    /// How far they were read.
    pub reach: Reach,
}

impl Rows {
    /// The last row, for people; what is wrong with the whole has line 0.
    pub fn name(&self, line: u64) -> String {
        let place = self.place.borrow();
        match line {
            0 => place.strip_prefix(" of ").unwrap_or(&place).to_owned(),
            _ => format!("{} {line}{place}", self.noun),
        }
    }

    /// What the last row is one of, as in ` of x.csv`.
    pub fn place(&self) -> String {
        self.place.borrow().clone()
    }

    /// The next row.
    pub fn next(&mut self) -> anyhow::Result<Option<Item>> {
        let next = self.iter.next().transpose();
        next.with_context(|| format!("the rows{} cannot be read further", self.place()))
    }
}

impl Source {
    /// Reads nothing yet, unless stdin must be kept to be read twice.
    pub fn new(args: &AddArgs, context: &Context) -> anyhow::Result<Source> {
        let format = Format {
            delimiter: args.delimiter.map_or(b',', |delimiter| delimiter.0),
            columns: args.columns.clone(),
        };
        let twice = args.strict && !args.dry_run;
        let place = |file: &Path| Place::new(file, twice);
        let urls = args.urls();
        if args.has_file() && !urls.is_empty() {
            return wrong("rows come from a file or are URLs, not both");
        }
        let kind = match (&args.csv, &args.jsonl, &args.sitemap, urls.as_slice()) {
            (Some(file), ..) => Kind::Csv(place(file)?),
            (_, Some(file), ..) => Kind::Json(place(file)?),
            (_, _, Some(text), _) => {
                let root = Location::parse(text)?;
                Kind::Sitemaps(Sitemaps::new(root, twice, args.encoding, context)?)
            }
            (.., []) => Kind::Bare,
            (.., [dash]) if dash == "-" => Kind::Lines(place(Path::new("-"))?),
            (.., urls) if urls.iter().any(|url| url == "-") => {
                return wrong("`-` stands alone: the URLs are read from stdin, one a line");
            }
            _ => Kind::Arguments(urls),
        };
        Ok(Source { kind, format, encoding: args.encoding })
    }

    /// The rows from the beginning.
    pub fn open(&self) -> anyhow::Result<Rows> {
        let url = || Some(BTreeSet::from(["url".to_owned()]));
        match &self.kind {
            Kind::Bare => {
                let (columns, own, raw) = Default::default();
                let one = std::iter::once(Ok(Item::Row(Row { line: 1, columns, own, raw })));
                Ok(Rows::new(one, Some(BTreeSet::new()), ("job", String::new())))
            }
            Kind::Arguments(urls) => {
                let all = (1..).zip(urls.clone()).map(|(line, url)| Ok(argument(line, url)));
                Ok(Rows::new(all, url(), ("URL", String::new())))
            }
            Kind::Lines(place) => {
                let (text, reach) = place.open(self.encoding)?;
                let lines = Lines::new(text, "url").map(|read| read.map(Item::from));
                let rows = Rows::new(lines, url(), ("line", place.name()));
                Ok(Rows { reach, ..rows })
            }
            Kind::Json(place) => {
                let (text, reach) = place.open(self.encoding)?;
                let lines = JsonRows::new(text).map(|read| read.map(Item::from));
                let rows = Rows::new(lines, None, ("line", place.name()));
                Ok(Rows { reach, file: place.path(), ..rows })
            }
            Kind::Csv(place) => self.csv(place),
            Kind::Sitemaps(sitemaps) => {
                let place = Rc::new(RefCell::new(String::new()));
                let walk = sitemaps.walk(Rc::clone(&place))?;
                let known = sitemap::COLUMNS.map(str::to_owned);
                let rows = Rows::new(walk.map(Ok), Some(known.into()), ("line", String::new()));
                let header = Some(sitemap::COLUMNS.join(",").into_bytes());
                Ok(Rows { place, header, file: sitemaps.file(), ..rows })
            }
        }
    }

    fn csv(&self, place: &Place) -> anyhow::Result<Rows> {
        let name = place.name();
        let (text, reach) = place.open(self.encoding)?;
        let csv = CsvRows::new(text, &self.format).map_err(|error| match error {
            CsvError::Io(error) => {
                anyhow::Error::new(error).context(format!("the rows{name} cannot be read"))
            }
            error => Usage(format!("the columns{name} cannot be told: {error}")).into(),
        })?;
        let names = csv.columns().to_vec();
        let (header, delimiter) = (csv.header().map(<[u8]>::to_vec), csv.delimiter());
        let columns = names.iter().cloned().collect();
        let rows = Rows::new(csv.map(|read| read.map(Item::from)), Some(columns), ("line", name));
        let file = place.path();
        Ok(Rows { header, names, delimiter, file, reach, ..rows })
    }
}

impl Rows {
    fn new(
        iter: impl Iterator<Item = io::Result<Item>> + 'static,
        columns: Option<BTreeSet<String>>,
        (noun, place): (&'static str, String),
    ) -> Rows {
        let (names, header, file, reach) = Default::default();
        let place = Rc::new(RefCell::new(place));
        Rows {
            iter: Box::new(iter),
            columns,
            names,
            header,
            delimiter: b',',
            file,
            place,
            noun,
            reach,
        }
    }
}

fn argument(line: u64, url: String) -> Item {
    let raw = url.clone().into_bytes();
    let columns = Columns::from([("url".to_owned(), url)]);
    Item::Row(Row { line, columns, own: Own::default(), raw })
}
