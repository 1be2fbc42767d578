//! Units go to media, each to the place its zone has for it, with force unit access; and what becomes of them.
//!
//! Units of a zone are given out in order. One that the media failed waits until nothing of its zone is in flight, and then
//! gets another place (`stripe::mend`). Deliberately not here: places.

use super::buffer_units::BufferUnitId;
use super::flight::Purpose;
use super::state::Zns;
use crate::journal::outcome;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Append, AppendEvent, ChunkIndex, ChunkUse, OpenChunk, ProgramOutcome, SectorTag, TAG_BYTES};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};
use std::collections::BTreeSet;

/// Fills sectors of a buffer with padding.
pub(super) fn pad(buffer: BufId, from: u32, to: u32, buffers: &mut Buffers) {
    assert!(from <= to, "padding from {from} to {to}");
    for sector in from..to {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        data.fill(0);
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&SectorTag::PAD.encode(data));
    }
}

impl Zns {
    /// Gives out units, as far as there are places. True if any was.
    pub(super) fn program(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for nth in 0..self.turns.len() {
            let key = self.turns[nth];
            while self.flight.has_room(1) && self.program_next(key, buffers) {
                any = true;
            }
        }
        any
    }

    fn program_next(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        if self.mend(key) {
            return true;
        }
        let writer = self.writers.get(key);
        if writer.wait > self.journal.log.durable() {
            return false;
        }
        if let Some(&(buffer_unit, at)) = writer.moved.front() {
            self.writers.get_mut(key).moved.pop_front();
            self.send_unit(key, (buffer_unit, at, self.sizes.unit), buffers);
            return true;
        }
        let Some(&buffer_unit) = writer.ready.front() else { return self.window(key) };
        if !writer.failed.is_empty() || writer.next >= writer.end && !self.plan_segment(key) {
            return false;
        }
        let (config, page, unit) = (self.append_config(), self.sizes.page, self.sizes.unit);
        let writer = self.writers.get_mut(key);
        if writer.wait > self.journal.log.durable() {
            return true;
        }
        let zone = &self.zones[usize_of(writer.zone)];
        let expected = zone.place_by(writer.next, unit, self.per_width);
        let open = writer.chunk_mut(expected.chunk, zone.last_column(writer.next));
        if open.in_flight() >= usize_of(config.depth) || !open.takes_more(&config) {
            return false;
        }
        // The last part of a zone that is finished early is no whole unit.
        let sectors = self.buffer_units.filled(buffer_unit).next_multiple_of(page);
        let at = open.give(sectors, &config);
        assert_eq!(
            (at.chunk, at.sector),
            (expected.chunk, expected.sector),
            "unit {} of a zone went astray",
            writer.next
        );
        assert_eq!(self.buffer_units.unit(buffer_unit), writer.next, "units are given out in order");
        writer.ready.pop_front();
        writer.next += 1;
        writer.in_flight += 1;
        self.send_unit(key, (buffer_unit, at, sectors), buffers);
        true
    }

    fn send_unit(
        &mut self,
        key: SlabKey,
        (buffer_unit, at, sectors): (BufferUnitId, Append, u32),
        buffers: &mut Buffers,
    ) {
        let (filled, buffer) = (self.buffer_units.filled(buffer_unit), self.buffer_units.buffer(buffer_unit));
        assert!((1..=sectors).contains(&filled), "{filled} sectors go out in a unit of {sectors}");
        pad(buffer, filled, sectors, buffers);
        self.stats.programmed += u64::from(sectors);
        if self.buffer_units.is_again(buffer_unit) {
            self.stats.rewritten += u64::from(sectors);
        } else {
            let holes = self.buffer_units.holes(buffer_unit);
            self.stats.data_written += u64::from(filled - holes);
            self.stats.padded += u64::from(sectors - filled + holes);
        }
        let addresses = self.run_at(at, sectors);
        let purpose = Purpose::Unit { writer: key, buffer_unit, at };
        self.flight.send(purpose, Op::Write { fua: true }, addresses, Some(buffer), 0);
    }

    /// A unit's write ended.
    pub(super) fn unit_done(
        &mut self,
        key: SlabKey,
        buffer_unit: BufferUnitId,
        at: Append,
        completion: &Completion,
    ) {
        let (status, unit) = (completion.status, self.buffer_units.unit(buffer_unit));
        assert!(unit < self.sizes.zone_units, "unit {unit} is beyond a zone");
        assert_eq!(at.sector % self.sizes.page, 0, "a unit was written at {at:?}");
        if status.is_drive_failure() {
            self.stop(status);
        }
        let writer = self.writers.get_mut(key);
        if status.is_success() {
            writer.on_programmed(unit);
            let in_place = writer.durable(self.sizes.unit);
            self.drop_tail(key);
            self.area_on_place(key, in_place);
        } else {
            writer.failed.insert(unit, buffer_unit);
            self.buffer_units.failed(buffer_unit);
        }
        let column = self.zones[usize_of(self.writers.get(key).zone)].last_column(unit);
        self.write_over(key, (at, column), outcome(status, Some(buffer_unit)));
    }

    /// A write to a chunk of a zone, most likely its column of that number, is over: what can be read now needs no buffer unit any
    /// more.
    fn write_over(
        &mut self,
        key: SlabKey,
        (at, column): (Append, usize),
        outcome: ProgramOutcome<Option<BufferUnitId>>,
    ) {
        let config = self.append_config();
        let writer = self.writers.get_mut(key);
        assert!(writer.in_flight > 0, "a write to zone {} ended that was not sent", writer.zone);
        writer.in_flight -= 1;
        let mut events = Vec::new();
        let open = writer.chunk_mut(at.chunk, column);
        open.programmed(&config, at.sector, outcome, &mut events);
        let is_over = open.is_over(&config);
        for event in events {
            if let AppendEvent::Readable(Some(buffer_unit)) = event {
                let held = writer.held.remove(self.buffer_units.unit(buffer_unit));
                assert_eq!(held, Some(buffer_unit), "a buffer unit can be read from media that nobody held");
                self.buffer_units.release(buffer_unit);
            }
        }
        if is_over && self.space.usage(at.chunk) == ChunkUse::Open {
            self.space.close(at.chunk);
        }
        writer.ended.retain(|open| !open.is_over(&config) || open.is_holding());
    }

    /// Nothing follows in a zone: its chunks are padded until all of it can be read. True if a write was sent.
    fn window(&mut self, key: SlabKey) -> bool {
        let (config, unit) = (self.append_config(), self.sizes.unit);
        let writer = self.writers.get_mut(key);
        if !writer.is_ending || !writer.is_all_programmed() || self.padding.is_empty() {
            return false;
        }
        // Padding cannot be read before more follows either, and need not: what counts is where buffer units lie.
        let zone = &self.zones[usize_of(writer.zone)];
        let on_media = writer.held.from(0).map(|(at, _)| at).take_while(|&at| at < writer.programmed);
        let wanted: BTreeSet<ChunkIndex> = on_media.map(|at| zone.place(at, unit).chunk).collect();
        let may_go_on = |open: &&mut OpenChunk<_>| {
            wanted.contains(&open.chunk()) && open.in_flight() == 0 && open.takes_more(&config)
        };
        let Some(open) = writer.columns.iter_mut().chain(&mut writer.ended).find(may_go_on) else {
            return false;
        };
        let Some(padding) = self.padding.pop() else { return false };
        let sectors = unit - open.pointer() % unit;
        let at = open.give(sectors, &config);
        writer.in_flight += 1;
        assert!((1..=unit).contains(&sectors), "{sectors} sectors of padding at {at:?}");
        self.stats.programmed += u64::from(sectors);
        self.stats.padded += u64::from(sectors);
        let addresses = self.run_at(at, sectors);
        let purpose = Purpose::Window { writer: key, at, padding };
        self.flight.send(purpose, Op::Write { fua: true }, addresses, Some(padding), 0);
        true
    }

    /// Padding to a chunk of a zone ended.
    pub(super) fn window_done(&mut self, key: SlabKey, at: Append, completion: &Completion) {
        let status = completion.status;
        if status.is_drive_failure() {
            self.stop(status);
        }
        self.write_over(key, (at, 0), outcome(status, None));
    }
}
