//! Values encoded for the place they stand in.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Place;

/// Everything but what RFC 3986 section 2.3 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const CDATA_OPEN: &str = "<![CDATA[";
const CDATA_CLOSE: &str = "]]>";

/// A [`CDATA_CLOSE`] that does not end its section: it is parted between two.
const CDATA_SPLIT: &str = "]]]]><![CDATA[>";

/// A carriage return, which a reader would take for a line feed, outside of its section.
const CDATA_RETURN: &str = "]]>&#13;<![CDATA[";

/// What a value breaks, where its place cannot carry it.
pub(super) enum Breaks {
    /// A header's one line.
    Header,
    /// A line of a list.
    Line,
    /// An item of a list parted by commas.
    List,
    /// The document: XML has no such character.
    Xml,
}

/// Encodes values, knowing what stands before them.
pub(super) struct Writer {
    place: Place,
    /// Nothing was written yet.
    first: bool,
    /// JSON: between quotes. XML: in a CDATA section.
    quoted: bool,
}

impl Writer {
    pub(super) fn new(place: Place) -> Writer {
        Writer { place, first: true, quoted: false }
    }

    /// Takes note of the template's own text.
    pub(super) fn text(&mut self, text: &str) {
        self.first = false;
        match self.place {
            Place::Json => self.json_text(text),
            Place::Xml => self.xml_text(text),
            Place::Url | Place::Header | Place::Form | Place::Plain => {}
        }
    }

    fn xml_text(&mut self, text: &str) {
        let (open, close) = (text.rfind(CDATA_OPEN), text.rfind(CDATA_CLOSE));
        if open.is_some() || close.is_some() {
            self.quoted = open > close;
        }
    }

    fn json_text(&mut self, text: &str) {
        let mut escaped = false;
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = self.quoted,
                b'"' => self.quoted = !self.quoted,
                _ => {}
            }
        }
    }

    /// Takes note of a placeholder that stays one.
    pub(super) fn placeholder(&mut self) {
        self.first = false;
    }

    /// Appends the values of a batch's jobs.
    pub(super) fn list(&mut self, values: &[&str], out: &mut String) -> Result<(), Breaks> {
        let (open, between, close) = match self.place {
            Place::Json if self.quoted => ("", "\",\"", ""),
            Place::Json => ("[", ",", "]"),
            Place::Plain | Place::Xml => ("", "\n", ""),
            Place::Url | Place::Form | Place::Header => ("", ",", ""),
        };
        out.push_str(open);
        for (n, value) in values.iter().enumerate() {
            match between {
                "\n" if value.contains(['\n', '\r']) => return Err(Breaks::Line),
                // Encoded or not: whoever decodes the list finds two items.
                "," if self.place != Place::Json && value.contains(',') => {
                    return Err(Breaks::List);
                }
                _ => {}
            }
            if n > 0 {
                out.push_str(between);
            }
            self.value(value, out)?;
        }
        out.push_str(close);
        Ok(())
    }

    /// Appends a value.
    pub(super) fn value(&mut self, value: &str, out: &mut String) -> Result<(), Breaks> {
        let first = std::mem::replace(&mut self.first, false);
        match self.place {
            Place::Url if first => whole_url(value, out),
            Place::Url => out.extend(utf8_percent_encode(value, RESERVED)),
            Place::Header if value.chars().any(char::is_control) => {
                return Err(Breaks::Header);
            }
            Place::Header | Place::Plain => out.push_str(value),
            Place::Json if self.quoted => json_inside(value, out),
            Place::Json => json_value(value, out),
            Place::Xml if !value.chars().all(is_xml) => return Err(Breaks::Xml),
            Place::Xml if self.quoted => {
                let whole = value.replace(CDATA_CLOSE, CDATA_SPLIT);
                out.push_str(&whole.replace('\r', CDATA_RETURN));
            }
            Place::Xml => xml_text(value, out),
            Place::Form => form(value, out),
        }
        Ok(())
    }
}

/// A URL is not encoded a second time; only its braces could be taken for placeholders.
fn whole_url(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '{' => out.push_str("%7B"),
            '}' => out.push_str("%7D"),
            _ => out.push(c),
        }
    }
}

fn form(value: &str, out: &mut String) {
    for (n, word) in value.split(' ').enumerate() {
        if n > 0 {
            out.push('+');
        }
        out.extend(utf8_percent_encode(word, RESERVED));
    }
}

/// Escapes for the inside of a JSON string (RFC 8259 section 7).
pub(crate) fn json_inside(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// A scalar as it is; anything else as a string, so that no value can add fields of its own.
fn json_value(value: &str, out: &mut String) {
    use serde_json::Value;
    let scalar = serde_json::from_str(value);
    if matches!(scalar, Ok(Value::Number(_) | Value::Bool(_) | Value::Null)) {
        out.push_str(value.trim());
    } else {
        out.push('"');
        json_inside(value, out);
        out.push('"');
    }
}

/// The characters that a document may have (XML 1.0, production 2).
const fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn xml_text(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // As they are, a reader would make blanks of them in an attribute, and a feed of a return.
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            _ => out.push(c),
        }
    }
}
