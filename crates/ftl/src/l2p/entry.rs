//! One entry of the map as memory and media hold it: a number of 32 or 64 bits, and the loops over many of them.
//!
//! The loops are over fixed-size groups without an early exit, so that the compiler makes vector instructions of them:
//! a mount reads hundreds of millions of entries. Deliberately not here: what an entry means (`table`).

use super::ShardSize;

/// A number as wide as an entry. All-ones means "nowhere" in both widths.
pub(super) trait Entry: Copy + Eq + Ord + std::fmt::Debug {
    /// All-ones: the sector was never written, or was discarded.
    const NOWHERE: Self;
    /// Bytes of an entry.
    const BYTES: usize;

    /// The entry of a number.
    ///
    /// # Panics
    /// If it is too wide.
    fn from_number(number: u64) -> Self;

    /// The number of an entry.
    fn number(self) -> u64;

    /// Reads little-endian entries. Shape: `bytes.len() == entries.len() * BYTES`.
    fn read_all(entries: &mut [Self], bytes: &[u8]);

    /// All the little-endian entries of `bytes`, a whole number of them, and how many are not nowhere; `None` if any is
    /// neither nowhere nor below `limit`. One pass: what a mount spends most of its time in.
    fn collect_all(bytes: &[u8], limit: u64) -> Option<(Vec<Self>, u32)>;

    /// Writes little-endian entries. Shape: `bytes.len() == entries.len() * BYTES`.
    fn write_all(entries: &[Self], bytes: &mut [u8]);

    /// Whether any little-endian entry is neither nowhere nor below `limit`.
    fn any_beyond(bytes: &[u8], limit: u64) -> bool;
}

macro_rules! entry {
    ($number:ty) => {
        impl Entry for $number {
            const NOWHERE: Self = Self::MAX;
            const BYTES: usize = size_of::<Self>();

            #[inline]
            fn from_number(number: u64) -> Self {
                Self::try_from(number).expect("the width of entries was chosen to hold every place and slot")
            }

            #[inline]
            fn number(self) -> u64 {
                u64::from(self)
            }

            fn read_all(entries: &mut [Self], bytes: &[u8]) {
                let (groups, rest) = bytes.as_chunks::<{ size_of::<Self>() }>();
                assert!(rest.is_empty(), "{} bytes are not a whole number of entries", bytes.len());
                assert_eq!(groups.len(), entries.len(), "as many entries are read as there is room for");
                for (entry, group) in entries.iter_mut().zip(groups) {
                    *entry = Self::from_le_bytes(*group);
                }
            }

            fn collect_all(bytes: &[u8], limit: u64) -> Option<(Vec<Self>, u32)> {
                let (groups, rest) = bytes.as_chunks::<{ size_of::<Self>() }>();
                assert!(rest.is_empty(), "{} bytes are not a whole number of entries", bytes.len());
                assert!(groups.len() <= ShardSize::LARGEST, "at most a shard is collected at once");
                let limit = Self::from_number(limit);
                // Numbers as wide as entries, and wrapping: so that it becomes vector instructions.
                let (mut beyond, mut nowhere): (Self, Self) = (0, 0);
                let take = |group: &[u8; size_of::<Self>()]| {
                    let entry = Self::from_le_bytes(*group);
                    // Adding one turns nowhere into zero, so that one comparison refuses both kinds of wrong entries.
                    beyond |= Self::from(entry.wrapping_add(1) > limit);
                    nowhere = nowhere.wrapping_add(Self::from(entry == Self::MAX));
                    entry
                };
                let entries: Vec<Self> = groups.iter().map(take).collect();
                let nowhere = usize::try_from(nowhere).expect("a shard has fewer entries than 2^32");
                let somewhere =
                    u32::try_from(entries.len() - nowhere).expect("a shard has fewer entries than 2^32");
                (beyond == 0).then_some((entries, somewhere))
            }

            fn write_all(entries: &[Self], bytes: &mut [u8]) {
                let (groups, rest) = bytes.as_chunks_mut::<{ size_of::<Self>() }>();
                assert!(rest.is_empty(), "room is not for a whole number of entries");
                assert_eq!(groups.len(), entries.len(), "as many entries are written as there is room for");
                for (group, entry) in groups.iter_mut().zip(entries) {
                    *group = entry.to_le_bytes();
                }
            }

            fn any_beyond(bytes: &[u8], limit: u64) -> bool {
                let (groups, rest) = bytes.as_chunks::<{ size_of::<Self>() }>();
                assert!(rest.is_empty(), "{} bytes are not a whole number of entries", bytes.len());
                let limit = Self::from_number(limit);
                // Adding one turns nowhere into zero, so that one comparison refuses both kinds of wrong entries.
                groups.iter().fold(false, |beyond, group| {
                    beyond | (Self::from_le_bytes(*group).wrapping_add(1) > limit)
                })
            }
        }
    };
}

entry!(u32);
entry!(u64);

/// Entries that are not nowhere.
pub(super) fn count_somewhere<E: Entry>(entries: &[E]) -> u32 {
    assert!(entries.len() <= ShardSize::LARGEST, "at most a shard is counted at once");
    // Wrapping, because a check in the loop keeps it from becoming vector instructions; a shard's count fits 32 bits.
    entries.iter().fold(0, |count: u32, &entry| count.wrapping_add(u32::from(entry != E::NOWHERE)))
}

/// Whether an entry in `first_buffered..NOWHERE` is among them.
pub(super) fn any_buffered<E: Entry>(entries: &[E], first_buffered: E) -> bool {
    entries.iter().fold(false, |any, &entry| any | ((entry >= first_buffered) & (entry != E::NOWHERE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Entry>(numbers: &[u64]) {
        let entries: Vec<E> = numbers.iter().map(|&n| E::from_number(n)).collect();
        let mut bytes = vec![0; entries.len() * E::BYTES];
        E::write_all(&entries, &mut bytes);
        let mut back = vec![E::NOWHERE; entries.len()];
        E::read_all(&mut back, &bytes);
        assert_eq!(back, entries);
        assert!(back.iter().map(|entry| entry.number()).eq(numbers.iter().copied()));
    }

    #[test]
    fn entries_come_back_from_their_bytes_in_both_widths() {
        check::<u32>(&[0, 1, 0x0102_0304, u64::from(u32::MAX - 1)]);
        check::<u64>(&[0, 1, 0x0102_0304_0506_0708, u64::MAX - 1]);
        let mut bytes = [0; 4];
        u32::write_all(&[0x0102_0304], &mut bytes);
        assert_eq!(bytes, [4, 3, 2, 1], "media hold the low byte first");
    }

    #[test]
    fn entries_are_collected_with_their_count_unless_one_is_beyond() {
        let numbers = [3, u32::MAX, 9, u32::MAX, 0];
        let mut bytes = vec![0; 20];
        u32::write_all(&numbers, &mut bytes);
        assert_eq!(u32::collect_all(&bytes, 10), Some((numbers.to_vec(), 3)));
        assert_eq!(u32::collect_all(&bytes, 9), None);
        assert_eq!(u64::collect_all(&[0xFF; 16], 9), Some((vec![u64::MAX; 2], 0)));
    }

    #[test]
    fn an_entry_beyond_the_limit_is_found_and_nowhere_is_not_one() {
        for (number, beyond) in [(0, false), (9, false), (10, true), (u32::MAX - 1, true), (u32::MAX, false)]
        {
            let mut bytes = vec![0; 12];
            u32::write_all(&[3, number, 4], &mut bytes);
            assert_eq!(u32::any_beyond(&bytes, 10), beyond, "{number}");
        }
    }
}
