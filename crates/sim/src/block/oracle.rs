//! What every block of a device may hold: histories, and which of them wait for a flush.
//!
//! Cost: a change or read costs its blocks, a flush the blocks changed since the last one. Deliberately not here:
//! requests and their content (`contract`).

use super::history::{Content, History, Settled};
use crate::contract::Broken;
use std::ops::Range;

/// When something happened, counted in sends and replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// All blocks' histories.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    blocks: Vec<History>,
    /// Blocks with a change that is not durable; some may be named twice.
    pending: Vec<u64>,
    is_pending: Vec<bool>,
    /// Blocks nobody has looked at since the last power cut.
    unsettled: Vec<bool>,
    /// Reads sent before this moment may fail: a discard was forgotten, and what it discarded may be gone.
    shaky_until: Vec<Moment>,
    now: Moment,
}

fn place(block: u64) -> usize {
    usize::try_from(block).expect("a simulated device is small")
}

impl Oracle {
    /// A device of zeroes.
    #[must_use]
    pub fn new(blocks: u64) -> Self {
        let count = place(blocks);
        Self {
            blocks: vec![History::default(); count],
            pending: Vec::new(),
            is_pending: vec![false; count],
            unsettled: vec![false; count],
            shaky_until: vec![Moment(0); count],
            now: Moment(0),
        }
    }

    /// Blocks of the device.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        u64::try_from(self.blocks.len()).expect("a length fits 64 bits")
    }

    /// The present moment.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// The next moment.
    pub fn tick(&mut self) -> Moment {
        self.now.0 += 1;
        self.now
    }

    /// A change of a block was sent.
    pub fn sent(&mut self, block: u64, content: Content, at: Moment, forgettable: bool) {
        let index = place(block);
        self.blocks[index].sent(content, at, forgettable);
        if !std::mem::replace(&mut self.is_pending[index], true) {
            self.pending.push(block);
        }
    }

    /// The end of a transaction was sent that gives a block a content whose number is older than others up to `order`.
    pub fn sent_late(&mut self, block: u64, content: Content, order: Content, at: Moment) {
        self.sent(block, content, at, false);
        self.blocks[place(block)].is_late(at, order);
    }

    /// The change of these blocks sent at `sent` was carried out; `durable` if it survives a power cut.
    pub fn made(&mut self, blocks: Range<u64>, sent: Moment, durable: bool, oldest_read: Moment) {
        let now = self.now;
        for block in blocks {
            let history = &mut self.blocks[place(block)];
            history.made(sent, now);
            if durable {
                history.durable(sent);
                history.prune(oldest_read);
            }
            self.settled(block);
        }
    }

    /// The change of these blocks sent at `sent` was refused.
    pub fn refused(&mut self, blocks: Range<u64>, sent: Moment) {
        let now = self.now;
        blocks.for_each(|block| self.blocks[place(block)].refused(sent, now));
    }

    /// The change of a block sent at `sent` was answered as one that never was: nothing may show it.
    pub fn never_made(&mut self, block: u64, sent: Moment) {
        self.blocks[place(block)].never_made(sent);
    }

    /// Everything carried out before `moment` survives a power cut from now on.
    pub fn durable_before(&mut self, moment: Moment, oldest_read: Moment) {
        let Self { blocks, pending, is_pending, .. } = self;
        pending.retain(|&block| {
            let history = &mut blocks[place(block)];
            let done = history.durable_before(moment);
            history.prune(oldest_read);
            is_pending[place(block)] = !done;
            !done
        });
    }

    /// A read sent at `sent` showed `content` in `block`: what it came to, `Settled::Survived` but for the first look after a
    /// power cut.
    ///
    /// # Errors
    /// What the block may hold, if not that.
    pub fn read(&mut self, block: u64, sent: Moment, content: Content) -> Result<Settled, Broken> {
        let history = &mut self.blocks[place(block)];
        let is_first = self.unsettled[place(block)] && !history.is_of_now(sent, content);
        let settled = if is_first {
            history.settle(content)
        } else if history.read(sent, content) {
            Settled::Survived
        } else {
            Settled::No
        };
        if settled != Settled::No {
            if is_first {
                self.settled(block);
            }
            return Ok(settled);
        }
        let readable = self.blocks[place(block)].readable(sent);
        let promised = format!("block {block} holds {}", one_of(&readable));
        let rule = if is_first { "what survives a power cut" } else { "what a read may show" };
        Err(Broken::new(rule, promised, words(content)))
    }

    /// True if a read of these blocks sent at `sent` may fail: the media harmed what some of them hold, or nothing is promised
    /// of them since the last power cut but that they can be written.
    #[must_use]
    pub fn may_fail(&self, mut blocks: Range<u64>, sent: Moment) -> bool {
        blocks.any(|block| self.shaky_until[place(block)] > sent || self.blocks[place(block)].may_fail(sent))
    }

    /// The media harmed a place that held `content` of `block`.
    pub fn harmed(&mut self, block: u64, content: Content) {
        if let Some(history) = self.blocks.get_mut(place(block)) {
            history.harmed(content);
        }
    }

    /// The media harmed what tells of `content` of `block` at the next mount.
    pub fn untold(&mut self, block: u64, content: Content) {
        if let Some(history) = self.blocks.get_mut(place(block)) {
            history.untold(content);
        }
    }

    /// The media harmed what tells of zeroes at the next mount: whose they are is not known.
    pub fn zeroes_untold(&mut self) {
        self.blocks.iter_mut().for_each(|history| history.untold(0));
    }

    /// The media harmed a place that held zeroes: whose they were is not known.
    pub fn zeroes_harmed(&mut self) {
        self.blocks.iter_mut().for_each(|history| history.harmed(0));
    }

    fn settled(&mut self, block: u64) {
        self.unsettled[place(block)] = false;
        let until = &mut self.shaky_until[place(block)];
        *until = (*until).min(self.now);
    }

    /// A block holds what nobody wrote, and need not hold anything else.
    pub fn unknown(&mut self, block: u64) {
        self.blocks[place(block)].unknown();
        self.settled(block);
    }

    /// Blocks from `count` on are gone.
    pub fn shrink(&mut self, count: u64) {
        assert!(count <= self.block_count(), "a device that shrinks has fewer blocks");
        self.blocks.truncate(place(count));
        self.is_pending.truncate(place(count));
        self.unsettled.truncate(place(count));
        self.shaky_until.truncate(place(count));
        self.pending.retain(|&block| block < count);
    }

    /// The power went.
    pub fn power_cut(&mut self) {
        for (block, history) in self.blocks.iter_mut().enumerate() {
            history.power_cut();
            self.unsettled[block] = true;
            if history.is_forgotten() {
                self.shaky_until[block] = Moment(u64::MAX);
            }
            self.is_pending[block] = false;
        }
        self.pending.clear();
    }
}

fn words(content: Content) -> String {
    match content {
        0 => "zeroes".to_owned(),
        write => format!("write {write}"),
    }
}

fn one_of(contents: &[Content]) -> String {
    let all: Vec<String> = contents.iter().map(|&content| words(content)).collect();
    all.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushed_blocks_survive_and_others_may_be_old_or_new() {
        let mut oracle = Oracle::new(4);
        for block in 0..3 {
            let sent = oracle.tick();
            oracle.sent(block, block + 10, sent, false);
            oracle.tick();
            oracle.made(block..block + 1, sent, block == 2, Moment(u64::MAX));
            if block == 0 {
                let flush = oracle.tick();
                oracle.tick();
                oracle.durable_before(flush, Moment(u64::MAX));
            }
        }
        oracle.power_cut();
        for (block, allowed) in [(0, &[10][..]), (1, &[0, 11]), (2, &[12]), (3, &[0])] {
            for content in 0..20 {
                let sound = oracle.clone().read(block, Moment(99), content).is_ok();
                assert_eq!(sound, allowed.contains(&content), "block {block}, write {content}");
            }
        }
        let broken = oracle.read(0, Moment(99), 0).expect_err("it was flushed");
        assert_eq!(broken.to_string(), "promised: block 0 holds write 10; found: zeroes");
    }
}
