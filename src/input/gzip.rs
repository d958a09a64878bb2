//! What is packed is unpacked: gzip, told by its first two bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The text of `input`, whether it is packed or not.
///
/// # Errors
///
/// Where it cannot be read. Packed bytes that are damaged are told when they are come to.
pub fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    // A pipe may give its bytes one by one.
    let mut begin = Vec::new();
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    let is_packed = begin == MAGIC;
    let whole = Cursor::new(begin).chain(input);
    Ok(match is_packed {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole))),
        false => Box::new(whole),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        // One byte at a time, as a slow pipe gives them.
        unpacked(BufReader::with_capacity(1, bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn packed_or_not_the_text_is_the_same() {
        for whole in ["", "a", "a,b\n1,2\n"] {
            assert_eq!(text(whole.as_bytes()).unwrap(), whole);
            assert_eq!(text(&packed(whole)).unwrap(), whole);
        }
        assert_eq!(text(&[packed("a\n"), packed("b\n")].concat()).unwrap(), "a\nb\n");
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let whole = packed("a,b\n1,2\n");
        assert!(text(&whole[..whole.len() - 6]).is_err());
    }
}
