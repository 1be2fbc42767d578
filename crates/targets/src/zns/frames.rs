//! The write buffer: frames of a write unit each, which zones fill block by block.
//!
//! A frame belongs to one unit of one zone from its first block until that unit can be read from media. Blocks come in order, or
//! anywhere in it if the zone has a random write area. Deliberately not here: which zone has which frame (`writer`).

use super::zone::UnitOfZone;
use ocssd_base::usize_of;
use ocssd_lightnvm::{BufId, Buffers};

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId(pub u32);

#[derive(Clone, Debug)]
struct Frame {
    buffer: BufId,
    unit: UnitOfZone,
    /// Blocks before this one are in it.
    filled: u32,
    /// Blocks that were placed in it, out of order; all of them `false` of others.
    placed: Vec<bool>,
    /// Blocks before the end that were never written.
    holes: u32,
    is_free: bool,
    /// The media failed it once.
    is_again: bool,
}

/// All frames of an instance.
#[derive(Clone, Debug)]
pub struct Frames {
    /// Sectors of a frame.
    unit: u32,
    frames: Vec<Frame>,
    free: Vec<FrameId>,
}

impl Frames {
    /// `count` free frames of `unit` sectors, whose buffers are taken now.
    pub fn new(count: u32, unit: u32, buffers: &mut Buffers) -> Self {
        assert!(count > 0 && unit > 0, "{count} frames of {unit} sectors");
        let frame = |_| Frame {
            buffer: buffers.take(unit),
            unit: 0,
            filled: 0,
            placed: vec![false; usize_of(unit)],
            holes: 0,
            is_free: true,
            is_again: false,
        };
        Self { unit, frames: (0..count).map(frame).collect(), free: (0..count).rev().map(FrameId).collect() }
    }

    fn get(&self, frame: FrameId) -> &Frame {
        &self.frames[usize_of(frame.0)]
    }

    fn get_mut(&mut self, frame: FrameId) -> &mut Frame {
        &mut self.frames[usize_of(frame.0)]
    }

    /// A free frame, for a unit of a zone.
    pub fn take(&mut self, unit: UnitOfZone) -> Option<FrameId> {
        let frame = self.free.pop()?;
        let entry = self.get_mut(frame);
        assert!(entry.is_free && entry.filled == 0, "{frame:?} is not free");
        (entry.is_free, entry.unit, entry.is_again, entry.holes) = (false, unit, false, 0);
        entry.placed.fill(false);
        Some(frame)
    }

    /// Blocks are placed in a frame, over what was there: gives its buffer.
    pub fn place(&mut self, frame: FrameId, at: u32, blocks: u32) -> BufId {
        let entry = self.get_mut(frame);
        assert!(blocks > 0 && entry.filled == 0, "{frame:?} takes no blocks out of order");
        assert!(!entry.is_free, "blocks are placed in {frame:?}, which is free");
        entry.placed[usize_of(at)..usize_of(at + blocks)].fill(true);
        entry.buffer
    }

    /// True if a frame has a block.
    pub fn has(&self, frame: FrameId, at: u32) -> bool {
        let entry = self.get(frame);
        at < entry.filled || entry.placed[usize_of(at)]
    }

    /// Where the last block placed in a frame ends.
    pub fn end(&self, frame: FrameId) -> u32 {
        let last = self.get(frame).placed.iter().rposition(|&is_there| is_there);
        last.map_or(0, |last| u32::try_from(last + 1).expect("within a unit"))
    }

    /// What a frame lacked of its first `blocks` was filled: it takes no more out of order.
    pub fn complete(&mut self, frame: FrameId, blocks: u32) {
        let entry = self.get_mut(frame);
        assert!(!entry.is_free && entry.filled == 0, "{frame:?} is complete already");
        let there = entry.placed[..usize_of(blocks)].iter().filter(|&&is_there| is_there).count();
        entry.holes = blocks - u32::try_from(there).expect("within a unit");
        entry.filled = blocks;
    }

    /// Blocks of a frame that were never written, and are in it as such.
    pub fn holes(&self, frame: FrameId) -> u32 {
        self.get(frame).holes
    }

    /// Blocks more are in a frame: gives its buffer, and where in it they begin.
    pub fn push(&mut self, frame: FrameId, blocks: u32) -> (BufId, u32) {
        assert!(blocks > 0, "no block goes to {frame:?}");
        let unit = self.unit;
        let entry = self.get_mut(frame);
        let at = entry.filled;
        entry.filled += blocks;
        assert!(!entry.is_free && entry.filled <= unit, "{frame:?} takes no more: {} sectors", entry.filled);
        (entry.buffer, at)
    }

    /// A frame is not needed any more.
    pub fn release(&mut self, frame: FrameId) {
        let entry = self.get_mut(frame);
        assert!(!entry.is_free, "{frame:?} is free already");
        (entry.is_free, entry.filled) = (true, 0);
        self.free.push(frame);
        assert!(self.free.len() <= self.frames.len(), "more frames are free than there are");
    }

    /// Where its content is.
    pub fn buffer(&self, frame: FrameId) -> BufId {
        self.get(frame).buffer
    }

    /// Blocks in it.
    pub fn filled(&self, frame: FrameId) -> u32 {
        self.get(frame).filled
    }

    /// Blocks it still takes.
    pub fn room(&self, frame: FrameId) -> u32 {
        self.unit - self.get(frame).filled
    }

    /// The unit it is for.
    pub fn unit(&self, frame: FrameId) -> UnitOfZone {
        assert!(!self.get(frame).is_free, "{frame:?} is of no unit");
        self.get(frame).unit
    }

    /// The media failed it; says whether they had before.
    pub fn failed(&mut self, frame: FrameId) -> bool {
        assert!(self.get(frame).filled > 0, "{frame:?} failed with nothing in it");
        std::mem::replace(&mut self.get_mut(frame).is_again, true)
    }

    /// True of a frame that the media failed before.
    pub fn is_again(&self, frame: FrameId) -> bool {
        self.get(frame).is_again
    }

    /// Frames in use.
    pub fn in_use(&self) -> usize {
        self.frames.len() - self.free.len()
    }

    /// Asserts that no frame was lost.
    pub fn check(&self) {
        let free = self.frames.iter().filter(|frame| frame.is_free).count();
        assert_eq!(free, self.free.len(), "a free frame is not listed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn blocks_are_placed_anywhere_until_the_frame_is_complete() {
        let geometry = Geometry::example(1, 1, 4, 24, 4);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let mut frames = Frames::new(2, 8, &mut buffers);
        let frame = frames.take(3).expect("free");
        let buffer = frames.place(frame, 5, 2);
        assert_eq!(frames.place(frame, 1, 1), buffer);
        frames.place(frame, 5, 1);
        let there: Vec<u32> = (0..8).filter(|&at| frames.has(frame, at)).collect();
        assert_eq!((there, frames.end(frame), frames.filled(frame)), (vec![1, 5, 6], 7, 0));
        frames.complete(frame, 7);
        assert_eq!((frames.holes(frame), frames.filled(frame), frames.has(frame, 0)), (4, 7, true));
        frames.release(frame);
        let again = frames.take(4).expect("free");
        assert_eq!((again, frames.holes(again), frames.end(again)), (frame, 0, 0), "nothing is left in it");
        frames.check();
    }
}
