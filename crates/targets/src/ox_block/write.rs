//! Changes: their blocks go to the write buffer, part by part; each part of up to 1 MiB is a transaction.
//!
//! Discards and zeroes have no data: they are committed at once. Deliberately not here: where data go (`program`), when a
//! transaction is true (`commit`).

use super::requests::OfRequest;
use super::sizes::TRANSACTION_BLOCKS_MAX;
use super::store::{Owner, OxBlock, Slot, TransactionPart};
use crate::ox::commit::{Commit, Done};
use crate::ox::write_buffer::StreamIndex;
use crate::request_table::Pending;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::log::LogEntry;
use ocssd_ftl::{Kind, SEQUENCE_MAX, SectorTag, Sequence, TAG_BYTES};
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::block::BlockOp;

impl OxBlock {
    /// Takes changes into the buffer, in order, as far as there is room. True if anything was done.
    pub(super) fn admit(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = self.give_way();
        while let Some(key) = self.store.requests.next_change() {
            let &Pending { request, own: OfRequest { role, .. }, .. } = self.store.requests.get(key);
            if let Some((transaction, part)) = role {
                if !self.admit_of_transaction(key, transaction, part, buffers) {
                    break;
                }
                any = true;
                continue;
            }
            match request.op {
                BlockOp::Write { .. } => {
                    let (is_whole, did) = self.admit_write(key, buffers);
                    any |= did;
                    if !is_whole {
                        break;
                    }
                }
                _ => self.admit_discard(key),
            }
            self.store.requests.admitted(key);
            any = true;
        }
        any | self.close_partial()
    }

    fn admit_discard(&mut self, key: SlabKey) {
        let request = self.store.requests.get(key).request;
        assert!(matches!(request.op, BlockOp::Discard | BlockOp::WriteZeroes), "{request:?} has data");
        self.store.requests.get_mut(key).done = request.count;
        self.store.requests.begin_parts(key, 1);
        self.store.stats.user_discarded += u64::from(request.count);
        // A long one changes more pages of the map than memory has room for: it is several transactions then.
        let most = self.discard_blocks_max();
        for first in (0..request.count).step_by(usize_of(most)) {
            let count = most.min(request.count - first);
            let entries = vec![LogEntry::Discard { lba: request.block + u64::from(first), count }];
            let done = if first + count == request.count { Done::User(key) } else { Done::Piece };
            self.commits.push_back(Commit { entries, blocks: 0, done });
        }
    }

    /// Takes blocks of a write. Whether all of them are in, and whether any was taken.
    fn admit_write(&mut self, key: SlabKey, buffers: &mut Buffers) -> (bool, bool) {
        let (mut any, request) = (false, self.store.requests.get(key).request);
        let source = request.buffer.expect("a write without a buffer was refused");
        loop {
            let done = self.store.requests.get(key).done;
            assert!(done <= request.count, "more was written than asked for");
            if done == request.count {
                return (true, any);
            }
            let Some(part) = self.store.open_part.or_else(|| self.begin_part(key, buffers)) else {
                return (false, any);
            };
            let Some((buffer_unit, room)) = self.buffer.filling(StreamIndex::USER) else {
                return (false, any);
            };
            let in_part = TRANSACTION_BLOCKS_MAX - done % TRANSACTION_BLOCKS_MAX;
            let count = room.min(request.count - done).min(in_part);
            assert!(count > 0, "a buffer unit without room is being filled");
            for offset in done..done + count {
                let slot = Slot { lba: request.block + u64::from(offset), owner: Owner::User(part) };
                let (buffer, at) = self.buffer.push(buffer_unit, slot, 1);
                buffers.copy_data(source, offset, buffer, at, 1);
                self.tag(Kind::Data, slot.lba, (buffer, at), buffers);
            }
            self.buffer.close_if_full(StreamIndex::USER);
            self.store.requests.get_mut(key).done += count;
            self.store.stats.user_written += u64::from(count);
            if count == in_part || done + count == request.count {
                self.store.open_part = None;
            }
            any = true;
        }
    }

    /// Begins the next transaction of a write; `None` if there are too many.
    fn begin_part(&mut self, key: SlabKey, buffers: &Buffers) -> Option<SlabKey> {
        let &Pending { request, done, .. } = self.store.requests.get(key);
        let left = (request.count - done).min(TRANSACTION_BLOCKS_MAX);
        if self.gathered > 0 && self.gathered + u64::from(left) > self.gathered_max() {
            return None;
        }
        assert!(self.store.open_part.is_none() && left > 0, "a part is begun within another, or of nothing");
        let part = self
            .store
            .parts
            .insert(TransactionPart { request: key, left, blocks: left, entries: Vec::new() })
            .ok()?;
        self.gathered += u64::from(left);
        self.store.open_part = Some(part);
        self.store.requests.begin_parts(key, 1);
        self.ask_ahead(request.block + u64::from(done), left, buffers);
        Some(part)
    }

    /// Writes a sector's tag beside it.
    pub(super) fn tag(
        &mut self,
        kind: Kind,
        lba: u64,
        (buffer, at): (ocssd_lightnvm::BufId, u32),
        buffers: &mut Buffers,
    ) {
        self.sequence += 1;
        assert!(self.sequence <= SEQUENCE_MAX, "more blocks were written than a tag can count");
        let tag = SectorTag { kind, block: lba, sequence: Sequence(self.sequence) };
        assert!(lba < self.sizes.blocks, "block {lba} is beyond the instance");
        let (data, oob) = buffers.sectors_mut(buffer, at, 1);
        let bytes = tag.encode(data);
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&bytes);
    }

    /// A buffer unit that is filled in part goes out once nothing else of users is on its way: what is, brings more to fill it.
    fn close_partial(&mut self) -> bool {
        let is_idle = self.data_points[0].in_flight() == 0 && self.buffer.ready(StreamIndex::USER) == 0;
        // Blocks of open transactions wait for others: nobody waits for them.
        let is_awaited = !self.store.parts.is_empty() || self.has_ended_transaction();
        let is_due = is_idle && is_awaited && self.buffer.partial(StreamIndex::USER) > 0;
        if is_due {
            self.buffer.close(StreamIndex::USER);
        }
        is_due
    }
}
