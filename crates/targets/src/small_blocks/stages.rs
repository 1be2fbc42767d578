//! The buffers small blocks need of their own: a sector for each edge, and a few larger ones for what must be copied.
//!
//! Edges are held from their read to their write, copies only while the inner target works on them; so who waits for a
//! copy waits for nobody who waits. Deliberately not here: what is in them.

use ocssd_lightnvm::{BufId, Buffers};

/// Edges at once: 1 MiB of 4 KiB sectors, a queue of 128 requests with an edge on both sides (chosen).
pub(super) const EDGES: u32 = 256;
/// Copies at once (chosen: with their size 2 MiB, some 400 us of a drive that writes 5 GB/s).
pub(super) const COPIES: u32 = 32;
/// Sectors of a copy: 64 KiB of 4 KiB sectors, what Linux's pblk sends by default on Westlake (`min_write_pgs`).
pub(super) const COPY_SECTORS: u32 = 16;

/// Buffers not lent.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    edges: Vec<BufId>,
    copies: Vec<BufId>,
}

impl Stages {
    /// Takes all of them.
    pub fn take(buffers: &mut Buffers) -> Self {
        Self {
            edges: (0..EDGES).map(|_| buffers.take(1)).collect(),
            copies: (0..COPIES).map(|_| buffers.take(COPY_SECTORS)).collect(),
        }
    }

    /// Buffers for so many edges, or none at all.
    pub fn lend_edges(&mut self, wanted: [bool; 2]) -> Option<[Option<BufId>; 2]> {
        let count = wanted.iter().filter(|&&wanted| wanted).count();
        assert!(count > 0, "a merge without edges");
        if self.edges.len() < count {
            return None;
        }
        Some(wanted.map(|wanted| if wanted { self.edges.pop() } else { None }))
    }

    /// An edge's buffer is back.
    pub fn return_edge(&mut self, buffer: BufId) {
        assert!(!self.edges.contains(&buffer), "an edge's buffer comes back twice");
        self.edges.push(buffer);
    }

    /// A buffer for a copy.
    pub fn lend_copy(&mut self) -> Option<BufId> {
        self.copies.pop()
    }

    /// A copy's buffer is back.
    pub fn return_copy(&mut self, buffer: BufId) {
        assert!(!self.copies.contains(&buffer), "a copy's buffer comes back twice");
        self.copies.push(buffer);
    }

    /// Buffers lent: of edges, and of copies.
    pub fn lent(&self) -> (usize, usize) {
        let all = |count: u32| usize::try_from(count).expect("few");
        (all(EDGES) - self.edges.len(), all(COPIES) - self.copies.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn edges_are_lent_all_or_none_and_come_back() {
        let geometry = Geometry::example(1, 1, 4, 48, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let mut stages = Stages::take(&mut buffers);
        assert_eq!(stages.lent(), (0, 0));
        let mut lent = Vec::new();
        for _ in 0..EDGES / 2 {
            lent.extend(stages.lend_edges([true, true]).expect("two are left").into_iter().flatten());
        }
        assert_eq!((stages.lent(), lent.len()), ((256, 0), 256));
        assert_eq!(stages.lend_edges([true, false]), None);
        let back = lent.pop().expect("one is lent");
        stages.return_edge(back);
        assert_eq!((stages.lend_edges([true, true]), stages.lent()), (None, (255, 0)));
        assert_eq!(stages.lend_edges([false, true]), Some([None, Some(back)]));
        assert_eq!(buffers.sectors(back), 1);
    }

    #[test]
    fn copies_are_lent_until_there_are_none() {
        let geometry = Geometry::example(1, 1, 4, 48, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let mut stages = Stages::take(&mut buffers);
        let lent: Vec<BufId> = std::iter::from_fn(|| stages.lend_copy()).collect();
        assert_eq!((lent.len(), stages.lent()), (32, (0, 32)));
        assert!(lent.iter().all(|&copy| buffers.sectors(copy) == COPY_SECTORS));
        stages.return_copy(lent[5]);
        assert_eq!((stages.lent(), stages.lend_copy()), ((0, 31), Some(lent[5])));
    }
}
