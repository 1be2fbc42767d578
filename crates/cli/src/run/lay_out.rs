//! Laying out: what jobs read and nobody wrote is written before anything is measured, and what workloads beside them load.
//!
//! A large one is announced with its memory and time, and refused where the memory is not there. Deliberately not here: what
//! is written (`workload::run::LayOut`).

use super::assemble::RunDevice;
use super::beside::AllBeside;
use super::execute::{sentence, shapes};
use super::host_target::HostTarget;
use super::progress::Bar;
use super::slice::Slice;
use crate::args::RunArgs;
use crate::interrupt::Interrupt;
use crate::table;
use anyhow::{anyhow, bail};
use ocssd_engine::{Clock, Host, RunEnd};
use ocssd_lightnvm::TargetId;
use ocssd_workload::beside::Askers;
use ocssd_workload::run::{JobPlan, LayOut};
use std::time::{Duration, Instant};

/// A layout of so many bytes is announced (chosen: a few seconds of writing).
const ANNOUNCED_BYTES: u64 = 32 << 30;
/// How long is written before the time of all of it is told (chosen: the first writes find cold memory).
const LEARNED_IN: Duration = Duration::from_millis(500);
/// Bytes of an entry in a target's map, for a drive of less than 2^31 sectors (`ftl::l2p`).
const MAP_BYTES: u64 = 4;

/// Lays out what the plan's jobs read; gives how much of it was written, in thousandths, if it was ended from outside, and what
/// there is to say about it.
pub fn lay_out<T: HostTarget + ?Sized, C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C, T>,
    plan: &JobPlan,
    targets: &[TargetId],
    interrupt: &Interrupt,
) -> anyhow::Result<(Option<u64>, Option<String>)> {
    let mut buffers = host.take_buffers();
    let mut source = LayOut::new(plan, &shapes(host, targets), &mut buffers);
    host.return_buffers(buffers);
    let mut announcement = Announcement::of(host, plan, targets, source.bytes())?;
    let (mut ended, mut nobody) = (None, Askers::none());
    let bar = Bar::new(args.quiet, "laying out");
    let mut slice = Slice::new();
    loop {
        let stop = host.clock().now() + slice.length();
        match T::run(host, &mut source, &mut nobody, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                bail!("the layout waits for requests that nobody has; this is a bug, please report the job")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let (done, total) = source.progress();
        let thousandths = done * 1000 / total.max(1);
        if ended.is_none() && interrupt.heard().is_some() {
            ended = Some(thousandths);
            interrupt.say(args.quiet);
            source.stop();
        }
        if let Some(announcement) = announcement.as_mut().filter(|_| !args.quiet) {
            announcement.tell(done, total);
        }
        bar.show(thousandths, 0);
    }
    bar.finish();
    if let Some(reply) = source.failed() {
        return Err(anyhow!("what the jobs read could not be laid out: {}", sentence(host, reply)));
    }
    source.release(host.buffers_mut());
    host.settle();
    Ok((ended, announcement.map(|announcement| announcement.note)))
}

/// Lets workloads beside the jobs load what they ask for, so that the jobs meet what comes after it; gives how far it was, in
/// thousandths, if it was ended from outside.
pub fn load<T: HostTarget + ?Sized, C: Clock>(
    args: &RunArgs,
    host: &mut Host<RunDevice, C, T>,
    beside: &mut AllBeside,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<u64>> {
    let mut ended = None;
    let bar = Bar::new(args.quiet, "loading");
    let mut slice = Slice::new();
    beside.askers.load_only(true);
    loop {
        let stop = host.clock().now() + slice.length();
        match T::run_askers(host, &mut beside.askers, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                bail!("what is loaded waits for requests that nobody has; this is a bug, please report it")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        let (thousandths, answered) = beside.askers.progress();
        if ended.is_none() && interrupt.heard().is_some() {
            ended = Some(thousandths);
            interrupt.say(args.quiet);
            beside.askers.stop();
        }
        bar.show(thousandths, answered);
    }
    bar.finish();
    beside.askers.load_only(false);
    beside.note_loaded().map_err(anyhow::Error::msg)?;
    host.settle();
    Ok(ended)
}

/// What is said about a large layout.
struct Announcement {
    what: String,
    note: String,
    began: Instant,
    is_told: bool,
}

impl Announcement {
    /// `None` of a small one.
    ///
    /// # Errors
    /// A sentence, if it does not fit into the memory that is free.
    fn of<T: HostTarget + ?Sized, C: Clock>(
        host: &Host<RunDevice, C, T>,
        plan: &JobPlan,
        targets: &[TargetId],
        bytes: u64,
    ) -> anyhow::Result<Option<Self>> {
        let flash = host.device().inner().inner();
        let format = flash.payload_format();
        let sectors = bytes / u64::try_from(format.sector_bytes)?;
        let maps = targets.iter().any(|&id| host.target(id).blocks().zones().is_none());
        // Metadata is kept where a target has some, and that has a map too.
        let beside = if maps { u64::try_from(format.oob_bytes)? + MAP_BYTES } else { 0 };
        let kept = u64::try_from(format.data_bytes)? + beside;
        let memory = flash.content_bytes().map(|_| sectors * kept);
        let unsized_jobs: Vec<&str> = plan
            .jobs()
            .iter()
            .filter(|planned| planned.job.options.size.is_none() && planned.job.options.rw.operations.reads())
            .map(|planned| planned.job.name.as_str())
            .collect();
        let advice = match unsized_jobs.first() {
            Some(name) => {
                format!("job \"{name}\" has no size, so it is all of its target; give it one, as --size=4g")
            }
            None => "a smaller size of the jobs takes less".to_owned(),
        };
        let amount = table::bytes(bytes);
        if let Some((needed, free)) = memory.zip(free_memory()).filter(|(needed, free)| needed > free) {
            bail!(
                "the jobs read {amount} that nobody wrote, and laying it out takes about {} of memory, but {} are free; {advice}",
                table::bytes(needed),
                table::bytes(free)
            );
        }
        if bytes < ANNOUNCED_BYTES {
            return Ok(None);
        }
        let place = memory.map_or_else(
            || "in the image".to_owned(),
            |memory| format!("in {} of memory", table::bytes(memory)),
        );
        let what = format!("laying out {amount} that jobs read and nobody wrote, {place}");
        let note = format!("{amount} that jobs read were laid out first: {advice}");
        Ok(Some(Self { what: format!("{what}: {advice}"), note, began: Instant::now(), is_told: false }))
    }

    /// Tells it once, as soon as it is known how long it takes.
    fn tell(&mut self, done: u64, total: u64) {
        let gone = self.began.elapsed();
        if self.is_told || gone < LEARNED_IN || done == 0 {
            return;
        }
        self.is_told = true;
        let left = gone.as_millis() * u128::from(total - done) / u128::from(done) / 1000;
        eprintln!("about {left} s for {}; Ctrl-C ends it", self.what);
    }
}

/// Memory that can be had without swapping, where the system says.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
