//! The discovery log page (LID 70h): a header of 1024 bytes, then an entry of 1024 bytes for each subsystem.
//!
//! Source: NVMe over Fabrics 1.1 figures 35 and 36.

use super::NQN_BYTES_MAX;
use crate::wire::{ShortInput, array_at, fixed, put, u16_at, u64_at};

/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// How many entries follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryHeader {
    /// GENCTR: changes with the page.
    pub generation: u64,
    /// NUMREC: entries.
    pub count: u64,
    /// RECFMT: 0.
    pub recfmt: u16,
}

impl DiscoveryHeader {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 1024;

    /// From the first 1024 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the discovery log page", bytes)?;
        Ok(Self { generation: u64_at(bytes, 0), count: u64_at(bytes, 8), recfmt: u16_at(bytes, 16) })
    }

    /// The 1024 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.generation.to_le_bytes());
        put(&mut bytes, 8, &self.count.to_le_bytes());
        put(&mut bytes, 16, &self.recfmt.to_le_bytes());
        bytes
    }
}

/// ADRFAM: what kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressFamily(pub u8);

impl AddressFamily {
    /// IPv4.
    pub const IPV4: Self = Self(1);
    /// IPv6.
    pub const IPV6: Self = Self(2);
}

/// Text in a field of `N` bytes, ended by a zero byte or the end of the field; any bytes decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextField<const N: usize>([u8; N]);

impl<const N: usize> TextField<N> {
    /// The field holding `text`.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        assert!(text.len() <= N, "{text:?} does not fit {N} bytes");
        put(&mut bytes, 0, text.as_bytes());
        Self(bytes)
    }

    /// What stands before the first zero byte, without the spaces that some pad with.
    pub fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&self.0[..end]).trim_end().to_owned()
    }
}

/// A subsystem, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryEntry {
    /// TRTYPE: 3 is TCP.
    pub trtype: u8,
    /// ADRFAM.
    pub adrfam: AddressFamily,
    /// SUBTYPE: 2 is a subsystem with namespaces.
    pub subtype: u8,
    /// TREQ: what the transport requires.
    pub treq: u8,
    /// PORTID.
    pub portid: u16,
    /// CNTLID: FFFFh for any.
    pub cntlid: u16,
    /// ASQSZ: entries of the admin queue.
    pub asqsz: u16,
    /// TRSVCID: the port.
    pub trsvcid: TextField<32>,
    /// SUBNQN.
    pub subnqn: TextField<256>,
    /// TRADDR: the address.
    pub traddr: TextField<256>,
}

impl DiscoveryEntry {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 1024;
    /// TRTYPE of TCP.
    pub const TCP: u8 = 3;
    /// SUBTYPE of a subsystem with namespaces.
    pub const NVM_SUBSYSTEM: u8 = 2;

    /// From the first 1024 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("a discovery log entry", bytes)?;
        Ok(Self {
            trtype: bytes[0],
            adrfam: AddressFamily(bytes[1]),
            subtype: bytes[2],
            treq: bytes[3],
            portid: u16_at(bytes, 4),
            cntlid: u16_at(bytes, 6),
            asqsz: u16_at(bytes, 8),
            trsvcid: TextField(array_at(bytes, 32)),
            subnqn: TextField(array_at(bytes, 256)),
            traddr: TextField(array_at(bytes, 512)),
        })
    }

    /// The 1024 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&[self.trtype, self.adrfam.0, self.subtype, self.treq]);
        for (index, word) in [self.portid, self.cntlid, self.asqsz].into_iter().enumerate() {
            put(&mut bytes, 4 + 2 * index, &word.to_le_bytes());
        }
        put(&mut bytes, 32, &self.trsvcid.0);
        put(&mut bytes, 256, &self.subnqn.0);
        put(&mut bytes, 512, &self.traddr.0);
        bytes
    }
}

const _: () = assert!(NQN_BYTES_MAX < 256, "a name and its zero byte fit SUBNQN");
const _: () = assert!(DISCOVERY_NQN.len() <= NQN_BYTES_MAX, "the discovery name is a name");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_fields_where_the_table_puts_them() {
        let mut bytes = [0; 1024];
        bytes[..10].copy_from_slice(&[3, 1, 2, 4, 5, 0, 0xFF, 0xFF, 32, 0]);
        bytes[32..36].copy_from_slice(b"4420");
        bytes[256..259].copy_from_slice(b"nqn");
        bytes[512..521].copy_from_slice(b"127.0.0.1");
        let entry = DiscoveryEntry::decode(&bytes).expect("1024 bytes");
        assert_eq!((entry.trtype, entry.adrfam, entry.subtype), (3, AddressFamily::IPV4, 2));
        assert_eq!((entry.treq, entry.portid, entry.cntlid, entry.asqsz), (4, 5, 0xFFFF, 32));
        assert_eq!((entry.trsvcid.text(), entry.traddr.text()), ("4420".into(), "127.0.0.1".into()));
        assert_eq!((entry.subnqn, entry.encode()), (TextField::new("nqn"), bytes));
    }

    #[test]
    fn the_header_says_how_many_entries_follow() {
        let mut bytes = [0; 1024];
        (bytes[0], bytes[8], bytes[16]) = (1, 2, 3);
        let header = DiscoveryHeader { generation: 1, count: 2, recfmt: 3 };
        assert_eq!((DiscoveryHeader::decode(&bytes), header.encode()), (Ok(header), bytes));
        assert!(DiscoveryHeader::decode(&[]).is_err() && DiscoveryEntry::decode(&[]).is_err());
    }
}
