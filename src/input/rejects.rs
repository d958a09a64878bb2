//! A file of rejected rows that is read again: what it says of each row is no part of the row.

/// A column that is dropped when it is read: what a file of rejected rows says about each of them.
pub const REJECTED_BECAUSE: &str = "rejected_because";

/// The row's bytes without its last value. Of a row that is broken (`is_whole` is not set) only a value in
/// quotes is taken for what was said of it: that is how it is written.
pub(super) fn without_last(raw: &[u8], delimiter: u8, is_whole: bool) -> &[u8] {
    let end = match raw.strip_suffix(b"\"") {
        Some(value) => opening(value).and_then(|quote| quote.checked_sub(1)),
        None if is_whole => raw.iter().rposition(|byte| *byte == delimiter),
        None => None,
    };
    let end = end.filter(|end| raw.get(*end) == Some(&delimiter));
    end.and_then(|end| raw.get(..end)).unwrap_or(raw)
}

/// Where the quote stands that opens a value which `text` ends with; those inside it are doubled.
fn opening(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    loop {
        let quote = text.get(..end)?.iter().rposition(|byte| *byte == b'"')?;
        let before = quote.checked_sub(1);
        if before.and_then(|before| text.get(before)) != Some(&b'"') {
            return Some(quote);
        }
        end = before?;
    }
}

/// The row without its value at `at`, written anew.
pub(super) fn without(record: &csv::ByteRecord, delimiter: u8, at: usize) -> Vec<u8> {
    let others = record.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, value)| value);
    let mut row = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = row.write_record(others);
    let mut raw = row.into_inner().unwrap_or_default();
    raw.truncate(super::without_break(&raw).len());
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_of_a_row_is_taken_off() {
        let last = |raw: &str, is_whole| {
            String::from_utf8(without_last(raw.as_bytes(), b';', is_whole).to_vec()).unwrap()
        };
        assert_eq!(last("a;b;\"x \"\"b\"\"; y\"", false), "a;b");
        assert_eq!(last("5;\"open;\"a quote in it is never closed\"", false), "5;\"open");
        assert_eq!(last("a;\"\"", false), "a", "nothing was said");
        assert_eq!(last("a;b", false), "a;b", "it may be a value of the row");
        assert_eq!(last("a;b", true), "a");
        assert_eq!(last("\"a;b\"", false), "\"a;b\"", "the row's only value");
        assert_eq!(last("\"", false), "\"");
        let record = csv::ByteRecord::from(vec!["a\"b", "bad", "", "c;d"]);
        assert_eq!(without(&record, b';', 1), b"\"a\"\"b\";;\"c;d\"");
    }
}
