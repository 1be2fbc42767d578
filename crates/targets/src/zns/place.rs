//! Random write areas: zones are opened with one, blocks are put into it in any order, and it is committed unit by unit.
//!
//! The area is the buffer units behind the write pointer, made visible: a buffer unit is written over until the pointer passes its
//! unit; then what it lacks is filled with blocks that say they were never written, and it goes to media as any unit. Deliberately
//! not here: what of it is durable (`area`), whether requests are legal (`judge`).

use super::area::Area;
use super::buffer_units::BufferUnitId;
use super::canary::Canary;
use super::segments::UnitOfZone;
use super::state::Zns;
use super::tails::TailPart;
use ocssd_base::SlabKey;
use ocssd_ftl::{ChunkIndex, Kind};
use ocssd_lightnvm::Buffers;

impl Zns {
    /// Gives a zone its area, once all before is on media, and the log says where: what a mount finds in tails may have holes from
    /// there on. False until then.
    pub(super) fn open_area(&mut self, key: SlabKey, request: SlabKey) -> bool {
        let unit = self.sizes.unit;
        let writer = self.writers.get_mut(key);
        assert!(writer.admitted.is_multiple_of(unit), "zone {} has an area within a unit", writer.zone);
        assert!(writer.filling.is_none(), "a part of a unit of zone {} is in a buffer unit", writer.zone);
        if writer.programmed * unit < writer.admitted || writer.tail.pages > 0 {
            return false;
        }
        if writer.bound > self.journal.log.durable() {
            let bound = writer.bound;
            self.await_log(bound);
            return false;
        }
        if writer.area.is_none() {
            writer.area = Some(Box::new(Area::new(writer.admitted)));
        }
        self.requests.part_done(request);
        true
    }

    /// Where the write pointer goes for a write that ends at `end`: by whole units, as little as lets the area reach there.
    pub(super) fn pointer_for(&self, pointer: u32, end: u32) -> u32 {
        let (unit, area) = (self.sizes.unit, self.sizes.area_units * self.sizes.unit);
        let beyond = end.saturating_sub(pointer + area);
        (pointer + beyond.next_multiple_of(unit)).min(self.sizes.capacity())
    }

    /// Puts blocks of a write into an area, which moves on if it must. Whether any was, and whether all were.
    pub(super) fn place_blocks(
        &mut self,
        key: SlabKey,
        request: SlabKey,
        buffers: &mut Buffers,
    ) -> (bool, bool) {
        let asked = self.requests.get(request).request;
        let source = asked.buffer.expect("a write without a buffer was refused");
        let (unit, zone) = (self.sizes.unit, self.writers.get(key).zone);
        let first = u32::try_from(asked.block - self.geometry.start_of(zone)).expect("within the zone");
        let mut any = false;
        loop {
            let done = self.requests.get(request).done;
            let (next, admitted) = (first + done, self.writers.get(key).admitted);
            let lags = admitted < self.pointer_for(admitted, first + asked.count);
            assert!(done == asked.count || next >= admitted, "block {next} of zone {zone} is committed");
            if done == asked.count && !lags {
                self.blocks_taken(key, request);
                return (any, true);
            }
            if lags && (done == asked.count || next / unit > admitted / unit) {
                if !self.commit_unit(key, buffers) {
                    return (any, false);
                }
                any = true;
                continue;
            }
            let Some(buffer_unit) = self.buffer_unit_of(key, next / unit) else { return (any, false) };
            let count = (unit - next % unit).min(asked.count - done);
            let at = next % unit;
            let buffer = self.buffer_units.place(buffer_unit, at, count);
            buffers.copy_data(source, done, buffer, at, count);
            let block = asked.block + u64::from(done);
            self.tag(Kind::Placed, block, (buffer, at, count), buffers);
            let newest = self.sequence;
            let area = self.writers.get_mut(key).area.as_mut().expect("a zone with an area");
            let versions = newest + 1 - u64::from(count)..=newest;
            (next..).zip(versions).for_each(|(block, version)| area.written(block, version));
            self.requests.get_mut(request).done += count;
            self.stats.user_written += u64::from(count);
            any = true;
        }
    }

    /// The buffer unit of a unit of an area, taken if it has none; `None` if there is none to take.
    fn buffer_unit_of(&mut self, key: SlabKey, at: UnitOfZone) -> Option<BufferUnitId> {
        let most = self.sizes.buffer_units_of_zone + self.sizes.area_units;
        let writer = self.writers.get_mut(key);
        assert!(at >= writer.admitted / self.sizes.unit, "unit {at} of zone {} is committed", writer.zone);
        if let Some(buffer_unit) = writer.held.get(at) {
            return Some(buffer_unit);
        }
        let has_share = u32::try_from(writer.held.len()).is_ok_and(|held| held < most);
        let buffer_unit = has_share.then(|| self.buffer_units.take(at)).flatten()?;
        writer.held.insert(at, buffer_unit);
        Some(buffer_unit)
    }

    /// Commits the first unit of an area. False if there is no buffer unit for it.
    fn commit_unit(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let at = self.writers.get(key).admitted / self.sizes.unit;
        let Some(buffer_unit) = self.buffer_unit_of(key, at) else { return false };
        self.commit_buffer_unit(key, buffer_unit, self.sizes.unit, buffers);
        true
    }

    /// A buffer unit is written no more: it goes to media with its first `blocks`.
    fn commit_buffer_unit(
        &mut self,
        key: SlabKey,
        buffer_unit: BufferUnitId,
        blocks: u32,
        buffers: &mut Buffers,
    ) {
        let zone = self.writers.get(key).zone;
        self.pad_holes(zone, buffer_unit, blocks, buffers);
        let capacity = self.sizes.capacity();
        let writer = self.writers.get_mut(key);
        assert_eq!(
            self.buffer_units.unit(buffer_unit) * self.sizes.unit,
            writer.admitted,
            "a unit is left out"
        );
        writer.admitted += blocks;
        assert!(writer.admitted <= capacity, "zone {zone} is committed beyond its capacity");
        writer.is_ending |= writer.admitted == capacity;
        writer.ready.push_back(buffer_unit);
        self.work_due = true;
    }

    /// Fills what the first `blocks` of a buffer unit lack.
    pub(super) fn pad_holes(
        &mut self,
        zone: u32,
        buffer_unit: BufferUnitId,
        blocks: u32,
        buffers: &mut Buffers,
    ) {
        let start =
            self.geometry.start_of(zone) + u64::from(self.buffer_units.unit(buffer_unit) * self.sizes.unit);
        let buffer = self.buffer_units.buffer(buffer_unit);
        let mut is_hole_before = false;
        for at in 0..blocks {
            let is_hole = !self.buffer_units.has(buffer_unit, at);
            let spreads = is_hole_before && self.has_canary(Canary::HoleSpreads);
            if is_hole || spreads {
                buffers.data_mut(buffer, at, 1).fill(0);
                self.tag(Kind::Unwritten, start + u64::from(at), (buffer, at, 1), buffers);
            }
            is_hole_before = is_hole;
        }
        self.buffer_units.complete(buffer_unit, blocks);
    }

    /// Commits up to a block what a host asked for. False if a buffer unit is missing.
    pub(super) fn commit_area(&mut self, key: SlabKey, request: SlabKey, buffers: &mut Buffers) -> bool {
        let asked = self.requests.get(request).request;
        let zone = self.writers.get(key).zone;
        let end = u32::try_from(asked.block - self.geometry.start_of(zone)).expect("within the zone") + 1;
        while self.writers.get(key).admitted < end {
            if !self.commit_unit(key, buffers) {
                return false;
            }
        }
        let writer = self.writers.get_mut(key);
        assert_eq!(writer.admitted, end, "zone {zone} is committed elsewhere");
        if self.options.has_canary(Canary::CommitTooEarly) {
            self.requests.part_done(request);
        } else {
            writer.waiters.push_back((end, request));
        }
        true
    }

    /// Where what was written of a zone ends.
    fn end_of_area(&self, key: SlabKey) -> u32 {
        let (unit, writer) = (self.sizes.unit, self.writers.get(key));
        let ahead = writer.held.from(writer.admitted.div_ceil(unit)).next_back();
        ahead.map_or(writer.admitted, |(at, buffer_unit)| at * unit + self.buffer_units.end(buffer_unit))
    }

    /// Commits what was written of an area, and no more. False if a buffer unit is missing.
    pub(super) fn commit_rest(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let (unit, end) = (self.sizes.unit, self.end_of_area(key));
        loop {
            let admitted = self.writers.get(key).admitted;
            if admitted >= end {
                return true;
            }
            let Some(buffer_unit) = self.buffer_unit_of(key, admitted / unit) else { return false };
            self.commit_buffer_unit(key, buffer_unit, unit.min(end - admitted), buffers);
        }
    }

    /// A zone is written no more, and has no place for its area: what is in buffer units can be read.
    pub(super) fn keep_area_for_reads(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let (unit, end) = (self.sizes.unit, self.end_of_area(key));
        let writer = self.writers.get(key);
        let zone = writer.zone;
        let ahead: Vec<BufferUnitId> =
            writer.held.from(writer.admitted.div_ceil(unit)).map(|(_, buffer_unit)| buffer_unit).collect();
        for buffer_unit in ahead {
            self.pad_holes(zone, buffer_unit, unit, buffers);
        }
        self.writers.get_mut(key).admitted = end;
    }

    /// What of an area is on media in its place needs no tail any more.
    pub(super) fn area_on_place(&mut self, key: SlabKey, before: u32) {
        let Some(area) = &mut self.writers.get_mut(key).area else { return };
        let gone = area.on_place(before);
        self.work_due |= !gone.is_empty() || !area.waiters.is_empty();
        gone.into_iter().for_each(|chunk| self.tails.drop_part(chunk));
    }

    /// Blocks of an area were programmed in tails, or were not.
    pub(super) fn tail_of_area_programmed(&mut self, part: &TailPart, chunk: Option<ChunkIndex>) {
        let lags = self.has_canary(Canary::TailCoversOverwrite);
        let writer = self.writers.get_mut(part.writer);
        let area = writer.area.as_mut().expect("a zone with an area");
        for block in part.from..part.to {
            match chunk {
                Some(chunk) => {
                    let gone = area.programmed(block, chunk, lags);
                    gone.into_iter().for_each(|chunk| self.tails.drop_part(chunk));
                }
                None => area.failed(block),
            }
        }
        self.work_due = true;
    }
}
