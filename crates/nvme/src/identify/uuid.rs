//! What a drive or a namespace is told from all others by: a UUID (RFC 9562), and the older names that are made of it.
//!
//! Linux takes two namespaces for one, and ignores the second, if any of UUID, NGUID and EUI64 are equal; so all of them come
//! from one random number. Deliberately not here: where that is from.

use std::fmt;

/// A UUID in the order of bytes in which it is written and sent; all zeroes for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// A UUID of version 4 from random bytes (RFC 9562 section 5.4).
    #[must_use]
    pub const fn of_random(bytes: [u8; 16]) -> Self {
        Self(bytes).with_version(4)
    }

    /// A UUID of version 8 (made by a rule of its own, RFC 9562 section 5.8) for a drive that was given no random one: its seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let (high, low) = (seed >> 48, seed & 0xFFFF_FFFF_FFFF);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(high << 16).to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Self(bytes).with_version(8)
    }

    /// A UUID of version 8 for the `number`th part of what this one names, counted from 1.
    #[must_use]
    pub fn of_part(self, number: u32) -> Self {
        let mut bytes = self.0;
        for (byte, other) in bytes[12..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= other;
        }
        Self(bytes).with_version(8)
    }

    const fn with_version(mut self, version: u8) -> Self {
        self.0[6] = self.0[6] & 0x0F | version << 4;
        self.0[8] = self.0[8] & 0x3F | 0x80;
        self
    }

    /// True if it names nothing.
    #[must_use]
    pub fn is_nil(self) -> bool {
        self.0 == [0; 16]
    }

    /// The last 8 bytes, as an EUI-64 that no manufacturer gives out (IEEE: bit 1 of the first byte is set, bit 0 clear).
    #[must_use]
    pub fn eui64(self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        [a & !1 | 2, b, c, d, e, f, g, h]
    }

    /// The last 8 bytes in hexadecimal: a serial number of 16 digits.
    #[must_use]
    pub fn serial(self) -> String {
        self.0[8..].iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// The qualified name of a subsystem that has this UUID (NVMe base 1.4 section 7.9).
    #[must_use]
    pub fn nqn(self) -> String {
        format!("nqn.2014-08.org.nvmexpress:uuid:{self}")
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_become_version_4_and_a_seed_version_8() {
        let all = Uuid::of_random([0xFF; 16]);
        assert_eq!(all.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let seed = Uuid::of_seed(0x0123_4567_89AB_CDEF);
        assert_eq!(seed.nqn(), "nqn.2014-08.org.nvmexpress:uuid:00000000-0123-8000-8000-456789abcdef");
        assert!(Uuid::default().is_nil() && !Uuid::of_seed(0).is_nil());
    }

    #[test]
    fn older_names_are_its_last_bytes() {
        let uuid = Uuid(*b"\x00\x01\x02\x03\x04\x05\x46\x07\x89\x09\x0A\x0B\x0C\x0D\x0E\x0F");
        assert_eq!(uuid.eui64(), [0x8A, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(uuid.serial(), "89090A0B0C0D0E0F");
    }

    #[test]
    fn parts_differ_from_each_other_and_from_the_whole() {
        let whole = Uuid::of_random([0x5A; 16]);
        let mut found: Vec<Uuid> = (1..=256).map(|number| whole.of_part(number)).chain([whole]).collect();
        let mut euis: Vec<[u8; 8]> = found.iter().map(|uuid| uuid.eui64()).collect();
        found.sort();
        found.dedup();
        euis.sort_unstable();
        euis.dedup();
        assert_eq!((found.len(), euis.len()), (257, 257));
    }
}
