//! The environment that secrets are looked up in: the process's own, and after it a file of
//! `NAME=VALUE` lines, where one was given.
//!
//! A file's values do not become variables of the process: nothing else in it reads them. Programs that
//! give tokens (`[auth] command`) get them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::OnceLock;

/// What a file of variables says that cannot be meant. Never shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct EnvFileError {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub message: String,
}

/// The variables of the file that was given.
static FILE: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Has secrets of this process be looked up in these variables too, after its environment. The first
/// ones that are given stay.
pub fn provide(variables: BTreeMap<String, String>) {
    let _ = FILE.set(variables);
}

/// A variable of the process, or else of the file; an empty one counts as not set.
pub fn variable(name: &str) -> Option<OsString> {
    let own = std::env::var_os(name).filter(|value| !value.is_empty());
    own.or_else(|| provided().get(name).map(OsString::from))
}

/// The variables of the file that the process's environment lacks.
pub fn lacking() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lacks = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let all = provided().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    all.filter(move |(name, _)| lacks(name))
}

fn provided() -> &'static BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    FILE.get().unwrap_or(&NONE)
}

/// Reads lines of `NAME=VALUE`. A line may begin with `export `; `#` begins a comment, after a value
/// where a blank stands before it. Within '...' all is itself; within "..." `\n`, `\t`, `\"`, `\\` and `\$`
/// are what they are in a shell. Nothing is expanded: a `$` is a dollar.
///
/// ```
/// let variables = paceline::secrets::parse_env("export KEY='a b'  # mine\n").unwrap();
/// assert_eq!(variables["KEY"], "a b");
/// ```
///
/// # Errors
///
/// The first line that is none of these.
pub fn parse_env(text: &str) -> Result<BTreeMap<String, String>, EnvFileError> {
    let mut variables = BTreeMap::new();
    for (n, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = pair(line).map_err(|message| EnvFileError { line: n + 1, message })?;
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

fn pair(line: &str) -> Result<(&str, String), String> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or("no NAME=VALUE line")?;
    let name = name.trim_end();
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("what stands before `=` is no name: write letters, digits and _".to_owned());
    }
    let value = value.trim_start();
    let (value, rest) = match value.chars().next() {
        Some('\'') => single(value.get(1..).unwrap_or_default()),
        Some('"') => double(value.get(1..).unwrap_or_default()),
        _ => Some(bare(value)),
    }
    .ok_or_else(|| format!("the quote after {name}= is not closed on its line"))?;
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(format!("something stands after the quoted value of {name}"));
    }
    Ok((name, value))
}

fn single(text: &str) -> Option<(String, &str)> {
    text.split_once('\'').map(|(value, rest)| (value.to_owned(), rest))
}

fn double(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                c @ ('"' | '\\' | '$' | '`') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

fn bare(text: &str) -> (String, &str) {
    let end = text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len());
    (text.get(..end).unwrap_or(text).trim_end().to_owned(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds_are_read() {
        let text = "\u{feff}# keys\nA=1\r\n export B = two words # told\n\nC='#1 $x \"'\n\
            D=\"a\\\"b\\n\\$5 \\x # no\" # yes\nE=\nF=a#b=c\nA=2\n";
        let read = parse_env(text).unwrap();
        let read: Vec<_> = read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let expected = [
            ("A", "2"),
            ("B", "two words"),
            ("C", "#1 $x \""),
            ("D", "a\"b\n$5 \\x # no"),
            ("E", ""),
            ("F", "a#b=c"),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_is_told_without_a_value() {
        for (text, told) in [
            ("A=1\nhunter2\n", "2: no NAME=VALUE line"),
            ("hunter 2=x", "1: what stands before `=` is no name: write letters, digits and _"),
            ("A='hunter2", "1: the quote after A= is not closed on its line"),
            ("A=\"hunter2\\", "1: the quote after A= is not closed on its line"),
            ("A='x'hunter2", "1: something stands after the quoted value of A"),
        ] {
            let error = parse_env(text).unwrap_err().to_string();
            assert_eq!(error, told);
        }
    }
}
