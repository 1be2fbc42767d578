//! Zones that have more chunks than they need are copied to fresh ones, so that every zone can be written to its end.
//!
//! Each cut in the middle of a zone leaves holes in its columns: what was on its way, and padding. A zone that was cut often takes
//! more chunks than its share; when all of them together take too many, the worst is copied, which the log makes true at once.
//! Deliberately not here: what is copied while the instance runs: nothing.

use super::carry_on;
use crate::mount_error::{MountError, look_at_drive, look_at_reads};
use crate::zns::columns::Column;
use crate::zns::journal;
use crate::zns::program::pad;
use crate::zns::segments::Segments;
use crate::zns::state::Zns;
use crate::zns::zone::Zone;
use crate::{read_again, send_again};
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{ChunkIndex, ChunkUse, ProgramOutcome};
use ocssd_lightnvm::interface::zoned::ZoneState;
use ocssd_lightnvm::{Addresses, BlockingDevice, BufId, Command, Op, PlaneMode, Ppa, Tag};
use std::collections::BTreeSet;

/// Units of a batch (chosen: two for each unit of a drive with 32).
const BATCH: usize = 64;

/// Copies zones until all fit. How many were.
pub fn copy_zones(device: &mut dyn BlockingDevice, target: &mut Zns) -> Result<u32, MountError> {
    let mut copied = 0;
    // Each has its share of chunks afterwards, so none is copied twice.
    for _ in 0..target.sizes.zone_count {
        let Some(number) = target.worst_zone() else { break };
        // What was cut off before is free first.
        while target.space.dead_count() > 0 && carry_on(device, target)? {}
        if !copy_zone(device, target, number)? {
            break;
        }
        copied += 1;
        while carry_on(device, target)? {}
    }
    Ok(copied)
}

impl Zns {
    /// Chunks a zone has or will need.
    fn chunks_of(&self, number: u32) -> u32 {
        let zone = self.zone(number);
        // One segment has no chunk twice.
        let bound = match zone.segments.len() {
            0 | 1 => zone.chunks().count(),
            _ => zone.chunks().collect::<BTreeSet<ChunkIndex>>().len(),
        };
        let bound = u32::try_from(bound).expect("fewer chunks than 2^32");
        let Some(key) = zone.writer() else {
            // One that may be written has nothing yet.
            return if zone.state.is_writable() { self.sizes.zone_chunks } else { bound };
        };
        let writer = self.writers.get(key);
        if zone.state == ZoneState::ReadOnly {
            return bound;
        }
        let room: u32 =
            writer.columns.iter().map(|open| (self.sizes.chunk - open.pointer()) / self.sizes.unit).sum();
        let left = (self.sizes.zone_units - writer.next).saturating_sub(room);
        bound + left.div_ceil(self.sizes.chunk_units())
    }

    /// The zone with the most chunks beyond its share, if all zones together take more than there are.
    fn worst_zone(&self) -> Option<u32> {
        let needed: u32 = (0..self.sizes.zone_count).map(|number| self.chunks_of(number)).sum();
        let taken = self.space.taken_beside_zones();
        if needed + self.space.owed() + taken + self.sizes.zone_chunks <= self.space.good() {
            return None;
        }
        let share = |number: u32| {
            self.sizes.zone_chunks
                + if self.zone(number).writer().is_some() { self.sizes.window_chunks } else { 0 }
        };
        let beyond = |&number: &u32| self.chunks_of(number).saturating_sub(share(number));
        let worst =
            (0..self.sizes.zone_count).max_by_key(|number| (beyond(number), std::cmp::Reverse(*number)))?;
        (beyond(&worst) > 0).then_some(worst)
    }

    /// Lays out the first `units` of a zone anew, the last of which may have fewer sectors: where each was, and where it goes. None
    /// if there is no room.
    fn lay_out_anew(&mut self, key: SlabKey, old: &Zone, (units, last): (u32, u32)) -> Option<Vec<Move>> {
        let (config, unit) = (self.append_config(), self.sizes.unit);
        let number = self.writers.get(key).zone;
        let mut moves = Vec::new();
        for at in 0..units {
            let writer = self.writers.get_mut(key);
            writer.next = at;
            if at >= writer.end {
                self.close_full(key);
                self.lay_out(key)?;
            }
            let to = self.zone(number).place(at, unit);
            let sectors = if at + 1 == units { last } else { unit };
            let open = self.writers.get_mut(key).chunk_mut(to.chunk, 0);
            let place = open.give(sectors, &config);
            assert_eq!(place.sector, to.sector, "unit {at} of zone {number} went astray");
            open.programmed(&config, place.sector, ProgramOutcome::Written(None), &mut Vec::new());
            moves.push(Move { from: Some(old.place(at, unit)), to, sectors });
        }
        assert_eq!(moves.len(), usize_of(units), "every unit of zone {number} is copied");
        moves.extend(self.windows(key));
        Some(moves)
    }

    /// Padding that makes the end of each column readable.
    fn windows(&mut self, key: SlabKey) -> Vec<Move> {
        let (config, unit) = (self.append_config(), self.sizes.unit);
        let writer = self.writers.get_mut(key);
        let mut moves = Vec::new();
        for open in writer.columns.iter_mut().chain(&mut writer.ended) {
            let until = if open.is_holding() { open.pointer() + config.mw_cunits } else { 0 };
            while open.pointer() < until && open.takes_more(&config) {
                let sectors = unit - open.pointer() % unit;
                let at = open.give(sectors, &config);
                open.programmed(&config, at.sector, ProgramOutcome::Written(None), &mut Vec::new());
                moves.push(Move { from: None, to: Column { chunk: at.chunk, sector: at.sector }, sectors });
            }
        }
        moves
    }
}

/// A unit on its way to another place, or padding.
struct Move {
    from: Option<Column>,
    to: Column,
    sectors: u32,
}

/// Copies a zone. False if it has no room, or the media failed: then all is as it was.
fn copy_zone(device: &mut dyn BlockingDevice, target: &mut Zns, number: u32) -> Result<bool, MountError> {
    let old = target.zone(number).clone();
    let before: Vec<ChunkIndex> = old.chunks().collect();
    let key = target.writer_of(number);
    let unit = target.sizes.unit;
    let writer = target.writers.get_mut(key);
    assert!(writer.in_flight == 0, "zone {number} is copied under way");
    let extent = match old.finished_at() {
        Some(blocks) => (
            blocks.div_ceil(unit),
            (blocks - (blocks.max(1) - 1) / unit * unit).next_multiple_of(target.sizes.page),
        ),
        None => (writer.next, unit),
    };
    if old.finished_at().is_some() {
        writer.limit = extent.0;
    }
    let next = writer.next;
    let old_columns = std::mem::take(&mut writer.columns);
    (writer.next, writer.end) = (0, 0);
    target.zone_mut(number).segments = Segments::none();
    let moves = target.lay_out_anew(key, &old, extent);
    let is_copied = match &moves {
        Some(moves) => copy_units(device, target, moves)?,
        None => false,
    };
    let new: Vec<ChunkIndex> = target.zone(number).chunks().collect();
    target.close_full(key);
    let writer = target.writers.get_mut(key);
    (writer.next, writer.end) = (next, next);
    if is_copied {
        match old.finished_at() {
            None => target.zone_mut(number).cut(extent.0),
            // It is finished already, and what it holds lies elsewhere now.
            Some(_) => target.zone_mut(number).drop_columns_behind(extent.0),
        }
        let entries = journal::whole(number, target.zone(number));
        let end = target.log_change(&entries);
        target.await_log(end);
        target.stats.copied += u64::from(extent.0) * u64::from(unit);
        let columns = std::mem::replace(&mut target.writers.get_mut(key).columns, old_columns);
        target.close_chunks_of(key, &before, end);
        target.writers.get_mut(key).columns = columns;
    } else {
        target.zone_mut(number).segments.clone_from(&old.segments);
        target.close_chunks_of(key, &new, Lsn(0));
        target.writers.get_mut(key).columns = old_columns;
    }
    if old.finished_at().is_some() {
        target.close_chunks_of(key, &[], Lsn(0));
        target.remove_writer(key);
    }
    Ok(is_copied)
}

/// Reads units and writes them elsewhere, with what lies beside them. False if the media failed one.
fn copy_units(device: &mut dyn BlockingDevice, target: &Zns, moves: &[Move]) -> Result<bool, MountError> {
    let unit = target.sizes.unit;
    let spare: Vec<BufId> = (0..BATCH.min(moves.len())).map(|_| device.buffers().take(unit)).collect();
    let mut is_copied = true;
    assert!(moves.iter().all(|one| (1..=unit).contains(&one.sectors)), "a part of a unit is copied");
    for batch in moves.chunks(BATCH) {
        let command = |(index, place, sectors, buffer): (usize, Column, u32, BufId), op: Op| Command {
            tag: Tag(u32::try_from(index).expect("a batch is small")),
            op,
            addresses: Addresses::Run {
                first: Ppa::new(target.space.shape.chunk_id(place.chunk), place.sector),
                count: sectors,
            },
            buffer: Some(buffer),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (index, (one, &buffer)) in batch.iter().zip(&spare).enumerate() {
            match one.from {
                Some(from) => reads.push(command((index, from, one.sectors, buffer), Op::Read)),
                None => pad(buffer, 0, one.sectors, device.buffers()),
            }
            writes.push(command((index, one.to, one.sectors, buffer), Op::Write { fua: true }));
        }
        let ends = read_again::call(device, &reads, BATCH)?;
        look_at_reads(&ends)?;
        is_copied &= ends.iter().all(|end| end.status.has_data());
        if is_copied {
            let ends = send_again::call(device, &writes)?;
            look_at_drive("a write of a zone's copy", &ends)?;
            is_copied &= ends.iter().all(|end| end.status.is_success());
        }
        if !is_copied {
            break;
        }
    }
    spare.into_iter().for_each(|buffer| device.buffers().give_back(buffer));
    Ok(is_copied)
}

impl Zns {
    /// Chunks of a zone that are written to their end are closed.
    fn close_full(&mut self, key: SlabKey) {
        let config = self.append_config();
        let writer = self.writers.get_mut(key);
        for open in writer.columns.iter().chain(&writer.ended) {
            if open.is_over(&config) && self.space.usage(open.chunk()) == ChunkUse::Open {
                self.space.close(open.chunk());
            }
        }
        writer.columns.retain(|open| !open.is_over(&config));
        writer.ended.retain(|open| !open.is_over(&config));
    }
}
