//! An LSM tree on `lightlsm` on the paper's drive, a sixteenth of its size, with the settings of the paper's scripts.
//!
//! Deliberately not here: what is run on it.

use super::rig::{self, Rig};
use crate::interrupt::{self, Interrupted};
use anyhow::{anyhow, bail};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, RunEnd};
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::{Geometry, Payload, TargetId};
use ocssd_targets::lightlsm::{LightLsm, Options};
use ocssd_workload::lsm::{Lsm, LsmOptions};

/// How much smaller than the paper's drive and database everything is that has bytes (chosen: the grid runs in minutes).
pub const SMALLER: u64 = 16;
/// Keys of a thread: 3 GB of values of 1 KiB (the scripts behind the figures), made smaller.
pub const KEYS: u64 = 3_145_728 / SMALLER;
/// A second of the paper's, made smaller, in milliseconds.
pub const SECOND_MS: u64 = 62;
/// What a program of a write unit of 96 KiB takes (chosen: TLC): 48 MB/s of a unit.
pub const PROGRAM: Nanos = Nanos::from_millis(2);

/// A database to be made.
#[derive(Clone)]
pub struct Setup {
    /// `horizontal` or `vertical`.
    pub placement: &'static str,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The target is told how long tables will be; the paper's environment is not.
    pub has_size_hint: bool,
    /// Options of the target beside, as name and value.
    pub target: Vec<(&'static str, String)>,
    /// Flags beside the paper's.
    pub flags: String,
}

/// The flags of the scripts behind the paper's figures, made smaller: memtables of 24 MB, two to a flush, tables of 768 MB,
/// triggers of 1, 16 and 24.
fn flags(setup: &Setup) -> String {
    format!(
        "--key_size=16 --value_size=1024 --bloom_bits=10 --num_levels=6 --block_size={} \
         --write_buffer_size={} --max_write_buffer_number=64 --min_write_buffer_number_to_merge=2 \
         --target_file_size_base={} --max_bytes_for_level_base={} --level0_file_num_compaction_trigger=1 \
         --level0_slowdown_writes_trigger=16 --level0_stop_writes_trigger=24 --max_background_compactions=40 \
         --writable_file_max_buffer_size={} --size_hint={} --stats_interval_ms={SECOND_MS} {}",
        setup.block_bytes,
        (24 << 20) / SMALLER,
        (768 << 20) / SMALLER,
        (768 << 20) / SMALLER,
        (24 << 20) / SMALLER,
        u32::from(setup.has_size_hint),
        setup.flags
    )
}

/// A run that has ended, and the target it left.
pub struct Ran {
    /// The tree.
    pub lsm: Lsm,
    rig: Rig<LightLsm>,
}

impl Ran {
    /// A counter or gauge of the target.
    pub fn counter(&self, name: &str) -> f64 {
        rig::counter(&self.rig, name) as f64
    }
}

/// Eight groups of four units, chunks of 24 MB made smaller, write units of 96 KiB; each program takes `PROGRAM`.
fn mount(setup: &Setup) -> anyhow::Result<Rig<LightLsm>> {
    let chunk_sectors = u32::try_from((24 << 20) / SMALLER / 4_096)?;
    let mut config = rig::drive(&Geometry::example(8, 4, 64, chunk_sectors, 24), PROGRAM)?;
    config.geometry.mw_cunits = 0;
    config.channel.bytes_per_second = 800_000_000;
    config.payload = Payload::Bytes;
    let mut rig = rig::host(rig::format(config)?, Nanos::ZERO);
    let mut options = Options::default();
    let own = [("placement", setup.placement.to_owned()), ("tables_max", "160".to_owned())];
    let spare = [("spare_percent", "50".to_owned())];
    for (name, value) in own.iter().chain(&spare).chain(&setup.target) {
        options.set(name, value).map_err(|error| anyhow!(error))?;
    }
    let units = rig::units(rig.device());
    let (target, _) =
        LightLsm::mount(&mut rig.caller(), &units, &options).map_err(|error| anyhow!("{error}"))?;
    rig.add(Box::new(target));
    Ok(rig)
}

/// Runs the benchmarks of a setup on a fresh database.
///
/// # Errors
/// A sentence, if a flag is wrong or a request failed.
pub fn run(setup: &Setup, seed: u64) -> anyhow::Result<Ran> {
    let options = LsmOptions::parse(&flags(setup)).map_err(|problems| anyhow!("{problems}"))?;
    let mut rig = mount(setup)?;
    let limits = rig.target(TargetId(0)).limits();
    let mut lsm = Lsm::new(options, limits, &Prng::new(seed));
    loop {
        let until = rig.clock().now() + Nanos::from_millis(5);
        match rig.run(&mut lsm, until) {
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
    Ok(Ran { lsm, rig })
}
