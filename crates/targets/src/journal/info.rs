//! What a checkpoint says of its instance: a version, numbers of 32 bits, then numbers of 64, little-endian, in a fixed number of
//! bytes of which the last may be unused.
//!
//! Deliberately not here: what the numbers mean (each target's own).

/// The numbers as bytes.
pub fn encode_info<const BYTES: usize, const SMALL: usize, const LARGE: usize>(
    version: u32,
    small: [u32; SMALL],
    large: [u64; LARGE],
) -> [u8; BYTES] {
    const { assert!(4 + 4 * SMALL + 8 * LARGE <= BYTES, "the numbers take more bytes than there are") }
    let mut bytes = [0; BYTES];
    bytes[..4].copy_from_slice(&version.to_le_bytes());
    let (front, back) = bytes[4..].split_at_mut(4 * SMALL);
    for (place, number) in front.chunks_exact_mut(4).zip(small) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    for (place, number) in back.chunks_exact_mut(8).zip(large) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The numbers in these bytes.
///
/// # Errors
/// A sentence, if they are of another length or version.
pub fn decode_info<const BYTES: usize, const SMALL: usize, const LARGE: usize>(
    bytes: &[u8],
    version: u32,
    kind: &str,
) -> Result<([u32; SMALL], [u64; LARGE]), String> {
    const { assert!(4 + 4 * SMALL + 8 * LARGE <= BYTES, "the numbers take more bytes than there are") }
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| {
        format!("{BYTES} bytes about the instance were expected, but {} were found", bytes.len())
    })?;
    let small = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().expect("four bytes"));
    if small(0) != version {
        return Err(format!(
            "{kind} of version {version} was expected, but it has {}: use a newer program",
            small(0)
        ));
    }
    let large = |at: usize| {
        let at = 4 + 4 * SMALL + 8 * at;
        u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"))
    };
    Ok((std::array::from_fn(|at| small(1 + at)), std::array::from_fn(large)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_what_is_none_of_them_is_refused_in_words() {
        let bytes = encode_info::<48, 3, 3>(7, [1, 2, 3], [4, 1 << 40, 6]);
        let decode = |bytes: &[u8]| decode_info::<48, 3, 3>(bytes, 7, "an instance");
        assert_eq!(decode(&bytes), Ok(([1, 2, 3], [4, 1 << 40, 6])));
        assert_eq!((&bytes[40..], bytes[0]), (&[0; 8][..], 7));
        assert!(decode(&bytes[1..]).is_err_and(|error| error.contains("48 bytes")));
        let newer = encode_info::<48, 3, 3>(8, [1, 2, 3], [4, 5, 6]);
        assert!(decode(&newer).is_err_and(|error| error.contains("an instance of version 7")));
    }
}
