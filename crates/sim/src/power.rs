//! A device in a mount's hands whose power goes after so many commands.
//!
//! Deliberately not here: power cuts of a running target (`world`).

use crate::journal::Journal;
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock};
use ocssd_lightnvm::{
    BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, PowerCut,
};

/// When the power goes during a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountCut {
    /// After so many commands.
    pub commands: u64,
    /// So long after the last of them was sent.
    pub later: Nanos,
}

/// A device whose power may go.
pub struct Fused<'a, D, C> {
    caller: Caller<'a, D, C>,
    cut: Option<MountCut>,
    journal: &'a mut Journal,
    /// Commands the mount sent.
    pub sent: u64,
    /// The power went.
    pub is_cut: bool,
}

impl<'a, D: Device, C: Clock> Fused<'a, D, C> {
    /// `caller`, with a cut.
    pub const fn new(caller: Caller<'a, D, C>, cut: Option<MountCut>, journal: &'a mut Journal) -> Self {
        Self { caller, cut, journal, sent: 0, is_cut: false }
    }

    fn note(&mut self, commands: &[Command]) {
        let now = self.caller.clock.now();
        for command in commands {
            self.journal.command(now, command, self.caller.buffers, true);
        }
    }
}

impl<D: Device, C: Clock> BlockingDevice for Fused<'_, D, C> {
    fn geometry(&self) -> &Geometry {
        self.caller.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.caller.chunk(chunk)
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.caller.buffers
    }

    fn now(&self) -> Nanos {
        self.caller.now()
    }

    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        assert!(!self.is_cut, "a mount went on without power");
        let count = u64::try_from(commands.len()).expect("a length fits 64 bits");
        let left = self.cut.map_or(u64::MAX, |cut| cut.commands - self.sent);
        let sent = count.min(left);
        self.sent += sent;
        let some = &commands[..usize::try_from(sent).expect("no more than the batch")];
        self.note(some);
        let Some(cut) = self.cut.filter(|_| count >= left) else {
            let done = self.caller.call(commands)?;
            let now = self.caller.clock.now();
            done.iter().for_each(|completion| self.journal.completion(now, completion));
            return Ok(done);
        };
        let at = self.caller.now() + cut.later;
        self.is_cut = true;
        self.caller.cut_at = Some(at);
        self.caller.call(some).and(Err(PowerCut { at }))
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        assert!(!self.is_cut, "a mount waits without power");
        self.caller.wait(time)
    }
}
