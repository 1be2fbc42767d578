//! Jobs resolved against the targets they run on, everything checked before anything starts.
//!
//! Deliberately not here: carrying it out.

use super::blocks::Extent;
use super::content::{Content, Filler};
use super::region::Region;
use super::sizes::Sizes;
use crate::job::{
    ByDirection, Distribution, Job, JobOptions, Operations, Order, Verify, VerifyContent, ZoneMode,
};
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockTarget;
use std::fmt;

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
pub struct Plan {
    pub(super) jobs: Vec<PlannedJob>,
    pub(super) workers: Vec<WorkerPlan>,
    notes: Vec<String>,
}

impl Plan {
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
        if errors.is_empty() { Ok(plan) } else { Err(errors) }
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

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
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
        let zone_blocks = target.zones().map(|zones| zones.blocks);
        let extent = Extent { block_bytes: target.block_bytes(), blocks: target.block_count(), zone_blocks };
        check_rates(options)?;
        let region = region_of(options, clone, extent)?;
        let sizes = sizes_of(options, extent.block_bytes)?;
        self.check_zones(&planned.job, target, &sizes)?;
        let largest = sizes.as_array().into_iter().flatten().map(Sizes::max).max().unwrap_or(1);
        if u64::from(largest) > region.blocks() {
            let (bytes, region) = (u64::from(largest) * u64::from(extent.block_bytes), region.blocks());
            return Err(format!(
                "its blocks of {bytes} bytes do not fit its region of {region} target blocks"
            ));
        }
        let align = align_of(options, &sizes, extent.block_bytes)?;
        let amount = match options.io_size {
            Some(amount) => extent.blocks_of(amount).map_err(|reason| format!("io_size {reason}"))?,
            None => region.blocks(),
        };
        let budget =
            if options.time_based { u64::MAX } else { amount.saturating_mul(u64::from(options.loops)) };
        let ends = options.runtime.is_some() || options.number_ios.is_some();
        if !ends && budget >= ENDLESS_BLOCKS {
            return Err(
                "would go on for days: it has no size, runtime or number_ios; give it one of them".to_owned()
            );
        }
        let content = content_of(options);
        let skip_bytes = skip_of(options, extent.block_bytes)?;
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
            stage: 0,
            group: 0,
        })
    }

    fn check_zones(
        &mut self,
        job: &Job,
        target: &dyn BlockTarget,
        sizes: &ByDirection<Option<Sizes>>,
    ) -> Result<(), String> {
        let options = &job.options;
        let bytes = u64::from(target.block_bytes());
        let Some(zones) = target.zones() else {
            let given = [
                (options.zonemode == ZoneMode::Zbd, "zonemode=zbd"),
                (options.zonesize.is_some(), "a zonesize"),
            ];
            return match given.iter().find(|(given, _)| *given) {
                Some((_, what)) => Err(format!("has {what}, but its target has no zones; leave it out")),
                None => Ok(()),
            };
        };
        if let Some(size) = options.zonesize.filter(|&size| size != zones.blocks * bytes) {
            let own = zones.blocks * bytes;
            return Err(format!(
                "has zonesize={size}, but the target's zones have {own} bytes; leave zonesize out"
            ));
        }
        if options.rw.operations.trims() {
            return Err(
                "trims, but a raw window can only reset whole zones, which its writes do by themselves; \
                        use a target with a map"
                    .to_owned(),
            );
        }
        let unit = target.write_unit();
        let multiple = sizes.write.as_ref().is_none_or(|sizes| sizes.are_multiples_of(unit));
        if options.rw.operations.writes() && !multiple {
            let unit = u64::from(unit) * bytes / 1024;
            return Err(format!(
                "writes in units that are no multiple of {unit} KiB, the least this raw window takes (ws_min); \
                 use bs={unit}k or a multiple, or bs=4k,{unit}k to keep small reads"
            ));
        }
        if options.rw.operations.writes() {
            self.check_zone_writes(job)?;
        }
        if options.rw.operations.writes() && options.zonemode == ZoneMode::None {
            self.note(format!(
                "job \"{}\": the target is a raw window of {} zones; writes go to the write pointer of a zone and full \
                 zones are reset first, as with zonemode=zbd",
                job.name, zones.count
            ));
        }
        Ok(())
    }
}

impl Plan {
    /// Where in a zone a write lands is not the job's choice.
    fn check_zone_writes(&mut self, job: &Job) -> Result<(), String> {
        let options = &job.options;
        if matches!(options.rw.order, Order::Sequential { skip_bytes: 1.. }) {
            return Err("leaves bytes out between I/Os, but a raw window is written without gaps; give rw without :SKIP, \
                        or read only"
                .to_owned());
        }
        let scattered = options.random_distribution != Distribution::Uniform
            || options.percentage_random.write < 100
            || options.blockalign.write.is_some()
            || matches!(options.rw.order, Order::Random { ios_per_offset: 2.. });
        if options.rw.is_random() && scattered {
            self.note(format!(
                "job \"{}\": a random write to a raw window draws one of its open zones, each as likely; \
                 random_distribution, percentage_random, blockalign and rw=:N are for its reads only",
                job.name
            ));
        }
        Ok(())
    }
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
        Order::Random { .. } => Ok(0),
    }
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
                     up to 16 MiB"
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

fn content_of(options: &JobOptions) -> Content {
    let verified = options.verify.map(Verify::content);
    let filler = if verified == Some(VerifyContent::Pattern) && !options.verify_pattern.is_empty() {
        Filler::Pattern(options.verify_pattern.clone())
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
