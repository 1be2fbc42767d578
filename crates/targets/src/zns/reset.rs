//! Dead chunks are reset, those that are due together by one command, and are free then; or bad, if the media say so.
//!
//! A zone that is reset lets all its chunks go at once, so most resets are due together. A chunk the drive holds open is reset as
//! it is where the drive allows that; else it is filled to its end first. Deliberately not here: when a chunk is dead (`space`).

use super::flight::Purpose;
use super::state::Zns;
use crate::vector_reset::VectorReset;
use ocssd_base::{Slab, SlabKey};
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Ppa, Status, VECTOR_MAX};

/// Chunks that are reset at once (chosen: a unit each of a large drive); one command may name as many.
const RESETS_MAX: usize = 64;
const _: () = assert!(RESETS_MAX <= 64 && VECTOR_MAX == 64, "what is due together fits a command");
/// Commands that reset several chunks (chosen: one zone's resets need not wait for another's).
const BATCHES_MAX: u32 = 4;
/// Dead chunks looked at in a turn (chosen: those that wait for the log are few).
const LOOKED_AT_MAX: usize = 64;

/// Chunks of one command, and what became of them.
#[derive(Clone, Debug)]
struct Batch {
    reset: VectorReset,
    chunks: Vec<ChunkIndex>,
}

/// Chunks that are being reset.
#[derive(Clone, Debug)]
pub(super) struct Resets {
    /// How many, those among them that are padded first.
    chunks: usize,
    batches: Slab<Batch>,
    /// Lists of chunks that no command has.
    lists: Vec<BufId>,
}

impl Resets {
    /// None; lists are taken from the pool.
    pub fn new(buffers: &mut Buffers) -> Self {
        let lists = (0..BATCHES_MAX).map(|_| buffers.take(VECTOR_MAX)).collect();
        Self { chunks: 0, batches: Slab::new(BATCHES_MAX), lists }
    }

    fn ended(&mut self, chunks: usize) {
        assert!(self.chunks >= chunks, "{chunks} resets ended, and {} were sent", self.chunks);
        self.chunks -= chunks;
    }
}

impl Zns {
    /// Resets chunks that died. True if any is.
    pub(super) fn reset(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        let mut due = Vec::new();
        while self.resets.chunks < RESETS_MAX && self.flight.has_room(due.len() + 1) {
            let Some(chunk) = self.space.next_dead(self.journal.log.durable(), LOOKED_AT_MAX) else { break };
            any = true;
            if self.space.take_unwritten(chunk) {
                self.space.reset_done(chunk, true);
                continue;
            }
            self.resets.chunks += 1;
            let is_filling = self.filling.contains(&chunk) || self.padded.contains(&chunk);
            let must_pad = self.space.tip(chunk).is_some() && !self.early_reset;
            if must_pad && !is_filling {
                self.filling.push_back(chunk);
            }
            if must_pad || is_filling {
                self.reset_after_padding.insert(chunk);
            } else {
                due.push(chunk);
            }
        }
        self.send_resets(due, buffers);
        if self.space.waits_for_log(self.journal.log.durable())
            && self.space.free() <= self.space.owed() + self.sizes.zone_chunks
        {
            self.await_log(self.journal.log.end());
        }
        any | self.fill()
    }

    /// Sends resets that are due together: by one command, if there is a list for it.
    fn send_resets(&mut self, chunks: Vec<ChunkIndex>, buffers: &mut Buffers) {
        if chunks.len() < 2 || self.resets.lists.is_empty() {
            return chunks.into_iter().for_each(|chunk| self.send_reset(chunk));
        }
        assert!(self.resets.chunks >= chunks.len(), "resets are sent that nobody counted");
        let list = self.resets.lists.pop().expect("there is one");
        for (place, &chunk) in buffers.addresses_mut(list).iter_mut().zip(&chunks) {
            *place = Ppa::new(self.space.shape.chunk_id(chunk), 0);
        }
        let count = u32::try_from(chunks.len()).expect("at most 64");
        let batch = Batch { reset: VectorReset::new(list, count), chunks };
        let batch = self.resets.batches.insert(batch);
        self.send_batch(batch.unwrap_or_else(|_| unreachable!("there are as many as lists")));
    }

    fn send_batch(&mut self, batch: SlabKey) {
        let reset = self.resets.batches.get(batch).reset;
        self.flight.send(Purpose::Resets { batch }, Op::Reset, reset.addresses(), Some(reset.buffer()), 0);
    }

    /// A command that reset several chunks ended, or one that asked again for one of them.
    pub(super) fn resets_done(&mut self, batch: SlabKey, completion: &Completion) {
        let Some(bad) = self.resets.batches.get_mut(batch).reset.on_end(completion) else {
            return self.send_batch(batch);
        };
        let Batch { reset, chunks } = self.resets.batches.remove(batch);
        self.resets.lists.push(reset.buffer());
        self.resets.ended(chunks.len());
        if completion.status.is_drive_failure() {
            return self.stop(completion.status);
        }
        for (nth, chunk) in chunks.into_iter().enumerate() {
            self.chunk_is_reset(chunk, bad >> nth & 1 == 0);
        }
    }

    fn send_reset(&mut self, chunk: ChunkIndex) {
        let addresses = self.run_at(Append { chunk, sector: 0 }, 1);
        self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
    }

    /// Fills chunks to their end that nobody writes, one write at a time each. True if a write was sent.
    fn fill(&mut self) -> bool {
        let mut any = false;
        while self.flight.has_room(1) {
            if self.filling.is_empty() || self.padding.is_empty() {
                break;
            }
            let chunk = self.filling.pop_front().expect("it was looked at");
            let padding = self.padding.pop().expect("it was looked at");
            let tip = self.space.tip(chunk).expect("a chunk is filled from where it is open");
            let sectors = self.sizes.unit - tip % self.sizes.unit;
            assert!(tip + sectors <= self.sizes.chunk, "chunk {} is filled beyond its end", chunk.0);
            let addresses = self.run_at(Append { chunk, sector: tip }, sectors);
            self.stats.programmed += u64::from(sectors);
            self.stats.filled += u64::from(sectors);
            self.padded.insert(chunk);
            let purpose = Purpose::Padding { chunk, sectors, padding };
            self.flight.send(purpose, Op::Write { fua: false }, addresses, Some(padding), 0);
            any = true;
        }
        any
    }

    /// A write of padding to a chunk's end is over.
    pub(super) fn padding_done(&mut self, chunk: ChunkIndex, sectors: u32, completion: &Completion) {
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        assert!(self.padded.remove(&chunk), "chunk {} was not being filled", chunk.0);
        let goes_on = status.is_success() || status == Status::WRITE_NEXT_UNIT;
        let tip = self.space.tip(chunk).expect("a chunk is filled from where it is open") + sectors;
        // A drive that fails a write closes the chunk, or leaves it where it can be written next.
        self.space.filled(chunk, if goes_on { tip } else { self.sizes.chunk });
        let is_open = self.space.tip(chunk).is_some();
        if self.reset_after_padding.contains(&chunk) && (!is_open || self.early_reset) {
            self.reset_after_padding.remove(&chunk);
            self.send_reset(chunk);
        } else if is_open {
            self.filling.push_back(chunk);
        }
    }

    /// A reset ended. A drive that failed says nothing of the chunk.
    pub(super) fn reset_done(&mut self, chunk: ChunkIndex, completion: &Completion) {
        self.resets.ended(1);
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        self.chunk_is_reset(chunk, status.is_success() || status == Status::INVALID_RESET);
    }

    /// A chunk was reset, or cannot be.
    fn chunk_is_reset(&mut self, chunk: ChunkIndex, is_good: bool) {
        assert!(!self.tails.holds(chunk), "chunk {} was reset with tails in it", chunk.0);
        self.stats.resets += 1;
        self.space.reset_done(chunk, is_good);
        // Those of the log and of checkpoints wear on their own: no zone has them, nor what is moved.
        if !self.space.is_metadata(chunk) {
            self.wear.on_reset(chunk);
        }
    }
}
