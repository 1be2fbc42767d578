//! Physical region pages: a command's data as pages of the guest's memory.
//!
//! Source: NVMe base 1.4 section 4.3. The memory page is always 4096 bytes (CAP.MPSMIN = MPSMAX = 0).

use super::memory::{GuestMemory, Segment};
use ocssd_lightnvm::Status;
use ocssd_nvme::HostAddress;

/// The memory page (CC.MPS = 0), bytes.
pub(super) const PAGE_BYTES: u64 = 4096;
/// A PRP entry, bytes.
const ENTRY_BYTES: u64 = 8;

/// Where a page's bytes from `at` on are, and how many of `left` they hold.
fn page(at: HostAddress, left: usize) -> Segment {
    let room = usize::try_from(PAGE_BYTES - at.0 % PAGE_BYTES).expect("at most a page");
    Segment { at: Some(at), bytes: room.min(left) }
}

/// Appends the segments that hold `bytes` bytes from PRP1 on.
///
/// # Errors
/// PRP Offset Invalid, or Data Transfer Error if a list is not in memory.
pub(super) fn walk<M: GuestMemory>(
    memory: &M,
    (prp1, prp2): (HostAddress, HostAddress),
    bytes: usize,
    segments: &mut Vec<Segment>,
) -> Result<(), Status> {
    if bytes == 0 {
        return Ok(());
    }
    if !prp1.0.is_multiple_of(4) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    let first = page(prp1, bytes);
    segments.push(first);
    let left = bytes - first.bytes;
    if left == 0 {
        Ok(())
    } else if left <= page(HostAddress(0), left).bytes {
        push_page(prp2, left, segments).map(drop)
    } else {
        walk_list(memory, prp2, left, segments)
    }
}

/// Appends a whole page, as far as it is used; the bytes left behind it.
fn push_page(at: HostAddress, left: usize, segments: &mut Vec<Segment>) -> Result<usize, Status> {
    if !at.0.is_multiple_of(PAGE_BYTES) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    let segment = page(at, left);
    segments.push(segment);
    Ok(left - segment.bytes)
}

/// Follows lists: each ends with its page, and its last entry is the next list if more is needed.
fn walk_list<M: GuestMemory>(
    memory: &M,
    list: HostAddress,
    mut left: usize,
    segments: &mut Vec<Segment>,
) -> Result<(), Status> {
    if !list.0.is_multiple_of(ENTRY_BYTES) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    let mut at = list;
    while left > 0 {
        let mut entry = [0; 8];
        memory.read(at, &mut entry).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
        let entry = HostAddress(u64::from_le_bytes(entry));
        let is_last = at.0.wrapping_add(ENTRY_BYTES).is_multiple_of(PAGE_BYTES);
        if is_last && left > page(HostAddress(0), left).bytes {
            // Lists behind the first begin with their page, so each but the first holds 511 pages: this ends.
            if !entry.0.is_multiple_of(PAGE_BYTES) {
                return Err(Status::INVALID_PRP_OFFSET);
            }
            at = entry;
            continue;
        }
        left = push_page(entry, left, segments)?;
        at = HostAddress(at.0.wrapping_add(ENTRY_BYTES));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::memory::FlatMemory;
    use super::*;

    fn walked(memory: &FlatMemory, prps: (u64, u64), bytes: usize) -> Result<Vec<(u64, usize)>, Status> {
        let mut segments = Vec::new();
        walk(memory, (HostAddress(prps.0), HostAddress(prps.1)), bytes, &mut segments)?;
        Ok(segments.into_iter().map(|segment| (segment.at.unwrap().0, segment.bytes)).collect())
    }

    fn list(memory: &FlatMemory, at: u64, entries: &[u64]) {
        for (index, entry) in (0u64..).zip(entries) {
            memory.write(HostAddress(at + 8 * index), &entry.to_le_bytes()).unwrap();
        }
    }

    #[test]
    fn one_and_two_pages_need_no_list() {
        let memory = FlatMemory::new(0, 0);
        type Case<'a> = ((u64, u64), usize, &'a [(u64, usize)]);
        let table: [Case<'_>; 5] = [
            ((0x1000, 0), 0, &[]),
            ((0x1000, 7), 4096, &[(0x1000, 4096)]),
            ((0x1ffc, 0x8000), 8, &[(0x1ffc, 4), (0x8000, 4)]),
            ((0x1000, 0x8000), 8192, &[(0x1000, 4096), (0x8000, 4096)]),
            ((0x1200, 0x8000), 4096, &[(0x1200, 0xe00), (0x8000, 0x200)]),
        ];
        for (prps, bytes, expected) in table {
            assert_eq!(walked(&memory, prps, bytes).unwrap(), expected, "{prps:x?} {bytes}");
        }
    }

    #[test]
    fn a_list_may_begin_inside_its_page_and_goes_on_in_another() {
        let memory = FlatMemory::new(0, 0x4000);
        list(&memory, 0x1ff0, &[0xa000, 0x2000]);
        list(&memory, 0x2000, &[0xb000, 0xc000]);
        let expected = [(0x9800, 2048), (0xa000, 4096), (0xb000, 4096), (0xc000, 100)];
        assert_eq!(walked(&memory, (0x9800, 0x1ff0), 2048 + 8192 + 100).unwrap(), expected);
        // With as much as fits, the last entry of the page is a page of data.
        let expected = [(0x9800, 2048), (0xa000, 4096), (0x2000, 4096)];
        assert_eq!(walked(&memory, (0x9800, 0x1ff0), 2048 + 8192).unwrap(), expected);
    }

    #[test]
    fn a_list_longer_than_a_page_is_followed() {
        let memory = FlatMemory::new(0, 0x4000);
        let pages: Vec<u64> = (0..511).map(|page| 0x10_0000 + page * 0x1000).collect();
        list(&memory, 0x1000, &pages);
        list(&memory, 0x1ff8, &[0x3000]);
        list(&memory, 0x3000, &[0x90_0000, 0xA0_0000]);
        let found = walked(&memory, (0x8000, 0x1000), 514 * 4096).unwrap();
        assert_eq!((found.len(), found[512], found[513]), (514, (0x90_0000, 4096), (0xA0_0000, 4096)));
    }

    #[test]
    fn entries_with_offsets_and_lists_nowhere_are_refused() {
        let memory = FlatMemory::new(0, 0x3000);
        list(&memory, 0x1000, &[0xa000, 0xb004]);
        list(&memory, 0x1ff8, &[0x2008]);
        let table = [
            ((0x1001, 0), 16, Status::INVALID_PRP_OFFSET),
            ((0x1002, 0), 16, Status::INVALID_PRP_OFFSET),
            ((0x1000, 0x8004), 8192, Status::INVALID_PRP_OFFSET),
            ((0x1000, 0x1004), 3 * 4096, Status::INVALID_PRP_OFFSET),
            ((0x1000, 0x1000), 3 * 4096, Status::INVALID_PRP_OFFSET),
            ((0x1000, 0x1ff8), 4 * 4096, Status::INVALID_PRP_OFFSET),
            ((0x1000, 0x9000), 3 * 4096, Status::DATA_TRANSFER_ERROR),
            ((0x1000, u64::MAX - 7), 3 * 4096, Status::DATA_TRANSFER_ERROR),
        ];
        for (prps, bytes, expected) in table {
            assert_eq!(walked(&memory, prps, bytes), Err(expected), "{prps:x?} {bytes}");
        }
    }
}
