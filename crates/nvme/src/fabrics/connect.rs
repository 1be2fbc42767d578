//! Connect: the entry, the 1024 bytes of data behind it, and what may be wrong with them.
//!
//! ```text
//! entry   CDW10  RECFMT 15:0, QID 31:16     CDW11  SQSIZE 15:0, CATTR 23:16     CDW12  KATO
//! data    byte 0 HOSTID   16 CNTLID   256 SUBNQN   512 HOSTNQN
//! ```
//! Source: NVMe over Fabrics 1.1 figures 18 to 21.

use super::{FabricsType, NQN_BYTES_MAX};
use crate::sqe::Sqe;
use crate::status::Status;
use crate::wire::{ShortInput, array_at, bit, fixed, flag, high_half, low_half, put, u16_at};
use std::fmt;

/// CNTLID of a host that takes any controller.
pub const DYNAMIC_CNTLID: u16 = 0xFFFF;

/// The Connect entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// RECFMT: format of entry and data; 0 is the only one.
    pub recfmt: u16,
    /// QID: which queue; 0 is the admin queue.
    pub qid: u16,
    /// SQSIZE: entries of the submission queue, 0-based as on the wire.
    pub sqsize: u16,
    /// CATTR bit 2: the host does not want to be told the queue's head.
    pub no_flow_control: bool,
    /// KATO: the host may be silent for so long, milliseconds; 0 is for ever.
    pub kato_ms: u32,
}

impl Connect {
    /// The view of a Connect entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            recfmt: low_half(sqe.cdw10),
            qid: high_half(sqe.cdw10),
            sqsize: low_half(sqe.cdw11),
            no_flow_control: bit(sqe.cdw11, 18),
            kato_ms: sqe.cdw12,
        }
    }
}

impl Sqe {
    /// Connect. The data pointer is the transport's to fill in.
    pub fn connect(connect: Connect) -> Self {
        let Connect { recfmt, qid, sqsize, no_flow_control, kato_ms } = connect;
        Self {
            cdw10: u32::from(qid) << 16 | u32::from(recfmt),
            cdw11: u32::from(sqsize) | flag(no_flow_control, 18),
            cdw12: kato_ms,
            ..Self::fabrics(FabricsType::CONNECT)
        }
    }
}

/// The data of Connect: who wants what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectData {
    /// HOSTID: which host.
    pub hostid: [u8; 16],
    /// CNTLID: which controller; [`DYNAMIC_CNTLID`] for a new one.
    pub cntlid: u16,
    /// SUBNQN: which subsystem.
    pub subnqn: String,
    /// HOSTNQN: the host's name.
    pub hostnqn: String,
}

/// Why bytes are not the data of Connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectDataError {
    /// The input ends too early.
    Short(ShortInput),
    /// A name is not UTF-8, or longer than 223 bytes.
    Name {
        /// Byte at which it begins.
        offset: u16,
    },
}

impl fmt::Display for ConnectDataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Name { offset } => write!(
                f,
                "the name at byte {offset} of the data of Connect should be UTF-8 text of at most {NQN_BYTES_MAX} bytes; the \
                 host's name or the subsystem's is wrong"
            ),
        }
    }
}

impl std::error::Error for ConnectDataError {}

/// Where SUBNQN begins.
const SUBNQN: u16 = 256;
/// Where HOSTNQN begins.
const HOSTNQN: u16 = 512;

impl ConnectData {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 1024;

    /// From the first 1024 bytes.
    ///
    /// # Errors
    /// [`ConnectDataError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ConnectDataError> {
        let bytes =
            fixed::<{ Self::BYTES }>("the data of Connect", bytes).map_err(ConnectDataError::Short)?;
        Ok(Self {
            hostid: array_at(bytes, 0),
            cntlid: u16_at(bytes, 16),
            subnqn: name_at(bytes, SUBNQN)?,
            hostnqn: name_at(bytes, HOSTNQN)?,
        })
    }

    /// The 1024 bytes.
    ///
    /// # Panics
    /// If a name is longer than 223 bytes or holds a zero byte.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.hostid);
        put(&mut bytes, 16, &self.cntlid.to_le_bytes());
        for (offset, name) in [(SUBNQN, &self.subnqn), (HOSTNQN, &self.hostnqn)] {
            assert!(name.len() <= NQN_BYTES_MAX && !name.contains('\0'), "{name:?} is no qualified name");
            put(&mut bytes, usize::from(offset), name.as_bytes());
        }
        bytes
    }
}

/// The text at `offset`, up to its zero byte.
fn name_at(bytes: &[u8; ConnectData::BYTES], offset: u16) -> Result<String, ConnectDataError> {
    let field = &bytes[usize::from(offset)..][..256];
    let length = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..length]).ok().filter(|_| length <= NQN_BYTES_MAX);
    text.map(str::to_owned).ok_or(ConnectDataError::Name { offset })
}

/// Why a Connect is refused. These codes mean something else for other commands, so they are not in the common table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectStatus {
    /// 180h: the format is not supported.
    IncompatibleFormat,
    /// 181h: there is no controller left.
    ControllerBusy,
    /// 182h: a field is wrong; DW0 says which.
    InvalidParameters {
        /// Byte of the field.
        offset: u16,
        /// The field is in the data, not in the entry.
        in_data: bool,
    },
    /// 184h: this host may not come.
    InvalidHost,
}

impl ConnectStatus {
    /// The code.
    pub fn status(self) -> Status {
        Status(match self {
            Self::IncompatibleFormat => 0x180,
            Self::ControllerBusy => 0x181,
            Self::InvalidParameters { .. } => 0x182,
            Self::InvalidHost => 0x184,
        })
    }

    /// DW0 of the completion: the offset of the wrong field, bit 16 if it is in the data.
    pub fn dw0(self) -> u32 {
        match self {
            Self::InvalidParameters { offset, in_data } => u32::from(offset) | flag(in_data, 16),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_has_its_fields_where_the_table_puts_them() {
        let mut bytes = [0; 64];
        bytes[0] = 0x7F;
        bytes[4] = 1;
        bytes[40..52].copy_from_slice(&[0, 0, 3, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0]);
        let connect = Connect { recfmt: 0, qid: 3, sqsize: 127, no_flow_control: true, kato_ms: 5000 };
        assert_eq!(Sqe::connect(connect).encode(), bytes);
        let sqe = Sqe::decode(&bytes);
        assert_eq!((FabricsType::of(&sqe), Connect::of(&sqe)), (FabricsType::CONNECT, connect));
    }

    #[test]
    fn the_data_has_its_fields_where_the_table_puts_them() {
        let mut bytes = [0; 1024];
        bytes[0] = 7;
        bytes[16] = 0xFF;
        bytes[17] = 0xFF;
        bytes[256..259].copy_from_slice(b"sub");
        bytes[512..516].copy_from_slice(b"host");
        let mut hostid = [0; 16];
        hostid[0] = 7;
        let (subnqn, hostnqn) = ("sub".to_owned(), "host".to_owned());
        let data = ConnectData { hostid, cntlid: DYNAMIC_CNTLID, subnqn, hostnqn };
        assert_eq!(ConnectData::decode(&bytes), Ok(data.clone()));
        assert_eq!(data.encode(), bytes);
    }

    #[test]
    fn damaged_names_are_refused_with_their_place() {
        let mut bytes = [0; 1024];
        bytes[512..736].fill(b'x');
        let error = ConnectData::decode(&bytes).expect_err("224 bytes");
        assert_eq!(error, ConnectDataError::Name { offset: 512 });
        assert!(error.to_string().contains("byte 512"), "{error}");
        bytes[256] = 0xFF;
        assert_eq!(ConnectData::decode(&bytes), Err(ConnectDataError::Name { offset: 256 }));
        assert!(matches!(ConnectData::decode(&bytes[1..]), Err(ConnectDataError::Short(_))));
    }

    #[test]
    fn a_refusal_says_where_the_wrong_field_is() {
        let wrong = ConnectStatus::InvalidParameters { offset: 256, in_data: true };
        assert_eq!((wrong.status(), wrong.dw0()), (Status(0x182), 0x1_0100));
        assert_eq!(
            (ConnectStatus::InvalidHost.status(), ConnectStatus::InvalidHost.dw0()),
            (Status(0x184), 0)
        );
    }
}
