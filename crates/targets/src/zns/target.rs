//! What the host sees: the contract of a zoned target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::flight::Purpose;
use super::state::Zns;
use super::writer::ZoneOp;
use crate::journal::PageKind;
use ocssd_base::{Nanos, SlabKey};
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, ZoneAction, ZoneDescriptor, ZoneExtension, ZoneGeometry, ZoneScope, ZoneState,
    ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::interface::{Entry, List};
use ocssd_lightnvm::{Admission, Buffers, ChunkId, Command, Completion, Out, Status, Target};

impl Zns {
    /// Lets every procedure go on until none can.
    pub(super) fn work(&mut self, buffers: &mut Buffers) {
        while std::mem::take(&mut self.work_due) || self.give_up(buffers) {
            let mut any = false;
            if self.refuses_changes().is_none() {
                if !self.is_mounting {
                    any |= self.admit(buffers);
                    any |= self.answer_durable();
                    any |= self.program(buffers);
                    any |= self.write_tails(buffers);
                }
                any |= self.write_log(buffers);
                any |= self.write_checkpoint(buffers);
                any |= self.reset(buffers);
                any |= !self.is_mounting && self.level(buffers);
            }
            any |= self.serve_reads(buffers);
            any |= self.flush();
            any |= self.shut_down();
            self.work_due |= any;
        }
    }

    /// Takes a request, or answers it at once.
    fn take_request(&mut self, request: &ZonedRequest, buffers: &mut Buffers) {
        if self.is_shut_down || self.shutdown.is_some() {
            return self.requests.answer(request, Status::NAMESPACE_NOT_READY, ZonedAnswer::Done);
        }
        let refused = match request.op {
            ZonedOp::Read => self.judge_read(request).map(|zone| {
                let key = self.requests.insert(*request, ZonedAnswer::Done);
                self.take_read(zone, key, buffers);
            }),
            ZonedOp::Write { .. } => self.write(request, false),
            ZonedOp::Append { .. } => self.write(request, true),
            ZonedOp::Flush => {
                let key = self.take_whole(request);
                self.take_flush(key);
                Ok(())
            }
            ZonedOp::Shutdown => {
                self.shutdown = Some(self.take_whole(request));
                Ok(())
            }
            ZonedOp::Manage { action, scope } => self.manage(request, action, scope),
            ZonedOp::SetExtension => self.take_extension(request, buffers),
            ZonedOp::OpenWithArea => self.judge_open_with_area(request).map(|zone| {
                self.queue_whole(zone, request, ZoneOp::OpenArea);
            }),
            ZonedOp::CommitArea => self.judge_commit(request).map(|zone| {
                self.queue_whole(zone, request, ZoneOp::Commit);
            }),
            ZonedOp::Report { only } => {
                let answer = |listed, matching| ZonedAnswer::Reported { listed, matching };
                self.report(request, only, buffers, (Self::descriptor, answer))
            }
            ZonedOp::ReportExtended { only } => {
                let answer = |listed, matching| ZonedAnswer::ReportedExtended { listed, matching };
                self.report(request, only, buffers, (Self::described, answer))
            }
        };
        if let Err(status) = refused {
            self.requests.answer(request, status, ZonedAnswer::Done);
        }
        self.work_due = true;
    }

    /// Takes a request that is over once one thing happened.
    pub(super) fn take_whole(&mut self, request: &ZonedRequest) -> SlabKey {
        let key = self.requests.insert(*request, ZonedAnswer::Done);
        self.requests.get_mut(key).done = request.count;
        self.requests.begin_parts(key, 1);
        key
    }

    /// Takes a request that is over once one thing happened, in the zone's turn.
    fn queue_whole(&mut self, zone: u32, request: &ZonedRequest, op: impl Fn(SlabKey) -> ZoneOp) {
        let key = self.take_whole(request);
        let writer = self.writer_of(zone);
        self.writers.get_mut(writer).queue.push_back(op(key));
    }

    fn write(&mut self, request: &ZonedRequest, is_append: bool) -> Result<(), Status> {
        let (zone, at) = self.judge_write(request, is_append)?;
        let block = self.geometry.start_of(zone) + at;
        let answer = if is_append { ZonedAnswer::Appended { block } } else { ZonedAnswer::Done };
        let key = self.requests.insert(*request, answer);
        self.requests.begin_parts(key, 1);
        let writer = self.writer_of(zone);
        self.writers.get_mut(writer).queue.push_back(ZoneOp::Write(key));
        Ok(())
    }

    fn manage(&mut self, request: &ZonedRequest, action: ZoneAction, scope: ZoneScope) -> Result<(), Status> {
        let zones = match scope {
            ZoneScope::One => vec![self.judge_start(request.block)?],
            ZoneScope::All => {
                let chosen = self.chosen(action);
                if action == ZoneAction::Open {
                    self.judge_open_all(&chosen)?;
                }
                chosen
            }
        };
        let mut waits = Vec::new();
        for zone in zones {
            if self.judge_action(zone, action)? {
                waits.push(zone);
            }
        }
        if waits.is_empty() {
            self.requests.answer(request, Status::SUCCESS, ZonedAnswer::Done);
            return Ok(());
        }
        let key = self.take_whole(request);
        self.requests.begin_parts(key, u32::try_from(waits.len() - 1).expect("fewer zones than 2^32"));
        for zone in waits {
            self.take_management(zone, action, key);
        }
        Ok(())
    }

    fn report<T: Entry>(
        &mut self,
        request: &ZonedRequest,
        only: Option<ZoneState>,
        buffers: &mut Buffers,
        (show, answer): (impl Fn(&Self, u32) -> T, impl Fn(List<T>, u32) -> ZonedAnswer),
    ) -> Result<(), Status> {
        let first = self.geometry.zone_of(request.block).ok_or(Status::LBA_OUT_OF_RANGE)?;
        let buffer = request.buffer.ok_or(Status::INVALID_FIELD)?;
        let list = List::<T>::new(buffer, request.count);
        if !list.lies_within(buffers) {
            return Err(Status::INVALID_FIELD);
        }
        let zones = (first..self.geometry.zone_count)
            .filter(|&zone| only.is_none_or(|only| self.zone(zone).state == only));
        let most = usize::try_from(request.count).expect("32 bits fit an index");
        let listed: Vec<T> = zones.clone().take(most).map(|zone| show(self, zone)).collect();
        let matching = u32::try_from(zones.count()).expect("fewer zones than 2^32");
        let listed = List::write(buffers, buffer, &listed);
        self.requests.answer(request, Status::SUCCESS, answer(listed, matching));
        Ok(())
    }

    fn descriptor(&self, zone: u32) -> ZoneDescriptor {
        let (start, entry) = (self.geometry.start_of(zone), self.zone(zone));
        let write_pointer = entry.state.is_writable().then(|| start + u64::from(entry.written));
        ZoneDescriptor {
            state: entry.state,
            capacity: self.geometry.capacity_blocks,
            start,
            write_pointer,
            has_extension: self.extensions.shown(zone).is_some(),
            has_area: self.areas.contains(&zone),
        }
    }

    fn described(&self, zone: u32) -> DescribedZone {
        let extension = self.extensions.shown(zone).unwrap_or(ZoneExtension::ZERO);
        DescribedZone { zone: self.descriptor(zone), extension }
    }

    fn give_replies(&mut self, out: &mut Out<ZonedReply>) {
        while let Some(reply) = self.requests.poll_reply() {
            out.reply(reply);
        }
    }

    /// The next command for the device.
    pub(super) fn next_command(&mut self, buffers: &mut Buffers) -> Option<Command> {
        if !self.flight.has_next() && self.work_due {
            self.work(buffers);
        }
        self.flight.take()
    }

    /// A command ended.
    pub(super) fn completed(&mut self, now: Nanos, mut completion: Completion, buffers: &mut Buffers) {
        let Some(purpose) = self.flight.end(now, &mut completion, buffers) else { return };
        match purpose {
            Purpose::Read { request, index, count } => {
                self.read_done(request, (index, count), &completion, buffers);
                // What waits for a command has room for one.
                self.work_due |= self.requests.next_read().is_some() || self.flight.len() == 0;
                return;
            }
            Purpose::Retry { number } => self.retry_done(number, &completion, buffers),
            Purpose::Unit { writer, buffer_unit, at } => self.unit_done(writer, buffer_unit, at, &completion),
            Purpose::Window { writer, at, padding } => {
                self.padding.push(padding);
                self.window_done(writer, at, &completion);
            }
            Purpose::Padding { chunk, sectors, padding } => {
                self.padding.push(padding);
                self.padding_done(chunk, sectors, &completion);
            }
            Purpose::Tail { page } => self.tail_page_done(page, &completion),
            Purpose::LogPage { page } => self.page_done(PageKind::Log, page, &completion),
            Purpose::CheckpointPage { page } => self.page_done(PageKind::Checkpoint, page, &completion),
            Purpose::MoveRead => self.move_read(&completion, buffers),
            Purpose::MoveWrite => self.move_written(&completion),
            Purpose::Reset { chunk } => self.reset_done(chunk, &completion),
            Purpose::Resets { batch } => self.resets_done(batch, &completion),
        }
        self.work_due = true;
    }
}

impl Target for Zns {
    type Request = ZonedRequest;
    type Reply = ZonedReply;

    fn submit(&mut self, now: Nanos, request: &ZonedRequest, out: &mut Out<ZonedReply>) -> Admission {
        self.now = now;
        if out.has_room()
            && let Some(command) = self.take_direct_read(request, &mut out.buffers)
        {
            out.command(command);
            return Admission::Taken;
        }
        if !self.requests.has_room() {
            return Admission::Full;
        }
        self.take_request(request, &mut out.buffers);
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<ZonedReply>) {
        self.now = now;
        self.completed(now, completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<ZonedReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<ZonedReply>) {
        self.now = now;
        while out.has_room() {
            let Some(command) = self.next_command(&mut out.buffers) else { break };
            out.command(command);
        }
        self.give_replies(out);
    }

    fn check(&self) {
        self.check_all();
        self.check_tails();
    }

    fn counters(&self) -> Vec<Counter> {
        let gauge = |name, about, value| Counter { name, about, value: CounterValue::Gauge(value) };
        let mut counters = self.stats.counters();
        counters.push(self.flight.counter());
        counters.extend([
            gauge("active_zones", "Zones that are open or closed.", u64::from(self.active)),
            gauge("free_chunks", "Chunks that can be opened.", u64::from(self.space.free())),
            gauge("good_chunks", "Chunks that are not bad.", u64::from(self.good_chunks())),
            gauge(
                "chunks_needed",
                "Good chunks below which changes may be refused.",
                u64::from(self.chunks_needed()),
            ),
            gauge(
                "metadata_lines",
                "Lines kept for the log and checkpoints; 0: none.",
                u64::from(self.sizes.metadata_lines),
            ),
            gauge(
                "filling_chunks",
                "Chunks that are padded to their end.",
                u64::try_from(self.filling.len() + self.padded.len()).expect("an index"),
            ),
            gauge("table_bytes", "Memory of the zone table.", self.table_bytes()),
            gauge(
                "wear_spread_bound",
                "Resets a chunk of a full zone may lag; 0: any.",
                u64::from(self.wear.bound().unwrap_or(0)),
            ),
            gauge(
                "wear_lag",
                "Resets the least worn chunk lags behind the most worn one.",
                u64::from(self.wear.lag_from(self.space.first_of_zones())),
            ),
            Counter {
                name: "wear_put_off_resets",
                about: "Resets while there was no room for what a lagging chunk holds.",
                value: CounterValue::Count(self.wear.resets_put_off()),
            },
            gauge("log_pages", "Pages of the log that recovery would read.", self.journal.log.pages()),
            gauge("read_only", "1 if no changes are taken.", u64::from(self.refuses_changes().is_some())),
        ]);
        counters
    }

    fn summary(&self) -> String {
        let writers: Vec<String> = self
            .writers
            .iter()
            .map(|(_, writer)| {
                format!(
                    "zone {}: {} waiting, {} admitted, {} durable, units {} was programmed {} given of {}, {} held, {} in flight",
                    writer.zone,
                    writer.queue.len(),
                    writer.admitted,
                    writer.durable(self.sizes.unit),
                    writer.programmed,
                    writer.next,
                    writer.end,
                    writer.held.len(),
                    writer.in_flight
                )
            })
            .collect();
        format!(
            "{:?}; {} free chunks of {} good, {} owed, {} dead; {} buffer units; log {:?}, awaited {:?}; checkpoint being written: {}; {} \
             commands; {:?}; {}",
            self.changes,
            self.space.free(),
            self.space.good(),
            self.space.owed(),
            self.space.dead_count(),
            self.buffer_units.in_use(),
            {
                let log = &self.journal.log;
                (log.tail(), log.durable(), log.next())
            },
            self.log_awaited,
            self.journal.is_writing(),
            self.flight.len(),
            self.stats,
            writers.join("; ")
        )
    }
}

impl ZonedTarget for Zns {
    fn zone_geometry(&self) -> ZoneGeometry {
        self.geometry
    }

    fn zone(&self, zone: u32) -> ZoneDescriptor {
        self.descriptor(zone)
    }

    fn extension(&self, zone: u32) -> Option<ZoneExtension> {
        assert!(zone < self.sizes.zone_count, "there is no zone {zone}");
        self.extensions.shown(zone)
    }

    fn zone_chunks(&self, zone: u32) -> Vec<ChunkId> {
        let mut chunks: Vec<ChunkId> =
            self.zone(zone).chunks().map(|chunk| self.space.shape.chunk_id(chunk)).collect();
        chunks.sort_unstable();
        chunks.dedup();
        assert!(
            !chunks.is_empty() || self.zone(zone).written == 0 || self.zone(zone).writer().is_some(),
            "zone {zone} holds blocks on no chunk"
        );
        chunks
    }

    fn poll_changed_zone(&mut self) -> Option<u32> {
        self.changed.pop_front()
    }
}
