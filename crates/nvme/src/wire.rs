//! Little-endian fields at fixed offsets, and the error for input that ends too early.
//!
//! Owned by: every `encode` and `decode` of this crate. Offsets are byte offsets from the start of the structure, as
//! in the specifications' tables. Deliberately not here: any knowledge of a structure.

use std::fmt;

/// The input ends before the structure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortInput {
    /// The structure that was being decoded.
    pub structure: &'static str,
    /// Bytes the structure needs.
    pub expected_bytes: usize,
    /// Bytes that were given.
    pub found_bytes: usize,
}

impl fmt::Display for ShortInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { structure, expected_bytes, found_bytes } = self;
        write!(
            f,
            "{structure} needs {expected_bytes} bytes, but the input ends after {found_bytes}; \
             transfer the whole structure"
        )
    }
}

impl std::error::Error for ShortInput {}

/// The first `N` bytes of `bytes`.
///
/// # Errors
/// [`ShortInput`] if there are fewer.
pub(crate) fn fixed<'a, const N: usize>(
    structure: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8; N], ShortInput> {
    bytes.first_chunk().ok_or(ShortInput { structure, expected_bytes: N, found_bytes: bytes.len() })
}

/// The `N` bytes at `at`. The caller has checked the length.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the caller checked the length of the whole structure")
}

/// The 16-bit field at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// The 32-bit field at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// The 64-bit field at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The 128-bit field at `at`.
pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array_at(bytes, at))
}

/// Places `field` (usually `value.to_le_bytes()`) at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Bit `index` of `value`.
pub(crate) fn bit(value: u32, index: u32) -> bool {
    value >> index & 1 == 1
}

/// `flag` as bit `index` of a dword.
pub(crate) fn flag(flag: bool, index: u32) -> u32 {
    u32::from(flag) << index
}

/// Byte `index` of `value`, 0 is the lowest.
pub(crate) fn byte(value: u32, index: usize) -> u8 {
    value.to_le_bytes()[index]
}

/// Bits 15:0 of `value`.
pub(crate) fn low_half(value: u32) -> u16 {
    u16_at(&value.to_le_bytes(), 0)
}

/// Bits 31:16 of `value`.
pub(crate) fn high_half(value: u32) -> u16 {
    u16_at(&value.to_le_bytes(), 2)
}

/// A 64-bit value as its low and high dword.
pub(crate) fn split(value: u64) -> (u32, u32) {
    let bytes = value.to_le_bytes();
    (u32_at(&bytes, 0), u32_at(&bytes, 4))
}

/// The 64-bit value of a low and a high dword.
pub(crate) fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_at_their_offset() {
        let bytes = [0xFF, 0x34, 0x12, 0, 0, 0, 0, 0, 0xAA, 0, 0, 0, 0, 0, 0, 0, 0xBB];
        assert_eq!(u16_at(&bytes, 1), 0x1234);
        assert_eq!(u32_at(&bytes, 1), 0x1234);
        assert_eq!(u64_at(&bytes, 1), 0xAA00_0000_0000_1234);
        assert_eq!(u128_at(&bytes, 1), 0xBB00_0000_0000_0000_AA00_0000_0000_1234);
    }

    #[test]
    fn dwords_split_and_join() {
        assert_eq!(split(0x1122_3344_5566_7788), (0x5566_7788, 0x1122_3344));
        assert_eq!(join(0x5566_7788, 0x1122_3344), 0x1122_3344_5566_7788);
        assert_eq!((low_half(0x1122_3344), high_half(0x1122_3344)), (0x3344, 0x1122));
        assert_eq!(byte(0x1122_3344, 3), 0x11);
    }

    #[test]
    fn short_input_says_expected_found_and_where() {
        let error = fixed::<4>("a thing", &[1, 2, 3]).expect_err("three bytes are not four");
        let text = error.to_string();
        assert_eq!(text, "a thing needs 4 bytes, but the input ends after 3; transfer the whole structure");
    }
}
