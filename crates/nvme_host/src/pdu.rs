//! Packets of NVMe/TCP as a host sends them and takes them apart, without digests.
//!
//! Whatever comes is judged: a server is another program, and perhaps a broken one. Deliberately not here: sockets (`link`).

use crate::error::HostError;
use ocssd_base::usize_of;
use ocssd_nvme::tcp::{
    COMMAND_BYTES, COMMON_BYTES, CommonHeader, DATA_BYTES, HELLO_BYTES, RESPONSE_BYTES, TERM_BYTES, flag,
    kind,
};
use ocssd_nvme::{Cqe, Sqe};

/// Most bytes of a packet that is taken (chosen: a transfer of 1 MiB, the largest a server here does, with its header).
const PDU_BYTES_MAX: usize = (1 << 20) + 256;

/// Something the server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Its greeting: data of one packet at most.
    Hello {
        /// So much.
        data_max: usize,
    },
    /// A command has ended.
    Completion(Cqe),
    /// Data of a command.
    Data {
        /// Which.
        cid: u16,
        /// From this byte of the command's on.
        offset: usize,
        /// The bytes.
        bytes: &'a [u8],
        /// No completion follows.
        is_success: bool,
    },
    /// It asks for data of a command.
    Ask {
        /// Which.
        cid: u16,
        /// What the data is to be called.
        tag: u16,
        /// From this byte on.
        offset: usize,
        /// So much.
        bytes: usize,
    },
}

fn common(kind: u8, flags: u8, hlen: usize, pdo: usize, bytes: usize) -> [u8; COMMON_BYTES] {
    let small = |bytes: usize| u8::try_from(bytes).expect("a header has at most 128 bytes");
    let plen = u32::try_from(hlen + bytes).expect("a transfer fits 32 bits");
    CommonHeader { kind, flags, hlen: small(hlen), pdo: small(pdo), plen }.encode()
}

/// This host's greeting: no digests, data at multiples of four.
pub fn push_hello(out: &mut Vec<u8>) {
    out.extend_from_slice(&common(kind::IC_REQ, 0, HELLO_BYTES, 0, 0));
    out.resize(out.len() + HELLO_BYTES - COMMON_BYTES, 0);
}

/// A command, with `data` in its capsule.
pub fn push_command(out: &mut Vec<u8>, sqe: &Sqe, data: &[u8]) {
    let pdo = if data.is_empty() { 0 } else { COMMAND_BYTES };
    out.extend_from_slice(&common(kind::CAPSULE_CMD, 0, COMMAND_BYTES, pdo, data.len()));
    out.extend_from_slice(&sqe.encode());
    out.extend_from_slice(data);
}

/// The header of data that was asked for.
pub fn push_data_header(
    out: &mut Vec<u8>,
    (cid, tag): (u16, u16),
    offset: usize,
    bytes: usize,
    is_last: bool,
) {
    let flags = if is_last { flag::LAST } else { 0 };
    let number = |bytes: usize| u32::try_from(bytes).expect("a transfer fits 32 bits").to_le_bytes();
    out.extend_from_slice(&common(kind::H2C_DATA, flags, DATA_BYTES, DATA_BYTES, bytes));
    out.extend_from_slice(&cid.to_le_bytes());
    out.extend_from_slice(&tag.to_le_bytes());
    out.extend_from_slice(&number(offset));
    out.extend_from_slice(&number(bytes));
    out.extend_from_slice(&[0; 4]);
}

/// How long the packet is that begins here; `None` if that is not known yet.
///
/// # Errors
/// If no packet begins so.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, HostError> {
    let Some(first) = bytes.first_chunk() else { return Ok(None) };
    let common = CommonHeader::decode(first);
    let plen = usize_of(common.plen);
    let hlen = usize::from(common.hlen);
    let expected = match common.kind {
        kind::IC_RESP => HELLO_BYTES,
        kind::CAPSULE_RESP => RESPONSE_BYTES,
        kind::C2H_DATA | kind::R2T => DATA_BYTES,
        kind::C2H_TERM_REQ => TERM_BYTES,
        other => return Err(HostError::broken(format!("the server sent a packet of type {other}"))),
    };
    if hlen != expected || !(hlen..=PDU_BYTES_MAX).contains(&plen) {
        return Err(HostError::broken(format!(
            "the server sent a packet of {plen} bytes, {hlen} of them header"
        )));
    }
    if common.flags & (flag::HDGST | flag::DDGST) != 0 {
        return Err(HostError::broken("the server uses digests that were not agreed on"));
    }
    Ok(Some(plen))
}

/// Takes a whole packet apart.
///
/// # Errors
/// If the server ends the connection, or it is none.
pub fn decode(pdu: &[u8]) -> Result<Answer<'_>, HostError> {
    let common = CommonHeader::decode(pdu.first_chunk().expect("its length is known"));
    let u16_at = |at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    match common.kind {
        kind::IC_RESP if pdu[11] == 0 => Ok(Answer::Hello { data_max: usize_of(u32_at(12)) }),
        kind::IC_RESP => Err(HostError::broken("the server wants digests, which this host did not offer")),
        kind::CAPSULE_RESP => {
            Ok(Answer::Completion(Cqe::decode(pdu[COMMON_BYTES..].first_chunk().expect("24 bytes"))))
        }
        kind::R2T => Ok(Answer::Ask {
            cid: u16_at(8),
            tag: u16_at(10),
            offset: usize_of(u32_at(12)),
            bytes: usize_of(u32_at(16)),
        }),
        kind::C2H_DATA => {
            let (pdo, length) = (usize::from(common.pdo), usize_of(u32_at(16)));
            let bytes = pdu.get(pdo..).filter(|rest| pdo >= DATA_BYTES && rest.len() == length);
            let bytes = bytes.ok_or_else(|| {
                HostError::broken(format!("{length} bytes of data came in a packet of {}", pdu.len()))
            })?;
            let is_success = common.flags & flag::SUCCESS != 0;
            Ok(Answer::Data { cid: u16_at(8), offset: usize_of(u32_at(12)), bytes, is_success })
        }
        _ => Err(HostError::broken(format!(
            "the server ended the connection: error {} of the transport",
            u16_at(8)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_as_the_figures_have_them() {
        let mut out = Vec::new();
        push_hello(&mut out);
        assert_eq!((out.len(), &out[..12]), (128, &[0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 0][..]));
        out.clear();
        push_command(&mut out, &Sqe::flush(1).with_cid(7), &[9; 4]);
        assert_eq!((out.len(), &out[..12]), (76, &[4, 0, 72, 72, 76, 0, 0, 0, 0, 0, 7, 0][..]));
        out.clear();
        push_data_header(&mut out, (3, 5), 16, 8, true);
        assert_eq!(out[..20], [6, 4, 24, 24, 32, 0, 0, 0, 3, 0, 5, 0, 16, 0, 0, 0, 8, 0, 0, 0]);
    }

    #[test]
    fn what_a_server_sends_is_taken_apart() {
        let data = [7, 12, 24, 24, 28, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(length(&data[..8]), Ok(Some(28)));
        let expected = Answer::Data { cid: 3, offset: 8, bytes: &[1, 2, 3, 4], is_success: true };
        assert_eq!(decode(&data), Ok(expected));
        let ask = [9, 0, 24, 0, 24, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode(&ask), Ok(Answer::Ask { cid: 3, tag: 5, offset: 0, bytes: 4096 }));
        assert_eq!(length(&data[..7]), Ok(None));
    }

    #[test]
    fn what_a_server_may_not_send_is_told_and_nothing_panics() {
        let whole = |kind: u8, hlen: u8, plen: u8| [kind, 0, hlen, 24, plen, 0, 0, 0];
        for (bytes, part) in [
            (whole(4, 72, 72), "type 4"),
            (whole(7, 23, 40), "23 of them header"),
            (whole(7, 24, 23), "a packet of 23 bytes"),
            ([7, 1, 24, 24, 24, 0, 0, 0], "digests"),
            ([7, 0, 24, 24, 0, 0, 0, 1], "a packet of 16777216 bytes"),
        ] {
            assert!(length(&bytes).expect_err(part).sentence.contains(part), "{part}");
        }
        let mut short = [0; 28];
        short[..8].copy_from_slice(&whole(7, 24, 28));
        short[16] = 5;
        assert!(decode(&short).expect_err("5 bytes in 4").sentence.contains("5 bytes of data"));
        short[..8].copy_from_slice(&[7, 0, 24, 255, 28, 0, 0, 0]);
        assert!(decode(&short).is_err());
        let term = [3, 0, 24, 0, 24, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(decode(&term).expect_err("it ends").sentence.contains("error 2"));
    }
}
