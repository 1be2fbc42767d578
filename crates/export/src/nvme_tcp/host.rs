//! A host's side of NVMe/TCP, for tests, fuzzers and measurements: PDUs made, and the target's taken apart.
//!
//! It is a referee: what the target may not send makes it panic. Deliberately not here: sockets, and what a host wants.

use super::wire::{
    Agreed, COMMAND_BYTES, COMMON_BYTES, CommonHeader, DATA_BYTES, HELLO_BYTES, RESPONSE_BYTES, TERM_BYTES,
    flag, kind,
};
use ocssd_base::usize_of;
use ocssd_nvme::fabrics::{Connect, ConnectData};
use ocssd_nvme::sgl::{SUBTYPE_OFFSET, SUBTYPE_TRANSPORT, SglDescriptor, SglKind};
use ocssd_nvme::{Cqe, Sqe};

/// Something the target sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its greeting.
    Hello {
        /// Data of one H2CData at most.
        data_max: u32,
    },
    /// A completion.
    Completion(Cqe),
    /// Data.
    Data {
        /// Of this command.
        cid: u16,
        /// The bytes.
        bytes: Vec<u8>,
        /// No completion follows.
        is_success: bool,
    },
    /// It asks for data.
    Ask {
        /// Of this command.
        cid: u16,
        /// Under this name.
        tag: u16,
        /// From this byte on.
        offset: usize,
        /// So much.
        bytes: usize,
    },
    /// It ends the connection.
    Term {
        /// FES.
        error: u16,
        /// FEI.
        offset: u32,
    },
}

/// A host's side of one connection.
#[derive(Debug, Default)]
pub struct Host {
    agreed: Agreed,
    received: Vec<u8>,
    /// Bytes of it that were taken apart.
    taken: usize,
}

/// The entry with its data in the capsule.
#[must_use]
pub fn in_capsule(sqe: Sqe, bytes: usize) -> Sqe {
    described(sqe, SglKind::DataBlock, SUBTYPE_OFFSET, bytes)
}

/// The entry with its data moved by the transport; of no bytes if it moves none.
#[must_use]
pub fn transported(sqe: Sqe, bytes: usize) -> Sqe {
    described(sqe, SglKind::TransportDataBlock, SUBTYPE_TRANSPORT, bytes)
}

fn described(sqe: Sqe, kind: SglKind, subtype: u8, bytes: usize) -> Sqe {
    let length_bytes = u32::try_from(bytes).expect("a transfer fits 32 bits");
    sqe.with_sgl(&SglDescriptor { address: 0, length_bytes, kind, subtype })
}

fn digest(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).to_le_bytes()
}

impl Host {
    /// A host that wants these digests.
    #[must_use]
    pub fn new(header_digest: bool, data_digest: bool) -> Self {
        let agreed = Agreed { header_digest, data_digest, alignment: 4 };
        Self { agreed, ..Self::default() }
    }

    /// Its greeting.
    #[must_use]
    pub fn hello(&self) -> Vec<u8> {
        let mut pdu = vec![0; HELLO_BYTES];
        (pdu[0], pdu[2], pdu[4]) = (kind::IC_REQ, 128, 128);
        pdu[11] = u8::from(self.agreed.header_digest) | u8::from(self.agreed.data_digest) << 1;
        pdu
    }

    /// A command, with `data` in its capsule.
    #[must_use]
    pub fn command(&self, sqe: &Sqe, data: &[u8]) -> Vec<u8> {
        let mut pdu = vec![0; COMMAND_BYTES];
        pdu[COMMON_BYTES..].copy_from_slice(&sqe.encode());
        self.finish(pdu, kind::CAPSULE_CMD, 0, data)
    }

    /// Connect, as Linux sends it.
    #[must_use]
    pub fn connect(&self, cid: u16, connect: Connect, data: &ConnectData) -> Vec<u8> {
        self.command(&in_capsule(Sqe::connect(connect), ConnectData::BYTES).with_cid(cid), &data.encode())
    }

    /// Data that was asked for.
    #[must_use]
    pub fn data(&self, cid: u16, tag: u16, offset: usize, data: &[u8], is_last: bool) -> Vec<u8> {
        let mut pdu = vec![0; DATA_BYTES];
        pdu[8..10].copy_from_slice(&cid.to_le_bytes());
        pdu[10..12].copy_from_slice(&tag.to_le_bytes());
        pdu[12..16].copy_from_slice(&u32::try_from(offset).expect("small").to_le_bytes());
        pdu[16..20].copy_from_slice(&u32::try_from(data.len()).expect("small").to_le_bytes());
        self.finish(pdu, kind::H2C_DATA, if is_last { flag::LAST } else { 0 }, data)
    }

    /// Common bytes, digests and data.
    fn finish(&self, mut pdu: Vec<u8>, kind: u8, flags: u8, data: &[u8]) -> Vec<u8> {
        let hlen = pdu.len();
        let pdo = hlen + self.agreed.header_digest_bytes();
        let tail = if data.is_empty() { 0 } else { data.len() + self.agreed.data_digest_bytes() };
        let header = if self.agreed.header_digest { flag::HDGST } else { 0 };
        let with_data = if self.agreed.data_digest && !data.is_empty() { flag::DDGST } else { 0 };
        let common = CommonHeader {
            kind,
            flags: flags | header | with_data,
            hlen: u8::try_from(hlen).expect("small"),
            pdo: if data.is_empty() { 0 } else { u8::try_from(pdo).expect("small") },
            plen: u32::try_from(pdo + tail).expect("small"),
        };
        pdu[..COMMON_BYTES].copy_from_slice(&common.encode());
        if self.agreed.header_digest {
            let digest = digest(&pdu);
            pdu.extend(digest);
        }
        pdu.extend_from_slice(data);
        if with_data != 0 {
            pdu.extend(digest(data));
        }
        pdu
    }

    /// What came of the target; what is whole of it is taken apart by [`Self::poll`].
    pub fn receive(&mut self, bytes: &[u8]) {
        self.received.drain(..std::mem::take(&mut self.taken));
        self.received.extend_from_slice(bytes);
    }

    /// The next PDU of the target that is whole.
    ///
    /// # Panics
    /// If the target sent what it may not.
    pub fn poll(&mut self) -> Option<Answer> {
        let rest = &self.received[self.taken..];
        let common = CommonHeader::decode(rest.first_chunk()?);
        let pdu = rest.get(..usize_of(common.plen))?;
        self.taken += pdu.len();
        Some(self.answer(&common, pdu))
    }

    fn answer(&self, common: &CommonHeader, pdu: &[u8]) -> Answer {
        let hlen = usize::from(common.hlen);
        let carries = !matches!(common.kind, kind::IC_RESP | kind::C2H_TERM_REQ);
        let has_digest = common.flags & flag::HDGST != 0;
        assert_eq!(has_digest, carries && self.agreed.header_digest, "{common:?}");
        if has_digest {
            assert_eq!(pdu[hlen..][..4], digest(&pdu[..hlen]), "{common:?}");
        }
        let u16_at = |at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        match (common.kind, hlen) {
            (kind::IC_RESP, HELLO_BYTES) => {
                assert_eq!((u16_at(8), pdu[10]), (0, 0), "version 0, and no alignment Linux does not know");
                let digests = u8::from(self.agreed.header_digest) | u8::from(self.agreed.data_digest) << 1;
                assert_eq!(pdu[11], digests, "digests are what the host asked for");
                Answer::Hello { data_max: u32_at(12) }
            }
            (kind::CAPSULE_RESP, RESPONSE_BYTES) => {
                Answer::Completion(Cqe::decode(pdu[COMMON_BYTES..].first_chunk().expect("16 bytes")))
            }
            (kind::R2T, DATA_BYTES) => Answer::Ask {
                cid: u16_at(8),
                tag: u16_at(10),
                offset: usize_of(u32_at(12)),
                bytes: usize_of(u32_at(16)),
            },
            (kind::C2H_DATA, DATA_BYTES) => {
                let is_digested = common.flags & flag::DDGST != 0;
                assert_eq!(is_digested, self.agreed.data_digest);
                let (pdo, length) = (usize::from(common.pdo), usize_of(u32_at(16)));
                let bytes = &pdu[pdo..][..length];
                assert_eq!(pdu.len(), pdo + length + self.agreed.data_digest_bytes());
                assert!(!is_digested || pdu[pdo + length..] == digest(bytes), "{common:?}");
                assert_eq!(
                    (u32_at(12), common.flags & flag::LAST),
                    (0, flag::LAST),
                    "all data comes at once"
                );
                let is_success = common.flags & flag::SUCCESS != 0;
                Answer::Data { cid: u16_at(8), bytes: bytes.to_vec(), is_success }
            }
            (kind::C2H_TERM_REQ, TERM_BYTES) => Answer::Term { error: u16_at(8), offset: u32_at(10) },
            _ => panic!("a target does not send {common:?}"),
        }
    }
}
