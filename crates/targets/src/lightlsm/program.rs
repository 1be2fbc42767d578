//! Units go to media: a place in their column for each, force unit access, and what becomes of it.
//!
//! A unit that the media failed goes to the next place of its column, in another chunk if the drive closed this one. Behind a
//! published table fill is written until its last units can be read (MW_CUNITS). Deliberately not here: which units there are.

use super::canary::Canary;
use super::change::Number;
use super::flight::Purpose;
use super::journal::run_at;
use super::state::LightLsm;
use crate::journal::outcome;
use ocssd_base::usize_of;
use ocssd_ftl::{Append, AppendEvent, ChunkIndex, OpenChunk};
use ocssd_lightnvm::interface::table::TableKind;
use ocssd_lightnvm::{BufId, Buffers, Completion};

impl LightLsm {
    /// Goes on with everything that has something to take in or to write. True if anything was done.
    pub(super) fn go_on(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = self.reserve();
        for number in std::mem::take(&mut self.busy) {
            if self.shelf.objects.get(&number).is_none_or(|object| object.is_gone) {
                continue;
            }
            any |= self.take_in(number, buffers);
            any |= self.program(number);
            self.shelf.rest(number, &self.sizes);
            let object = self.shelf.get(number);
            let waits = object.columns.iter().any(|column| !column.waiting.is_empty());
            if waits || !object.appends.is_empty() {
                self.busy.insert(number);
            }
        }
        any
    }

    fn program(&mut self, number: Number) -> bool {
        let mut any = false;
        let columns = u32::try_from(self.shelf.get(number).columns.len()).expect("few columns");
        // By rows: each column gets a unit before any gets a second.
        loop {
            let mut gave = false;
            for column in 0..columns {
                gave |= self.flight.has_room(1) && self.program_next(number, column);
            }
            if !gave {
                break;
            }
            any = true;
        }
        any
    }

    fn program_next(&mut self, number: Number, column: u32) -> bool {
        let depth = usize_of(self.append.depth);
        let object = self.shelf.get_mut(number);
        let is_padding = object.kind == TableKind::Table
            && object.is_published
            && !object.is_deleted
            && object.is_settled(&self.sizes);
        let at = object.column(column);
        if at.open.as_ref().is_some_and(|open| open.in_flight() >= depth) {
            return false;
        }
        let Some(&unit) = at.waiting.front() else {
            let needs =
                is_padding && at.open.as_ref().is_some_and(|open| open.is_holding() && open.in_flight() == 0);
            let padding = if needs { self.paddings.pop() } else { None };
            return padding.is_some_and(|padding| self.send_unit(number, column, Err(padding)));
        };
        if at.open.is_none() && !self.open_chunk(number, column) {
            return false;
        }
        self.shelf.get_mut(number).column(column).waiting.pop_front();
        self.send_unit(number, column, Ok(unit))
    }

    /// Opens the next chunk of a column; false if there is none now.
    fn open_chunk(&mut self, number: Number, column: u32) -> bool {
        let object = self.shelf.get_mut(number);
        if object.reserved == 0 {
            // A write failed, and took the place of another.
            if !self.space.reserve(1) {
                return false;
            }
            object.reserved += 1;
        }
        assert!(
            object.column(column).open.is_none(),
            "column {column} of number {} has two chunks",
            number.0
        );
        let unit = object.column(column).unit;
        let Some(chunk) = self.space.open_content(unit) else { return false };
        object.reserved -= 1;
        object.chunks.push(chunk);
        object.column(column).open = Some(OpenChunk::new(chunk, 0));
        true
    }

    /// Writes a unit, or padding in a buffer, to the next place of a column whose chunk is open.
    fn send_unit(&mut self, number: Number, column: u32, what: Result<u64, BufId>) -> bool {
        let sectors = self.sizes.unit;
        let object = self.shelf.get_mut(number);
        let (buffer, unit) = match what {
            Ok(unit) => (object.memory[&unit], Some(unit)),
            Err(padding) => (padding, None),
        };
        let config = self.append;
        let at = object.column(column);
        let open = at.open.as_mut().expect("a chunk is open");
        let place = open.give(sectors, &config);
        assert!(place.sector.is_multiple_of(sectors), "a unit begins at sector {}", place.sector);
        if !open.takes_more(&config) {
            at.ending.extend(at.open.take());
        }
        assert!(!object.is_gone, "number {} is written and gone", number.0);
        object.in_flight += 1;
        let is_again = unit.is_some_and(|unit| object.again.remove(&unit));
        let cause = match unit {
            Some(unit) if object.layout.find(unit).is_some() => &mut self.stats.copied,
            Some(_) if is_again => &mut self.stats.rewritten,
            Some(_) => &mut self.stats.content_written,
            None => &mut self.stats.padded,
        };
        *cause += u64::from(sectors);
        let stream = object.stream;
        self.meetings.write(self.space.shape.split_chunk(place.chunk).1, number, stream);
        let addresses = run_at(&self.space.shape, place, sectors);
        let purpose = Purpose::Unit { number, column, what, at: place };
        let op = self.options.medium.content_write();
        self.flight.send(purpose, op, addresses, Some(buffer), 0);
        true
    }

    /// A write of a unit, or of padding, ended.
    pub(super) fn unit_done(
        &mut self,
        (number, column, what): (Number, u32, Result<u64, BufId>),
        at: Append,
        completion: &Completion,
        buffers: &mut Buffers,
    ) {
        let (status, config, unit) = (completion.status, self.append, what.ok());
        let copies = self.has_canary(Canary::CopiedWhenReadable);
        self.paddings.extend(what.err());
        self.meetings.written(self.space.shape.split_chunk(at.chunk).1, number);
        let object = self.shelf.get_mut(number);
        assert!(object.in_flight > 0, "a write of number {} ended that was not sent", number.0);
        object.in_flight -= 1;
        if !status.is_success() {
            self.stats.failed += u64::from(self.sizes.unit);
        }
        if let Some(unit) = unit {
            assert!(
                object.memory.contains_key(&unit),
                "unit {unit} of number {} was programmed and is lost",
                number.0
            );
            if status.is_success() {
                object.layout.insert(unit, at.chunk, at.sector);
            } else {
                object.again.insert(unit);
                object.column(column).waiting.push_front(unit);
            }
        }
        let mut events = Vec::new();
        let over = programmed(object.column(column), at, outcome(status, unit), &config, &mut events);
        for event in events {
            if let AppendEvent::Readable(Some(unit)) = event {
                if copies {
                    object.column(column).waiting.push_back(unit);
                    continue;
                }
                let buffer = object.memory.remove(&unit).expect("it was held until it can be read");
                buffers.give_back(buffer);
            }
        }
        if let Some(chunk) = over {
            self.space.pool.close(chunk);
        }
        if status.is_drive_failure() {
            self.stop(status);
        }
        self.wake(number);
    }
}

/// A write to a chunk of a column is over. Gives the chunk if it takes no more and nothing to it is in flight.
fn programmed(
    column: &mut super::object::Column,
    at: Append,
    outcome: ocssd_ftl::ProgramOutcome<Option<u64>>,
    config: &ocssd_ftl::AppendConfig,
    events: &mut Vec<AppendEvent<Option<u64>>>,
) -> Option<ChunkIndex> {
    if let Some(open) = column.open.as_mut().filter(|open| open.chunk() == at.chunk) {
        open.programmed(config, at.sector, outcome, events);
        if !open.takes_more(config) {
            column.ending.extend(column.open.take());
        }
    } else {
        let open = column.ending.iter_mut().find(|open| open.chunk() == at.chunk);
        open.expect("a write was programmed in a chunk that is not open")
            .programmed(config, at.sector, outcome, events);
    }
    let over = column.ending.iter().position(|open| open.is_over(config) && !open.is_holding())?;
    Some(column.ending.swap_remove(over).chunk())
}
