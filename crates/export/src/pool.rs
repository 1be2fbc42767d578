//! Pieces of memory that payload lies in between a socket and a target: taken at start, of a few sizes, and lent in shares.
//!
//! A piece is a buffer of [`Buffers`]; what a client sends is received into it, and the target reads it there; what a
//! target reads is sent from it. Of each size a client has its share ([`Shares`]); who finds none waits. Deliberately not here:
//! who waits, and who is dropped.

use crate::shares::{ClientId, Shares, Supply, Want};
use ocssd_lightnvm::interface;
use ocssd_lightnvm::{BufId, Buffers};

/// A buffer on loan.
#[derive(Debug, PartialEq, Eq)]
pub struct PoolPiece {
    /// The buffer.
    pub buffer: BufId,
    class: usize,
    client: ClientId,
}

impl PoolPiece {
    /// Some of its bytes, as a target's request names them.
    #[must_use]
    pub const fn part(&self, first_byte: u32, bytes: u32) -> interface::Piece {
        interface::Piece { buffer: self.buffer, first_byte, bytes }
    }
}

/// Pieces of one size.
#[derive(Clone, Debug)]
struct Class {
    bytes: usize,
    spare: Vec<BufId>,
    shares: Shares,
}

impl Class {
    /// Such a piece may be lent to who wants so many bytes.
    const fn fits(&self, bytes: usize) -> bool {
        bytes <= self.bytes && (self.bytes <= PIECE_BYTES_MAX || bytes > PIECE_BYTES_MAX)
    }
}

/// All pieces.
#[derive(Clone, Debug)]
pub struct Pool {
    classes: Vec<Class>,
    /// A piece came back since [`Self::take_returned`] was asked.
    returned: bool,
    /// Somebody found none although it held less than it is guaranteed, since [`Self::take_starved`] was asked.
    starved: bool,
}

/// Bytes of a piece.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, PIECE_BYTES_MAX];

/// Bytes of a piece that holds a whole transaction, for protocols whose commands are not cut: OX's 1 MiB (CIDR 2020 section 3.2).
pub const WHOLE_BYTES_MAX: usize = 1 << 20;

/// How many of these there are (chosen): whoever wants shorter ones gets none of them, and 32 clients have the two that a compare
/// takes. 96 MiB, touched as they are used.
const WHOLE: Supply = Supply { count: 96, reserve: 64, guarantee: 2 };

/// How many there are of each size (chosen). 4 KiB is what databases and file systems ask for: 64 clients have 32 requests of
/// it at once whatever others hold. 64 KiB and 256 KiB serve what is copied or streamed: 64 clients have four of each. The 128
/// largest pieces that are kept back for nobody hold a whole request of the largest size (32 MiB). 16 + 32 + 96 = 144 MiB, touched
/// as they are used.
const SUPPLIES: [Supply; 3] = [
    Supply { count: 4096, reserve: 2048, guarantee: 32 },
    Supply { count: 512, reserve: 256, guarantee: 4 },
    Supply { count: 384, reserve: 256, guarantee: 4 },
];

/// Bytes of the largest piece of the usual sizes: no job carries more, but for one that is not to be cut.
pub const PIECE_BYTES_MAX: usize = 256 << 10;

impl Pool {
    /// A pool of the usual sizes.
    #[must_use]
    pub fn new(buffers: &mut Buffers) -> Self {
        let sizes = SIZES.into_iter().zip(SUPPLIES).chain([(WHOLE_BYTES_MAX, WHOLE)]);
        Self::of(buffers, sizes)
    }

    /// A pool of this many small, middle and large pieces, of which none is kept back.
    #[must_use]
    pub fn with_counts(buffers: &mut Buffers, counts: [u32; 3]) -> Self {
        Self::with_supplies(buffers, counts.map(|count| Supply { count, reserve: 0, guarantee: 1 }))
    }

    /// A pool of these small, middle and large pieces.
    #[must_use]
    pub fn with_supplies(buffers: &mut Buffers, supplies: [Supply; 3]) -> Self {
        let whole = Supply { count: 2, reserve: 0, guarantee: 2 };
        Self::of(buffers, SIZES.into_iter().zip(supplies).chain([(WHOLE_BYTES_MAX, whole)]))
    }

    fn of(buffers: &mut Buffers, sizes: impl Iterator<Item = (usize, Supply)>) -> Self {
        let sector_bytes = buffers.format().data_bytes;
        let classes = sizes.map(|(bytes, supply)| {
            let sectors = u32::try_from(bytes.div_ceil(sector_bytes)).expect("a piece has few sectors");
            // A search for a spare buffer per piece would be quadratic in a pool that is filled elsewhere; here each is new.
            let spare = (0..supply.count).map(|_| buffers.take(sectors)).collect();
            Class { bytes, spare, shares: Shares::new(supply) }
        });
        Self { classes: classes.collect(), returned: false, starved: false }
    }

    /// A piece for `bytes` bytes, at most [`WHOLE_BYTES_MAX`]: of the smallest size that holds them, or larger if the client
    /// has its share of those. `None` if it has its share of all.
    #[must_use]
    pub fn take(&mut self, client: ClientId, bytes: usize, want: Want) -> Option<PoolPiece> {
        assert!(bytes <= WHOLE_BYTES_MAX, "a piece of {bytes} bytes was asked for");
        let mut fitting = self.classes.iter_mut().enumerate().filter(|(_, class)| class.fits(bytes));
        let found = fitting.find_map(|(number, class)| {
            if class.shares.room(client, want) == 0 {
                return None;
            }
            class.shares.take(client);
            let buffer = class.spare.pop().expect("there are as many as are not lent");
            Some(PoolPiece { buffer, class: number, client })
        });
        if found.is_none() {
            let mut fitting = self.classes.iter().filter(|class| class.fits(bytes));
            self.starved |= fitting.any(|class| class.shares.is_starved(client));
        }
        found
    }

    /// How many pieces that hold `bytes` bytes a client may have now.
    #[must_use]
    pub fn room(&self, client: ClientId, bytes: usize, want: Want) -> u32 {
        let fitting = self.classes.iter().filter(|class| class.fits(bytes));
        fitting.map(|class| class.shares.room(client, want)).sum()
    }

    /// The client needs so many of the largest pieces together; see `Shares::claim`.
    pub fn claim(&mut self, client: ClientId, count: u32) -> bool {
        self.largest().claim(client, count)
    }

    /// The client has what it claimed, or does not want it any more.
    pub fn end_claim(&mut self, client: ClientId) {
        self.largest().end_claim(client);
        // Those who found nothing because of it may find some.
        self.returned = true;
    }

    fn largest(&mut self) -> &mut Shares {
        let class = self.classes.iter_mut().find(|class| class.bytes == PIECE_BYTES_MAX);
        &mut class.expect("it is one of the sizes").shares
    }

    /// The piece comes back.
    #[allow(clippy::needless_pass_by_value, reason = "a piece that was given back is nobody's")]
    pub fn give_back(&mut self, piece: PoolPiece) {
        let class = &mut self.classes[piece.class];
        class.shares.give_back(piece.client);
        class.spare.push(piece.buffer);
        self.returned = true;
    }

    /// How many are lent.
    #[must_use]
    pub fn lent(&self) -> u32 {
        self.classes.iter().map(|class| class.shares.lent()).sum()
    }

    /// The client holds more than its part, of some size, while others hold some too.
    #[must_use]
    pub fn is_over(&self, client: ClientId) -> bool {
        self.classes.iter().any(|class| class.shares.is_over(client))
    }

    /// The client holds any.
    #[must_use]
    pub fn is_holder(&self, client: ClientId) -> bool {
        self.classes.iter().any(|class| class.shares.held(client) > 0)
    }

    /// Whether a piece came back since this was asked last.
    pub const fn take_returned(&mut self) -> bool {
        std::mem::replace(&mut self.returned, false)
    }

    /// The same, without forgetting it.
    #[must_use]
    pub const fn has_returned(&self) -> bool {
        self.returned
    }

    /// Whether somebody did not find what it is guaranteed since this was asked last: more clients than the reserve is for hold
    /// what they are guaranteed.
    pub const fn take_starved(&mut self) -> bool {
        std::mem::replace(&mut self.starved, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::testing::buffers;

    const ONE: ClientId = ClientId(1);
    const OTHER: ClientId = ClientId(2);

    #[test]
    fn the_smallest_piece_that_holds_is_lent_and_a_larger_one_when_those_are_gone() {
        let mut buffers = buffers();
        let mut pool = Pool::with_counts(&mut buffers, [1, 1, 1]);
        let small = pool.take(ONE, 512, Want::Share).unwrap();
        assert_eq!(buffers.sectors(small.buffer), 1);
        let next = pool.take(OTHER, 4096, Want::Share).unwrap();
        assert_eq!(buffers.sectors(next.buffer), 16);
        let large = pool.take(ONE, PIECE_BYTES_MAX, Want::Share).unwrap();
        assert_eq!((pool.take(ONE, 1, Want::Last), pool.lent()), (None, 3));
        for piece in [large, small, next] {
            pool.give_back(piece);
        }
        assert_eq!(pool.lent(), 0);
    }

    #[test]
    fn a_client_that_took_all_it_may_leaves_others_what_they_are_guaranteed() {
        let mut buffers = buffers();
        let supply = |count| Supply { count, reserve: count / 2, guarantee: 2 };
        let mut pool = Pool::with_supplies(&mut buffers, [supply(8), supply(8), supply(8)]);
        let held: Vec<PoolPiece> = std::iter::from_fn(|| pool.take(ONE, 512, Want::Share)).collect();
        assert_eq!(held.len(), 12, "of each size its two, and half of the common four");
        let others: Vec<PoolPiece> =
            std::iter::from_fn(|| pool.take(OTHER, PIECE_BYTES_MAX, Want::Share)).collect();
        assert!(others.len() >= 2, "{}", others.len());
        assert!(!pool.take_returned() && !pool.take_starved());
        held.into_iter().chain(others).for_each(|piece| pool.give_back(piece));
        assert!(pool.take_returned() && !pool.take_returned());
    }

    #[test]
    fn who_does_not_find_what_it_is_guaranteed_is_noticed() {
        let mut buffers = buffers();
        let mut pool = Pool::with_counts(&mut buffers, [0, 0, 1]);
        let piece = pool.take(ONE, 1, Want::Share).unwrap();
        assert_eq!((pool.take(ONE, 1, Want::Share), pool.take_starved()), (None, false), "it has its share");
        assert_eq!((pool.take(OTHER, 1, Want::Share), pool.take_starved()), (None, true));
        assert!(!pool.take_starved(), "it is told once");
        pool.give_back(piece);
    }

    #[test]
    fn a_whole_transaction_has_pieces_that_nobody_else_gets() {
        let mut buffers = buffers();
        let mut pool = Pool::with_counts(&mut buffers, [1, 1, 1]);
        let whole = pool.take(ONE, PIECE_BYTES_MAX + 1, Want::Share).unwrap();
        assert_eq!(buffers.sectors(whole.buffer), 256);
        assert_eq!(pool.room(ONE, WHOLE_BYTES_MAX, Want::Share), 1);
        assert_eq!(pool.room(ONE, PIECE_BYTES_MAX, Want::Share), 1, "of the usual sizes");
        pool.give_back(whole);
    }

    /// The largest requests there are get all the memory they need, however small the share of one that is not alone.
    #[test]
    fn a_request_of_the_largest_size_fits_what_is_common() {
        let [_, _, largest] = SUPPLIES;
        let pieces = usize::try_from(largest.count - largest.reserve + largest.guarantee).unwrap();
        let needed = usize::try_from(crate::nbd::wire::REQUEST_BYTES_MAX).unwrap() / PIECE_BYTES_MAX + 1;
        assert!(pieces >= needed, "{pieces} of {needed} pieces");
    }
}
