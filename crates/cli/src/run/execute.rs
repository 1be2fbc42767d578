//! Laying out, then running, under the chosen clock, until all is done or a signal ends it.

use super::Choice;
use super::assemble::{Assembled, DriveFacts, RunDevice};
use super::beside::AllBeside;
use super::buffered::{Drive, Looks, Meanwhile};
use super::host_target::HostTarget;
use super::lay_out::{lay_out, load};
use super::limit::Party;
use super::progress::Bar;
use super::slice::Slice;
use crate::args::RunArgs;
use crate::interrupt::Interrupt;
use crate::live::{Inside, Live, Sample};
use crate::shut_down::shut_down;
use anyhow::{anyhow, bail};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, Lateness, RunEnd, WallClock};
use ocssd_flash::config::LinkConfig;
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::block::{BlockReply, Counter};
use ocssd_lightnvm::wrap::UnitCounts;
use ocssd_lightnvm::{Geometry, TargetId};
use ocssd_workload::results::{BesideResult, ClockKind, Direction, JobResult, Tail};
use ocssd_workload::run::{JobPlan, Runner, SlowIo, TargetShape};
use std::time::Duration;

/// A run that has ended.
pub struct Finished {
    /// The jobs' results.
    pub jobs: Vec<JobResult>,
    /// What happened, as one number.
    pub hash: u64,
    /// How late the clock's waits ended, in wall time.
    pub lateness: Option<Lateness>,
    /// Every wait's lateness with how often it occurred.
    pub late_samples: Vec<(Nanos, u64)>,
    /// What the drive did in the measured part.
    pub counters: FlashCounters,
    /// What each parallel unit was asked in the measured part.
    pub units: Vec<UnitCounts>,
    /// First failures: job, direction, sentence.
    pub failures: Vec<(String, Direction, String)>,
    /// What each target counted: its kind, and its counters.
    pub targets: Vec<(String, Vec<Counter>)>,
    /// The same counters when measuring began.
    pub targets_before: Vec<Vec<Counter>>,
    /// What the slowest I/Os waited for.
    pub tails: Vec<Tail>,
    /// Who used which target.
    pub parties: Vec<Party>,
    /// What happened while each job ran.
    pub meanwhile: Vec<Meanwhile>,
    /// Speed of the link to the host.
    pub link: LinkConfig,
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// What the drive is.
    pub drive: Vec<(String, String)>,
    /// The drive's shape.
    pub geometry: Geometry,
    /// Median time of a sense.
    pub read_time: Nanos,
    /// Who ended it and when, in words, unless it ended by itself.
    pub interrupted: Option<String>,
    /// What workloads beside the jobs came to.
    pub beside: Vec<BesideResult>,
    /// How long it took in real time.
    pub took: Duration,
}

/// Runs everything.
pub fn execute<T: HostTarget + ?Sized>(
    args: &RunArgs,
    choice: &Choice,
    assembled: Assembled<T>,
) -> anyhow::Result<Finished> {
    let Assembled { mut host, plan, targets, mut beside, names, mut notes, drive, parties } = assembled;
    let started = std::time::Instant::now();
    let interrupt = Interrupt::listen()?;
    let (ended, note) = lay_out(args, &mut host, &plan, &targets, &interrupt)?;
    notes.extend(note.filter(|_| ended.is_none()));
    let ended = match ended {
        Some(thousandths) => Some((thousandths, "laying out what jobs read")),
        None => load(args, &mut host, &mut beside, &interrupt)?
            .map(|thousandths| (thousandths, "loading what is asked beside the jobs")),
    };
    let interrupted = ended.zip(interrupt.heard()).map(|((thousandths, what), who)| {
        format!("{who} ended it at {} % of {what}; nothing was measured", thousandths / 10)
    });
    host.device_mut().inner_mut().clear();
    let before = host.device().inner().inner().counters();
    let targets_before = targets.iter().map(|&id| host.target(id).counters()).collect();
    let measured = Measured {
        plan,
        targets,
        beside,
        names,
        notes,
        drive,
        parties,
        before,
        targets_before,
        started,
        interrupt,
        interrupted,
    };
    match choice.clock {
        ClockKind::Virtual => measure(args, host, measured),
        ClockKind::Wall => {
            let clock = WallClock::starting_at(host.clock().now());
            measure(args, host.with_clock(clock), measured)
        }
    }
}

struct Measured {
    plan: JobPlan,
    targets: Vec<TargetId>,
    beside: AllBeside,
    names: Vec<String>,
    notes: Vec<String>,
    drive: DriveFacts,
    parties: Vec<Party>,
    before: FlashCounters,
    targets_before: Vec<Vec<Counter>>,
    started: std::time::Instant,
    interrupt: Interrupt,
    /// It ended before anything was measured.
    interrupted: Option<String>,
}

/// The targets as plans see them.
pub fn shapes<'a, T: HostTarget + ?Sized, C: Clock>(
    host: &'a Host<RunDevice, C, T>,
    targets: &[TargetId],
) -> Vec<TargetShape<'a>> {
    targets.iter().map(|&id| TargetShape(host.target(id).blocks())).collect()
}

/// Why a request failed.
pub fn sentence<T: HostTarget + ?Sized, C: Clock>(
    host: &Host<RunDevice, C, T>,
    reply: &BlockReply,
) -> String {
    let flash = host.device().inner().inner();
    if let Some(error) = flash.store_error() {
        return error.to_string();
    }
    let status = reply.status;
    match reply.violation {
        Some(violation) => violation.explain(&flash.config().geometry, status),
        None => format!("status {:03X}h, {}: {}", status.0, status.name(), status.meaning()),
    }
}

fn measure<T: HostTarget + ?Sized, C: Clock>(
    args: &RunArgs,
    mut host: Host<RunDevice, C, T>,
    measured: Measured,
) -> anyhow::Result<Finished> {
    let Measured { plan, targets, mut beside, names, mut notes, drive, parties, .. } = measured;
    let Measured { before, targets_before, started, interrupt, interrupted, .. } = measured;
    let (now, mut buffers) = (host.clock().now(), host.take_buffers());
    let mut runner = Runner::new(plan, &shapes(&host, &targets), &mut buffers, args.seed, now);
    host.return_buffers(buffers);
    host.device_mut().inner_mut().inner_mut().watch_waits();
    let all: Vec<TargetId> = targets.into_iter().chain(beside.facts.iter().map(|one| one.target)).collect();
    let mut asking = Asking::new(&mut runner, &mut beside, (&all, &names), &parties);
    if interrupted.is_some() {
        asking.stop();
    }
    let ended = run_jobs(args, &mut host, &mut asking, &interrupt)?;
    let meanwhile = asking.looks.found();
    let interrupted = interrupted.or(ended);
    // What follows is not of the jobs' time: answers to others, and shutdowns.
    let counters = since(&before, host.device().inner().inner().counters());
    let (units, done) = (host.device().inner().units().to_vec(), host.clock().now());
    drain(&mut host, &mut beside)?;
    let failures = runner
        .failures()
        .map(|(job, direction, reply)| (job.to_owned(), direction, sentence(&host, reply)))
        .collect();
    note_unread(runner.unread(), &mut notes);
    notes.extend(beside.notes(now, done).filter(|_| interrupted.is_none()));
    let slow: Vec<Vec<SlowIo>> = Direction::ALL.iter().map(|&direction| runner.slowest(direction)).collect();
    let jobs = runner.into_results(host.buffers_mut());
    let counted = all.iter().map(|&id| host.target(id).counters());
    let targets: Vec<(String, Vec<Counter>)> = names.into_iter().zip(counted).collect();
    if drive.image.is_some() {
        leave(&mut host, &all, &mut notes)?;
    }
    let (lateness, late_samples) = (host.clock().lateness(), host.clock().late_samples());
    let mut device = host.into_device();
    let hash = device.hash();
    let flash = device.inner_mut().inner_mut();
    flash.sync().map_err(|error| anyhow!("the image could not be kept: {error}"))?;
    // Whoever waits for the image may have it now.
    drop(drive.image);
    let config = flash.config();
    let slow_of = |direction: Direction| slow[usize::from(direction.number())].clone();
    let ios = |direction| jobs.iter().map(|job| job.direction(direction).total_ios).sum();
    let tails = super::tail::tails(slow_of, flash.slowest_commands(), ios, &config.geometry);
    Ok(Finished {
        beside: beside.results(&units, &config.geometry, &targets),
        jobs,
        tails,
        hash,
        lateness,
        late_samples,
        counters,
        units,
        failures,
        targets,
        targets_before,
        parties,
        meanwhile,
        link: config.link,
        notes,
        drive: drive.rows,
        geometry: config.geometry.clone(),
        read_time: config.media.read[config.media.read.len() / 2],
        interrupted,
        took: started.elapsed(),
    })
}

/// Says how many written blocks the media do not give back yet.
fn note_unread(blocks: u64, notes: &mut Vec<String>) {
    if blocks > 0 {
        notes.push(format!(
            "{blocks} written blocks could not be read back: the newest of an open zone become readable when more is \
             written after them (mw_cunits)"
        ));
    }
}

/// Says that what was written is not all there, if the image's file failed; a job that was answered from a buffer may not
/// have met it.
fn note_unkept(flash: &Flash, notes: &mut Vec<String>) {
    if let Some(error) = flash.store_error().filter(|_| !flash.takes_changes()) {
        notes.push(format!("the image does not hold all that was written: {error}"));
    }
}

/// Runs until all jobs are done, or a signal ends them, and shows how far they are. Gives who ended them and when.
fn run_jobs<T: HostTarget + ?Sized, C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C, T>,
    asking: &mut Asking<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<String>> {
    let (began, mut ended) = (host.clock().now(), None);
    let mut live = args.live.filter(|_| !args.quiet).map(Live::new);
    let bar = Bar::new(args.quiet || live.is_some(), "running");
    let mut slice = Slice::new();
    loop {
        let stop = host.clock().now() + slice.length();
        match T::run(host, asking.runner, &mut asking.beside.askers, stop) {
            RunEnd::Finished => {
                look(host, asking);
                if asking.runner.is_done() {
                    break;
                }
                continue;
            }
            RunEnd::Stuck => {
                bail!("the run waits for requests that nobody has; this is a bug, please report the job")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let progress = asking.runner.progress(host.clock().now());
        if let Some(who) = interrupt.heard().filter(|_| ended.is_none()) {
            ended = Some(format!(
                "{who} ended it after {}, when {} of {} jobs were done; what was measured until then is kept",
                host.clock().now().saturating_since(began),
                progress.done,
                progress.workers
            ));
            interrupt.say(args.quiet);
            asking.runner.stop();
        }
        bar.show(progress.thousandths, progress.ios);
        if let Some(live) = live.as_mut().filter(|live| live.is_due()) {
            let done = format!("{} of {} jobs done", progress.done, progress.workers);
            live.head(&done, &format!("{} %", progress.thousandths / 10));
            live.show(sample(host, asking));
        }
    }
    bar.finish();
    if let Some(live) = &mut live {
        live.finish();
    }
    Ok(ended)
}

/// Lets targets on an image put away what they know.
fn leave<T: HostTarget + ?Sized, C: Clock>(
    host: &mut Host<RunDevice, C, T>,
    targets: &[TargetId],
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    let last = |&id: &TargetId| host.target(id).last_request().map(|request| (id, request));
    let last = targets.iter().filter_map(last).collect();
    shut_down(host, last)?;
    note_unkept(host.device().inner().inner(), notes);
    Ok(())
}

/// Lets what was asked beside the jobs be answered.
fn drain<T: HostTarget + ?Sized, C: Clock>(
    host: &mut Host<RunDevice, C, T>,
    beside: &mut AllBeside,
) -> anyhow::Result<()> {
    match T::run_askers(host, &mut beside.askers, Nanos::MAX) {
        RunEnd::Finished => Ok(()),
        RunEnd::Stuck | RunEnd::Stopped => {
            bail!(
                "what asks beside the jobs waits for requests that nobody has; this is a bug, please report it"
            )
        }
    }
}

/// Who asks, and whom.
struct Asking<'a> {
    runner: &'a mut Runner,
    beside: &'a mut AllBeside,
    targets: &'a [TargetId],
    names: &'a [String],
    parties: &'a [Party],
    looks: Looks,
}

impl<'a> Asking<'a> {
    fn new(
        runner: &'a mut Runner,
        beside: &'a mut AllBeside,
        (targets, names): (&'a [TargetId], &'a [String]),
        parties: &'a [Party],
    ) -> Self {
        runner.pause_at_turns();
        let looks = Looks::new(parties.iter().map(|party| party.jobs.len()).sum());
        Self { runner, beside, targets, names, parties, looks }
    }

    fn stop(&mut self) {
        self.runner.stop();
        self.beside.askers.stop();
    }
}

/// Looks at jobs that began or ended.
fn look<T: HostTarget + ?Sized, C: Clock>(host: &Host<RunDevice, C, T>, asking: &mut Asking<'_>) {
    let (stats, flash) = (host.device().inner(), host.device().inner().inner());
    let (counters, geometry) = (&flash.counters(), &flash.config().geometry);
    asking.looks.look(asking.runner, asking.parties, Drive { counters, units: stats.units(), geometry });
    asking.runner.go_on();
}

/// How things stand, for the live view.
fn sample<T: HostTarget + ?Sized, C: Clock>(host: &Host<RunDevice, C, T>, asking: &Asking<'_>) -> Sample {
    let flash = host.device().inner().inner();
    let counted = asking.targets.iter().map(|&id| host.target(id).counters());
    let inside = Inside {
        groups: flash.config().geometry.groups,
        unit_busy: flash.counters().unit_busy,
        targets: asking.names.iter().cloned().zip(counted).collect(),
    };
    Sample { now: host.clock().now(), tally: asking.runner.tally(), inside: Some(inside) }
}

/// What was counted after `before`.
fn since(before: &FlashCounters, mut after: FlashCounters) -> FlashCounters {
    after.sectors_read -= before.sectors_read;
    after.sectors_read_cached -= before.sectors_read_cached;
    after.sectors_written -= before.sectors_written;
    after.sectors_copied -= before.sectors_copied;
    after.resets -= before.resets;
    after.refused -= before.refused;
    after.media.senses -= before.media.senses;
    after.media.register_hits -= before.media.register_hits;
    after.media.programs -= before.media.programs;
    after.media.erases -= before.media.erases;
    after.media.suspends -= before.media.suspends;
    after.media.program_suspends -= before.media.program_suspends;
    let busy = after.unit_busy.iter_mut().zip(&before.unit_busy);
    for (after, before) in busy.chain(after.channel_busy.iter_mut().zip(&before.channel_busy)) {
        *after = *after - *before;
    }
    after
}
