//! Jobs resolved against the targets they run on, everything checked before anything starts.
//!
//! Deliberately not here: carrying it out.

use super::blocks::Extent;
use super::content::{Compressible, Content, Filler};
use super::files::FilePlan;
use super::plan_replay::{log_of, replay};
use super::plan_zones::{emulated_of, strides_of, whole_zones};
use super::region::Region;
use super::sizes::Sizes;
use super::strides::StridePlan;
use super::zones::EmulatedZones;
use crate::job::{
    ByDirection, IologAction, Job, JobOptions, Operations, Order, Verify, VerifyContent, ZoneMode,
};
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockTarget;
use std::fmt;
use std::sync::Arc;

/// More blocks than any real job transfers: 256 TiB of 4 KiB blocks (chosen). Only a target without a natural size, such
/// as `null`, is that large.
const ENDLESS_BLOCKS: u64 = 1 << 36;

/// A job and the target it runs on.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// The job.
    pub job: Job,
    /// Its target.
    pub target: TargetId,
}

/// A target as the plan sees it.
pub struct TargetShape<'a>(pub &'a dyn BlockTarget);

/// Why a job cannot run on its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The job.
    pub job: String,
    /// What was expected, what was found, what to change.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job \"{}\": {}", self.job, self.message)
    }
}

impl std::error::Error for PlanError {}

/// What one worker (a clone of a job) will do.
#[derive(Clone, Debug)]
pub(super) struct WorkerPlan {
    pub(super) job: usize,
    pub(super) clone: u32,
    pub(super) target: TargetId,
    pub(super) block_bytes: u32,
    pub(super) region: Region,
    /// Bytes left out after each sequential I/O.
    pub(super) skip_bytes: u64,
    pub(super) sizes: ByDirection<Option<Sizes>>,
    /// Offsets are multiples of this many blocks.
    pub(super) align: ByDirection<u32>,
    /// Blocks to transfer in all; `u64::MAX` if only time ends it.
    pub(super) budget: u64,
    pub(super) content: Content,
    /// Parts of the region that are used one after the other.
    pub(super) strides: Option<StridePlan>,
    /// Files that the region is made of, if there are several.
    pub(super) files: Option<FilePlan>,
    /// Zones its target has not.
    pub(super) emulated: Option<EmulatedZones>,
    /// What it replays, in place of all that is drawn.
    pub(super) replay: Option<Arc<[IologAction]>>,
    /// Group of jobs that start together.
    pub(super) stage: u32,
    /// fio's group id.
    pub(super) group: u32,
}

impl WorkerPlan {
    /// Places of `align` blocks left out after each sequential I/O.
    pub(super) const fn skip_places(&self, align: u64) -> u64 {
        self.skip_bytes / (align * self.block_bytes as u64)
    }
}

/// Jobs ready to run.
#[derive(Clone, Debug)]
pub struct JobPlan {
    pub(super) jobs: Vec<PlannedJob>,
    pub(super) workers: Vec<WorkerPlan>,
    notes: Vec<String>,
}

impl JobPlan {
    /// Resolves jobs against their targets.
    ///
    /// # Errors
    /// Every job that cannot run, each with what to change.
    ///
    /// # Panics
    /// If a job names a target that is not given.
    pub fn new(jobs: Vec<PlannedJob>, targets: &[TargetShape<'_>]) -> Result<Self, Vec<PlanError>> {
        let mut plan = Self { jobs: Vec::new(), workers: Vec::new(), notes: Vec::new() };
        let mut errors = Vec::new();
        let (mut stage, mut group) = (0, 0);
        for (index, planned) in jobs.iter().enumerate() {
            let options = &planned.job.options;
            stage += u32::from(index > 0 && options.stonewall);
            group += u32::from(index > 0 && (options.stonewall || options.new_group));
            let target = targets[planned.target.index()].0;
            for clone in 0..options.numjobs {
                match plan.worker(index, clone, planned, target) {
                    Ok(worker) => plan.workers.push(WorkerPlan { stage, group, ..worker }),
                    Err(message) => {
                        errors.push(PlanError { job: planned.job.name.clone(), message });
                        break;
                    }
                }
            }
            plan.check_wait_for(&jobs[..index], &planned.job, &mut errors);
        }
        plan.jobs = jobs;
        for worker in &plan.workers {
            let checked = plan.check_agreement(worker).and_then(|()| plan.check_steady(worker));
            if let Err(message) = checked {
                let job = plan.jobs[worker.job].job.name.clone();
                errors.push(PlanError { job, message });
            }
        }
        errors.dedup();
        if errors.is_empty() { Ok(plan) } else { Err(errors) }
    }

    /// The job of each clone, in the order of their results.
    pub fn clones(&self) -> impl Iterator<Item = &PlannedJob> {
        self.workers.iter().map(|worker| &self.jobs[worker.job])
    }

    /// Sentences about what differs from what the words of a job suggest.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The jobs.
    #[must_use]
    pub fn jobs(&self) -> &[PlannedJob] {
        &self.jobs
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Jobs that are reported as one are judged as one, so they must ask for the same, as in fio.
    fn check_steady(&self, worker: &WorkerPlan) -> Result<(), String> {
        let of = |worker: &WorkerPlan| &self.jobs[worker.job].job.options;
        let joint = |options: &JobOptions| options.group_reporting && options.steady.is_on();
        let others = self.workers.iter().filter(|other| other.group == worker.group);
        for other in others.map(of).filter(|other| other.group_reporting) {
            if (joint(of(worker)) || joint(other))
                && of(worker).steady != other.steady
                && of(worker).group_reporting
            {
                return Err(
                    "is reported with jobs of another steadystate; give all of the group the same".to_owned()
                );
            }
        }
        Ok(())
    }

    fn check_wait_for(&self, earlier: &[PlannedJob], job: &Job, errors: &mut Vec<PlanError>) {
        if let Some(name) = &job.options.wait_for
            && !earlier.iter().any(|other| other.job.name == *name)
        {
            let message = format!("waits for \"{name}\", but no earlier job has that name");
            errors.push(PlanError { job: job.name.clone(), message });
        }
    }

    fn worker(
        &mut self,
        index: usize,
        clone: u32,
        planned: &PlannedJob,
        target: &dyn BlockTarget,
    ) -> Result<WorkerPlan, String> {
        let options = &planned.job.options;
        if let Some(log) = log_of(options, clone) {
            return replay((index, clone, planned.target), options, log, target);
        }
        let emulated = emulated_of(options, target)?;
        let strided = options.zonesize.map(|size| size / u64::from(target.block_bytes()));
        let zone_blocks = target.zones().map(|zones| zones.blocks).or(strided);
        let extent = Extent { block_bytes: target.block_bytes(), blocks: target.block_count(), zone_blocks };
        check_rates(options)?;
        let mut region = region_of(options, clone, extent)?;
        if let Some(zones) = emulated {
            region = whole_zones(region, zones, extent.blocks)?;
        }
        let sizes = sizes_of(options, extent.block_bytes)?;
        self.check_zones(&planned.job, target, &sizes)?;
        let largest = largest_of(&sizes, region, extent.block_bytes)?;
        let strides = strides_of(options, target, largest)?;
        if strides.is_some() && options.zonemode == ZoneMode::None {
            self.note(format!(
                "job \"{}\": a zonesize without a zonemode is zonemode=strided, as in fio",
                planned.job.name
            ));
        }
        let align = align_of(options, &sizes, extent.block_bytes)?;
        let files = FilePlan::new(options.file_set, region, largest, target.zones().is_some())?;
        let pass = match (strides, files) {
            (Some(strides), _) => strides.blocks_per_pass(region.blocks()),
            (None, Some(files)) => files.all_blocks(),
            (None, None) => region.blocks(),
        };
        let budget = budget_of(options, pass, extent)?;
        let content = content_of(options);
        let skip_bytes = skip_of(options, extent.block_bytes)?;
        let walked = files.map_or(region.blocks(), |files| files.blocks);
        check_backwards(options, &align, walked, extent.block_bytes)?;
        if options.rw.operations == Operations::TrimWrite && sizes.write != sizes.trim {
            self.note(format!(
                "job \"{}\": each write has the size of its trim; the block size of writes is not used",
                planned.job.name
            ));
        }
        Ok(WorkerPlan {
            job: index,
            clone,
            target: planned.target,
            block_bytes: extent.block_bytes,
            region,
            skip_bytes,
            sizes,
            align,
            budget,
            content,
            strides,
            files,
            emulated,
            replay: None,
            stage: 0,
            group: 0,
        })
    }
}

/// Blocks of the longest I/O, which the region holds.
fn largest_of(sizes: &ByDirection<Option<Sizes>>, region: Region, block_bytes: u32) -> Result<u32, String> {
    let largest = sizes.as_array().into_iter().flatten().map(Sizes::max).max().unwrap_or(1);
    if u64::from(largest) > region.blocks() {
        let (bytes, region) = (u64::from(largest) * u64::from(block_bytes), region.blocks());
        return Err(format!("its blocks of {bytes} bytes do not fit its region of {region} target blocks"));
    }
    Ok(largest)
}

/// Blocks to transfer in all; `u64::MAX` if only time ends the job. `pass` are the blocks of the whole region once.
fn budget_of(options: &JobOptions, pass: u64, extent: Extent) -> Result<u64, String> {
    let amount = match options.io_size {
        Some(amount) => extent.blocks_of(amount).map_err(|reason| format!("io_size {reason}"))?,
        None => pass,
    };
    let budget = if options.time_based { u64::MAX } else { amount.saturating_mul(u64::from(options.loops)) };
    let ends = options.runtime.is_some() || options.number_ios.is_some();
    if !ends && budget >= ENDLESS_BLOCKS {
        return Err(
            "would go on for days: it has no size, runtime or number_ios; give it one of them".to_owned()
        );
    }
    Ok(budget)
}

/// Bytes left out after each sequential I/O.
fn skip_of(options: &JobOptions, block_bytes: u32) -> Result<u64, String> {
    match options.rw.order {
        Order::Sequential { skip_bytes } if !skip_bytes.is_multiple_of(u64::from(block_bytes)) => {
            Err(format!(
                "leaves out {skip_bytes} bytes after each I/O, but its target's blocks have {block_bytes}: use a multiple"
            ))
        }
        Order::Sequential { skip_bytes } => Ok(skip_bytes),
        Order::Backwards { .. } | Order::Random { .. } => Ok(0),
    }
}

/// Whether a job that goes back can: by whole I/Os, within what it walks through, and nothing else walks for it.
fn check_backwards(
    options: &JobOptions,
    align: &ByDirection<u32>,
    walked_blocks: u64,
    block_bytes: u32,
) -> Result<(), String> {
    let Order::Backwards { back_bytes } = options.rw.order else { return Ok(()) };
    if options.zonemode != ZoneMode::None || options.zonesize.is_some() {
        return Err(
            "goes backwards, which zones and strides do not; leave out the number of rw, or the zones"
                .to_owned(),
        );
    }
    let block_bytes = u64::from(block_bytes);
    for align in align.as_array() {
        let bytes = u64::from(*align) * block_bytes;
        if !back_bytes.is_multiple_of(bytes) || back_bytes > walked_blocks * block_bytes {
            return Err(format!(
                "goes back by {back_bytes} bytes: expected a multiple of its blocks of {bytes} bytes within its region of {}",
                walked_blocks * block_bytes
            ));
        }
    }
    Ok(())
}

fn check_rates(options: &JobOptions) -> Result<(), String> {
    let both = options.rate.as_array().into_iter().zip(options.rate_iops.as_array());
    if both.into_iter().any(|(bytes, ios)| bytes.is_some() && ios.is_some()) {
        return Err(
            "has both rate and rate_iops for one direction, which fio refuses too; keep one".to_owned()
        );
    }
    Ok(())
}

fn region_of(options: &JobOptions, clone: u32, extent: Extent) -> Result<Region, String> {
    let resolve = |option, amount| extent.blocks_of(amount).map_err(|reason| format!("{option} {reason}"));
    let step = resolve("offset_increment", options.offset_increment)?;
    let first = resolve("offset", options.offset)?.saturating_add(step.saturating_mul(u64::from(clone)));
    let bytes = u64::from(extent.block_bytes);
    if first >= extent.blocks {
        let (at, size) = (first.saturating_mul(bytes), extent.blocks * bytes);
        return Err(format!(
            "starts at byte {at}, but its target has {size} bytes; lower offset or offset_increment"
        ));
    }
    let blocks = match options.size {
        Some(amount) => resolve("size", amount)?,
        None => extent.blocks - first,
    };
    if blocks == 0 || blocks > extent.blocks - first {
        let (asked, left) = (blocks.saturating_mul(bytes), (extent.blocks - first) * bytes);
        return Err(format!(
            "uses {asked} bytes, but its target has {left} from its offset on; lower size or offset"
        ));
    }
    Ok(Region { first, end: first + blocks })
}

fn sizes_of(options: &JobOptions, block_bytes: u32) -> Result<ByDirection<Option<Sizes>>, String> {
    let operations = options.rw.operations;
    let used = [operations.reads(), operations.writes(), operations.trims()];
    let mut sizes = [None, None, None];
    for ((place, used), given) in sizes.iter_mut().zip(used).zip(options.block_sizes.as_array()) {
        if used {
            let refused = |bytes| {
                format!(
                    "has blocks of {bytes} bytes, but its target's blocks have {block_bytes}: use multiples of that, \
                     up to 16 MiB (or smaller blocks, as --target pblk:block_bytes=512)"
                )
            };
            *place = Some(Sizes::new(given, block_bytes).map_err(refused)?);
        }
    }
    let [read, write, trim] = sizes;
    Ok(ByDirection { read, write, trim })
}

fn align_of(
    options: &JobOptions,
    sizes: &ByDirection<Option<Sizes>>,
    block_bytes: u32,
) -> Result<ByDirection<u32>, String> {
    let mut aligns = [1, 1, 1];
    if !options.rw.is_random() {
        // One I/O starts where the one before ended.
        return Ok(ByDirection::all(1));
    }
    let given = options.blockalign.as_array().into_iter().zip(sizes.as_array());
    for (place, (align, sizes)) in aligns.iter_mut().zip(given) {
        *place = match align {
            Some(bytes) => {
                let blocks = bytes / u64::from(block_bytes);
                let whole = bytes.is_multiple_of(u64::from(block_bytes)) && blocks > 0;
                u32::try_from(blocks).ok().filter(|_| whole).ok_or_else(|| {
                    format!("has blockalign={bytes}, but its target's blocks have {block_bytes} bytes: use a multiple")
                })?
            }
            None => sizes.as_ref().map_or(1, Sizes::min),
        };
    }
    let [read, write, trim] = aligns;
    Ok(ByDirection { read, write, trim })
}

pub(super) fn content_of(options: &JobOptions) -> Content {
    let verified = options.verify.map(Verify::content);
    let filler = if verified == Some(VerifyContent::Pattern) && !options.verify_pattern.is_empty() {
        Filler::Pattern(options.verify_pattern.clone())
    } else if let Some(percent) = options.buffer_compress.percentage {
        let chunk = usize::try_from(options.buffer_compress.chunk).unwrap_or(usize::MAX);
        Filler::Compressible(Compressible { chunk, percent, pattern: options.buffer_pattern.clone() })
    } else if !options.buffer_pattern.is_empty() {
        Filler::Pattern(options.buffer_pattern.clone())
    } else if options.zero_buffers {
        Filler::Zeroes
    } else if options.refill_buffers || verified == Some(VerifyContent::Stamp) {
        Filler::Derived
    } else {
        Filler::Kept
    };
    Content { filler, bare_pattern: verified == Some(VerifyContent::Pattern) }
}

/// What a job lays out before it starts: fio fills the files that will be read.
pub(super) const fn reads_before_writing(operations: Operations) -> bool {
    operations.reads()
}
