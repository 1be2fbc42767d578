//! What a job does and where: directions, block sizes, amounts, and how offsets are chosen.
//!
//! Plain data with fio's words; owned by [`JobOptions`](super::JobOptions) and read by whoever runs the job.
//! Deliberately not here: reading text, and drawing an offset.

/// One value per data direction, as fio's `read,write,trim` triples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDirection<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> ByDirection<T> {
    /// The same value for all three directions.
    pub fn all(value: T) -> Self
    where
        T: Clone,
    {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }

    /// The three values in fio's order: read, write, trim.
    pub fn as_array(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }
}

/// Which operations a job issues (fio `rw`, without its order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Only trims.
    Trim,
    /// Reads and writes, mixed by `rwmixread`.
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

impl Operations {
    /// Whether the job issues reads.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether the job issues writes.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite | Self::TrimWrite)
    }

    /// Whether the job issues trims.
    #[must_use]
    pub const fn trims(self) -> bool {
        matches!(self, Self::Trim | Self::TrimWrite)
    }

    /// Whether the job changes the media.
    #[must_use]
    pub const fn changes_media(self) -> bool {
        self.writes() || self.trims()
    }
}

/// The order of offsets (the rest of fio `rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after another; `skip_bytes` are left out after each I/O (`rw=read:4k`).
    Sequential {
        /// Bytes left out between the end of one I/O and the start of the next.
        skip_bytes: u64,
    },
    /// One before another, from the end (`rw=read:-8k`): each I/O starts this far before the end of the last one.
    Backwards {
        /// Bytes from the end of an I/O back to the start of the next; above 0.
        back_bytes: u64,
    },
    /// Drawn; a new offset is drawn after every `ios_per_offset` I/Os (`rw=randread:8`), sequential between.
    Random {
        /// At least 1.
        ios_per_offset: u32,
    },
}

/// fio `nrfiles`, `openfiles` and `file_service_type`: the region as files of the same length, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSet {
    /// How many, 1 to 65 536; with one there is nothing to choose.
    pub count: u32,
    /// How many are in use at a time: another is opened when one was gone through; at least 1, at most `count`.
    pub open: u32,
    /// Which of them is next.
    pub order: FileOrder,
    /// I/Os in a file before the next is chosen; at least 1.
    pub ios_per_file: u32,
}

impl Default for FileSet {
    fn default() -> Self {
        Self { count: 1, open: 1, order: FileOrder::RoundRobin, ios_per_file: 1 }
    }
}

/// Which open file is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOrder {
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
    /// The same until it was gone through.
    Sequential,
}

/// fio `exit_what`: which jobs end when one with `exitall` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// The others of its group, which is what `exitall` says by itself.
    #[default]
    Group,
    /// All that run between the same two stonewalls, of whatever group.
    Stonewall,
    /// All of the run; those that have not started never do.
    All,
}

/// fio `io_submit_mode`: who submits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitMode {
    /// The job itself: an engine that is a synchronous one has one I/O in flight, and an I/O that starts late starts late.
    #[default]
    Inline,
    /// Threads of their own, `iodepth` of them: they wait for what is slow, so every engine has `iodepth` I/Os in flight, and
    /// latency under a rate counts from when the rate let the I/O start.
    Offload,
}

/// fio `rw`: what is done and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Which operations.
    pub operations: Operations,
    /// In which order.
    pub order: Order,
}

impl Pattern {
    /// Whether offsets are drawn.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(self.order, Order::Random { .. })
    }

    /// fio's word for it, without the number after the colon; what fio's JSON shows.
    #[must_use]
    pub const fn fio_word(self) -> &'static str {
        match (self.operations, self.is_random()) {
            (Operations::Read, false) => "read",
            (Operations::Read, true) => "randread",
            (Operations::Write, false) => "write",
            (Operations::Write, true) => "randwrite",
            (Operations::Trim, false) => "trim",
            (Operations::Trim, true) => "randtrim",
            (Operations::ReadWrite, false) => "rw",
            (Operations::ReadWrite, true) => "randrw",
            (Operations::TrimWrite, false) => "trimwrite",
            (Operations::TrimWrite, true) => "randtrimwrite",
        }
    }
}

/// One row of `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitEntry {
    /// The block size in bytes, at least 1.
    pub bytes: u64,
    /// Its share of the I/Os in hundredths of a percent; all entries of a split add up to 10 000.
    pub share_basis_points: u32,
}

/// The block sizes of one direction (fio `bs`, `bsrange`, `bssplit`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// Every I/O has this many bytes (at least 1).
    Fixed(u64),
    /// Uniform between the two, in steps of the smaller one as fio does; `1 <= min_bytes <= max_bytes`.
    Range {
        /// The smallest, in bytes.
        min_bytes: u64,
        /// The largest, in bytes.
        max_bytes: u64,
    },
    /// Drawn by share; 1 to 64 entries.
    Split(Vec<SplitEntry>),
}

impl BlockSizes {
    /// The smallest block in bytes.
    #[must_use]
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min_bytes, .. } => *min_bytes,
            Self::Split(entries) => entries.iter().map(|entry| entry.bytes).min().unwrap_or(1),
        }
    }

    /// The largest block in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { max_bytes, .. } => *max_bytes,
            Self::Split(entries) => entries.iter().map(|entry| entry.bytes).max().unwrap_or(1),
        }
    }
}

/// A length or position on the target, as the user gave it; the engine knows the target's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the target, 0 to 100.
    Percent(u8),
    /// Zones (`2z`) of `zonesize`, or of the target's own zone size.
    Zones(u64),
}

/// fio `random_distribution`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform (`random`).
    Uniform,
    /// Zipf with this theta: above 0, not 1.
    Zipf(f64),
    /// Pareto with this power: between 0 and 1, both excluded.
    Pareto(f64),
    /// Normal around the middle, with this deviation in percent of the range: at least 0, below 100.
    Normal(f64),
    /// Parts of the range, each with its own share of the I/Os, evenly within.
    Zoned(ZoneShares),
}

/// A part of the range and how much of the I/O goes there (`50/5`), both in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneShare {
    /// Share of the I/Os.
    pub access_percent: u8,
    /// Share of the range.
    pub size_percent: u8,
}

/// Most parts of a zoned distribution (chosen: JESD219 has 3; fio takes 256).
pub const ZONE_SHARES_MAX: usize = 16;

/// The parts, one behind the other from the start of the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneShares {
    count: usize,
    shares: [ZoneShare; ZONE_SHARES_MAX],
}

impl ZoneShares {
    /// These parts.
    ///
    /// # Errors
    /// A sentence, if there are none or too many, if the accesses are not 100 %, or if the sizes are more than that.
    pub fn new(parts: &[ZoneShare]) -> Result<Self, String> {
        if parts.is_empty() || parts.len() > ZONE_SHARES_MAX {
            return Err(format!(
                "expected 1 to {ZONE_SHARES_MAX} parts, as zoned:60/10:40/90, but found {}",
                parts.len()
            ));
        }
        let sum = |of: fn(&ZoneShare) -> u8| parts.iter().map(|part| u32::from(of(part))).sum::<u32>();
        let (accesses, sizes) = (sum(|part| part.access_percent), sum(|part| part.size_percent));
        if accesses != 100 {
            return Err(format!(
                "expected shares of access that add up to 100 %, but they add up to {accesses}"
            ));
        }
        if sizes > 100 || parts.iter().any(|part| part.size_percent == 0 && part.access_percent > 0) {
            return Err(format!(
                "expected sizes of at least 1 % that add up to at most 100 %, but they add up to {sizes}"
            ));
        }
        let mut shares = [ZoneShare::default(); ZONE_SHARES_MAX];
        shares[..parts.len()].copy_from_slice(parts);
        Ok(Self { count: parts.len(), shares })
    }

    /// The parts.
    #[must_use]
    pub fn as_slice(&self) -> &[ZoneShare] {
        &self.shares[..self.count]
    }

    /// The places, of `places`, that the draw of a percent goes to: the first, and how many; at least one.
    ///
    /// # Panics
    /// If `percent` is 100 or more, or there is no place.
    #[must_use]
    pub fn range(&self, percent: u64, places: u64) -> (u64, u64) {
        assert!(percent < 100 && places > 0, "{percent} of 100, {places} places");
        let (mut accesses, mut before) = (0, 0);
        for part in self.as_slice() {
            accesses += u64::from(part.access_percent);
            let end = before + u64::from(part.size_percent);
            if percent < accesses {
                let at = |percent: u64| {
                    u64::try_from(u128::from(places) * u128::from(percent) / 100).expect("a part of them")
                };
                let first = at(before).min(places - 1);
                return (first, at(end).saturating_sub(first).max(1));
            }
            before = end;
        }
        unreachable!("accesses add up to 100 %")
    }
}

/// fio `rate_process`: how the start times of rated I/O are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Equal gaps.
    Linear,
    /// Exponential gaps (a Poisson process), independent of completions.
    Poisson,
}

/// fio `thinktime` and `thinktime_blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// The pause; zero is no pause.
    pub pause: ocssd_base::Nanos,
    /// After how many I/Os it is taken, at least 1.
    pub blocks: u32,
}

/// fio `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneMode {
    /// The target has no zones for this job.
    None,
    /// Writes are sequential within zones; random I/O chooses the zone.
    Zbd,
    /// I/O stays in one part of the region until enough was transferred, then goes to the next.
    Strided,
}
