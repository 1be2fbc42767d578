//! Keys: short ones in the request, as on the wire, long ones in a buffer; and lists of keys in the specification's form.

use super::super::Piece;
use crate::buffers::{BufId, Buffers};

/// Most bytes of a key in a request: what a command carries (KV command set 1.0, key in CDW2, 3, 14 and 15).
pub const KEY_INLINE_MAX: usize = 16;

/// Most bytes of any key: SNIA's API has up to 255.
pub const KEY_BYTES_MAX: u32 = 255;

/// A key of a request: any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A short one.
    Inline {
        /// How many of the bytes are the key.
        length: u8,
        /// The key, and zeroes behind it.
        bytes: [u8; KEY_INLINE_MAX],
    },
    /// One that lies in a buffer.
    Placed(Piece),
}

impl Key {
    /// The empty key: no key of a value, and before all others in a listing.
    pub const EMPTY: Self = Self::Inline { length: 0, bytes: [0; KEY_INLINE_MAX] };

    /// A short key; `None` if it has more than [`KEY_INLINE_MAX`] bytes.
    #[must_use]
    pub fn inline(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY_INLINE_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self::Inline { length: u8::try_from(key.len()).expect("at most sixteen"), bytes })
    }

    /// A key of any length: in the request if it is short, else written to the whole buffer `buffer` at byte `first_byte`.
    ///
    /// # Panics
    /// If it is written, and does not fit there.
    #[must_use]
    pub fn place(key: &[u8], buffers: &mut Buffers, buffer: BufId, first_byte: u32) -> Self {
        Self::inline(key).unwrap_or_else(|| {
            let piece = Piece {
                buffer,
                first_byte,
                bytes: u32::try_from(key.len()).expect("a key is shorter than its buffer"),
            };
            piece.scatter(buffers, key);
            Self::Placed(piece)
        })
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Inline { length, .. } => u32::from(*length),
            Self::Placed(piece) => piece.bytes,
        }
    }

    /// True if it lies where it says: a short one has no more bytes than fit.
    #[must_use]
    pub fn lies_within(&self, buffers: &Buffers) -> bool {
        match self {
            Self::Inline { length, .. } => usize::from(*length) <= KEY_INLINE_MAX,
            Self::Placed(piece) => piece.lies_within(buffers),
        }
    }

    /// Its bytes.
    ///
    /// # Panics
    /// If it does not lie within its buffer.
    #[must_use]
    pub fn gathered(&self, buffers: &Buffers) -> Vec<u8> {
        let mut key = Vec::new();
        match self {
            Self::Inline { length, bytes } => key.extend_from_slice(&bytes[..usize::from(*length)]),
            Self::Placed(piece) => piece.gather(buffers, &mut key),
        }
        key
    }
}

/// As many of `keys` as have room in `room` bytes, and how many those are: their number in 32 bits, then for each its length in 16
/// bits, its bytes, and zeroes to the next multiple of four (KV command set 1.0, List).
#[must_use]
pub fn encode_keys<'a>(keys: impl Iterator<Item = &'a [u8]>, room: usize) -> (Vec<u8>, u32) {
    let (mut bytes, mut count) = (vec![0; 4.min(room)], 0_u32);
    for key in keys {
        let end = (bytes.len() + 2 + key.len()).next_multiple_of(4);
        if end > room {
            break;
        }
        let length = u16::try_from(key.len()).expect("a key has at most 255 bytes");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.resize(end, 0);
        count += 1;
    }
    if let Some(head) = bytes.first_chunk_mut() {
        *head = count.to_le_bytes();
    }
    (bytes, count)
}

/// The keys of a list; `None` if it is cut short.
#[must_use]
pub fn decode_keys(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (head, mut rest) = bytes.split_first_chunk()?;
    let mut keys = Vec::new();
    for _ in 0..u32::from_le_bytes(*head) {
        let (length, behind) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length));
        keys.push(behind.get(..length)?.to_vec());
        rest = rest.get((2 + length).next_multiple_of(4)..)?;
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Payload, PayloadFormat};
    use crate::geometry::Geometry;

    #[test]
    fn keys_are_inline_up_to_sixteen_bytes_and_placed_beyond() {
        let geometry = Geometry::example(1, 1, 4, 24, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let buffer = buffers.take_whole(1);
        for (length, inline) in [(0, true), (1, true), (16, true), (17, false), (255, false)] {
            let bytes: Vec<u8> = (0..length).collect();
            let key = Key::place(&bytes, &mut buffers, buffer, 33);
            assert_eq!(matches!(key, Key::Inline { .. }), inline, "{length} bytes");
            assert_eq!((key.gathered(&buffers), key.bytes()), (bytes, u32::from(length)));
            assert!(key.lies_within(&buffers));
        }
        assert_eq!(Key::inline(&[0; 17]), None);
        assert!(!Key::Inline { length: 17, bytes: [0; KEY_INLINE_MAX] }.lies_within(&buffers));
        assert!(!Key::Placed(Piece { buffer, first_byte: 4_090, bytes: 7 }).lies_within(&buffers));
    }

    #[test]
    fn a_list_of_keys_has_the_specifications_form() {
        let keys: [&[u8]; 3] = [b"abc", b"", b"defghi"];
        let (bytes, count) = encode_keys(keys.into_iter(), 100);
        assert_eq!(count, 3);
        assert_eq!(bytes, *b"\x03\0\0\0\x03\0abc\0\0\0\0\0\0\0\x06\0defghi");
        assert_eq!(decode_keys(&bytes), Some(keys.map(<[u8]>::to_vec).to_vec()));
    }

    #[test]
    fn a_list_ends_where_the_room_does_and_a_cut_one_is_none() {
        let keys: [&[u8]; 2] = [b"ab", b"cdefg"];
        for (room, count, length) in
            [(0, 0, 0), (3, 0, 3), (4, 0, 4), (7, 0, 4), (8, 1, 8), (15, 1, 8), (16, 2, 16)]
        {
            let (bytes, found) = encode_keys(keys.into_iter(), room);
            assert_eq!((found, bytes.len()), (count, length), "{room} bytes of room");
        }
        let (bytes, _) = encode_keys(keys.into_iter(), 100);
        assert!((0..bytes.len()).all(|length| decode_keys(&bytes[..length]).is_none()));
    }
}
