//! A chain of descriptors as it lies in a ring: what the device may read, then what it may write.
//!
//! Source: VIRTIO 1.2, section 2.7. Deliberately not here: what the bytes mean.

use super::memory::Segment;
use virtio_queue::desc::split::Descriptor;

/// Descriptors of a chain that are looked at (chosen: as many as a ring has, though guests are told of fewer).
const DESCRIPTORS_MAX: usize = 1024;

/// Why a chain is no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It goes on where nothing is: a loop, an index or address beyond the table, a table within a table.
    Torn,
    /// It has more descriptors than can be.
    Endless,
    /// What may be read lies behind what may be written.
    Mixed,
}

/// A chain; kept and filled again.
#[derive(Debug, Default)]
pub struct Chain {
    /// What the device may read.
    pub readable: Vec<Segment>,
    /// What it may write.
    pub writable: Vec<Segment>,
}

impl Chain {
    /// Takes the descriptors of a chain.
    ///
    /// # Errors
    /// [`Broken`]; the segments until then stay, and behind a mixed chain all.
    pub fn fill(&mut self, descriptors: impl Iterator<Item = Descriptor>) -> Result<(), Broken> {
        self.readable.clear();
        self.writable.clear();
        let (mut count, mut goes_on, mut is_mixed) = (0, true, false);
        for descriptor in descriptors {
            count += 1;
            if count > DESCRIPTORS_MAX {
                return Err(Broken::Endless);
            }
            goes_on = descriptor.has_next();
            let segment = Segment { address: descriptor.addr(), bytes: descriptor.len() };
            if descriptor.is_write_only() {
                self.writable.push(segment);
            } else {
                is_mixed |= !self.writable.is_empty();
                self.readable.push(segment);
            }
        }
        match (goes_on, is_mixed) {
            (true, _) => Err(Broken::Torn),
            (false, true) => Err(Broken::Mixed),
            (false, false) => Ok(()),
        }
    }
}

/// Bytes of segments.
#[must_use]
pub fn bytes_of(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.bytes)).sum()
}

/// Takes `count` bytes from the front. False if there are fewer.
#[must_use]
pub fn drop_front(segments: &mut Vec<Segment>, mut count: u32) -> bool {
    let mut whole = 0;
    for segment in segments.iter_mut() {
        if segment.bytes > count {
            let Some(address) = segment.address.0.checked_add(u64::from(count)) else { return false };
            segment.address.0 = address;
            segment.bytes -= count;
            count = 0;
            break;
        }
        count -= segment.bytes;
        whole += 1;
    }
    segments.drain(..whole);
    count == 0
}

/// Takes the last byte. `None` if there is none.
#[must_use]
pub fn take_last(segments: &mut Vec<Segment>) -> Option<Segment> {
    while segments.last()?.bytes == 0 {
        segments.pop();
    }
    let last = segments.last_mut()?;
    last.bytes -= 1;
    let address = last.address.0.checked_add(u64::from(last.bytes))?;
    if last.bytes == 0 {
        segments.pop();
    }
    Some(Segment { address: vm_memory::GuestAddress(address), bytes: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_memory::GuestAddress;

    fn segments(list: &[(u64, u32)]) -> Vec<Segment> {
        list.iter().map(|&(address, bytes)| Segment { address: GuestAddress(address), bytes }).collect()
    }

    #[test]
    fn a_header_is_taken_from_the_front_however_it_is_cut() {
        for (before, after) in [
            (&[(0, 16), (100, 512)][..], &[(100, 512)][..]),
            (&[(0, 528)], &[(16, 512)]),
            (&[(0, 3), (8, 0), (50, 20)], &[(63, 7)]),
            (&[(0, 16)], &[]),
        ] {
            let mut list = segments(before);
            assert!(drop_front(&mut list, 16), "{before:?}");
            assert_eq!(list, segments(after), "{before:?}");
        }
        assert!(!drop_front(&mut segments(&[(0, 15)]), 16));
        assert!(!drop_front(&mut segments(&[(u64::MAX, 32)]), 16));
    }

    #[test]
    fn a_status_is_the_last_byte_of_all() {
        for (before, status, after) in [
            (&[(100, 512), (7, 1)][..], Some(7), &[(100, 512)][..]),
            (&[(100, 513)], Some(612), &[(100, 512)]),
            (&[(7, 1), (9, 0)], Some(7), &[]),
            (&[(9, 0)], None, &[]),
            (&[], None, &[]),
            (&[(u64::MAX, 4)], None, &[(u64::MAX, 3)]),
        ] {
            let mut list = segments(before);
            let expected = status.map(|address| Segment { address: GuestAddress(address), bytes: 1 });
            assert_eq!((take_last(&mut list), list), (expected, segments(after)), "{before:?}");
        }
    }
}
