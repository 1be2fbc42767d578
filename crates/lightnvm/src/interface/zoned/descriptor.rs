//! A zone as a report shows it, in the 64 bytes of the specification.

use super::super::list::{Entry, u64_at};

/// Bytes of a zone descriptor (ZNS 1.1, figure "Zone Descriptor Data Structure").
pub const DESCRIPTOR_BYTES: usize = 64;

/// Sequential Write Required, the only type of zone there is (ZNS 1.1, Zone Type).
const SEQUENTIAL_WRITE_REQUIRED: u8 = 2;

/// Zone Descriptor Extension Valid, of the zone's attributes (ZNS 1.1, Zone Attributes, bit 7).
const EXTENSION_VALID: u8 = 0x80;

/// ZRWA Valid, of the zone's attributes (ZNS 1.1, Zone Attributes, bit 3).
const AREA_VALID: u8 = 0x08;

/// A zone's state (ZNS 1.1, figure "Zone State Machine"); the number is the one on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneState {
    /// Nothing is written; no resources are held.
    Empty = 1,
    /// A write opened it; the target may close it for another.
    ImplicitlyOpened = 2,
    /// The host opened it.
    ExplicitlyOpened = 3,
    /// Active, and not open: a write opens it.
    Closed = 4,
    /// Only reads; it can become offline.
    ReadOnly = 0xD,
    /// Only reads, until it is reset.
    Full = 0xE,
    /// Neither written nor read any more.
    Offline = 0xF,
}

impl ZoneState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpened,
        Self::ExplicitlyOpened,
        Self::Closed,
        Self::ReadOnly,
        Self::Full,
        Self::Offline,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        match self {
            Self::Empty => 1,
            Self::ImplicitlyOpened => 2,
            Self::ExplicitlyOpened => 3,
            Self::Closed => 4,
            Self::ReadOnly => 0xD,
            Self::Full => 0xE,
            Self::Offline => 0xF,
        }
    }

    /// The state of a number on the wire.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.to_bits() == bits)
    }

    /// Implicitly or explicitly opened: it holds an open resource.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpened | Self::ExplicitlyOpened)
    }

    /// Open or closed: it holds an active resource.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }

    /// It has a write pointer.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.is_active() || matches!(self, Self::Empty)
    }
}

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneDescriptor {
    /// Its state.
    pub state: ZoneState,
    /// Blocks that hold data, from its start (ZCAP).
    pub capacity: u64,
    /// Its first block (ZSLBA).
    pub start: u64,
    /// The next block that is written (WP); `None` of zones that are full, read only or offline.
    pub write_pointer: Option<u64>,
    /// It has a zone descriptor extension (ZDEV, Zone Descriptor Extension Valid).
    pub has_extension: bool,
    /// It has a random write area (ZRWAV).
    pub has_area: bool,
}

impl Entry for ZoneDescriptor {
    const BYTES: usize = DESCRIPTOR_BYTES;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[0] = SEQUENTIAL_WRITE_REQUIRED;
        bytes[1] = self.state.to_bits() << 4;
        let extension = if self.has_extension { EXTENSION_VALID } else { 0 };
        bytes[2] = extension | if self.has_area { AREA_VALID } else { 0 };
        bytes[8..16].copy_from_slice(&self.capacity.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.to_le_bytes());
        // All ones where there is no pointer: what QEMU sends, and Linux ignores.
        bytes[24..32].copy_from_slice(&self.write_pointer.unwrap_or(u64::MAX).to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes[0] != SEQUENTIAL_WRITE_REQUIRED || bytes[1] & 0xF != 0 {
            return None;
        }
        let (state, pointer) = (ZoneState::from_bits(bytes[1] >> 4)?, u64_at(bytes, 24));
        let write_pointer = state.is_writable().then_some(pointer);
        let has_extension = bytes[2] & EXTENSION_VALID != 0;
        let has_area = bytes[2] & AREA_VALID != 0;
        let (capacity, start) = (u64_at(bytes, 8), u64_at(bytes, 16));
        Some(Self { state, capacity, start, write_pointer, has_extension, has_area })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_lies_where_the_specification_says() {
        let zone = ZoneDescriptor {
            state: ZoneState::ExplicitlyOpened,
            capacity: 0x30,
            start: 0x140,
            write_pointer: Some(0x145),
            has_extension: true,
            has_area: true,
        };
        let mut bytes = [0xAA; DESCRIPTOR_BYTES];
        zone.encode(&mut bytes);
        assert_eq!((bytes[0], bytes[1], bytes[2], bytes[3]), (2, 0x30, 0x88, 0));
        assert_eq!((bytes[8], &bytes[16..18], &bytes[24..26]), (0x30, &[0x40, 1][..], &[0x45, 1][..]));
        assert!(bytes[32..].iter().all(|&byte| byte == 0));
        assert_eq!(ZoneDescriptor::decode(&bytes), Some(zone));
    }

    #[test]
    fn every_state_comes_back_and_only_writable_ones_have_a_pointer() {
        for state in ZoneState::ALL {
            let write_pointer = state.is_writable().then_some(7);
            let zone = ZoneDescriptor {
                state,
                capacity: 9,
                start: 0,
                write_pointer,
                has_extension: false,
                has_area: false,
            };
            let mut bytes = [0; DESCRIPTOR_BYTES];
            zone.encode(&mut bytes);
            assert_eq!(ZoneDescriptor::decode(&bytes), Some(zone));
        }
    }

    #[test]
    fn bytes_that_are_no_descriptor_are_none() {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        assert_eq!(ZoneDescriptor::decode(&bytes), None, "no type");
        for (kind, state) in [(1, 0x10), (2, 0x00), (2, 0x50), (2, 0x11)] {
            (bytes[0], bytes[1]) = (kind, state);
            assert_eq!(ZoneDescriptor::decode(&bytes), None, "type {kind}, state {state:#x}");
        }
    }
}
