//! NAND time: parallel units that do one array operation at a time, and channels they share.
//!
//! Work comes as [`CommandPart`]s: one page or page row sensed, one write unit programmed, one chunk erased. Each unit has a queue;
//! each channel moves one part's data at a time, first come first served when the data is ready, so that a busy unit
//! never keeps an idle channel waiting. Content was settled when the command was taken; only time passes here.
//!
//! ```text
//!   read     queue ─► sense (array) ─► out (channel) ─► done
//!   program  queue ─► in (channel) ─► program (array, may be suspended) ─► done
//!   erase    queue ─► erase (array, may be suspended) ─► done
//! ```
//!
//! Deliberately not here: the host link, the write-back cache, anything about content or rules.

mod part;
mod pick;
mod queue;
mod sense;
mod unit;
mod waits;

pub(crate) use part::{CommandPart, PartId, PartKind, Phase};
pub(crate) use sense::{Sensing, Span};
pub(crate) use waits::Waits;
pub use waits::{SlowCommand, Wait, WaitFor};

use crate::config::{Config, MediaConfig, Scheduler};
use ocssd_base::{Divisor, EventQueue, Nanos, SlabKey, TransferTimes};
use ocssd_lightnvm::PuId;
use part::Parts;
use std::collections::VecDeque;
use unit::Unit;

/// What happens next on the media.
enum Happening {
    /// An operation of an array ends. The generation tells a suspended operation's old event from its new one.
    Array { pu: PuId, generation: u32 },
    /// A transfer ends.
    Channel { group: u32 },
}

/// A [`Happening`] in one word, which goes into the queue of events in a register: one written to memory in parts and read
/// at once makes the processor wait. The low half is the unit or the group, and the channel's bit; the high half the
/// generation.
#[derive(Clone, Copy, Debug)]
struct Event(u64);

impl Event {
    /// Set in the events of channels. Units and groups are numbered below it.
    const CHANNEL: u32 = 1 << 31;

    #[inline(always)]
    fn array(pu: PuId, generation: u32) -> Self {
        assert!(pu.0 < Self::CHANNEL, "there are fewer than 2^31 units");
        Self((u64::from(generation) << 32) | u64::from(pu.0))
    }

    #[inline(always)]
    fn channel(group: u32) -> Self {
        assert!(group < Self::CHANNEL, "there are fewer than 2^31 groups");
        Self(u64::from(group | Self::CHANNEL))
    }

    #[inline(always)]
    fn happening(self) -> Happening {
        let [low, generation] = [self.0 & u64::from(u32::MAX), self.0 >> 32]
            .map(|half| u32::try_from(half).expect("half a word"));
        if low < Self::CHANNEL {
            Happening::Array { pu: PuId(low), generation }
        } else {
            Happening::Channel { group: low - Self::CHANNEL }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Channel {
    /// Not linked through the parts: a program that waits here is also at the head of its unit's queue.
    waiting: VecDeque<PartId>,
    active: Option<PartId>,
    busy: Nanos,
}

impl Channel {
    /// Begins a transfer of `time`, and says when it ends.
    fn start(&mut self, at: Nanos, time: Nanos, id: PartId) -> Nanos {
        assert!(self.active.is_none(), "a channel moves one part at a time");
        assert!(time > Nanos::ZERO, "data crosses a channel in no time");
        self.active = Some(id);
        self.busy += time;
        at + time
    }
}

/// A part that is done, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Done {
    /// A read: its command. Its place is free already.
    Read { at: Nanos, command: SlabKey },
    /// A program or an erase. Its place stays taken until [`Media::remove`].
    Change { at: Nanos, id: PartId },
}

/// All units and channels of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    config: MediaConfig,
    scheduler: Scheduler,
    transfers: TransferTimes,
    /// Most sectors a transfer moves before others have their turn.
    grant: u32,
    /// What one sense takes off the array, and how long.
    pub(crate) sensing: Sensing,
    /// To find the write unit of a sector.
    pub(crate) by_unit: Divisor,
    parts: Parts,
    units: Vec<Unit>,
    channels: Vec<Channel>,
    events: EventQueue<Event>,
    /// Array operations, transfers and suspensions so far.
    pub(crate) counters: MediaCounters,
    /// What waits for what, once somebody asked.
    pub(crate) waits: Option<Box<Waits>>,
}

/// What the media did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaCounters {
    /// Senses: of a page, or of a page of every plane together.
    pub senses: u64,
    /// Reads served from page registers that still held what they want.
    pub register_hits: u64,
    /// Write units programmed.
    pub programs: u64,
    /// Chunks erased.
    pub erases: u64,
    /// Erases suspended for a read.
    pub suspends: u64,
    /// Programs suspended for a read.
    pub program_suspends: u64,
}

impl Media {
    pub(crate) fn new(config: &Config) -> Self {
        let geometry = &config.geometry;
        let units = PuId(geometry.pu_count()).index();
        let groups = PuId(geometry.groups).index();
        let unit = |pu| Unit::new(pu / geometry.pus_per_group);
        Self {
            config: config.media.clone(),
            scheduler: config.scheduler,
            transfers: TransferTimes::new(
                u64::from(geometry.sector_bytes) + u64::from(geometry.oob_bytes),
                config.channel.bytes_per_second,
                config.channel.command,
            ),
            sensing: Sensing::new(config),
            grant: if config.channel.grant_sectors == 0 { u32::MAX } else { config.channel.grant_sectors },
            by_unit: Divisor::new(u64::from(geometry.ws_opt)),
            parts: Parts::new(),
            units: (0..geometry.pu_count()).map(unit).collect(),
            channels: vec![Channel::default(); groups],
            events: EventQueue::with_capacity(units + groups),
            counters: MediaCounters::default(),
            waits: None,
        }
    }

    /// From now on waits are noted; what was noted before is forgotten.
    pub(crate) fn watch_waits(&mut self) {
        self.waits = Some(Box::new(Waits::new(self.units.len())));
    }

    /// A new part, not queued yet.
    #[inline(always)]
    pub(crate) fn add(&mut self, part: CommandPart) -> PartId {
        self.parts.insert(part)
    }

    /// A finished part's place is free again.
    pub(crate) fn remove(&mut self, id: PartId) {
        self.parts.remove(id);
    }

    pub(crate) fn part(&self, id: PartId) -> &CommandPart {
        self.parts.get(id)
    }

    pub(crate) fn part_mut(&mut self, id: PartId) -> &mut CommandPart {
        self.parts.get_mut(id)
    }

    /// Every part that is not done.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &CommandPart> {
        self.parts.iter()
    }

    /// Gives a part to its unit.
    #[inline]
    pub(crate) fn enqueue(&mut self, at: Nanos, id: PartId) {
        let part = self.parts.get_mut(id);
        part.phase = Phase::Queued;
        let (pu, is_read) = (part.pu, part.kind == PartKind::Read);
        if is_read && self.units[pu.index()].is_idle() {
            // Most reads meet an idle unit: nothing to queue for, nothing to choose from.
            self.begin_read(at, pu, id);
            return;
        }
        let unit = &mut self.units[pu.index()];
        // What the unit can begin it has begun: a read behind another, as most of a list are, changes nothing of that.
        let is_behind = unit.exclusive || is_read && !unit.reads.is_empty();
        unit.push(&mut self.parts, id, is_read);
        if let Some(waits) = &mut self.waits {
            let doing = unit.array.map(|id| (self.parts.get(id).kind, unit.array_since));
            waits.on_queued(at, pu, id, doing);
        }
        if is_behind {
            return;
        }
        if is_read {
            self.suspend_for_read(at, pu);
        }
        self.start_next(at, pu);
    }

    /// When something next happens; [`Nanos::MAX`] if nothing will.
    pub(crate) fn next_at(&self) -> Nanos {
        self.events.next_at()
    }

    /// Lets the next thing happen, and tells which part that ends, if it does.
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Option<Done> {
        let (at, event) = self.events.pop_due(Nanos::MAX).expect("a step is taken when one is due");
        match event.happening() {
            Happening::Array { pu, generation } => self.on_array(at, pu, generation),
            Happening::Channel { group } => self.on_channel(at, group),
        }
    }

    #[inline(always)]
    fn on_array(&mut self, at: Nanos, pu: PuId, generation: u32) -> Option<Done> {
        let unit = &mut self.units[pu.index()];
        if unit.generation != generation {
            return None;
        }
        assert!(at == unit.array_until, "an operation ends at {at}, not when it should");
        let id = unit.array.take().expect("an array event belongs to an operation");
        unit.busy += at - unit.array_since;
        let (group, can_begin) = (unit.group, unit.can_begin());
        let kind = self.parts.get(id).kind;
        if let Some(waits) = &mut self.waits {
            waits.on_array(pu, kind, at - unit.array_since);
        }
        match kind {
            PartKind::Read => self.request_channel(at, group, id),
            PartKind::Program => {
                assert!(unit.registers_used > 0, "a program holds a register");
                unit.registers_used -= 1;
            }
            PartKind::Erase => {}
        }
        if can_begin {
            self.start_next(at, pu);
        }
        (kind != PartKind::Read).then_some(Done::Change { at, id })
    }

    #[inline(always)]
    fn request_channel(&mut self, at: Nanos, group: u32, id: PartId) {
        self.parts.get_mut(id).phase = Phase::Transfer;
        if let Some(waits) = &mut self.waits {
            waits.on_channel_wanted(at, id);
        }
        let channel = &mut self.channels[PuId(group).index()];
        if channel.active.is_some() {
            channel.waiting.push_back(id);
        } else {
            self.grant_channel(at, group, id);
        }
    }

    /// Lets a part have the channel, for all it still has to move or for one grant. Its command cycles come once.
    #[inline(always)]
    fn grant_channel(&mut self, at: Nanos, group: u32, id: PartId) {
        let part = self.parts.get_mut(id);
        let moved = part.moved;
        assert!(moved < part.count, "a part has the channel with nothing to move");
        part.moved = part.count.min(moved.saturating_add(self.grant));
        assert!(part.moved > moved, "a part has the channel and moves nothing");
        let before = if moved == 0 { Nanos::ZERO } else { self.transfers.of(moved) };
        let time = self.transfers.of(part.moved) - before;
        let end = self.channels[PuId(group).index()].start(at, time, id);
        self.events.push(end, Event::channel(group));
    }

    #[inline(always)]
    fn on_channel(&mut self, at: Nanos, group: u32) -> Option<Done> {
        let channel = &mut self.channels[PuId(group).index()];
        let id = channel.active.take().expect("a channel event belongs to a transfer");
        let part = self.parts.get(id);
        let is_over = part.moved == part.count;
        if !is_over {
            channel.waiting.push_back(id);
        }
        if let Some(next) = channel.waiting.pop_front() {
            self.grant_channel(at, group, next);
        }
        if !is_over {
            return None;
        }
        let part = self.parts.get_mut(id);
        let (pu, command, is_read) = (part.pu, part.command, part.kind == PartKind::Read);
        if let Some(waits) = &mut self.waits {
            waits.on_channel_left(at, pu, id, command, self.transfers.of(part.count));
        }
        let unit = &mut self.units[pu.index()];
        if is_read {
            assert!(unit.registers_used > 0, "a read's data leaves a register");
            unit.registers_used -= self.sensing.registers(part.span);
            unit.exclusive = false;
            self.parts.remove(id);
        } else {
            assert!(part.kind == PartKind::Program, "an erase moves no data");
            assert!(unit.loading, "a register was loaded that nobody asked for");
            unit.loading = false;
            part.phase = Phase::Loaded;
        }
        if unit.has_work() {
            self.start_next(at, pu);
        }
        is_read.then_some(Done::Read { at, command })
    }

    /// Time each unit's array, and each channel, has been busy.
    pub(crate) fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let units = self.units.iter().map(|unit| unit.busy).collect();
        (units, self.channels.iter().map(|channel| channel.busy).collect())
    }

    /// Asserts that parts, units, channels and events agree.
    pub(crate) fn check(&self) {
        for unit in &self.units {
            unit.check(self.config.registers);
            if let Some(id) = unit.array {
                assert_eq!(
                    self.parts.get(id).phase,
                    Phase::Array,
                    "the array works on a part that is elsewhere"
                );
            }
            if let Some(suspended) = unit.suspended {
                self.check_suspended(unit, suspended.id);
            }
        }
        let working = self.units.iter().filter(|unit| unit.array.is_some()).count();
        let moving = self.channels.iter().filter(|channel| channel.active.is_some()).count();
        assert!(self.events.len() >= working + moving, "work in progress has no event");
        for channel in &self.channels {
            assert!(
                channel.active.is_some() || channel.waiting.is_empty(),
                "an idle channel keeps parts waiting"
            );
            for &id in channel.active.iter().chain(&channel.waiting) {
                assert_eq!(
                    self.parts.get(id).phase,
                    Phase::Transfer,
                    "a channel has a part that is elsewhere"
                );
                assert!(self.parts.get(id).kind != PartKind::Erase, "an erase moves no data");
            }
        }
        for part in self.parts.iter() {
            assert!(part.pu.index() < self.units.len(), "a part belongs to no unit");
            assert!(part.kind == PartKind::Erase || part.count > 0, "a part moves nothing");
            assert!(part.moved <= part.count, "a part moved more than it has");
        }
    }

    /// Asserts that what a unit has suspended may be, and was not more often than it may.
    fn check_suspended(&self, unit: &Unit, id: PartId) {
        let part = self.parts.get(id);
        assert!(part.kind != PartKind::Read, "a read is suspended");
        assert_eq!(part.phase, Phase::Array, "what is suspended was in the array");
        let (suspends, most) =
            (unit.suspends, self.suspension(part.kind).map_or(0, |suspension| suspension.suspends_max));
        assert!(suspends <= most, "an operation was suspended {suspends} times, but {most} are allowed");
    }

    /// Everything in progress is gone; the counters stay.
    pub(crate) fn power_off(&mut self) {
        self.parts.clear();
        for unit in &mut self.units {
            unit.power_off();
        }
        if let Some(waits) = &mut self.waits {
            waits.power_off();
        }
        for channel in &mut self.channels {
            channel.waiting.clear();
            channel.active = None;
        }
        self.events.clear();
    }
}
