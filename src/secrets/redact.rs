//! Values of secrets, found in text and replaced by their placeholders.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::template::Secret;

/// A shorter value is not searched for: it would be found all over ordinary text.
const SHORTEST: usize = 4;

/// A piece of base64 shorter than this is likely to be anything.
const SHORTEST_BASE64: usize = 8;

/// Bytes of a pattern that may compile; some thousand secrets.
const PATTERN_LIMIT: usize = 64 << 20;

/// Replaces the values of secrets by their placeholders, such as `${env:KEY}`.
///
/// Finds a value as it is, percent-encoded (in either case, blank also as `+`), as the inside of a
/// JSON string, and inside base64 at each of its three alignments, so that `Basic` credentials are
/// found too. Values shorter than four bytes are left alone.
pub struct Redactor {
    /// `None`: nothing to find.
    pattern: Option<Regex>,
    placeholders: HashMap<Vec<u8>, String>,
    /// The pattern could not be made: nothing may be shown.
    blind: bool,
}

impl std::fmt::Debug for Redactor {
    /// Without any value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("forms", &self.placeholders.len()).finish()
    }
}

impl Redactor {
    pub(super) fn new<'s>(values: impl Iterator<Item = (&'s str, &'s Secret)>) -> Redactor {
        let mut placeholders = HashMap::new();
        for (value, secret) in values.filter(|(value, _)| value.len() >= SHORTEST) {
            let placeholder = secret.to_string();
            for form in forms(value) {
                placeholders.entry(form).or_insert_with(|| placeholder.clone());
            }
        }
        // The longest first: a secret may hold another.
        let mut found: Vec<&Vec<u8>> = placeholders.keys().collect();
        found.sort_by_key(|form| (std::cmp::Reverse(form.len()), *form));
        let escaped: Vec<_> = found.into_iter().map(|form| escape(form)).collect();
        let pattern = (!escaped.is_empty()).then(|| {
            RegexBuilder::new(&escaped.join("|")).unicode(false).size_limit(PATTERN_LIMIT).build()
        });
        let blind = matches!(pattern, Some(Err(_)));
        Redactor { pattern: pattern.and_then(Result::ok), placeholders, blind }
    }

    /// The text with placeholders.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) if !self.blind => Cow::Borrowed(text),
            redacted => Cow::Owned(String::from_utf8_lossy(&redacted).into_owned()),
        }
    }

    /// The bytes with placeholders.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        if self.blind {
            return Cow::Borrowed(b"(not shown: too many secrets to search for)");
        }
        let Some(pattern) = &self.pattern else { return Cow::Borrowed(bytes) };
        pattern.replace_all(bytes, |found: &Captures<'_>| {
            let form = found.get(0).map(|found| found.as_bytes()).unwrap_or_default();
            self.placeholders.get(form).map_or(&b"***"[..], String::as_bytes).to_vec()
        })
    }
}

/// A pattern that matches exactly these bytes.
fn escape(bytes: &[u8]) -> String {
    let mut pattern = String::with_capacity(bytes.len() * 4);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(pattern, "\\x{byte:02x}");
    }
    pattern
}

/// How a value may stand in text.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let upper = percent_encoded(value, false);
    let mut json = String::new();
    crate::template::json_inside(value, &mut json);
    let mut forms = vec![
        value.to_owned(),
        percent_encoded(value, true),
        upper.replace("%20", "+"),
        upper,
        json.replace('/', "\\/"),
        json,
    ];
    for offset in 0..3 {
        let piece = base64_piece(value.as_bytes(), offset);
        if piece.len() >= SHORTEST_BASE64 {
            forms.push(piece.replace('+', "-").replace('/', "_"));
            forms.push(piece);
        }
    }
    forms.into_iter().map(String::into_bytes).collect()
}

fn percent_encoded(value: &str, lower: bool) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        let _ = match byte {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => {
                text.push(char::from(b));
                Ok(())
            }
            b if lower => write!(text, "%{b:02x}"),
            b => write!(text, "%{b:02X}"),
        };
    }
    text
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
