//! PDUs, the packets of NVMe/TCP: limits, and those that the target sends.
//!
//! ```text
//! byte 0 type   1 flags   2 HLEN   3 PDO   4 PLEN (4)   8.. by type, to HLEN
//! then the header digest if agreed, padding up to PDO, data, the data digest if agreed
//! ```
//! All fields are little-endian. Source: NVMe/TCP transport 1.0 section 3.6. Deliberately not here: when what is sent.

use crate::pool::PIECE_BYTES_MAX;
use crate::send_queue::SendQueue;
use ocssd_nvme::Cqe;
pub use ocssd_nvme::tcp::{
    COMMAND_BYTES, COMMON_BYTES, CommonHeader, DATA_BYTES, DIGEST_BYTES, HELLO_BYTES, RESPONSE_BYTES,
    TERM_BYTES, TERM_DATA_BYTES_MAX, flag, kind,
};

/// Data a command may carry in its capsule (chosen: what Linux's own target takes; more is asked for by R2T).
pub const IN_CAPSULE_BYTES_MAX: usize = 16 << 10;

/// Data of one H2CData (MAXH2CDATA), chosen: a whole transfer, but for those of transactions, whose data comes in several.
pub const H2C_BYTES_MAX: usize = PIECE_BYTES_MAX;

const _: () =
    assert!(IN_CAPSULE_BYTES_MAX >= 8192, "admin and Fabrics commands may carry 8192 bytes (section 3.3.2)");

/// Why a connection is ended, FES of a TermReq (figure 28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatalError {
    /// A field of a header.
    InvalidHeaderField,
    /// A PDU that may not come now.
    SequenceError,
    /// The header's digest is wrong.
    HeaderDigest,
    /// Data that nobody asked for.
    DataOutOfRange,
    /// More data at once than agreed.
    LimitExceeded,
    /// Something the target does not do.
    UnsupportedParameter,
}

impl FatalError {
    const fn code(self) -> u16 {
        match self {
            Self::InvalidHeaderField => 1,
            Self::SequenceError => 2,
            Self::HeaderDigest => 3,
            Self::DataOutOfRange => 4,
            Self::LimitExceeded => 5,
            Self::UnsupportedParameter => 6,
        }
    }
}

/// What both ends agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Headers carry a digest.
    pub header_digest: bool,
    /// Data carries a digest.
    pub data_digest: bool,
    /// Data for the host begins at a multiple of this many bytes; 0 before the greeting.
    pub alignment: usize,
}

impl Agreed {
    /// Bytes of the digest behind each header.
    #[must_use]
    pub const fn header_digest_bytes(&self) -> usize {
        if self.header_digest { DIGEST_BYTES } else { 0 }
    }

    /// Bytes of the digest behind data.
    #[must_use]
    pub const fn data_digest_bytes(&self) -> usize {
        if self.data_digest { DIGEST_BYTES } else { 0 }
    }

    fn header_flag(&self) -> u8 {
        if self.header_digest { flag::HDGST } else { 0 }
    }

    /// Adds a header and its digest.
    fn push(&self, send_queue: &mut SendQueue, header: &[u8]) {
        send_queue.push_text(header);
        if self.header_digest {
            send_queue.push_text(&crc32c::crc32c(header).to_le_bytes());
        }
    }

    /// The answer to a greeting.
    pub fn push_hello(&self, send_queue: &mut SendQueue, data_bytes_max: usize) {
        let mut header = [0; HELLO_BYTES];
        put_common(&mut header, kind::IC_RESP, 0, 0, HELLO_BYTES);
        header[11] = u8::from(self.header_digest) | u8::from(self.data_digest) << 1;
        header[12..16].copy_from_slice(&u32_of(data_bytes_max).to_le_bytes());
        send_queue.push_text(&header);
    }

    /// A completion.
    pub fn push_completion(&self, send_queue: &mut SendQueue, cqe: &Cqe) {
        let mut header = [0; RESPONSE_BYTES];
        put_common(&mut header, kind::CAPSULE_RESP, self.header_flag(), 0, self.plain_bytes(RESPONSE_BYTES));
        header[COMMON_BYTES..].copy_from_slice(&cqe.encode());
        self.push(send_queue, &header);
    }

    /// Asks for all data of a command.
    pub fn push_r2t(&self, send_queue: &mut SendQueue, cid: u16, tag: u16, bytes: usize) {
        let mut header = [0; DATA_BYTES];
        put_common(&mut header, kind::R2T, self.header_flag(), 0, self.plain_bytes(DATA_BYTES));
        header[8..10].copy_from_slice(&cid.to_le_bytes());
        header[10..12].copy_from_slice(&tag.to_le_bytes());
        header[16..20].copy_from_slice(&u32_of(bytes).to_le_bytes());
        self.push(send_queue, &header);
    }

    /// What stands before the data of a command; all of it comes in this one PDU.
    pub fn push_data_header(&self, send_queue: &mut SendQueue, cid: u16, bytes: usize, is_success: bool) {
        let begin = self.plain_bytes(DATA_BYTES);
        let data_at = begin.next_multiple_of(self.alignment.max(1));
        let mut flags = self.header_flag() | flag::LAST;
        if self.data_digest {
            flags |= flag::DDGST;
        }
        if is_success {
            flags |= flag::SUCCESS;
        }
        let mut header = [0; DATA_BYTES];
        put_common(&mut header, kind::C2H_DATA, flags, data_at, data_at + bytes + self.data_digest_bytes());
        header[8..10].copy_from_slice(&cid.to_le_bytes());
        header[16..20].copy_from_slice(&u32_of(bytes).to_le_bytes());
        self.push(send_queue, &header);
        send_queue.push_text(&[0; 128][..data_at - begin]);
    }

    const fn plain_bytes(&self, hlen: usize) -> usize {
        hlen + self.header_digest_bytes()
    }
}

/// Says why the connection ends. It carries no digest, agreed or not.
pub fn push_term(send_queue: &mut SendQueue, error: FatalError, offset: u32, wrong: &[u8]) {
    let wrong = &wrong[..wrong.len().min(TERM_DATA_BYTES_MAX)];
    let mut header = [0; TERM_BYTES];
    put_common(&mut header, kind::C2H_TERM_REQ, 0, 0, TERM_BYTES + wrong.len());
    header[8..10].copy_from_slice(&error.code().to_le_bytes());
    header[10..14].copy_from_slice(&offset.to_le_bytes());
    send_queue.push_text(&header);
    send_queue.push_text(wrong);
}

fn put_common(header: &mut [u8], kind: u8, flags: u8, pdo: usize, plen: usize) {
    let hlen = u8::try_from(header.len()).expect("headers have at most 128 bytes");
    let pdo = u8::try_from(pdo).expect("data begins within 152 bytes");
    let common = CommonHeader { kind, flags, hlen, pdo, plen: u32_of(plen) };
    header[..COMMON_BYTES].copy_from_slice(&common.encode());
}

fn u32_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a transfer has at most 256 KiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::testing::buffers;
    use std::io::IoSlice;

    fn sent(push: impl Fn(&mut SendQueue)) -> Vec<u8> {
        let mut send_queue = SendQueue::default();
        push(&mut send_queue);
        let buffers = buffers();
        let mut slices = [IoSlice::new(&[]); 4];
        let used = send_queue.slices(&buffers, &mut slices);
        slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect()
    }

    #[test]
    fn fields_are_where_the_figures_put_them() {
        let plain = Agreed { alignment: 4, ..Agreed::default() };
        let hello = sent(|send_queue| plain.push_hello(send_queue, H2C_BYTES_MAX));
        assert_eq!(hello[..16], [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
        let r2t = sent(|send_queue| plain.push_r2t(send_queue, 0x1234, 7, 0x8000));
        assert_eq!(r2t, [9, 0, 24, 0, 24, 0, 0, 0, 0x34, 0x12, 7, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0]);
        let data = sent(|send_queue| plain.push_data_header(send_queue, 3, 512, true));
        assert_eq!(data[..20], [7, 12, 24, 24, 24, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
        let term = sent(|send_queue| push_term(send_queue, FatalError::HeaderDigest, 9, &[5; 200]));
        assert_eq!((term.len(), &term[..14]), (152, &[3, 0, 24, 0, 152, 0, 0, 0, 3, 0, 9, 0, 0, 0][..]));
    }

    #[test]
    fn digests_and_alignment_move_the_data() {
        let agreed = Agreed { header_digest: true, data_digest: true, alignment: 64 };
        let data = sent(|send_queue| agreed.push_data_header(send_queue, 3, 512, false));
        assert_eq!((data.len(), data[3], data[1]), (64, 64, 7));
        assert_eq!(u32::from_le_bytes(data[4..8].try_into().unwrap()), 64 + 512 + 4);
        assert_eq!(data[24..28], crc32c::crc32c(&data[..24]).to_le_bytes());
        assert_eq!(data[28..], [0; 36]);
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        // RFC 3720 appendix B.4: 32 bytes of zeroes.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8A91_36AA);
    }
}
