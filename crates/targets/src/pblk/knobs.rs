//! Knobs: constants of scale, which nobody needs to turn, but tests do (as `FoundationDB` calls its own).
//!
//! A constant that is larger than anything a small drive has hides what happens beyond it: a second shard of the map, a full
//! table of discards, a queue without room. The simulator draws small ones. Deliberately not here: choices a user has
//! (`options`).

use super::pieces::PIECE_BYTES_MIN;
use ocssd_ftl::ShardSize;

/// The knobs of an instance. None is on media but for the first two, and those are written beside what they shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Blocks of a shard of the map: what takes memory, and goes into a checkpoint, as a whole.
    pub map_shard: ShardSize,
    /// Content bytes used of each sector of a checkpoint; `None` for all.
    pub checkpoint_piece_bytes: Option<u32>,
    /// Blocks discarded before other work gets its turn (chosen: some hundred microseconds).
    pub discard_slice_blocks: u32,
    /// Records of discards kept before a checkpoint is asked for and further discards wait (chosen: about 1 MiB of table).
    pub discard_records_max: u32,
    /// Requests at once: what a queue depth of 1024 in a few jobs needs (chosen).
    pub requests_max: u32,
    /// Commands at once: what the deepest NVMe queue pairs of a host take (chosen).
    pub commands_max: u32,
    /// Units of metadata written at a time: heads, tails and checkpoints have so many buffers each (chosen: as deep as a
    /// channel's queue).
    pub metadata_buffers: u32,
    /// Reads of garbage collection at a time (pblk allowed 128 of 64 sectors; half of it keeps as many units busy).
    pub gc_reads_max: u32,
    /// Weak sectors waiting to be moved (chosen; more are found again when they are read again).
    pub refresh_max: u32,
    /// Most lines emptied at a time (chosen: what they hold together fills units, whatever their number).
    pub draining_lines_max: u32,
    /// Commands of a batch during mount (chosen: enough for every unit of a large drive).
    pub mount_batch: u32,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            map_shard: ShardSize::default(),
            checkpoint_piece_bytes: None,
            discard_slice_blocks: 1 << 16,
            discard_records_max: 16_384,
            requests_max: 4096,
            commands_max: COMMANDS_MAX,
            metadata_buffers: 32,
            gc_reads_max: 64,
            refresh_max: 1024,
            draining_lines_max: 8,
            mount_batch: MOUNT_BATCH_MAX,
        }
    }
}

/// Most commands: as many as there are places for.
const COMMANDS_MAX: u32 = crate::flight::COMMANDS_MAX;
/// Most commands of a batch during mount.
const MOUNT_BATCH_MAX: u32 = 256;
/// Most of what takes memory for each (chosen: a large drive's, many times).
const MANY: u32 = 1 << 20;

/// A knob that is a number: its name, its bounds, and where it is.
struct Dial {
    name: &'static str,
    least: u32,
    most: u32,
    place: fn(&mut Knobs) -> &mut u32,
}

/// All that are numbers.
const DIALS: [Dial; 9] = [
    Dial {
        name: "discard_slice_blocks",
        least: 1,
        most: u32::MAX,
        place: |knobs| &mut knobs.discard_slice_blocks,
    },
    Dial { name: "discard_records_max", least: 1, most: MANY, place: |knobs| &mut knobs.discard_records_max },
    Dial { name: "requests_max", least: 1, most: 1 << 16, place: |knobs| &mut knobs.requests_max },
    Dial { name: "commands_max", least: 4, most: COMMANDS_MAX, place: |knobs| &mut knobs.commands_max },
    Dial { name: "metadata_buffers", least: 1, most: 1 << 10, place: |knobs| &mut knobs.metadata_buffers },
    Dial { name: "gc_reads_max", least: 1, most: 1 << 10, place: |knobs| &mut knobs.gc_reads_max },
    Dial { name: "refresh_max", least: 1, most: MANY, place: |knobs| &mut knobs.refresh_max },
    Dial {
        name: "draining_lines_max",
        least: 2,
        most: 1 << 10,
        place: |knobs| &mut knobs.draining_lines_max,
    },
    Dial { name: "mount_batch", least: 1, most: MOUNT_BATCH_MAX, place: |knobs| &mut knobs.mount_batch },
];

impl Knobs {
    /// Reads one `name=value`; `None` if there is no knob of that name.
    ///
    /// # Errors
    /// A sentence that says what the value should be.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        let number = value.parse::<u32>().ok();
        let sentence = |expected: &str| format!("{name} should be {expected}, but is \"{value}\"");
        match name {
            "map_shard_blocks" => {
                let shard = number.and_then(ShardSize::new);
                let set = shard.ok_or_else(|| sentence("a power of two from 32 to 65536"));
                Some(set.map(|shard| self.map_shard = shard))
            }
            // The second is the name it had first.
            "checkpoint_piece_bytes" | "snapshot_piece_bytes" => {
                let bytes = number
                    .filter(|bytes| (PIECE_BYTES_MIN..=MANY).contains(bytes) && bytes.is_multiple_of(8));
                let expected = || sentence(&format!("a multiple of 8 from {PIECE_BYTES_MIN} to {MANY}"));
                Some(bytes.ok_or_else(expected).map(|bytes| self.checkpoint_piece_bytes = Some(bytes)))
            }
            _ => {
                let dial = DIALS.iter().find(|dial| dial.name == name)?;
                let sound = number.filter(|number| (dial.least..=dial.most).contains(number));
                let set = sound
                    .ok_or_else(|| sentence(&format!("a whole number from {} to {}", dial.least, dial.most)));
                Some(set.map(|number| *(dial.place)(self) = number))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_read_within_bounds_and_every_default_is_within_them() {
        let mut knobs = Knobs::default();
        for dial in &DIALS {
            let default = *(dial.place)(&mut knobs);
            assert!((dial.least..=dial.most).contains(&default), "{}: {default}", dial.name);
            assert_eq!(knobs.set(dial.name, &dial.least.to_string()), Some(Ok(())));
            assert_eq!(*(dial.place)(&mut knobs), dial.least, "{}", dial.name);
            let error = knobs.set(dial.name, &(u64::from(dial.most) + 1).to_string());
            assert!(error.is_some_and(|set| set.is_err_and(|error| error.contains("from"))), "{}", dial.name);
        }
        assert_eq!(knobs.set("map_shard_blocks", "64"), Some(Ok(())));
        for name in ["snapshot_piece_bytes", "checkpoint_piece_bytes"] {
            assert_eq!(knobs.set(name, "256"), Some(Ok(())));
        }
        assert_eq!((knobs.map_shard.sectors(), knobs.checkpoint_piece_bytes), (64, Some(256)));
        for (name, value) in
            [("map_shard_blocks", "48"), ("checkpoint_piece_bytes", "12"), ("refresh_max", "many")]
        {
            assert!(knobs.set(name, value).is_some_and(|set| set.is_err()), "{name}={value}");
        }
        assert_eq!(knobs.set("polish", "1"), None);
    }
}
