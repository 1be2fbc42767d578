//! The blocking facade: a batch of commands, back when all are done. For code in which nothing runs concurrently.
//!
//! It runs the same device under the same clock as the loop, keeps all units busy within a batch, and can be told to cut
//! the power at a time, so that crashes during recovery are tested like any other.

use crate::clock::Clock;
use ocssd_base::Nanos;
use ocssd_lightnvm::{
    BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, PowerCut, Tag,
};

/// A device and a clock, used one batch at a time.
pub struct Caller<'a, D, C> {
    /// The device.
    pub device: &'a mut D,
    /// The clock.
    pub clock: &'a mut C,
    /// The buffers the commands name.
    pub buffers: &'a mut Buffers,
    /// The power goes at this time.
    pub cut_at: Option<Nanos>,
}

impl<D: Device, C: Clock> BlockingDevice for Caller<'_, D, C> {
    fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.device.chunk(chunk)
    }

    fn buffers(&mut self) -> &mut Buffers {
        self.buffers
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// As the trait says. After a [`PowerCut`] the device is as it was at that moment: cut its power too.
    ///
    /// # Panics
    /// If two commands have the same tag.
    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
        let mut done: Vec<Completion> = Vec::with_capacity(commands.len());
        let mut waiting = commands.iter().copied().peekable();
        while done.len() < commands.len() {
            let now = self.clock.now();
            if let Some(at) = self.cut_at.filter(|&at| at <= now) {
                return Err(PowerCut { at });
            }
            while let Some(completion) = self.device.poll_completion(now, self.buffers) {
                done.push(completion);
            }
            while waiting.next_if(|&command| self.device.submit(now, command, self.buffers).is_ok()).is_some()
            {
            }
            if done.len() == commands.len() {
                // What the device still does by itself (a cache draining) is no part of the batch.
                break;
            }
            let next = self.device.deadline().expect("a device that owes completions has a deadline");
            self.clock.wait_until(self.cut_at.map_or(next, |at| at.min(next)));
        }
        Ok(in_order(commands, done))
    }

    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut> {
        let until = self.clock.now() + time;
        // Virtual time waits once, wall time until it is late enough.
        while self.clock.now() < until {
            if let Some(at) = self.cut_at.filter(|&at| at <= self.clock.now()) {
                return Err(PowerCut { at });
            }
            self.clock.wait_until(self.cut_at.map_or(until, |at| at.min(until)));
        }
        Ok(())
    }
}

/// The completions in the order of their commands.
fn in_order(commands: &[Command], mut done: Vec<Completion>) -> Vec<Completion> {
    done.sort_unstable_by_key(|completion| completion.tag);
    let twice = done.windows(2).find(|pair| pair[0].tag == pair[1].tag).map(|pair| pair[0].tag.0);
    assert!(twice.is_none(), "two commands of a batch have tag {twice:?}");
    let of = |tag: Tag| {
        let found = done.binary_search_by_key(&tag, |completion| completion.tag);
        done[found.expect("as many completions as commands, each of another tag")]
    };
    commands.iter().map(|command| of(command.tag)).collect()
}
