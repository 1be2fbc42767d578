//! Laying out, then running, under the chosen clock.

use super::Choice;
use super::assemble::{Assembled, DriveFacts, RunDevice};
use super::progress::Bar;
use crate::args::RunArgs;
use crate::live::{Inside, Live, Sample};
use crate::shut_down::shut_down;
use anyhow::{anyhow, bail};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, Lateness, RunEnd, WallClock};
use ocssd_flash::FlashCounters;
use ocssd_lightnvm::block::{BlockReply, Counter};
use ocssd_lightnvm::wrap::UnitCounts;
use ocssd_lightnvm::{Geometry, TargetId};
use ocssd_workload::results::{ClockKind, Direction, JobResult};
use ocssd_workload::run::{LayOut, Plan, Runner, TargetShape};
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
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// What the drive is.
    pub drive: Vec<(String, String)>,
    /// The drive's shape.
    pub geometry: Geometry,
    /// Median time of a sense.
    pub read_time: Nanos,
    /// How long it took in real time.
    pub took: Duration,
}

/// Runs everything.
pub fn execute(args: &RunArgs, choice: &Choice, assembled: Assembled) -> anyhow::Result<Finished> {
    let Assembled { mut host, plan, targets, names, notes, drive } = assembled;
    let started = std::time::Instant::now();
    lay_out(args, &mut host, &plan, &targets)?;
    host.device_mut().inner_mut().clear();
    let before = host.device().inner().inner().counters();
    let measured = Measured { plan, targets, names, notes, drive, before, started };
    match choice.clock {
        ClockKind::Virtual => measure(args, host, measured),
        ClockKind::Wall => {
            let clock = WallClock::starting_at(host.clock().now());
            measure(args, host.with_clock(clock), measured)
        }
    }
}

struct Measured {
    plan: Plan,
    targets: Vec<TargetId>,
    names: Vec<String>,
    notes: Vec<String>,
    drive: DriveFacts,
    before: FlashCounters,
    started: std::time::Instant,
}

fn shapes<'a, C: Clock>(host: &'a Host<RunDevice, C>, targets: &[TargetId]) -> Vec<TargetShape<'a>> {
    targets.iter().map(|&id| TargetShape(host.target(id))).collect()
}

/// Virtual time between two looks at the progress: adapted so that a look comes a few times a second.
struct Slice {
    length: Nanos,
    looked: std::time::Instant,
}

impl Slice {
    fn new() -> Self {
        Self { length: Nanos::from_millis(10), looked: std::time::Instant::now() }
    }

    /// Longer or shorter, by how long the last one took.
    fn adapt(&mut self) {
        let took = self.looked.elapsed();
        self.looked = std::time::Instant::now();
        if took < Duration::from_millis(50) {
            self.length = Nanos((self.length.0 * 2).min(Nanos::from_secs(3600).0));
        } else if took > Duration::from_millis(400) {
            self.length = Nanos((self.length.0 / 2).max(1_000_000));
        }
    }
}

fn lay_out<C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C>,
    plan: &Plan,
    targets: &[TargetId],
) -> anyhow::Result<()> {
    let mut buffers = host.take_buffers();
    let mut source = LayOut::new(plan, &shapes(host, targets), &mut buffers);
    host.return_buffers(buffers);
    let bar = Bar::new(args.quiet, "laying out");
    let mut slice = Slice::new();
    loop {
        let stop = host.clock().now() + slice.length;
        match host.run(&mut source, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                bail!("the layout waits for requests that nobody has; this is a bug, please report the job")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let (done, total) = source.progress();
        bar.show(done * 1000 / total.max(1), 0);
    }
    bar.finish();
    if let Some(reply) = source.failed() {
        return Err(anyhow!("what the jobs read could not be laid out: {}", sentence(host, reply)));
    }
    source.release(host.buffers_mut());
    host.settle();
    Ok(())
}

fn sentence<C: Clock>(host: &Host<RunDevice, C>, reply: &BlockReply) -> String {
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
    let Measured { plan, targets, names, mut notes, drive, before, started } = measured;
    let mut buffers = host.take_buffers();
    let now = host.clock().now();
    let mut runner = Runner::new(plan, &shapes(&host, &targets), &mut buffers, args.seed, now);
    host.return_buffers(buffers);
    run_jobs(args, &mut host, &mut runner, (&targets, &names))?;
    let failures = runner
        .failures()
        .map(|(job, direction, reply)| (job.to_owned(), direction, sentence(&host, reply)))
        .collect();
    let unread = runner.unread();
    if unread > 0 {
        notes.push(format!(
            "{unread} written blocks could not be read back: the newest of an open zone become readable when more is \
             written after them (mw_cunits)"
        ));
    }
    let jobs = runner.into_results(host.buffers_mut());
    let counted = targets.iter().map(|&id| host.target(id).counters());
    let targets_counted = names.into_iter().zip(counted).collect();
    if drive.image.is_some() {
        shut_down(&mut host, &targets)?;
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
    Ok(Finished {
        jobs,
        hash,
        lateness,
        late_samples,
        counters: since(&before, flash.counters()),
        units,
        failures,
        targets: targets_counted,
        notes,
        drive: drive.rows,
        geometry: config.geometry.clone(),
        read_time: config.media.read[config.media.read.len() / 2],
        took: started.elapsed(),
    })
}

/// Runs until all jobs are done, and shows how far they are.
fn run_jobs<C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C>,
    runner: &mut Runner,
    (targets, names): (&[TargetId], &[String]),
) -> anyhow::Result<()> {
    let mut live = args.live.filter(|_| !args.quiet).map(Live::new);
    let bar = Bar::new(args.quiet || live.is_some(), "running");
    let mut slice = Slice::new();
    loop {
        let stop = host.clock().now() + slice.length;
        match host.run(runner, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                bail!("the run waits for requests that nobody has; this is a bug, please report the job")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let progress = runner.progress(host.clock().now());
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
    Ok(())
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
    let busy = after.unit_busy.iter_mut().zip(&before.unit_busy);
    for (after, before) in busy.chain(after.channel_busy.iter_mut().zip(&before.channel_busy)) {
        *after = *after - *before;
    }
    after
}
