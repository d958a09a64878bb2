//! A quota file as a tree of values that know where they were written.
//!
//! Owned and independent of the TOML crate, so that the trees of a file and of what it `extends` can
//! be merged while each value keeps its own place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where something is written: the file's index among the sources, and bytes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) file: usize,
    pub(super) start: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    /// A number as written that no `i64` holds.
    Number(String),
    Boolean(bool),
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// What it is, for people.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Integer(_) => "a whole number",
            Value::Number(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Date(_) => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// A table's fields in the order in which they are written.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) at: At,
    pub(super) fields: Vec<Field>,
}

/// A field: its name, where that stands, and its value.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn get(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Field> {
        self.fields.iter_mut().find(|field| field.name == name)
    }

    /// The text that the field holds, if it holds any.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The tree of a document that TOML's parser took.
pub(super) fn from_document(file: usize, document: &Spanned<DeTable<'_>>) -> Table {
    let at = At { file, start: document.span().start };
    table(file, at, document.get_ref())
}

fn table(file: usize, at: At, entries: &DeTable<'_>) -> Table {
    let field = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &Spanned<std::borrow::Cow<'_, str>> = name;
        let at = At { file, start: name.span().start };
        Field { name: name.get_ref().to_string(), at, node: node(file, value) }
    };
    let mut fields: Vec<Field> = entries.iter().map(field).collect();
    fields.sort_by_key(|field| field.at);
    Table { at, fields }
}

fn node(file: usize, value: &Spanned<DeValue<'_>>) -> Node {
    let at = At { file, start: value.span().start };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            whole.map_or_else(|_| Value::Number(number.to_string()), Value::Integer)
        }
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| node(file, item)).collect()),
        DeValue::Table(entries) => Value::Table(table(file, at, entries)),
    };
    Node { at, value }
}
