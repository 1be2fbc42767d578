//! The map in one width: shards of entries, allocated at their first entry.
//!
//! Numbers of entries: a place is itself, slot `s` of the write buffer is `NOWHERE - 1 - s`, nowhere is all-ones. The
//! widths differ in nothing else. Deliberately not here: choosing the width (`l2p`).

use super::entry::{Entry, any_buffered, count_somewhere};
use super::{Mapped, ShardSize, Slot};
use crate::PhysicalAddress;

/// Entries looked at together when a shard is written: few enough that one buffered entry costs little. Chosen.
const GROUP: usize = 32;

/// Entries whose misses are waited for together: more than a processor has under way at a time (some 24). Chosen.
const FETCHED_AT_ONCE: usize = 32;

/// Entries of one shard: as many as there are sectors, so fewer in the last one.
#[derive(Clone, Debug)]
struct Shard<E> {
    entries: Box<[E]>,
}

/// The map with entries of type `E`.
#[derive(Clone, Debug)]
pub(super) struct Table<E> {
    shards: Vec<Option<Shard<E>>>,
    /// Entries of each shard that are not nowhere.
    used: Vec<u32>,
    /// Shards of which an entry was set, moved or taken away since that was last forgotten.
    changed: Vec<bool>,
    /// Entries of a shard as a power of two: an address splits into shard and index by a shift.
    shard_bits: u32,
    /// Entries of the last shard.
    last_entries: usize,
    places: u64,
    slots: u32,
}

/// Shard and index of a logical sector, in shards of `2^bits`.
#[inline]
fn split(lba: u64, bits: u32) -> (usize, usize) {
    let lba = usize::try_from(lba).expect("a sector of the instance is an index on a 64-bit machine");
    (lba >> bits, lba & ((1 << bits) - 1))
}

impl<E: Entry> Table<E> {
    /// A table for `sectors` entries.
    pub(super) fn new(sectors: usize, places: u64, slots: u32, shard: ShardSize) -> Self {
        assert!(sectors > 0, "a map of nothing");
        let (shard_bits, entries) = (shard.bits(), 1 << shard.bits());
        assert!(entries % GROUP == 0, "a shard is whole groups");
        let shards = sectors.div_ceil(entries);
        let last_entries = sectors - (shards - 1) * entries;
        let (used, changed, shards) = (vec![0; shards], vec![false; shards], vec![None; shards]);
        let table = Self { shards, used, changed, shard_bits, last_entries, places, slots };
        assert!(
            places <= table.first_buffered().number(),
            "places and slots share the numbers below nowhere"
        );
        table
    }

    /// Entries of shard `at`.
    const fn shard_entries(&self, at: usize) -> usize {
        if at + 1 == self.shards.len() { self.last_entries } else { 1 << self.shard_bits }
    }

    /// Shard and index of a logical sector.
    #[inline]
    fn split(&self, lba: u64) -> (usize, usize) {
        split(lba, self.shard_bits)
    }

    /// The lowest number that is a slot; nowhere if there are no slots.
    fn first_buffered(&self) -> E {
        E::from_number(E::NOWHERE.number() - u64::from(self.slots))
    }

    #[inline]
    fn mapped(&self, entry: E) -> Mapped {
        let number = entry.number();
        if number < self.places {
            Mapped::Media(PhysicalAddress(number))
        } else if entry == E::NOWHERE {
            Mapped::Nowhere
        } else {
            let slot = E::NOWHERE.number() - 1 - number;
            Mapped::Buffer(Slot(u32::try_from(slot).expect("only slots of the buffer are entered")))
        }
    }

    #[inline]
    fn entry(&self, mapped: Mapped) -> E {
        match mapped {
            Mapped::Nowhere => E::NOWHERE,
            Mapped::Media(place) => {
                assert!(place.0 < self.places, "{place:?} is beyond the {} places", self.places);
                E::from_number(place.0)
            }
            Mapped::Buffer(slot) => {
                assert!(slot.0 < self.slots, "{slot:?} is beyond the {} slots of the buffer", self.slots);
                E::from_number(E::NOWHERE.number() - 1 - u64::from(slot.0))
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, lba: u64) -> Mapped {
        let (shard, index) = self.split(lba);
        self.shards[shard].as_ref().map_or(Mapped::Nowhere, |shard| self.mapped(shard.entries[index]))
    }

    #[inline]
    pub(super) fn set(&mut self, lba: u64, to: Mapped) -> Mapped {
        let (at, index) = self.split(lba);
        let new = self.entry(to);
        if new == E::NOWHERE && self.shards[at].is_none() {
            return Mapped::Nowhere;
        }
        let count = self.shard_entries(at);
        let shard = self.shards[at].get_or_insert_with(|| Shard::nowhere(count));
        let old = std::mem::replace(&mut shard.entries[index], new);
        // Both terms are 0 or 1; the count of a shard never passes below zero because `old` was counted when it came.
        let used = self.used[at] + u32::from(new != E::NOWHERE);
        assert!(used > 0 || old == E::NOWHERE, "an entry of shard {at} was not counted");
        self.used[at] = used - u32::from(old != E::NOWHERE);
        self.changed[at] = true;
        self.mapped(old)
    }

    /// See [`super::L2p::move_if`].
    #[inline]
    pub(super) fn move_if(&mut self, lba: u64, from: Mapped, to: Mapped) -> bool {
        let (at, index) = self.split(lba);
        let (from, to) = (self.entry(from), self.entry(to));
        let Some(shard) = &mut self.shards[at] else { return false };
        let is_there = shard.entries[index] == from;
        if is_there {
            shard.entries[index] = to;
            self.changed[at] = true;
        }
        is_there
    }

    /// See [`super::L2p::move_run`].
    #[inline]
    pub(super) fn move_run(&mut self, lbas: &[u64], from: PhysicalAddress, to: PhysicalAddress) -> usize {
        let (mut places, bits) = ((from.0..).zip(to.0..), self.shard_bits);
        let moves = |&&lba: &&u64| {
            let ((at, index), (from, to)) =
                (split(lba, bits), places.next().expect("there is no end of places"));
            let Some(shard) = &mut self.shards[at] else { return false };
            let entry = &mut shard.entries[index];
            let is_there = entry.number() == from;
            if is_there {
                *entry = E::from_number(to);
                self.changed[at] = true;
            }
            is_there
        };
        lbas.iter().take_while(moves).count()
    }

    /// See [`super::L2p::fetch`].
    #[inline]
    pub(super) fn fetch(&self, mut lbas: impl Iterator<Item = u64>) {
        let nowhere = E::NOWHERE;
        let mut wanted = [&nowhere; FETCHED_AT_ONCE];
        loop {
            let mut count = 0;
            for (place, lba) in wanted.iter_mut().zip(&mut lbas) {
                let (at, index) = self.split(lba);
                let shard = self.shards.get(at).and_then(Option::as_ref);
                *place = shard.and_then(|shard| shard.entries.get(index)).unwrap_or(&nowhere);
                count += 1;
            }
            // Nothing but loads: what finds out where an entry lies would fill the processor's window between them.
            let seen = wanted[..count].iter().fold(0, |seen, entry| seen ^ entry.number());
            // Without a use the loads would be left out.
            std::hint::black_box(seen);
            if count < FETCHED_AT_ONCE {
                return;
            }
        }
    }

    /// See [`super::L2p::for_each_media`].
    pub(super) fn for_each_media(&self, mut each: impl FnMut(u64, PhysicalAddress)) {
        for ((lba, shard), &used) in (0..).step_by(1 << self.shard_bits).zip(&self.shards).zip(&self.used) {
            // Behind the last entry in use there is nothing: the last shard may be used for a few sectors only.
            let mut left = used;
            let entries = shard.iter().flat_map(|shard| shard.entries.iter());
            for (lba, entry) in (lba..).zip(entries) {
                if left == 0 {
                    break;
                }
                left -= u32::from(*entry != E::NOWHERE);
                let number = entry.number();
                if number < self.places {
                    each(lba, PhysicalAddress(number));
                }
            }
        }
    }

    /// See [`super::L2p::retain_media`].
    pub(super) fn retain_media(&mut self, mut keeps: impl FnMut(PhysicalAddress) -> bool) {
        let counts = self.used.iter_mut().zip(&mut self.changed);
        for (shard, (used, changed)) in self.shards.iter_mut().zip(counts) {
            let mut left = *used;
            for entry in shard.iter_mut().flat_map(|shard| shard.entries.iter_mut()) {
                if left == 0 {
                    break;
                }
                left -= u32::from(*entry != E::NOWHERE);
                let number = entry.number();
                if number < self.places && !keeps(PhysicalAddress(number)) {
                    *entry = E::NOWHERE;
                    assert!(*used > 0, "an entry of a shard was not counted");
                    *used -= 1;
                    *changed = true;
                }
            }
        }
    }

    /// See [`super::L2p::forget_shard`].
    pub(super) fn forget_shard(&mut self, at: usize) {
        (self.shards[at], self.used[at]) = (None, 0);
    }

    pub(super) fn used(&self) -> &[u32] {
        &self.used
    }

    pub(super) fn changed(&self) -> &[bool] {
        &self.changed
    }

    /// See [`super::L2p::mark_changed`].
    pub(super) fn mark_changed(&mut self, lba: u64) {
        let (at, _) = self.split(lba);
        self.changed[at] = true;
    }

    /// See [`super::L2p::mark_all_unchanged`].
    pub(super) fn mark_all_unchanged(&mut self) {
        self.changed.fill(false);
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        let entries: usize = self.shards.iter().flatten().map(|shard| shard.entries.len()).sum();
        let shards = entries * E::BYTES;
        let index =
            self.shards.len() * (size_of::<Option<Shard<E>>>() + size_of::<u32>() + size_of::<bool>());
        u64::try_from(shards + index).expect("memory has fewer than 2^64 bytes")
    }

    /// See [`super::L2p::encode`]; `bytes` is a whole number of entries of the map.
    pub(super) fn encode(
        &self,
        first_lba: u64,
        bytes: &mut [u8],
        resolve: &mut dyn FnMut(u64, Slot) -> Option<PhysicalAddress>,
    ) {
        let mut lba = first_lba;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (at, index) = self.split(lba);
            let count = (GROUP - index % GROUP).min(rest.len() / E::BYTES);
            let (group, tail) = rest.split_at_mut(count * E::BYTES);
            match &self.shards[at] {
                None => group.fill(0xFF),
                Some(shard) => self.encode_group(lba, &shard.entries[index..index + count], group, resolve),
            }
            lba += u64::try_from(count).expect("a group is small");
            rest = tail;
        }
    }

    fn encode_group(
        &self,
        first_lba: u64,
        entries: &[E],
        bytes: &mut [u8],
        resolve: &mut dyn FnMut(u64, Slot) -> Option<PhysicalAddress>,
    ) {
        E::write_all(entries, bytes);
        let first_buffered = self.first_buffered();
        if !any_buffered(entries, first_buffered) {
            return;
        }
        // Of most groups a few are: the others are passed over by a comparison, not taken apart.
        let is_buffered = |&(_, &entry): &(usize, &E)| entry >= first_buffered && entry != E::NOWHERE;
        for (index, &entry) in entries.iter().enumerate().filter(is_buffered) {
            let Mapped::Buffer(slot) = self.mapped(entry) else { unreachable!("a number of a slot is one") };
            let lba = first_lba + u64::try_from(index).expect("a group is small");
            let place = resolve(lba, slot).map_or(Mapped::Nowhere, Mapped::Media);
            E::write_all(&[self.entry(place)], &mut bytes[index * E::BYTES..][..E::BYTES]);
        }
    }

    /// The first entry of `bytes` that is neither nowhere nor a place: its index and number.
    pub(super) fn first_beyond(&self, bytes: &[u8]) -> Option<(usize, u64)> {
        if !E::any_beyond(bytes, self.places) {
            return None;
        }
        let mut groups = bytes.chunks_exact(E::BYTES).enumerate();
        groups.find(|(_, group)| E::any_beyond(group, self.places)).map(|(index, group)| {
            let mut entry = [E::NOWHERE];
            E::read_all(&mut entry, group);
            (index, entry[0].number())
        })
    }

    /// Takes a shard of which nothing is mapped, whole entries from its first to its last. False, and nothing changes, if an
    /// entry is neither nowhere nor a place. The memory of the shard is touched once, and its bytes are passed over once.
    pub(super) fn decode_shard(&mut self, at: usize, bytes: &[u8]) -> bool {
        assert!(self.used[at] == 0, "shard {at} has entries already");
        assert_eq!(bytes.len(), self.shard_entries(at) * E::BYTES, "as many bytes as shard {at} has");
        if bytes.iter().all(|&byte| byte == 0xFF) {
            // An empty part of the drive stays without memory.
            return true;
        }
        let Some((entries, used)) = E::collect_all(bytes, self.places) else { return false };
        (self.shards[at], self.used[at]) = (Some(Shard::of(entries)), used);
        true
    }

    /// See [`super::L2p::decode`]; `bytes` was found whole and good.
    pub(super) fn decode(&mut self, first_lba: u64, bytes: &[u8]) {
        let mut lba = first_lba;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (at, index) = self.split(lba);
            let count = ((1 << self.shard_bits) - index).min(rest.len() / E::BYTES);
            let (part, tail) = rest.split_at(count * E::BYTES);
            self.decode_part(at, index, part);
            lba += u64::try_from(count).expect("a shard is small");
            rest = tail;
        }
    }

    /// Takes entries of shard `at` from `index` on.
    fn decode_part(&mut self, at: usize, index: usize, part: &[u8]) {
        let (count, most) = (part.len() / E::BYTES, self.shard_entries(at));
        assert!(index + count <= most, "{count} entries from {index} on leave the {most} of shard {at}");
        if self.shards[at].is_none() && part.iter().all(|&byte| byte == 0xFF) {
            // An empty part of the drive stays without memory.
            return;
        }
        let shard = self.shards[at].get_or_insert_with(|| Shard::nowhere(most));
        let entries = &mut shard.entries[index..index + count];
        let before = count_somewhere(entries);
        E::read_all(entries, part);
        let after = count_somewhere(entries);
        assert!(before <= self.used[at], "entries of shard {at} were not counted");
        self.used[at] = self.used[at] - before + after;
    }

    /// Asserts that every shard's count is what its entries say. Cost: the whole map.
    pub(super) fn check(&self) {
        for (at, (shard, &used)) in self.shards.iter().zip(&self.used).enumerate() {
            let counted = shard.as_ref().map_or(0, |shard| count_somewhere(&shard.entries[..]));
            assert_eq!(counted, used, "the count of shard {at} is wrong");
        }
    }
}

impl<E: Entry> Shard<E> {
    /// A shard of `count` times nothing.
    fn nowhere(count: usize) -> Self {
        Self::of(vec![E::NOWHERE; count])
    }

    /// A shard of these entries.
    fn of(entries: Vec<E>) -> Self {
        assert!(!entries.is_empty(), "a shard of no entries");
        Self { entries: entries.into_boxed_slice() }
    }
}
