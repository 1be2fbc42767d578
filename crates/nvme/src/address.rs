//! Addresses that must not mix: logical block addresses, host memory, and lists of either.
//!
//! Deliberately not here: what the bits of an address mean. That is [`ocssd_lightnvm::LbaFormat`] (2.0) and
//! [`crate::ocssd12::PpaFormat`] (1.2).

pub use ocssd_lightnvm::Lba;

use std::fmt;

/// An address in the host's memory, as PRP entries, MPTR and list pointers hold it. 0 usually means "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostAddress(pub u64);

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host address {:#x}", self.0)
    }
}

/// A 64-bit address that can stand alone in a command or in a list in host memory.
pub trait WireAddress: Copy {
    /// The address whose wire form is `bits`.
    fn from_bits(bits: u64) -> Self;
    /// The wire form.
    fn to_bits(self) -> u64;
}

impl WireAddress for Lba {
    fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn to_bits(self) -> u64 {
        self.0
    }
}

/// Most addresses one vector command can carry: the count field is 6 bits, 0-based (OCSSD 2.0 section 4, CDW12 5:0).
pub const ADDRESSES_MAX: u8 = 64;

/// The addresses of a vector command: the address itself when there is one, else where the list is.
///
/// The wire form is 64 bits plus a 0-based count, and the count decides what the 64 bits are. Here that decision is
/// made once, at decode, so that an address can never be used as a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressList<A> {
    /// One address, held in the command.
    One(A),
    /// A list of 64-bit little-endian addresses in host memory.
    Many {
        /// Where the list starts.
        at: HostAddress,
        /// How many addresses, 2 to 64.
        count: u8,
    },
}

impl<A: WireAddress> AddressList<A> {
    /// How many addresses, 1 to 64.
    pub fn count(&self) -> u8 {
        match *self {
            Self::One(_) => 1,
            Self::Many { count, .. } => count,
        }
    }

    /// Bytes of the list in host memory; 0 when the address is in the command.
    pub fn list_bytes(&self) -> usize {
        match *self {
            Self::One(_) => 0,
            Self::Many { count, .. } => usize::from(count) * 8,
        }
    }

    /// From the command's 64 bits and its count dword, of which bits 5:0 count (0-based).
    pub(crate) fn from_wire(bits: u64, count_dword: u32) -> Self {
        match crate::wire::byte(count_dword & 0x3F, 0) {
            0 => Self::One(A::from_bits(bits)),
            above => Self::Many { at: HostAddress(bits), count: above + 1 },
        }
    }

    /// The command's 64 bits and its 0-based count.
    ///
    /// # Panics
    /// If a list's count is not 2 to 64: such a list cannot be sent.
    pub(crate) fn to_wire(self) -> (u64, u32) {
        match self {
            Self::One(address) => (address.to_bits(), 0),
            Self::Many { at, count } => {
                assert!((2..=ADDRESSES_MAX).contains(&count), "a list holds 2 to 64 addresses, not {count}");
                (at.0, u32::from(count) - 1)
            }
        }
    }
}

/// The addresses of a list that was read from host memory.
///
/// # Errors
/// [`crate::ShortInput`] if `bytes` holds fewer than `count` addresses.
pub fn decode_list<A: WireAddress>(bytes: &[u8], count: u8) -> Result<Vec<A>, crate::ShortInput> {
    let expected_bytes = usize::from(count) * 8;
    if bytes.len() < expected_bytes {
        let found_bytes = bytes.len();
        return Err(crate::ShortInput { structure: "the address list", expected_bytes, found_bytes });
    }
    let (entries, _) = bytes[..expected_bytes].as_chunks::<8>();
    Ok(entries.iter().map(|entry| A::from_bits(u64::from_le_bytes(*entry))).collect())
}

/// The bytes of a list, as a host places it in its memory.
pub fn encode_list<A: WireAddress>(addresses: &[A]) -> Vec<u8> {
    addresses.iter().flat_map(|address| address.to_bits().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_in_the_command_and_more_are_behind_a_pointer() {
        assert_eq!(AddressList::from_wire(9, 0), AddressList::One(Lba(9)));
        let many: AddressList<Lba> = AddressList::from_wire(0x1000, 63);
        assert_eq!(many, AddressList::Many { at: HostAddress(0x1000), count: 64 });
        assert_eq!((many.count(), many.list_bytes(), many.to_wire()), (64, 512, (0x1000, 63)));
    }

    #[test]
    fn reserved_bits_above_the_count_are_ignored() {
        let many: AddressList<Lba> = AddressList::from_wire(0x1000, 0x7FFF_FFC1);
        assert_eq!(many.count(), 2);
    }

    #[test]
    fn a_list_round_trips_and_a_short_one_is_refused() {
        let list = [Lba(1), Lba(0x1122_3344_5566_7788)];
        let bytes = encode_list(&list);
        assert_eq!(bytes[8..], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(decode_list::<Lba>(&bytes, 2).expect("whole"), list);
        let short = decode_list::<Lba>(&bytes[..15], 2).expect_err("one byte is missing");
        assert_eq!((short.expected_bytes, short.found_bytes), (16, 15));
    }
}
