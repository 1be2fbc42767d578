//! Reads: from the buffer, from nowhere, or from media: what lies there together goes into one vector command.
//!
//! Deliberately not here: what keeps sectors in the buffer that the media cannot give yet (`open_line`).

use super::canary::Canary;
use super::flight::Purpose;
use super::format::SectorMeta;
use super::state::LinuxPblk;
use crate::read_again::as_loss;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{LineId, Mapped, UnitIndex};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status, VECTOR_MAX};

/// A command of a read. The addresses of its sectors are in the user's buffer.
#[derive(Clone, Copy, Debug)]
pub struct ReadPurpose {
    request: SlabKey,
    /// First sector, counted from the request's start.
    index: u32,
    /// Sectors.
    count: u32,
}

impl LinuxPblk {
    /// Looks up what waits, as far as there is room for commands. True if anything was.
    pub(super) fn serve_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(key) = self.requests.next_read() {
            let pending = *self.requests.get(key);
            if pending.done == pending.request.count {
                self.requests.read_issued(key);
                any = true;
                continue;
            }
            if !self.flight.has_room(1) {
                break;
            }
            let buffer = pending.request.buffer.expect("a read without a buffer was refused");
            let left = pending.request.count - pending.done;
            let block = pending.request.block + u64::from(pending.done);
            let taken = match self.run_of(block, left.min(VECTOR_MAX), (buffer, pending.done), buffers) {
                0 => {
                    self.read_memory(block, (buffer, pending.done), buffers);
                    1
                }
                count => {
                    let purpose = ReadPurpose { request: key, index: pending.done, count };
                    let addresses = Addresses::List { offset: pending.done, count };
                    self.flight.send(Purpose::Read(purpose), Op::Read, addresses, Some(buffer), pending.done);
                    self.requests.begin_parts(key, 1);
                    self.reads_in_flight += 1;
                    count
                }
            };
            self.stats.user_read += u64::from(taken);
            self.requests.get_mut(key).done += taken;
            any = true;
        }
        any
    }

    /// Reads a block that is not on media.
    fn read_memory(&mut self, block: u64, (buffer, index): (BufId, u32), buffers: &mut Buffers) {
        match self.l2p.get(block) {
            Mapped::Buffer(slot) => {
                assert_eq!(
                    self.write_buffer.entry(slot).tag.block,
                    block,
                    "slot {} holds another block",
                    slot.0
                );
                buffers.copy_data(self.ring, slot.0, buffer, index, 1);
                self.stats.read_cached += 1;
            }
            Mapped::Nowhere => {
                buffers.data_mut(buffer, index, 1).fill(0);
                self.stats.read_empty += 1;
            }
            Mapped::Media(place) => unreachable!("block {block} is on media, at {}", place.0),
        }
    }

    /// Lists the addresses of up to `most` blocks that are on media; how many follow each other.
    fn run_of(&mut self, block: u64, most: u32, (buffer, index): (BufId, u32), buffers: &mut Buffers) -> u32 {
        assert!((1..=VECTOR_MAX).contains(&most), "{most} sectors in one command");
        let list = buffers.addresses_mut(buffer);
        for count in 0..most {
            let Mapped::Media(place) = self.l2p.get(block + u64::from(count)) else { return count };
            assert!(self.valid.is_valid(place), "the map names a place that is not valid");
            let (line, unit, sector) = self.shape.split(place);
            assert!(self.can_read(line, unit, sector), "place {} is behind MW_CUNITS", place.0);
            self.lines.begin_read(line);
            list[usize_of(index + count)] = Ppa::new(self.shape.chunk(line, unit), sector);
        }
        most
    }

    /// False while a sector is in the window of MW_CUNITS behind an open chunk's pointer.
    fn can_read(&self, line: LineId, unit: UnitIndex, sector: u32) -> bool {
        let open = self.open.as_ref().filter(|open| open.line() == line);
        open.is_none_or(|open| sector < open.readable(self.layout.position_of(unit)))
    }

    /// What the command of a read named: addresses, and where they were to be read to.
    pub(super) fn parts_of(&mut self, read: &ReadPurpose) -> (Addresses, BufId, u32) {
        let &ReadPurpose { request, index, count } = read;
        let buffer = self.requests.get(request).request.buffer.expect("a read has a buffer");
        (Addresses::List { offset: index, count }, buffer, index)
    }

    /// A command ended.
    pub(super) fn read_done(&mut self, purpose: ReadPurpose, completion: &Completion, buffers: &Buffers) {
        let ReadPurpose { request: key, index, count } = purpose;
        self.reads_in_flight -= 1;
        let request = self.requests.get_mut(key).request;
        let buffer = request.buffer.expect("a read has a buffer");
        assert!(index + count <= request.count, "a read passed its end");
        for offset in 0..count {
            let at = index + offset;
            let line = self.line_of(buffers.addresses(buffer)[usize_of(at)]);
            self.lines.end_read(line);
            if !completion.status_of(offset).has_data() {
                self.stats.read_failed += 1;
                if !self.options.has_canary(Canary::FailureForgotten) {
                    self.requests.fail_by(key, as_loss(completion.status), completion.violation);
                }
            } else if !self.is_block(request.block + u64::from(at), buffers.oob(buffer, at, 1)) {
                self.stats.read_corrupt += 1;
                self.requests.fail(key, Status::UNRECOVERED_READ);
            }
        }
        self.requests.part_done(key);
    }

    /// Whether what lies beside a sector names the block. Linux writes the same into its log and hands the data out.
    fn is_block(&self, block: u64, oob: &[u8]) -> bool {
        self.packed || SectorMeta::decode(oob).is_some_and(|meta| meta.lba == Some(block))
    }
}
