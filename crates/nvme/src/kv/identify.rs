//! Identify Namespace of the Key Value Command Set (CNS 05h, CSI 01h), 4096 bytes.
//!
//! Source: KV command set 1.0 section 4.1.5.1. Its Identify Controller (CNS 06h) says nothing: it is all zeroes.

use crate::wire::{ShortInput, array_at, fixed, put, u16_at, u32_at, u64_at};

/// Where the formats begin.
const FORMATS_AT: usize = 72;
/// How many there are.
const FORMATS: usize = 16;

/// What a namespace of keys and values says about itself. Fields that say nothing about these drives are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvNamespace {
    /// NSZE: bytes of keys and values that fit.
    pub nsze: u64,
    /// NUSE: bytes in use.
    pub nuse: u64,
    /// NSFEAT.
    pub nsfeat: u8,
    /// NKVF, 0-based on the wire: how many formats there are, 1 to 16.
    pub format_count: u8,
    /// NMIC. Bit 0: several controllers may have it.
    pub nmic: u8,
    /// NOVG: the best size of values is a multiple of so many bytes; 0 says nothing.
    pub novg: u32,
    /// NSATTR. Bit 0: write protected.
    pub nsattr: u8,
    /// NGUID.
    pub nguid: [u8; 16],
    /// EUI64.
    pub eui64: [u8; 8],
    /// KVF: the formats.
    pub formats: [KeyValueFormat; FORMATS],
}

/// What keys and values may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyValueFormat {
    /// KML: most bytes of a key.
    pub key_bytes_max: u16,
    /// FOPT.
    pub options: u8,
    /// VML: most bytes of a value.
    pub value_bytes_max: u32,
    /// MNK: most keys; 0 is no limit.
    pub keys_max: u32,
}

impl KeyValueFormat {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    fn decode(bytes: &[u8]) -> Self {
        Self {
            key_bytes_max: u16_at(bytes, 0),
            options: bytes[3],
            value_bytes_max: u32_at(bytes, 4),
            keys_max: u32_at(bytes, 8),
        }
    }
}

const _: () = assert!(FORMATS_AT + FORMATS * KeyValueFormat::BYTES < 3840, "the vendor's bytes are behind");

impl KvNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the key-value Identify Namespace", bytes)?;
        let mut formats = [KeyValueFormat::default(); FORMATS];
        let places = bytes[FORMATS_AT..].chunks_exact(KeyValueFormat::BYTES);
        formats.iter_mut().zip(places).for_each(|(format, place)| *format = KeyValueFormat::decode(place));
        Ok(Self {
            nsze: u64_at(bytes, 0),
            nuse: u64_at(bytes, 16),
            nsfeat: bytes[24],
            // Of more than there are places, as many as there are.
            format_count: bytes[25].min(15) + 1,
            nmic: bytes[26],
            novg: u32_at(bytes, 32),
            nsattr: bytes[43],
            nguid: array_at(bytes, 48),
            eui64: array_at(bytes, 64),
            formats,
        })
    }

    /// The 4096 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.nsze.to_le_bytes());
        put(&mut bytes, 16, &self.nuse.to_le_bytes());
        (bytes[24], bytes[25], bytes[26]) = (self.nsfeat, self.format_count.saturating_sub(1), self.nmic);
        put(&mut bytes, 32, &self.novg.to_le_bytes());
        bytes[43] = self.nsattr;
        put(&mut bytes, 48, &self.nguid);
        put(&mut bytes, 64, &self.eui64);
        for (place, format) in self.formats.iter().enumerate() {
            let at = FORMATS_AT + place * KeyValueFormat::BYTES;
            put(&mut bytes, at, &format.key_bytes_max.to_le_bytes());
            bytes[at + 3] = format.options;
            put(&mut bytes, at + 4, &format.value_bytes_max.to_le_bytes());
            put(&mut bytes, at + 8, &format.keys_max.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 4096];
        (bytes[0], bytes[16], bytes[24], bytes[25], bytes[26]) = (1, 2, 3, 1, 4);
        (bytes[32], bytes[43], bytes[48], bytes[64]) = (5, 6, 7, 8);
        bytes[88..100].copy_from_slice(&[16, 0, 0, 9, 0, 0, 32, 0, 10, 0, 0, 0]);
        let namespace = KvNamespace::decode(&bytes).expect("4096 bytes");
        assert_eq!((namespace.nsze, namespace.nuse, namespace.nsfeat), (1, 2, 3));
        assert_eq!((namespace.format_count, namespace.nmic, namespace.novg), (2, 4, 5));
        assert_eq!((namespace.nsattr, namespace.nguid[0], namespace.eui64[0]), (6, 7, 8));
        let format = KeyValueFormat { key_bytes_max: 16, options: 9, value_bytes_max: 2 << 20, keys_max: 10 };
        assert_eq!(namespace.formats[1], format);
        assert_eq!(namespace.encode(), bytes);
        assert!(KvNamespace::decode(&bytes[1..]).is_err());
    }
}
