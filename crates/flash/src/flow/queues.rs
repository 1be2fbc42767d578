//! The queues commands stand in outside the media. All are first in, first out, and their times never fall, because each
//! adds a constant or a serial transfer to times that come in order; so no heap is needed.

use super::command::{InFlight, Kind};
use super::due::Due;
use crate::config::{CacheConfig, Config};
use crate::media::{CommandPart, Media, PartId, PartKind, Phase};
use ocssd_base::{Nanos, Slab, SlabKey, TransferTimes};
use ocssd_lightnvm::Completion;
use std::collections::VecDeque;

/// A flush that waits for the programs counted when it came.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    key: SlabKey,
    epoch: u32,
    remaining: u32,
}

/// Commands in flight outside the media.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Controller and host interface time of a command.
    command_time: Nanos,
    in_times: TransferTimes,
    out_times: TransferTimes,
    cache: CacheConfig,
    queue_depth: u32,
    commands: Slab<InFlight>,
    /// Commands the host has not been told the end of.
    untold: u32,
    link_in: Due,
    link_in_free: Nanos,
    link_out: Due,
    link_out_free: Nanos,
    /// Ends without data, due a constant time after their cause.
    acks: Due,
    cache_used: u32,
    cache_waiting: VecDeque<SlabKey>,
    flushes: VecDeque<PendingFlush>,
    /// Copies with parts in flight. Only they let changes of a chunk overtake each other: their programs wait for reads,
    /// while those of writes wait for the link.
    copies: u32,
    /// Changes that wait for an earlier one of their chunk.
    held: Vec<PartId>,
    /// Programs of commands taken and not done, and how many flushes came so far.
    programs: u32,
    epoch: u32,
}

impl Flow {
    pub(crate) fn new(config: &Config) -> Self {
        let geometry = &config.geometry;
        let cached = config.cache.sectors / geometry.ws_min;
        let sector_bytes = u64::from(geometry.sector_bytes) + u64::from(geometry.oob_bytes);
        let depth = usize::try_from(config.queue_depth).expect("32 bits fit an index");
        Self {
            command_time: config.link.command,
            in_times: TransferTimes::new(sector_bytes, config.link.write_bytes_per_second, Nanos::ZERO),
            out_times: TransferTimes::new(sector_bytes, config.link.read_bytes_per_second, Nanos::ZERO),
            cache: config.cache,
            queue_depth: config.queue_depth,
            commands: Slab::new(config.queue_depth + cached),
            untold: 0,
            link_in: Due::with_capacity(depth),
            link_in_free: Nanos::ZERO,
            link_out: Due::with_capacity(depth),
            link_out_free: Nanos::ZERO,
            acks: Due::with_capacity(depth),
            cache_used: 0,
            cache_waiting: VecDeque::with_capacity(depth),
            flushes: VecDeque::with_capacity(depth),
            copies: 0,
            held: Vec::new(),
            programs: 0,
            epoch: 0,
        }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.untold >= self.queue_depth
    }

    /// How many more commands are taken before one of those under way is told of.
    #[inline(always)]
    pub(crate) const fn room(&self) -> u32 {
        self.queue_depth.saturating_sub(self.untold)
    }

    /// Copies are on their way: changes of a chunk may have to wait for each other.
    pub(crate) const fn has_copies(&self) -> bool {
        self.copies > 0
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.untold
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A place for a command that is being taken.
    #[inline(always)]
    pub(crate) fn insert(&mut self, command: InFlight) -> SlabKey {
        assert!(!self.is_full(), "the queue depth was checked before");
        self.untold += 1;
        let key = self.commands.insert(command);
        key.expect("queue depth and cache bound the commands")
    }

    pub(crate) fn command_mut(&mut self, key: SlabKey) -> &mut InFlight {
        self.commands.get_mut(key)
    }

    /// A program was counted for a command being taken.
    pub(crate) const fn count_program(&mut self) {
        self.programs += 1;
    }

    /// Sends a taken command on its way.
    pub(crate) fn start(&mut self, now: Nanos, key: SlabKey, media: &mut Media) {
        let command = self.commands.get(key);
        let (remaining, sectors) = (command.remaining, command.sectors);
        match command.kind {
            Kind::Write { .. } if remaining > 0 => self.admit(now, key),
            Kind::Read | Kind::Reset | Kind::Copy if remaining > 0 => {
                self.copies += u32::from(command.kind == Kind::Copy);
                self.give_to_media(now, key, media);
            }
            // One that failed already waits for nothing.
            Kind::Flush if self.programs > 0 && command.status.is_success() => {
                self.flushes.push_back(PendingFlush { key, epoch: self.epoch, remaining: self.programs });
                self.epoch = self.epoch.wrapping_add(1);
            }
            Kind::Read if sectors > 0 => self.finish(now, key),
            Kind::Read | Kind::Write { .. } | Kind::Reset | Kind::Copy | Kind::Flush => {
                self.commands.get_mut(key).done = true;
                self.tell(now, key);
            }
        }
    }

    /// A write goes over the link, if need be after room is made in the cache.
    fn admit(&mut self, now: Nanos, key: SlabKey) {
        let sectors = self.commands.get(key).sectors;
        if self.cache.sectors > 0 {
            if !self.cache_waiting.is_empty() || !self.cache_has_room(sectors) {
                self.cache_waiting.push_back(key);
                return;
            }
            self.reserve_cache(key);
        }
        self.send_over_link(now, key);
    }

    /// An empty cache takes any write, also one larger than itself, or such a write would wait for ever.
    const fn cache_has_room(&self, sectors: u32) -> bool {
        self.cache_used == 0 || self.cache_used + sectors <= self.cache.sectors
    }

    fn reserve_cache(&mut self, key: SlabKey) {
        let command = self.commands.get_mut(key);
        assert!(!command.cached, "a command enters the cache once");
        command.cached = true;
        self.cache_used += command.sectors;
    }

    fn send_over_link(&mut self, at: Nanos, key: SlabKey) {
        let time = self.in_times.of(self.commands.get(key).sectors);
        self.link_in_free = at.max(self.link_in_free) + time;
        assert!(self.link_in_free > at, "data crosses the link in no time");
        self.link_in.push(self.link_in_free, key);
    }

    /// Gives the command's waiting parts to their units; a copy's programs stay until its reads are done.
    fn give_to_media(&mut self, at: Nanos, key: SlabKey, media: &mut Media) {
        let command = self.commands.get_mut(key);
        let mut next = command.waiting.take();
        while let Some(id) = next {
            let part = media.part(id);
            if part.kind == PartKind::Program && command.reads_left > 0 {
                command.waiting = Some(id);
                return;
            }
            next = part.next;
            if self.copies > 0 && is_early(media, id) {
                media.part_mut(id).phase = Phase::Held;
                self.held.push(id);
            } else {
                media.enqueue(at, id);
            }
        }
        self.release_held(at, media);
    }

    /// Gives held changes to their units whose earlier ones are there now.
    fn release_held(&mut self, at: Nanos, media: &mut Media) {
        while let Some(index) = self.held.iter().position(|&id| !is_early(media, id)) {
            let id = self.held.remove(index);
            media.enqueue(at, id);
        }
    }

    /// When the host is next told of an end, as far as is known; [`Nanos::MAX`] if none is.
    pub(crate) fn next_end(&self) -> Nanos {
        self.acks.first().min(self.link_out.first())
    }

    /// When a command next arrives over the link; [`Nanos::MAX`] if none does.
    pub(crate) fn arrival(&self) -> Nanos {
        self.link_in.first()
    }

    /// Lets the next command arrive.
    pub(crate) fn arrive(&mut self, media: &mut Media) {
        let (at, key) = self.link_in.pop().expect("an arrival was due");
        let command = self.commands.get(key);
        if let Some(waits) = &mut media.waits {
            waits.on_arrived(at, key, self.in_times.of(command.sectors));
        }
        if command.cached && command.kind == (Kind::Write { fua: false }) {
            self.tell(at, key);
        }
        self.give_to_media(at, key, media);
    }

    /// A read of a command is done: the last one of a read sends its data, the last one of a copy lets its programs go.
    #[inline(always)]
    pub(crate) fn on_read_done(&mut self, at: Nanos, key: SlabKey, media: &mut Media) {
        let command = self.commands.get_mut(key);
        assert!(command.remaining > 0, "a command has more parts done than it had");
        command.remaining -= 1;
        if command.kind == Kind::Read {
            if command.remaining == 0 {
                if let Some(waits) = &mut media.waits {
                    let wait = self.link_out_free.saturating_since(at);
                    waits.on_link(key, wait);
                }
                self.send_back(at, key);
            }
            return;
        }
        assert!(command.reads_left > 0, "a copy has more reads done than it had");
        command.reads_left -= 1;
        if command.remaining == 0 {
            self.finish(at, key);
        } else if command.reads_left == 0 && command.waiting.is_some() {
            self.give_to_media(at, key, media);
        }
    }

    /// A program or an erase of a command is done; its place in `media` is free already.
    pub(crate) fn on_change_done(&mut self, at: Nanos, part: &CommandPart) {
        if part.kind == PartKind::Program {
            self.on_program_done(at, part);
        }
        let command = self.commands.get_mut(part.command);
        assert!(command.remaining > 0, "a command has more parts done than it had");
        command.remaining -= 1;
        if command.remaining == 0 {
            self.finish(at, part.command);
        }
    }

    fn on_program_done(&mut self, at: Nanos, part: &CommandPart) {
        assert!(self.programs > 0, "more programs are done than were taken");
        self.programs -= 1;
        for flush in &mut self.flushes {
            // Epochs wrap; a part is never half the range away from a pending flush.
            if flush.epoch.wrapping_sub(part.epoch) < u32::MAX / 2 {
                assert!(flush.remaining > 0, "a flush waited for fewer programs than are done");
                flush.remaining -= 1;
            }
        }
        while let Some(flush) = self.flushes.pop_front_if(|flush| flush.remaining == 0) {
            self.commands.get_mut(flush.key).done = true;
            self.tell(at, flush.key);
        }
        if self.commands.get(part.command).cached {
            self.release_cache(at, part.count);
        }
    }

    fn release_cache(&mut self, at: Nanos, sectors: u32) {
        assert!(self.cache_used >= sectors, "the cache gave up more than it held");
        self.cache_used -= sectors;
        while let Some(&key) = self.cache_waiting.front() {
            if !self.cache_has_room(self.commands.get(key).sectors) {
                return;
            }
            self.cache_waiting.pop_front();
            self.reserve_cache(key);
            self.send_over_link(at, key);
        }
    }

    /// A read's data goes over the link.
    #[inline(always)]
    fn send_back(&mut self, at: Nanos, key: SlabKey) {
        let command = self.commands.get_mut(key);
        command.done = true;
        let time = self.out_times.of(command.sectors);
        self.link_out_free = at.max(self.link_out_free) + time;
        self.link_out.push(self.link_out_free + self.command_time, key);
    }

    /// All parts of a command are done, or it never had any.
    fn finish(&mut self, at: Nanos, key: SlabKey) {
        let command = self.commands.get_mut(key);
        assert!(!command.done && command.remaining == 0, "a command ends once, with all its parts");
        command.done = true;
        if command.kind == Kind::Copy {
            assert!(self.copies > 0, "more copies ended than were taken");
            self.copies -= 1;
        }
        match command.kind {
            Kind::Read => self.send_back(at, key),
            Kind::Write { fua } if command.cached && !fua => {
                if command.told {
                    self.commands.free(key);
                }
            }
            Kind::Write { .. } | Kind::Reset | Kind::Copy | Kind::Flush => self.tell(at, key),
        }
    }

    fn tell(&mut self, at: Nanos, key: SlabKey) {
        assert!(!self.commands.get(key).told, "a command's end is told once");
        self.acks.push(at + self.command_time, key);
    }

    /// The next completion due at `now`, and the number of the deferred_copy it needs; of two at the same time, the one without
    /// data first.
    #[inline(always)]
    pub(crate) fn poll(&mut self, now: Nanos, media: &mut Media) -> Option<(u64, Completion)> {
        let (ack, data) = (self.acks.first(), self.link_out.first());
        if ack.min(data) > now {
            return None;
        }
        let queue = if ack <= data { &mut self.acks } else { &mut self.link_out };
        let (_, key) = queue.pop()?;
        assert!(self.untold > 0, "more ends are told than commands were taken");
        self.untold -= 1;
        let command = self.commands.get_mut(key);
        assert!(!command.told, "a command's end is told once");
        command.told = true;
        if let Some(waits) = &mut media.waits {
            waits.on_told(now, key);
        }
        let (deferred_copy, completion) = (command.deferred_copy, command.completion());
        if command.done {
            self.commands.free(key);
        }
        Some((deferred_copy, completion))
    }

    /// True if the part survives a power cut on the power that is left: its data had reached the cache, or is on media
    /// already because it is a copy's. A copy that could be lost would take later, protected writes of its chunk along.
    pub(crate) fn is_protected(&self, part: &CommandPart, arrived: bool) -> bool {
        let command = self.commands.get(part.command);
        self.cache.power_loss_protection && ((arrived && command.cached) || command.kind == Kind::Copy)
    }

    /// Asserts that commands, cache, flushes and the media's parts agree.
    pub(crate) fn check(&self, media: &Media) {
        let untold = self.commands.iter().filter(|(_, command)| !command.told).count();
        assert_eq!(usize::try_from(self.untold), Ok(untold), "commands the host waits for are miscounted");
        assert!(self.untold <= self.queue_depth, "more commands are in flight than the drive takes");
        let programs = media.parts().filter(|part| part.kind == PartKind::Program).count();
        assert_eq!(usize::try_from(self.programs), Ok(programs), "programs are miscounted");
        let cached =
            |part: &&CommandPart| part.kind == PartKind::Program && self.commands.get(part.command).cached;
        let held: u32 = media.parts().filter(cached).map(|part| part.count).sum();
        assert_eq!(self.cache_used, held, "the cache holds other sectors than are on their way to media");
        assert!(self.cache.sectors > 0 || self.cache_used == 0, "a drive without a cache caches");
        for queue in [&self.link_in, &self.link_out, &self.acks] {
            queue.check();
        }
        for flush in &self.flushes {
            assert!(
                flush.remaining > 0 && flush.remaining <= self.programs,
                "a flush waits for too many programs"
            );
        }
        for (_, command) in self.commands.iter() {
            assert!(!command.done || command.remaining == 0, "a command is done with parts in flight");
            assert!(!(command.told && command.done), "a command that is over was kept");
        }
    }

    /// Everything in flight is gone; memory is kept.
    pub(crate) fn power_off(&mut self) {
        self.commands.clear();
        for queue in [&mut self.link_in, &mut self.link_out, &mut self.acks] {
            queue.clear();
        }
        for waiting in [&mut self.link_in_free, &mut self.link_out_free] {
            *waiting = Nanos::ZERO;
        }
        for count in
            [&mut self.untold, &mut self.cache_used, &mut self.copies, &mut self.programs, &mut self.epoch]
        {
            *count = 0;
        }
        self.cache_waiting.clear();
        self.flushes.clear();
        self.held.clear();
        assert_eq!(self.next_end().min(self.arrival()), Nanos::MAX, "something is due after a power cut");
    }
}

/// True if an earlier change of the same chunk is not in its unit's queue yet. Cost: the parts in flight.
fn is_early(media: &Media, id: PartId) -> bool {
    let part = media.part(id);
    let waits = |other: &CommandPart| {
        matches!(other.phase, Phase::Waiting | Phase::Held) && other.kind != PartKind::Read
    };
    part.kind != PartKind::Read
        && media
            .parts()
            .any(|other| other.chunk == part.chunk && waits(other) && other.order() < part.order())
}
