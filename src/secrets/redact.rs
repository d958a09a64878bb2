//! Values of secrets, found in text and replaced by their placeholders.

use std::borrow::Cow;
use std::fmt::Write as _;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::template::Secret;

/// A shorter value is not searched for: it would be found all over ordinary text.
const SHORTEST: usize = 4;

/// A piece of base64 shorter than this is likely to be anything.
const SHORTEST_BASE64: usize = 8;

/// A shorter value in hex is likely to be any number.
const SHORTEST_HEX: usize = 6;

/// Of a token longer than this the head is searched for, and whatever goes on like one goes with it: to
/// search for all of its letters takes long, and much memory.
const LONG: usize = 256;

/// The head. Tokens begin alike; that another one of the same server is taken for it does no harm.
const HEAD: usize = 128;

/// How a token goes on, in whatever way it is written; lines may be broken, as in keys.
const REST: &str = concat!(
    r"(?:[A-Za-z0-9._~+/=%-]|\\+(?:/|[uU][0-9A-Fa-f]{4})|&(?:amp;)*#x?[0-9A-Fa-f]+;",
    r"|(?:[\r\n]|\\+[rn])+[A-Za-z0-9._~+/=%-]{16})*",
);

/// Bytes of a pattern that may compile; some thousand secrets.
const PATTERN_LIMIT: usize = 64 << 20;

/// Replaces the values of secrets by their placeholders, such as `${env:KEY}`.
///
/// Finds a value in whatever mixture of these its letters stand: as they are, percent-encoded (once or
/// again), with a blank as `+`, escaped as in JSON strings, as HTML entities; in hex; and inside base64
/// at each of its three alignments, lines broken or not, so that `Basic` credentials are found too.
/// Values shorter than four bytes are left alone.
pub struct Redactor {
    /// One pattern a value. `None`: nothing to find.
    patterns: Option<Regex>,
    /// What each pattern's finds are replaced by.
    placeholders: Vec<String>,
    /// The patterns could not be made: nothing may be shown.
    blind: bool,
}

impl std::fmt::Debug for Redactor {
    /// Without any value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("values", &self.placeholders.len()).finish()
    }
}

impl Redactor {
    pub(super) fn new<'s>(values: impl Iterator<Item = (&'s str, &'s Secret)>) -> Redactor {
        let mut values: Vec<_> = values.filter(|(value, _)| value.len() >= SHORTEST).collect();
        // The longest first: a secret may hold another.
        values.sort_by_key(|(value, _)| (std::cmp::Reverse(value.len()), *value));
        let placeholders: Vec<_> = values.iter().map(|(_, secret)| secret.to_string()).collect();
        let patterns: Vec<_> = values.into_iter().map(|(value, _)| pattern(value)).collect();
        let made = (!patterns.is_empty()).then(|| {
            Regex::builder()
                .configure(Regex::config().nfa_size_limit(Some(PATTERN_LIMIT)))
                .syntax(syntax::Config::new().unicode(false).utf8(false))
                .build_many(&patterns)
                .ok()
        });
        let blind = matches!(made, Some(None));
        Redactor { patterns: made.flatten(), placeholders, blind }
    }

    /// The text with placeholders.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) if !self.blind => Cow::Borrowed(text),
            redacted => Cow::Owned(String::from_utf8_lossy(&redacted).into_owned()),
        }
    }

    /// The bytes with placeholders; borrowed where there was nothing to replace.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        if self.blind {
            return Cow::Owned(b"(not shown: too many secrets to search for)".to_vec());
        }
        let Some(patterns) = &self.patterns else { return Cow::Borrowed(bytes) };
        let mut redacted = Vec::new();
        let mut done = 0;
        for found in patterns.find_iter(bytes) {
            let placeholder = self.placeholders.get(found.pattern().as_usize());
            redacted.extend_from_slice(bytes.get(done..found.start()).unwrap_or_default());
            redacted.extend_from_slice(placeholder.map_or(b"***", String::as_bytes));
            done = found.end();
        }
        if done == 0 {
            return Cow::Borrowed(bytes);
        }
        redacted.extend_from_slice(bytes.get(done..).unwrap_or_default());
        Cow::Owned(redacted)
    }
}

/// Finds a value as it may stand in text.
fn pattern(value: &str) -> String {
    let mut pattern = String::new();
    let head = value.get(..HEAD).filter(|_| is_long_token(value));
    let rest = if head.is_some() { REST } else { "" };
    let value = head.unwrap_or(value);
    for letter in value.chars() {
        push_letter(letter, &mut pattern);
    }
    pattern.push_str(rest);
    for offset in 0..3 {
        let piece = base64_piece(value.as_bytes(), offset);
        if piece.len() >= SHORTEST_BASE64 {
            pattern.push('|');
            piece.chars().for_each(|letter| push_base64(letter, &mut pattern));
            pattern.push_str(rest);
        }
    }
    if value.len() >= SHORTEST_HEX {
        pattern.push_str("|(?i:");
        for byte in value.bytes() {
            // Writing to a `String` cannot fail.
            let _ = write!(pattern, "{byte:02x}");
        }
        pattern.push_str(rest);
        pattern.push(')');
    }
    pattern
}

/// Tokens and keys of thousands of letters without a blank.
fn is_long_token(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    value.len() > LONG && value.bytes().all(plain)
}

/// One letter, in all the ways in which it may be written. Writing to a `String` cannot fail.
fn push_letter(letter: char, pattern: &mut String) {
    pattern.push_str("(?:");
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        let _ = write!(pattern, "(?i:\\\\+u{unit:04x})");
    }
    pattern.push('|');
    let mut bytes = [0; 4];
    for byte in letter.encode_utf8(&mut bytes).bytes() {
        let _ = write!(pattern, "(?i:%(?:25)*{byte:02x})");
    }
    let code = u32::from(letter);
    let _ = write!(pattern, "|(?i:&(?:amp;)*#0*{code};|&(?:amp;)*#x0*{code:x};)");
    if let Some(name) = entity(letter) {
        let _ = write!(pattern, "|(?i:&(?:amp;)*{name};)");
    }
    if let Some(short) = escape(letter) {
        let _ = write!(pattern, "|\\\\+{short}");
    }
    if letter == ' ' {
        pattern.push_str("|\\+");
    }
    // Whatever is not plain may stand behind backslashes.
    pattern.push_str(if letter.is_ascii_punctuation() { "|\\\\*" } else { "|" });
    push_plain(letter, pattern);
    pattern.push(')');
}

/// A letter of base64: `+` and `/` have others in addresses; lines may be broken after any.
fn push_base64(letter: char, pattern: &mut String) {
    push_base64_letter(letter, pattern);
    pattern.push_str("(?:[\\r\\n]|\\\\[rn])*");
}

fn push_base64_letter(letter: char, pattern: &mut String) {
    match letter {
        '+' | '/' => {
            pattern.push_str("(?:");
            push_letter(letter, pattern);
            pattern.push_str(if letter == '+' { "|-)" } else { "|_)" });
        }
        _ => push_plain(letter, pattern),
    }
}

fn push_plain(letter: char, pattern: &mut String) {
    let mut bytes = [0; 4];
    for byte in letter.encode_utf8(&mut bytes).bytes() {
        let _ = write!(pattern, "\\x{byte:02x}");
    }
}

/// The name of a letter in HTML and XML.
fn entity(letter: char) -> Option<&'static str> {
    match letter {
        '&' => Some("amp"),
        '<' => Some("lt"),
        '>' => Some("gt"),
        '"' => Some("quot"),
        '\'' => Some("apos"),
        _ => None,
    }
}

/// The letter that stands for a control character behind a backslash.
fn escape(letter: char) -> Option<char> {
    match letter {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    }
}

/// The part of the base64 of a longer text that `bytes` alone decide, where they begin at `offset`
/// (modulo 3) of it.
fn base64_piece(bytes: &[u8], offset: usize) -> String {
    // The first group that holds nothing else begins here.
    let whole = bytes.get((3 - offset) % 3..).unwrap_or_default();
    let letters = whole.chunks_exact(3).flat_map(|three| {
        let bits = three.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
        [18, 12, 6, 0].map(|shift| base64_letter((bits >> shift) & 63))
    });
    letters.collect()
}

fn base64_letter(six_bits: u32) -> char {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = usize::try_from(six_bits).ok().and_then(|at| LETTERS.get(at));
    letter.map_or('=', |letter| char::from(*letter))
}
