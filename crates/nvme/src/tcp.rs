//! PDUs, the packets of NVMe/TCP: their first bytes, types and lengths, which both ends share.
//!
//! ```text
//! byte 0 type   1 flags   2 HLEN   3 PDO   4 PLEN (4)   8.. by type, to HLEN
//! then the header digest if agreed, padding up to PDO, data, the data digest if agreed
//! ```
//! Source: NVMe/TCP transport 1.0 section 3.6. Deliberately not here: digests, and who sends what when.

use crate::cqe::Cqe;
use crate::sqe::Sqe;

/// Types of PDUs.
pub mod kind {
    /// The host's greeting.
    pub const IC_REQ: u8 = 0;
    /// The target's.
    pub const IC_RESP: u8 = 1;
    /// The host ends the connection and says why.
    pub const H2C_TERM_REQ: u8 = 2;
    /// The target does.
    pub const C2H_TERM_REQ: u8 = 3;
    /// A command, perhaps with data.
    pub const CAPSULE_CMD: u8 = 4;
    /// A completion.
    pub const CAPSULE_RESP: u8 = 5;
    /// Data from the host that was asked for.
    pub const H2C_DATA: u8 = 6;
    /// Data for the host.
    pub const C2H_DATA: u8 = 7;
    /// The target asks for data.
    pub const R2T: u8 = 9;
}

/// Flags of a PDU.
pub mod flag {
    /// A header digest follows the header.
    pub const HDGST: u8 = 1;
    /// A data digest follows the data.
    pub const DDGST: u8 = 1 << 1;
    /// The last data of a transfer.
    pub const LAST: u8 = 1 << 2;
    /// The command has succeeded; no completion follows.
    pub const SUCCESS: u8 = 1 << 3;
}

/// Bytes every PDU begins with.
pub const COMMON_BYTES: usize = 8;
/// HLEN and PLEN of both greetings.
pub const HELLO_BYTES: usize = 128;
/// HLEN of a command: the common bytes and the entry.
pub const COMMAND_BYTES: usize = COMMON_BYTES + Sqe::BYTES;
/// HLEN of data and of R2T.
pub const DATA_BYTES: usize = 24;
/// HLEN of a completion.
pub const RESPONSE_BYTES: usize = COMMON_BYTES + Cqe::BYTES;
/// HLEN of a TermReq.
pub const TERM_BYTES: usize = 24;
/// Bytes of the wrong header that a TermReq may carry: PLEN is at most 152.
pub const TERM_DATA_BYTES_MAX: usize = 128;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;

/// What every PDU begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// Type.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// HLEN.
    pub hlen: u8,
    /// PDO: where the data begins; 0 if there is none.
    pub pdo: u8,
    /// PLEN: bytes of the whole PDU.
    pub plen: u32,
}

impl CommonHeader {
    /// From its bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; COMMON_BYTES]) -> Self {
        let [kind, flags, hlen, pdo, p0, p1, p2, p3] = *bytes;
        Self { kind, flags, hlen, pdo, plen: u32::from_le_bytes([p0, p1, p2, p3]) }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; COMMON_BYTES] {
        let [p0, p1, p2, p3] = self.plen.to_le_bytes();
        [self.kind, self.flags, self.hlen, self.pdo, p0, p1, p2, p3]
    }
}

const _: () = assert!(RESPONSE_BYTES == 24 && COMMAND_BYTES == 72, "table 3-5 and table 3-6");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_have_their_fields_where_the_figure_puts_them() {
        let bytes = [kind::C2H_DATA, flag::LAST, 24, 28, 0x02, 0x01, 0, 0];
        let header = CommonHeader { kind: 7, flags: 4, hlen: 24, pdo: 28, plen: 0x102 };
        assert_eq!((CommonHeader::decode(&bytes), header.encode()), (header, bytes));
    }
}
