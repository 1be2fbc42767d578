//! Tails: parts of write units that must be durable before the unit is whole, one after the other in chunks of their own.
//!
//! A page has parts of as many zones as fit (`partial=log`), or of one (`partial=pad`). A sector is tagged as it will be in its own
//! place; which of them count a mount finds by their numbers: younger than the last reset of their zone, and right behind
//! what is on media in its place. Chunks of tails are logged when they are taken and given up. A zone that pins an old chunk has
//! its part written anew when there are too many. Of a random write area any runs of blocks go here, as often as they are
//! written, and each block counts for itself. Deliberately not here: who waits (`stop`, `write`).

use super::canary::Canary;
use super::flight::Purpose;
use super::journal;
use super::options::Partial;
use super::program::pad;
use super::sizes::TAIL_DEPTH;
use super::space::Role;
use super::state::Zns;
use super::writer::Writer;
use crate::journal::outcome;
use ocssd_base::{Slab, SlabKey};
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, AppendEvent, AppendPoint, ChunkIndex};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a unit in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailPart {
    /// Who writes the zone.
    pub writer: SlabKey,
    /// The blocks of the zone.
    pub from: u32,
    pub to: u32,
}

#[derive(Clone, Debug)]
struct TailPage {
    buffer: BufId,
    at: Append,
    parts: Vec<TailPart>,
}

/// Tails of all zones.
#[derive(Clone, Debug)]
pub(super) struct Tails {
    point: AppendPoint<()>,
    sectors: u32,
    spare: Vec<BufId>,
    flying: Slab<TailPage>,
    /// Parts in each chunk that are needed.
    live: BTreeMap<ChunkIndex, u32>,
    /// Chunks that take no more.
    closed: BTreeSet<ChunkIndex>,
    /// Once the log is durable up to here, a mount finds the chunks.
    bound: Lsn,
}

impl Tails {
    /// Pages of `sectors`, whose buffers are taken now; `live` are the parts found in chunks, all of which the point has or are
    /// in `closed`.
    pub fn new(
        point: AppendPoint<()>,
        sectors: u32,
        (live, closed): (BTreeMap<ChunkIndex, u32>, BTreeSet<ChunkIndex>),
        buffers: &mut Buffers,
    ) -> Self {
        assert!(closed.iter().all(|chunk| live.contains_key(chunk)), "a chunk of tails is not counted");
        Self {
            point,
            sectors,
            spare: (0..TAIL_DEPTH).map(|_| buffers.take(sectors)).collect(),
            flying: Slab::new(TAIL_DEPTH),
            live,
            closed,
            bound: Lsn(0),
        }
    }

    /// A part is not needed any more.
    pub fn drop_part(&mut self, chunk: ChunkIndex) {
        let live = self.live.get_mut(&chunk).expect("a chunk of tails");
        assert!(*live > 0, "more parts of chunk {} are dropped than it has", chunk.0);
        *live -= 1;
    }

    /// True if a chunk has parts that are needed.
    pub fn holds(&self, chunk: ChunkIndex) -> bool {
        self.live.get(&chunk).is_some_and(|&live| live > 0)
    }

    /// The chunks of tails.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkIndex> {
        self.live.keys().copied()
    }

    /// Writes in flight.
    pub const fn in_flight(&self) -> usize {
        self.point.in_flight()
    }
}

impl Zns {
    /// Writes parts of units that somebody waits for. True if any was.
    pub(super) fn write_tails(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = self.give_up_tail_chunks();
        if self.has_canary(Canary::FlushForgetsTail) {
            return any;
        }
        let mut wanted = self.wanted_tails();
        while !wanted.is_empty() && self.write_tail_page(&mut wanted, buffers) {
            any = true;
        }
        any
    }

    /// The parts to be written, of zones whose life the log knows.
    fn wanted_tails(&mut self) -> Vec<TailPart> {
        let unit = self.sizes.unit;
        let mut wanted = Vec::new();
        for nth in 0..self.turns.len() {
            let key = self.turns[nth];
            let writer = self.writers.get(key);
            let runs = writer.wanted_tails(unit);
            if runs.is_empty() {
                continue;
            }
            if writer.tail_wait > self.journal.log.durable() {
                self.await_log(self.writers.get(key).tail_wait);
                continue;
            }
            assert!(runs.iter().all(|(from, to)| from < to), "a part of zone {} is empty", writer.zone);
            wanted.extend(runs.into_iter().map(|(from, to)| TailPart { writer: key, from, to }));
        }
        wanted
    }

    /// Writes a page with as much of what is wanted as fits. False if it has no place.
    fn write_tail_page(&mut self, wanted: &mut Vec<TailPart>, buffers: &mut Buffers) -> bool {
        if !self.flight.has_room(1) || self.tails.spare.is_empty() || !self.has_log_room(1) {
            return false;
        }
        let sectors = self.tails.sectors;
        let (Self { tails, space, .. }, mut opened) = (&mut *self, None);
        let next = tails.point.next(sectors, |units| {
            opened = space.open(units, Role::Tail);
            opened
        });
        if let Some(chunk) = opened {
            tails.live.insert(chunk, 0);
            let end = self.log_change(&[journal::tail(chunk, true)]);
            self.tails.bound = end;
        }
        let Some(at) = next else { return false };
        let buffer = self.tails.spare.pop().expect("it was looked at");
        let (mut parts, mut used) = (Vec::new(), 0);
        while let Some(&part) = wanted.first() {
            let count = (part.to - part.from).min(sectors - used);
            self.add_part(part, count, (buffer, used), buffers);
            parts.push(TailPart { to: part.from + count, ..part });
            used += count;
            if part.from + count == part.to {
                wanted.remove(0);
            } else {
                wanted[0].from += count;
            }
            let is_other = wanted.first().is_none_or(|next| next.writer != part.writer);
            if used == sectors || is_other && self.options.partial == Partial::Pad {
                break;
            }
        }
        assert!(used > 0, "a page of tails without a block");
        pad(buffer, used, sectors, buffers);
        self.stats.programmed += u64::from(sectors);
        self.stats.tail_written += u64::from(used);
        self.stats.tail_padded += u64::from(sectors - used);
        *self.tails.live.get_mut(&at.chunk).expect("a chunk of tails") +=
            parts.iter().map(|part| self.writers.get(part.writer).counted(part.from, part.to)).sum::<u32>();
        let page = self.tails.flying.insert(TailPage { buffer, at, parts });
        let page = page.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
        let addresses = self.run_at(at, sectors);
        self.flight.send(Purpose::Tail { page }, Op::Write { fua: true }, addresses, Some(buffer), 0);
        true
    }

    /// Copies blocks of a zone's buffer unit to a page.
    fn add_part(&mut self, part: TailPart, count: u32, (page, at): (BufId, u32), buffers: &mut Buffers) {
        let writer = self.writers.get_mut(part.writer);
        let buffer_unit = writer.held.get(part.from / self.sizes.unit);
        let buffer_unit = buffer_unit.expect("a tail is written from its buffer unit");
        let tail = &mut writer.tail;
        assert!(count > 0 && part.from + count <= part.to, "{count} blocks of {part:?} are taken");
        assert_eq!(
            self.buffer_units.unit(buffer_unit),
            part.from / self.sizes.unit,
            "{part:?} is of another unit"
        );
        tail.pages += 1;
        match &mut writer.area {
            Some(area) => area.sent(part.from, part.from + count),
            None => tail.sent = part.from + count,
        }
        writer.bound = writer.bound.max(self.tails.bound);
        let within = part.from % self.sizes.unit;
        buffers.copy_sectors(self.buffer_units.buffer(buffer_unit), within, page, at, count);
    }

    /// A page of tails is over.
    pub(super) fn tail_page_done(&mut self, page: SlabKey, completion: &Completion) {
        let TailPage { buffer, at, parts } = self.tails.flying.remove(page);
        let status = completion.status;
        if status.is_drive_failure() {
            self.stop(status);
        }
        self.tails.spare.push(buffer);
        assert!(!parts.is_empty(), "a page of tails was programmed with nothing in it");
        let chunk = status.is_success().then_some(at.chunk);
        for part in &parts {
            if chunk.is_none() {
                let counted = self.writers.get(part.writer).counted(part.from, part.to);
                (0..counted).for_each(|_| self.tails.drop_part(at.chunk));
            }
            self.tail_programmed(part, chunk);
        }
        let mut events = Vec::new();
        self.tails.point.programmed(at, outcome(status, ()), &mut events);
        for event in events {
            if let AppendEvent::Closed(chunk) = event {
                self.space.close(chunk);
                self.tails.closed.insert(chunk);
            }
        }
    }

    /// Chunks of tails that nothing needs die; if there are too many, what is in old ones is written anew. True if a chunk died.
    fn give_up_tail_chunks(&mut self) -> bool {
        let empty: Vec<ChunkIndex> =
            self.tails.closed.iter().copied().filter(|&chunk| !self.tails.holds(chunk)).collect();
        let mut any = false;
        for chunk in empty {
            if !self.has_log_room(1) {
                break;
            }
            let end = self.log_change(&[journal::tail(chunk, false)]);
            assert!(self.tails.closed.remove(&chunk), "chunk {} of tails is still written", chunk.0);
            self.tails.live.remove(&chunk);
            self.space.die(chunk, end);
            any = true;
        }
        self.write_old_tails_anew();
        any
    }

    /// If chunks of tails are too many, what is in the one with the fewest parts is written anew; those that died are to be reset.
    fn write_old_tails_anew(&mut self) {
        let quota = self.space.quota(Role::Tail);
        if self.space.taken(Role::Tail) < quota {
            return;
        }
        let in_use = u32::try_from(self.tails.live.len()).expect("fewer chunks than 2^32");
        if in_use < quota {
            // Those that died are reset once the log has that, which nobody else may wait for.
            return self.await_log(self.journal.log.end());
        }
        if self.tails.closed.is_empty() {
            return;
        }
        let unit = self.sizes.unit;
        let stays = |writer: &Writer| !writer.may_write_tail_anew(unit);
        let held = self.writers.iter().filter(|(_, writer)| stays(writer));
        let stuck: BTreeSet<ChunkIndex> = held.flat_map(|(_, writer)| writer.chunks_of_tails()).collect();
        let can_go = |chunk: &ChunkIndex| !stuck.contains(chunk);
        let least = self.tails.closed.iter().copied().filter(can_go);
        let least = least.min_by_key(|chunk| (self.tails.live.get(chunk), *chunk));
        for nth in 0..self.turns.len() {
            let writer = self.writers.get_mut(self.turns[nth]);
            if let Some((area, chunk)) = writer.area.as_mut().zip(least) {
                area.write_anew(chunk, writer.admitted);
            } else if writer.tail.chunks.iter().any(|&chunk| Some(chunk) == least) {
                writer.write_tail_anew(unit);
            }
        }
    }

    /// Asserts that parts are counted.
    pub(super) fn check_tails(&self) {
        let mut live: BTreeMap<ChunkIndex, u32> = self.tails.live.keys().map(|&chunk| (chunk, 0)).collect();
        let held = self
            .writers
            .iter()
            .flat_map(|(_, writer)| writer.chunks_of_tails().chain(writer.tail.old.iter().copied()));
        let counted = |part: &TailPart| self.writers.get(part.writer).counted(part.from, part.to);
        let flying = self.tails.flying.iter().flat_map(|(_, page)| {
            let blocks = page.parts.iter().map(counted).sum::<u32>();
            (0..blocks).map(|_| page.at.chunk)
        });
        for chunk in held.chain(flying) {
            *live.get_mut(&chunk).expect("a chunk of tails") += 1;
        }
        assert_eq!(live, self.tails.live, "parts in tails are counted wrong");
        self.tails.point.check();
    }
}
