//! Power cuts while an instance is mounted, by the number of commands the device took.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock};
use ocssd_lightnvm::{
    BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, PowerCut,
};

/// When the power goes: after so many commands were sent, so long after the last of them.
#[derive(Clone, Copy, Debug)]
pub struct CutAfter {
    pub commands: Option<u64>,
    pub later: Nanos,
}

impl CutAfter {
    pub const NEVER: Self = Self { commands: None, later: Nanos::ZERO };

    /// `inner`, with a cut.
    pub fn around<D, C>(self, inner: Caller<'_, D, C>) -> Fused<'_, D, C> {
        Fused { inner, cut: self, sent: 0 }
    }
}

/// A device whose power goes.
pub struct Fused<'a, D, C> {
    inner: Caller<'a, D, C>,
    cut: CutAfter,
    sent: u64,
}

impl<D: Device, C: Clock> BlockingDevice for Fused<'_, D, C> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.inner.buffers
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        let count = u64::try_from(commands.len()).expect("few");
        let left = self.cut.commands.map_or(u64::MAX, |most| most - self.sent);
        if count < left {
            self.sent += count;
            return self.inner.call(commands);
        }
        let at = self.now() + self.cut.later;
        self.inner.cut_at = Some(at);
        let some = &commands[..usize::try_from(left).expect("few")];
        self.inner.call(some).and(Err(PowerCut { at }))
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        self.inner.wait(time)
    }
}
