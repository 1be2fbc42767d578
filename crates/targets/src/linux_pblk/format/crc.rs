//! The checksum of Linux's pblk: `crc32_le` begun with all ones and not inverted at the end.
//!
//! Deliberately not here: what it covers; each structure says that.

/// The checksum of some bytes, as it lies in the field. It is the complement of what zlib calls CRC-32.
pub fn of(bytes: &[u8]) -> u32 {
    !ocssd_ftl::checksum(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_sum_without_the_last_inversion() {
        // CRC-32/JAMCRC of the catalogue of CRCs (reveng): check value of "123456789".
        assert_eq!(super::of(b"123456789"), 0x340B_C6D9);
        assert_eq!(super::of(b""), u32::MAX);
    }
}
