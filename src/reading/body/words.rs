//! The server's own words, for people and for fixed phrases.

use crate::reading::view::View;

/// Where a message stands, the most telling first.
const MESSAGES: [&str; 31] = [
    "/error/message",
    "/message",
    "/Message",
    "/d/Message",
    "/d/message",
    "/Error/Message",
    "/error/Message",
    "/error/detail",
    "/error/msg",
    "/detail",
    "/error_description",
    "/error_message",
    "/errorMessage",
    "/errors/0/longMessage",
    "/errors/0/message",
    "/errors/0/detail",
    "/errors/0/msg",
    "/errors/0/text",
    "/errors/0/title",
    "/errorMessages/0",
    "/fault/faultstring",
    "/description",
    "/title",
    "/error/errors/0/message",
    "/error/info",
    "/error/error",
    "/error",
    "/errors/0",
    "/errors",
    "/msg",
    "",
];

/// How much of them is shown.
pub(crate) const LONGEST: usize = 200;

/// How much of them is searched for phrases.
const SEARCHED: usize = 4 * 1024;

/// The beginning of the message of an error body; of a plain text its first line.
pub(crate) fn said<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let said = message(view)?;
    said.get(..said.floor_char_boundary(SEARCHED))
}

fn message<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let present = |text: &&str| !text.trim().is_empty();
    if view.json().is_some() {
        return MESSAGES.iter().find_map(|place| view.text_at(place).filter(present));
    }
    if view.is_html() {
        return element(view, "title").or_else(|| element(view, "h1")).filter(present);
    }
    element(view, "Message").filter(present).or_else(|| {
        let first = view.text().lines().map(str::trim).find(|line| !line.is_empty());
        first.filter(|line| !line.starts_with(['<', '{', '[']))
    })
}

/// The text of the first element of that name, for small XML and HTML answers.
pub(crate) fn element<'v>(view: &'v View<'_>, name: &str) -> Option<&'v str> {
    let text = view.text();
    if !text.trim_start().starts_with('<') {
        return None;
    }
    let tags = text.match_indices('<').filter_map(|(at, _)| {
        let tag = text.get(at + 1..)?;
        let (found, after) = tag.split_at_checked(name.len())?;
        let named = found.eq_ignore_ascii_case(name);
        let ends = after.starts_with(['>', ' ', '\t', '\r', '\n']);
        (named && ends).then_some(after)
    });
    let (_, inside) = { tags }.next()?.split_once('>')?;
    inside.split('<').next().map(str::trim)
}

/// One line of at most 200 characters, without control characters.
pub(crate) fn shown(text: &str) -> String {
    line(text, LONGEST)
}

/// One line of at most so many characters, without control characters.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    for word in text.split(|letter: char| letter.is_control() || letter.is_whitespace()) {
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * longest {
            break;
        }
    }
    match line.char_indices().nth(longest) {
        Some(_) => {
            let kept: String = line.chars().take(longest.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        None => line,
    }
}
