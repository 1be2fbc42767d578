//! The active namespace list (CNS 02h): up to 1024 ascending identifiers, then zeros.
//!
//! Source: NVMe base 1.4 section 5.15.2.3 and figure "Namespace List Format".

use crate::wire::{ShortInput, fixed, put};
use std::fmt;

/// Ascending, non-zero namespace identifiers, at most [`NamespaceList::LEN_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceList(Vec<u32>);

/// Why bytes are not a namespace list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceListError {
    /// The input ends too early.
    Short(ShortInput),
    /// An identifier is not greater than the one before.
    Order {
        /// Its place in the list.
        index: usize,
        /// The one before.
        previous: u32,
        /// The identifier.
        found: u32,
    },
}

impl fmt::Display for NamespaceListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Order { index, previous, found } => write!(
                f,
                "namespace identifiers should ascend and zeros come last, but entry {index} is {found} after {previous}; the \
                 list is damaged"
            ),
        }
    }
}

impl std::error::Error for NamespaceListError {}

impl NamespaceList {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;
    /// Identifiers that fit.
    pub const LEN_MAX: usize = Self::BYTES / 4;

    /// The reply to Identify with NSID `above`: the first 1024 of `active` that are greater than it. `active` ascends.
    ///
    /// # Panics
    /// If `active` does not ascend.
    pub fn greater_than(above: u32, active: &[u32]) -> Self {
        assert!(active.is_sorted_by(|a, b| a < b), "active namespaces ascend: {active:?}");
        Self(active.iter().copied().filter(|nsid| *nsid > above).take(Self::LEN_MAX).collect())
    }

    /// The identifiers.
    pub fn nsids(&self) -> &[u32] {
        &self.0
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`NamespaceListError`] if the input is short or the list does not ascend.
    pub fn decode(bytes: &[u8]) -> Result<Self, NamespaceListError> {
        let bytes =
            fixed::<{ Self::BYTES }>("the namespace list", bytes).map_err(NamespaceListError::Short)?;
        let (entries, _) = bytes.as_chunks::<4>();
        let (mut nsids, mut previous, mut ended) = (Vec::new(), 0, false);
        for (index, entry) in entries.iter().enumerate() {
            let found = u32::from_le_bytes(*entry);
            if found == 0 {
                ended = true;
            } else if ended || found <= previous {
                return Err(NamespaceListError::Order {
                    index,
                    previous: if ended { 0 } else { previous },
                    found,
                });
            } else {
                nsids.push(found);
                previous = found;
            }
        }
        Ok(Self(nsids))
    }

    /// The 4096 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (index, nsid) in self.0.iter().enumerate() {
            put(&mut bytes, 4 * index, &nsid.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_starts_above_the_nsid_asked_for() {
        let list = NamespaceList::greater_than(1, &[1, 2, 0x0102]);
        assert_eq!(list.nsids(), [2, 0x0102]);
        assert_eq!(list.encode()[..9], [2, 0, 0, 0, 2, 1, 0, 0, 0]);
        assert_eq!(NamespaceList::decode(&list.encode()), Ok(list));
    }

    #[test]
    fn a_full_list_has_1024_entries() {
        let active: Vec<u32> = (1..=2000).collect();
        let list = NamespaceList::greater_than(0, &active);
        assert_eq!((list.nsids().len(), NamespaceList::decode(&list.encode())), (1024, Ok(list.clone())));
    }

    #[test]
    fn descending_lists_and_entries_after_zero_are_refused() {
        for (patch, index) in [([2u8, 0, 0, 0, 1, 0, 0, 0], 1), ([0, 0, 0, 0, 1, 0, 0, 0], 1)] {
            let mut bytes = [0; 4096];
            bytes[..8].copy_from_slice(&patch);
            let error = NamespaceList::decode(&bytes).expect_err("not ascending");
            assert!(matches!(error, NamespaceListError::Order { index: at, .. } if at == index), "{error}");
        }
        assert!(NamespaceList::decode(&[0; 4095]).is_err());
    }
}
