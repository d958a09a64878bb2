//! A table's fields, taken one by one: what is not taken is unknown.

use std::time::Duration;

use super::node::{At, Node, Table, Value};
use super::report::Report;
use super::suggest::nearest;
use super::units::{self, Wrong};

/// Reads a table, noting in the report each value of the wrong type and, at [`Fields::finish`], each
/// field that nobody asked for.
pub(super) struct Fields<'a> {
    pub(super) report: &'a Report,
    pub(super) table: &'a Table,
    what: String,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// `what` names the table to people: `[request]`, "limit `daily`".
    pub(super) fn new(report: &'a Report, table: &'a Table, what: impl Into<String>) -> Fields<'a> {
        Fields { report, table, what: what.into(), known: Vec::new() }
    }

    /// The field, if it is there.
    pub(super) fn node(&mut self, name: &'static str) -> Option<&'a Node> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        Some(&self.table.get(name)?.node)
    }

    /// The field; a problem where it is missing.
    pub(super) fn required(&mut self, name: &'static str, fix: &str) -> Option<&'a Node> {
        let node = self.node(name);
        if node.is_none() {
            self.report.problem(self.table.at, format!("{} has no `{name}`", self.what), fix);
        }
        node
    }

    /// Where the field's value stands; the table's place where it is not there.
    pub(super) fn at(&self, name: &str) -> At {
        self.table.get(name).map_or(self.table.at, |field| field.node.at)
    }

    /// Notes a problem with the field's value.
    pub(super) fn problem(&self, name: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.report.problem(self.at(name), message, fix);
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        let node = self.node(name)?;
        as_text(self.report, name, node)
    }

    /// Text that is not blank.
    pub(super) fn words(&mut self, name: &'static str) -> Option<&'a str> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            self.problem(name, format!("`{name}` is empty"), "write a text, or remove the field");
            return None;
        }
        Some(text)
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let node = self.node(name)?;
        match node.value {
            Value::Boolean(flag) => Some(flag),
            _ => self.mismatch(name, node, "true or false"),
        }
    }

    /// A whole number that is not negative.
    pub(super) fn whole(&mut self, name: &'static str) -> Option<u64> {
        let node = self.node(name)?;
        match node.value {
            Value::Integer(number) if number >= 0 => u64::try_from(number).ok(),
            Value::Integer(_) => {
                self.problem(name, format!("`{name}` is negative"), "write a whole number from 0");
                None
            }
            _ => self.mismatch(name, node, "a whole number"),
        }
    }

    /// A whole number from 1; zero is a problem that says why.
    pub(super) fn positive(&mut self, name: &'static str, why: &str) -> Option<u64> {
        let number = self.whole(name)?;
        if number == 0 {
            self.problem(name, format!("zero `{name}`: {why}"), "write a whole number from 1");
            return None;
        }
        Some(number)
    }

    pub(super) fn number(&mut self, name: &'static str) -> Option<f64> {
        let node = self.node(name)?;
        let number = match &node.value {
            Value::Integer(number) => number.to_string().parse().ok(),
            Value::Number(number) => number.replace('_', "").parse().ok(),
            _ => None,
        };
        number.or_else(|| self.mismatch(name, node, "a number"))
    }

    /// Text read by `read`.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let text = self.text(name)?;
        read(text).map_err(|wrong| self.report.wrong(self.at(name), wrong)).ok()
    }

    /// A duration; zero is allowed. A bare number has no unit, which is told as such.
    pub(super) fn duration(&mut self, name: &'static str) -> Option<Duration> {
        let node = self.node(name)?;
        if let Value::Integer(number) = node.value {
            let fix = format!("write it with its unit, such as \"{number}s\"");
            self.report.problem(node.at, format!("`{name}` has no unit"), fix);
            return None;
        }
        self.parsed(name, units::duration)
    }

    /// A duration that is not zero.
    pub(super) fn span(&mut self, name: &'static str) -> Option<Duration> {
        let span = self.duration(name)?;
        if span.is_zero() {
            self.problem(name, format!("zero `{name}`"), "write a longer duration, or remove it");
            return None;
        }
        Some(span)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(name)?;
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if chosen.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let fix = format!("write {}", words.join(" or "));
            self.problem(name, format!("`{text}` is no `{name}`"), fix);
        }
        chosen
    }

    /// A table.
    pub(super) fn table(&mut self, name: &'static str) -> Option<&'a Table> {
        let node = self.node(name)?;
        match &node.value {
            Value::Table(table) => Some(table),
            _ => self.mismatch(name, node, "a table"),
        }
    }

    /// An array of tables, `[[name]]`; none where it is not there.
    pub(super) fn tables(&mut self, name: &'static str) -> Vec<&'a Table> {
        let Some(node) = self.node(name) else { return Vec::new() };
        let Value::Array(items) = &node.value else {
            let fix = format!("write its header in double brackets, as in [[{name}]]");
            self.report.problem(node.at, format!("`{name}` is not a list of tables"), fix);
            return Vec::new();
        };
        let table = |item: &'a Node| match &item.value {
            Value::Table(table) => Some(table),
            _ => self.mismatch(name, item, "tables only"),
        };
        items.iter().filter_map(table).collect()
    }

    /// An array of texts, each with its place; none where it is not there.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<(&'a str, At)> {
        let Some(node) = self.node(name) else { return Vec::new() };
        let Value::Array(items) = &node.value else {
            let fix = format!("write an array, as in {name} = [\"...\"]");
            self.report.problem(node.at, format!("`{name}` is {}", node.value.kind()), fix);
            return Vec::new();
        };
        let text = |item: &'a Node| Some((as_text(self.report, name, item)?, item.at));
        items.iter().filter_map(text).collect()
    }

    /// A table of texts, each with its place; none where it is not there.
    pub(super) fn text_map(&mut self, name: &'static str) -> Vec<(&'a str, &'a str, At)> {
        let Some(table) = self.table(name) else { return Vec::new() };
        let fields = table.fields.iter();
        let text = |field: &'a super::node::Field| {
            Some((
                field.name.as_str(),
                as_text(self.report, &field.name, &field.node)?,
                field.node.at,
            ))
        };
        fields.filter_map(text).collect()
    }

    fn mismatch<T>(&self, name: &str, node: &Node, wanted: &str) -> Option<T> {
        let message = format!("`{name}` is {}", node.value.kind());
        self.report.problem(node.at, message, format!("write {wanted}"));
        None
    }

    /// Notes each field that nobody asked for.
    pub(super) fn finish(self) {
        for field in &self.table.fields {
            if self.known.contains(&field.name.as_str()) {
                continue;
            }
            let message = format!("unknown field `{}` in {}", field.name, self.what);
            let all = self.known.join(", ");
            let fix = match nearest(&field.name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`? there are {all}"),
                None => format!("there are {all}"),
            };
            self.report.problem(field.at, message, fix);
        }
    }
}

fn as_text<'a>(report: &Report, name: &str, node: &'a Node) -> Option<&'a str> {
    match &node.value {
        Value::Text(text) => Some(text),
        other => {
            let message = format!("`{name}` is {}", other.kind());
            report.problem(node.at, message, "write text in quotes");
            None
        }
    }
}
