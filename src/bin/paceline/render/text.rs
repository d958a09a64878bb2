//! Text that does to a terminal only what it should.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal could take the character for a command, or be misled by it: control characters,
/// and marks that turn the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with such characters escaped; line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| is_unsafe(c) && !matches!(c, '\n' | '\t'),
        |c| format!("\\u{{{:x}}}", u32::from(c)),
    )
}

/// The text as one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe, |c| match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    })
}

/// JSON, which escapes most of them itself, with the rest as JSON escapes them.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(
        json,
        |c| is_unsafe(c) && !matches!(c, '\n' | '\t'),
        |c| {
            let mut units = [0_u16; 2];
            let mut text = String::new();
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
            text
        },
    )
}

fn escaped(
    text: &str,
    bad: impl Fn(char) -> bool,
    escape: impl Fn(char) -> String,
) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if bad(c) { out.push_str(&escape(c)) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Says something that must be heard, on stderr.
pub fn complain(text: &str) {
    use std::io::Write as _;
    // Where nobody listens there is nothing left to do.
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(text));
}

/// At most so many characters, with a sign where some are missing.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or(text))),
        None => Cow::Borrowed(text),
    }
}

/// `1 job`, `2 jobs`.
pub fn count(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(count))
}

/// `1,200,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_unseen() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert_eq!(visible_lines("a\n\tb\u{9b}"), "a\n\tb\\u{9b}");
        assert_eq!(visible_json("\"\u{9b}\""), "\"\\u009b\"");
        assert_eq!(visible("plain ä"), "plain ä");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(1_200_000), "1,200,000");
        assert_eq!(count(1, "job"), "1 job");
        assert_eq!(count(1000, "job"), "1,000 jobs");
        assert_eq!(cut("abcdef", 3), "abc…");
    }
}
