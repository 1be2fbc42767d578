//! Appends: chunks are reserved for them in the order in which they came, then their bytes go to memory, unit by unit.
//!
//! The order of reservations is what keeps a full drive going: an append waits only for chunks of what was deleted before it
//! came, and these deletions wait only for what came before them. Deliberately not here: what becomes of a unit (`program`).

use super::change::Number;
use super::medium::Medium;
use super::object::Object;
use super::state::LightLsm;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Kind, SectorTag, Sequence, TAG_BYTES};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::{TableAnswer, TableKind, TableOp};
use ocssd_lightnvm::{BufId, Buffers, Status};

/// Units of a column in memory beyond those in flight and those that cannot be read yet (chosen: one waits, one is filled).
const UNITS_AHEAD: u64 = 2;

impl LightLsm {
    /// Reserves chunks for appends, in order. True if any got its own.
    pub(super) fn reserve(&mut self) -> bool {
        let mut any = false;
        while let Some(&(number, key)) = self.unreserved.front() {
            let end = self.end_of(key);
            let object = self.shelf.get_mut(number);
            let has = u32::try_from(object.chunks.len()).expect("fewer chunks than 2^32") + object.reserved;
            let more = object.demand(end, &self.sizes).saturating_sub(has);
            if !self.space.reserve(more) {
                break;
            }
            object.reserved += more;
            assert!(object.entitled <= end, "appends of number {} are out of order", number.0);
            object.entitled = end;
            self.unreserved.pop_front();
            self.busy.insert(number);
            any = true;
        }
        any
    }

    /// The byte after an append.
    fn end_of(&self, key: SlabKey) -> u64 {
        let pending = self.requests.get(key);
        match (pending.request.op, pending.answer) {
            (TableOp::Append { content, .. }, TableAnswer::Appended { offset }) => {
                offset + u64::from(content.bytes())
            }
            other => unreachable!("{other:?} is no append"),
        }
    }

    /// Appends to a table that is given up are over.
    pub(super) fn drop_appends(&mut self, number: Number, buffers: &mut Buffers) {
        self.unreserved.retain(|&(of, _)| of != number);
        let object = self.shelf.get_mut(number);
        assert!(object.holds == 0 && object.kind == TableKind::Table, "number {} is read", number.0);
        let dropped: Vec<SlabKey> = object.appends.drain(..).collect();
        object.gathered = None;
        let mut units: Vec<u64> =
            object.columns.iter_mut().flat_map(|column| column.waiting.drain(..)).collect();
        if !object.taken.is_multiple_of(self.sizes.unit_bytes) {
            units.push(object.taken / self.sizes.unit_bytes);
        }
        for unit in units {
            let buffer = object.memory.remove(&unit).expect("what waits is in memory");
            buffers.give_back(buffer);
        }
        dropped.into_iter().for_each(|key| self.requests.end(key, Status::SUCCESS));
    }

    /// Takes bytes of an object's appends into memory, as far as there is room. True if any was.
    pub(super) fn take_in(&mut self, number: Number, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(&key) = self.shelf.get(number).appends.front() {
            let end = self.end_of(key);
            if self.shelf.get(number).entitled < end {
                break;
            }
            let TableOp::Append { content, durability, .. } = self.requests.get(key).request.op else {
                unreachable!("only appends wait to be taken in")
            };
            let object = self.shelf.get_mut(number);
            let gathered = object.gathered.take().unwrap_or_else(|| content.gathered(buffers));
            let begin = end - gathered.len() as u64;
            assert!(begin <= object.taken, "number {} has a gap before byte {begin}", number.0);
            while object.taken < end && Self::has_memory(object, &self.append, &self.sizes) {
                let done = usize::try_from(object.taken - begin).expect("within an append");
                fill(object, &gathered[done..], self.sizes.unit_bytes, buffers);
                if object.taken.is_multiple_of(self.sizes.unit_bytes) {
                    let unit = object.taken / self.sizes.unit_bytes - 1;
                    queue(object, unit, (self.sizes.unit, self.options.medium), buffers);
                }
                any = true;
            }
            if object.taken < end {
                object.gathered = Some(gathered);
                break;
            }
            object.appends.pop_front();
            if object.kind == TableKind::Table || durability == Durability::AtFlush {
                self.requests.end(key, Status::SUCCESS);
            }
            any = true;
        }
        any | self.finish(number, buffers)
    }

    /// Room for more bytes: in the unit being filled, or for another.
    fn has_memory(object: &Object, append: &ocssd_ftl::AppendConfig, sizes: &super::sizes::Sizes) -> bool {
        let window = u64::from(append.mw_cunits.div_ceil(sizes.unit)) + u64::from(append.depth) + UNITS_AHEAD;
        let most = object.columns.len() as u64 * window;
        !object.taken.is_multiple_of(sizes.unit_bytes) || (object.memory.len() as u64) < most
    }

    /// The last unit of a published table goes out as it is, once all is there.
    fn finish(&mut self, number: Number, buffers: &mut Buffers) -> bool {
        let (unit_bytes, sectors) = (self.sizes.unit_bytes, self.sizes.unit);
        assert!(self.refuses_changes().is_none(), "a table is finished after changes ended");
        let object = self.shelf.get_mut(number);
        let is_due = object.kind == TableKind::Table
            && object.is_published
            && !object.is_finished
            && object.taken == object.bytes;
        if !is_due {
            return false;
        }
        object.is_finished = true;
        let filled = usize::try_from(object.taken % unit_bytes).expect("a unit is small");
        if filled > 0 {
            let unit = object.taken / unit_bytes;
            let buffer = *object.memory.get(&unit).expect("it is being filled");
            buffers.whole_mut(buffer, 0, sectors)[filled..].fill(0);
            queue(object, unit, (sectors, self.options.medium), buffers);
        }
        true
    }
}

/// Copies the first of these bytes to the unit being filled, up to its end.
fn fill(object: &mut Object, bytes: &[u8], unit_bytes: u64, buffers: &mut Buffers) {
    let (unit, filled) = (object.taken / unit_bytes, object.taken % unit_bytes);
    let sector = u64::try_from(buffers.format().sector_bytes).expect("a sector is small");
    let sectors = u32::try_from(unit_bytes / sector).expect("a unit is small");
    let buffer = *object.memory.entry(unit).or_insert_with(|| buffers.take_whole(sectors));
    let from = usize::try_from(filled).expect("a unit is small");
    let count = bytes.len().min(usize::try_from(unit_bytes - filled).expect("a unit is small"));
    assert!(count > 0, "nothing is taken in");
    buffers.whole_mut(buffer, 0, sectors)[from..from + count].copy_from_slice(&bytes[..count]);
    object.taken += count as u64;
}

/// A unit is complete: it gets its tags, if it has any, and waits for a place.
fn queue(object: &mut Object, unit: u64, (sectors, medium): (u32, Medium), buffers: &mut Buffers) {
    let buffer: BufId = *object.memory.get(&unit).expect("its content is in memory");
    let number = object.number;
    let has_stamps = buffers.format().data_bytes < buffers.format().sector_bytes;
    let tagged = if medium.has_tags() { sectors } else { 0 };
    for sector in 0..tagged {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        if has_stamps {
            data.fill(0);
        }
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&tag_of(number, unit, sector, sectors).encode(data));
    }
    assert!(object.layout.find(unit).is_none(), "unit {unit} is written twice");
    let column = object.column_of(unit);
    assert!(usize_of(column) < object.columns.len(), "unit {unit} has no column");
    object.column(column).waiting.push_back(unit);
}

/// The tag of a sector of a unit.
pub(super) fn tag_of(number: Number, unit: u64, sector: u32, sectors: u32) -> SectorTag {
    let sequence = Sequence(unit * u64::from(sectors) + u64::from(sector));
    SectorTag { kind: Kind::Data, block: number.0, sequence }
}
