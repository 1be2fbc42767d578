//! Pages of the target's own on their way to media: of the log, or of a checkpoint.
//!
//! A page that the media failed keeps its buffer and goes out again, elsewhere. Deliberately not here: what is in a page.

use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_ftl::Append;
use ocssd_lightnvm::{BufId, Buffers};
use std::collections::VecDeque;

/// A page and where it is written.
#[derive(Clone, Copy, Debug)]
struct Flying<I> {
    id: I,
    buffer: BufId,
    at: Append,
}

/// Pages of one kind. `I` is a page's name.
#[derive(Clone, Debug)]
pub struct PageIo<I> {
    /// Sectors of a page.
    sectors: u32,
    spare: Vec<BufId>,
    flying: Slab<Flying<I>>,
    again: VecDeque<(I, BufId)>,
}

impl<I: Copy> PageIo<I> {
    /// Buffers for `depth` pages of `sectors`, taken now.
    pub fn new(sectors: u32, depth: u32, buffers: &mut Buffers) -> Self {
        assert!(sectors > 0 && depth > 0, "{depth} pages of {sectors} sectors");
        Self {
            sectors,
            spare: (0..depth).map(|_| buffers.take_whole(sectors)).collect(),
            flying: Slab::new(depth),
            again: VecDeque::with_capacity(usize_of(depth)),
        }
    }

    /// Sectors of a page.
    pub const fn sectors(&self) -> u32 {
        self.sectors
    }

    /// True if a page waits that failed.
    pub fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The page that waits first.
    pub fn next_again(&self) -> Option<I> {
        self.again.front().map(|&(id, _)| id)
    }

    /// A buffer for a new page.
    pub fn spare(&self) -> Option<BufId> {
        self.spare.last().copied()
    }

    /// The page to write again, or the new one that was put into the spare buffer: it goes to `at`.
    pub fn issue(&mut self, fresh: Option<I>, at: Append) -> (SlabKey, BufId) {
        assert_eq!(at.sector % self.sectors, 0, "a page begins within another");
        let (id, buffer) = match fresh {
            Some(id) => (id, self.spare.pop().expect("a buffer was spare")),
            None => self.again.pop_front().expect("a page waits"),
        };
        let key = self.flying.insert(Flying { id, buffer, at });
        (key.unwrap_or_else(|_| unreachable!("there are as many places as buffers")), buffer)
    }

    /// A write of a page ended.
    pub fn ended(&mut self, key: SlabKey, is_written: bool) -> (I, Append) {
        let Flying { id, buffer, at } = self.flying.remove(key);
        if is_written {
            self.spare.push(buffer);
        } else {
            self.again.push_back((id, buffer));
        }
        (id, at)
    }
}
