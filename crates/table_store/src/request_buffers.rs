//! Buffers that requests carry their bytes in.
//!
//! The one that was given back last is taken next: it is still in the processor's caches, and is found without a look at the
//! others. The pool of a host goes round instead, past every buffer that targets hold, which is 3 % of a read of a block.
//! Deliberately not here: what is in them (`shared_drive`).

use ocssd_lightnvm::{BufId, Buffers};

/// Whole buffers that nobody uses, in stacks by size. Sizes are powers of two, so that buffers are used again.
#[derive(Default)]
pub(crate) struct RequestBuffers {
    /// Stack `n` has buffers of `2^n` sectors: as many as requests of that size were there at once.
    spare: Vec<Vec<BufId>>,
}

impl RequestBuffers {
    /// A whole buffer for `bytes` bytes.
    pub fn take(&mut self, bytes: usize, buffers: &mut Buffers) -> BufId {
        let sectors = bytes.div_ceil(buffers.format().sector_bytes).max(1).next_power_of_two();
        let size = usize::try_from(sectors.trailing_zeros()).expect("below 64");
        let spare = self.spare.get_mut(size).and_then(Vec::pop);
        spare.unwrap_or_else(|| buffers.take_whole(u32::try_from(sectors).expect("a request is short")))
    }

    /// Takes back one of [`Self::take`].
    pub fn give_back(&mut self, buffer: BufId, buffers: &Buffers) {
        let sectors = buffers.sectors(buffer);
        assert!(sectors.is_power_of_two(), "a buffer of {sectors} sectors is no request's");
        let size = usize::try_from(sectors.trailing_zeros()).expect("below 32");
        if self.spare.len() <= size {
            self.spare.resize_with(size + 1, Vec::new);
        }
        self.spare[size].push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn the_buffer_that_was_given_back_last_is_taken_next() {
        let format = PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 1, 1, 1));
        let sector = format.sector_bytes;
        let mut buffers = Buffers::new(format);
        let mut requests = RequestBuffers::default();
        let [first, second] = [3 * sector, 4 * sector].map(|bytes| requests.take(bytes, &mut buffers));
        let small = requests.take(0, &mut buffers);
        assert_eq!([first, second, small].map(|buffer| buffers.sectors(buffer)), [4, 4, 1]);
        for buffer in [first, small, second] {
            requests.give_back(buffer, &buffers);
        }
        assert_eq!(requests.take(2 * sector + 1, &mut buffers), second);
        assert_eq!(requests.take(4 * sector, &mut buffers), first);
        assert_eq!(requests.take(1, &mut buffers), small);
        assert_eq!(buffers.in_use(), 3, "none was made beside them");
    }
}
