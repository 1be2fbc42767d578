//! Requests to block targets: the source the host takes them from, and where their ends wait to be told.
//!
//! What is written is copied when the request comes; what is read is copied to the caller when the target has replied.
//! Requests of one target go to it in order, and one that has no room holds up its own only. Deliberately not here: time,
//! and calling back.

use crate::boundary::Memory;
use crate::failure::Failure;
use crate::payload::{Payload, Piece};
use crate::status::errno_of;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Source, Status, Tag, TargetId};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

/// Called by `ocssd_target_poll` when a request has ended: `result` is 0 or a negative number of errno.h, `status` the drive's
/// (SCT and SC, 0 for success). It may submit, and call everything but polls and closes of the target that calls it. It must
/// return: no longjmp, no C++ exception.
pub type RequestEnded = Option<unsafe extern "C" fn(context: *mut c_void, result: c_int, status: u16)>;

/// Most requests of a target that were submitted and not told (chosen: the depth at which pblk stops gaining).
pub const TARGET_DEPTH: usize = 1024;
/// Most requests of all targets of a drive at once.
const REQUESTS_MAX: u32 = 16_384;
/// Most bytes of one request; what is waited for is cut into such pieces (chosen: 1 MiB, as Linux's largest).
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Who is told of a request's end.
#[derive(Clone, Copy)]
pub enum Owner {
    /// The call that waits.
    Waiting,
    /// A callback, by the next poll.
    Callback(RequestEnded, *mut c_void),
}

/// What is asked of a target.
#[derive(Clone, Copy)]
pub struct Asked {
    /// What to do.
    pub op: BlockOp,
    /// First block.
    pub block: u64,
    /// How many.
    pub count: u32,
    /// What is written, or where to put what is read.
    pub memory: Memory,
    /// Who is told.
    pub owner: Owner,
}

struct Open {
    lane: usize,
    asked: Asked,
    piece: Option<Piece>,
}

/// The end of a request, as it is told.
#[derive(Clone, Copy)]
pub struct Told {
    /// Whom to call.
    pub ended: RequestEnded,
    /// What with.
    pub context: *mut c_void,
    /// How it ended.
    pub status: Status,
}

impl Told {
    /// 0, or the negative number.
    pub const fn result(&self) -> c_int {
        -errno_of(self.status)
    }
}

/// The way to one target.
#[derive(Default)]
pub struct Lane {
    waiting: VecDeque<SlabKey>,
    /// The target had no room, and has not replied since.
    full: bool,
    /// Requests that did not end.
    pub in_progress: usize,
    /// Ends to tell.
    pub ended: VecDeque<Told>,
    /// The target's lease; `None` while no target is there.
    pub lease: Option<String>,
    /// The lease goes when the target is closed.
    pub is_temporary: bool,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks.
    pub block_count: u64,
}

/// How the requests of a waiting call ended.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// How many did not.
    pub left: usize,
    /// The first failure, or success.
    pub status: Status,
}

/// All requests of a drive.
pub struct Requests {
    open: Slab<Open>,
    lanes: Vec<Lane>,
    /// The lane that is asked first next time.
    next: usize,
    payload: Payload,
    /// Of the call that waits.
    pub waited: Waited,
}

impl Requests {
    /// None, and no target.
    pub fn new() -> Self {
        Self {
            open: Slab::new(REQUESTS_MAX),
            lanes: Vec::new(),
            next: 0,
            payload: Payload::default(),
            waited: Waited { left: 0, status: Status::SUCCESS },
        }
    }

    /// The number of a lane without a target: an old one, or the next.
    pub fn free_lane(&self) -> usize {
        self.lanes.iter().position(|lane| lane.lease.is_none()).unwrap_or(self.lanes.len())
    }

    /// How many lanes there are, with and without targets.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// A target was mounted at this lane.
    pub fn begin(&mut self, number: usize, target: &dyn BlockTarget, lease: String, is_temporary: bool) {
        let lane = Lane {
            lease: Some(lease),
            is_temporary,
            block_bytes: target.block_bytes(),
            block_count: target.block_count(),
            ..Lane::default()
        };
        if number == self.lanes.len() {
            self.lanes.push(lane);
        } else {
            self.lanes[number] = lane;
        }
    }

    /// The target of this lane was left.
    pub fn end(&mut self, number: usize) -> Lane {
        std::mem::take(&mut self.lanes[number])
    }

    /// A lane.
    pub fn lane(&mut self, number: usize) -> &mut Lane {
        &mut self.lanes[number]
    }

    /// Whether a target of this lease is open.
    pub fn has_lease(&self, name: &str) -> bool {
        self.lanes.iter().any(|lane| lane.lease.as_deref() == Some(name))
    }

    /// Targets that are open.
    pub fn target_count(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.lease.is_some()).count()
    }

    /// Requests that did not end.
    pub fn in_progress(&self) -> usize {
        self.open.len()
    }

    /// Ends that wait to be told.
    pub fn ended(&self) -> usize {
        self.lanes.iter().map(|lane| lane.ended.len()).sum()
    }

    /// Takes a request.
    ///
    /// # Errors
    /// EAGAIN if there is no room or no memory for its payload; nothing was changed.
    pub fn take(&mut self, number: usize, asked: Asked, buffers: &mut Buffers) -> Result<(), Failure> {
        let lane = &self.lanes[number];
        let held = lane.in_progress + lane.ended.len();
        let is_full = matches!(asked.owner, Owner::Callback(..)) && held >= TARGET_DEPTH;
        if is_full || self.open.is_full() {
            return Err(Failure::new(
                libc::EAGAIN,
                format!("{held} requests of the target were not told yet; poll, and submit again"),
            ));
        }
        let piece = self.piece_for(&asked, self.lanes[number].block_bytes, buffers)?;
        let waits = matches!(asked.owner, Owner::Waiting);
        let key = self.open.insert(Open { lane: number, asked, piece });
        let key = key.unwrap_or_else(|_| unreachable!("there is room"));
        let lane = &mut self.lanes[number];
        lane.in_progress += 1;
        lane.waiting.push_back(key);
        self.waited.left += usize::from(waits);
        Ok(())
    }

    /// Memory for a request's payload, with what is written.
    fn piece_for(
        &mut self,
        asked: &Asked,
        block_bytes: u32,
        buffers: &mut Buffers,
    ) -> Result<Option<Piece>, Failure> {
        if !matches!(asked.op, BlockOp::Read | BlockOp::Write { .. }) {
            return Ok(None);
        }
        let sectors = buffers.format().sectors_of_blocks(asked.count, block_bytes);
        let piece = self.payload.take(sectors, buffers)?;
        if matches!(asked.op, BlockOp::Write { .. }) {
            // SAFETY: the caller lets what is written be read during the call that submits it.
            let from = unsafe { asked.memory.as_shared() };
            buffers.bytes_mut(piece.buffer, 0, from.len()).copy_from_slice(from);
        }
        Ok(Some(piece))
    }
}

impl Source for Requests {
    /// Requests come from calls, not from the passing of time.
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        for step in 0..self.lanes.len() {
            let number = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[number];
            if lane.full {
                continue;
            }
            if let Some(key) = lane.waiting.pop_front() {
                self.next = number + 1;
                let Open { asked, piece, .. } = self.open.get(key);
                let request = BlockRequest {
                    tag: Tag(key.0),
                    op: asked.op,
                    block: asked.block,
                    count: asked.count,
                    buffer: piece.map(|piece| piece.buffer),
                };
                return Some((TargetId(u32::try_from(number).expect("few targets")), request));
            }
        }
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        let lane = &mut self.lanes[target.index()];
        lane.full = true;
        lane.waiting.push_front(SlabKey(request.tag.0));
    }

    fn on_reply(&mut self, _now: Nanos, target: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        let Open { lane, asked, piece } = self.open.remove(SlabKey(reply.tag.0));
        assert_eq!(lane, target.index(), "a target replied to another's request");
        if let Some(piece) = piece {
            if asked.op == BlockOp::Read && errno_of(reply.status) == 0 {
                // SAFETY: the caller keeps what is read into alive, and leaves it alone, until the request has ended.
                let to = unsafe { asked.memory.as_mut() };
                to.copy_from_slice(buffers.bytes(piece.buffer, 0, to.len()));
            }
            self.payload.give_back(piece, buffers);
        }
        let lane = &mut self.lanes[lane];
        lane.full = false;
        lane.in_progress -= 1;
        match asked.owner {
            Owner::Waiting => {
                self.waited.left -= 1;
                if self.waited.status.gives_way_to(reply.status) {
                    self.waited.status = reply.status;
                }
            }
            Owner::Callback(ended, context) => {
                lane.ended.push_back(Told { ended, context, status: reply.status })
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.open.is_empty()
    }
}
