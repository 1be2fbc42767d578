//! A guest's memory: regions mapped from descriptors that the frontend sent.
//!
//! Every access names a guest's address and is checked; what is not there is an answer, not a fault. No request holds on to
//! a mapping: it is looked up when bytes are copied, so a region that goes is gone at once. What cannot be checked: a frontend
//! that makes the file behind a region shorter while it is mapped ends this process (SIGBUS), as with every server of
//! vhost-user; where the file allows it, it is sealed against that. The socket's mode (0600) keeps others away.

use ocssd_base::usize_of;
use rustix::fs::SealFlags;
use std::fs::File;
use std::sync::Arc;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemory, GuestMemoryMmap, GuestRegionMmap, Permissions,
};

/// Regions of a frontend (chosen: QEMU needs one to a few, libblkio one per buffer pool; 8 without slots).
pub const REGIONS_MAX: usize = 64;

/// Bytes of a guest's memory in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Their first address.
    pub address: GuestAddress,
    /// How many.
    pub bytes: u32,
}

/// Where a region is: in the guest, and in the frontend, whose rings are named by its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The guest's first address.
    pub guest: u64,
    /// The frontend's.
    pub user: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The regions of a frontend.
#[derive(Debug, Default)]
pub struct Memory {
    mapped: GuestMemoryMmap,
    places: Vec<Place>,
}

impl Memory {
    /// Memory of this process, for tests and fuzzers: as a frontend's, whose addresses are the guest's.
    ///
    /// # Panics
    /// If there is no memory for it.
    #[must_use]
    pub fn anonymous(regions: &[(u64, usize)]) -> Self {
        let ranges: Vec<_> = regions.iter().map(|&(guest, bytes)| (GuestAddress(guest), bytes)).collect();
        let mapped = GuestMemoryMmap::from_ranges(&ranges).expect("a test has memory");
        let place = |&(guest, bytes): &(u64, usize)| Place {
            guest,
            user: guest,
            bytes: u64::try_from(bytes).expect("a length fits 64 bits"),
        };
        Self { mapped, places: regions.iter().map(place).collect() }
    }

    /// Maps one more region: `place.bytes` bytes of a file from `offset` on.
    ///
    /// # Errors
    /// A sentence: too many regions, one that overlaps another or lies beyond its file, and as the system says.
    pub fn add(&mut self, place: Place, file: File, offset: u64) -> Result<(), String> {
        if self.places.len() >= REGIONS_MAX {
            return Err(format!("memory has at most {REGIONS_MAX} regions, and one more came"));
        }
        let wrong = |error: &dyn std::fmt::Display| {
            format!("memory of {} bytes at {:#x} cannot be mapped: {error}", place.bytes, place.guest)
        };
        // Not every file can be sealed; what then happens is said above.
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK);
        let length = file.metadata().map_err(|error| wrong(&error))?.len();
        if offset.checked_add(place.bytes).is_none_or(|end| end > length) {
            return Err(wrong(&format!("its file ends at byte {length}")));
        }
        let bytes = usize::try_from(place.bytes).map_err(|error| wrong(&error))?;
        let file = FileOffset::new(file, offset);
        let region = GuestRegionMmap::from_range(GuestAddress(place.guest), bytes, Some(file));
        let region = Arc::new(region.map_err(|error| wrong(&error))?);
        self.mapped = self.mapped.insert_region(region).map_err(|error| wrong(&error))?;
        self.places.push(place);
        Ok(())
    }

    /// Unmaps a region.
    ///
    /// # Errors
    /// A sentence, if there is none such.
    pub fn remove(&mut self, guest: u64, bytes: u64) -> Result<(), String> {
        let removed = self.mapped.remove_region(GuestAddress(guest), bytes);
        let (mapped, _) =
            removed.map_err(|_| format!("memory of {bytes} bytes at {guest:#x} is not there"))?;
        self.mapped = mapped;
        self.places.retain(|place| place.guest != guest);
        Ok(())
    }

    /// Unmaps everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The guest's address of a frontend's.
    #[must_use]
    pub fn guest_of(&self, user: u64) -> Option<GuestAddress> {
        let holds = |place: &&Place| user >= place.user && user - place.user < place.bytes;
        let place = self.places.iter().find(holds)?;
        place.guest.checked_add(user - place.user).map(GuestAddress)
    }

    /// For rings.
    #[must_use]
    pub const fn mapped(&self) -> &GuestMemoryMmap {
        &self.mapped
    }

    /// All bytes of a segment are there.
    #[must_use]
    pub fn holds(&self, segment: Segment) -> bool {
        self.mapped.check_range(segment.address, usize_of(segment.bytes), Permissions::Write)
    }

    /// Fills `bytes` from segments, from their byte `skip` on. False if some are not there.
    #[must_use]
    pub fn gather(&self, segments: &[Segment], skip: usize, bytes: &mut [u8]) -> bool {
        let mut rest = bytes;
        let found = each(segments, skip, rest.len(), |address, count| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            rest = later;
            self.mapped.read_slice(now, address).is_ok()
        });
        found && rest.is_empty()
    }

    /// Writes `bytes` to segments, from their byte `skip` on. False if some are not there.
    #[must_use]
    pub fn scatter(&self, segments: &[Segment], skip: usize, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let found = each(segments, skip, rest.len(), |address, count| {
            let (now, later) = rest.split_at(count);
            rest = later;
            self.mapped.write_slice(now, address).is_ok()
        });
        found && rest.is_empty()
    }
}

/// Calls for each run of addresses of `count` bytes behind `skip` ones, while the calls say true.
fn each(
    segments: &[Segment],
    mut skip: usize,
    mut count: usize,
    mut run: impl FnMut(GuestAddress, usize) -> bool,
) -> bool {
    for segment in segments {
        let bytes = usize_of(segment.bytes);
        if skip >= bytes {
            skip -= bytes;
            continue;
        }
        let now = (bytes - skip).min(count);
        if now == 0 {
            break;
        }
        let offset = u64::try_from(skip).expect("an index fits 64 bits");
        let Some(address) = segment.address.0.checked_add(offset) else { return false };
        if !run(GuestAddress(address), now) {
            return false;
        }
        (skip, count) = (0, count - now);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: u64) -> File {
        let fd = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
        let file = File::from(fd);
        file.set_len(bytes).unwrap();
        file
    }

    fn segment(address: u64, bytes: u32) -> Segment {
        Segment { address: GuestAddress(address), bytes }
    }

    #[test]
    fn bytes_go_where_segments_say_across_regions() {
        let memory = Memory::anonymous(&[(0x1000, 0x1000), (0x2000, 0x1000)]);
        let segments = [segment(0x1FFE, 4), segment(0x1000, 3)];
        assert!(memory.scatter(&segments, 1, &[1, 2, 3, 4, 5]));
        let mut back = [0; 7];
        assert!(memory.gather(&segments, 0, &mut back));
        assert_eq!(back, [0, 1, 2, 3, 4, 5, 0]);
        assert!(!memory.gather(&segments, 3, &mut [0; 5]), "beyond the last segment");
        assert!(!memory.scatter(&[segment(0x2FFF, 2)], 0, &[1, 2]), "beyond the last region");
        assert!(!memory.scatter(&[segment(u64::MAX, 2)], 1, &[1]), "beyond all addresses");
        assert!(
            memory.holds(segments[0]) && !memory.holds(segment(0x2FFF, 2)) && !memory.holds(segment(0, 1))
        );
    }

    #[test]
    fn a_region_is_mapped_from_its_file_and_goes() {
        let mut memory = Memory::default();
        let shared = file(0x3000);
        let place = Place { guest: 0x10_0000, user: 0x7000_0000, bytes: 0x2000 };
        memory.add(place, shared.try_clone().unwrap(), 0x1000).unwrap();
        assert!(memory.scatter(&[segment(0x10_0000, 3)], 0, b"abc"));
        let mut found = [0; 3];
        std::os::unix::fs::FileExt::read_exact_at(&shared, &mut found, 0x1000).unwrap();
        assert_eq!(&found, b"abc");
        assert_eq!(memory.guest_of(0x7000_1FFF), Some(GuestAddress(0x10_1FFF)));
        assert_eq!((memory.guest_of(0x7000_2000), memory.guest_of(0x6FFF_FFFF)), (None, None));
        assert!(shared.set_len(0).is_err(), "what is mapped cannot be made shorter");
        assert!(memory.remove(0x10_0000, 0x1000).is_err());
        memory.remove(0x10_0000, 0x2000).unwrap();
        assert!(!memory.holds(segment(0x10_0000, 1)) && memory.guest_of(0x7000_0000).is_none());
    }

    #[test]
    fn regions_that_cannot_be_are_refused_with_a_sentence() {
        let mut memory = Memory::default();
        let place = |guest: u64, bytes: u64| Place { guest, user: 0, bytes };
        memory.add(place(0x1000, 0x1000), file(0x1000), 0).unwrap();
        let cases = [
            (place(0x1800, 0x1000), 0, "intersect"),
            (place(0x8000, 0x2000), 0, "ends at byte 4096"),
            (place(0x8000, 0x1000), u64::MAX, "ends at byte 4096"),
            (place(0x8000, u64::MAX), 0, "ends at byte 4096"),
            (place(0x8000, 0x800), 0x7FF, "cannot be mapped"),
        ];
        for (place, offset, expected) in cases {
            let error = memory.add(place, file(0x1000), offset).unwrap_err();
            assert!(error.contains(expected), "{place:?}: {error}");
        }
        for number in 1..REGIONS_MAX {
            let guest = u64::try_from(number).unwrap() << 20;
            memory.add(place(guest, 0x1000), file(0x1000), 0).unwrap();
        }
        let error = memory.add(place(1 << 40, 0x1000), file(0x1000), 0).unwrap_err();
        assert!(error.contains("at most 64"), "{error}");
    }
}
