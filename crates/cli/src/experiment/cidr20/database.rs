//! An LSM tree on a target with tables, on the paper's drive, a sixteenth of its size.
//!
//! Deliberately not here: what is run on it, and what the target is.

use super::ground::Ground;
use super::rig::{self, Rig};
use crate::interrupt::{self, Interrupted};
use anyhow::{anyhow, bail};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, RunEnd};
use ocssd_flash::FlashCounters;
use ocssd_lightnvm::interface::table::{TableLimits, TableTarget};
use ocssd_lightnvm::{Geometry, Payload, TargetId};
use ocssd_workload::lsm::{Lsm, LsmOptions};

/// How much smaller than the paper's drive and database everything is that has bytes (chosen: the grid runs in minutes).
pub const SMALLER: u64 = 16;
/// Keys of a thread: 3 GB of values of 1 KiB (the scripts behind the figures), made smaller.
pub const KEYS: u64 = 3_145_728 / SMALLER;
/// A second of the paper's, made smaller, in milliseconds.
pub const SECOND_MS: u64 = 62;
/// What a program of a write unit of 96 KiB takes (chosen: TLC): 48 MB/s of a unit.
pub const PROGRAM: Nanos = Nanos::from_millis(2);
/// Chunks of a unit of the paper's drive here.
pub const CHUNKS: u32 = 64;
/// Virtual time between two looks at a run.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// A database to be made.
#[derive(Clone)]
pub struct Setup {
    /// What its tables lie on.
    pub ground: Ground,
    /// Chunks of each of the drive's 32 units.
    pub chunks_per_unit: u32,
    /// The drive resets chunks that are open; the paper's does not.
    pub has_early_reset: bool,
    /// All flags.
    pub flags: String,
}

/// The flags of the scripts behind the paper's figures, made smaller, and `more`: memtables of 24 MB, two to a flush, tables of
/// 768 MB, triggers of 1, 16 and 24. The target is told how long tables will be if it `has_size_hint`; the paper's environment is
/// not.
pub fn flags_of_paper(block_bytes: u64, has_size_hint: bool, more: &str) -> String {
    format!(
        "--key_size=16 --value_size=1024 --bloom_bits=10 --num_levels=6 --block_size={block_bytes} \
         --write_buffer_size={} --max_write_buffer_number=64 --min_write_buffer_number_to_merge=2 \
         --target_file_size_base={} --max_bytes_for_level_base={} --level0_file_num_compaction_trigger=1 \
         --level0_slowdown_writes_trigger=16 --level0_stop_writes_trigger=24 --max_background_compactions=40 \
         --writable_file_max_buffer_size={} --size_hint={} --stats_interval_ms={SECOND_MS} {more}",
        (24 << 20) / SMALLER,
        (768 << 20) / SMALLER,
        (768 << 20) / SMALLER,
        (24 << 20) / SMALLER,
        u32::from(has_size_hint),
    )
}

/// A run that has ended, and the target it left.
pub struct Ran {
    /// The tree.
    pub lsm: Lsm,
    /// What drive and target had counted at the look after the beginning of each benchmark.
    pub begun: Vec<Counted>,
    rig: Rig<dyn TableTarget>,
}

/// What drive and target had counted at a time.
pub struct Counted {
    /// The drive.
    pub flash: FlashCounters,
    /// Commands that the target gave the drive.
    pub commands: u64,
    /// Requests that tables on blocks gave the block target below; 0 without one.
    pub block_requests: u64,
    /// Sectors of fill behind what was deleted.
    pub filled: u64,
    /// Sectors that the block target's garbage collection wrote; 0 without one.
    pub collected: u64,
}

impl Counted {
    fn now(rig: &Rig<dyn TableTarget>) -> Self {
        Self {
            flash: rig.device().counters(),
            commands: rig::counter(rig, "commands"),
            block_requests: rig::counter(rig, "block_requests"),
            filled: rig::counter(rig, "closed_by_padding_sectors"),
            collected: rig::counter(rig, "gc_written_sectors"),
        }
    }

    /// Sectors programmed, copies within the drive included.
    pub fn programmed(&self) -> u64 {
        self.flash.sectors_written + self.flash.sectors_copied
    }
}

impl Ran {
    /// A counter or gauge of the target.
    pub fn counter(&self, name: &str) -> f64 {
        rig::counter(&self.rig, name) as f64
    }

    /// What the target takes.
    pub fn limits(&self) -> TableLimits {
        self.rig.target(TargetId(0)).limits()
    }

    /// Bytes that the drive's chunks hold.
    pub fn media_bytes(&self) -> u64 {
        let geometry = &self.rig.device().config().geometry;
        let chunks = u64::from(geometry.pu_count()) * u64::from(geometry.chunks_per_pu);
        chunks * u64::from(geometry.sectors_per_chunk) * u64::from(geometry.sector_bytes)
    }
}

/// Eight groups of four units, chunks of 24 MB made smaller, write units of 96 KiB; each program takes `PROGRAM`.
fn mount(setup: &Setup) -> anyhow::Result<Rig<dyn TableTarget>> {
    let chunk_sectors = u32::try_from((24 << 20) / SMALLER / 4_096)?;
    let mut config = rig::drive(&Geometry::example(8, 4, setup.chunks_per_unit, chunk_sectors, 24), PROGRAM)?;
    config.geometry.mw_cunits = 0;
    config.geometry.capabilities.early_reset = setup.has_early_reset;
    config.channel.bytes_per_second = 800_000_000;
    config.payload = Payload::Bytes;
    let mut rig = rig::host(rig::format(config)?, Nanos::ZERO);
    let units = rig::units(rig.device());
    let target = setup.ground.make(&mut rig.caller(), &units)?;
    rig.add(target);
    Ok(rig)
}

/// Runs the benchmarks of a setup on a fresh database.
///
/// # Errors
/// A sentence, if a flag or an option is wrong or a request failed.
pub fn run(setup: &Setup, seed: u64) -> anyhow::Result<Ran> {
    let options = LsmOptions::parse(&setup.flags).map_err(|problems| anyhow!("{problems}"))?;
    let mut rig = mount(setup)?;
    let limits = rig.target(TargetId(0)).limits();
    let mut lsm = Lsm::new(options, limits, &Prng::new(seed));
    let mut begun = Vec::new();
    loop {
        let until = rig.clock().now() + LOOK_EVERY;
        let end = rig.run(&mut lsm, until);
        while begun.len() < lsm.phases().len() {
            begun.push(Counted::now(&rig));
        }
        match end {
            RunEnd::Finished => break,
            RunEnd::Stuck => bail!("requests that are never answered"),
            RunEnd::Stopped if interrupt::is_heard() => return Err(Interrupted.into()),
            RunEnd::Stopped => {}
        }
    }
    if let Some(failure) = lsm.failure() {
        bail!("a request of the experiment failed: {failure}");
    }
    lsm.check();
    Ok(Ran { lsm, begun, rig })
}
