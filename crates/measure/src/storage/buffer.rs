//! Memory that direct I/O takes: it begins at a multiple of 4 KiB, more than any common disk asks for.

/// Where buffers begin, in bytes. Direct I/O asks for the logical block of the disk, 512 or 4096 (open(2)).
pub const ALIGNMENT: usize = 4096;

/// A piece of memory that does not move.
#[derive(Debug)]
pub struct AlignedBuffer {
    storage: Vec<u8>,
    first: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Memory of `length` bytes, zeroed.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let storage = vec![0; length + ALIGNMENT];
        let first = storage.as_ptr().align_offset(ALIGNMENT);
        assert!(first < ALIGNMENT, "an address of bytes can be aligned");
        Self { storage, first, length }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.first..][..self.length]
    }

    /// The bytes, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.first..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_as_long_as_asked() {
        for length in [512, 4096, 70_000] {
            let mut buffer = AlignedBuffer::new(length);
            assert_eq!(buffer.bytes().as_ptr().align_offset(ALIGNMENT), 0, "{length}");
            buffer.bytes_mut().fill(7);
            assert_eq!(buffer.bytes().len(), length);
        }
    }
}
