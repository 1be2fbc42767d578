//! A guest's memory as the files it lent, mapped.
//!
//! Safe code of `vm-memory` does all access; nothing refers into a mapping between calls. A file that its owner makes
//! shorter while it is mapped ends the server (SIGBUS): whoever may open the socket could as well kill it.

use crate::pci_nvme::{GuestMemory, Unmapped};
use ocssd_nvme::HostAddress;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Regions at once (chosen: QEMU lends some dozens; a guest with several kinds of memory some hundreds).
const REGIONS_MAX: usize = 4096;
/// `PROT_READ`, `PROT_WRITE`, `MAP_SHARED` and `MAP_NORESERVE` of Linux (`asm-generic/mman-common.h`, `mman.h`).
const PROT_READ: i32 = 1;
const PROT_WRITE: i32 = 2;
const MAP_SHARED: i32 = 1;
const MAP_NORESERVE: i32 = 0x4000;

/// A range that was lent.
#[derive(Debug)]
struct Region {
    bytes: u64,
    /// `None` if it came without a file.
    map: Option<MmapRegion>,
    writable: bool,
}

/// All that was lent, by the guest's addresses.
#[derive(Debug, Default)]
pub(super) struct MappedMemory {
    regions: BTreeMap<u64, Region>,
}

fn invalid(sentence: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, sentence)
}

impl MappedMemory {
    /// Maps `bytes` bytes of a file from its place on.
    pub(super) fn map(
        &mut self,
        at: u64,
        bytes: u64,
        file: Option<(File, u64)>,
        writable: bool,
    ) -> io::Result<()> {
        let end = at.checked_add(bytes).filter(|_| bytes > 0);
        let end = end.ok_or_else(|| invalid("a region is empty or wraps"))?;
        if self.regions.len() >= REGIONS_MAX {
            return Err(invalid("there are as many regions as the server keeps"));
        }
        let before = self.regions.range(..end).next_back();
        if before.is_some_and(|(start, region)| start + region.bytes > at) {
            return Err(invalid("a region overlaps another"));
        }
        let map = file.map(|(file, offset)| map_file(file, offset, bytes, writable)).transpose()?;
        self.regions.insert(at, Region { bytes, map, writable });
        Ok(())
    }

    /// Unmaps the regions within a range, as many as there are. One that is only in part within it stays, and is an error.
    pub(super) fn unmap(&mut self, at: u64, bytes: u64) -> io::Result<()> {
        let end = at.checked_add(bytes).ok_or_else(|| invalid("a range wraps"))?;
        let touched = self.regions.range(..end).filter(|(start, region)| **start + region.bytes > at);
        let touched: Vec<(u64, u64)> = touched.map(|(&start, region)| (start, region.bytes)).collect();
        if touched.iter().any(|(start, bytes)| *start < at || start + bytes > end) {
            return Err(invalid("a part of a region was to be unmapped"));
        }
        for (start, _) in touched {
            self.regions.remove(&start);
        }
        Ok(())
    }

    /// Unmaps everything.
    pub(super) fn clear(&mut self) {
        self.regions.clear();
    }

    /// The region an address lies in, and where in it.
    fn find(&self, at: u64) -> Result<(&Region, u64), Unmapped> {
        let (start, region) = self.regions.range(..=at).next_back().ok_or(Unmapped)?;
        let offset = at - start;
        if offset < region.bytes { Ok((region, offset)) } else { Err(Unmapped) }
    }

    /// Goes through `count` bytes, which may lie in several regions: `work` gets the map, where in it, and which bytes.
    fn each(
        &self,
        at: HostAddress,
        count: usize,
        write: bool,
        mut work: impl FnMut(&MmapRegion, usize, std::ops::Range<usize>) -> Result<(), Unmapped>,
    ) -> Result<(), Unmapped> {
        let mut done = 0;
        while done < count {
            let here = at.0.checked_add(u64::try_from(done).map_err(|_| Unmapped)?).ok_or(Unmapped)?;
            let (region, offset) = self.find(here)?;
            let map = region.map.as_ref().filter(|_| !write || region.writable).ok_or(Unmapped)?;
            let room = usize::try_from(region.bytes - offset).map_err(|_| Unmapped)?;
            let part = room.min(count - done);
            work(map, usize::try_from(offset).map_err(|_| Unmapped)?, done..done + part)?;
            done += part;
        }
        Ok(())
    }
}

fn map_file(file: File, offset: u64, bytes: u64, writable: bool) -> io::Result<MmapRegion> {
    let end = offset.checked_add(bytes).ok_or_else(|| invalid("a region of a file wraps"))?;
    if file.metadata()?.len() < end {
        return Err(invalid("a region is longer than its file"));
    }
    let size = usize::try_from(bytes).map_err(|_| invalid("a region is larger than memory"))?;
    let protection = if writable { PROT_READ | PROT_WRITE } else { PROT_READ };
    MmapRegionBuilder::new(size)
        .with_file_offset(FileOffset::new(file, offset))
        .with_mmap_prot(protection)
        .with_mmap_flags(MAP_SHARED | MAP_NORESERVE)
        .build()
        .map_err(|error| io::Error::other(error.to_string()))
}

impl GuestMemory for MappedMemory {
    fn read(&self, at: HostAddress, into: &mut [u8]) -> Result<(), Unmapped> {
        self.each(at, into.len(), false, |map, offset, part| {
            map.as_volatile_slice().read_slice(&mut into[part], offset).map_err(|_| Unmapped)
        })
    }

    fn write(&self, at: HostAddress, from: &[u8]) -> Result<(), Unmapped> {
        self.each(at, from.len(), true, |map, offset, part| {
            map.as_volatile_slice().write_slice(&from[part], offset).map_err(|_| Unmapped)
        })
    }

    fn is_writable(&self, at: HostAddress, count: usize) -> bool {
        self.each(at, count, true, |_, _, _| Ok(())).is_ok()
    }

    fn load(&self, at: HostAddress) -> Result<u32, Unmapped> {
        assert!(at.0.is_multiple_of(4), "{at} is no place for a dword");
        let mut value = Err(Unmapped);
        self.each(at, 4, false, |map, offset, _| {
            value = map.as_volatile_slice().load(offset, Ordering::SeqCst).map_err(|_| Unmapped);
            Ok(())
        })?;
        value.map(u32::from_le)
    }

    fn store(&self, at: HostAddress, value: u32) -> Result<(), Unmapped> {
        assert!(at.0.is_multiple_of(4), "{at} is no place for a dword");
        self.each(at, 4, true, |map, offset, _| {
            map.as_volatile_slice().store(value.to_le(), offset, Ordering::SeqCst).map_err(|_| Unmapped)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;

    const PAGE: u64 = 4096;

    fn file(pages: u64) -> File {
        let file = File::from(rustix::fs::memfd_create("lent", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(pages * PAGE).unwrap();
        file
    }

    #[test]
    fn an_access_goes_through_regions_that_follow_each_other_and_no_further() {
        let file = file(4);
        let mut memory = MappedMemory::default();
        // The other way round in the file.
        memory.map(0x10_000, PAGE, Some((file.try_clone().unwrap(), 3 * PAGE)), true).unwrap();
        memory.map(0x11_000, PAGE, Some((file, 0)), true).unwrap();
        let (at, bytes) = (HostAddress(0x10_ffd), [1, 2, 3, 4, 5, 6]);
        memory.write(at, &bytes).unwrap();
        let mut back = [0; 6];
        memory.read(at, &mut back).unwrap();
        assert_eq!(back, bytes);
        assert_eq!(memory.load(HostAddress(0x11_000)), Ok(0x0006_0504));
        memory.store(HostAddress(0x11_ffc), 9).unwrap();
        for outside in [0xFFFF, 0x11_ffb, 0x12_000, u64::MAX - 2] {
            assert_eq!(memory.read(HostAddress(outside), &mut back), Err(Unmapped), "{outside:#x}");
            assert!(!memory.is_writable(HostAddress(outside), 6));
        }
    }

    #[test]
    fn regions_neither_overlap_nor_wrap_nor_are_longer_than_their_file() {
        let file = file(2);
        let lend = |offset| Some((file.try_clone().unwrap(), offset));
        let mut memory = MappedMemory::default();
        memory.map(0x2000, PAGE, lend(0), true).unwrap();
        for (at, bytes, offset) in [
            (0x2000, PAGE, 0),
            (0x1000, 2 * PAGE, 0),
            (0x2fff, 1, 0),
            (0x8000, 0, 0),
            (u64::MAX - 0xFFF, 2 * PAGE, 0),
            (0x8000, 3 * PAGE, 0),
            (0x8000, PAGE, u64::MAX),
            // Files are mapped by whole pages.
            (0x8000, PAGE, 5),
        ] {
            assert!(memory.map(at, bytes, lend(offset), true).is_err(), "{at:#x} {bytes:#x} {offset:#x}");
        }
        memory.map(0x1000, PAGE, lend(PAGE), true).unwrap();
        assert!(memory.unmap(0x1800, PAGE).is_err() && memory.unmap(u64::MAX, 2).is_err());
        memory.unmap(0x1000, 2 * PAGE).unwrap();
        memory.unmap(0x1000, 2 * PAGE).unwrap();
        assert_eq!(memory.load(HostAddress(0x2000)), Err(Unmapped));
    }

    #[test]
    fn what_is_lent_for_reading_is_not_written_and_what_has_no_file_is_not_there() {
        let mut memory = MappedMemory::default();
        memory.map(0x1000, PAGE, Some((file(1), 0)), false).unwrap();
        memory.map(0x2000, PAGE, None, true).unwrap();
        assert_eq!(
            (memory.load(HostAddress(0x1000)), memory.store(HostAddress(0x1000), 1)),
            (Ok(0), Err(Unmapped))
        );
        assert_eq!(memory.load(HostAddress(0x2000)), Err(Unmapped));
        memory.clear();
        assert_eq!(memory.load(HostAddress(0x1000)), Err(Unmapped));
    }
}
