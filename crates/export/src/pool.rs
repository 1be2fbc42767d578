//! Pieces of memory that payload lies in between a socket and a target: taken at start, of a few sizes, and lent.
//!
//! A piece is a buffer of [`Buffers`]; what a client sends is received into it, and the target reads it there; what a
//! target reads is sent from it. Deliberately not here: who may have how many; who finds none waits.

use ocssd_lightnvm::{BufId, Buffers};

/// A buffer on loan.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// The buffer.
    pub buffer: BufId,
    class: usize,
}

/// Pieces of one size.
#[derive(Clone, Debug)]
struct Class {
    bytes: usize,
    spare: Vec<BufId>,
    count: usize,
}

/// All pieces.
#[derive(Clone, Debug)]
pub struct Pool {
    classes: Vec<Class>,
}

/// Bytes of a piece and how many there are (chosen). 4 KiB is what databases and file systems ask for; 1024 pieces are 32
/// requests at once of 32 clients. 64 KiB and 256 KiB serve what is copied or streamed; a whole request of the largest size
/// (32 MiB) is 128 of the largest pieces, with as many left for others. 4 + 16 + 64 = 84 MiB, touched as they are used.
const SIZES: [(usize, usize); 3] = [(4 << 10, 1024), (64 << 10, 256), (PIECE_BYTES_MAX, 256)];

/// Bytes of the largest piece: no job carries more.
pub const PIECE_BYTES_MAX: usize = 256 << 10;

impl Pool {
    /// A pool of the usual sizes.
    #[must_use]
    pub fn new(buffers: &mut Buffers) -> Self {
        Self::with_counts(buffers, SIZES.map(|(_, count)| count))
    }

    /// A pool of this many small, middle and large pieces.
    #[must_use]
    pub fn with_counts(buffers: &mut Buffers, counts: [usize; 3]) -> Self {
        let sector_bytes = buffers.format().data_bytes;
        let classes = SIZES.iter().zip(counts).map(|(&(bytes, _), count)| {
            let sectors = u32::try_from(bytes.div_ceil(sector_bytes)).expect("a piece has few sectors");
            // A search for a spare buffer per piece would be quadratic in a pool that is filled elsewhere; here each is new.
            let spare = (0..count).map(|_| buffers.take(sectors)).collect();
            Class { bytes, spare, count }
        });
        Self { classes: classes.collect() }
    }

    /// A piece for `bytes` bytes, at most [`PIECE_BYTES_MAX`]: of the smallest size that holds them, or larger if those are
    /// all lent. `None` if there is none.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> Option<Piece> {
        assert!(bytes <= PIECE_BYTES_MAX, "a piece of {bytes} bytes was asked for");
        let mut fitting = self.classes.iter_mut().enumerate().filter(|(_, class)| class.bytes >= bytes);
        fitting.find_map(|(class, sizes)| Some(Piece { buffer: sizes.spare.pop()?, class }))
    }

    /// How many pieces that hold `bytes` bytes are not lent.
    #[must_use]
    pub fn spare(&self, bytes: usize) -> usize {
        self.classes.iter().filter(|class| class.bytes >= bytes).map(|class| class.spare.len()).sum()
    }

    /// The piece comes back.
    #[allow(clippy::needless_pass_by_value, reason = "a piece that was given back is nobody's")]
    pub fn give_back(&mut self, piece: Piece) {
        let class = &mut self.classes[piece.class];
        assert!(class.spare.len() < class.count, "more pieces came back than were lent");
        class.spare.push(piece.buffer);
    }

    /// How many are lent.
    #[must_use]
    pub fn lent(&self) -> usize {
        self.classes.iter().map(|class| class.count - class.spare.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::testing::buffers;

    #[test]
    fn the_smallest_piece_that_holds_is_lent_and_a_larger_one_when_those_are_gone() {
        let mut buffers = buffers();
        let mut pool = Pool::with_counts(&mut buffers, [1, 1, 1]);
        let small = pool.take(512).unwrap();
        assert_eq!(buffers.sectors(small.buffer), 1);
        let next = pool.take(4096).unwrap();
        assert_eq!(buffers.sectors(next.buffer), 16);
        let large = pool.take(PIECE_BYTES_MAX).unwrap();
        assert_eq!((pool.take(1), pool.lent()), (None, 3));
        for piece in [large, small, next] {
            pool.give_back(piece);
        }
        assert_eq!(pool.lent(), 0);
    }
}
