//! PURE: placeholders, and encoding by the place they stand in.
//!
//! `{name}` is a column; any other brace is itself. `{{` is a literal brace, and the `}}` that closes
//! it is one too; a `}}` that closes nothing is two braces, so that nested JSON can be written as it
//! is. A name begins with a letter or `_` and goes on with letters, digits, `_`, `-` and `.`.
//! `${env:X}`, `${file:P}`, `${secret:N}` and `${token}` are secrets: they stay as typed until a call
//! is sent.
//!
//! In the body of a batch `{items.name}` is that column of all its jobs: an array in JSON, and within
//! quotes the quoted text again and again (`["{items.isbn}"]`); with commas between them in a form, line
//! by line in plain text. A job alone is a batch of one.
//!
//! ```
//! use paceline::job::Columns;
//! use paceline::template::{Place, Template};
//!
//! let template = Template::parse("https://api.example/v1/stock/{isbn}?key=${env:KEY}")?;
//! let row = Columns::from([("isbn".to_owned(), "97 8/{x}".to_owned())]);
//! let frozen = template.freeze(&row, Place::Url)?;
//! assert_eq!(frozen, "https://api.example/v1/stock/97%208%2F%7Bx%7D?key=${env:KEY}");
//! # Ok::<(), paceline::template::TemplateError>(())
//! ```

mod encode;
mod parse;

use std::fmt;

use crate::job::Columns;
use encode::{Breaks, Writer};
pub(crate) use parse::is_name;

/// Where a value stands, and so how it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a URL: percent-encoded, all but letters, digits and `-._~`. A column that the template
    /// begins with (such as a `{url}` that is the whole of it) stands as it is, save its braces: it
    /// must bring its own scheme and host.
    Url,
    /// In a header: refused where it holds a control character or a line break.
    Header,
    /// In a JSON body. Between quotes: escaped as the inside of a string. Elsewhere: a number,
    /// `true`, `false` or `null` as it is, all else as a string with its quotes.
    Json,
    /// In an XML body: escaped as text, and in a CDATA section as it is; refused where it holds a
    /// character that XML has not.
    Xml,
    /// In a form body (`application/x-www-form-urlencoded`): percent-encoded, blank as `+`.
    Form,
    /// In any other text: as it is.
    Plain,
}

impl Place {
    /// The place that a body is, by its `Content-Type`; without one a text that begins like JSON is
    /// JSON and all else is plain.
    pub fn of_body(content_type: Option<&str>, body: &str) -> Place {
        let Some(content_type) = content_type else {
            let text = body.trim_start();
            let object = text.starts_with('{') && parse::column(text).is_none();
            return if object || text.starts_with('[') { Place::Json } else { Place::Plain };
        };
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        match essence.as_str() {
            "application/x-www-form-urlencoded" => Place::Form,
            "text/json" | "application/x-ndjson" => Place::Json,
            "text/xml" | "text/html" => Place::Xml,
            _ if essence.ends_with("/json") || essence.ends_with("+json") => Place::Json,
            _ if essence.ends_with("/xml") || essence.ends_with("+xml") => Place::Xml,
            _ => Place::Plain,
        }
    }
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Column(String),
    /// That column of all the jobs of a batch.
    Items(String),
    Secret(Secret),
}

/// What a template is filled with.
struct Values<'a> {
    columns: &'a Columns,
    /// The columns of all the jobs of the call.
    items: &'a [&'a Columns],
}

/// A secret's name, as written between `${` and `}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secret {
    /// `${env:X}`: an environment variable.
    Env(String),
    /// `${file:P}`: a file's content without its last line break.
    File(String),
    /// `${secret:N}`: of the job's credential.
    Named(String),
    /// `${token}`: from `[auth]`.
    Token,
}

impl fmt::Display for Secret {
    /// The placeholder, as it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Env(name) => write!(f, "${{env:{name}}}"),
            Secret::File(path) => write!(f, "${{file:{path}}}"),
            Secret::Named(name) => write!(f, "${{secret:{name}}}"),
            Secret::Token => f.write_str("${token}"),
        }
    }
}

/// Why a template cannot be read or rendered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// Nothing gives that column a value.
    #[error("the column `{0}` is missing")]
    MissingColumn(String),
    /// A value would end the header it stands in.
    #[error(
        "the value of column `{0}` holds a line break or control character, which a header cannot carry"
    )]
    BreaksHeader(String),
    /// A value would be two lines of the list it stands in.
    #[error("the value of column `{0}` holds a line break, which a list of lines cannot carry")]
    BreaksLine(String),
    /// A value has a character that no XML document may have.
    #[error("the value of column `{0}` holds a control character, which XML cannot carry")]
    BreaksXml(String),
    /// A secret's value has a character that no XML document may have.
    #[error("the value of `{0}` holds a control character, which XML cannot carry")]
    SecretBreaksXml(Secret),
    /// A value would be two items of the list it stands in.
    #[error("the value of column `{0}` holds a comma, which a list in a form cannot carry")]
    BreaksList(String),
    /// A secret's value would end the header it stands in.
    #[error(
        "the value of `{0}` holds a line break or control character, which a header cannot carry"
    )]
    SecretBreaksHeader(Secret),
    /// A secret that could not be resolved.
    #[error("`{0}` is not set")]
    MissingSecret(Secret),
    /// `${...}` of no known kind.
    #[error(
        "`${{{0}}}` is no secret: `${{env:NAME}}`, `${{file:PATH}}`, `${{secret:NAME}}` or `${{token}}`"
    )]
    UnknownSecret(String),
}

impl TemplateError {
    /// That the value of that column breaks what it stands in.
    fn of_value(breaks: &Breaks, column: &str) -> TemplateError {
        let column = column.to_owned();
        match breaks {
            Breaks::Header => TemplateError::BreaksHeader(column),
            Breaks::Line => TemplateError::BreaksLine(column),
            Breaks::List => TemplateError::BreaksList(column),
            Breaks::Xml => TemplateError::BreaksXml(column),
        }
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError::UnknownSecret`] where `${` begins anything but a secret; `${{` is text.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        Ok(Template { parts: parse::parts(text)? })
    }

    /// The text of a template that is `text` word for word, whatever braces stand in it.
    pub fn literal(text: &str) -> String {
        let mut literal = String::new();
        parse::escape_into(text, &mut 0, &mut literal);
        literal
    }

    /// The columns it uses, in order, each once; those of a batch's jobs too.
    pub fn columns(&self) -> Vec<&str> {
        self.names(|part| match part {
            Part::Column(name) | Part::Items(name) => Some(name),
            Part::Text(_) | Part::Secret(_) => None,
        })
    }

    /// The columns that all the jobs of one call must share: those outside `{items.…}`.
    pub(crate) fn shared_columns(&self) -> Vec<&str> {
        self.names(|part| match part {
            Part::Column(name) => Some(name),
            Part::Items(_) | Part::Text(_) | Part::Secret(_) => None,
        })
    }

    /// Whether it takes many jobs: whether there is any `{items.…}` in it.
    pub(crate) fn is_batch(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Items(_)))
    }

    fn names<'a>(&'a self, name: impl Fn(&'a Part) -> Option<&'a String>) -> Vec<&'a str> {
        let mut names = Vec::new();
        for name in self.parts.iter().filter_map(name) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// The columns that stand before the first of these characters in the template's own text.
    pub(crate) fn columns_before(&self, ends: &[char]) -> Vec<&str> {
        let ends_here = |part: &&Part| matches!(part, Part::Text(text) if text.contains(ends));
        let before = self.parts.iter().take_while(|part| !ends_here(part));
        before
            .filter_map(|part| match part {
                Part::Column(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The secrets it uses, in order, each once.
    pub fn secrets(&self) -> Vec<&Secret> {
        let mut secrets = Vec::new();
        for part in &self.parts {
            if let Part::Secret(secret) = part
                && !secrets.contains(&secret)
            {
                secrets.push(secret);
            }
        }
        secrets
    }

    /// Whether it is that column and nothing else.
    pub(crate) fn is_column(&self, name: &str) -> bool {
        matches!(self.parts.as_slice(), [Part::Column(column)] if column == name)
    }

    /// The text before the first placeholder.
    pub fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Fills in columns; secrets stay as they were typed, so that the result can be stored and shown
    /// and is itself a template whose only placeholders are those secrets: a brace that a value
    /// brought along, and that would make a placeholder, is doubled.
    ///
    /// # Errors
    ///
    /// [`TemplateError::MissingColumn`], [`TemplateError::BreaksHeader`] in a header, and
    /// [`TemplateError::BreaksXml`] in XML.
    pub fn freeze(&self, columns: &Columns, place: Place) -> Result<String, TemplateError> {
        let mut out = Frozen::default();
        self.fill(&Values { columns, items: &[columns] }, place, &mut out)?;
        Ok(out.finish())
    }

    /// Fills in columns and secrets, encoding both for their place.
    ///
    /// # Errors
    ///
    /// As [`Template::freeze`], and [`TemplateError::MissingSecret`] where `secret` knows none.
    pub fn render(
        &self,
        columns: &Columns,
        place: Place,
        secret: &dyn Fn(&Secret) -> Option<String>,
    ) -> Result<String, TemplateError> {
        self.render_batch(columns, &[columns], place, secret)
    }

    /// As [`Template::render`], for a call that carries several jobs: `items` are their columns.
    ///
    /// # Errors
    ///
    /// As [`Template::render`].
    pub fn render_batch(
        &self,
        columns: &Columns,
        items: &[&Columns],
        place: Place,
        secret: &dyn Fn(&Secret) -> Option<String>,
    ) -> Result<String, TemplateError> {
        let mut out = Rendered { text: String::new(), secret };
        self.fill(&Values { columns, items }, place, &mut out)?;
        Ok(out.text)
    }

    fn fill(
        &self,
        values: &Values<'_>,
        place: Place,
        out: &mut impl Out,
    ) -> Result<(), TemplateError> {
        let mut writer = Writer::new(place);
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    writer.text(text);
                    out.text().push_str(text);
                }
                Part::Column(name) => {
                    let breaks = |breaks| TemplateError::of_value(&breaks, name);
                    writer.value(value(values.columns, name)?, out.text()).map_err(breaks)?;
                }
                Part::Items(name) => {
                    let breaks = |breaks| TemplateError::of_value(&breaks, name);
                    let list = values.items.iter().map(|columns| value(columns, name));
                    let list = list.collect::<Result<Vec<_>, _>>()?;
                    writer.list(&list, out.text()).map_err(breaks)?;
                }
                Part::Secret(secret) => out.secret(secret, &mut writer)?,
            }
        }
        Ok(())
    }
}

fn value<'a>(columns: &'a Columns, name: &str) -> Result<&'a str, TemplateError> {
    let missing = || TemplateError::MissingColumn(name.to_owned());
    columns.get(name).map(String::as_str).ok_or_else(missing)
}

/// Where a filled template goes to.
trait Out {
    fn text(&mut self) -> &mut String;
    fn secret(&mut self, secret: &Secret, writer: &mut Writer) -> Result<(), TemplateError>;
}

/// Secrets resolved.
struct Rendered<'a> {
    text: String,
    secret: &'a dyn Fn(&Secret) -> Option<String>,
}

impl Out for Rendered<'_> {
    fn text(&mut self) -> &mut String {
        &mut self.text
    }

    fn secret(&mut self, secret: &Secret, writer: &mut Writer) -> Result<(), TemplateError> {
        let missing = || TemplateError::MissingSecret(secret.clone());
        let value = (self.secret)(secret).ok_or_else(missing)?;
        let breaks = |breaks| match breaks {
            Breaks::Xml => TemplateError::SecretBreaksXml(secret.clone()),
            Breaks::Header | Breaks::Line | Breaks::List => {
                TemplateError::SecretBreaksHeader(secret.clone())
            }
        };
        writer.value(&value, &mut self.text).map_err(breaks)
    }
}

/// Secrets as they were typed; all other text such that it reads back as text.
#[derive(Default)]
struct Frozen {
    done: String,
    run: String,
    open: usize,
}

impl Frozen {
    fn finish(mut self) -> String {
        self.flush();
        self.done
    }

    fn flush(&mut self) {
        if self.done.is_empty() && !self.run.contains('{') {
            self.done = std::mem::take(&mut self.run);
        } else {
            parse::escape_into(&self.run, &mut self.open, &mut self.done);
            self.run.clear();
        }
    }
}

impl Out for Frozen {
    fn text(&mut self) -> &mut String {
        &mut self.run
    }

    fn secret(&mut self, secret: &Secret, writer: &mut Writer) -> Result<(), TemplateError> {
        self.flush();
        self.done.push_str(&secret.to_string());
        writer.placeholder();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
