//! Identify Namespace of the set (CNS 05h, CSI 31h), 4096 bytes. Its Identify Controller (CNS 06h) is all zeroes.
//!
//! Source: this project; the first fields lie where the Key Value Command Set has them.

use crate::wire::{ShortInput, array_at, fixed, put, u32_at, u64_at};

/// What a namespace of pages says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageNamespace {
    /// NSZE, byte 0: bytes of pages that fit.
    pub nsze: u64,
    /// NUSE, byte 16: bytes in use, or NSZE if that is not counted.
    pub nuse: u64,
    /// NSATTR, byte 43. Bit 0: write protected.
    pub nsattr: u8,
    /// NGUID, byte 48.
    pub nguid: [u8; 16],
    /// EUI64, byte 64.
    pub eui64: [u8; 8],
    /// Byte 72: pages that fit.
    pub pages_max: u64,
    /// Byte 80: bytes of a flush's buffer.
    pub flush_bytes_max: u32,
    /// Byte 84: rows of a page table.
    pub flush_pages_max: u32,
    /// Byte 88: bytes of a page.
    pub page_bytes_max: u32,
    /// Byte 92: pages begin in the buffer at multiples of so many bytes.
    pub page_align_bytes: u32,
    /// Byte 96: sessions open at once.
    pub sessions_max: u32,
    /// Byte 100: stages open at once, of all hosts.
    pub stages_max: u32,
    /// Byte 104: bytes of a stage.
    pub stage_bytes_max: u32,
}

impl PageNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the Identify Namespace of pages", bytes)?;
        Ok(Self {
            nsze: u64_at(bytes, 0),
            nuse: u64_at(bytes, 16),
            nsattr: bytes[43],
            nguid: array_at(bytes, 48),
            eui64: array_at(bytes, 64),
            pages_max: u64_at(bytes, 72),
            flush_bytes_max: u32_at(bytes, 80),
            flush_pages_max: u32_at(bytes, 84),
            page_bytes_max: u32_at(bytes, 88),
            page_align_bytes: u32_at(bytes, 92),
            sessions_max: u32_at(bytes, 96),
            stages_max: u32_at(bytes, 100),
            stage_bytes_max: u32_at(bytes, 104),
        })
    }

    /// The 4096 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (at, value) in [(0, self.nsze), (16, self.nuse), (72, self.pages_max)] {
            put(&mut bytes, at, &value.to_le_bytes());
        }
        bytes[43] = self.nsattr;
        put(&mut bytes, 48, &self.nguid);
        put(&mut bytes, 64, &self.eui64);
        let limits = [
            self.flush_bytes_max,
            self.flush_pages_max,
            self.page_bytes_max,
            self.page_align_bytes,
            self.sessions_max,
            self.stages_max,
            self.stage_bytes_max,
        ];
        for (place, limit) in limits.iter().enumerate() {
            put(&mut bytes, 80 + 4 * place, &limit.to_le_bytes());
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
        let places = [0, 16, 43, 48, 64, 72, 80, 84, 88, 92, 96, 100, 104];
        for (place, value) in places.into_iter().zip(1..) {
            bytes[place] = value;
        }
        let found = PageNamespace::decode(&bytes).expect("4096 bytes");
        assert_eq!((found.nsze, found.nuse, found.nsattr, found.pages_max), (1, 2, 3, 6));
        assert_eq!((found.nguid[0], found.eui64[0]), (4, 5));
        let flush = (found.flush_bytes_max, found.flush_pages_max, found.page_bytes_max);
        assert_eq!((flush, found.page_align_bytes), ((7, 8, 9), 10));
        assert_eq!((found.sessions_max, found.stages_max, found.stage_bytes_max), (11, 12, 13));
        assert_eq!(found.encode(), bytes);
        assert!(PageNamespace::decode(&bytes[1..]).is_err());
    }
}
