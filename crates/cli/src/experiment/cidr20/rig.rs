//! A target on a drive in virtual time: made, cut from power, and mounted again on what is left.
//!
//! Deliberately not here: what is asked of it.

use anyhow::{Context, anyhow, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, CounterValue};
use ocssd_lightnvm::{BufId, Buffers, Geometry, MediaTimes, PuId, Tag, Target, TargetId};
use ocssd_targets::ox_block::{MountReport, Options, OxBlock};

/// A drive and one target.
pub type Rig<T> = Host<Flash, VirtualClock, T>;

/// What a read takes on every drive here (chosen: MLC).
pub const READ: Nanos = Nanos::from_micros(70);

/// A drive of the tiny preset with this shape and these times of a page: so many sectors are a page, a write unit and what
/// must follow before a read.
pub fn drive(geometry: &Geometry, program: Nanos) -> anyhow::Result<Config> {
    let mut config = presets::find("tiny").context("a preset to begin with")?.config();
    let times = MediaTimes { read_typical: READ, ..MediaTimes::default() };
    config.geometry = Geometry { times, mw_cunits: 2 * geometry.ws_opt, ..geometry.clone() };
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.media.read = vec![READ];
    config.media.program = vec![program];
    config.media.erase = Nanos::from_millis(3);
    config.wear.endurance = u32::MAX / 256;
    config.queue_depth = 4096;
    Ok(config)
}

/// All units of a drive.
pub fn units(flash: &Flash) -> Vec<PuId> {
    let geometry = &flash.config().geometry;
    (0..geometry.groups * geometry.pus_per_group).map(PuId).collect()
}

/// A host without a target, whose clock says `now`.
pub fn host<T: Target + ?Sized>(flash: Flash, now: Nanos) -> Rig<T> {
    let mut clock = VirtualClock::default();
    clock.wait_until(now);
    let buffers = Buffers::new(flash.payload_format());
    Host::new(flash, clock, buffers)
}

/// A fresh drive.
///
/// # Errors
/// A sentence, if its settings do not fit each other.
pub fn format(config: Config) -> anyhow::Result<Flash> {
    Flash::format(config).map_err(|problems| anyhow!("{problems}"))
}

/// Options of `ox-block` by name.
///
/// # Errors
/// A sentence, if one is wrong.
pub fn options(pairs: &[(&str, String)]) -> anyhow::Result<Options> {
    let mut options = Options::default();
    for (name, value) in pairs {
        options.set(name, value).map_err(|error| anyhow!(error))?;
    }
    Ok(options)
}

/// Mounts `ox-block` over all units.
///
/// # Errors
/// A sentence, if the drive does not carry it.
pub fn mount(rig: &mut Rig<OxBlock>, options: &Options) -> anyhow::Result<MountReport> {
    let units = units(rig.device());
    let (target, report) =
        OxBlock::mount(&mut rig.caller(), &units, options).map_err(|error| anyhow!("{error}"))?;
    rig.add(Box::new(target));
    Ok(report)
}

/// The drive after the power went.
///
/// # Errors
/// A sentence, if its content cannot be kept.
pub fn cut(mut flash: Flash, now: Nanos, prng: &mut Prng) -> anyhow::Result<Flash> {
    flash.power_cut(now, prng).map_err(|error| anyhow!("{error}"))?;
    Ok(flash)
}

/// Writes all blocks of a target once, in order, with what `buffer` holds.
///
/// # Errors
/// A sentence, if a write fails.
pub fn fill<T>(rig: &mut Rig<T>, blocks: u64, buffer: BufId, at_once: u32) -> anyhow::Result<()>
where
    T: Target<Request = BlockRequest, Reply = BlockReply> + ?Sized,
{
    let ops = (0..blocks.div_ceil(u64::from(at_once))).map(|number| {
        let block = number * u64::from(at_once);
        (block, u32::try_from((blocks - block).min(u64::from(at_once))).expect("no more than at once"))
    });
    write_all(rig, ops, buffer)
}

/// Writes these runs of blocks, as many at a time as the target takes.
///
/// # Errors
/// A sentence, if a write fails.
pub fn write_all<T>(
    rig: &mut Rig<T>,
    runs: impl Iterator<Item = (u64, u32)>,
    buffer: BufId,
) -> anyhow::Result<()>
where
    T: Target<Request = BlockRequest, Reply = BlockReply> + ?Sized,
{
    let mut requests: Requests<T> = Requests::default();
    for (number, (block, count)) in (0..).zip(runs) {
        let op = BlockOp::Write { fua: false };
        requests.push(BlockRequest { tag: Tag(number), op, block, count, buffer: Some(buffer) });
    }
    ensure!(rig.run(&mut requests, Nanos::MAX) == RunEnd::Finished, "writes that never end");
    let failed = requests.take_replies().into_iter().find(|reply| !reply.status.is_success());
    failed.map_or(Ok(()), |reply| Err(anyhow!("a write failed: {}", reply.status.name())))
}

/// Sets every block of a buffer to `content`.
pub fn stamp(buffers: &mut Buffers, buffer: BufId, count: u32, content: u64) {
    for sector in 0..count {
        buffers.data_mut(buffer, sector, 1)[..8].copy_from_slice(&content.to_le_bytes());
    }
}

/// The content of a block of a buffer.
pub fn stamped(buffers: &Buffers, buffer: BufId, sector: u32) -> u64 {
    let bytes = buffers.data(buffer, sector, 1)[..8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

/// A counter or gauge of the target; 0 if it has none of this name.
pub fn counter<T: Target + ?Sized>(rig: &Rig<T>, name: &str) -> u64 {
    let counters = rig.target(TargetId(0)).counters();
    let found = counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
    match found {
        Some(CounterValue::Count(value) | CounterValue::Gauge(value)) => value,
        Some(CounterValue::Ratio(_)) | None => 0,
    }
}

/// Shorthand: a host of block targets of any kind.
pub type AnyRig = Rig<dyn BlockTarget>;
