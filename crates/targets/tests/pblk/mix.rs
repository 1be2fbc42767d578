//! Requests of all kinds at random, and a world that carries them out.

use super::world::World;
use ocssd_base::Prng;
use ocssd_lightnvm::block::BlockOp;

/// A mix of requests, all from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub requests: u32,
    pub depth: usize,
    pub span: u64,
    pub longest: u32,
    pub reads: u64,
    pub flushes: u64,
    pub discards: u64,
    pub fua: u64,
}

impl Mix {
    fn draw(&self, blocks: u64, prng: &mut Prng) -> (BlockOp, u64, u32) {
        let count = 1 + u32::try_from(prng.below(u64::from(self.longest))).expect("small");
        let block = prng.below(self.span.min(blocks).saturating_sub(u64::from(count)).max(1));
        let draw = prng.below(100);
        let op = if draw < self.reads {
            BlockOp::Read
        } else if draw < self.reads + self.discards {
            if prng.below(2) == 0 { BlockOp::Discard } else { BlockOp::WriteZeroes }
        } else if draw < self.reads + self.discards + self.flushes {
            BlockOp::Flush
        } else {
            BlockOp::Write { fua: prng.below(100) < self.fua }
        };
        if op == BlockOp::Flush { (op, 0, 0) } else { (op, block, count) }
    }
}

impl World {
    /// Runs a mix; false if the power should go first.
    pub fn run(&mut self, mix: &Mix, prng: &mut Prng) -> bool {
        for _ in 0..mix.requests {
            let depth = mix.depth;
            if !self.run_until(|world| world.in_flight() < depth) {
                return false;
            }
            let (op, block, count) = mix.draw(self.blocks(), prng);
            if !self.run_until(|world| !world.is_busy(block, count)) {
                return false;
            }
            self.send(op, block, count);
        }
        self.drain()
    }

    /// Runs a mix; calls `at` before every command the device takes.
    pub fn run_with(&mut self, mix: &Mix, prng: &mut Prng, mut at: impl FnMut(&Self)) {
        let mut seen = self.commands;
        for _ in 0..mix.requests {
            let (op, block, count) = mix.draw(self.blocks(), prng);
            let depth = mix.depth;
            let mut sent = false;
            loop {
                self.cut_at = Some(self.commands + 1);
                if !sent && self.in_flight() < depth && !self.is_busy(block, count) {
                    self.send(op, block, count);
                    sent = true;
                }
                if sent && self.in_flight() < depth {
                    break;
                }
                self.run_until(|world| {
                    if sent {
                        world.in_flight() < depth
                    } else {
                        world.in_flight() < depth && !world.is_busy(block, count)
                    }
                });
                if self.commands > seen {
                    seen = self.commands;
                    at(self);
                }
            }
        }
        self.cut_at = None;
    }
}
