//! PURE: a row of columns becomes a job.
//!
//! ```
//! use paceline::job::Columns;
//! use paceline::plan::{AddOptions, Planner};
//! use paceline::quota::declare;
//!
//! let text = r#"
//! name = "distributor"
//! [request]
//! url = "https://api.distributor.example/v1/stock/{isbn}"
//! "#;
//! let upstream = declare::parse("distributor", "distributor.toml", text)?;
//! let planner = Planner::new(&upstream, AddOptions::default())?;
//! let row = Columns::from([("isbn".to_owned(), "9780000000002".to_owned())]);
//! let job = planner.plan(row)?;
//! assert_eq!(job.request.url, "https://api.distributor.example/v1/stock/9780000000002");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A column's value is, in this order: that of `--set`; the row's; the credential's `set`; the one
//! derived `from` the URL; the `default`. An empty value of a row, or one of blanks, counts as none where the
//! upstream derives or defaults the column, and where the path of a URL or a key needs it.

mod columns;
mod error;
mod lastmod;
mod templates;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::address;
use crate::clock::Timestamp;
use crate::job::{Columns, Dedupe, NewJob, Own, Request};
use crate::quota::declare::is_method;
use crate::quota::glob::names_host;
use crate::quota::{Cost, Limit, Upstream};
use crate::template::{Place, Template, TemplateError};
pub use error::{Missing, PlanError};
pub use lastmod::Lastmod;
use templates::Templates;

/// The highest priority.
pub const MAX_PRIORITY: u8 = 9;

/// Methods that a row may write in small letters; any other is taken in capitals alone.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Characters of an address that cannot be called that are told.
const SHOWN: usize = 200;

/// The column that tells when what a URL leads to was last changed.
pub const LASTMOD: &str = "lastmod";

/// What `add` was told for all its rows.
#[derive(Clone, Debug, Default)]
pub struct AddOptions {
    /// The columns that every row has, where they are known beforehand (a CSV header; `url` for
    /// arguments; none at all for a bare `add`): templates that need others are refused at once.
    pub columns: Option<BTreeSet<String>>,
    /// `--url`: a template in place of the file's. It is the address called, whatever `url` is.
    pub url: Option<String>,
    /// `--method`, in capitals.
    pub method: Option<String>,
    /// `--header`: templates that are sent beside the file's, and instead of those of one name.
    pub headers: BTreeMap<String, String>,
    /// `--body`: a template in place of the file's.
    pub body: Option<String>,
    /// `--set`.
    pub set: Columns,
    /// `--credential`.
    pub credential: Option<String>,
    /// `--priority`: 0 to 9. `None`: 0, or that of a job that is replaced.
    pub priority: Option<u8>,
    /// `--priority-from`: the column that holds each row's own priority, or a date: oldest first.
    pub priority_from: Option<String>,
    /// `--not-before` (store time).
    pub not_before: Option<Timestamp>,
    /// `--deadline` (store time).
    pub deadline_at: Option<Timestamp>,
    /// `--dedupe`.
    pub dedupe: Dedupe,
    /// `--dedupe-key`: a template.
    pub dedupe_key: Option<String>,
    /// `--changed`: only what its `lastmod` says has changed since it was last added.
    pub changed: bool,
    /// `--replace`: a duplicate that waits makes way for the newer job.
    pub replace: bool,
    /// Nothing is sent by the file's own templates: its headers and body need no columns.
    pub unsent: bool,
}

/// Plans the jobs of one `add`.
#[derive(Debug)]
pub struct Planner<'a> {
    upstream: &'a Upstream,
    options: AddOptions,
    templates: Templates,
    /// The columns of partitions.
    partition: BTreeSet<&'a str>,
    /// The columns that hold costs.
    costs: Vec<&'a str>,
    /// Whether the file's headers or body hold secrets.
    sends_secrets: bool,
    /// Whether a template or a limit's key has the column `method`, which is the call's then.
    uses_method: bool,
}

impl<'a> Planner<'a> {
    /// Reads the templates of file and options.
    ///
    /// # Errors
    ///
    /// A template, method, header or priority that no row can make good; a credential that is not
    /// declared; and, where [`AddOptions::columns`] are known, every column that nothing supplies.
    pub fn new(upstream: &'a Upstream, options: AddOptions) -> Result<Planner<'a>, PlanError> {
        if let Some(priority) = options.priority.filter(|priority| *priority > MAX_PRIORITY) {
            return Err(PlanError::Priority(priority));
        }
        if let Some(method) = options.method.as_deref().filter(|method| !is_method(method)) {
            return Err(PlanError::Method(method.to_owned()));
        }
        if let Some(name) = &options.credential {
            columns::declared(upstream, name)?;
        }
        let templates = Templates::new(upstream, &options)?;
        let cost = |limit: &'a Limit| match &limit.cost {
            Cost::Column(column) => Some(column.as_str()),
            Cost::Calls | Cost::Items => None,
        };
        let costs = upstream.limits.iter().filter_map(cost).collect();
        let partition = upstream.partition_columns();
        let request = &upstream.request;
        let has_secret =
            |text: &String| Template::parse(text).is_ok_and(|t| !t.secrets().is_empty());
        let sends_secrets = request.headers.values().chain(upstream.body()).any(has_secret);
        let uses_method = templates.uses("method") || partition.contains("method");
        let planner =
            Planner { upstream, options, templates, partition, costs, sends_secrets, uses_method };
        planner.check_known()?;
        Ok(planner)
    }

    /// The job of one row.
    ///
    /// # Errors
    ///
    /// What is wrong with the row: the first thing found.
    pub fn plan(&self, row: Columns) -> Result<NewJob, PlanError> {
        self.plan_own(row, Own::default())
    }

    /// The job of a row that says something of its own request. A `body` that a template uses is a
    /// column like any other; a column `method` says nothing of the request.
    ///
    /// # Errors
    ///
    /// As [`Planner::plan`].
    pub fn plan_own(&self, row: Columns, mut own: Own) -> Result<NewJob, PlanError> {
        let mut columns = row;
        if self.templates.uses("body")
            && let Some(body) = own.body.take()
        {
            columns.insert("body".to_owned(), body);
        }
        for (name, value) in &self.options.set {
            columns.insert(name.clone(), value.clone());
        }
        let method = self.method(&own)?;
        // What nothing asks for is the row's own, whatever it means by it.
        if self.uses_method || !columns.contains_key("method") {
            columns.insert("method".to_owned(), method.clone());
        }
        let url = self.url(&columns)?;
        self.complete(&mut columns, url.as_ref(), &method)?;
        self.check_values(&columns)?;
        let request = self.request(&columns, method, url.as_ref(), own)?;
        let (priority, line_at) = self.turn(&columns)?;
        let dedupe_key = self.templates.dedupe_key.as_ref();
        let dedupe_key = dedupe_key.map(|key| self.fill(key, &columns)).transpose()?;
        Ok(NewJob {
            repeatable: self.upstream.request.is_repeatable(&request.method),
            request,
            partition: self.partition(&columns)?,
            lastmod: self.lastmod(&columns)?,
            columns,
            priority: priority.unwrap_or(0),
            keeps_priority: priority.is_none(),
            line_at,
            changed: self.options.changed,
            not_before: self.options.not_before,
            deadline_at: self.options.deadline_at,
            dedupe: self.options.dedupe,
            dedupe_key,
            replace: self.options.replace,
        })
    }

    /// `--method`, else the row's own, else the file's.
    fn method(&self, own: &Own) -> Result<String, PlanError> {
        let row = own.method.as_deref().filter(|method| !method.is_empty());
        match (&self.options.method, row) {
            (Some(method), _) => Ok(method.clone()),
            (None, Some(method)) => {
                let capitals = method.to_ascii_uppercase();
                let is_one = is_method(method) || METHODS.contains(&capitals.as_str());
                let bad = || PlanError::Method(method.to_owned());
                is_one.then_some(capitals).ok_or_else(bad)
            }
            (None, None) => Ok(self.upstream.request.method.clone()),
        }
    }

    /// The column `url`, which must be one that can be called even where it only fills a template.
    fn url(&self, columns: &Columns) -> Result<Option<Url>, PlanError> {
        let Some(text) = columns.get("url").filter(|url| !url.is_empty()) else { return Ok(None) };
        address::parse(text).map(Some).map_err(|source| PlanError::Url { source })
    }

    /// Adds the columns that the row does not bring: host, derived, the credential's, defaults.
    fn complete(
        &self,
        columns: &mut Columns,
        url: Option<&Url>,
        method: &str,
    ) -> Result<(), PlanError> {
        let host = self.host(columns, url, method);
        if let (Some(given), Some(host)) = (self.options.set.get("host"), &host)
            && given != host
        {
            return Err(PlanError::SetHost { given: given.clone(), host: host.clone() });
        }
        if let Some(host) = host {
            columns.insert("host".to_owned(), host);
        }
        let added = columns::derive(self.upstream, columns, url);
        let chosen =
            columns::credential(self.upstream, self.options.credential.as_deref(), columns)?;
        if let Some((name, credential)) = chosen {
            columns.insert("credential".to_owned(), name.to_owned());
            columns::set(credential, columns, &added);
        }
        Ok(())
    }

    /// The host of `url`, else the row's, else that of the address called.
    fn host(&self, columns: &Columns, url: Option<&Url>, method: &str) -> Option<String> {
        if let Some(url) = url {
            return url.host_str().map(str::to_owned);
        }
        if columns.contains_key("host") {
            return None;
        }
        let address = self.templates.address(false, method).ok()?;
        if let Some(host) = &address.host {
            return Some(host.clone());
        }
        // Where the address needs what the credential sets, its host is not known this early.
        let url = address.checked(columns).ok()?.ok()?;
        url.host_str().map(str::to_owned)
    }

    fn check_values(&self, columns: &Columns) -> Result<(), PlanError> {
        for (name, rule) in &self.upstream.columns {
            if let Some(value) = columns.get(name)
                && !rule.one_of.is_empty()
                && !rule.one_of.contains(value)
            {
                let (one_of, help) = (rule.one_of.clone(), rule.help.clone());
                let (column, value) = (name.clone(), value.clone());
                return Err(PlanError::NotOneOf { column, value, one_of, help });
            }
        }
        for name in &self.costs {
            let value = columns.get(*name).ok_or_else(|| self.missing(name, columns))?;
            if value.parse::<u64>().is_err() {
                let (column, value) = ((*name).to_owned(), value.clone());
                return Err(PlanError::Cost { column, value });
            }
        }
        Ok(())
    }

    fn request(
        &self,
        columns: &Columns,
        method: String,
        url: Option<&Url>,
        own: Own,
    ) -> Result<Request, PlanError> {
        self.templates.check_sent(columns).map_err(|error| self.filling(error, columns))?;
        let address = self.address(columns, &method, url)?;
        let mut headers = BTreeMap::new();
        for (name, template) in &self.templates.headers {
            let value = template.freeze(columns, Place::Header);
            headers.insert(name.clone(), value.map_err(|error| self.filling(error, columns))?);
        }
        templates::own_headers(&own, &mut headers)?;
        if let Some(body) = own.body {
            let body = Some(Template::literal(&body));
            return Ok(Request { method, url: address, headers, body });
        }
        let body = self.templates.body_of(&method);
        // The template stays as it is, so that jobs share it; but it must be possible to fill it.
        let body = body.map(|body| self.fill(&body.filled, columns).map(|_| body.text.clone()));
        let body = body.transpose()?;
        Ok(Request { method, url: address, headers, body })
    }

    fn address(
        &self,
        columns: &Columns,
        method: &str,
        url: Option<&Url>,
    ) -> Result<String, PlanError> {
        let Ok(address) = self.templates.address(url.is_some(), method) else {
            return Err(self.missing("url", columns));
        };
        for name in &address.path {
            let value = columns.get(name).map_or("", String::as_str);
            // One of blanks would call something else no less than none does.
            match value.trim() {
                "" => return Err(self.missing(name, columns)),
                "." | ".." if name != "url" => {
                    return Err(PlanError::Dots { column: name.clone() });
                }
                _ => {}
            }
        }
        if let Some(host) = url.and_then(Url::host_str).filter(|_| address.is_url) {
            self.check_host(host)?;
        }
        let frozen = self.fill(&address.filled, columns)?;
        // `url` itself was checked before; and where scheme and host are the template's own, encoded
        // values behind them cannot make it wrong, but for its length.
        if !(address.is_url || address.host.is_some()) || frozen.len() > address::LONGEST {
            let checked = address.checked(columns).map_err(|error| self.filling(error, columns))?;
            let shown = || frozen.chars().take(SHOWN).collect();
            checked.map_err(|source| PlanError::Address { address: shown(), source })?;
        }
        Ok(frozen)
    }

    /// Where the address is a row's own, it must be one of the upstream's: its limits count nothing
    /// elsewhere, and a secret must not go along to just any host.
    fn check_host(&self, host: &str) -> Result<(), PlanError> {
        if names_host(&self.upstream.matches, host) {
            return Ok(());
        }
        Err(PlanError::ForeignHost {
            host: host.to_owned(),
            upstream: self.upstream.name.clone(),
            hosts: self.upstream.matches.hosts.clone(),
            sends_secrets: self.sends_secrets,
        })
    }

    fn partition(&self, columns: &Columns) -> Result<Columns, PlanError> {
        let mut partition = Columns::new();
        for name in &self.partition {
            let value = columns.get(*name).filter(|value| !value.trim().is_empty());
            let value = value.ok_or_else(|| self.missing(name, columns))?;
            partition.insert((*name).to_owned(), value.clone());
        }
        Ok(partition)
    }

    fn fill(&self, filled: &templates::Filled, columns: &Columns) -> Result<String, PlanError> {
        let text = filled.template.freeze(columns, filled.place);
        text.map_err(|error| self.filling(error, columns))
    }

    fn filling(&self, error: TemplateError, columns: &Columns) -> PlanError {
        match error {
            TemplateError::MissingColumn(name) => self.missing(&name, columns),
            source => PlanError::Fill { source },
        }
    }

    fn missing(&self, name: &str, columns: &Columns) -> PlanError {
        // What every job has by itself was not meant by anybody.
        let own = |known: &&str| !["host", "method", "credential"].contains(known);
        let known = columns.keys().map(String::as_str).filter(own);
        let mut missing = Missing::new(self.upstream, name, known);
        let rule = self.upstream.columns.get(name);
        if rule.is_some_and(|rule| rule.default.as_deref() == Some("")) {
            missing.help =
                Some("its `default` is empty, and a URL's path or a key is not".to_owned());
        }
        PlanError::Missing(vec![missing])
    }

    /// Every column that is needed and that nothing supplies, where the rows' columns are known.
    fn check_known(&self) -> Result<(), PlanError> {
        let Some(rows) = &self.options.columns else { return Ok(()) };
        let given: BTreeSet<&str> =
            rows.iter().chain(self.options.set.keys()).map(String::as_str).collect();
        let has_url = given.contains("url");
        let supplied = columns::supplied(self.upstream, has_url);
        let has = |name: &str| given.contains(name) || supplied.contains(name);
        let method = self.options.method.as_deref().unwrap_or(&self.upstream.request.method);
        let mut needed = self.templates.needed(has_url, method);
        needed.extend(self.partition.iter().chain(&self.costs));
        needed.extend(self.options.priority_from.as_deref());
        // What is derived from the URL comes with it.
        let missing = needed.into_iter().filter(|name| !has(name)).map(|name| {
            let rule = self.upstream.columns.get(name);
            if rule.is_some_and(|rule| rule.from.is_some()) && !has_url { "url" } else { name }
        });
        let missing: BTreeSet<&str> = missing.collect();
        let told = |name| Missing::new(self.upstream, name, given.iter().copied());
        let missing: Vec<_> = missing.into_iter().map(told).collect();
        if missing.is_empty() { Ok(()) } else { Err(PlanError::Missing(missing)) }
    }
}

#[cfg(test)]
mod tests;
