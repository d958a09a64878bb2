//! Text of other encodings is UTF-8 once it is read: UTF-16 is told by its byte order mark, that of XML by
//! its declaration, any other must be named.

use std::io::{self, BufRead, Cursor, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE};

/// How far a declaration is looked for.
const DECLARATION: u64 = 256;

/// Bytes that are decoded at once.
const ROOM: usize = 1 << 16;

/// Stands for bytes that are no text of the encoding. UTF-8 never has it: the row with it is refused.
const NO_TEXT: u8 = 0xff;

/// How text is written, by one of the names of the [WHATWG standard](https://encoding.spec.whatwg.org/#names-and-labels).
///
/// ```
/// use std::io::Read as _;
/// use paceline::input::encoding::{Encoding, utf8};
///
/// let mut text = String::new();
/// utf8(&b"Stra\xdfe"[..], Some("windows-1252".parse()?))?.read_to_string(&mut text)?;
/// assert_eq!(text, "Straße");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

/// It has no such name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no encoding has this name; write one such as windows-1252, iso-8859-15, utf-16 or utf-8")]
pub struct UnknownEncoding;

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Encoding, UnknownEncoding> {
        encoding_rs::Encoding::for_label(name.as_bytes()).map(Encoding).ok_or(UnknownEncoding)
    }
}

/// The text of `input` as UTF-8. A byte order mark goes before what is `named`, that before a declaration;
/// what has none of these is passed on as it is.
///
/// # Errors
///
/// Where its beginning cannot be read.
pub fn utf8<'a>(
    mut input: impl BufRead + 'a,
    named: Option<Encoding>,
) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut begin = Vec::new();
    // A pipe may give its bytes one by one, and a person only as many as there are.
    input.by_ref().take(2).read_to_end(&mut begin)?;
    if begin == b"<?" && named.is_none() {
        input.by_ref().take(DECLARATION).read_to_end(&mut begin)?;
    }
    let encoding = match begin.as_slice() {
        [0xff, 0xfe] => Some(UTF_16LE),
        [0xfe, 0xff] => Some(UTF_16BE),
        _ => named.map(|named| named.0).or_else(|| declared(&begin)),
    };
    let whole = Cursor::new(begin).chain(input);
    Ok(match encoding.filter(|encoding| *encoding != UTF_8) {
        None => Box::new(whole),
        Some(encoding) => Box::new(Decoded::new(whole, encoding.new_decoder_with_bom_removal())),
    })
}

/// What an XML declaration says. That it is UTF-16 is not so where it can be read.
fn declared(begin: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let text = String::from_utf8_lossy(begin);
    let (declaration, _) = text.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let name = value.split(['"', '\'']).nth(1)?;
    let encoding = encoding_rs::Encoding::for_label(name.as_bytes())?;
    encoding.is_ascii_compatible().then_some(encoding)
}

/// Decodes what it reads.
struct Decoded<R> {
    input: R,
    decoder: Decoder,
    ended: bool,
    /// What was decoded stands in it from `taken` to `end`: a decoder wants room for some characters.
    text: Vec<u8>,
    taken: usize,
    end: usize,
}

impl<R: BufRead> Decoded<R> {
    fn new(input: R, decoder: Decoder) -> Decoded<R> {
        Decoded { input, decoder, ended: false, text: vec![NO_TEXT; ROOM], taken: 0, end: 0 }
    }

    /// Decodes some more, once all that was decoded is taken.
    fn refill(&mut self) -> io::Result<()> {
        (self.taken, self.end) = (0, 0);
        while self.end == 0 && !self.ended {
            let bytes = self.input.fill_buf()?;
            let last = bytes.is_empty();
            let Some((mark, room)) = self.text.split_last_mut() else { return Ok(()) };
            let (result, read, written) =
                self.decoder.decode_to_utf8_without_replacement(bytes, room, last);
            self.input.consume(read);
            self.end = written;
            match result {
                DecoderResult::InputEmpty => self.ended = last,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    *room.get_mut(written).unwrap_or(mark) = NO_TEXT;
                    self.end += 1;
                }
            }
        }
        Ok(())
    }
}

impl<R: BufRead> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken >= self.end {
            self.refill()?;
        }
        Ok(self.text.get(self.taken..self.end).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.taken += amount;
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(bytes: &[u8], named: Option<&str>) -> Vec<u8> {
        let read_by = |capacity| {
            let mut text = Vec::new();
            let named = named.map(|name| name.parse().unwrap());
            let input = BufReader::with_capacity(capacity, bytes);
            utf8(input, named).unwrap().read_to_end(&mut text).unwrap();
            text
        };
        let text = read_by(1);
        assert_eq!(text, read_by(4096), "however its bytes come");
        text
    }

    fn utf16(text: &str, begin: [u8; 2]) -> Vec<u8> {
        let unit =
            |unit: u16| if begin[0] == 0xff { unit.to_le_bytes() } else { unit.to_be_bytes() };
        begin.into_iter().chain(text.encode_utf16().flat_map(unit)).collect()
    }

    #[test]
    fn a_byte_order_mark_tells_utf_16() {
        let text = "isbn;title\r\n1;Straße \u{1f4d6}\r\n";
        for begin in [[0xff, 0xfe], [0xfe, 0xff]] {
            assert_eq!(read(&utf16(text, begin), None), text.as_bytes());
            assert_eq!(read(&utf16(text, begin), Some("windows-1252")), text.as_bytes());
        }
        let long = "ä€".repeat(100_000);
        assert_eq!(read(&utf16(&long, [0xff, 0xfe]), None), long.as_bytes());
    }

    #[test]
    fn what_is_no_text_of_it_is_none_of_utf_8() {
        let mut half = utf16("a\n", [0xff, 0xfe]);
        half.extend(0xd800_u16.to_le_bytes());
        half.extend(b"b\0\n\0c");
        let text = read(&half, None);
        assert_eq!(text.iter().filter(|byte| **byte == NO_TEXT).count(), 2, "{text:?}");
        assert!(text.starts_with(b"a\n") && text.contains(&b'b'), "{text:?}");
    }

    #[test]
    fn a_name_tells_others_and_utf_8_stays_as_it_is() {
        assert_eq!(read(b"a\x80\xfc", Some("latin1")), "a€ü".as_bytes());
        for named in [None, Some("utf-8"), Some("windows-1252")] {
            assert_eq!(read(b"", named), b"");
            assert_eq!(read(b"a,b\n", named), b"a,b\n");
        }
        assert_eq!(read(b"\xef\xbb\xbfa\xff", None), b"\xef\xbb\xbfa\xff");
        assert_eq!("klingon".parse::<Encoding>(), Err(UnknownEncoding));
    }

    #[test]
    fn a_declaration_tells_that_of_xml() {
        let xml = |name: &str| format!("<?xml version='1.0' encoding = '{name}' ?><a>");
        let with = |name: &str, end: &[u8]| read(&[xml(name).as_bytes(), end].concat(), None);
        assert_eq!(with("ISO-8859-1", b"\xe4"), (xml("ISO-8859-1") + "ä").as_bytes());
        for name in ["UTF-8", "UTF-16", "klingon"] {
            assert_eq!(with(name, "ä".as_bytes()), (xml(name) + "ä").as_bytes());
        }
        assert_eq!(read(b"<?", None), b"<?");
    }
}
