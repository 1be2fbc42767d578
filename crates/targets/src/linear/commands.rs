//! A request on its way to the device, one vector command at a time.

use super::zones::ZoneMap;
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Command, Op, Ppa, Tag, VECTOR_MAX};

/// The whole request as one command, if it is that: nearly all are.
#[inline(always)]
pub(super) fn as_one_run(request: &BlockRequest, map: &ZoneMap) -> Option<Command> {
    let BlockRequest { op, block, count, buffer, .. } = *request;
    // Reads first: they are asked for one question, not for their place among all kinds.
    let op = match op {
        _ if op == BlockOp::Read => Op::Read,
        BlockOp::Write { fua } => Op::Write { fua },
        _ => return None,
    };
    if count > map.transfer_max(op) {
        return None;
    }
    let (first, run) = map.locate(block);
    let addresses = Addresses::Run { first, count };
    let plane_mode = map.plane_mode(count);
    (run >= count).then_some(Command {
        tag: Tag(0),
        op,
        addresses,
        buffer,
        buffer_first: 0,
        oob: false,
        plane_mode,
    })
}

/// How far a request has been turned into commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    request: BlockRequest,
    /// Blocks (chunks, for a reset) given out.
    done: u32,
    /// For a reset: how far its zone was written when the request was taken.
    written: u64,
}

impl Cursor {
    #[inline]
    pub(super) const fn new(request: BlockRequest, written: u64) -> Self {
        Self { request, done: 0, written }
    }

    /// The host's name for the request.
    pub(super) const fn tag(&self) -> Tag {
        self.request.tag
    }

    /// The whole request as one command, if it is that and nothing of it was given out.
    pub(super) fn as_one_run(&self, map: &ZoneMap) -> Option<Command> {
        if self.done > 0 { None } else { as_one_run(&self.request, map) }
    }

    /// The next command and whether it is the last; `None` if the request needs none.
    pub(super) fn next(&mut self, map: &ZoneMap, buffers: &mut Buffers) -> Option<(Command, bool)> {
        match self.request.op {
            BlockOp::Read => Some(self.transfer(Op::Read, map, buffers)),
            BlockOp::Write { fua } => Some(self.transfer(Op::Write { fua }, map, buffers)),
            BlockOp::ResetZone => self.reset(map, buffers),
            BlockOp::Flush | BlockOp::Shutdown => {
                Some((self.command(Op::Flush, Addresses::None, None, map), true))
            }
            BlockOp::Discard | BlockOp::WriteZeroes => None,
        }
    }

    const fn command(&self, op: Op, addresses: Addresses, buffer: Option<BufId>, map: &ZoneMap) -> Command {
        let plane_mode = map.plane_mode(addresses.count());
        Command { tag: Tag(0), op, addresses, buffer, buffer_first: self.done, oob: false, plane_mode }
    }

    /// Up to 64 sectors: one run if they lie together, else a list.
    fn transfer(&mut self, op: Op, map: &ZoneMap, buffers: &mut Buffers) -> (Command, bool) {
        assert!(self.done < self.request.count, "a request that is all given out is asked for more");
        let left = self.request.count - self.done;
        let block = self.request.block + u64::from(self.done);
        let (first, run) = map.locate(block);
        let count = left.min(map.transfer_max(op));
        let whole = run >= count;
        // Without a buffer there is no place for a list: each run is a command of its own.
        let Some(buffer) = self.request.buffer.filter(|_| !whole) else {
            let count = count.min(run);
            let command = self.command(op, Addresses::Run { first, count }, self.request.buffer, map);
            self.done += count;
            return (command, count == left);
        };
        let list = buffers.addresses_mut(buffer);
        let offset = self.done;
        let mut filled = 0;
        while filled < count {
            let (first, run) = map.locate(block + u64::from(filled));
            for step in 0..run.min(count - filled) {
                let place = usize::try_from(offset + filled + step).expect("32 bits fit an index");
                list[place] = Ppa::new(first.chunk, first.sector + step);
            }
            filled += run.min(count - filled);
        }
        assert_eq!(filled, count, "the list has as many entries as the command");
        assert!(count > 0 && count <= VECTOR_MAX, "a vector command has 1 to 64 sectors");
        let command = self.command(op, Addresses::List { offset, count }, Some(buffer), map);
        self.done += count;
        (command, count == left)
    }

    /// One chunk a command: a reset takes milliseconds, so a list would save nothing, and needs a buffer for it.
    fn reset(&mut self, map: &ZoneMap, _buffers: &mut Buffers) -> Option<(Command, bool)> {
        let mut chunks = map.chunks_to_reset(self.request.block, self.written, u64::from(self.done));
        let chunk = chunks.next()?;
        let last = chunks.next().is_none();
        let command =
            self.command(Op::Reset, Addresses::Run { first: Ppa::new(chunk, 0), count: 1 }, None, map);
        self.done += 1;
        Some((command, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn a_request_is_one_command_only_before_anything_of_it_was_given_out() {
        let geometry = Geometry::example(1, 1, 2, 128, 4);
        let map = ZoneMap::of_free_chunks(&geometry);
        let request = BlockRequest { tag: Tag(1), op: BlockOp::Read, block: 0, count: 8, buffer: None };
        let mut cursor = Cursor::new(request, 0);
        let whole = cursor.as_one_run(&map).expect("eight blocks of a chunk are one run");
        assert_eq!(whole.addresses.count(), 8);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        assert!(cursor.next(&map, &mut buffers).is_some_and(|(_, is_last)| is_last));
        assert!(cursor.as_one_run(&map).is_none(), "it would be read once more");
    }
}
