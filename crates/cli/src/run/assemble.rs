//! A drive, its targets, and the plan of the jobs on them.

use super::Choice;
use super::limit::Party;
use crate::args::RunArgs;
use crate::drive_facts::fastest_read;
use crate::drive_failure::with_cause;
use crate::lease::lease;
use anyhow::{Context, anyhow};
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::wrap::{Stats, Trace};
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_measure::lint::MEDIA_READ_ROW;
use ocssd_targets::linear::Layout;
use ocssd_targets::named_target::NamedTarget;
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig};
use ocssd_workload::job::{self, IoEngine, Job, Parsed, Placement};
use ocssd_workload::results::ClockKind;
use ocssd_workload::run::{JobPlan, PlannedJob, TargetShape};

/// The device of a run: the drive, counted and traced.
pub type RunDevice = Trace<Stats<Flash>>;

/// Everything ready to run.
pub struct Assembled {
    /// The loop with drive and targets, in virtual time.
    pub host: Host<RunDevice, VirtualClock>,
    /// The jobs on them.
    pub plan: JobPlan,
    /// The targets, in order.
    pub targets: Vec<TargetId>,
    /// Their kinds.
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
pub fn assemble(args: &RunArgs, choice: &Choice, parsed: &Parsed) -> anyhow::Result<Assembled> {
    let source = Source::named(&choice.drive)?;
    let options = OpenOptions { settings: args.set.clone(), ..OpenOptions::default() };
    let OpenDrive { flash, mut media_manager, image, spec, .. } =
        crate::open_drive::open_drive(&source, &options)?;
    let geometry = spec.config.geometry.clone();
    let mut targets: Vec<JobTarget> = Vec::new();
    let mut jobs = Vec::new();
    for job in &parsed.jobs {
        let host = host_of(job, args.host_cpu.as_deref(), args.target.as_deref(), choice.clock);
        let wanted = host.and_then(|host| {
            let target = args.target.as_deref();
            Ok(JobTarget { named_target: named_target_of(job, target, &geometry, &media_manager)?, host })
        });
        let wanted = wanted.map_err(|message| anyhow!("job \"{}\": {message}", job.name))?;
        let place = targets.iter().position(|other| *other == wanted).unwrap_or_else(|| {
            targets.push(wanted);
            targets.len() - 1
        });
        let target = TargetId(u32::try_from(place).context("more targets than a host can have")?);
        jobs.push(PlannedJob { job: job.clone(), target });
    }
    let kept: Vec<String> = media_manager.list().iter().map(|lease| lease.name.clone()).collect();
    let mut made: Vec<Box<dyn BlockTarget>> = Vec::new();
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut device = Trace::new(Stats::new(flash), 0);
    let mut notes: Vec<String> = parsed.notes.iter().map(ToString::to_string).collect();
    for (number, JobTarget { named_target, host }) in targets.iter().enumerate() {
        lease(named_target, &mut media_manager, &format!("run{number}"), &kept, ADVICE)?;
        let kind = crate::kinds::find(&named_target.kind).map_err(anyhow::Error::msg)?;
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let target = kind
            .make_within(&mut caller, &named_target.spec(), |target| {
                on_host(target, host.as_ref(), kind.runs_on_host())
            })
            .map_err(|sentence| with_cause(sentence, device.inner().inner()))?;
        notes.extend(target.notes);
        made.push(target.target);
    }
    let shapes: Vec<TargetShape<'_>> = made.iter().map(|target| TargetShape(target.as_ref())).collect();
    let plan = JobPlan::new(jobs, &shapes).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })?;
    drop(shapes);
    notes.extend(plan.notes().iter().cloned());
    let parties = parties(&targets, &plan);
    let rows = rows_of(&choice.drive, args, &targets, &spec.config);
    let mut host = Host::new(device, clock, buffers);
    let names = targets.iter().map(|one| one.named_target.kind.clone()).collect();
    let targets = made.into_iter().map(|target| host.add(target)).collect();
    Ok(Assembled { host, plan, targets, names, notes, drive: DriveFacts { rows, image }, parties })
}

/// Options by which a job does less than it could.
const PACING: [&str; 5] = ["rate", "rate_iops", "rate_process", "thinktime", "thinkcycles"];

/// The targets, each with the results its jobs will have: one for each clone, in the order of the jobs.
fn parties(named: &[JobTarget], plan: &JobPlan) -> Vec<Party> {
    let party = |JobTarget { named_target, host }: &JobTarget| Party {
        jobs: Vec::new(),
        units: named_target.units.clone(),
        writers: host.as_ref().map(|(_, config)| config.writers),
        is_paced: false,
    };
    let mut parties: Vec<Party> = named.iter().map(party).collect();
    for (number, planned) in plan.clones().enumerate() {
        let party = &mut parties[planned.target.index()];
        party.jobs.push(number);
        party.is_paced |= planned.job.given.iter().any(|(name, _)| PACING.contains(&name.as_str()));
    }
    parties
}

fn named_target_of(
    job: &Job,
    default: Option<&str>,
    geometry: &ocssd_lightnvm::Geometry,
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
) -> Result<Option<(String, HostCpuConfig)>, String> {
    let is_null = job.options.ioengine == IoEngine::Null
        || job.extension.target.as_deref().or(target).is_some_and(|kind| kind == "null");
    let unasked = (clock == ClockKind::Virtual && !is_null).then_some(HOST_CPU_DEFAULT);
    let Some(text) = job.extension.host_cpu.as_deref().or(default).or(unasked) else { return Ok(None) };
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
    host: Option<&(String, HostCpuConfig)>,
    runs_ftl: bool,
) -> Result<Box<dyn BlockTarget>, String> {
    let Some((_, config)) = host else { return Ok(target) };
    let config = if runs_ftl { config.clone() } else { config.clone().without_ftl() };
    let on_host = HostCpu::new(target, config).map_err(|problems| problems.to_string())?;
    Ok(Box::new(on_host))
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
