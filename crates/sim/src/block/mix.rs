//! What requests a block workload draws: kinds, sizes, places.

use ocssd_base::Prng;
use ocssd_lightnvm::block::BlockOp;

/// Weights and bounds of drawn requests. A weight of zero switches a kind off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Weight of reads.
    pub reads: u32,
    /// Weight of writes.
    pub writes: u32,
    /// Weight of flushes.
    pub flushes: u32,
    /// Weight of discards.
    pub discards: u32,
    /// Weight of writes of zeroes.
    pub zeroes: u32,
    /// Writes with FUA, in percent.
    pub fua_percent: u32,
    /// Most blocks of a request.
    pub longest: u32,
    /// Share of the device that is touched, in percent.
    pub span_percent: u32,
    /// Requests that go to a sixteenth of the span, in percent.
    pub hot_percent: u32,
    /// Times the device is written before all but a sixteenth of the span is left alone for good; 0 for never.
    pub cold_after: u32,
    /// Requests outstanding at once.
    pub depth: u32,
    /// Discards survive a flush and a power cut. False of targets that say they do not (pblk's faithful mode).
    pub discards_are_durable: bool,
    /// What was answered survives a power cut, without a flush.
    pub answers_are_durable: bool,
    /// Blocks of a write up to which it is there as a whole or not at all; 0 if that is not promised.
    pub atomic_blocks: u32,
    /// Writes that are parts of transactions over several requests, or in place of which one ends, in percent; of a target that
    /// has none they are writes like others.
    pub transaction_percent: u32,
}

/// A drawn request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// What it does.
    pub op: BlockOp,
    /// First block.
    pub block: u64,
    /// Blocks.
    pub count: u32,
}

impl Mix {
    /// The mix once so many blocks were written to a device of `blocks`.
    #[must_use]
    pub fn at(&self, written: u64, blocks: u64) -> Self {
        let is_cold = self.cold_after > 0 && written >= blocks * u64::from(self.cold_after);
        Self { hot_percent: if is_cold { 100 } else { self.hot_percent }, ..*self }
    }

    /// Draws a request to a device of `blocks` blocks.
    ///
    /// # Panics
    /// If every weight is zero.
    #[must_use]
    pub fn draw(&self, draw: u64, blocks: u64) -> Drawn {
        let mut prng = Prng::new(draw);
        let op = self.op(&mut prng);
        if op == BlockOp::Flush {
            return Drawn { op, block: 0, count: 0 };
        }
        let longest = u64::from(self.longest).min(blocks).max(1);
        // Short ones are as frequent as long ones: most borders are met by them.
        let most = if prng.below(2) == 0 { longest.min(4) } else { longest };
        let count = 1 + prng.below(most);
        let span = (blocks * u64::from(self.span_percent) / 100).clamp(count, blocks);
        let span = if prng.below(100) < u64::from(self.hot_percent) { (span / 16).max(count) } else { span };
        let block = prng.below(span - count + 1);
        Drawn { op, block, count: u32::try_from(count).expect("no more than `longest`") }
    }

    fn op(&self, prng: &mut Prng) -> BlockOp {
        let weights = [self.reads, self.writes, self.flushes, self.discards, self.zeroes];
        let mut draw = prng.below(weights.iter().map(|&weight| u64::from(weight)).sum());
        let fua = prng.below(100) < u64::from(self.fua_percent);
        let ops =
            [BlockOp::Read, BlockOp::Write { fua }, BlockOp::Flush, BlockOp::Discard, BlockOp::WriteZeroes];
        for (op, weight) in ops.into_iter().zip(weights) {
            match draw.checked_sub(u64::from(weight)) {
                Some(rest) => draw = rest,
                None => return op,
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}
