//! Text to parts, and parts' text back to text that reads as itself.

use super::{Part, Secret, TemplateError};

/// What the columns of a batch's jobs are named by.
const ITEMS: &str = "items.";

/// The parts of a template's text; neighbouring text is one part.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, TemplateError> {
    let mut reader = Reader { parts: Vec::new(), text: String::new(), open: 0 };
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '$']) {
        let (before, from) = rest.split_at(at);
        reader.text.push_str(before);
        rest = reader.brace(from)?;
    }
    reader.text.push_str(rest);
    reader.end_text();
    Ok(reader.parts)
}

struct Reader {
    parts: Vec<Part>,
    text: String,
    /// `{{` that no `}}` has closed yet.
    open: usize,
}

impl Reader {
    /// Takes what `from` begins with (a brace or `$`), and returns what follows it.
    fn brace<'a>(&mut self, from: &'a str) -> Result<&'a str, TemplateError> {
        if let Some(rest) = from.strip_prefix("{{") {
            self.open += 1;
            self.text.push('{');
            return Ok(rest);
        }
        if self.open > 0
            && let Some(rest) = from.strip_prefix("}}")
        {
            self.open -= 1;
            self.text.push('}');
            return Ok(rest);
        }
        if let Some((name, rest)) = column(from) {
            self.end_text();
            self.parts.push(match name.strip_prefix(ITEMS).filter(|name| is_name(name)) {
                Some(name) => Part::Items(name.to_owned()),
                None => Part::Column(name.to_owned()),
            });
            return Ok(rest);
        }
        if from.starts_with("${") && !from.starts_with("${{") {
            let (secret, rest) = secret(from)?;
            self.end_text();
            self.parts.push(Part::Secret(secret));
            return Ok(rest);
        }
        let (itself, rest) = from.split_at_checked(1).unwrap_or((from, ""));
        self.text.push_str(itself);
        Ok(rest)
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }
}

/// `{name}` at the beginning of `from`: the name, and what follows.
pub(super) fn column(from: &str) -> Option<(&str, &str)> {
    let inner = from.strip_prefix('{')?;
    let end = inner.find(|c: char| !is_name_char(c)).unwrap_or(inner.len());
    let (name, rest) = inner.split_at_checked(end)?;
    let rest = rest.strip_prefix('}')?;
    is_name(name).then_some((name, rest))
}

/// Whether a column of that name can be used in a template.
pub(crate) fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    first && name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// `${...}` at the beginning of `from`: the secret, and what follows.
fn secret(from: &str) -> Result<(Secret, &str), TemplateError> {
    let inner = from.strip_prefix("${").unwrap_or(from);
    let (inner, rest) = inner.split_once('}').unwrap_or((inner, ""));
    let closed = from.len() > inner.len() + 2;
    let secret = match inner.split_once(':') {
        Some((_, "")) => None,
        Some(("env", name)) => Some(Secret::Env(name.to_owned())),
        Some(("file", path)) => Some(Secret::File(path.to_owned())),
        Some(("secret", name)) => Some(Secret::Named(name.to_owned())),
        None if inner == "token" => Some(Secret::Token),
        _ => None,
    };
    let unknown = || TemplateError::UnknownSecret(inner.to_owned());
    Ok((secret.filter(|_| closed).ok_or_else(unknown)?, rest))
}

/// Appends `run` so that it reads back as text: a brace that would begin a placeholder is doubled,
/// and so is the one that then closes it. `open` is carried from run to run of one template.
pub(super) fn escape_into(run: &str, open: &mut usize, out: &mut String) {
    let mut dollar = false;
    for (at, c) in run.char_indices() {
        let from = run.get(at..).unwrap_or_default();
        let doubled = match c {
            '{' => dollar || from.starts_with("{{") || column(from).is_some(),
            '}' => *open > 0,
            _ => false,
        };
        match c {
            '{' if doubled => *open += 1,
            '}' if doubled => *open -= 1,
            _ => {}
        }
        if doubled {
            out.push(c);
        }
        out.push(c);
        dollar = c == '$';
    }
}
