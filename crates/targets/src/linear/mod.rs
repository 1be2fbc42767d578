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
use commands::{Cursor, as_one_run};
use ocssd_base::{Nanos, Ring, Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{Admission, Buffers, Command, Completion, Out, Status, Tag, Target, Violation};
use zones::ZoneMap;

/// Requests at once: what a queue depth of 1024 in a few jobs needs (chosen).
const REQUESTS_MAX: u32 = 4096;
/// Commands at once: a request of 1 MiB is four.
const COMMANDS_MAX: u32 = 4 * REQUESTS_MAX;

/// A request that is not over. It stays in its place from the beginning to its end; the queue holds its key.
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

/// Whose a command in flight is.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// It is all of a request of this name, of which nothing else is kept.
    Whole(Tag),
    /// A request with a place of its own.
    Request(SlabKey),
}

/// The target.
#[derive(Clone, Debug)]
pub struct Linear {
    map: ZoneMap,
    /// Requests taken and not replied to, with and without a place.
    taken: u32,
    requests: Slab<Pending>,
    commands: Slab<Owner>,
    /// Requests with commands to give out.
    waiting: Ring<SlabKey>,
    /// Of requests that are over.
    replies: Ring<BlockReply>,
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
            taken: 0,
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

    fn reply(&mut self, reply: BlockReply) {
        let queued = self.replies.push(reply);
        assert!(queued.is_ok(), "there are as many places for replies as for requests");
    }

    /// A reply is handed over.
    fn on_replied(&mut self) {
        assert!(self.taken > 0, "more replies than requests");
        self.taken -= 1;
    }

    /// Keeps a request whose commands go out later.
    #[inline(never)]
    fn queue(&mut self, request: BlockRequest, written: u64) {
        let cursor = Cursor::new(request, written);
        let fresh = Pending { cursor, commands: 0, issued: false, status: Status::SUCCESS, violation: None };
        let key = self.requests.insert(fresh).expect("no more requests have a place than were taken");
        let queued = self.waiting.push(key);
        assert!(queued.is_ok(), "there are as many places to wait as requests");
    }

    /// Gives commands as long as there are any and there is room.
    #[inline(never)]
    fn give_commands(&mut self, out: &mut Out<BlockReply>) {
        while out.has_room()
            && let Some(command) = self.next_command(&mut out.buffers)
        {
            out.command(command);
        }
    }

    /// Gives the replies of requests that are over.
    #[inline(never)]
    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.replies.pop() {
            self.on_replied();
            out.reply(reply);
        }
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
                let key = self.commands.insert(Owner::Request(request)).expect("room was checked above");
                return Some(Command { tag: Tag(key.0), ..command });
            }
            let next = pending.cursor.next(&self.map, buffers);
            if next.is_none_or(|(_, last)| last) {
                self.waiting.pop();
                pending.issued = true;
            }
            let Some((command, _)) = next else {
                if pending.commands == 0 {
                    let reply = self.forget(request);
                    self.reply(reply);
                }
                continue;
            };
            pending.commands += 1;
            let key = self.commands.insert(Owner::Request(request)).expect("room was checked above");
            return Some(Command { tag: Tag(key.0), ..command });
        }
    }

    /// The reply to a request that is over and is forgotten.
    fn forget(&mut self, key: SlabKey) -> BlockReply {
        let Pending { cursor, commands, status, violation, .. } = self.requests.remove(key);
        assert_eq!(commands, 0, "a request is over before its commands");
        BlockReply { tag: cursor.tag(), status, violation }
    }

    /// Nothing waits to be given out.
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.replies.is_empty()
    }

    /// Notes a command's end, and the reply to its request, if that is over.
    #[inline(never)]
    fn note_end(&mut self, owner: Owner, completion: &Completion) {
        let &Completion { status, violation, .. } = completion;
        let key = match owner {
            Owner::Whole(tag) => return self.reply(BlockReply { tag, status, violation }),
            Owner::Request(key) => key,
        };
        let pending = self.requests.get_mut(key);
        assert!(pending.commands > 0, "a command of request {} completed twice", pending.cursor.tag().0);
        pending.commands -= 1;
        if pending.status.gives_way_to(status) {
            (pending.status, pending.violation) = (status, violation);
        }
        if pending.issued && pending.commands == 0 {
            let reply = self.forget(key);
            self.reply(reply);
        }
    }
}

impl Target for Linear {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        if self.taken == REQUESTS_MAX {
            return Admission::Full;
        }
        self.taken += 1;
        if let Some(status) = self.refusal(request) {
            self.reply(BlockReply { tag: request.tag, status, violation: None });
            return Admission::Taken;
        }
        let written = if request.op == BlockOp::Read { 0 } else { self.map.on_accepted(request) };
        if out.has_room()
            && self.waiting.is_empty()
            && !self.commands.is_full()
            && let Some(command) = as_one_run(request, &self.map)
        {
            let key = self.commands.insert(Owner::Whole(request.tag)).expect("room was checked above");
            out.command(Command { tag: Tag(key.0), ..command });
            return Admission::Taken;
        }
        self.queue(*request, written);
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        let owner = self.commands.remove(SlabKey(completion.tag.0));
        // Made anew: what the completion says of a broken rule need not be copied if none was.
        if let Owner::Whole(tag) = owner
            && completion.status.is_success()
            && self.replies.is_empty()
        {
            self.on_replied();
            return out.reply(BlockReply { tag, status: Status::SUCCESS, violation: None });
        }
        self.note_end(owner, &completion);
        self.give_replies(out);
    }

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        // Most requests went out when they came: this shall then cost nothing.
        if !self.is_quiet() {
            self.give_commands(out);
            self.give_replies(out);
        }
    }

    fn check(&self) {
        let whole = self.commands.iter().filter(|(_, owner)| matches!(owner, Owner::Whole(_))).count();
        let of_requests: u32 = self.requests.iter().map(|(_, pending)| pending.commands).sum();
        let in_parts = self.commands.len() - whole;
        assert_eq!(usize::try_from(of_requests), Ok(in_parts), "commands and requests disagree");
        let taken = whole + self.requests.len() + self.replies.len();
        assert_eq!(usize::try_from(self.taken), Ok(taken), "a request was lost on its way to its reply");
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
