//! Memory that payload of block requests lies in while the drive has it: taken as it is needed, kept for the next.
//!
//! Buffers come in sizes of powers of two sectors. Deliberately not here: the memory of the caller; whoever has both
//! copies.

use crate::boundary::Memory;
use crate::failure::Failure;
use ocssd_lightnvm::{BufId, Buffers};

/// Most bytes lent at once for a drive (chosen: 64 requests of 1 MiB, or 16 384 of 4 KiB).
const LENT_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of one buffer (chosen: the longest flush that `eleos` takes). What is longer is staged.
pub const CONTENT_BYTES_MAX: usize = 16 << 20;
/// Most buffers of a request: its content, and a list that speaks of it.
const PIECES_MAX: usize = 2;

/// A buffer on loan.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The buffer.
    pub buffer: BufId,
    /// Its size: 2 to this power sectors.
    power: u32,
}

/// Buffers by size.
#[derive(Debug, Default)]
pub struct Payload {
    spare: [Vec<BufId>; 32],
    lent_bytes: u64,
}

impl Payload {
    /// A buffer of at least so many sectors.
    ///
    /// # Errors
    /// EAGAIN if that would be more than is lent at once.
    pub fn take(&mut self, sectors: u32, buffers: &mut Buffers) -> Result<Piece, Failure> {
        let power = sectors.max(1).next_power_of_two().trailing_zeros();
        let bytes = Self::bytes(power, buffers);
        if self.lent_bytes + bytes > LENT_BYTES_MAX {
            let text = format!(
                "{} bytes of requests are in progress, as many as there is memory for; poll first",
                self.lent_bytes
            );
            return Err(Failure::new(libc::EAGAIN, text));
        }
        self.lent_bytes += bytes;
        let index = usize::try_from(power).expect("32 bits fit an index");
        let buffer = self.spare[index].pop().unwrap_or_else(|| buffers.take(1 << power));
        Ok(Piece { buffer, power })
    }

    /// It comes back.
    pub fn give_back(&mut self, piece: Piece, buffers: &Buffers) {
        self.lent_bytes -= Self::bytes(piece.power, buffers);
        self.spare[usize::try_from(piece.power).expect("32 bits fit an index")].push(piece.buffer);
    }

    fn bytes(power: u32, buffers: &Buffers) -> u64 {
        let sector = u64::try_from(buffers.format().data_bytes).expect("an index fits 64 bits");
        sector << power
    }

    /// All of them come back.
    pub fn give_all_back(&mut self, pieces: Pieces, buffers: &Buffers) {
        pieces.0.into_iter().flatten().for_each(|piece| self.give_back(piece, buffers));
    }
}

/// The buffers of a request, in the order in which they were lent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pieces([Option<Piece>; PIECES_MAX]);

impl Pieces {
    /// The first.
    pub fn first(&self) -> Option<BufId> {
        self.0[0].map(|piece| piece.buffer)
    }
}

/// Buffers that are lent for a request while it is made.
pub struct Loan<'a> {
    payload: &'a mut Payload,
    /// The pool.
    pub buffers: &'a mut Buffers,
    pieces: Pieces,
}

impl<'a> Loan<'a> {
    /// Nothing yet.
    pub fn new(payload: &'a mut Payload, buffers: &'a mut Buffers) -> Self {
        Self { payload, buffers, pieces: Pieces::default() }
    }

    /// A buffer with room for so many bytes.
    ///
    /// # Errors
    /// EAGAIN if there is none now, EFBIG if there never is.
    ///
    /// # Panics
    /// If the request has as many as one has.
    pub fn room(&mut self, bytes: usize) -> Result<BufId, Failure> {
        if bytes > CONTENT_BYTES_MAX {
            let text =
                format!("{bytes} bytes are more than the {CONTENT_BYTES_MAX} of one request; ask in parts");
            return Err(Failure::new(libc::EFBIG, text));
        }
        let sectors = bytes.div_ceil(self.buffers.format().data_bytes);
        let sectors = u32::try_from(sectors).expect("16 MiB have fewer than 2^32 sectors");
        let free = self.pieces.0.iter_mut().find(|piece| piece.is_none());
        let place = free.expect("a request has at most two buffers");
        let piece = self.payload.take(sectors, self.buffers)?;
        *place = Some(piece);
        Ok(piece.buffer)
    }

    /// A buffer that begins with what lies in the caller's memory.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub fn copy_of(&mut self, memory: Memory) -> Result<BufId, Failure> {
        let buffer = self.room(memory.bytes())?;
        // SAFETY: the caller lets what is written be read during the call that submits it.
        let from = unsafe { memory.as_shared() };
        self.buffers.bytes_mut(buffer, 0, from.len()).copy_from_slice(from);
        Ok(buffer)
    }

    /// What was lent is the request's.
    pub fn keep(self) -> Pieces {
        self.pieces
    }

    /// What was lent comes back: there is no request.
    pub fn give_back(self) {
        self.payload.give_all_back(self.pieces, self.buffers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload as Kind, PayloadFormat};

    #[test]
    fn sizes_are_rounded_up_kept_and_bounded() {
        let mut buffers = Buffers::new(PayloadFormat::new(Kind::Bytes, &Geometry::example(1, 1, 1, 8, 8)));
        let mut payload = Payload::default();
        let three = payload.take(3, &mut buffers).unwrap();
        assert_eq!(buffers.sectors(three.buffer), 4);
        payload.give_back(three, &buffers);
        assert_eq!(payload.take(4, &mut buffers).unwrap().buffer, three.buffer);
        let lent = std::iter::from_fn(|| payload.take(1024, &mut buffers).ok()).count();
        assert_eq!(lent, 15, "15 of 4 MiB and one of 16 KiB are all that fits 64 MiB");
        assert_eq!(payload.take(1024, &mut buffers).unwrap_err().errno, libc::EAGAIN);
        assert!(payload.take(1, &mut buffers).is_ok());
    }
}
