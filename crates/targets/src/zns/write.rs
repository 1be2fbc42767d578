//! What waits for a zone is done in order: blocks are taken into buffer units, reads are looked up, resets and finishes happen.
//!
//! Deliberately not here: where buffer units go (`stripe`, `program`).

use super::state::Zns;
use super::writer::ZoneOp;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Kind, SEQUENCE_MAX, SectorTag, Sequence, TAG_BYTES};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::ZonedOp;
use ocssd_lightnvm::{BufId, Buffers};

impl Zns {
    /// Goes on with what waits for zones. True if anything was done.
    pub(super) fn admit(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for _ in 0..self.turns.len() {
            let Some(key) = self.turns.pop_front() else { return any };
            self.turns.push_back(key);
            any |= self.admit_zone(key, buffers);
        }
        any
    }

    fn admit_zone(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(&op) = self.writers.get(key).queue.front() {
            let is_done = match op {
                ZoneOp::Write(request) => {
                    let (taken, is_done) = if self.writers.get(key).area.is_some() {
                        self.place_blocks(key, request, buffers)
                    } else {
                        self.take_blocks(key, request, buffers)
                    };
                    any |= taken;
                    is_done
                }
                ZoneOp::Read(request) => {
                    self.resolve(request, buffers);
                    true
                }
                ZoneOp::Reset(request) => self.reset_zone(key, request, false),
                ZoneOp::Offline(request) => self.reset_zone(key, request, true),
                ZoneOp::Finish(request) => self.finish_zone(key, request, buffers),
                ZoneOp::Describe(request) => self.describe_zone(key, request, buffers),
                ZoneOp::OpenArea(request) => self.open_area(key, request),
                ZoneOp::Commit(request) => self.commit_area(key, request, buffers),
            };
            if !is_done {
                break;
            }
            any = true;
            let writer = self.writers.get_mut(key);
            assert_eq!(
                writer.queue.pop_front(),
                Some(op),
                "another operation of zone {} is in front",
                writer.zone
            );
        }
        any |= self.retire_writer(key);
        any
    }

    /// Takes blocks of a write into buffer units. Whether any was taken, and whether all were.
    fn take_blocks(&mut self, key: SlabKey, request: SlabKey, buffers: &mut Buffers) -> (bool, bool) {
        let asked = self.requests.get(request).request;
        let source = asked.buffer.expect("a write without a buffer was refused");
        let (unit, zone) = (self.sizes.unit, self.writers.get(key).zone);
        let start = self.geometry.start_of(zone);
        let mut any = false;
        loop {
            let done = self.requests.get(request).done;
            if done == asked.count {
                self.blocks_taken(key, request);
                return (any, true);
            }
            let writer = self.writers.get_mut(key);
            let buffer_unit = match writer.filling {
                Some(buffer_unit) => buffer_unit,
                None => {
                    let at = writer.admitted / unit;
                    assert!(writer.admitted.is_multiple_of(unit), "a unit of zone {zone} has no buffer unit");
                    let has_share = u32::try_from(writer.held.len())
                        .is_ok_and(|held| held < self.sizes.buffer_units_of_zone);
                    let Some(buffer_unit) = has_share.then(|| self.buffer_units.take(at)).flatten() else {
                        return (any, false);
                    };
                    writer.filling = Some(buffer_unit);
                    writer.held.insert(at, buffer_unit);
                    buffer_unit
                }
            };
            let count = self.buffer_units.room(buffer_unit).min(asked.count - done);
            assert!(count > 0, "a buffer unit without room is filled for zone {zone}");
            let first = start + u64::from(writer.admitted);
            let (buffer, at) = self.buffer_units.push(buffer_unit, count);
            writer.admitted += count;
            if self.buffer_units.room(buffer_unit) == 0 {
                writer.filling = None;
                writer.ready.push_back(buffer_unit);
            }
            assert!(writer.admitted <= self.sizes.capacity(), "zone {zone} is written beyond its capacity");
            buffers.copy_data(source, done, buffer, at, count);
            self.tag(Kind::Data, first, (buffer, at, count), buffers);
            self.requests.get_mut(request).done += count;
            self.stats.user_written += u64::from(count);
            any = true;
        }
    }

    /// Writes the tags of blocks beside them.
    pub(super) fn tag(
        &mut self,
        kind: Kind,
        block: u64,
        (buffer, at, count): (BufId, u32, u32),
        buffers: &mut Buffers,
    ) {
        let first = Sequence(self.sequence + 1);
        self.sequence += u64::from(count);
        assert!(self.sequence <= SEQUENCE_MAX, "more blocks were written than a tag can count");
        let (data, oob) = buffers.sectors_mut(buffer, at, count);
        let (data_bytes, oob_bytes) = (data.len() / usize_of(count), oob.len() / usize_of(count));
        let sectors = data.chunks_exact(data_bytes).zip(oob.chunks_exact_mut(oob_bytes));
        for (offset, (data, oob)) in (0..).zip(sectors) {
            let tag = SectorTag { kind, block: block + offset, sequence: Sequence(first.0 + offset) };
            let (tagged, rest) = oob.split_at_mut(TAG_BYTES);
            tagged.copy_from_slice(&tag.encode(data));
            rest.fill(0);
        }
    }

    /// All blocks of a write are in buffer units: it is answered, now or when they are durable.
    pub(super) fn blocks_taken(&mut self, key: SlabKey, request: SlabKey) {
        let op = self.requests.get(request).request.op;
        let writer = self.writers.get_mut(key);
        let durability = match op {
            ZonedOp::Write { durability } | ZonedOp::Append { durability } => durability,
            other => unreachable!("{other:?} is no write"),
        };
        if writer.admitted == self.sizes.capacity() {
            writer.is_ending = true;
        }
        if durability == Durability::AtFlush {
            return self.requests.part_done(request);
        }
        if let Some(area) = &mut writer.area {
            let newest = area.newest();
            area.wait_for(newest);
            area.waiters.push_back((newest, request));
            return;
        }
        let end = writer.admitted;
        assert!(writer.waiters.back().is_none_or(|&(last, _)| last < end), "writes wait out of order");
        writer.awaited = writer.awaited.max(end);
        writer.waiters.push_back((end, request));
    }

    /// Answers writes that are durable. True if there was one.
    pub(super) fn answer_durable(&mut self) -> bool {
        let mut any = false;
        for nth in 0..self.turns.len() {
            let key = self.turns[nth];
            let writer = self.writers.get_mut(key);
            let in_order = writer.waiters.front().copied();
            let in_order = in_order.filter(|&(end, _)| writer.durable(self.sizes.unit) >= end);
            let of_area = writer.area.as_mut().and_then(|area| {
                let &(version, request) = area.waiters.front()?;
                area.is_durable(version).then_some(request)
            });
            let Some(request) = in_order.map(|(_, request)| request).or(of_area) else { continue };
            let bound = writer.bound;
            if bound > self.journal.log.durable() {
                self.await_log(bound);
                continue;
            }
            if in_order.is_some() {
                writer.waiters.pop_front();
            } else if let Some(area) = &mut writer.area {
                area.waiters.pop_front();
            }
            self.requests.part_done(request);
            // There may be more.
            (any, self.work_due) = (true, true);
        }
        any
    }
}
