//! Where a zone goes on: segments are planned, over chunks that are open and others that are bound to it now.
//!
//! A chunk is opened only if what remains of the zone does not fit those it has: so a zone whose columns are of different
//! lengths (a mount found them so, or writes failed) takes no more chunks than it must. Zones that are open lie apart, as far as
//! units have free chunks (`unit_load`). Deliberately not here: writes.

use super::columns::Column;
use super::journal;
use super::segments::Segment;
use super::space::Role;
use super::state::Zns;
use super::unit_load::UnitLoad;
use super::writer::Writer;
use super::zone::Zone;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::log::LogEntry;
use ocssd_ftl::{Append, ChunkUse, OpenChunk, UnitIndex};

impl Zns {
    /// Plans the segment that begins with the next unit of a zone. False if there is no chunk for it, or no room in the log.
    pub(super) fn plan_segment(&mut self, key: SlabKey) -> bool {
        let most = usize_of(self.sizes.width) + self.writers.get(key).columns.len();
        if !self.has_log_room(most + 1) {
            return false;
        }
        let Some(segment) = self.lay_out(key) else { return false };
        let goes_on = segment.columns().iter().any(|column| column.sector > 0);
        let entries = journal::columns(self.writers.get(key).zone, segment.as_run());
        let end = self.log_change(&entries);
        let writer = self.writers.get_mut(key);
        writer.bound = end;
        if goes_on {
            // A mount that did not know of it would take what follows for units of the segment before.
            writer.wait = end;
            self.await_log(end);
        }
        true
    }

    /// Lays out the segment that begins with the next unit of a zone; none if there is no chunk for it.
    pub(super) fn lay_out(&mut self, key: SlabKey) -> Option<Segment> {
        self.set_full_aside(key);
        self.bind_chunks(key);
        let Self { sizes, space, group_units, .. } = self;
        let writer = self.writers.get_mut(key);
        if writer.columns.is_empty() {
            return None;
        }
        // The next group comes first, so that neighbours in a stripe share no channel.
        writer.columns.sort_by_key(|open| {
            let pu = space.shape.pu(space.unit_of(open.chunk())).0;
            (pu % *group_units, pu, open.chunk())
        });
        let column = |open: &OpenChunk<_>| Column { chunk: open.chunk(), sector: open.pointer() };
        let columns: Vec<Column> = writer.columns.iter().map(column).collect();
        let segment = Segment::new(writer.next, &columns);
        writer.end = segment.as_run().end(sizes.unit, sizes.chunk).min(writer.limit);
        assert!(writer.end > writer.next, "a segment of zone {} has no unit", writer.zone);
        let entry = &mut self.zones[usize_of(writer.zone)];
        for (index, column) in (0..).zip(columns) {
            entry.add_column(segment.start, index, column).expect("segments are planned in order");
        }
        Some(segment)
    }

    /// Columns without room for a unit are none any more, nor is one that ends in a part of a unit: the end of a zone.
    fn set_full_aside(&mut self, key: SlabKey) {
        let (config, unit) = (self.append_config(), self.sizes.unit);
        let writer = self.writers.get_mut(key);
        let has_room = |open: &OpenChunk<_>| {
            let is_whole =
                open.pointer().is_multiple_of(unit) && open.pointer() + unit <= config.chunk_sectors;
            is_whole && open.takes_more(&config)
        };
        let (rest, full): (Vec<_>, Vec<_>) =
            std::mem::take(&mut writer.columns).into_iter().partition(has_room);
        writer.columns = rest;
        writer.ended.extend(full.into_iter().filter(|open| !open.is_over(&config) || open.is_holding()));
    }

    /// Opens chunks for a zone until it has as many columns as it may have, or no more are needed.
    fn bind_chunks(&mut self, key: SlabKey) {
        let (width, in_group) = self.width_of(self.writers.get(key).zone);
        assert!(width > 0 && width <= self.sizes.width, "a zone is striped over {width} units");
        let mut load = self.unit_load(key);
        let Self { sizes, space, .. } = self;
        let writer = self.writers.get_mut(key);
        let mut room: u32 =
            writer.columns.iter().map(|open| (sizes.chunk - open.pointer()) / sizes.unit).sum();
        assert!(writer.next < writer.limit, "zone {} is written beyond its end", writer.zone);
        let left = writer.limit - writer.next;
        let used: Vec<UnitIndex> = writer.columns.iter().map(|open| space.unit_of(open.chunk())).collect();
        let mut all: Vec<UnitIndex> = (0..space.shape.units()).map(UnitIndex).collect();
        all.retain(|unit| !used.contains(unit));
        let mut home = used.first().map(|&unit| load.group_of(unit));
        while writer.columns.len() < usize_of(width) && left > room {
            let is_near =
                |unit: &UnitIndex| !in_group || home.is_none_or(|home| load.group_of(*unit) == home);
            let near: Vec<UnitIndex> = all.iter().copied().filter(is_near).collect();
            let of = |unit| load.of(unit);
            let chunk = space.open_apart(&near, of).or_else(|| space.open_apart(&all, of));
            // Where each unit has a column already, a unit may have two.
            let any: Vec<UnitIndex> = (0..space.shape.units()).map(UnitIndex).collect();
            let is_alone = writer.columns.is_empty();
            let Some(chunk) = chunk.or_else(|| is_alone.then(|| space.open(&any, Role::Data)).flatten())
            else {
                break;
            };
            let unit = space.unit_of(chunk);
            assert!(all.contains(&unit) || is_alone, "chunk {} is on a unit that the stripe has", chunk.0);
            all.retain(|&other| other != unit);
            home = home.or(Some(load.group_of(unit)));
            load.add(unit);
            writer.columns.push(OpenChunk::new(chunk, 0));
            room += sizes.chunk_units();
        }
    }

    /// What each unit has of columns of zones that are open, and of this one.
    fn unit_load(&self, key: SlabKey) -> UnitLoad {
        let shape = &self.space.shape;
        let groups = (0..shape.units()).map(|unit| shape.pu(UnitIndex(unit)).0 / self.group_units).collect();
        let mut load = UnitLoad::new(groups);
        for (other, writer) in self.writers.iter() {
            if other == key || self.zone(writer.zone).state.is_open() {
                writer.columns.iter().for_each(|open| load.add(self.space.unit_of(open.chunk())));
            }
        }
        load
    }

    /// Units the media failed get another place, once nothing of the zone is in flight. True if they did.
    pub(super) fn mend(&mut self, key: SlabKey) -> bool {
        let writer = self.writers.get(key);
        if writer.failed.is_empty() || writer.in_flight > 0 {
            return false;
        }
        let (number, next) = (writer.zone, writer.next);
        if !self.has_room_for_zone(number) {
            return false;
        }
        // What is planned behind the units that were given out is planned anew.
        let entry = self.zone_mut(number);
        if entry.segments.last().is_some_and(|last| last.start < next) {
            entry.cut(next);
        }
        let mut any = false;
        while let Some((&at, &buffer_unit)) = self.writers.get(key).failed.first_key_value() {
            // Each unit that moves cuts a segment in three.
            if any && !self.has_room_for_zone(number) {
                break;
            }
            let Some(place) = self.place_alone(key, at) else { break };
            let writer = self.writers.get_mut(key);
            writer.failed.remove(&at);
            writer.moved.push_back((buffer_unit, place));
            writer.end = writer.next;
            any = true;
        }
        if any {
            let entries = journal::whole(number, self.zone(number));
            let end = self.log_change(&entries);
            let writer = self.writers.get_mut(key);
            (writer.wait, writer.bound) = (end, end);
            self.await_log(end);
        }
        any
    }

    /// True if the log has room for all of a zone, and one unit more that moves.
    pub(super) fn has_room_for_zone(&mut self, number: u32) -> bool {
        let columns: usize = self.zone(number).segments.iter().map(|segment| segment.columns.len() + 1).sum();
        self.has_log_room(columns + 2 * usize_of(self.sizes.width) + 8)
    }

    /// A place for one unit, wherever the zone has room.
    fn place_alone(&mut self, key: SlabKey, at: u32) -> Option<Append> {
        self.set_full_aside(key);
        if self.writers.get(key).columns.is_empty() {
            let any: Vec<UnitIndex> = (0..self.space.shape.units()).map(UnitIndex).collect();
            let chunk = self.space.open(&any, Role::Data)?;
            self.writers.get_mut(key).columns.push(OpenChunk::new(chunk, 0));
        }
        let (config, unit) = (self.append_config(), self.sizes.unit);
        let Writer { columns, in_flight, zone, .. } = self.writers.get_mut(key);
        let least = columns.iter_mut().min_by_key(|open| (open.in_flight(), open.pointer(), open.chunk()));
        let place = least.expect("there is one").give(unit, &config);
        *in_flight += 1;
        assert!(place.sector.is_multiple_of(unit), "a unit moves to {place:?}");
        let to = Column { chunk: place.chunk, sector: place.sector };
        self.zones[usize_of(*zone)].segments.move_unit(at, to, unit);
        Some(place)
    }

    /// Logs changes of the zone table, and says when they are durable. There is room.
    pub(super) fn log_change(&mut self, entries: &[LogEntry]) -> ocssd_ftl::log::Lsn {
        assert!(!entries.is_empty(), "a change of nothing is logged");
        self.journal.append(entries);
        self.stats.log_entries += u64::try_from(entries.len()).expect("an index");
        assert!(
            self.journal.log.end() > self.journal.log.durable(),
            "a change is durable before it is written"
        );
        self.journal.log.end()
    }

    /// True if so many entries fit the log; else a checkpoint makes room.
    pub(super) fn has_log_room(&mut self, entries: usize) -> bool {
        let has_room = self.journal.has_room(entries);
        self.log_is_full |= !has_room;
        has_room
    }

    /// Somebody waits for the log to be durable up to here.
    pub(super) fn await_log(&mut self, until: ocssd_ftl::log::Lsn) {
        if until > self.log_awaited {
            self.log_awaited = until;
            self.work_due = true;
        }
    }

    /// Chunks of a zone that nobody needs die, once the log says so. `before` are those it had.
    pub(super) fn let_go(
        &mut self,
        before: &[ocssd_ftl::ChunkIndex],
        zone: &Zone,
        until: ocssd_ftl::log::Lsn,
    ) {
        let kept: std::collections::BTreeSet<_> = zone.chunks().collect();
        let mut gone: Vec<_> = before.iter().copied().filter(|chunk| !kept.contains(chunk)).collect();
        gone.sort();
        gone.dedup();
        // What the drive lost is nobody's any more.
        gone.retain(|&chunk| self.space.usage(chunk) != ChunkUse::Bad);
        for chunk in gone {
            assert_eq!(self.space.usage(chunk), ChunkUse::Closed, "chunk {} is still written", chunk.0);
            self.space.die(chunk, until);
        }
        self.work_due = true;
    }
}
