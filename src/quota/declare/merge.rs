//! `extends`: one tree laid over another.
//!
//! Tables merge by name and field, limits by their `name`, an `[auth]` or limit of another kind replaces
//! the old one; own readings come first; all else that is given anew replaces what was there. `remove = true` in a table or limit drops it.

use super::node::{Field, Node, Table, Value};
use super::report::Report;

/// `own` laid over `base`.
pub(super) fn over(report: &Report, base: Table, own: Table) -> Table {
    let mut merged = Table { at: own.at, fields: base.fields };
    for field in own.fields {
        if removes(&field.node) {
            remove(report, &mut merged.fields, &field);
            continue;
        }
        match merged.get_mut(&field.name) {
            Some(below) => {
                let base = std::mem::replace(&mut below.node.value, Value::Boolean(false));
                below.node = merge(report, base, field.node, &field.name);
                below.at = field.at;
            }
            None => merged.fields.push(field),
        }
    }
    merged
}

fn merge(report: &Report, base: Value, own: Node, name: &str) -> Node {
    let at = own.at;
    let value = match (base, own.value) {
        (Value::Table(base), Value::Table(own)) if name == "auth" && is_other_kind(&base, &own) => {
            Value::Table(own)
        }
        (Value::Table(base), Value::Table(own)) => Value::Table(over(report, base, own)),
        (Value::Array(base), Value::Array(own)) if name == "limit" => {
            Value::Array(limits(report, base, own))
        }
        (Value::Array(base), Value::Array(own)) if name == "reading" => {
            Value::Array(own.into_iter().chain(base).collect())
        }
        (_, own) => own,
    };
    Node { at, value }
}

fn limits(report: &Report, base: Vec<Node>, own: Vec<Node>) -> Vec<Node> {
    let mut merged = base;
    for node in own {
        let name = name_of(&node).map(str::to_owned);
        let place =
            merged.iter().position(|below| name.is_some() && name_of(below) == name.as_deref());
        match place {
            Some(place) if removes(&node) => {
                merged.remove(place);
            }
            Some(place) => {
                let below = merged.remove(place);
                merged.insert(place, limit(report, below, node));
            }
            None if removes(&node) => {
                let name = name.unwrap_or_default();
                let fix = "write the `name` of a limit of the extended file";
                report.problem(node.at, format!("there is no limit `{name}` to remove"), fix);
            }
            None => merged.push(node),
        }
    }
    merged
}

/// A limit of another kind has nothing to inherit.
fn limit(report: &Report, base: Node, own: Node) -> Node {
    match (&base.value, &own.value) {
        (Value::Table(below), Value::Table(over)) if is_other_kind(below, over) => own,
        _ => merge(report, base.value, own, ""),
    }
}

fn is_other_kind(base: &Table, own: &Table) -> bool {
    own.text("kind").is_some_and(|kind| Some(kind) != base.text("kind"))
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Table(table) => table.text("name"),
        _ => None,
    }
}

fn removes(node: &Node) -> bool {
    match &node.value {
        Value::Table(table) => {
            let remove = table.get("remove").map(|field| &field.node.value);
            matches!(remove, Some(Value::Boolean(true)))
        }
        _ => false,
    }
}

fn remove(report: &Report, fields: &mut Vec<Field>, own: &Field) {
    let before = fields.len();
    fields.retain(|field| field.name != own.name);
    if fields.len() == before {
        let fix = "write the name of a table of the extended file";
        report.problem(own.at, format!("there is no table `{}` to remove", own.name), fix);
    }
}
