//! Running a workload under the chosen clock, until the generator has no more requests or a signal ends it.
//!
//! Deliberately not here: what is shown of it.

use crate::args::{ClockArg, WorkloadArgs};
use crate::interrupt::Interrupt;
use crate::run::{Bar, Slice};
use anyhow::{anyhow, bail};
use ocssd_base::Nanos;
use ocssd_drive::Image;
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock, WallClock};
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::wrap::Trace;
use ocssd_lightnvm::{Source, Tag, Target, TargetId};
use ocssd_workload::generator::Generator;
use ocssd_workload::generator::closed_loop::{ClosedLoop, Phase};
use std::time::{Duration, Instant};

/// The drive of a workload, with a hash of what happens.
pub type WorkloadDevice = Trace<Flash>;

/// The only target.
pub const TARGET: TargetId = TargetId(0);

/// A source that can be stopped and tells how far it is.
pub trait Progress {
    /// Makes no more requests.
    fn stop(&mut self);

    /// Requests without an answer.
    fn outstanding(&self) -> usize;

    /// How far it is in thousandths, and how many were answered.
    fn progress(&self) -> (u64, u64);
}

impl<G: Generator> Progress for ClosedLoop<G> {
    fn stop(&mut self) {
        Self::stop(self);
    }

    fn outstanding(&self) -> usize {
        Self::outstanding(self)
    }

    fn progress(&self) -> (u64, u64) {
        (self.thousandths(), self.answered())
    }
}

/// Everything there is before the first request.
pub struct Assembled<G: Generator, T: Target + ?Sized> {
    /// The loop.
    pub host: Host<WorkloadDevice, VirtualClock, T>,
    /// Who asks.
    pub source: ClosedLoop<G>,
    /// The image; kept open, and locked, as long as the run lasts.
    pub image: Option<Image>,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// What a workload came to.
pub struct Asked {
    /// What was measured.
    pub phases: Vec<Phase>,
    /// Bytes the target was given.
    pub bytes_stored: u64,
    /// Bytes that were written to the media, those the target wrote for itself included.
    pub media_written_bytes: u64,
    /// Bytes read from the media.
    pub media_read_bytes: u64,
    /// Chunks that were reset.
    pub resets: u64,
    /// What the target counted.
    pub counters: Vec<Counter>,
    /// The first failure, in words.
    pub failure: Option<String>,
}

/// A workload that has ended.
pub struct Finished {
    /// What it came to.
    pub asked: Asked,
    /// Who ended it and when, unless it ended by itself.
    pub interrupted: Option<String>,
    /// What happened, as one number.
    pub hash: u64,
    /// Sentences for the user.
    pub notes: Vec<String>,
    /// How long it took in real time.
    pub took: Duration,
}

/// Runs it.
pub fn execute<G, T>(args: &WorkloadArgs, assembled: Assembled<G, T>) -> anyhow::Result<Finished>
where
    G: Generator,
    T: Target<Request = G::Request, Reply = G::Reply> + ?Sized,
{
    let Assembled { host, source, image, notes } = assembled;
    let finished = match args.clock {
        ClockArg::Virtual => measure(args, host, source, image.is_some())?,
        ClockArg::Wall => {
            let clock = WallClock::starting_at(host.clock().now());
            measure(args, host.with_clock(clock), source, image.is_some())?
        }
    };
    // Whoever waits for the image may have it now.
    drop(image);
    Ok(Finished { notes, ..finished })
}

fn measure<G, T, C>(
    args: &WorkloadArgs,
    mut host: Host<WorkloadDevice, C, T>,
    mut source: ClosedLoop<G>,
    is_kept: bool,
) -> anyhow::Result<Finished>
where
    G: Generator,
    T: Target<Request = G::Request, Reply = G::Reply> + ?Sized,
    C: Clock,
{
    let (started, before) = (Instant::now(), host.device().inner().counters());
    let interrupted = go(args, &mut host, &mut source)?;
    let counters = host.target(TARGET).counters();
    let after = host.device().inner().counters();
    if is_kept {
        host.ask(G::shutdown(Tag(0)));
    }
    let mut device = host.into_device();
    let hash = device.hash();
    let flash = device.inner_mut();
    flash.sync().map_err(|error| anyhow!("the image could not be kept: {error}"))?;
    let sector = u64::from(flash.config().geometry.sector_bytes);
    let bytes = |of: fn(&FlashCounters) -> u64| (of(&after) - of(&before)) * sector;
    let asked = Asked {
        phases: source.phases().to_vec(),
        bytes_stored: source.bytes_stored(),
        media_written_bytes: bytes(|counters| counters.sectors_written + counters.sectors_copied),
        media_read_bytes: bytes(|counters| counters.sectors_read),
        resets: after.resets - before.resets,
        counters,
        failure: source.failure().map(str::to_owned),
    };
    Ok(Finished { asked, interrupted, hash, notes: Vec::new(), took: started.elapsed() })
}

/// Runs until there are no more requests, or a signal ends it. Gives who ended it and when.
pub fn go<S, T, C>(
    args: &WorkloadArgs,
    host: &mut Host<WorkloadDevice, C, T>,
    source: &mut S,
) -> anyhow::Result<Option<String>>
where
    S: Source<T> + Progress,
    T: Target + ?Sized,
    C: Clock,
{
    let interrupt = Interrupt::listen()?;
    let (began, mut ended) = (host.clock().now(), None);
    let bar = Bar::new(args.quiet, "running");
    let mut slice = Slice::new();
    loop {
        let stop: Nanos = host.clock().now() + slice.length();
        match host.run(source, stop) {
            RunEnd::Finished => break,
            RunEnd::Stuck => {
                let waiting = source.outstanding();
                bail!("{waiting} requests were never answered; this is a bug of the target, please report it")
            }
            RunEnd::Stopped => slice.adapt(),
        }
        if let Some(who) = interrupt.heard().filter(|_| ended.is_none()) {
            let after = host.clock().now().saturating_since(began);
            ended = Some(format!("{who} ended it after {after}; what was measured until then is shown"));
            interrupt.say(args.quiet);
            source.stop();
        }
        let (thousandths, answered) = source.progress();
        bar.show(thousandths, answered);
    }
    bar.finish();
    Ok(ended)
}
