//! A kept answer, as it lies on disk: deflated where that makes it smaller.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, named_params};

use super::queries;
use super::usage::stored;
use crate::store::{KeptBody, Settlement};

/// Shorter ones do not get smaller.
const WORTH_PACKING: usize = 128;

/// Keeps the answer to a call of so many attempts, where it is to be kept.
pub(super) fn keep(
    conn: &Connection,
    settlement: &Settlement,
    attempts: usize,
) -> rusqlite::Result<()> {
    let Some(body) = &settlement.body else { return Ok(()) };
    let packed = pack(&body.bytes);
    let mut keep = conn.prepare_cached(queries::BODY_KEEP)?;
    keep.execute(named_params! {
        ":call": settlement.call.0, ":bytes": packed.as_ref().unwrap_or(&body.bytes),
        ":packed": packed.is_some(), ":cut": body.cut, ":attempts": stored(attempts as u64),
    })?;
    Ok(())
}

/// A row of bytes, whether they are packed, whether there was more.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<KeptBody> {
    let bytes: Vec<u8> = row.get(0)?;
    let bytes = if row.get(1)? { unpack(&bytes)? } else { bytes };
    Ok(KeptBody { bytes, cut: row.get(2)? })
}

fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < WORTH_PACKING {
        return None;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // A vector takes whatever is written to it.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).ok()?;
    (packed.len() < bytes.len()).then_some(packed)
}

fn unpack(packed: &[u8]) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let unpacked = DeflateDecoder::new(packed).read_to_end(&mut bytes);
    unpacked.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(error))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_whole() {
        let text = "{\"stock\": 12, \"price\": \"9.99\"} ".repeat(50).into_bytes();
        let packed = pack(&text).unwrap();
        assert!(packed.len() * 5 < text.len(), "{} of {}", packed.len(), text.len());
        assert_eq!(unpack(&packed).unwrap(), text);
        assert!(unpack(b"no such stream").is_err());
    }

    #[test]
    fn what_gets_no_smaller_stays_as_it_is() {
        assert_eq!(pack(b"short"), None);
        let noise: Vec<u8> =
            (0..4096_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        assert_eq!(pack(&noise), None);
    }
}
