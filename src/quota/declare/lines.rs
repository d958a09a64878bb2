//! The merged file as text, with the origin of each line.

use super::node::{At, Field, Node, Table, Value};
use super::report::Report;
use super::{DeclareError, FindBase, Source, tree};

/// One line of a quota file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// TOML, without the line break.
    pub text: String,
    /// The file it comes from.
    pub file: String,
    /// Its line there, from 1.
    pub line: usize,
}

/// The lines of a quota file: as they are where it extends nothing, else those of the merged file
/// (whose comments are lost), each with where it comes from.
///
/// # Errors
///
/// Where a file is no TOML, or what it extends cannot be found. Other problems do not matter here.
pub fn lines(own: Source, base: FindBase<'_>) -> Result<Vec<Line>, DeclareError> {
    let mut report = Report::new();
    let tree = tree(&mut report, own, base)?;
    if let [only] = report.sources() {
        let lines = only.text.lines().enumerate();
        let line = |(n, text): (usize, &str)| Line {
            text: text.to_owned(),
            file: only.file.clone(),
            line: n + 1,
        };
        return Ok(lines.map(line).collect());
    }
    let mut writer = Writer { report: &report, lines: Vec::new() };
    writer.table("", &tree);
    Ok(writer.lines)
}

struct Writer<'a> {
    report: &'a Report,
    lines: Vec<Line>,
}

impl Writer<'_> {
    fn line(&mut self, at: At, text: String) {
        let (file, line, _) = self.report.place(at);
        self.lines.push(Line { text, file, line });
    }

    /// Plain fields first: after a header they would belong to another table.
    fn table(&mut self, path: &str, table: &Table) {
        let (own, below): (Vec<_>, Vec<_>) = table.fields.iter().partition(|field| is_plain(field));
        // The merged file stands for itself.
        for field in own.into_iter().filter(|field| !(path.is_empty() && field.name == "extends")) {
            self.line(field.at, format!("{} = {}", key(&field.name), inline(&field.node)));
        }
        for field in below {
            let path = match path {
                "" => key(&field.name),
                _ => format!("{path}.{}", key(&field.name)),
            };
            match &field.node.value {
                Value::Table(table) if has_plain(table) => {
                    self.line(table.at, format!("[{path}]"));
                    self.table(&path, table);
                }
                Value::Table(table) => self.table(&path, table),
                Value::Array(items) => self.array(&path, items),
                _ => {}
            }
        }
    }

    fn array(&mut self, path: &str, items: &[Node]) {
        for item in items {
            if let Value::Table(table) = &item.value {
                self.line(table.at, format!("[[{path}]]"));
                self.table(path, table);
            }
        }
    }
}

/// A table of plain fields in a limit or reading is short and reads best inline.
fn is_plain(field: &Field) -> bool {
    match &field.node.value {
        Value::Table(_) => {
            matches!(
                field.name.as_str(),
                "when" | "set" | "secret" | "reset" | "headers" | "fields" | "form"
            )
        }
        Value::Array(items) => {
            !matches!(items.first().map(|item| &item.value), Some(Value::Table(_)))
        }
        _ => true,
    }
}

fn has_plain(table: &Table) -> bool {
    table.fields.is_empty() || table.fields.iter().any(is_plain)
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { text(name) }
}

fn text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(value) => text(value),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) | Value::Date(number) => number.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let one = |field: &Field| format!("{} = {}", key(&field.name), inline(&field.node));
            let fields: Vec<_> = table.fields.iter().map(one).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
