//! What is stored under a key: a head that says what it is and when it ends, and the value's bytes.
//!
//! Ten bytes: a mark, the kind, and the milliseconds since 1970 at which the value ends (signed, little-endian; 0 for never). So
//! expiry survives a restart without anything beside the values. Deliberately not here: who removes what has ended.

/// First byte of what this front stores (chosen: no text begins with it in UTF-8).
const MARK: u8 = 0xC5;

/// Kind of a plain string, the only one there is.
const STRING: u8 = 1;

/// Bytes before the value.
pub const HEAD_BYTES: usize = 10;

/// When a value ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// At this time, in milliseconds since 1970.
    At(i64),
}

impl Expiry {
    /// It has ended at `now_ms`, milliseconds since 1970.
    #[must_use]
    pub const fn is_over(self, now_ms: i64) -> bool {
        matches!(self, Self::At(at) if at <= now_ms)
    }
}

/// The head of a value that ends then, with room for `bytes` more.
#[must_use]
pub fn begin(expiry: Expiry, bytes: usize) -> Vec<u8> {
    let mut stored = Vec::with_capacity(HEAD_BYTES + bytes);
    stored.extend_from_slice(&[MARK, STRING]);
    // A time of zero ended long ago, and so did the millisecond after it.
    let at = match expiry {
        Expiry::Never => 0,
        Expiry::At(0) => 1,
        Expiry::At(at) => at,
    };
    stored.extend_from_slice(&at.to_le_bytes());
    stored
}

/// When what is stored so ends; `None` if this front did not store it.
#[must_use]
pub fn expiry(stored: &[u8]) -> Option<Expiry> {
    let (head, _) = stored.split_first_chunk::<HEAD_BYTES>()?;
    let [MARK, STRING, time @ ..] = head else { return None };
    let at = i64::from_le_bytes(*time);
    Some(if at == 0 { Expiry::Never } else { Expiry::At(at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_others_are_not() {
        for at in [Expiry::Never, Expiry::At(1), Expiry::At(-5), Expiry::At(i64::MAX)] {
            let mut stored = begin(at, 3);
            assert_eq!(stored.len(), HEAD_BYTES);
            stored.extend_from_slice(b"abc");
            assert_eq!(expiry(&stored), Some(at));
            assert_eq!(expiry(&stored[..9]), None);
        }
        assert_eq!(expiry(&begin(Expiry::At(0), 0)), Some(Expiry::At(1)));
        assert_eq!(expiry(b"anything that somebody else stored"), None);
    }

    #[test]
    fn a_value_is_over_from_its_time_on() {
        assert!(Expiry::At(5).is_over(5) && !Expiry::At(6).is_over(5) && !Expiry::Never.is_over(i64::MAX));
    }
}
