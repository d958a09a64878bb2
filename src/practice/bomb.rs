//! A body that is small on the way and unpacks to as much as one likes.

use axum::body::Bytes as Piece;

/// What a period of the packed body unpacks to: eight repetitions of 258 bytes.
const UNPACKED: u64 = 8 * 258;

/// Periods in a piece.
const PERIODS: usize = 1260;

/// A gzip header that says nothing.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The fixed code (RFC 1951 section 3.2.6) of "the last byte, 258 times more": length 258, distance 1.
/// Thirteen bits, so that eight of them are whole bytes.
const REPEAT: &str = "1100010100000";

/// The begin of a last block with fixed codes (`1`, `01` from its low bit on), the literal `x`, and one
/// repetition, which fills the third byte.
const BEGIN: &str = "11010101000";

/// The pieces of a gzip body of one endless letter, `bytes` long once unpacked, give or take a period.
/// Its checksum is left out: nobody should come so far.
pub(super) fn pieces(bytes: u64) -> impl Iterator<Item = Piece> + Send {
    let period = packed(&REPEAT.repeat(8));
    let piece = Piece::from(period.repeat(PERIODS));
    let all = bytes / UNPACKED;
    let whole = all / PERIODS as u64;
    let rest = usize::try_from(all % PERIODS as u64).unwrap_or(0);
    let begin = [&HEADER[..], &packed(&format!("{BEGIN}{REPEAT}"))].concat();
    // The end of the block is seven bits of 0.
    let end = [&period.repeat(rest)[..], &[0]].concat();
    std::iter::once(Piece::from(begin))
        .chain((0..whole).map(move |_| piece.clone()))
        .chain(std::iter::once(Piece::from(end)))
}

/// Bits in the order of the stream, which begins with each byte's lowest.
fn packed(bits: &str) -> Vec<u8> {
    let bits: Vec<u8> = bits.bytes().map(|bit| u8::from(bit == b'1')).collect();
    bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | bit)).collect()
}
