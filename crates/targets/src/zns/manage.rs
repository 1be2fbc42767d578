//! What resets, finishes and ends of zones do, once everything asked of the zone before is over.
//!
//! Deliberately not here: whether they are legal, and what the zone shows from then on (`judge`).

use super::canary::Canary;
use super::journal;
use super::options::Finish;
use super::state::Zns;
use super::tails::TailPart;
use super::writer::{Writer, ZoneOp};
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{ChunkIndex, ChunkUse};
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::zoned::ZoneAction;

impl Zns {
    /// A zone is to be reset or finished: at once if nothing of it waits, else in its turn.
    pub(super) fn take_management(&mut self, zone: u32, action: ZoneAction, request: SlabKey) {
        let op = match action {
            ZoneAction::Reset => ZoneOp::Reset(request),
            ZoneAction::Finish => ZoneOp::Finish(request),
            ZoneAction::Offline => ZoneOp::Offline(request),
            other => unreachable!("{other:?} waits for nothing"),
        };
        let key = self.writer_of(zone);
        self.writers.get_mut(key).queue.push_back(op);
        self.work_due = true;
    }

    /// Resets a zone whose turn it is, or takes it offline. False if something of it is in flight, or the log has no room.
    pub(super) fn reset_zone(&mut self, key: SlabKey, request: SlabKey, goes_offline: bool) -> bool {
        let writer = self.writers.get(key);
        let number = writer.zone;
        if writer.in_flight > 0
            || writer.tail.pages > 0
            || self.zone(number).reads > 0
            || !self.has_log_room(1)
        {
            return false;
        }
        let since = self.sequence;
        assert!(since >= self.zone(number).since, "zone {number} would live since {since}");
        self.drop_buffer_units(key);
        let before: Vec<ChunkIndex> = self.zone(number).chunks().collect();
        self.zone_mut(number).clear(since);
        self.extensions.forget(number);
        let mut entries = vec![journal::reset(number, since)];
        if goes_offline {
            entries.push(journal::offline(number));
        }
        let end = self.log_change(&entries);
        if self.has_canary(Canary::ResetNotLogged) {
            self.requests.part_done(request);
        } else {
            self.await_log(end);
            self.waits.push_back((end, request));
        }
        let until = if self.has_canary(Canary::ResetBeforeDurable) { Lsn(0) } else { end };
        self.close_chunks_of(key, &before, until);
        self.begin_anew(key, end);
        self.stats.zone_resets += 1;
        true
    }

    /// Buffer units of a zone are not needed any more; nothing of it is in flight.
    fn drop_buffer_units(&mut self, key: SlabKey) {
        let writer = self.writers.get_mut(key);
        assert!(writer.in_flight == 0, "buffer units of zone {} are dropped under way", writer.zone);
        for buffer_unit in writer.held.split_off(0) {
            self.buffer_units.release(buffer_unit);
        }
        writer.filling = None;
        writer.ready.clear();
        writer.failed.clear();
    }

    /// The chunks of a zone that is not written any more are closed, or left open, and those nothing needs die.
    pub(super) fn close_chunks_of(&mut self, key: SlabKey, before: &[ChunkIndex], until: Lsn) {
        let config = self.append_config();
        let writer = self.writers.get_mut(key);
        let number = writer.zone;
        let open: Vec<_> = writer.columns.drain(..).chain(writer.ended.drain(..)).collect();
        let mut before = before.to_vec();
        for chunk in open {
            before.push(chunk.chunk());
            if self.space.usage(chunk.chunk()) != ChunkUse::Open {
                continue;
            }
            assert!(chunk.in_flight() == 0, "chunk {} is closed under way", chunk.chunk().0);
            match chunk.pointer() {
                0 => self.space.leave_unwritten(chunk.chunk()),
                tip if tip < config.chunk_sectors => self.space.leave(chunk.chunk(), tip),
                _ => self.space.close(chunk.chunk()),
            }
            if self.space.tip(chunk.chunk()).is_some()
                && (self.options.finish == Finish::Pad || self.has_open_limit)
            {
                self.filling.push_back(chunk.chunk());
            }
        }
        let zone = std::mem::replace(self.zone_mut(number), super::zone::Zone::empty());
        self.let_go(&before, &zone, until);
        *self.zone_mut(number) = zone;
    }

    /// A zone was reset: its writer begins with it anew. What was to be durable is once the reset is.
    fn begin_anew(&mut self, key: SlabKey, end: Lsn) {
        self.forget_tails(key);
        self.area_on_place(key, u32::MAX);
        let writer = self.writers.get_mut(key);
        // A zone's new life waits for the end of the old one only where both could be taken for each other: in tails.
        let fresh = Writer { tail_wait: end, bound: end, ..Writer::new(writer.zone, writer.limit) };
        let mut old = std::mem::replace(writer, fresh);
        writer.queue = std::mem::take(&mut old.queue);
        for waiter in old.take_waiters() {
            self.waits.push_back((end, waiter));
            self.await_log(end);
        }
    }

    /// Finishes a zone whose turn it is, step by step. True once it is full in the log.
    pub(super) fn finish_zone(&mut self, key: SlabKey, request: SlabKey, buffers: &mut Buffers) -> bool {
        if self.writers.get(key).area.is_some() && !self.commit_rest(key, buffers) {
            return false;
        }
        let writer = self.writers.get_mut(key);
        writer.is_ending = true;
        if let Some(buffer_unit) = writer.filling.take() {
            writer.ready.push_back(buffer_unit);
            self.work_due = true;
        }
        if !self.writers.get(key).is_settled() || !self.has_log_room(1) {
            return false;
        }
        let end = self.log_finish(key);
        self.await_log(end);
        self.waits.push_back((end, request));
        self.stats.zones_finished += 1;
        true
    }

    /// A zone is full: nothing of it is in memory only.
    fn log_finish(&mut self, key: SlabKey) -> Lsn {
        let writer = self.writers.get(key);
        let (number, blocks) = (writer.zone, writer.admitted);
        assert!(writer.is_settled(), "zone {number} is finished before it is settled");
        assert!(blocks <= self.sizes.capacity(), "zone {number} is finished with {blocks} blocks");
        assert!(
            writer.failed.is_empty() && writer.beyond.is_empty(),
            "zone {number} is finished with a hole"
        );
        let before: Vec<ChunkIndex> = self.zone(number).chunks().collect();
        let unit = self.sizes.unit;
        self.zone_mut(number).finish_at(blocks, unit);
        let end = if self.has_canary(Canary::FinishNotLogged) {
            self.journal.log.end()
        } else {
            self.log_change(&[journal::finish_at(number, blocks)])
        };
        self.forget_tails(key);
        self.area_on_place(key, u32::MAX);
        self.close_chunks_of(key, &before, end);
        let writer = self.writers.get_mut(key);
        (writer.bound, writer.is_finished) = (writer.bound.max(end), true);
        end
    }

    /// A writer that has nothing to do any more ends; one of a zone that was written to its end finishes it. True if it ended.
    pub(super) fn retire_writer(&mut self, key: SlabKey) -> bool {
        let writer = self.writers.get(key);
        if !writer.queue.is_empty() || writer.has_waiters() || !writer.is_settled() {
            return false;
        }
        if writer.area.is_some() && self.areas.contains(&writer.zone) {
            return false;
        }
        let zone = self.zone(writer.zone);
        if zone.finished_at().is_none() {
            let is_whole = writer.admitted == self.sizes.capacity();
            let is_empty = writer.admitted == 0 && zone.segments.is_empty();
            if is_whole && self.has_log_room(1) {
                self.log_finish(key);
            } else if !is_empty {
                return false;
            }
        }
        self.remove_writer(key);
        true
    }

    /// A writer does not need its tails any more.
    pub(super) fn forget_tails(&mut self, key: SlabKey) {
        let tail = std::mem::take(&mut self.writers.get_mut(key).tail);
        assert_eq!(tail.pages, 0, "tails are forgotten on their way");
        for chunk in tail.chunks.into_iter().chain(tail.old) {
            self.tails.drop_part(chunk);
        }
        self.work_due = true;
    }

    /// Forgets tails, if what they hold is on media in its own place.
    pub(super) fn drop_tail(&mut self, key: SlabKey) {
        if self.writers.get(key).needs_no_tails(self.sizes.unit) {
            self.forget_tails(key);
        }
    }

    /// A part of a unit was programmed in tails.
    pub(super) fn tail_programmed(&mut self, part: &TailPart, chunk: Option<ChunkIndex>) {
        let writer = self.writers.get_mut(part.writer);
        let tail = &mut writer.tail;
        assert!(tail.pages > 0, "a part of zone {} was programmed twice", writer.zone);
        tail.pages -= 1;
        if writer.area.is_some() {
            return self.tail_of_area_programmed(part, chunk);
        }
        match chunk {
            Some(chunk) => tail.chunks.push(chunk),
            None => tail.has_failed = true,
        }
        assert!(tail.sent >= tail.end, "tails of a zone go back from {} to {}", tail.end, tail.sent);
        if tail.pages > 0 {
            return;
        }
        if std::mem::take(&mut tail.has_failed) {
            tail.sent = tail.end;
        } else {
            tail.end = tail.sent;
            if tail.end >= tail.goal {
                for chunk in std::mem::take(&mut tail.old) {
                    self.tails.drop_part(chunk);
                }
            }
        }
        self.drop_tail(part.writer);
        self.work_due = true;
    }
}
