//! A drive, its targets, and the plan of the jobs on them.

use super::Choice;
use super::beside::{self, AllBeside, MadeBeside};
use super::host_target::HostTarget;
use super::limit::Party;
use crate::args::RunArgs;
use crate::drive_facts::fastest_read;
use crate::drive_failure::with_cause;
use crate::lease::lease;
use anyhow::{Context, anyhow};
use ocssd_base::Prng;
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::wrap::{Stats, Trace};
use ocssd_lightnvm::{Buffers, Geometry, TargetId};
use ocssd_measure::lint::MEDIA_READ_ROW;
use ocssd_targets::linear::Layout;
use ocssd_targets::named_target::NamedTarget;
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, Hosted};
use ocssd_workload::job::{self, IoEngine, Job, Parsed, Placement};
use ocssd_workload::results::ClockKind;
use ocssd_workload::run::{JobPlan, PlannedJob, TargetShape};

/// The device of a run: the drive, counted and traced.
pub type RunDevice = Trace<Stats<Flash>>;

/// A drive with mounted targets: those of the jobs, and those of workloads beside them.
pub struct Mounted {
    mount: Mount,
    blocks: Vec<Box<dyn BlockTarget>>,
    beside: Vec<MadeBeside>,
    plan: JobPlan,
    names: Vec<String>,
    notes: Vec<String>,
    drive: DriveFacts,
    parties: Vec<Party>,
}

/// A drive while targets are mounted on it.
pub struct Mount {
    device: RunDevice,
    clock: VirtualClock,
    buffers: Buffers,
    /// Who has which units.
    pub media_manager: MediaManager,
    /// The leases of the image.
    pub kept: Vec<String>,
    /// The drive's shape.
    pub geometry: Geometry,
}

impl Mount {
    /// Lets something be made with the drive; a sentence that comes back is told with what is wrong with the drive.
    pub fn call<R>(
        &mut self,
        make: impl FnOnce(&mut Caller<'_, RunDevice, VirtualClock>) -> Result<R, String>,
    ) -> anyhow::Result<R> {
        let Self { device, clock, buffers, .. } = self;
        make(&mut Caller { device, clock, buffers, cut_at: None })
            .map_err(|sentence| with_cause(sentence, self.device.inner().inner()))
    }
}

impl Mounted {
    /// Ready to run jobs alone.
    ///
    /// # Panics
    /// If there is a workload beside them.
    pub fn with_blocks(self) -> Assembled {
        assert!(self.beside.is_empty(), "a host of blocks has no other targets");
        self.with_targets(|blocks| blocks, |_| Vec::new())
    }

    /// Ready to run jobs with workloads beside them.
    pub fn with_any(self) -> Assembled<AnyTarget> {
        self.with_targets(
            |blocks| Box::new(AnyTarget::from(blocks)),
            |others| others.into_iter().map(Box::new).collect(),
        )
    }

    fn with_targets<T: HostTarget + ?Sized>(
        self,
        of: impl Fn(Box<dyn BlockTarget>) -> Box<T>,
        others_of: impl FnOnce(Vec<AnyTarget>) -> Vec<Box<T>>,
    ) -> Assembled<T> {
        let Self { mount, blocks, beside, plan, names, notes, drive, parties } = self;
        let mut host = Host::new(mount.device, mount.clock, mount.buffers);
        let targets = blocks.into_iter().map(|target| host.add(of(target))).collect();
        let (beside, others) = AllBeside::of(beside);
        for (facts, target) in beside.facts.iter().zip(others_of(others)) {
            let id = host.add(target);
            assert_eq!(id, facts.target, "targets are added in the order they were made in");
        }
        Assembled { host, plan, targets, beside, names, notes, drive, parties }
    }
}

/// Everything ready to run.
pub struct Assembled<T: HostTarget + ?Sized = dyn BlockTarget> {
    /// The loop with drive and targets, in virtual time.
    pub host: Host<RunDevice, VirtualClock, T>,
    /// The jobs on them.
    pub plan: JobPlan,
    /// The targets of the jobs, in order.
    pub targets: Vec<TargetId>,
    /// What asks beside the jobs, on targets behind theirs.
    pub beside: AllBeside,
    /// Kinds of the targets, those of the jobs first.
    pub names: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What the drive is, for the result.
    pub drive: DriveFacts,
    /// Who uses which target, for the result.
    pub parties: Vec<Party>,
}

/// What a result says of its drive.
pub struct DriveFacts {
    /// Name and value.
    pub rows: Vec<(String, String)>,
    /// The image; kept open, and locked, as long as the run lasts.
    pub image: Option<ocssd_drive::Image>,
}

/// Which target a job wants; jobs that want the same share it.
#[derive(Clone, PartialEq)]
struct JobTarget {
    named_target: NamedTarget,
    /// The host's CPUs before it, and how they were asked for.
    host: Option<(String, HostCpuConfig)>,
}

/// The host's processors of a run in virtual time that names none: a run without them shows buffered writes that take no time.
pub const HOST_CPU_DEFAULT: &str = "e5-2620v3";

/// What to do about units that are another's: of the image, or of another job.
const ADVICE: [&str; 2] = [
    "run on it with ;ocssd: target=NAME, choose other units with place=..., or end the lease with `ocssd target remove`",
    "two jobs want the same parallel units in different ways; give both the same place and layout, or disjoint places",
];

/// Opens the drive and puts the targets on it.
pub fn assemble(args: &RunArgs, choice: &Choice, parsed: &Parsed) -> anyhow::Result<Mounted> {
    let source = Source::named(&choice.drive)?;
    let mut settings = args.set.clone();
    if beside::has_bytes(&args.beside) && !matches!(source, Source::Image(_)) {
        // Keys and pages have any length: stamps of sectors could not hold them.
        settings.insert(0, "payload=bytes".to_owned());
    }
    let options = OpenOptions { settings, ..OpenOptions::default() };
    let OpenDrive { flash, media_manager, image, spec, .. } =
        crate::open_drive::open_drive(&source, &options)?;
    let geometry = spec.config.geometry.clone();
    let (targets, jobs) = job_targets(args, choice, parsed, &geometry, &media_manager)?;
    let kept = media_manager.list().iter().map(|lease| lease.name.clone()).collect();
    let buffers = Buffers::new(flash.payload_format());
    let device = Trace::new(Stats::new(flash), 0);
    let clock = VirtualClock::default();
    let mut mount = Mount { device, clock, buffers, media_manager, kept, geometry };
    let mut notes: Vec<String> = parsed.notes.iter().map(ToString::to_string).collect();
    let blocks = make_blocks(&targets, &mut mount, &mut notes)?;
    let common = beside::Common {
        before: blocks.len(),
        prng: Prng::new(args.seed),
        host: processors(args.host_cpu.as_deref(), choice.clock).map_err(anyhow::Error::msg)?,
        is_virtual: choice.clock == ClockKind::Virtual,
    };
    let beside = beside::make(&args.beside, &common, &mut mount, &mut notes)?;
    let shapes: Vec<TargetShape<'_>> = blocks.iter().map(|target| TargetShape(target.as_ref())).collect();
    let plan = JobPlan::new(jobs, &shapes).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })?;
    notes.extend(plan.notes().iter().cloned());
    let parties = parties(&targets, &plan);
    let rows = rows_of(&choice.drive, args, &targets, &spec.config);
    let kinds = targets.iter().map(|one| one.named_target.kind.clone());
    let names = kinds.chain(beside.iter().map(|one| one.facts.kind.clone())).collect();
    let drive = DriveFacts { rows, image };
    Ok(Mounted { mount, blocks, beside, plan, names, notes, drive, parties })
}

/// The host's CPUs as they were named, and what they are like.
pub type Processors = (String, HostCpuConfig);

/// The targets that jobs want, each once, and the jobs with theirs.
fn job_targets(
    args: &RunArgs,
    choice: &Choice,
    parsed: &Parsed,
    geometry: &Geometry,
    media_manager: &MediaManager,
) -> anyhow::Result<(Vec<JobTarget>, Vec<PlannedJob>)> {
    let mut targets: Vec<JobTarget> = Vec::new();
    let mut jobs = Vec::new();
    for job in &parsed.jobs {
        let host = host_of(job, args.host_cpu.as_deref(), args.target.as_deref(), choice.clock);
        let wanted = host.and_then(|host| {
            let target = args.target.as_deref();
            Ok(JobTarget { named_target: named_target_of(job, target, geometry, media_manager)?, host })
        });
        let wanted = wanted.map_err(|message| anyhow!("job \"{}\": {message}", job.name))?;
        let place = targets.iter().position(|other| *other == wanted).unwrap_or_else(|| {
            targets.push(wanted);
            targets.len() - 1
        });
        let target = TargetId(u32::try_from(place).context("more targets than a host can have")?);
        jobs.push(PlannedJob { job: job.clone(), target });
    }
    Ok((targets, jobs))
}

/// Makes the targets of jobs.
fn make_blocks(
    targets: &[JobTarget],
    mount: &mut Mount,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Box<dyn BlockTarget>>> {
    let mut made: Vec<Box<dyn BlockTarget>> = Vec::new();
    for (number, JobTarget { named_target, host }) in targets.iter().enumerate() {
        lease(named_target, &mut mount.media_manager, &format!("run{number}"), &mount.kept, ADVICE)?;
        let kind = crate::kinds::find(&named_target.kind).map_err(anyhow::Error::msg)?;
        let target = mount.call(|caller| {
            kind.make_within(caller, &named_target.spec(), |target| {
                on_host(target, host.as_ref(), kind.runs_on_host())
            })
        })?;
        notes.extend(target.notes);
        made.push(target.target);
    }
    Ok(made)
}

/// Options by which a job does less than it could.
const PACING: [&str; 5] = ["rate", "rate_iops", "rate_process", "thinktime", "thinkcycles"];

/// The targets, each with the results its jobs will have: one for each clone, in the order of the jobs.
fn parties(named: &[JobTarget], plan: &JobPlan) -> Vec<Party> {
    let party = |JobTarget { named_target, host }: &JobTarget| Party {
        jobs: Vec::new(),
        // What keeps nothing has units, and never uses them.
        units: if named_target.kind == "null" { Vec::new() } else { named_target.units.clone() },
        writers: host.as_ref().map(|(_, config)| config.writers),
        cores: 0,
        is_paced: false,
    };
    let mut parties: Vec<Party> = named.iter().map(party).collect();
    for (number, planned) in plan.clones().enumerate() {
        let party = &mut parties[planned.target.index()];
        party.jobs.push(number);
        party.cores = party.cores.saturating_add(planned.job.options.iodepth);
        party.is_paced |= planned.job.given.iter().any(|(name, _)| PACING.contains(&name.as_str()));
    }
    for (party, one) in parties.iter_mut().zip(named) {
        party.cores = one.host.as_ref().map_or(party.cores, |(_, config)| party.cores.min(config.cores));
    }
    parties
}

fn named_target_of(
    job: &Job,
    default: Option<&str>,
    geometry: &Geometry,
    manager: &MediaManager,
) -> Result<NamedTarget, String> {
    let layout = match job.extension.layout {
        job::Layout::Striped => Layout::Striped,
        job::Layout::Chunk => Layout::Chunk,
    };
    if job.options.ioengine == IoEngine::Null {
        return Ok(NamedTarget::null(layout));
    }
    let asked = job.extension.target.as_deref().or(default).unwrap_or("linear");
    let ranges = |ranges: &[job::IndexRange]| ranges.iter().map(|range| (range.first, range.last)).collect();
    let selection = match &job.extension.place {
        Placement::All => UnitSelection::All,
        Placement::ParallelUnits(list) => UnitSelection::Units(ranges(list)),
        Placement::Groups(list) => UnitSelection::Groups(ranges(list)),
    };
    let named = NamedTarget::named(asked, &selection, geometry, manager, crate::kinds::find);
    Ok(NamedTarget { layout, ..named.map_err(|error| error.to_string())? })
}

/// The host's CPUs a job asks for, else the command line's, else those of FAST'17 in virtual time. Before a target that only
/// shows how fast requests are made (`null`) none are put unasked.
fn host_of(
    job: &Job,
    default: Option<&str>,
    target: Option<&str>,
    clock: ClockKind,
) -> Result<Option<Processors>, String> {
    let is_null = job.options.ioengine == IoEngine::Null
        || job.extension.target.as_deref().or(target).is_some_and(|kind| kind == "null");
    let asked = job.extension.host_cpu.as_deref().or(default);
    if is_null && asked.is_none() { Ok(None) } else { processors(asked, clock) }
}

/// The host's CPUs that `asked` names, else those of FAST'17 in virtual time, with their name.
///
/// # Errors
/// A sentence, if there are no such processors, or the clock has no use for them.
pub fn processors(asked: Option<&str>, clock: ClockKind) -> Result<Option<Processors>, String> {
    let unasked = (clock == ClockKind::Virtual).then_some(HOST_CPU_DEFAULT);
    let Some(text) = asked.or(unasked) else { return Ok(None) };
    let host = HostCpuConfig::parse_text(text).map_err(|problems| problems.to_string())?;
    if host.is_some() && clock == ClockKind::Wall {
        return Err(format!(
            "host_cpu={text} stands for processors that are not there, which only virtual time can do; use --clock \
             virtual, or leave it out"
        ));
    }
    Ok(host.map(|host| (text.to_owned(), host)))
}

/// A target behind the host's CPUs, if there are any.
fn on_host(
    target: Box<dyn BlockTarget>,
    host: Option<&Processors>,
    runs_ftl: bool,
) -> Result<Box<dyn BlockTarget>, String> {
    let sector_bytes = target.block_bytes();
    behind(target, sector_bytes, host, runs_ftl)
}

/// A target of any interface, on a drive with sectors of so many bytes, behind the host's CPUs, if there are any.
///
/// # Errors
/// A sentence, if its sectors cannot be asked for by these processors.
pub fn behind<T: Hosted + ?Sized>(
    target: Box<T>,
    sector_bytes: u32,
    host: Option<&Processors>,
    runs_ftl: bool,
) -> Result<Box<T>, String> {
    let Some((_, config)) = host else { return Ok(target) };
    let config = if runs_ftl { config.clone() } else { config.clone().without_ftl() };
    let on_host =
        HostCpu::on_sectors(target, sector_bytes, config).map_err(|problems| problems.to_string())?;
    Ok(T::boxed(on_host))
}

fn rows_of(
    name: &str,
    args: &RunArgs,
    targets: &[JobTarget],
    config: &ocssd_flash::Config,
) -> Vec<(String, String)> {
    let geometry = &config.geometry;
    let mut rows = vec![
        ("drive".to_owned(), name.to_owned()),
        ("shape".to_owned(), format!("{} groups x {} units", geometry.groups, geometry.pus_per_group)),
        ("capacity_bytes".to_owned(), geometry.capacity_bytes().to_string()),
        (MEDIA_READ_ROW.to_owned(), fastest_read(config).0.to_string()),
        ("payload".to_owned(), format!("{:?}", config.payload).to_lowercase()),
    ];
    rows.extend(args.set.iter().map(|set| ("set".to_owned(), set.clone())));
    for JobTarget { named_target, host } in targets {
        let host = host.as_ref().map_or_else(String::new, |(text, _)| format!(", host_cpu {text}"));
        rows.push(("target".to_owned(), format!("{}{host}", named_target.describe())));
    }
    rows
}
