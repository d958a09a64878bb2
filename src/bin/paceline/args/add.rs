//! `add`.

use std::path::PathBuf;

use clap::Args;
use paceline::input::encoding::Encoding;

use super::select::Pair;
use crate::exit::wrong;
use crate::render::time::Moment;

/// Queues jobs of one upstream, or of several.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AddArgs {
    /// Whose jobs these are: the name of a quota file (`paceline quotas list`); with --to the first URL
    #[arg(required_unless_present = "to")]
    pub upstream: Option<String>,
    /// URLs, each one job; `-` reads lines from stdin. None and no other source: one job, where no
    /// column is missing
    #[arg(value_name = "URL", conflicts_with_all = ["csv", "jsonl", "sitemap"])]
    pub urls: Vec<String>,
    /// Queue each row for this upstream too, under its own limits; given once an upstream, instead of
    /// UPSTREAM
    #[arg(long, value_name = "UPSTREAM")]
    pub to: Vec<String>,
    /// Rows of a CSV file, each one job; `-` reads stdin
    #[arg(long, value_name = "FILE", help_heading = "Rows")]
    pub csv: Option<PathBuf>,
    /// The columns of a CSV file that has no header row
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        requires = "csv",
        help_heading = "Rows"
    )]
    pub columns: Option<Vec<String>>,
    /// What stands between the values of a row: one character, or `tab`
    #[arg(long, value_name = "CHAR", requires = "csv", help_heading = "Rows")]
    pub delimiter: Option<Delimiter>,
    /// The encoding of what is read, such as windows-1252 [default: UTF-8; UTF-16 where it begins with its mark]
    #[arg(long, value_name = "NAME", help_heading = "Rows")]
    pub encoding: Option<Encoding>,
    /// JSON objects, one a line, each one job; `-` reads stdin. Their fields are columns; `headers` (an
    /// object) and `body` are sent word for word
    #[arg(long, value_name = "FILE", conflicts_with = "csv", help_heading = "Rows")]
    pub jsonl: Option<PathBuf>,
    /// The URLs of a sitemap, or of an index and all its sitemaps, with their `lastmod`; `-` reads stdin
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["csv", "jsonl"], help_heading = "Rows")]
    pub sitemap: Option<String>,
    /// Only rows whose `lastmod` is not before this: a span such as 2d, an instant, or a local date
    #[arg(long, value_name = "WHEN", help_heading = "Rows")]
    pub since: Option<Moment>,
    /// Only rows whose `lastmod` has moved since they were last added
    #[arg(long, help_heading = "Rows")]
    pub changed: bool,
    /// Add nothing where any row is wrong
    #[arg(long, help_heading = "Rows")]
    pub strict: bool,
    /// Collect the rows that were not added, each with what is wrong, in a file that can be corrected
    /// and added
    #[arg(long, value_name = "FILE", help_heading = "Rows")]
    pub rejects: Option<PathBuf>,
    /// A column that all jobs get; may be given more than once
    #[arg(long, value_name = "COLUMN=VALUE", help_heading = "Rows")]
    pub set: Vec<Pair>,

    /// The address called: a template such as https://api.example.com/v1/items/{id}
    #[arg(long, value_name = "TEMPLATE", help_heading = "What is sent")]
    pub url: Option<String>,
    /// The method, such as POST
    #[arg(long, value_name = "METHOD", help_heading = "What is sent")]
    pub method: Option<String>,
    /// A header, its value a template; may be given more than once
    #[arg(long, value_name = "NAME: VALUE", help_heading = "What is sent")]
    pub header: Vec<Header>,
    /// The body: a template
    #[arg(long, value_name = "TEMPLATE", help_heading = "What is sent")]
    pub body: Option<String>,
    /// The credential of the quota file that all jobs use
    #[arg(long, value_name = "NAME", help_heading = "What is sent")]
    pub credential: Option<String>,

    /// A name for these jobs [default: the day and a number, such as 2026-11-30-1]
    #[arg(long, value_name = "NAME", help_heading = "The queue")]
    pub load: Option<String>,
    /// Worthless after this: a span such as 2h, an instant, or a local date and time
    #[arg(long, value_name = "WHEN", help_heading = "The queue")]
    pub deadline: Option<Moment>,
    /// Not to be sent before this: likewise
    #[arg(long, value_name = "WHEN", help_heading = "The queue")]
    pub not_before: Option<Moment>,
    /// 0 to 9; higher goes first [default: 0, or that of the job that is replaced]
    #[arg(long, value_name = "N", help_heading = "The queue")]
    pub priority: Option<u8>,
    /// The column with each row's own priority (0 to 9), or with a date such as that of the last check:
    /// the oldest goes first, and what has none before it
    #[arg(long, value_name = "COLUMN", help_heading = "The queue")]
    pub priority_from: Option<String>,
    /// Which earlier job makes a new one a duplicate: one that is still queued, one of the same UTC
    /// day, or any
    #[arg(long, value_enum, default_value_t, value_name = "RULE", help_heading = "The queue")]
    pub dedupe: DedupeRule,
    /// What tells duplicates: a template such as {url}@{lastmod} [default: all that is sent]
    #[arg(long, value_name = "TEMPLATE", help_heading = "The queue")]
    pub dedupe_key: Option<String>,
    /// A duplicate that still waits makes way for the newer row, which takes its place in line
    #[arg(long, help_heading = "The queue")]
    pub replace: bool,
    /// Add nothing: show three rendered requests, the limits, and about when all would be done
    #[arg(long, help_heading = "The queue")]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  paceline add indexnow https://www.example.com/new-page
  sort -u urls.txt | paceline add indexnow -
  paceline add distributor --csv catalogue.csv --load autumn --dry-run
  paceline add distributor --csv prices.txt --columns isbn,price --delimiter ';' --rejects bad.txt
  paceline add distributor --csv excel.csv --delimiter ';' --encoding windows-1252
  paceline add --to indexnow --to bing-webmaster --sitemap https://example.com/map.xml --changed
  paceline add distributor --csv catalogue.csv.gz --dedupe day --replace --priority-from checked_at
  paceline add shop --jsonl requests.jsonl
  paceline add shop --csv items.csv --url 'https://api.shop.example/v1/items/{id}' --deadline 2h

A URL argument, a line and a column of that name fill the column `url`. What is packed with gzip is
unpacked, from stdin too. Rows that are wrong are told with their line and the rest is added (exit
code 3), unless --strict. Adding the same rows again adds only what is not in the queue any more.";

/// A header as typed.
#[derive(Clone, Debug)]
pub struct Header {
    /// Before the first colon.
    pub name: String,
    /// After it, a template.
    pub value: String,
}

impl AddArgs {
    /// Whose jobs these are.
    pub fn upstreams(&self) -> anyhow::Result<Vec<&str>> {
        let named = self.upstream.iter().filter(|_| self.to.is_empty());
        let mut names: Vec<&str> = Vec::new();
        for name in named.chain(&self.to) {
            if names.contains(&name.as_str()) {
                return wrong(format!("`{name}` is named twice"));
            }
            names.push(name);
        }
        match &self.upstream {
            Some(first) if !self.to.is_empty() && first != "-" && !first.contains(':') => {
                wrong(format!(
                    "beside --to, `{first}` would be a URL; say --to {first} if it is an upstream"
                ))
            }
            _ => Ok(names),
        }
    }

    /// The URL arguments.
    pub fn urls(&self) -> Vec<String> {
        let first = self.upstream.iter().filter(|_| !self.to.is_empty());
        first.chain(&self.urls).cloned().collect()
    }

    /// Whether rows come from a file or stdin.
    pub fn has_file(&self) -> bool {
        self.csv.is_some() || self.jsonl.is_some() || self.sitemap.is_some()
    }
}

impl std::str::FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Header, String> {
        let (name, value) =
            text.split_once(':').ok_or("write NAME: VALUE, as in 'X-Shop: {shop}'")?;
        Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// One ASCII character.
#[derive(Clone, Copy, Debug)]
pub struct Delimiter(pub u8);

impl std::str::FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Delimiter, String> {
        match text.as_bytes() {
            b"tab" | b"\\t" | b"\t" => Ok(Delimiter(b'\t')),
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => {
                Ok(Delimiter(*byte))
            }
            _ => Err("write one character other than a quote, such as ';', or tab".to_owned()),
        }
    }
}

/// The rules for duplicates, as typed.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub enum DedupeRule {
    /// No job is one
    None,
    /// One of its like that has not ended
    #[default]
    Active,
    /// One of its like that is active, or was added with `day` on the same UTC day
    Day,
    /// One of its like that is active, or was ever added with `ever`
    Ever,
}
