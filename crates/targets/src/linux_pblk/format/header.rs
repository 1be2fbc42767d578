//! What smeta and emeta begin with: the header (`struct line_header`, 32 bytes), and the checksum of all behind it.
//!
//! Deliberately not here: checking the header's own checksum, which Linux writes and never looks at: what follows has one
//! that does not cover the header, so a header is judged by its identifier and version.

use super::crc;
use super::error::FormatError;

/// What every structure begins with: `PBLK_MAGIC`.
pub const PBLK_MAGIC: u32 = 0x7062_6C6B;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;
/// The major version of both structures: `SMETA_VERSION_MAJOR`, `EMETA_VERSION_MAJOR`.
const VERSION_MAJOR: u8 = 0;
/// The type of a line of data: `PBLK_LINETYPE_DATA`. Lines of the other type, a log, are never written.
const TYPE_DATA: u16 = 2;
/// What the second checksum covers begins behind the header and that checksum.
pub const COVERED: usize = HEADER_BYTES + 4;
/// No line: `PBLK_LINE_EMPTY`.
const LINE_EMPTY: u32 = u32::MAX;

/// The name of an instance: drawn when it is made, as it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid(pub [u8; 16]);

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The instance.
    pub uuid: Uuid,
    /// The minor version: 1 of smeta, 2 of emeta.
    pub version_minor: u8,
    /// The line.
    pub id: u32,
}

impl Header {
    /// Writes it, checksum included.
    pub fn encode(&self, out: &mut [u8]) {
        assert!(out.len() >= HEADER_BYTES, "a header does not fit {} bytes", out.len());
        out[4..8].copy_from_slice(&PBLK_MAGIC.to_le_bytes());
        out[8..24].copy_from_slice(&self.uuid.0);
        out[24..26].copy_from_slice(&TYPE_DATA.to_le_bytes());
        out[26] = VERSION_MAJOR;
        out[27] = self.version_minor;
        out[28..32].copy_from_slice(&self.id.to_le_bytes());
        let sum = crc::of(&out[4..HEADER_BYTES]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is too short, not of pblk, or of another major version.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let short = FormatError::Short { expected: HEADER_BYTES, found: bytes.len() };
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(short)?;
        let found = word(bytes, 4);
        if found != PBLK_MAGIC {
            return Err(FormatError::Identifier { found });
        }
        if bytes[26] != VERSION_MAJOR {
            return Err(FormatError::Version { major: bytes[26] });
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[8..24]);
        Ok(Self { uuid: Uuid(uuid), version_minor: bytes[27], id: word(bytes, 28) })
    }
}

/// Sets the checksum of all behind the header, which everything else must be written before.
pub fn put_crc(out: &mut [u8]) {
    assert!(out.len() > COVERED, "{} bytes have nothing to be covered", out.len());
    let sum = crc::of(&out[COVERED..]);
    out[HEADER_BYTES..COVERED].copy_from_slice(&sum.to_le_bytes());
}

/// Takes the bytes of a structure, `expected` of them, and its header.
///
/// # Errors
/// As [`FormatError`] says; the checksum is looked at first, as in Linux.
pub fn check_crc(bytes: &[u8], expected: usize) -> Result<(&[u8], Header), FormatError> {
    let short = FormatError::Short { expected, found: bytes.len() };
    let bytes = bytes.get(..expected).ok_or(short)?;
    let (expected, found) = (crc::of(&bytes[COVERED..]), word(bytes, HEADER_BYTES));
    if expected != found {
        return Err(FormatError::Crc { expected, found });
    }
    let header = Header::decode(bytes)?;
    Ok((bytes, header))
}

/// The number of a line in a field, or that of none.
pub fn line_bytes(line: Option<u32>) -> [u8; 4] {
    line.unwrap_or(LINE_EMPTY).to_le_bytes()
}

/// The line a field names.
pub fn line_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(word(bytes, at)).filter(|&id| id != LINE_EMPTY)
}

/// The 4-byte number at a place.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes: &[u8; 4] = bytes[at..].first_chunk().expect("the length was looked at before");
    u32::from_le_bytes(*bytes)
}

/// The 8-byte number at a place.
pub fn long(bytes: &[u8], at: usize) -> u64 {
    let bytes: &[u8; 8] = bytes[at..].first_chunk().expect("the length was looked at before");
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_lies_where_linux_has_it() {
        let uuid = Uuid([0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xAF]);
        let header = Header { uuid, version_minor: 2, id: 0x0102_0304 };
        let mut bytes = [0xEE; 40];
        header.encode(&mut bytes);
        assert_eq!(&bytes[4..8], b"klbp", "the identifier, its lowest byte first");
        assert_eq!((bytes[8], bytes[23]), (0xA0, 0xAF));
        assert_eq!(bytes[24..32], [2, 0, 0, 2, 4, 3, 2, 1]);
        assert_eq!(bytes[32..], [0xEE; 8], "nothing behind it is touched");
        assert_eq!(word(&bytes, 0), crc::of(&bytes[4..32]));
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn what_is_no_header_is_named() {
        let mut bytes = [0; HEADER_BYTES];
        Header { uuid: Uuid([0; 16]), version_minor: 1, id: 0 }.encode(&mut bytes);
        assert_eq!(
            Header::decode(&bytes[..31]),
            Err(FormatError::Short { expected: HEADER_BYTES, found: 31 })
        );
        let mut other = bytes;
        other[26] = 1;
        assert_eq!(Header::decode(&other), Err(FormatError::Version { major: 1 }));
        other[4] ^= 1;
        assert_eq!(Header::decode(&other), Err(FormatError::Identifier { found: PBLK_MAGIC ^ 1 }));
        for (error, says) in [
            (FormatError::Short { expected: 32, found: 31 }, "31 bytes were found"),
            (FormatError::Crc { expected: 1, found: 2 }, "should be 00000001h, but is 00000002h"),
            (FormatError::Identifier { found: 0 }, "70626c6bh"),
            (FormatError::Version { major: 9 }, "but 9 was found"),
        ] {
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
