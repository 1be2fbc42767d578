//! Numbers of 32 bits as indices.

/// A 32-bit number as an index: every machine this project runs on has indices of at least 32 bits.
///
/// # Panics
/// On a machine of 16 bits.
#[must_use]
#[inline]
pub fn usize_of(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}
