//! The block target while it is used one batch at a time: what a mount takes for a drive of extents.
//!
//! Deliberately not here: the block target while it runs (`target`).

use super::exchange::Exchange;
use super::extents::Extents;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockReply, BlockTarget};
use ocssd_lightnvm::{
    BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Geometry, Op, Out, PowerCut,
    Status,
};

/// Commands of the block target that are waited for together (chosen: two for each unit of a drive with 32).
const BATCH: usize = 64;

/// A block target on a drive, and its extents.
pub struct Below<'a> {
    pub device: &'a mut dyn BlockingDevice,
    pub target: &'a mut dyn BlockTarget,
    pub extents: Extents,
    pub exchange: Exchange,
    pub out: Out<BlockReply>,
}

impl Below<'_> {
    /// Calls the block target with the drive's buffers.
    fn with<T>(&mut self, call: impl FnOnce(&mut dyn BlockTarget, Nanos, &mut Out<BlockReply>) -> T) -> T {
        let now = self.device.now();
        std::mem::swap(self.device.buffers(), &mut self.out.buffers);
        let result = call(self.target, now, &mut self.out);
        std::mem::swap(self.device.buffers(), &mut self.out.buffers);
        result
    }

    /// Offers requests until the block target refuses one. True if it took any.
    fn offer(&mut self) -> bool {
        let mut any = false;
        while let Some(&request) = self.exchange.front() {
            if !self.with(|target, now, out| target.submit(now, &request, out)).is_taken() {
                break;
            }
            self.exchange.taken();
            any = true;
        }
        any
    }

    /// Runs what the block target has for the drive. True if there was anything.
    fn run(&mut self) -> Result<bool, PowerCut> {
        self.out.set_room(BATCH);
        self.with(|target, now, out| target.advance(now, out));
        let commands: Vec<Command> = self.out.commands_mut().0.drain(..).collect();
        if commands.is_empty() {
            return Ok(false);
        }
        assert!(commands.len() <= BATCH, "{} commands where there was room for {BATCH}", commands.len());
        for completion in self.device.call(&commands)? {
            self.out.set_room(BATCH);
            self.with(|target, now, out| target.on_completion(now, completion, out));
            assert!(self.out.commands().is_empty(), "commands follow from an advance");
        }
        Ok(true)
    }

    /// Lets time pass until the block target wants to be woken. False if it does not.
    fn pass_time(&mut self) -> Result<bool, PowerCut> {
        let Some(at) = self.target.deadline() else { return Ok(false) };
        self.device.wait(at.saturating_since(self.device.now()))?;
        self.with(|target, now, out| target.on_deadline(now, out));
        Ok(true)
    }

    fn take_replies(&mut self, done: &mut Vec<Completion>) -> bool {
        let replies: Vec<BlockReply> = self.out.replies_mut().0.drain(..).collect();
        done.extend(replies.iter().filter_map(|reply| self.exchange.ended(reply)));
        !replies.is_empty()
    }

    /// Notes how far extents are written by commands that succeeded.
    fn note(&mut self, commands: &[Command], completions: &[Completion]) {
        for (command, completion) in commands.iter().zip(completions) {
            let (extent, block, count) = self.extents.blocks_of(&command.addresses);
            let (first, _) = self.extents.whole(extent);
            match command.op {
                Op::Write { .. } if completion.status.is_success() => {
                    let end = u32::try_from(block - first).expect("within an extent") + count;
                    self.extents.set_written(extent, end);
                }
                Op::Reset if completion.status.is_success() => self.extents.set_written(extent, 0),
                _ => {}
            }
        }
    }
}

impl BlockingDevice for Below<'_> {
    fn geometry(&self) -> &Geometry {
        self.extents.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.extents.descriptor(chunk)
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.device.buffers()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        let mut done = Vec::with_capacity(commands.len());
        for command in commands {
            // The block target judges whole sectors, by their metadata, whatever bytes of them are wanted above.
            command.buffer.into_iter().for_each(|buffer| self.device.buffers().want_all(buffer));
            self.exchange.begin(command, &self.extents);
        }
        while self.exchange.len() > 0 {
            let offered = self.offer();
            let ran = self.run()?;
            if !self.take_replies(&mut done) && !ran && !offered && !self.pass_time()? {
                // It waits for something that no command brings, nor time.
                let all = commands.iter();
                return Ok(all.map(|command| failed(command, Status::INTERNAL_ERROR)).collect());
            }
        }
        done.sort_unstable_by_key(|completion| completion.tag);
        let of = |command: &Command| {
            let at = done.binary_search_by_key(&command.tag, |completion| completion.tag);
            done[at.expect("every command ended once")]
        };
        assert_eq!(done.len(), commands.len(), "each command ends once");
        let completions: Vec<Completion> = commands.iter().map(of).collect();
        self.note(commands, &completions);
        Ok(completions)
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        self.device.wait(time)
    }
}

const fn failed(command: &Command, status: Status) -> Completion {
    Completion { tag: command.tag, status, failed: u64::MAX, violation: None }
}
