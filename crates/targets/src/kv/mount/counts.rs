//! What lives, as recovery counts it: bytes in each chunk, bytes of users, and long values that no key holds.
//!
//! A checkpoint has the counts of its moment; every record that replay makes true changes them. So a mount looks at no key that
//! did not change. Deliberately not here: pages of the index, which the checkpoint counted, and which replay only lets go.

use crate::kv::index::{Found, Index, Location};
use crate::kv::long_values::{LongValues, ValuePiece};
use crate::kv::sizes::Sizes;
use crate::kv::state::record_bytes;
use ocssd_ftl::{ChunkIndex, InstanceGeometry, PhysicalAddress};
use std::collections::BTreeSet;

/// The counts.
pub struct Counts {
    shape: InstanceGeometry,
    sizes: Sizes,
    /// Bytes of records that are needed, by chunk.
    pub live: Vec<u64>,
    /// Bytes of all keys and values, and bytes they take.
    pub user: u64,
    pub kept: u64,
    /// Long values that no key holds: they end with the power.
    pub unheld: BTreeSet<u64>,
}

impl Counts {
    /// Of nothing.
    pub fn new(shape: &InstanceGeometry, sizes: &Sizes) -> Self {
        let chunks = usize::try_from(shape.chunks()).expect("32 bits fit an index");
        let live = vec![0; chunks];
        Self { shape: shape.clone(), sizes: *sizes, live, user: 0, kept: 0, unheld: BTreeSet::new() }
    }

    /// Those in a checkpoint's section; false if there are none in these bytes.
    pub fn read(&mut self, bytes: &[u8]) -> bool {
        let numbers: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().expect("eight bytes")))
            .collect();
        if !bytes.len().is_multiple_of(8) || numbers.len() < 2 + self.live.len() {
            return false;
        }
        (self.user, self.kept) = (numbers[0], numbers[1]);
        let (live, unheld) = numbers[2..].split_at(self.live.len());
        self.live.copy_from_slice(live);
        self.unheld.extend(unheld);
        true
    }

    /// Counts an index of which all is in memory, for a checkpoint without counts.
    pub fn count(&mut self, index: &Index, long: &LongValues) {
        assert!(index.is_whole(), "a checkpoint with pages elsewhere has counts");
        self.unheld = long.iter().map(|(value, _)| value).collect();
        for (key, found) in index.resident() {
            self.holds(key, found);
        }
        long.iter().for_each(|(_, piece)| self.add_piece(piece));
    }

    fn at(&mut self, at: u64) -> &mut u64 {
        let (chunk, _) = self.shape.chunk_of(PhysicalAddress(at / u64::from(self.sizes.sector_bytes)));
        &mut self.live[chunk.index()]
    }

    /// A key holds something.
    pub fn holds(&mut self, key: &[u8], found: Found) {
        assert!(!key.is_empty(), "an empty key holds {found:?}");
        self.user += u64::try_from(key.len()).expect("a key is short") + u64::from(found.bytes);
        self.kept += self.sizes.kept_of(key.len(), found.bytes);
        match found.location {
            Location::Record(at) => *self.at(at) += u64::from(record_bytes(key.len(), found.bytes)),
            Location::Long(value) => {
                self.unheld.remove(&value);
            }
            Location::Lost => {}
        }
    }

    /// It does not any more.
    pub fn held(&mut self, key: &[u8], found: Found) {
        let user = u64::try_from(key.len()).expect("a key is short") + u64::from(found.bytes);
        assert!(self.user >= user, "bytes of users were counted wrong");
        self.user -= user;
        let kept = self.sizes.kept_of(key.len(), found.bytes);
        assert!(self.kept >= kept, "bytes that users' values take were counted wrong");
        self.kept -= kept;
        match found.location {
            Location::Record(at) => {
                let bytes = u64::from(record_bytes(key.len(), found.bytes));
                let live = self.at(at);
                assert!(*live >= bytes, "{bytes} bytes at {at} die, but {live} live");
                *live -= bytes;
            }
            Location::Long(value) => {
                self.unheld.insert(value);
            }
            Location::Lost => {}
        }
    }

    /// A chunk is free: what a checkpoint counted there was moved since.
    pub fn nothing_in(&mut self, chunk: ChunkIndex) {
        assert!(chunk.index() < self.live.len(), "chunk {} is beyond the instance", chunk.0);
        self.live[chunk.index()] = 0;
    }

    /// A piece is there.
    pub fn add_piece(&mut self, piece: ValuePiece) {
        if let Some(at) = piece.at {
            *self.at(at) += u64::from(record_bytes(0, piece.bytes));
        }
    }

    /// It is not any more.
    pub fn drop_piece(&mut self, piece: ValuePiece) {
        if let Some(at) = piece.at {
            let bytes = u64::from(record_bytes(0, piece.bytes));
            let live = self.at(at);
            assert!(*live >= bytes, "a piece of {bytes} bytes at {at} dies, but {live} live");
            *live -= bytes;
        }
    }
}
