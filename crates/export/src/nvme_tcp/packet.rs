//! What the host sends, header by header: each judged before anything behind it is looked at.
//!
//! Every length is checked here, so that what comes out of it can be counted on. Deliberately not here: data, and what
//! commands mean.

use super::wire::{
    Agreed, COMMAND_BYTES, COMMON_BYTES, CommonHeader, DATA_BYTES, DIGEST_BYTES, FatalError, H2C_BYTES_MAX,
    HELLO_BYTES, IN_CAPSULE_BYTES_MAX, TERM_BYTES, flag, kind,
};
use crate::stats::DropReason;
use ocssd_base::usize_of;
use ocssd_nvme::Sqe;

/// What ends a connection: what is sent about it, and what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// FES.
    pub error: FatalError,
    /// FEI: the byte of the header that is wrong.
    pub offset: u32,
    /// How it is counted.
    pub reason: DropReason,
    /// What was expected, and what came.
    pub sentence: String,
}

impl Fault {
    /// A PDU that cannot be understood, or may not come.
    #[must_use]
    pub fn new(error: FatalError, offset: u32, sentence: impl Into<String>) -> Self {
        let reason = match error {
            FatalError::LimitExceeded => DropReason::Oversized,
            _ => DropReason::Garbage,
        };
        Self { error, offset, reason, sentence: sentence.into() }
    }
}

/// Data that follows a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataPart {
    /// Bytes to drop before it.
    pub pad: usize,
    /// Its bytes; 0 if there is none.
    pub bytes: usize,
}

/// A header that is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The host greets.
    Hello {
        /// HPDA, already in bytes.
        alignment: usize,
        /// It wants header digests.
        header_digest: bool,
        /// It wants data digests.
        data_digest: bool,
    },
    /// A command.
    Command {
        /// The entry.
        sqe: Sqe,
        /// What it carries.
        data: DataPart,
    },
    /// Data that was asked for.
    Data {
        /// The command's identifier.
        cid: u16,
        /// The tag of the R2T.
        tag: u16,
        /// Where in the command's data it belongs.
        offset: usize,
        /// How much.
        data: DataPart,
        /// Nothing follows.
        is_last: bool,
    },
    /// The host ends the connection.
    Closing {
        /// FES, as the host says it.
        error: u16,
    },
}

/// A header on its way in.
#[derive(Clone, Debug)]
pub struct Header {
    bytes: [u8; HELLO_BYTES],
    have: usize,
}

impl Default for Header {
    fn default() -> Self {
        Self { bytes: [0; HELLO_BYTES], have: 0 }
    }
}

/// Which PDUs may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A greeting only.
    Hello,
    /// Anything but a greeting.
    Commands,
}

impl Header {
    /// Nothing of a header has come.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// What has come.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.have]
    }

    /// The next header.
    pub const fn clear(&mut self) {
        self.have = 0;
    }

    /// Bytes that are missing until more is known.
    #[must_use]
    pub fn missing(&self, agreed: &Agreed) -> usize {
        self.needed(agreed) - self.have
    }

    fn needed(&self, agreed: &Agreed) -> usize {
        if self.have < COMMON_BYTES {
            return COMMON_BYTES;
        }
        let digest = if has_digest(self.bytes[0]) { agreed.header_digest_bytes() } else { 0 };
        usize::from(self.bytes[2]) + digest
    }

    /// Takes bytes; returns how many, and the packet once it is whole and sound.
    ///
    /// # Errors
    /// [`Fault`], for what may not come.
    pub fn take(
        &mut self,
        bytes: &[u8],
        agreed: &Agreed,
        expect: Expect,
    ) -> Result<(usize, Option<Packet>), Fault> {
        let mut taken = 0;
        loop {
            let count = self.missing(agreed).min(bytes.len() - taken);
            self.bytes[self.have..][..count].copy_from_slice(&bytes[taken..][..count]);
            let was_known = self.have >= COMMON_BYTES;
            self.have += count;
            taken += count;
            if self.have < COMMON_BYTES {
                return Ok((taken, None));
            }
            if !was_known {
                check_common(&self.common(), agreed, expect)?;
            }
            match self.missing(agreed) {
                0 => return self.packet(agreed).map(|packet| (taken, Some(packet))),
                _ if taken == bytes.len() => return Ok((taken, None)),
                _ => {}
            }
        }
    }

    fn common(&self) -> CommonHeader {
        CommonHeader::decode(self.bytes.first_chunk().expect("the header is longer"))
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from(self.u16_at(at)) | u32::from(self.u16_at(at + 2)) << 16
    }

    /// A whole header.
    fn packet(&self, agreed: &Agreed) -> Result<Packet, Fault> {
        let common = self.common();
        let hlen = usize::from(common.hlen);
        if agreed.header_digest && has_digest(common.kind) {
            let digest = self.bytes[hlen..][..DIGEST_BYTES].first_chunk().copied().unwrap_or_default();
            let found = u32::from_le_bytes(digest);
            let expected = crc32c::crc32c(&self.bytes[..hlen]);
            if found != expected {
                let sentence = format!("a header's digest should be {expected:08x}, but is {found:08x}");
                return Err(Fault::new(FatalError::HeaderDigest, found, sentence));
            }
        }
        match common.kind {
            kind::IC_REQ => self.hello(),
            kind::CAPSULE_CMD => {
                let entry = self.bytes[COMMON_BYTES..].first_chunk().expect("a command's header is 72 bytes");
                let data = data_part(&common, agreed, IN_CAPSULE_BYTES_MAX)?;
                Ok(Packet::Command { sqe: Sqe::decode(entry), data })
            }
            kind::H2C_DATA => self.data(&common, agreed),
            _ => Ok(Packet::Closing { error: self.u16_at(8) }),
        }
    }

    fn hello(&self) -> Result<Packet, Fault> {
        let version = self.u16_at(8);
        if version != 0 {
            let sentence = format!("version 0 of the protocol was expected, but the host speaks {version}");
            return Err(Fault::new(FatalError::UnsupportedParameter, 8, sentence));
        }
        let hpda = self.bytes[10];
        if hpda > 31 {
            let sentence = format!("data may be aligned to at most 32 dwords, but HPDA is {hpda}");
            return Err(Fault::new(FatalError::InvalidHeaderField, 10, sentence));
        }
        let digests = self.bytes[11];
        Ok(Packet::Hello {
            alignment: (usize::from(hpda) + 1) * 4,
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
        })
    }

    fn data(&self, common: &CommonHeader, agreed: &Agreed) -> Result<Packet, Fault> {
        let data = data_part(common, agreed, H2C_BYTES_MAX)?;
        let (offset, length) = (self.u32_at(12), self.u32_at(16));
        if usize_of(length) != data.bytes || data.bytes == 0 {
            let sentence =
                format!("{length} bytes of data were announced in a PDU that carries {}", data.bytes);
            return Err(Fault::new(FatalError::InvalidHeaderField, 16, sentence));
        }
        Ok(Packet::Data {
            cid: self.u16_at(8),
            tag: self.u16_at(10),
            offset: usize_of(offset),
            data,
            is_last: common.flags & flag::LAST != 0,
        })
    }
}

/// Greetings and closings carry none.
const fn has_digest(of: u8) -> bool {
    matches!(of, kind::CAPSULE_CMD | kind::H2C_DATA)
}

/// Judges the first eight bytes.
fn check_common(common: &CommonHeader, agreed: &Agreed, expect: Expect) -> Result<(), Fault> {
    let hlen = match (common.kind, expect) {
        (kind::IC_REQ, Expect::Hello) => HELLO_BYTES,
        (kind::CAPSULE_CMD, Expect::Commands) => COMMAND_BYTES,
        (kind::H2C_DATA, Expect::Commands) => DATA_BYTES,
        (kind::H2C_TERM_REQ, Expect::Commands) => TERM_BYTES,
        (kind::IC_REQ, Expect::Commands) => {
            return Err(Fault::new(FatalError::SequenceError, 0, "a second greeting came"));
        }
        (other, _) => {
            let sentence = format!("a PDU of type {other} came, which a host does not send here");
            return Err(Fault::new(FatalError::InvalidHeaderField, 0, sentence));
        }
    };
    if usize::from(common.hlen) != hlen {
        let sentence = format!("HLEN of type {} should be {hlen}, but is {}", common.kind, common.hlen);
        return Err(Fault::new(FatalError::InvalidHeaderField, 2, sentence));
    }
    let fits = match common.kind {
        kind::IC_REQ => usize_of(common.plen) == HELLO_BYTES,
        kind::H2C_TERM_REQ => (TERM_BYTES..=TERM_BYTES + 128).contains(&usize_of(common.plen)),
        _ => usize_of(common.plen) >= hlen + agreed.header_digest_bytes(),
    };
    if !fits {
        let sentence = format!("PLEN of type {} may not be {}", common.kind, common.plen);
        return Err(Fault::new(FatalError::InvalidHeaderField, 4, sentence));
    }
    if has_digest(common.kind) && (common.flags & flag::HDGST != 0) != agreed.header_digest {
        let sentence = "header digests are used after they were agreed on, and only then";
        return Err(Fault::new(FatalError::InvalidHeaderField, 1, sentence));
    }
    Ok(())
}

/// Where the data of a PDU lies, and how much it is.
fn data_part(common: &CommonHeader, agreed: &Agreed, bytes_max: usize) -> Result<DataPart, Fault> {
    let begin = usize::from(common.hlen) + agreed.header_digest_bytes();
    let plen = usize_of(common.plen);
    if plen == begin {
        return Ok(DataPart::default());
    }
    let (pdo, digest) = (usize::from(common.pdo), agreed.data_digest_bytes());
    // CPDA is 0: data begins at a multiple of four.
    if pdo < begin || !pdo.is_multiple_of(4) || plen <= pdo + digest {
        let sentence = format!(
            "data should begin at a multiple of 4 from {begin} on and end before {plen}, not at {pdo}"
        );
        return Err(Fault::new(FatalError::InvalidHeaderField, 3, sentence));
    }
    if (common.flags & flag::DDGST != 0) != agreed.data_digest {
        let sentence = "data digests are used after they were agreed on, and only then";
        return Err(Fault::new(FatalError::InvalidHeaderField, 1, sentence));
    }
    let bytes = plen - pdo - digest;
    if bytes > bytes_max {
        let sentence = format!("{bytes} bytes of data came at once; at most {bytes_max} were agreed on");
        return Err(Fault::new(FatalError::LimitExceeded, 4, sentence));
    }
    Ok(DataPart { pad: pdo - begin, bytes })
}
