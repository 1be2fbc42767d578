//! Laying out, then running, under the chosen clock, until all is done or a signal ends it.

use super::Choice;
use super::assemble::{Assembled, DriveFacts, RunDevice};
use super::lay_out::lay_out;
use super::limit::Party;
use super::progress::Bar;
use super::slice::Slice;
use crate::args::RunArgs;
use crate::interrupt::Interrupt;
use crate::live::{Inside, Live, Sample};
use crate::shut_down::{last_request, shut_down};
use anyhow::{anyhow, bail};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, Lateness, RunEnd, WallClock};
use ocssd_flash::config::LinkConfig;
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::block::{BlockReply, Counter};
use ocssd_lightnvm::wrap::UnitCounts;
use ocssd_lightnvm::{Geometry, TargetId};
use ocssd_workload::results::{ClockKind, Direction, JobResult, Tail};
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
    /// How long it took in real time.
    pub took: Duration,
}

/// Runs everything.
pub fn execute(args: &RunArgs, choice: &Choice, assembled: Assembled) -> anyhow::Result<Finished> {
    let Assembled { mut host, plan, targets, names, mut notes, drive, parties } = assembled;
    let started = std::time::Instant::now();
    let interrupt = Interrupt::listen()?;
    let (ended, note) = lay_out(args, &mut host, &plan, &targets, &interrupt)?;
    notes.extend(note.filter(|_| ended.is_none()));
    let interrupted = ended.zip(interrupt.heard()).map(|(thousandths, who)| {
        let percent = thousandths / 10;
        format!("{who} ended it at {percent} % of laying out what jobs read; nothing was measured")
    });
    host.device_mut().inner_mut().clear();
    let before = host.device().inner().inner().counters();
    let targets_before = targets.iter().map(|&id| host.target(id).counters()).collect();
    let measured = Measured {
        plan,
        targets,
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
pub fn shapes<'a, C: Clock>(host: &'a Host<RunDevice, C>, targets: &[TargetId]) -> Vec<TargetShape<'a>> {
    targets.iter().map(|&id| TargetShape(host.target(id))).collect()
}

/// Why a request failed.
pub fn sentence<C: Clock>(host: &Host<RunDevice, C>, reply: &BlockReply) -> String {
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

fn measure<C: Clock>(
    args: &RunArgs,
    mut host: Host<RunDevice, C>,
    measured: Measured,
) -> anyhow::Result<Finished> {
    let Measured { plan, targets, names, mut notes, drive, parties, .. } = measured;
    let Measured { before, targets_before, started, interrupt, interrupted, .. } = measured;
    let mut buffers = host.take_buffers();
    let now = host.clock().now();
    let mut runner = Runner::new(plan, &shapes(&host, &targets), &mut buffers, args.seed, now);
    host.return_buffers(buffers);
    host.device_mut().inner_mut().inner_mut().watch_waits();
    if interrupted.is_some() {
        runner.stop();
    }
    let ended = run_jobs(args, &mut host, &mut runner, (&targets, &names), &interrupt)?;
    let interrupted = interrupted.or(ended);
    let failures = runner
        .failures()
        .map(|(job, direction, reply)| (job.to_owned(), direction, sentence(&host, reply)))
        .collect();
    note_unread(runner.unread(), &mut notes);
    let slow: Vec<Vec<SlowIo>> = Direction::ALL.iter().map(|&direction| runner.slowest(direction)).collect();
    let jobs = runner.into_results(host.buffers_mut());
    let counted = targets.iter().map(|&id| host.target(id).counters());
    let targets_counted = names.into_iter().zip(counted).collect();
    if drive.image.is_some() {
        let last = |&id: &TargetId| last_request(host.target(id)).map(|request| (id, request));
        let last = targets.iter().filter_map(last).collect();
        shut_down(&mut host, last)?;
        note_unkept(host.device().inner().inner(), &mut notes);
    }
    let (lateness, late_samples) = (host.clock().lateness(), host.clock().late_samples());
    let mut device = host.into_device();
    let hash = device.hash();
    let units = device.inner().units().to_vec();
    let flash = device.inner_mut().inner_mut();
    flash.sync().map_err(|error| anyhow!("the image could not be kept: {error}"))?;
    // Whoever waits for the image may have it now.
    drop(drive.image);
    let config = flash.config();
    let slow_of = |direction: Direction| slow[usize::from(direction.number())].clone();
    let ios = |direction| jobs.iter().map(|job| job.direction(direction).total_ios).sum();
    let tails = super::tail::tails(slow_of, flash.slowest_commands(), ios, &config.geometry);
    Ok(Finished {
        jobs,
        tails,
        hash,
        lateness,
        late_samples,
        counters: since(&before, flash.counters()),
        units,
        failures,
        targets: targets_counted,
        targets_before,
        parties,
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
fn run_jobs<C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C>,
    runner: &mut Runner,
    (targets, names): (&[TargetId], &[String]),
    interrupt: &Interrupt,
) -> anyhow::Result<Option<String>> {
    let (began, mut ended) = (host.clock().now(), None);
    let mut live = args.live.filter(|_| !args.quiet).map(Live::new);
    let bar = Bar::new(args.quiet || live.is_some(), "running");
    let mut slice = Slice::new();
    loop {
        let stop = host.clock().now() + slice.length();
        match host.run(runner, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                bail!("the run waits for requests that nobody has; this is a bug, please report the job")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let progress = runner.progress(host.clock().now());
        if let Some(who) = interrupt.heard().filter(|_| ended.is_none()) {
            ended = Some(format!(
                "{who} ended it after {}, when {} of {} jobs were done; what was measured until then is kept",
                host.clock().now().saturating_since(began),
                progress.done,
                progress.workers
            ));
            interrupt.say(args.quiet);
            runner.stop();
        }
        bar.show(progress.thousandths, progress.ios);
        if let Some(live) = live.as_mut().filter(|live| live.is_due()) {
            let done = format!("{} of {} jobs done", progress.done, progress.workers);
            live.head(&done, &format!("{} %", progress.thousandths / 10));
            live.show(sample(host, runner, targets, names));
        }
    }
    bar.finish();
    if let Some(live) = &mut live {
        live.finish();
    }
    Ok(ended)
}

/// How things stand, for the live view.
fn sample<C: Clock>(
    host: &Host<RunDevice, C>,
    runner: &Runner,
    targets: &[TargetId],
    names: &[String],
) -> Sample {
    let flash = host.device().inner().inner();
    let inside = Inside {
        groups: flash.config().geometry.groups,
        unit_busy: flash.counters().unit_busy,
        targets: names.iter().cloned().zip(targets.iter().map(|&id| host.target(id).counters())).collect(),
    };
    Sample { now: host.clock().now(), tally: runner.tally(), inside: Some(inside) }
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
