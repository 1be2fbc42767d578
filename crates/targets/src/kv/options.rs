//! What an instance is asked to be.
//!
//! Deliberately not here: sizes that follow from it (`sizes`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use super::index::{PAGE_BYTES, PAGE_BYTES_BOUNDED};
use super::sizes::BATCH_ENTRIES_MAX;
use crate::option_value::{check_above_zero, check_within, number, small, victim};
use crate::plane_reads::PlaneReads;
use ocssd_ftl::VictimPolicy;

/// Chunks kept from the user, in percent, unless asked for otherwise (chosen: as block SSDs of data centres).
const OVER_PROVISIONING_PERCENT: u32 = 20;
/// Most that may be kept from the user, in percent (chosen: what is left is still a drive).
const PERCENT_MAX: u32 = 95;
/// Entries of the index, in percent of what keys and values may take, unless asked for otherwise (chosen: keys of 16 bytes
/// with values of half a kilobyte or more).
const INDEX_PERCENT: u32 = 5;
/// Most percent of it (chosen: more is a drive of keys without values).
const INDEX_PERCENT_MAX: u32 = 50;

/// Writes of a parallel unit that are with the drive at a time (chosen: one that is carried out, and one that the unit goes on
/// with; with one 20 % less is stored a second, with four the p99 of reads beside it is a third longer).
const WRITES_PER_UNIT: u32 = 2;
/// Resets of the same (chosen: a checkpoint sets many chunks free at once, and reads are not to wait for all).
const RESETS_PER_UNIT: u32 = 1;

/// Resets a chunk may lag unless asked for otherwise: none is moved.
const WEAR_SPREAD: u32 = 0;

/// Least and most bytes of a page of the index: the longest entry, and a sector of common drives.
const INDEX_PAGE_BYTES: [u32; 2] = [266, PAGE_BYTES];

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Chunks kept from the user, in percent, 1..=95. What the target itself needs is kept in any case.
    pub over_provisioning_percent: u32,
    /// Bytes of entries of the index at most, in percent of the capacity, 1..=50: it bounds memory and checkpoints. Only of a
    /// new instance.
    pub index_percent: u32,
    /// Bytes of pages of the index in memory at most; default: all. Beyond it pages are written to media, and read when somebody
    /// asks for one of their keys.
    pub index_cache_bytes: Option<u64>,
    /// Bytes of entries of a page of the index, 266..=4096; default: 4096, and 1024 with `index_cache_bytes`.
    pub index_page_bytes: Option<u32>,
    /// Bytes written between two checkpoints; default: a sixteenth of the instance.
    pub checkpoint_interval_bytes: Option<u64>,
    /// Free chunks, beyond those that garbage collection itself may need, at which it begins; default: twice the chunks that a
    /// stream is striped over, and one.
    pub gc_start_chunks: Option<u32>,
    /// Entries of a batch at most, 1..=128: there is room for the records of a whole batch in the write buffer.
    pub batch_entries_max: u32,
    /// Write units of the write buffer, at least 1, beside those of a batch and those that the drive cannot read back yet;
    /// default: 32, and two for each chunk that a stream is striped over.
    pub write_buffer_units: Option<u32>,
    /// Writes of a parallel unit that are with the drive at a time, so that reads meet no long row of them; `None` for no bound.
    pub writes_per_unit: Option<u32>,
    /// Resets of the same.
    pub resets_per_unit: Option<u32>,
    /// How victims are chosen.
    pub victim: VictimPolicy,
    /// Resets a chunk of records may lag behind the most worn chunk before its content is moved; 0 for any number.
    pub wear_spread: u32,
    /// Which reads ask the drive for plane mode.
    pub plane_reads: PlaneReads,
    /// Seed of the instance's name and of random choices.
    pub seed: u64,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            over_provisioning_percent: OVER_PROVISIONING_PERCENT,
            index_percent: INDEX_PERCENT,
            index_cache_bytes: None,
            index_page_bytes: None,
            checkpoint_interval_bytes: None,
            gc_start_chunks: None,
            batch_entries_max: BATCH_ENTRIES_MAX,
            write_buffer_units: None,
            writes_per_unit: Some(WRITES_PER_UNIT),
            resets_per_unit: Some(RESETS_PER_UNIT),
            victim: VictimPolicy::Greedy,
            wear_spread: WEAR_SPREAD,
            plane_reads: PlaneReads::default(),
            seed: 1,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "over_provisioning_percent" => self.over_provisioning_percent = small(name, value)?,
            "index_percent" => self.index_percent = small(name, value)?,
            "index_cache_bytes" => self.index_cache_bytes = Some(number(name, value)?),
            "index_page_bytes" => self.index_page_bytes = Some(small(name, value)?),
            "checkpoint_interval_bytes" => self.checkpoint_interval_bytes = Some(number(name, value)?),
            "gc_start_chunks" => self.gc_start_chunks = Some(small(name, value)?),
            "batch_entries_max" => self.batch_entries_max = small(name, value)?,
            "write_buffer_units" => self.write_buffer_units = Some(small(name, value)?),
            "writes_per_unit" => self.writes_per_unit = Some(small(name, value)?),
            "resets_per_unit" => self.resets_per_unit = Some(small(name, value)?),
            "victim" => self.victim = victim(value)?,
            "wear_spread" => self.wear_spread = small(name, value)?,
            "plane_reads" => self.plane_reads = value.parse()?,
            "seed" => self.seed = number(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            _ => {
                return Err(format!(
                    "kv has no option \"{name}\"; its options are over_provisioning_percent, index_percent, \
                     index_cache_bytes, index_page_bytes, checkpoint_interval_bytes, gc_start_chunks, batch_entries_max, \
                     write_buffer_units, writes_per_unit, resets_per_unit, victim, wear_spread, plane_reads and seed"
                ));
            }
        }
        Ok(())
    }

    /// Resets a chunk may lag; `None` for any number.
    #[must_use]
    pub fn wear_bound(&self) -> Option<u32> {
        (self.wear_spread > 0).then_some(self.wear_spread)
    }

    /// Bytes of entries of a page of the index.
    #[must_use]
    pub const fn page_bytes(&self) -> u32 {
        match (self.index_page_bytes, self.index_cache_bytes) {
            (Some(bytes), _) => bytes,
            (None, Some(_)) => PAGE_BYTES_BOUNDED,
            (None, None) => PAGE_BYTES,
        }
    }

    /// What is wrong with the numbers on their own.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        for (name, found, most) in [
            ("over_provisioning_percent", self.over_provisioning_percent, PERCENT_MAX),
            ("index_percent", self.index_percent, INDEX_PERCENT_MAX),
            ("batch_entries_max", self.batch_entries_max, BATCH_ENTRIES_MAX),
        ] {
            check_within(name, found, most)?;
        }
        if let Some(bytes) = self.index_page_bytes {
            let [least, most] = INDEX_PAGE_BYTES;
            if !(least..=most).contains(&bytes) {
                return Err(format!("index_page_bytes must be {least} to {most}, not {bytes}"));
            }
        }
        for (name, count) in [
            ("gc_start_chunks", self.gc_start_chunks),
            ("write_buffer_units", self.write_buffer_units),
            ("writes_per_unit", self.writes_per_unit),
            ("resets_per_unit", self.resets_per_unit),
        ] {
            check_above_zero(name, count.map(u64::from))?;
        }
        check_above_zero("checkpoint_interval_bytes", self.checkpoint_interval_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_say_what_would_be_right() {
        let mut options = Options::default();
        for (name, value) in [("index_percent", "7"), ("victim", "cost-benefit"), ("wear_spread", "4")] {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.index_percent, options.victim), (7, VictimPolicy::CostBenefit));
        assert_eq!((options.wear_bound(), Options::default().wear_bound()), (Some(4), None));
        assert_eq!(options.check(), Ok(()));
        options.set("plane_reads", "never").expect("a sound option");
        assert_eq!(options.plane_reads, PlaneReads::Never);
        for (name, value, says) in [
            ("size", "1", "no option \"size\""),
            ("seed", "-1", "whole number"),
            ("victim", "oldest", "greedy"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        for (name, value, says) in [
            ("over_provisioning_percent", "0", "1 to 95"),
            ("index_percent", "51", "1 to 50"),
            ("index_page_bytes", "265", "266 to 4096"),
            ("checkpoint_interval_bytes", "0", "at least 1"),
            ("gc_start_chunks", "0", "at least 1"),
            ("batch_entries_max", "0", "1 to 128"),
            ("write_buffer_units", "0", "at least 1"),
            ("writes_per_unit", "0", "at least 1"),
            ("resets_per_unit", "0", "at least 1"),
        ] {
            let mut options = Options::default();
            options.set(name, value).expect("a number");
            let error = options.check().expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        let both = Options { wear_spread: 4, index_cache_bytes: Some(0), ..Options::default() };
        assert_eq!(both.check(), Ok(()), "pages of the index lie in chunks that wear like others");
    }
}
