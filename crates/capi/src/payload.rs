//! Memory that payload of block requests lies in while the drive has it: taken as it is needed, kept for the next.
//!
//! Buffers come in sizes of powers of two sectors. Deliberately not here: the memory of the caller; whoever has both
//! copies.

use crate::failure::Failure;
use ocssd_lightnvm::{BufId, Buffers};

/// Most bytes lent at once for a drive (chosen: 64 requests of the largest size, or 16 384 of 4 KiB).
const LENT_BYTES_MAX: u64 = 64 << 20;

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
