//! PURE: the beginning of a packed body, unpacked as far as it goes.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// At most `most` bytes of what `packed` begins with, and whether that is all there is of it. What is
/// packed in a way that cannot be undone here is nothing.
pub(super) fn unpack<'p>(
    coding: Option<&str>,
    packed: &'p [u8],
    most: usize,
) -> (Cow<'p, [u8]>, bool) {
    let coding = coding.unwrap_or("identity").trim().to_ascii_lowercase();
    match coding.as_str() {
        "identity" | "" => {
            (Cow::Borrowed(packed.get(..most).unwrap_or(packed)), packed.len() <= most)
        }
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(packed), most),
        // Meant is zlib's form; some send the bare one.
        "deflate" => match read(ZlibDecoder::new(packed), most) {
            (nothing, false) if nothing.is_empty() => read(DeflateDecoder::new(packed), most),
            unpacked => unpacked,
        },
        _ => (Cow::Borrowed(&[]), false),
    }
}

fn read<'p>(mut packed: impl Read, most: usize) -> (Cow<'p, [u8]>, bool) {
    let mut unpacked = Vec::new();
    let mut piece = [0; 8 * 1024];
    loop {
        match packed.read(&mut piece) {
            Ok(0) => return (unpacked.into(), true),
            Ok(read) => {
                let room = most - unpacked.len();
                let read = piece.get(..read.min(room)).unwrap_or_default();
                unpacked.extend_from_slice(read);
                if unpacked.len() == most {
                    return (unpacked.into(), false);
                }
            }
            // It was cut, or is broken.
            Err(_) => return (unpacked.into(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"{\"error\": \"slow down, slow down, slow down\"}";

    #[test]
    fn each_packing_is_undone() {
        let level = Compression::default();
        let mut gzip = GzEncoder::new(Vec::new(), level);
        gzip.write_all(TEXT).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(TEXT).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), level);
        bare.write_all(TEXT).unwrap();
        let whole = (Cow::Borrowed(TEXT), true);
        assert_eq!(unpack(Some("GZIP"), &gzip.finish().unwrap(), 100), whole);
        assert_eq!(unpack(Some("deflate"), &zlib.finish().unwrap(), 100), whole);
        assert_eq!(unpack(Some("deflate"), &bare.finish().unwrap(), 100), whole);
        assert_eq!(unpack(None, TEXT, 100), whole);
        assert_eq!(unpack(Some("br"), TEXT, 100), (Cow::Borrowed(&[][..]), false));
    }

    #[test]
    fn no_more_is_unpacked_than_is_read() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&vec![b'x'; 1_000_000]).unwrap();
        let packed = gzip.finish().unwrap();
        let (unpacked, whole) = unpack(Some("gzip"), &packed, 1_000);
        assert_eq!((unpacked.len(), whole), (1_000, false));
        let (unpacked, whole) = unpack(Some("gzip"), &packed[..packed.len() / 2], 2_000_000);
        assert!(!unpacked.is_empty() && !whole);
        assert_eq!(unpack(None, TEXT, 5), (Cow::Borrowed(&TEXT[..5]), false));
    }
}
