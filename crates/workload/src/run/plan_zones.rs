//! What a plan checks and settles of zones: a raw window's own, emulated ones, and strides over a region.
//!
//! Deliberately not here: everything else of a plan (`plan`).

use super::early_resets::EarlyResets;
use super::plan::{JobPlan, WorkerPlan};
use super::region::Region;
use super::sizes::Sizes;
use super::strides::StridePlan;
use super::zones::EmulatedZones;
use crate::job::{ByDirection, Distribution, Job, JobOptions, Operations, Order, ZoneMode};
use ocssd_lightnvm::block::BlockTarget;

/// The most zones that are emulated: a target as `null` has no natural size (chosen; 1 PiB of zones of 256 MiB).
const EMULATED_MAX: u64 = 1 << 22;

/// Whole blocks of an option in bytes.
fn blocks_of(option: &str, bytes: u64, block_bytes: u32) -> Result<u64, String> {
    let block = u64::from(block_bytes);
    if bytes.is_multiple_of(block) {
        return Ok(bytes / block);
    }
    Err(format!("has {option}={bytes}, but its target's blocks have {block} bytes: use a multiple"))
}

/// The zones a job wants on a target that has none.
pub(super) fn emulated_of(
    options: &JobOptions,
    target: &dyn BlockTarget,
) -> Result<Option<EmulatedZones>, String> {
    if target.zones().is_some() || options.zonemode != ZoneMode::Zbd {
        return Ok(None);
    }
    let Some(size) = options.zonesize else {
        return Err(
            "has zonemode=zbd, but its target has no zones; give a zonesize to have them emulated, or leave \
                    zonemode out"
                .to_owned(),
        );
    };
    let blocks = blocks_of("zonesize", size, target.block_bytes())?;
    let capacity = blocks_of("zonecapacity", options.zonecapacity.unwrap_or(size), target.block_bytes())?;
    if options.rw.operations.trims() {
        return Err(
            "trims, but zones are reset as a whole, which its writes do by themselves; leave zonemode out"
                .to_owned(),
        );
    }
    Ok(Some(EmulatedZones { blocks, capacity }))
}

/// The strides of a job: asked for, or implied by a `zonesize` without a `zonemode` as in fio.
pub(super) fn strides_of(
    options: &JobOptions,
    target: &dyn BlockTarget,
    largest: u32,
) -> Result<Option<StridePlan>, String> {
    let implied = options.zonemode == ZoneMode::None && target.zones().is_none();
    let Some(size) = options.zonesize.filter(|_| implied || options.zonemode == ZoneMode::Strided) else {
        return Ok(None);
    };
    if target.zones().is_some() && options.rw.operations.writes() {
        return Err(
            "has zonemode=strided, but a raw window decides itself where a write goes; use zonemode=zbd, or \
                    only read"
                .to_owned(),
        );
    }
    let blocks = |option, bytes| blocks_of(option, bytes, target.block_bytes());
    let plan = StridePlan {
        transfer: blocks("zonesize", size)?,
        range: blocks("zonerange", options.zonerange.unwrap_or(size))?,
        skip: blocks("zoneskip", options.zoneskip)?,
    };
    if plan.range < u64::from(largest) {
        return Err(format!(
            "has a zonerange of {} blocks, which is less than one I/O of {largest}; raise zonerange or lower bs",
            plan.range
        ));
    }
    Ok(Some(plan))
}

/// A region of whole emulated zones.
pub(super) fn whole_zones(
    region: Region,
    zones: EmulatedZones,
    target_blocks: u64,
) -> Result<Region, String> {
    let end = region.end.min(target_blocks / zones.blocks * zones.blocks);
    if end.div_ceil(zones.blocks) > EMULATED_MAX {
        return Err(format!(
            "has {} zones of {} blocks up to the end of its region, more than {EMULATED_MAX}; give a size or raise zonesize",
            end.div_ceil(zones.blocks),
            zones.blocks
        ));
    }
    if region.first < end {
        return Ok(Region { first: region.first, end });
    }
    Err(format!("has zones of {} blocks, of which its region holds none whole; lower zonesize", zones.blocks))
}

impl JobPlan {
    /// The rules of a raw window.
    pub(super) fn check_zones(
        &mut self,
        job: &Job,
        target: &dyn BlockTarget,
        sizes: &ByDirection<Option<Sizes>>,
    ) -> Result<(), String> {
        let options = &job.options;
        let bytes = u64::from(target.block_bytes());
        let Some(zones) = target.zones() else { return Ok(()) };
        let own = zones.blocks * bytes;
        let strided = options.zonemode == ZoneMode::Strided;
        if let Some(size) = options.zonesize.filter(|&size| size != own && !strided) {
            return Err(format!(
                "has zonesize={size}, but the target's zones have {own} bytes; leave zonesize out"
            ));
        }
        if options.zonecapacity.is_some() {
            self.note(format!(
                "job \"{}\": zonecapacity has no effect, as in fio: the zones of a raw window hold {own} bytes",
                job.name
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
                 use --target pblk, a block device that takes blocks of any size, or bs={unit}k or a multiple, or \
                 bs=4k,{unit}k to keep small reads"
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

    /// Where in a zone a write lands is not the job's choice.
    fn check_zone_writes(&mut self, job: &Job) -> Result<(), String> {
        let options = &job.options;
        if matches!(options.rw.order, Order::Sequential { skip_bytes: 1.. } | Order::Backwards { .. }) {
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

    /// Workers of one target must agree on its emulated zones, and on when its zones are reset.
    pub(super) fn check_agreement(&self, worker: &WorkerPlan) -> Result<(), String> {
        let of = |worker: &WorkerPlan| &self.jobs[worker.job].job.options;
        let options = of(worker);
        for other in self.workers.iter().filter(|other| other.target == worker.target) {
            if other.emulated != worker.emulated {
                return Err(
                    "shares its target with a job of other zones; give both the same zonemode, zonesize and \
                            zonecapacity"
                        .to_owned(),
                );
            }
            let both = options.rw.operations.writes() && of(other).rw.operations.writes();
            let resets = of(other).zone_reset.frequency > 0.0;
            let alike = of(other).zone_reset == options.zone_reset && other.region == worker.region;
            if both && resets && !alike {
                return Err("resets zones early, or shares its target with a job that does; all that write it must do so \
                            alike: the same zone_reset_threshold, zone_reset_frequency, offset and size"
                    .to_owned());
            }
        }
        Ok(())
    }

    /// The early resets of a target: those of its writers, who agree.
    pub(super) fn early_resets(&self, target: usize, zone_blocks: u64) -> Option<EarlyResets> {
        let writes = |operations: Operations| operations.writes();
        let on_it = self.workers.iter().filter(|worker| worker.target.index() == target);
        let mut writers = on_it.filter(|worker| writes(self.jobs[worker.job].job.options.rw.operations));
        let first = writers.next()?;
        let rule = self.jobs[first.job].job.options.zone_reset;
        EarlyResets::new(rule, first.region.zones(zone_blocks), first.region.blocks())
    }
}
