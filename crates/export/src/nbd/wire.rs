//! The numbers of the NBD protocol, and its fixed-size messages. Big-endian.
//!
//! Source: the NBD protocol document (doc/proto.md of the NBD project), sections "Newstyle negotiation", "Simple reply
//! message", "Structured reply chunk message", "Constants". Deliberately not here: what the messages mean together.

/// First bytes of a server.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// Newstyle, and before every option: `IHAVEOPT`.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag, both sides: fixed newstyle.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag, both sides: no zeroes after the answer to `EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 2;

/// Longest text the protocol allows, in bytes ("Values", string).
pub const TEXT_BYTES_MAX: usize = 4096;

/// Longest request without another agreement, in bytes ("Block size constraints").
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;

/// Options (`NBD_OPT_*`).
pub mod option {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options (`NBD_REP_*`).
pub mod reply {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Information about an export (`NBD_INFO_*`).
pub mod info {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags (`NBD_FLAG_*`).
pub mod flag {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands (`NBD_CMD_*`).
pub mod command {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command (`NBD_CMD_FLAG_*`).
pub mod command_flag {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies (`NBD_REPLY_TYPE_*`), and their flag.
pub mod chunk {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub const FLAG_DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// States of `base:allocation`.
pub mod allocation {
    /// Nothing is stored there (`NBD_STATE_HOLE`).
    pub const HOLE: u32 = 1;
    /// It reads as zeroes (`NBD_STATE_ZERO`).
    pub const ZERO: u32 = 2;
}

/// Errors a server may tell (`NBD_E*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdError {
    /// Not permitted.
    Perm,
    /// Input or output failed.
    Io,
    /// An argument is wrong.
    Inval,
    /// No space.
    NoSpc,
    /// Not supported.
    NotSup,
    /// The server is about to go.
    Shutdown,
}

impl NbdError {
    /// The number sent.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::Inval => 22,
            Self::NoSpc => 28,
            Self::NotSup => 95,
            Self::Shutdown => 108,
        }
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Flags of the command.
    pub flags: u16,
    /// The command.
    pub command: u16,
    /// The client's name for it.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
}

impl RequestHeader {
    /// From what was sent; `None` if it does not begin as a request does.
    #[must_use]
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: fields.u16()?,
            command: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }

    /// As a client sends it.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// A simple reply's header.
#[must_use]
pub fn simple_reply(error: u32, cookie: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// The header of a chunk of a structured reply.
#[must_use]
pub fn chunk_header(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Takes big-endian fields off the front of bytes from outside; `None` where they end too early.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text behind its length of four bytes; `None` also if it is too long or no UTF-8.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.u32()?).ok().filter(|&length| length <= TEXT_BYTES_MAX)?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_bytes_and_needs_its_magic() {
        let header =
            RequestHeader { flags: 1, command: 6, cookie: 7 << 40, offset: 1 << 50, length: u32::MAX };
        let mut bytes = header.encode();
        assert_eq!(RequestHeader::decode(&bytes), Some(header));
        bytes[0] ^= 1;
        assert_eq!(RequestHeader::decode(&bytes), None);
    }

    #[test]
    fn fields_end_where_the_bytes_end() {
        let mut fields = Fields(&[0, 0, 0, 2, b'a', b'b', 0]);
        assert_eq!((fields.text(), fields.u16(), fields.bytes(1)), (Some("ab"), None, Some(&[0][..])));
        assert_eq!(Fields(&[0, 0, 0, 9, b'a']).text(), None);
        assert_eq!(Fields(&[0xff; 8]).text(), None);
        assert_eq!(Fields(&[0, 0, 0, 1, 0xff]).text(), None);
    }
}
