//! `linear`: a raw window on parallel units, and the smallest example of a target.
//!
//! Blocks are sectors. They lie in zones that are written in order and reset as a whole: with [`Layout::Striped`] a zone
//! is one chunk of every unit, WS_OPT sectors to a unit in turn, next group first (pblk's line order); with
//! [`Layout::Chunk`] a zone is one chunk. A request becomes vector commands of up to 64 sectors. Chunks that are offline,
//! or were not written in this layout's order, take their zone out of the window.
//!
//! Deliberately not here: mapping, buffering, garbage collection, error handling beyond reporting. The drive's rules are
//! the window's rules.

mod commands;
mod zones;

pub use zones::Layout;

use crate::registry::Parts;
use commands::Cursor;
use ocssd_base::{Nanos, Ring, Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{Buffers, Command, Completion, Status, Tag, Taken, Target, Violation};
use zones::ZoneMap;

/// Requests at once: what a queue depth of 1024 in a few jobs needs (chosen).
const REQUESTS_MAX: u32 = 4096;
/// Commands at once: a request of 1 MiB is four.
const COMMANDS_MAX: u32 = 4 * REQUESTS_MAX;

/// A request that was taken and not replied to. It stays in its place from the beginning to its reply; queues hold its
/// key.
#[derive(Clone, Copy, Debug)]
struct Pending {
    cursor: Cursor,
    /// Commands in flight.
    commands: u32,
    /// All its commands have been given out.
    issued: bool,
    status: Status,
    violation: Option<Violation>,
}

/// The target.
#[derive(Clone, Debug)]
pub struct Linear {
    map: ZoneMap,
    requests: Slab<Pending>,
    /// Which request each command in flight belongs to.
    commands: Slab<SlabKey>,
    /// Requests with commands to give out.
    waiting: Ring<SlabKey>,
    /// Requests that are over.
    replies: Ring<SlabKey>,
    block_bytes: u32,
}

impl Linear {
    /// A window on the units.
    ///
    /// # Errors
    /// A sentence, if no zone is left to use.
    pub fn new(parts: &Parts<'_>) -> Result<Self, String> {
        let capacity = usize::try_from(REQUESTS_MAX).expect("32 bits fit an index");
        Ok(Self {
            map: ZoneMap::new(parts)?,
            requests: Slab::new(REQUESTS_MAX),
            commands: Slab::new(COMMANDS_MAX),
            waiting: Ring::new(capacity),
            replies: Ring::new(capacity),
            block_bytes: parts.geometry.sector_bytes,
        })
    }

    /// What is wrong with a request before any of it is tried.
    #[inline(always)]
    fn refusal(&self, request: &BlockRequest) -> Option<Status> {
        // Reads first: they are asked for one question, not for their place among all kinds.
        if request.op == BlockOp::Read { self.range_refusal(request) } else { self.change_refusal(request) }
    }

    /// What is wrong with the blocks a read or write names.
    #[inline(always)]
    fn range_refusal(&self, request: &BlockRequest) -> Option<Status> {
        let end = request.block.checked_add(u64::from(request.count));
        if request.count == 0 {
            Some(Status::INVALID_FIELD)
        } else if end.is_none_or(|end| end > self.map.block_count()) {
            Some(Status::LBA_OUT_OF_RANGE)
        } else {
            None
        }
    }

    /// What is wrong with anything but a read.
    #[inline(never)]
    fn change_refusal(&self, request: &BlockRequest) -> Option<Status> {
        match request.op {
            BlockOp::Flush | BlockOp::Shutdown => None,
            BlockOp::Discard | BlockOp::WriteZeroes => Some(Status::INVALID_OPCODE),
            BlockOp::ResetZone if !self.map.is_zone_start(request.block) => Some(Status::INVALID_FIELD),
            BlockOp::ResetZone if !self.map.can_reset(request.block) => Some(Status::INVALID_RESET),
            BlockOp::ResetZone => None,
            BlockOp::Read => self.range_refusal(request),
            BlockOp::Write { .. } => {
                let fits = || self.map.fits_zone(request.block, request.count);
                self.range_refusal(request).or_else(|| (!fits()).then_some(Status::WRITE_FAULT))
            }
        }
    }

    fn reply(&mut self, key: SlabKey) {
        let queued = self.replies.push(key);
        assert!(queued.is_ok(), "there are as many places for replies as for requests");
    }

    /// The next command, if there is one and a place for it.
    #[inline(never)]
    fn next_command(&mut self, buffers: &mut Buffers) -> Option<Command> {
        loop {
            if self.commands.is_full() {
                return None;
            }
            let &request = self.waiting.front()?;
            let pending = self.requests.get_mut(request);
            if let Some(command) = pending.cursor.as_one_run(&self.map) {
                self.waiting.pop();
                pending.issued = true;
                pending.commands = 1;
                let key = self.commands.insert(request).expect("room was checked above");
                return Some(Command { tag: Tag(key.0), ..command });
            }
            let next = pending.cursor.next(&self.map, buffers);
            if next.is_none_or(|(_, last)| last) {
                self.waiting.pop();
                pending.issued = true;
            }
            let Some((command, _)) = next else {
                if pending.commands == 0 {
                    self.reply(request);
                }
                continue;
            };
            pending.commands += 1;
            let key = self.commands.insert(request).expect("room was checked above");
            return Some(Command { tag: Tag(key.0), ..command });
        }
    }

    /// The oldest reply; its request is forgotten.
    #[inline(never)]
    fn next_reply(&mut self) -> Option<BlockReply> {
        let key = self.replies.pop()?;
        Some(self.forget(key))
    }

    /// The reply to a request that is over and is forgotten.
    #[inline(always)]
    fn forget(&mut self, key: SlabKey) -> BlockReply {
        let &Pending { cursor, commands, status, violation, .. } = self.requests.get(key);
        assert_eq!(commands, 0, "a request is over before its commands");
        self.requests.free(key);
        BlockReply { tag: cursor.tag(), status, violation }
    }

    /// Nothing waits to be given out.
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.replies.is_empty()
    }

    /// Notes a command's end; the request it was of, if that is over.
    #[inline(always)]
    fn note_end(&mut self, completion: &Completion) -> Option<SlabKey> {
        let command = SlabKey(completion.tag.0);
        let key = *self.commands.get(command);
        self.commands.free(command);
        let pending = self.requests.get_mut(key);
        assert!(pending.commands > 0, "a command of request {} completed twice", pending.cursor.tag().0);
        pending.commands -= 1;
        if pending.status.is_success() && !completion.status.is_success() {
            pending.status = completion.status;
            pending.violation = completion.violation;
        }
        (pending.issued && pending.commands == 0).then_some(key)
    }
}

impl Target for Linear {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: BlockRequest) -> Result<(), BlockRequest> {
        if self.requests.is_full() {
            return Err(request);
        }
        let refusal = self.refusal(&request);
        let changes = refusal.is_none() && request.op != BlockOp::Read;
        let written = if changes { self.map.on_accepted(&request) } else { 0 };
        let cursor = Cursor::new(request, written);
        let (issued, status) = (refusal.is_some(), refusal.unwrap_or(Status::SUCCESS));
        let fresh = Pending { cursor, commands: 0, issued, status, violation: None };
        let key = self.requests.insert(fresh).expect("room was checked above");
        if issued {
            self.reply(key);
            return Ok(());
        }
        let queued = self.waiting.push(key);
        assert!(queued.is_ok(), "there are as many places to wait as requests");
        Ok(())
    }

    fn submit_direct(&mut self, now: Nanos, request: &BlockRequest, _buffers: &mut Buffers) -> Taken {
        let has_room = !self.requests.is_full() && !self.commands.is_full();
        if !has_room || !self.is_quiet() || self.refusal(request).is_some() {
            return self.submit(now, *request).map_or(Taken::Refused, |()| Taken::Queued);
        }
        let Some(command) = Cursor::new(*request, 0).as_one_run(&self.map) else {
            return self.submit(now, *request).map_or(Taken::Refused, |()| Taken::Queued);
        };
        if request.op != BlockOp::Read {
            self.map.on_accepted(request);
        }
        let cursor = Cursor::given_out(request.tag);
        let fresh = Pending { cursor, commands: 1, issued: true, status: Status::SUCCESS, violation: None };
        let request = self.requests.insert(fresh).expect("room was checked above");
        let key = self.commands.insert(request).expect("room was checked above");
        Taken::Command(Command { tag: Tag(key.0), ..command })
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _buffers: &mut Buffers) {
        if let Some(over) = self.note_end(&completion) {
            self.reply(over);
        }
    }

    fn complete_direct(
        &mut self,
        _now: Nanos,
        completion: Completion,
        _buffers: &mut Buffers,
    ) -> Option<BlockReply> {
        let over = self.note_end(&completion)?;
        if self.is_quiet() {
            return Some(self.forget(over));
        }
        self.reply(over);
        None
    }

    fn on_deadline(&mut self, _now: Nanos) {}

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn poll_command(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<Command> {
        // Every second question finds nothing: it shall cost nothing.
        if self.waiting.is_empty() { None } else { self.next_command(buffers) }
    }

    fn poll_reply(&mut self) -> Option<BlockReply> {
        if self.replies.is_empty() { None } else { self.next_reply() }
    }

    fn check(&self) {
        let in_flight: u32 = self.requests.iter().map(|(_, pending)| pending.commands).sum();
        assert_eq!(usize::try_from(in_flight), Ok(self.commands.len()), "commands and requests disagree");
        let unissued = self.requests.iter().filter(|(_, pending)| !pending.issued).count();
        assert_eq!(unissued, self.waiting.len(), "a request was lost on its way to the device");
        self.map.check();
    }
}

impl BlockTarget for Linear {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.map.block_count()
    }

    fn zones(&self) -> Option<Zones> {
        Some(self.map.zones())
    }

    fn write_unit(&self) -> u32 {
        self.map.write_unit()
    }

    fn unreadable_tail(&self) -> u64 {
        self.map.unreadable_tail()
    }

    fn zone_written(&self, zone: u64) -> u64 {
        self.map.written(zone)
    }
}
