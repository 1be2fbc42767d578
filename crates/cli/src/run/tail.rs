//! What the slowest I/Os waited for: those of jobs or clients beside those of the drive.
//!
//! A target reads into the buffer of the request, so a command with that buffer while the I/O was under way is the I/O's own.
//! Most of an I/O's time is the longest wait of such a command, or what is left of its time without waits, or what came
//! before and after. Deliberately not here: what was waited for by what was waited for.

use ocssd_base::Nanos;
use ocssd_flash::{SlowCommand, Wait, WaitFor};
use ocssd_lightnvm::{BufId, Geometry};
use ocssd_workload::results::{Blame, Direction, Tail, TailCause};
use ocssd_workload::run::SlowIo;
use std::collections::{BTreeMap, HashMap};

/// Slow commands of the drive, by whose data they moved.
type ByBuffer<'a> = HashMap<BufId, Vec<&'a SlowCommand>>;

/// What took most of an I/O's time, where, and how long.
type Cause = (Blame, Option<String>, Nanos);

/// One of reads and one of writes, where there are enough of them to speak of a tail.
pub fn tails<'a>(
    slow_ios: impl Fn(Direction) -> Vec<SlowIo>,
    commands: impl Iterator<Item = &'a SlowCommand>,
    ios: impl Fn(Direction) -> u64,
    geometry: &Geometry,
) -> Vec<Tail> {
    let mut by_buffer = [ByBuffer::new(), ByBuffer::new()];
    for command in commands {
        by_buffer[usize::from(!command.is_read)].entry(command.buffer).or_default().push(command);
    }
    let one = |(direction, commands): (Direction, &ByBuffer<'_>)| {
        let (percentile, beyond) = Tail::percentile_of(ios(direction))?;
        let mut slow = slow_ios(direction);
        slow.truncate(usize::try_from(beyond).expect("fewer than a hundred"));
        let latency = slow.last()?.latency;
        let causes: Vec<Cause> = slow.iter().map(|io| cause(io, commands, geometry)).collect();
        let are_unknown = causes.iter().all(|(blame, ..)| *blame == Blame::Outside);
        if direction == Direction::Read && are_unknown && !commands.is_empty() {
            // Of blocks smaller than sectors the target reads into buffers of its own: nothing is known then.
            return None;
        }
        let ios = u64::try_from(slow.len()).expect("fewer than a hundred");
        Some(Tail { direction, percentile, ios, latency, causes: gathered(causes) })
    };
    [Direction::Read, Direction::Write].into_iter().zip(&by_buffer).filter_map(one).collect()
}

/// What took most of an I/O's time.
fn cause(io: &SlowIo, commands: &ByBuffer<'_>, geometry: &Geometry) -> Cause {
    let ended = io.issued + io.latency;
    let of_buffer = commands.get(&io.buffer).map_or(&[][..], Vec::as_slice);
    let own = of_buffer.iter().filter(|command| command.submitted >= io.issued && command.ended <= ended);
    let waited = |command: &SlowCommand| command.longest().map_or(Nanos::ZERO, |wait| wait.time);
    let Some(command) = own.max_by_key(|command| (waited(command), command.time())) else {
        return (Blame::Outside, None, io.latency);
    };
    let outside = io.latency.saturating_since(command.time());
    let own_time = command.own_time();
    match command.longest() {
        Some(wait) if wait.time >= outside.max(own_time) => blamed(wait, geometry),
        _ if outside > own_time => (Blame::Outside, None, outside),
        _ => (Blame::Media, None, own_time),
    }
}

fn blamed(wait: Wait, geometry: &Geometry) -> Cause {
    let group = geometry.group_of(wait.pu).0;
    let unit = || Some(format!("g{group}/p{}", wait.pu.0 % geometry.pus_per_group));
    let (blame, place) = match wait.what {
        WaitFor::Erase => (Blame::Reset, unit()),
        WaitFor::Program => (Blame::Program, unit()),
        WaitFor::Read => (Blame::Read, unit()),
        WaitFor::Channel => (Blame::Channel, Some(format!("g{group}"))),
        WaitFor::Link => (Blame::Link, None),
    };
    (blame, place, wait.time)
}

/// The causes, each once, that of most I/Os first; so are its places.
fn gathered(causes: Vec<Cause>) -> Vec<TailCause> {
    let mut by_blame: BTreeMap<Blame, (u64, BTreeMap<String, u64>, Nanos)> = BTreeMap::new();
    for (blame, place, time) in causes {
        let (ios, places, longest) = by_blame.entry(blame).or_default();
        *ios += 1;
        *longest = time.max(*longest);
        if let Some(place) = place {
            *places.entry(place).or_default() += 1;
        }
    }
    let one = |(blame, (ios, places, longest)): (Blame, (u64, BTreeMap<String, u64>, Nanos))| {
        let mut places: Vec<(String, u64)> = places.into_iter().collect();
        places.sort_by_key(|(_, ios)| std::cmp::Reverse(*ios));
        TailCause { blame, ios, places, longest }
    };
    let mut all: Vec<TailCause> = by_blame.into_iter().map(one).collect();
    all.sort_by_key(|cause| std::cmp::Reverse(cause.ios));
    all
}
