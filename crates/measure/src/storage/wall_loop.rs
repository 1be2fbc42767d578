//! The loop of real files: requests to the system, replies back, waiting in the system and nowhere else.
//!
//! The same [`Source`] that `engine::Host` runs on virtual drives runs here on a [`FileTarget`]. Time is read right before a
//! request is asked for, and once for all that a wait brings, so that latency holds the way into the system and back and
//! none of the bookkeeping in between. Deliberately not here: signals; `go_on` is asked between waits.

use super::file_target::FileTarget;
use super::system::no_timer_slack;
use ocssd_base::Nanos;
use ocssd_engine::{Clock, WallClock};
use ocssd_lightnvm::{Buffers, Source, TargetId};
use std::time::Duration;

/// Longest wait before `go_on` is asked again (chosen: a person who presses Ctrl-C does not notice it).
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The last stretch before a request is due is spent asking again and again: a sleeping thread wakes later than it asked (chosen:
/// what a quiet machine takes to wake one whose timer has no slack).
const SPIN: Nanos = Nanos::from_micros(20);
/// A device that answers nothing for so long is gone (chosen: longer than the kernel's own limit for an NVMe command, 30 s).
const SILENT_MAX: Nanos = Nanos::from_secs(40);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// The source is finished.
    Finished,
    /// `go_on` said no; what was asked may still be under way.
    Stopped,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The system refused the way I/O is done.
    #[error("the system refuses {engine}: {error}; try --engine threads")]
    Refused {
        /// The back end.
        engine: &'static str,
        /// What it said.
        error: std::io::Error,
    },
    /// Nothing came back.
    #[error("no I/O has ended for {} s: the device does not answer; see what the kernel says of it (dmesg)", SILENT_MAX.0 / 1_000_000_000)]
    Silent,
    /// Nobody has anything to do.
    #[error("the jobs wait for requests that nobody has; this is a bug, please report what was run")]
    Stuck,
}

/// Runs `source` until it is finished or `go_on`, which may look at it, says no.
///
/// # Errors
/// If the system refuses, or answers nothing any more.
pub fn run<S: Source>(
    target: &mut FileTarget,
    source: &mut S,
    buffers: &mut Buffers,
    clock: &mut WallClock,
    go_on: &mut dyn FnMut(Nanos, &S) -> bool,
) -> Result<LoopEnd, LoopError> {
    no_timer_slack();
    let mut heard = clock.now();
    let mut look = heard;
    loop {
        while !target.is_full() {
            let now = clock.now();
            let Some((_, request)) = source.poll_request(now, buffers) else { break };
            target.start(request, buffers);
        }
        if source.is_finished() {
            return Ok(LoopEnd::Finished);
        }
        let now = clock.now();
        if now >= look {
            if !go_on(now, source) {
                return Ok(LoopEnd::Stopped);
            }
            look = now + Nanos::from_millis(100);
        }
        let arrival = if target.is_full() { None } else { source.next_arrival() };
        let limit = arrival
            .map_or(LOOK_EVERY, |at| Duration::from_nanos(at.saturating_since(now + SPIN).0).min(LOOK_EVERY));
        if target.is_busy() {
            let engine = target.engine();
            target.wait(limit).map_err(|error| LoopError::Refused { engine, error })?;
        } else if let Some(at) = arrival {
            clock.wait_until(at.min(now + Nanos::from_millis(100)));
        }
        let now = clock.now();
        let mut ended = false;
        while let Some(reply) = target.take_reply(buffers) {
            source.on_reply(now, TargetId(0), reply, buffers);
            ended = true;
        }
        if ended || !target.is_busy() {
            if !ended && arrival.is_none() {
                return Err(LoopError::Stuck);
            }
            heard = now;
        } else if now > heard + SILENT_MAX {
            return Err(LoopError::Silent);
        }
    }
}
