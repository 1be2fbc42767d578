//! Everything that makes one virtual drive differ from another, checked as a whole before anything is built.
//!
//! Deliberately not here: reading it from a file (`drive`), and the numbers of known drives (`presets`).

use ocssd_base::{Nanos, Problems};
use ocssd_lightnvm::{Geometry, Payload};

/// Bits in a cell: how often a page type repeats, and the usual number of times in the lists below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// One bit.
    Slc,
    /// Two bits: lower and upper pages.
    Mlc,
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

/// Which reads sense a page of every plane together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneReads {
    /// Those whose command asks for it (OCSSD 1.2's plane mode). Any other read senses one page of one plane after the
    /// other, and the unit begins nothing else before a page's data has left.
    Asked,
    /// Every read: the controller senses page rows, whatever is asked.
    Always,
}

/// Which revision of the specification the controller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// OCSSD 1.2: planes, blocks and pages, bad block table.
    V12,
    /// OCSSD 2.0: chunks.
    V20,
}

/// The NAND of one parallel unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaConfig {
    /// Cell type.
    pub cell: CellType,
    /// Planes sensed or programmed together, 1..=4.
    pub planes: u32,
    /// Sectors of a flash page of one plane: what one array operation moves per plane, and what tears in a power cut.
    pub sectors_per_page: u32,
    /// Which reads sense a page of every plane together.
    pub plane_reads: PlaneReads,
    /// Time to sense a page, by page type; page row `r` uses entry `r % len`.
    pub read: Vec<Nanos>,
    /// Pages that take longer, whatever their type, most first: which ones follows from the drive's seed. At most
    /// [`SLOW_READS_MAX`]; shares fall and times rise.
    pub slow_read: Vec<SlowRead>,
    /// Time to program a write unit (WS_OPT), by unit; unit `u` of a chunk uses entry `u % len`.
    pub program: Vec<Nanos>,
    /// Time to reset a chunk.
    pub erase: Nanos,
    /// Page registers: with 2, one page moves over the channel while the array works on another (cache read and
    /// cache program); with 1, nothing overlaps.
    pub registers: u32,
}

/// Pages that are slow to sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRead {
    /// The slowest so many pages, in parts per billion.
    pub share: u32,
    /// Time to sense one of them, at least.
    pub time: Nanos,
}

/// The bus a group's parallel units share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Data rate.
    pub bytes_per_second: u64,
    /// Command and address cycles of one transfer.
    pub command: Nanos,
    /// Sectors after which a transfer gives the channel to whoever waits longest, and queues again behind them; 0 if it keeps
    /// the channel until all of it has moved.
    pub grant_sectors: u32,
}

/// The host interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Ceiling from the drive to the host.
    pub read_bytes_per_second: u64,
    /// Ceiling from the host to the drive.
    pub write_bytes_per_second: u64,
    /// Controller and host interface time of every command, once.
    pub command: Nanos,
}

/// The controller's write-back cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Sectors it holds; 0 for none: writes complete when programmed.
    pub sectors: u32,
    /// Its content survives a power cut.
    pub power_loss_protection: bool,
}

/// Which of the waiting operations a parallel unit does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// In the order they came.
    Fifo,
    /// Reads first, and what is in progress is suspended for them.
    ReadPriority {
        /// What suspending a reset costs, and how often one may be.
        erase: Suspension,
        /// The same for the program of a write unit.
        program: Suspension,
        /// Reads that may pass a waiting write or reset, or a suspended one, before it goes first.
        bypasses_max: u32,
    },
}

/// How an operation of the array makes way for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Time from the decision until the array is free. An operation that ends sooner is not suspended.
    pub suspend: Nanos,
    /// Time a resumed operation loses.
    pub resume: Nanos,
    /// How often one operation may be suspended; 0 for never.
    pub suspends_max: u32,
}

impl Suspension {
    /// Of an operation that is never suspended.
    pub const NEVER: Self = Self { suspend: Nanos::ZERO, resume: Nanos::ZERO, suspends_max: 0 };
}

/// How the media age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearConfig {
    /// Resets a chunk survives; the next one takes it offline. The wear index is `cycles * 255 / endurance`.
    pub endurance: u32,
    /// Resets behind every chunk of a freshly formatted drive.
    pub initial_cycles: u32,
}

/// Seeded faults: how often, in parts per billion. A range is new media to worn-out media, growing with the square of
/// the wear index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultConfig {
    /// Chunks offline from the factory.
    pub factory_bad: u32,
    /// Sectors written that cannot be read back, new media.
    pub unrecovered_read: u32,
    /// The same, worn-out media.
    pub unrecovered_read_worn: u32,
    /// Sectors written that read with High ECC, new media.
    pub high_ecc: u32,
    /// The same, worn-out media.
    pub high_ecc_worn: u32,
    /// Write units that fail and are skipped (2F0h).
    pub write_next_unit: u32,
    /// Write units at which the chunk closes early (2F1h).
    pub early_close: u32,
    /// Resets that fail and take the chunk offline (2C0h).
    pub reset_failure: u32,
    /// Page senses that take `spike` longer.
    pub latency_spike: u32,
    /// How much longer.
    pub spike: Nanos,
    /// Reads that fail as a whole, with a status that says nothing of a sector ([`crate::FailedOp::statuses`]).
    pub failed_read: u32,
    /// Writes and copies that fail as a whole, and changed nothing.
    pub failed_write: u32,
    /// Resets that fail as a whole, and changed nothing.
    pub failed_reset: u32,
    /// Sectors that cannot be read in one try (281h), and in the next they can.
    pub transient_read: u32,
    /// Flushes that fail: what they should have covered is on its way to the media as before.
    pub failed_flush: u32,
    /// Resets in the array at a power cut that stay half done: the chunk is in the state it had, and some of its pages cannot
    /// be read.
    pub half_reset: u32,
    /// Units torn by a power cut that take the unit before them in the chunk along: its pages share their cells.
    pub paired_loss: u32,
    /// Sectors whose read returns the first sector of their chunk, as a success; in the next try it is the right one.
    pub misdirected_read: u32,
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the preset or of the model, for people.
    pub model: String,
    /// Shape and rules.
    pub geometry: Geometry,
    /// What the controller speaks.
    pub revision: Revision,
    /// NAND.
    pub media: MediaConfig,
    /// Channels.
    pub channel: ChannelConfig,
    /// Host interface.
    pub link: LinkConfig,
    /// Write-back cache.
    pub cache: CacheConfig,
    /// Scheduler of a parallel unit.
    pub scheduler: Scheduler,
    /// Ageing.
    pub wear: WearConfig,
    /// Seeded faults.
    pub faults: FaultConfig,
    /// Commands in flight before the drive refuses more.
    pub queue_depth: u32,
    /// DULBE (feature 05h, bit 16) after power-on, the feature's default and saved value: reads of unwritten sectors fail.
    /// Hosts change it with Set Features; Linux never does.
    pub dulbe: bool,
    /// What stands for a sector's content.
    pub payload: Payload,
    /// Where factory-bad chunks and all faults come from.
    pub seed: u64,
}

/// Most kinds of slow pages (chosen: a distribution's tail by factors of ten has fewer).
pub const SLOW_READS_MAX: usize = 8;
/// Most commands in flight: NVMe queues hold up to 65535 entries.
const QUEUE_DEPTH_MAX: u32 = 65_535;
/// One whole, in parts per billion.
const BILLION: u32 = 1_000_000_000;

impl Config {
    /// Checks every number.
    ///
    /// # Errors
    /// Each problem with its field, its value and what would be valid.
    pub fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        self.geometry.check(&mut problems);
        self.check_media(&mut problems);
        self.check_transfer(&mut problems);
        self.check_faults(&mut problems);
        self.check_scheduler(&mut problems);
        let depth = self.queue_depth;
        problems.require((1..=QUEUE_DEPTH_MAX).contains(&depth), "queue_depth", depth, "must be 1 to 65535");
        problems.into_result()
    }

    fn check_media(&self, problems: &mut Problems) {
        let media = &self.media;
        problems.require((1..=4).contains(&media.planes), "media.planes", media.planes, "must be 1 to 4");
        let page = media.sectors_per_page;
        problems.require(page >= 1, "media.sectors_per_page", page, "must be at least 1");
        let row = media.planes.saturating_mul(page);
        if row > 0 {
            let expected =
                format!("must be a multiple of planes * sectors_per_page ({row}), a page of every plane");
            let unit = self.geometry.ws_opt;
            problems.require(unit.is_multiple_of(row), "ws_opt", unit, &expected);
            let minimum = self.geometry.ws_min;
            let expected =
                format!("must be a multiple of sectors_per_page ({page}), what one array operation writes");
            problems.require(page > 0 && minimum.is_multiple_of(page), "ws_min", minimum, &expected);
        }
        for (field, times) in [("media.read", &media.read), ("media.program", &media.program)] {
            let expected = "must be 1 to 64 times, one per page type";
            problems.require(
                (1..=64).contains(&times.len()),
                field,
                format!("{} times", times.len()),
                expected,
            );
            let longest = times.iter().copied().max().unwrap_or_default();
            problems.require(longest <= TIME_MAX, field, longest, "must be at most 60 s");
        }
        let slow = &media.slow_read;
        let rises = slow.windows(2).all(|pair| pair[1].share < pair[0].share && pair[1].time > pair[0].time);
        let sound = slow.iter().all(|slow| slow.share <= BILLION && slow.time <= TIME_MAX);
        problems.require(
            slow.len() <= SLOW_READS_MAX && rises && sound,
            "media.slow_read",
            format!("{} shares", slow.len()),
            "must be at most 8 shares of at most 100 %, each smaller and slower than the one before it, up to 60 s",
        );
        problems.require(media.erase <= TIME_MAX, "media.erase", media.erase, "must be at most 60 s");
        problems.require(
            (1..=4).contains(&media.registers),
            "media.registers",
            media.registers,
            "must be 1 to 4",
        );
    }

    fn check_transfer(&self, problems: &mut Problems) {
        let rates = [
            ("channel.bytes_per_second", self.channel.bytes_per_second),
            ("link.read_bytes_per_second", self.link.read_bytes_per_second),
            ("link.write_bytes_per_second", self.link.write_bytes_per_second),
        ];
        for (field, rate) in rates {
            let expected = "must be 1000000 (1 MB/s) to 1000000000000 (1 TB/s)";
            problems.require((1_000_000..=1_000_000_000_000).contains(&rate), field, rate, expected);
        }
        let cache = self.cache.sectors;
        let expected = "must be 0 (no cache) or hold one vector command, 64 sectors, and at most 16777216";
        problems.require(cache == 0 || (64..=16_777_216).contains(&cache), "cache.sectors", cache, expected);
        for (field, time) in [("channel.command", self.channel.command), ("link.command", self.link.command)]
        {
            problems.require(time <= TIME_MAX, field, time, "must be at most 60 s");
        }
    }

    fn check_scheduler(&self, problems: &mut Problems) {
        let Scheduler::ReadPriority { erase, program, .. } = self.scheduler else { return };
        for (field, time) in [
            ("scheduler.suspend", erase.suspend),
            ("scheduler.resume", erase.resume),
            ("scheduler.program_suspend", program.suspend),
            ("scheduler.program_resume", program.resume),
        ] {
            problems.require(time <= TIME_MAX, field, time, "must be at most 60 s");
        }
    }

    fn check_faults(&self, problems: &mut Problems) {
        let faults = &self.faults;
        let rates = [
            ("faults.factory_bad", faults.factory_bad),
            ("faults.unrecovered_read", faults.unrecovered_read),
            ("faults.unrecovered_read_worn", faults.unrecovered_read_worn),
            ("faults.high_ecc", faults.high_ecc),
            ("faults.high_ecc_worn", faults.high_ecc_worn),
            ("faults.write_next_unit", faults.write_next_unit),
            ("faults.early_close", faults.early_close),
            ("faults.reset_failure", faults.reset_failure),
            ("faults.latency_spike", faults.latency_spike),
            ("faults.transient_read", faults.transient_read),
            ("faults.failed_read", faults.failed_read),
            ("faults.failed_write", faults.failed_write),
            ("faults.failed_reset", faults.failed_reset),
            ("faults.failed_flush", faults.failed_flush),
            ("faults.half_reset", faults.half_reset),
            ("faults.paired_loss", faults.paired_loss),
            ("faults.misdirected_read", faults.misdirected_read),
        ];
        for (field, rate) in rates {
            problems.require(rate <= BILLION, field, rate, "must be 0 to 1000000000 parts per billion");
        }
        let endurance = self.wear.endurance;
        problems.require(endurance >= 1, "wear.endurance", endurance, "must be at least 1 reset");
        let cycles = self.wear.initial_cycles;
        let expected = format!("must be at most wear.endurance ({endurance})");
        problems.require(cycles <= endurance, "wear.initial_cycles", cycles, &expected);
        problems.require(faults.spike <= TIME_MAX, "faults.spike", faults.spike, "must be at most 60 s");
    }

    /// Sectors of one page row: a page of every plane, sensed together.
    #[must_use]
    pub const fn row_sectors(&self) -> u32 {
        self.media.planes * self.media.sectors_per_page
    }
}

/// Chosen: no operation of any known medium takes as long; it keeps sums of times far from overflow.
const TIME_MAX: Nanos = Nanos::from_secs(60);
