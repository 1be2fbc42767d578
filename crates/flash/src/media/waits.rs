//! What commands wait for, and the slowest of them: for whoever wants to say why a latency is long.
//!
//! Nothing is watched until somebody asks; before that it costs a look at an empty place wherever something has to wait. Then
//! every wait of a part is noted with its command: for an array, what the array did meanwhile; for a channel, that others had
//! it. Deliberately not here: which request of a target a command belongs to (its buffer tells), and words.

use super::part::{PartId, PartKind};
use ocssd_base::{Nanos, SlabKey};
use ocssd_lightnvm::{BufId, PuId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slow commands kept, of reads and of writes each (chosen: a hundred users' I/Os are explained by them even if forty times as
/// many commands are a target's own).
const SLOW_MAX: usize = 4096;

/// Kinds of waits.
const KINDS: usize = 5;

/// What something waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitFor {
    /// The unit, which was sensing for another read.
    Read,
    /// The unit, which was programming.
    Program,
    /// The unit, which was erasing: a reset.
    Erase,
    /// The channel, which others had; or the unit, whose data were or waited to be on it.
    Channel,
    /// The link to the host, or room in the drive's cache.
    Link,
}

impl WaitFor {
    const ALL: [Self; KINDS] = [Self::Read, Self::Program, Self::Erase, Self::Channel, Self::Link];

    const fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Program => 1,
            Self::Erase => 2,
            Self::Channel => 3,
            Self::Link => 4,
        }
    }
}

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// For what.
    pub what: WaitFor,
    /// At which unit, or at whose channel.
    pub pu: PuId,
    /// How long.
    pub time: Nanos,
}

/// A command that took long, with its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCommand {
    /// It read; else it wrote.
    pub is_read: bool,
    /// Where its data are.
    pub buffer: BufId,
    /// When the drive took it.
    pub submitted: Nanos,
    /// When the host was told of its end.
    pub ended: Nanos,
    /// Of each kind the longest of its parts.
    waits: Waited,
}

impl SlowCommand {
    /// Its longest wait; `None` if it never had to.
    #[must_use]
    pub fn longest(&self) -> Option<Wait> {
        let longest = WaitFor::ALL.into_iter().max_by_key(|what| self.waits[what.index()].time)?;
        let Place { pu, time } = self.waits[longest.index()];
        (time > Nanos::ZERO).then_some(Wait { what: longest, pu, time })
    }

    /// What is left of its time without waits: the media's, and that of the way there and back. Of a command whose parts wait
    /// beside each other it may be more.
    #[must_use]
    pub fn own_time(&self) -> Nanos {
        self.waits.iter().fold(self.time(), |left, wait| left.saturating_since(wait.time))
    }

    /// How long it was in the drive.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.ended.saturating_since(self.submitted)
    }
}

/// A command under way; without a buffer it is nobody's.
#[derive(Clone, Copy, Debug)]
struct Watched {
    buffer: Option<BufId>,
    is_read: bool,
    submitted: Nanos,
    waits: Waited,
}

/// The longest wait of each kind.
type Waited = [Place; KINDS];

/// Where, and how long; no time is no wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    pu: PuId,
    time: Nanos,
}

/// Of a command that never had to wait.
const NO_WAITS: Waited = [Place { pu: PuId(0), time: Nanos::ZERO }; KINDS];

/// Since when a part waits, and what its unit had done then.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    array: Option<(Nanos, Spent)>,
    channel: Option<Nanos>,
    /// How long it had the channel or waited for it, and how long for a unit that did nothing.
    moved: Nanos,
    idle: Nanos,
}

/// What an array has spent on reads, programs and erases.
type Spent = [Nanos; 3];

/// Ordered by time alone.
#[derive(Clone, Debug)]
struct ByTime(SlowCommand);

impl PartialEq for ByTime {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByTime {}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.time().cmp(&other.0.time())
    }
}

/// The slowest of one kind; the least slow of them first.
#[derive(Clone, Debug, Default)]
struct Slowest {
    heap: BinaryHeap<Reverse<ByTime>>,
    /// What is no slower is not kept.
    floor: Nanos,
}

impl Slowest {
    fn keep(&mut self, command: SlowCommand) {
        assert!(command.time() > self.floor, "what is kept is slower than what is not");
        if self.heap.len() == SLOW_MAX {
            self.heap.pop();
        }
        self.heap.push(Reverse(ByTime(command)));
        assert!(self.heap.len() <= SLOW_MAX, "more slow commands are kept than there is room for");
        if self.heap.len() == SLOW_MAX {
            self.floor = self.heap.peek().map_or(Nanos::ZERO, |Reverse(least)| least.0.time());
        }
    }
}

/// Everything that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    commands: Vec<Watched>,
    parts: Vec<Since>,
    units: Vec<Spent>,
    reads: Slowest,
    writes: Slowest,
}

const fn array_index(kind: PartKind) -> usize {
    match kind {
        PartKind::Read => 0,
        PartKind::Program => 1,
        PartKind::Erase => 2,
    }
}

impl Waits {
    /// Nothing seen yet of so many units.
    pub(super) fn new(units: usize) -> Self {
        let slowest = Slowest::default;
        let units = vec![Spent::default(); units];
        Self { commands: Vec::new(), parts: Vec::new(), units, reads: slowest(), writes: slowest() }
    }

    /// A command was taken into this place.
    pub(crate) fn on_taken(&mut self, at: Nanos, key: SlabKey, buffer: Option<BufId>, is_read: bool) {
        let index = PuId(key.0).index();
        if index >= self.commands.len() {
            let nobody = Watched { buffer: None, is_read, submitted: at, waits: NO_WAITS };
            self.commands.resize(index + 1, nobody);
        }
        self.commands[index] = Watched { buffer, is_read, submitted: at, waits: NO_WAITS };
    }

    /// The host is told of its end.
    #[inline]
    pub(crate) fn on_told(&mut self, at: Nanos, key: SlabKey) {
        let Some(&Watched { buffer: Some(buffer), is_read, submitted, waits }) =
            self.commands.get(PuId(key.0).index())
        else {
            return;
        };
        assert!(at >= submitted, "a command ended at {at}, before it was taken");
        let slowest = if is_read { &mut self.reads } else { &mut self.writes };
        if at.saturating_since(submitted) > slowest.floor {
            slowest.keep(SlowCommand { is_read, buffer, submitted, ended: at, waits });
        }
    }

    /// A command had to wait for this.
    pub(crate) fn note(&mut self, key: SlabKey, wait: Wait) {
        let Some(command) = self.commands.get_mut(PuId(key.0).index()) else { return };
        let Wait { what, pu, time } = wait;
        assert!(time <= Nanos::from_secs(1 << 32), "a wait of {time} is longer than any run");
        let noted = &mut command.waits[what.index()];
        if noted.time < time {
            *noted = Place { pu, time };
        }
    }

    fn since(&mut self, id: PartId) -> &mut Since {
        let index = id.index();
        if index >= self.parts.len() {
            self.parts.resize(index + 1, Since::default());
        }
        &mut self.parts[index]
    }

    /// What the array of a unit has done, with what it has been doing since some time.
    fn spent(&self, at: Nanos, pu: PuId, doing: Option<(PartKind, Nanos)>) -> Spent {
        let mut spent = self.units[pu.index()];
        if let Some((kind, since)) = doing {
            spent[array_index(kind)] += at.saturating_since(since);
        }
        spent
    }

    /// An array was busy with this, and is no more.
    pub(super) fn on_array(&mut self, pu: PuId, kind: PartKind, time: Nanos) {
        self.units[pu.index()][array_index(kind)] += time;
    }

    /// A part waits for its unit, whose array is doing something perhaps.
    pub(super) fn on_queued(&mut self, at: Nanos, pu: PuId, id: PartId, doing: Option<(PartKind, Nanos)>) {
        let spent = self.spent(at, pu, doing);
        let since = self.since(id);
        assert!(since.array.is_none(), "a part waits for its unit twice");
        *since = Since { array: Some((at, spent)), ..Since::default() };
    }

    /// A part has the array, which is free: what it was busy with most is what was waited for. While it did nothing, others had the
    /// unit whose data were on their way over the channel, or waited for that.
    pub(super) fn on_array_granted(&mut self, at: Nanos, pu: PuId, id: PartId, command: SlabKey) {
        let Since { array, moved, .. } = self.since(id);
        let moved = *moved;
        let Some((since, before)) = array.take() else { return };
        let after = self.units[pu.index()];
        let kinds = [WaitFor::Read, WaitFor::Program, WaitFor::Erase];
        let mut idle = (at - since).saturating_since(moved);
        for (what, (after, before)) in kinds.into_iter().zip(after.into_iter().zip(before)) {
            assert!(after >= before, "an array did less than it had done");
            let time = after - before;
            assert!(time <= at - since, "an array did more than there was time for");
            idle = idle.saturating_since(time);
            if time > Nanos::ZERO {
                self.note(command, Wait { what, pu, time });
            }
        }
        self.since(id).idle = idle;
        if idle > Nanos::ZERO {
            self.note(command, Wait { what: WaitFor::Channel, pu, time: idle });
        }
    }

    /// A part wants its channel, which others may have before it is over.
    pub(super) fn on_channel_wanted(&mut self, at: Nanos, id: PartId) {
        let since = self.since(id);
        assert!(since.channel.is_none(), "a part wants its channel twice");
        since.channel = Some(at);
    }

    /// A write's data are in the drive; over the link they took so long by themselves.
    pub(crate) fn on_arrived(&mut self, at: Nanos, key: SlabKey, own: Nanos) {
        let Some(command) = self.commands.get(PuId(key.0).index()) else { return };
        let wait = at.saturating_since(command.submitted).saturating_since(own);
        self.on_link(key, wait);
    }

    /// A command waited for the link, or before it.
    pub(crate) fn on_link(&mut self, key: SlabKey, time: Nanos) {
        if time > Nanos::ZERO {
            // The link is the same for all units.
            self.note(key, Wait { what: WaitFor::Link, pu: PuId(0), time });
        }
    }

    /// A part is over the channel, which took so long by itself.
    pub(super) fn on_channel_left(&mut self, at: Nanos, pu: PuId, id: PartId, command: SlabKey, own: Nanos) {
        let Since { channel, moved, idle, .. } = self.since(id);
        let Some(since) = channel.take() else { return };
        *moved += at.saturating_since(since);
        let time = at.saturating_since(since).saturating_since(own) + std::mem::take(idle);
        if time > Nanos::ZERO {
            self.note(command, Wait { what: WaitFor::Channel, pu, time });
        }
    }

    /// Nothing is under way any more; what was kept stays.
    pub(super) fn power_off(&mut self) {
        self.commands.clear();
        self.parts.clear();
    }

    /// The slowest reads and writes that named a buffer, in no order.
    pub(crate) fn slowest(&self) -> impl Iterator<Item = &SlowCommand> {
        self.reads.heap.iter().chain(&self.writes.heap).map(|Reverse(ByTime(command))| command)
    }
}
