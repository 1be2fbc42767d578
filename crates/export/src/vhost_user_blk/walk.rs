//! A walk along a chain of descriptors from a given one on, for chains that are no longer among those a guest offers.
//!
//! Chains that are offered are walked by `virtio_queue`; it begins nowhere else. Source: VIRTIO 1.2, sections 2.7.5 and 2.7.5.3.
//! Deliberately not here: how long a chain may be (`chain`).

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u32 = 16;

/// The walk. It ends at the last descriptor, or where nothing sound follows.
#[derive(Debug)]
pub struct Walk<'a> {
    memory: &'a GuestMemoryMmap,
    table: GuestAddress,
    count: u32,
    next: Option<u16>,
    /// It is in a table that a descriptor named.
    is_indirect: bool,
}

impl<'a> Walk<'a> {
    /// From descriptor `head` on of a table of `count`.
    #[must_use]
    pub fn new(memory: &'a GuestMemoryMmap, table: GuestAddress, count: u16, head: u16) -> Self {
        Self { memory, table, count: count.into(), next: Some(head), is_indirect: false }
    }

    fn read(&self) -> Option<Descriptor> {
        let index = self.next.filter(|index| u32::from(*index) < self.count)?;
        let address = self.table.0.checked_add(u64::from(DESCRIPTOR_BYTES) * u64::from(index))?;
        self.memory.read_obj(GuestAddress(address)).ok()
    }
}

impl Iterator for Walk<'_> {
    type Item = Descriptor;

    fn next(&mut self) -> Option<Descriptor> {
        let mut descriptor = self.read()?;
        if descriptor.refers_to_indirect_table() {
            if self.is_indirect || !descriptor.len().is_multiple_of(DESCRIPTOR_BYTES) {
                return None;
            }
            (self.table, self.count) = (descriptor.addr(), descriptor.len() / DESCRIPTOR_BYTES);
            (self.next, self.is_indirect) = (Some(0), true);
            descriptor = self.read().filter(|first| !first.refers_to_indirect_table())?;
        }
        self.next = descriptor.has_next().then(|| descriptor.next());
        Some(descriptor)
    }
}
