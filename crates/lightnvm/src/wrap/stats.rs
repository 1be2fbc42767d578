//! Counts commands, sectors and errors per parallel unit: what LightNVM's sysfs and a test both want to know.

use crate::address::{ChunkId, Ppa, PuId};
use crate::buffers::Buffers;
use crate::chunk::ChunkDescriptor;
use crate::command::{Addresses, Command, Completion, Op, Rejected};
use crate::device::Device;
use crate::geometry::Geometry;
use ocssd_base::{Divisor, Nanos};
use std::hint::black_box;

/// How often, and how many sectors (chunks, for resets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Commands that touched the unit.
    pub commands: u64,
    /// Sectors, or chunks for resets.
    pub sectors: u64,
}

/// What one parallel unit was asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCounts {
    /// Reads, the source side of copies included.
    pub read: OpCounts,
    /// Writes, the destination side of copies included.
    pub write: OpCounts,
    /// Resets.
    pub reset: OpCounts,
}

/// A device whose traffic is counted.
#[derive(Clone, Debug)]
pub struct Stats<D> {
    inner: D,
    by_unit: Divisor,
    units: Vec<UnitCounts>,
    failed: u64,
    flushes: u64,
}

impl<D: Device> Stats<D> {
    /// Counts the traffic of `inner`.
    #[must_use]
    pub fn new(inner: D) -> Self {
        let units = vec![UnitCounts::default(); PuId(inner.geometry().pu_count()).index()];
        let by_unit = Divisor::new(u64::from(inner.geometry().chunks_per_pu));
        Self { inner, by_unit, units, failed: 0, flushes: 0 }
    }

    #[inline(always)]
    fn count(&mut self, command: &Command, buffers: &Buffers) {
        match command.addresses {
            Addresses::Run { first, count } => self.add(command.op, first.chunk, u64::from(count), true),
            Addresses::List { offset, count } => self.count_list(black_box(*command), offset, count, buffers),
            Addresses::None => self.flushes += 1,
        }
    }

    /// Takes a copy that the compiler sees as one, or every command would be written to memory for those with a list.
    #[inline(never)]
    fn count_list(&mut self, command: Command, offset: u32, count: u32, buffers: &Buffers) {
        let Some(id) = command.buffer else { return };
        let count = usize::try_from(count).expect("32 bits fit an index");
        let from = usize::try_from(offset).expect("32 bits fit an index");
        let list = &buffers.addresses(id)[from..];
        let (list, rest) = list.split_at(count.min(list.len()));
        if command.op == Op::Copy {
            self.add_list(Op::Read, list);
            self.add_list(Op::Write { fua: false }, &rest[..count.min(rest.len())]);
        } else {
            self.add_list(command.op, list);
        }
    }

    /// Counts what a list names, neighbours of one chunk together. A command counts once per unit, however often its list
    /// comes back to it.
    fn add_list(&mut self, op: Op, list: &[Ppa]) {
        let by_unit = self.by_unit;
        let unit_of = |chunk: ChunkId| by_unit.div_rem_u32(chunk.0).0;
        let mut earlier = 0;
        for part in list.chunk_by(|one, next| one.chunk == next.chunk) {
            let chunk = part[0].chunk;
            let is_other = |ppa: &Ppa| ppa.chunk != chunk && unit_of(ppa.chunk) != unit_of(chunk);
            let first = list[..earlier].iter().rev().all(is_other);
            earlier += part.len();
            self.add(op, chunk, u64::try_from(part.len()).expect("a length fits 64 bits"), first);
        }
    }

    #[inline(always)]
    fn add(&mut self, op: Op, chunk: ChunkId, sectors: u64, first: bool) {
        let unit = PuId(self.by_unit.div_rem_u32(chunk.0).0).index();
        // An address outside the geometry belongs to no unit.
        let Some(counts) = self.units.get_mut(unit) else { return };
        // Reads first: they are asked for one question, not for their place among all kinds.
        let counts = match op {
            _ if op == Op::Read => &mut counts.read,
            Op::Read => unreachable!("reads came first"),
            Op::Write { .. } => &mut counts.write,
            Op::Reset => &mut counts.reset,
            Op::Copy | Op::Flush => return,
        };
        counts.commands += u64::from(first);
        counts.sectors += sectors;
    }
}

impl<D> Stats<D> {
    /// The counts, by [`PuId`].
    #[must_use]
    pub fn units(&self) -> &[UnitCounts] {
        &self.units
    }

    /// Commands that ended with another status than success.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.failed
    }

    /// Flushes.
    #[must_use]
    pub const fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Everything from now on is counted from zero.
    pub fn clear(&mut self) {
        self.units.fill(UnitCounts::default());
        (self.failed, self.flushes) = (0, 0);
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The device inside, to change.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }
}

impl<D: Device> Device for Stats<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    #[inline(always)]
    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        self.inner.submit(now, command, buffers)?;
        self.count(&command, buffers);
        Ok(())
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    #[inline(always)]
    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        self.inner.work_ahead(limit)
    }

    #[inline(always)]
    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        let completion = self.inner.poll_completion(now, buffers)?;
        self.failed += u64::from(!completion.status.is_success());
        Some(completion)
    }
}
