//! The logical-to-physical map: where the newest version of every logical sector is.
//!
//! One entry per logical sector, in shards ([`ShardSize`]) that take memory from their first entry on: an empty 2 TB
//! instance costs 172 KB, a full one 2.0 GiB (512 Mi sectors of 4 bytes). A target owns it and is alone in changing
//! it. Unlike pblk's (`trans_map`, one entry per raw sector and one global lock) it covers only what is exported.
//! An entry has 4 bytes while places and slots together fit (16 TiB of 4 KiB sectors less the buffer), else 8.
//!
//! On media: the entries in order, little-endian, all-ones for nowhere, else the number of the place; a buffered
//! sector is written as the place its owner says. Deliberately not here: when and where that is written (`checkpoint`),
//! which places are still needed (`valid_map`).

mod entry;
mod shard_size;
mod table;

use std::fmt;
use std::ops::Range;

use crate::PhysicalAddress;
use entry::Entry;
pub use shard_size::ShardSize;
use table::Table;

/// A sector of the write buffer, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Where the newest version of a logical sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mapped {
    /// Never written, or discarded: reads as zeroes.
    Nowhere,
    /// In the write buffer, not yet on media or not yet to be read from there.
    Buffer(Slot),
    /// On media.
    Media(PhysicalAddress),
}

/// Why entries read from media cannot be the map's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2pError {
    /// The bytes are not whole entries.
    Torn {
        /// Bytes found.
        bytes: usize,
        /// Bytes of an entry.
        entry_bytes: u32,
    },
    /// There are entries for sectors the instance does not have.
    TooMany {
        /// The logical sector after the last entry.
        end: u64,
        /// Logical sectors of the instance.
        sectors: u64,
    },
    /// An entry names a place the instance does not have.
    Beyond {
        /// The logical sector of the entry.
        lba: u64,
        /// The number found.
        place: u64,
        /// Places of the instance.
        places: u64,
    },
}

impl fmt::Display for L2pError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Torn { bytes, entry_bytes } => {
                write!(f, "map entries of {entry_bytes} bytes were expected, but {bytes} bytes were found")
            }
            Self::TooMany { end, sectors } => write!(
                f,
                "map entries up to logical sector {end} were found, but the instance has {sectors}: \
                 open it with the capacity it was created with"
            ),
            Self::Beyond { lba, place, places } => write!(
                f,
                "the map entry of logical sector {lba} is place {place}, but the instance has {places} places: \
                 open it on the units it was created on"
            ),
        }
    }
}

impl std::error::Error for L2pError {}

/// The two widths of entries.
#[derive(Clone, Debug)]
enum Width {
    Narrow(Table<u32>),
    Wide(Table<u64>),
}

/// Does the same with the table of either width.
macro_rules! with_table {
    ($width:expr, $table:ident => $body:expr) => {
        match $width {
            Width::Narrow($table) => $body,
            Width::Wide($table) => $body,
        }
    };
}

/// The logical-to-physical map of an instance.
#[derive(Clone, Debug)]
pub struct L2p {
    width: Width,
    sectors: u64,
    places: u64,
    slots: u32,
    shard: ShardSize,
}

impl L2p {
    /// A map of `sectors` logical sectors, all nowhere, to `places` on media and `slots` of a write buffer.
    ///
    /// # Panics
    /// If there are no sectors, or more than 2^48 sectors or places (an exabyte; no drive is so large).
    #[must_use]
    pub fn new(sectors: u64, places: u64, slots: u32) -> Self {
        Self::with_shards(sectors, places, slots, ShardSize::default())
    }

    /// As [`Self::new`], in shards of another size.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn with_shards(sectors: u64, places: u64, slots: u32, shard: ShardSize) -> Self {
        assert!((1..=1 << 48).contains(&sectors), "a map of {sectors} logical sectors");
        assert!(places <= 1 << 48, "a map to {places} places");
        let entries = usize::try_from(sectors).expect("fewer than 2^48");
        // One number of each width is nowhere.
        let width = if places + u64::from(slots) < 1 << 32 {
            Width::Narrow(Table::new(entries, places, slots, shard))
        } else {
            Width::Wide(Table::new(entries, places, slots, shard))
        };
        Self { width, sectors, places, slots, shard }
    }

    /// Where a logical sector is. Cost: two dependent loads, in practice one cache miss.
    ///
    /// # Panics
    /// If `lba` is not below [`L2p::sectors`].
    #[must_use]
    #[inline]
    pub fn get(&self, lba: u64) -> Mapped {
        assert!(lba < self.sectors, "logical sector {lba} of {}", self.sectors);
        with_table!(&self.width, table => table.get(lba))
    }

    /// True if there is such a logical sector, and it is there. Cost: as [`L2p::get`].
    #[must_use]
    pub fn holds(&self, lba: u64, at: Mapped) -> bool {
        lba < self.sectors && self.get(lba) == at
    }

    /// Maps a logical sector, and says where it was. Cost: as [`L2p::get`]; the first entry of a shard fills it.
    ///
    /// # Panics
    /// If the sector, the place or the slot is beyond those the map was made for.
    #[inline]
    pub fn set(&mut self, lba: u64, to: Mapped) -> Mapped {
        assert!(lba < self.sectors, "logical sector {lba} of {}", self.sectors);
        with_table!(&mut self.width, table => table.set(lba, to))
    }

    /// Maps a logical sector that is at `from` to `to`; false, and nothing changes, if it is elsewhere by now. Cost: as
    /// [`L2p::get`].
    ///
    /// # Panics
    /// As [`L2p::set`]; or if one of both is nowhere.
    #[inline]
    pub fn move_if(&mut self, lba: u64, from: Mapped, to: Mapped) -> bool {
        assert!(lba < self.sectors, "logical sector {lba} of {}", self.sectors);
        assert!(from != Mapped::Nowhere && to != Mapped::Nowhere, "a move from or to nowhere");
        with_table!(&mut self.width, table => table.move_if(lba, from, to))
    }

    /// Maps logical sectors that are neighbours on media, the first of them at `from`, to neighbours from `to` on. Stops at
    /// the first that is elsewhere by now: how many were before it. Cost: as [`L2p::get`] for each.
    ///
    /// # Panics
    /// If a sector or a place is beyond those the map was made for.
    #[must_use]
    #[inline]
    pub fn move_run(&mut self, lbas: &[u64], from: PhysicalAddress, to: PhysicalAddress) -> usize {
        let end = |first: PhysicalAddress| first.0 + u64::try_from(lbas.len()).expect("an index");
        assert!(
            end(from) <= self.places && end(to) <= self.places,
            "{from:?} or {to:?} and on leave the instance"
        );
        with_table!(&mut self.width, table => table.move_run(lbas, from, to))
    }

    /// Brings the entries of logical sectors into the cache, for whoever looks them up next: asked together their misses
    /// overlap, one after the other each is waited for. Sectors that do not exist are passed over.
    #[inline]
    pub fn fetch(&self, lbas: impl Iterator<Item = u64>) {
        with_table!(&self.width, table => table.fetch(lbas));
    }

    /// Logical sectors.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes of an entry in memory and on media: 4 or 8.
    #[must_use]
    pub fn entry_bytes(&self) -> u32 {
        u32::try_from(self.entry_size()).expect("4 or 8")
    }

    fn entry_size(&self) -> usize {
        match self.width {
            Width::Narrow(_) => u32::BYTES,
            Width::Wide(_) => u64::BYTES,
        }
    }

    /// The same map with nothing in it.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::with_shards(self.sectors, self.places, self.slots, self.shard)
    }

    /// Logical sectors of a shard.
    #[must_use]
    pub const fn shard_size(&self) -> ShardSize {
        self.shard
    }

    /// Shards; the last may be cut short by the end of the instance.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.used().len()
    }

    /// The logical sectors of a shard.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    pub fn shard_sectors(&self, shard: usize) -> Range<u64> {
        assert!(shard < self.shard_count(), "shard {shard} of {}", self.shard_count());
        self.shard.sectors_of(u64::try_from(shard).expect("below 2^48"), self.sectors)
    }

    /// Whether all of a shard is nowhere, so that a checkpoint may leave it out. Cost: one load.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    pub fn shard_is_empty(&self, shard: usize) -> bool {
        self.used()[shard] == 0
    }

    fn used(&self) -> &[u32] {
        with_table!(&self.width, table => table.used())
    }

    /// Whether an entry of a shard was set, moved or taken away since [`L2p::mark_all_unchanged`], so that a checkpoint must
    /// write it again. What was decoded is not changed: it is as media have it. Cost: one load; to know it, a store for each
    /// change.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    pub fn shard_is_changed(&self, shard: usize) -> bool {
        with_table!(&self.width, table => table.changed()[shard])
    }

    /// The shard of a logical sector counts as changed: what its owner would resolve an entry to, changes.
    ///
    /// # Panics
    /// If `lba` is not below [`L2p::sectors`].
    pub fn mark_changed(&mut self, lba: u64) {
        assert!(lba < self.sectors, "logical sector {lba} of {}", self.sectors);
        with_table!(&mut self.width, table => table.mark_changed(lba));
    }

    /// A checkpoint begins that will hold every shard as it is now. Cost: a byte per shard.
    pub fn mark_all_unchanged(&mut self) {
        with_table!(&mut self.width, table => table.mark_all_unchanged());
    }

    /// Places on media the map was made for.
    #[must_use]
    pub const fn places(&self) -> u64 {
        self.places
    }

    /// Slots of the write buffer the map was made for.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// The logical sector that is at `place` on media. Cost: a pass over the map; for what happens seldom.
    #[must_use]
    pub fn find(&self, place: PhysicalAddress) -> Option<u64> {
        let shards = (0..self.shard_count()).filter(|&shard| !self.shard_is_empty(shard));
        shards.flat_map(|shard| self.shard_sectors(shard)).find(|&lba| self.get(lba) == Mapped::Media(place))
    }

    /// Tells `each` every sector on media and its place, in order of sectors. Cost: a pass over the map.
    pub fn for_each_media(&self, each: impl FnMut(u64, PhysicalAddress)) {
        with_table!(&self.width, table => table.for_each_media(each));
    }

    /// Makes nowhere of every sector on media whose place `keeps` does not want. Cost: a pass over the map.
    pub fn retain_media(&mut self, keeps: impl FnMut(PhysicalAddress) -> bool) {
        with_table!(&mut self.width, table => table.retain_media(keeps));
    }

    /// Gives back the memory of a shard, whose entries are on media: it reads as nowhere until it is decoded again.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn forget_shard(&mut self, shard: usize) {
        assert!(shard < self.shard_count(), "shard {shard} of {}", self.shard_count());
        with_table!(&mut self.width, table => table.forget_shard(shard));
    }

    /// Logical sectors that are somewhere. Cost: one addition per shard.
    #[must_use]
    pub fn count_mapped(&self) -> u64 {
        let mapped = self.used().iter().map(|&used| u64::from(used)).sum();
        assert!(mapped <= self.sectors, "{mapped} of {} logical sectors are mapped", self.sectors);
        mapped
    }

    /// Memory the map takes now, in bytes. A shard that became empty again keeps its memory.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        with_table!(&self.width, table => table.resident_bytes())
    }

    /// Writes the entries from `first_lba` on as they go to media, as many as `out` has room for.
    ///
    /// `resolve` is asked for the place of each sector that is in the buffer; `None` writes it as nowhere. Cost: that
    /// of a copy, plus the calls.
    ///
    /// # Panics
    /// If `out` is not whole entries, passes the end of the instance, or `resolve` names a place beyond it.
    pub fn encode(
        &self,
        first_lba: u64,
        out: &mut [u8],
        mut resolve: impl FnMut(u64, Slot) -> Option<PhysicalAddress>,
    ) {
        let size = self.entry_size();
        assert!(out.len().is_multiple_of(size), "{} bytes are not whole entries of {size}", out.len());
        let end = first_lba + u64::try_from(out.len() / size).expect("an index");
        assert!(end <= self.sectors, "entries up to {end} of {}", self.sectors);
        with_table!(&self.width, table => table.encode(first_lba, out, &mut resolve));
    }

    /// Takes the entries from `first_lba` on as media hold them; whatever was mapped there is forgotten.
    ///
    /// Cost: that of two copies; parts of the map that are all nowhere take no memory.
    ///
    /// # Errors
    /// If the bytes are not whole entries, are too many, or name a place beyond the instance. The map is unchanged then.
    pub fn decode(&mut self, first_lba: u64, bytes: &[u8]) -> Result<(), L2pError> {
        let size = self.entry_size();
        if !bytes.len().is_multiple_of(size) {
            return Err(L2pError::Torn { bytes: bytes.len(), entry_bytes: self.entry_bytes() });
        }
        let end = first_lba.saturating_add(u64::try_from(bytes.len() / size).expect("an index"));
        if end > self.sectors {
            return Err(L2pError::TooMany { end, sectors: self.sectors });
        }
        // As a mount does it.
        let shard = usize::try_from(first_lba >> self.shard.bits()).expect("the map fits memory");
        let is_whole = self.used().get(shard) == Some(&0) && self.shard_sectors(shard) == (first_lba..end);
        if is_whole && with_table!(&mut self.width, table => table.decode_shard(shard, bytes)) {
            return Ok(());
        }
        let beyond = with_table!(&self.width, table => table.first_beyond(bytes));
        if let Some((index, place)) = beyond {
            let lba = first_lba + u64::try_from(index).expect("an index");
            return Err(L2pError::Beyond { lba, place, places: self.places });
        }
        with_table!(&mut self.width, table => table.decode(first_lba, bytes));
        Ok(())
    }

    /// Asserts that the counts are what the entries say. Cost: the whole map; for simulators and tests.
    pub fn check(&self) {
        with_table!(&self.width, table => table.check());
    }
}

#[cfg(test)]
mod tests;
