//! PURE: placeholders, and encoding by the place they stand in.
//!
//! `{name}` is a column; any other brace is itself, `{{` and `}}` are literal ones. `${env:X}`,
//! `${file:P}`, `${secret:N}` and `${token}` are secrets: they stay as typed until a call is sent.

use crate::job::Columns;

/// Where a value stands, and so how it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a URL: percent-encoded. A `{url}` that is the whole template stands as it is.
    Url,
    /// In a header: refused where it holds a control character or a line break.
    Header,
    /// In a JSON body: escaped as the inside of a string.
    Json,
    /// In an XML body: escaped as text.
    Xml,
    /// In a form body (`application/x-www-form-urlencoded`): percent-encoded, blank as `+`.
    Form,
    /// In any other text: as it is.
    Plain,
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
    Secret(Secret),
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
    /// `${...}` of no known kind.
    #[error(
        "`${{{0}}}` is no secret: `${{env:NAME}}`, `${{file:PATH}}`, `${{secret:NAME}}` or `${{token}}`"
    )]
    UnknownSecret(String),
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let _ = text;
        todo!()
    }

    /// The columns it uses, in order, each once.
    pub fn columns(&self) -> Vec<&str> {
        todo!()
    }

    /// The secrets it uses, in order, each once.
    pub fn secrets(&self) -> Vec<&Secret> {
        todo!()
    }

    /// Fills in columns; secrets stay as they were typed, so that the result can be stored and shown
    /// and is itself a template whose only placeholders are secrets.
    pub fn freeze(&self, columns: &Columns, place: Place) -> Result<String, TemplateError> {
        let _ = (columns, place);
        todo!()
    }

    /// Fills in columns and secrets, encoding both for their place.
    pub fn render(
        &self,
        columns: &Columns,
        place: Place,
        secret: &dyn Fn(&Secret) -> Option<String>,
    ) -> Result<String, TemplateError> {
        let _ = (columns, place, secret);
        todo!()
    }
}
