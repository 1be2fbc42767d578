//! What is stored under a key: a head that says what it is and when it ends, and the value's bytes.
//!
//! Ten bytes: a mark, the kind, and the milliseconds since 1970 at which the value ends (signed, little-endian; 0 for never). So
//! expiry survives a restart without anything beside the values. Deliberately not here: who removes what has ended.

use crate::shared_bytes::SharedBytes;

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

/// What is stored: a value and when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// When it ends.
    pub expiry: Expiry,
    /// Its bytes, without the head.
    pub value: SharedBytes,
}

impl Stored {
    /// Bytes it takes, head and value.
    #[must_use]
    pub fn len(&self) -> usize {
        HEAD_BYTES + self.value.len()
    }

    /// Writes its bytes from byte `from` on to `into`, as many as fit there.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn copy_to(&self, from: usize, into: &mut [u8]) {
        let (head, count) = (self.head(), into.len());
        let of_head = HEAD_BYTES.saturating_sub(from).min(count);
        let (first, rest) = into.split_at_mut(of_head);
        first.copy_from_slice(&head[HEAD_BYTES.min(from)..][..of_head]);
        rest.copy_from_slice(&self.value[from.saturating_sub(HEAD_BYTES)..][..count - of_head]);
    }

    /// All its bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(0, &mut bytes);
        bytes
    }

    fn head(&self) -> [u8; HEAD_BYTES] {
        // A time of zero ended long ago, and so did the millisecond after it.
        let at = match self.expiry {
            Expiry::Never => 0,
            Expiry::At(0) => 1,
            Expiry::At(at) => at,
        };
        let mut head = [MARK, STRING, 0, 0, 0, 0, 0, 0, 0, 0];
        head[2..].copy_from_slice(&at.to_le_bytes());
        head
    }
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
            let stored = Stored { expiry: at, value: b"abc"[..].into() };
            assert_eq!(stored.len(), HEAD_BYTES + 3);
            let bytes = stored.to_vec();
            assert_eq!((expiry(&bytes), &bytes[HEAD_BYTES..]), (Some(at), &b"abc"[..]));
            for from in 0..=bytes.len() {
                for end in from..=bytes.len() {
                    let mut part = vec![0; end - from];
                    stored.copy_to(from, &mut part);
                    assert_eq!(part, bytes[from..end], "{from}..{end}");
                }
            }
            assert_eq!(expiry(&bytes[..9]), None);
        }
        let at_zero = Stored { expiry: Expiry::At(0), value: Vec::new().into() };
        assert_eq!(expiry(&at_zero.to_vec()), Some(Expiry::At(1)));
        assert_eq!(expiry(b"anything that somebody else stored"), None);
    }

    #[test]
    fn a_value_is_over_from_its_time_on() {
        assert!(Expiry::At(5).is_over(5) && !Expiry::At(6).is_over(5) && !Expiry::Never.is_over(i64::MAX));
    }
}
