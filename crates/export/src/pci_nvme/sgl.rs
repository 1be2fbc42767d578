//! Scatter gather lists: a command's data as blocks of any size and place.
//!
//! Source: NVMe base 1.4 section 4.4.

use super::memory::{GuestMemory, Segment};
use ocssd_lightnvm::Status;
use ocssd_nvme::HostAddress;
use ocssd_nvme::sgl::{SglDescriptor, SglKind};

/// Descriptors of one command (chosen: twice what a transfer of 4 MiB in pages needs, so that no guest keeps the server
/// walking).
const DESCRIPTORS_MAX: usize = 2048;

/// SGLS of Identify Controller: no alignment is asked for (bits 1:0 = 01b), bit buckets (16), metadata at any byte (17),
/// lists longer than the data (18), and MPTR may point to a descriptor (19).
pub(super) const SGLS: u32 = 1 | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 19;

/// What is looked for while a list is walked.
struct Walk<'a> {
    left: usize,
    to_host: bool,
    seen: usize,
    segments: &'a mut Vec<Segment>,
}

/// Appends the segments that hold `bytes` bytes, `to_host` or from it.
///
/// # Errors
/// The statuses of malformed lists; Data Transfer Error if one is not in memory.
pub(super) fn walk<M: GuestMemory>(
    memory: &M,
    first: &SglDescriptor,
    (bytes, to_host): (usize, bool),
    segments: &mut Vec<Segment>,
) -> Result<(), Status> {
    if bytes == 0 {
        return Ok(());
    }
    let mut walk = Walk { left: bytes, to_host, seen: 0, segments };
    let mut next = walk.take(first)?;
    while let Some(segment) = next {
        if walk.left == 0 {
            return Ok(());
        }
        next = walk.segment(memory, &segment)?;
    }
    if walk.left > 0 { Err(Status::INVALID_SGL_LENGTH) } else { Ok(()) }
}

impl Walk<'_> {
    /// A descriptor of data is taken; one of descriptors comes back, to be followed.
    fn take(&mut self, descriptor: &SglDescriptor) -> Result<Option<SglDescriptor>, Status> {
        self.seen += 1;
        if self.seen > DESCRIPTORS_MAX {
            return Err(Status::INVALID_SGL_COUNT);
        }
        // Subtype 0: the address is one of memory. All others belong to fabrics.
        if descriptor.subtype != 0 {
            return Err(Status::INVALID_SGL_TYPE);
        }
        let length = usize::try_from(descriptor.length_bytes).expect("32 bits fit an index");
        let at = match descriptor.kind {
            SglKind::DataBlock => Some(HostAddress(descriptor.address)),
            SglKind::BitBucket if self.to_host => None,
            // A bucket of data for the drive holds nothing.
            SglKind::BitBucket => return Ok(None),
            SglKind::Segment | SglKind::LastSegment => return Ok(Some(*descriptor)),
            _ => return Err(Status::INVALID_SGL_TYPE),
        };
        let used = length.min(self.left);
        if used > 0 {
            self.segments.push(Segment { at, bytes: used });
            self.left -= used;
        }
        Ok(None)
    }

    /// The descriptors of a segment; the next segment, if its last one names one.
    fn segment<M: GuestMemory>(
        &mut self,
        memory: &M,
        segment: &SglDescriptor,
    ) -> Result<Option<SglDescriptor>, Status> {
        let size = u32::try_from(SglDescriptor::BYTES).expect("16 bytes");
        if segment.length_bytes == 0 || !segment.length_bytes.is_multiple_of(size) {
            return Err(Status::INVALID_SGL_SEGMENT);
        }
        let count = u64::from(segment.length_bytes / size);
        for index in 0..count {
            let mut bytes = [0; SglDescriptor::BYTES];
            let at = HostAddress(segment.address.wrapping_add(index * u64::from(size)));
            memory.read(at, &mut bytes).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            if let Some(next) = self.take(&SglDescriptor::decode(&bytes))? {
                // Only the last descriptor may name another segment, and none of a last segment.
                let allowed = index + 1 == count && segment.kind == SglKind::Segment;
                return if allowed { Ok(Some(next)) } else { Err(Status::INVALID_SGL_SEGMENT) };
            }
            if self.left == 0 {
                return Ok(None);
            }
        }
        // A segment that is not the last must say where the next is.
        if segment.kind == SglKind::Segment { Err(Status::INVALID_SGL_SEGMENT) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::FlatMemory;
    use super::*;

    fn descriptor(kind: SglKind, address: u64, length_bytes: u32) -> SglDescriptor {
        SglDescriptor { address, length_bytes, kind, subtype: 0 }
    }

    fn put(memory: &FlatMemory, at: u64, list: &[SglDescriptor]) {
        for (index, descriptor) in (0u64..).zip(list) {
            memory.write(HostAddress(at + 16 * index), &descriptor.encode()).unwrap();
        }
    }

    fn walked(
        memory: &FlatMemory,
        first: &SglDescriptor,
        bytes: usize,
    ) -> Result<Vec<(Option<u64>, usize)>, Status> {
        let mut segments = Vec::new();
        walk(memory, first, (bytes, true), &mut segments)?;
        Ok(segments.into_iter().map(|segment| (segment.at.map(|at| at.0), segment.bytes)).collect())
    }

    #[test]
    fn a_block_may_be_longer_than_the_data_but_not_shorter() {
        let memory = FlatMemory::new(0, 0);
        let block = descriptor(SglKind::DataBlock, 0x123, 512);
        assert_eq!(walked(&memory, &block, 512).unwrap(), [(Some(0x123), 512)]);
        assert_eq!(walked(&memory, &block, 100).unwrap(), [(Some(0x123), 100)]);
        assert_eq!(walked(&memory, &block, 513), Err(Status::INVALID_SGL_LENGTH));
    }

    #[test]
    fn segments_are_followed_and_buckets_drop_their_part() {
        let memory = FlatMemory::new(0, 0x1000);
        let (data, bucket) = (SglKind::DataBlock, SglKind::BitBucket);
        put(
            &memory,
            0x100,
            &[
                descriptor(data, 0x9000, 16),
                descriptor(bucket, 0, 8),
                descriptor(SglKind::Segment, 0x200, 32),
            ],
        );
        put(&memory, 0x200, &[descriptor(data, 0xa000, 0), descriptor(SglKind::LastSegment, 0x300, 16)]);
        put(&memory, 0x300, &[descriptor(data, 0xb000, 64)]);
        let first = descriptor(SglKind::Segment, 0x100, 48);
        let expected = [(Some(0x9000), 16), (None, 8), (Some(0xb000), 6)];
        assert_eq!(walked(&memory, &first, 30).unwrap(), expected);
        let mut segments = Vec::new();
        walk(&memory, &first, (30, false), &mut segments).unwrap();
        let bytes: Vec<usize> = segments.iter().map(|segment| segment.bytes).collect();
        assert_eq!(bytes, [16, 14], "what goes to the drive passes buckets by");
    }

    #[test]
    fn malformed_lists_have_their_statuses() {
        let memory = FlatMemory::new(0, 0x1000);
        let data = SglKind::DataBlock;
        put(&memory, 0x100, &[descriptor(SglKind::Segment, 0x100, 16), descriptor(data, 0, 16)]);
        put(&memory, 0x200, &[descriptor(SglKind::LastSegment, 0x200, 16)]);
        put(&memory, 0x300, &[descriptor(data, 0, 16)]);
        let fabrics = SglDescriptor { subtype: 1, ..descriptor(data, 0, 64) };
        let table = [
            (descriptor(SglKind::LastSegment, 0x100, 0), Status::INVALID_SGL_SEGMENT),
            (descriptor(SglKind::LastSegment, 0x100, 24), Status::INVALID_SGL_SEGMENT),
            (descriptor(SglKind::Segment, 0x100, 32), Status::INVALID_SGL_SEGMENT),
            (descriptor(SglKind::LastSegment, 0x200, 16), Status::INVALID_SGL_SEGMENT),
            (descriptor(SglKind::Segment, 0x300, 16), Status::INVALID_SGL_SEGMENT),
            (descriptor(SglKind::LastSegment, 0x300, 16), Status::INVALID_SGL_LENGTH),
            (descriptor(SglKind::LastSegment, 0x1000, 16), Status::DATA_TRANSFER_ERROR),
            (descriptor(SglKind::KeyedDataBlock, 0, 64), Status::INVALID_SGL_TYPE),
            (fabrics, Status::INVALID_SGL_TYPE),
        ];
        for (first, expected) in table {
            assert_eq!(walked(&memory, &first, 64), Err(expected), "{first:?}");
        }
        // A segment that names itself is followed only so far.
        assert_eq!(
            walked(&memory, &descriptor(SglKind::Segment, 0x100, 16), 64),
            Err(Status::INVALID_SGL_COUNT)
        );
    }
}
