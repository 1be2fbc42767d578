//! A file or a block device as a block target, so that the job engine of `workload` runs on it as on a virtual drive.
//!
//! Requests become transfers of a [`Backend`]. There is no device below and no command: where other targets wait for
//! completions that a host brings, this one waits in the system, so [`run`](super::run) is its loop and not `engine::Host`.
//!
//! With real bytes the payload of a request is copied; with stamps, the stamp of each block is written where the block
//! begins, and read back from there, so that terabytes pass through buffers of 16 bytes a block and content is still
//! checked. What stands behind a stamp is noise.

use super::backend::{Backend, Ended, Transfer, TransferKind, index};
use super::stamp;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{
    Admission, BufId, Buffers, Completion, Out, Payload, PayloadFormat, Status, Tag, Target,
};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// What lies at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShape {
    /// Bytes of a block; what direct I/O takes, or a multiple.
    pub block_bytes: u32,
    /// Blocks of the part that is used.
    pub blocks: u64,
    /// Whether every block was written by a [`FileTarget`], so that reads can be checked.
    pub is_stamped: bool,
}

/// What was asked of the system, and what came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads that were compared with where they came from.
    pub checked: u64,
    /// Those that held something else.
    pub foreign: u64,
    /// Reads and writes.
    pub transfers: u64,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    request: BlockRequest,
    transfer: Transfer,
}

/// The target.
pub struct FileTarget {
    backend: Box<dyn Backend>,
    shape: FileShape,
    free: Vec<u32>,
    under_way: Vec<Option<Pending>>,
    /// Taken without a buffer at hand.
    replies: VecDeque<BlockReply>,
    counts: FileCounts,
    first_error: Option<io::Error>,
}

/// Payload that this target works with: stamps of blocks of any size, without metadata.
#[must_use]
pub const fn stamp_format() -> PayloadFormat {
    PayloadFormat { payload: Payload::Stamp, data_bytes: stamp::BYTES, sector_bytes: 4096, oob_bytes: 0 }
}

impl FileTarget {
    /// A target on `backend`, whose `slots` slots are filled with noise from `seed`.
    ///
    /// # Panics
    /// If there are no slots or no blocks.
    #[must_use]
    pub fn new(mut backend: Box<dyn Backend>, slots: u32, shape: FileShape, seed: u64) -> Self {
        assert!(slots > 0 && shape.blocks > 0 && shape.block_bytes > 0, "an empty target: {shape:?}");
        let mut prng = Prng::new(seed).split("noise");
        (0..slots).for_each(|slot| stamp::fill_noise(backend.memory(slot), &mut prng));
        Self {
            backend,
            shape,
            free: (0..slots).rev().collect(),
            under_way: vec![None; index(slots)],
            replies: VecDeque::with_capacity(index(slots)),
            counts: FileCounts::default(),
            first_error: None,
        }
    }

    /// The way I/O is done, by fio's name.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.backend.engine()
    }

    /// What was done so far.
    #[must_use]
    pub const fn counts(&self) -> FileCounts {
        self.counts
    }

    /// Why the first failed transfer failed.
    #[must_use]
    pub const fn first_error(&self) -> Option<&io::Error> {
        self.first_error.as_ref()
    }

    /// True if nothing more can be taken before something ends.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// True if something was asked of the system and has not ended.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.free.len() < self.under_way.len()
    }

    /// Starts a request.
    ///
    /// # Panics
    /// If the target is full, or the request lies outside.
    pub fn start(&mut self, request: BlockRequest, buffers: &Buffers) {
        let end = request.block + u64::from(request.count);
        assert!(end <= self.shape.blocks, "block {end} of {}", self.shape.blocks);
        let Some(kind) = kind_of(request.op) else {
            let reply = BlockReply { tag: request.tag, status: Status::INVALID_OPCODE, violation: None };
            self.replies.push_back(reply);
            return;
        };
        let slot = self.free.pop().expect("the caller asked whether it is full");
        let unit = u64::from(self.shape.block_bytes);
        let bytes = request.count.checked_mul(self.shape.block_bytes).expect("a request below 4 GiB");
        let transfer = Transfer { slot, kind, offset: request.block * unit, bytes };
        if let (TransferKind::Write { .. }, Some(buffer)) = (kind, request.buffer) {
            self.put(transfer, buffer, buffers);
        }
        self.under_way[index(slot)] = Some(Pending { request, transfer });
        self.counts.transfers += 1;
        self.backend.push(transfer);
    }

    /// Puts what a request writes into its slot's memory.
    fn put(&mut self, transfer: Transfer, buffer: BufId, buffers: &Buffers) {
        let unit = index(self.shape.block_bytes);
        let memory = &mut self.backend.memory(transfer.slot)[..index(transfer.bytes)];
        if buffers.format().payload == Payload::Bytes {
            memory.copy_from_slice(buffers.bytes(buffer, 0, memory.len()));
            return;
        }
        let stamps = buffers.bytes(buffer, 0, memory.len() / unit * stamp::BYTES).chunks_exact(stamp::BYTES);
        for ((place, own), block) in memory.chunks_exact_mut(unit).zip(stamps).zip(0_u64..) {
            let mut sequence = [0; 8];
            sequence.copy_from_slice(&own[8..]);
            let offset = transfer.offset + block * u64::from(self.shape.block_bytes);
            place[..stamp::BYTES].copy_from_slice(&stamp::stamp(offset, u64::from_le_bytes(sequence)));
        }
    }

    /// Takes what was read out of its slot's memory.
    fn get(&mut self, transfer: Transfer, buffer: BufId, buffers: &mut Buffers) {
        let block_bytes = u64::from(self.shape.block_bytes);
        let memory = &self.backend.memory(transfer.slot)[..index(transfer.bytes)];
        if buffers.format().payload == Payload::Bytes {
            buffers.bytes_mut(buffer, 0, memory.len()).copy_from_slice(memory);
            return;
        }
        if self.shape.is_stamped
            && let Some(own) = stamp::is_own(memory, transfer.offset)
        {
            self.counts.checked += 1;
            self.counts.foreign += u64::from(!own);
        }
        let unit = index(self.shape.block_bytes);
        let data = buffers.bytes_mut(buffer, 0, memory.len() / unit * stamp::BYTES);
        for (place, own) in memory.chunks_exact(unit).zip(data.chunks_exact_mut(stamp::BYTES)) {
            let (offset, sequence) = stamp::read(place);
            let is_start = offset.is_multiple_of(block_bytes);
            let block = if is_start { offset / block_bytes } else { u64::MAX };
            own[..8].copy_from_slice(&block.to_le_bytes());
            own[8..].copy_from_slice(&sequence.to_le_bytes());
        }
    }

    /// Starts what was pushed, and waits until something is over or `limit` has passed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        self.backend.wait(limit)
    }

    /// The reply to the next request that is over.
    pub fn take_reply(&mut self, buffers: &mut Buffers) -> Option<BlockReply> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        let Ended { slot, result } = self.backend.poll()?;
        let Pending { request, transfer } =
            self.under_way[index(slot)].take().expect("what ended was under way");
        self.free.push(slot);
        let status = match result {
            Ok(moved) if moved == transfer.bytes => {
                self.count(transfer, request, buffers);
                Status::SUCCESS
            }
            Ok(moved) => {
                let message = format!("{moved} of {} bytes at {}", transfer.bytes, transfer.offset);
                // What is written in part met a limit; what is read in part, an end.
                let kind = match transfer.kind {
                    TransferKind::Write { .. } => io::ErrorKind::WriteZero,
                    TransferKind::Read | TransferKind::Flush => io::ErrorKind::UnexpectedEof,
                };
                self.failed(transfer, io::Error::new(kind, message))
            }
            Err(error) => self.failed(transfer, error),
        };
        Some(BlockReply { tag: request.tag, status, violation: None })
    }

    fn count(&mut self, transfer: Transfer, request: BlockRequest, buffers: &mut Buffers) {
        match transfer.kind {
            TransferKind::Read => {
                self.counts.read_bytes += u64::from(transfer.bytes);
                if let Some(buffer) = request.buffer {
                    self.get(transfer, buffer, buffers);
                }
            }
            TransferKind::Write { .. } => self.counts.written_bytes += u64::from(transfer.bytes),
            TransferKind::Flush => {}
        }
    }

    fn failed(&mut self, transfer: Transfer, error: io::Error) -> Status {
        self.first_error.get_or_insert(error);
        if transfer.kind == TransferKind::Read { Status::UNRECOVERED_READ } else { Status::WRITE_FAULT }
    }
}

/// What a request does to a file; `None` of what files cannot do.
const fn kind_of(op: BlockOp) -> Option<TransferKind> {
    match op {
        BlockOp::Read => Some(TransferKind::Read),
        BlockOp::Write { fua } => Some(TransferKind::Write { durable: fua }),
        BlockOp::Flush | BlockOp::Shutdown => Some(TransferKind::Flush),
        BlockOp::Discard | BlockOp::WriteZeroes | BlockOp::ResetZone => None,
    }
}

impl Target for FileTarget {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        if self.is_full() {
            return Admission::Full;
        }
        self.start(*request, &out.buffers);
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _out: &mut Out<BlockReply>) {
        let Tag(tag) = completion.tag;
        unreachable!("a target without commands got completion {tag}");
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    /// Fetches what is over; there are no commands.
    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        for _ in 0..self.under_way.len() {
            let Some(reply) = self.take_reply(&mut out.buffers) else { break };
            out.reply(reply);
        }
    }

    fn check(&self) {
        let busy = self.under_way.iter().filter(|pending| pending.is_some()).count();
        assert_eq!(busy + self.free.len(), self.under_way.len(), "slots were lost");
    }
}

impl BlockTarget for FileTarget {
    fn block_bytes(&self) -> u32 {
        self.shape.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.shape.blocks
    }

    fn zones(&self) -> Option<Zones> {
        None
    }

    fn write_unit(&self) -> u32 {
        1
    }

    fn unreadable_tail(&self) -> u64 {
        0
    }

    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a target without zones")
    }
}
