//! The 1.2 identify structure (admin E2h), 4096 bytes.
//!
//! ```text
//! byte 0 version   1 VNVMT   2 CGRPS   4 CAP   8 DOM   12 PPAF   256 + 960 * i  group descriptor i, at most four
//! ```
//! Source: OCSSD 1.2 section 3.1.

use super::group_descriptor::{GroupDescriptor, GroupError};
use super::ppa_format::{PpaFormat, PpaFormatError};
use crate::wire::{ShortInput, array_at, bit, fixed, flag, put, u32_at};
use std::fmt;

/// What a 1.2 drive says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identify {
    /// VNVMT: vendor opcode set, 0 is generic.
    pub vnvmt: u8,
    /// CAP: optional commands.
    pub cap: Capabilities,
    /// DOM: who does what.
    pub dom: DeviceModel,
    /// PPAF: how addresses are packed.
    pub ppaf: PpaFormat,
    /// The groups; their number is CGRPS, at most [`Identify::GROUPS_MAX`]. Linux drives only drives with one.
    pub groups: Vec<GroupDescriptor>,
}

/// Optional commands, CAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Bit 0: bad block table management.
    pub bbt: bool,
    /// Bit 1: hybrid commands.
    pub hybrid: bool,
}

/// Who does what, DOM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceModel {
    /// Bit 0: the mapping table is in the drive. Linux refuses targets on such drives.
    pub hybrid: bool,
    /// Bit 1: the host does ECC.
    pub host_ecc: bool,
}

/// Why bytes are not a 1.2 identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyError {
    /// The input ends too early.
    Short(ShortInput),
    /// The version is not 1.
    Version {
        /// Byte 0 as found.
        found: u8,
    },
    /// There are more groups than the structure has room for.
    GroupCount {
        /// CGRPS as found.
        found: u8,
    },
    /// The address format is not one.
    PpaFormat(PpaFormatError),
    /// A group's fields mean nothing.
    Group {
        /// Which group.
        index: usize,
        /// What is wrong.
        error: GroupError,
    },
}

impl fmt::Display for IdentifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Version { found: 2 } => f.write_str(
                "byte 0 of the 1.2 identify should be 1, but it is 2: this is an OCSSD 2.0 drive; decode it as a geometry",
            ),
            Self::Version { found } => {
                write!(f, "byte 0 of the 1.2 identify should be 1, but it is {found}; is this an open-channel drive?")
            }
            Self::GroupCount { found } => write!(
                f,
                "the 1.2 identify has room for {} groups, but CGRPS (byte 2) is {found}; the drive's identify is damaged",
                Identify::GROUPS_MAX
            ),
            Self::PpaFormat(error) => error.fmt(f),
            Self::Group { index, error } => write!(f, "in group {index} of the 1.2 identify, {error}"),
        }
    }
}

impl std::error::Error for IdentifyError {}

impl Identify {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;
    /// Groups that fit.
    pub const GROUPS_MAX: usize = 4;

    /// From bytes.
    ///
    /// # Errors
    /// [`IdentifyError`], in the order of its variants.
    pub fn decode(bytes: &[u8]) -> Result<Self, IdentifyError> {
        let bytes =
            fixed::<{ Self::BYTES }>("the OCSSD 1.2 identify", bytes).map_err(IdentifyError::Short)?;
        if bytes[0] != 1 {
            return Err(IdentifyError::Version { found: bytes[0] });
        }
        let group_count = usize::from(bytes[2]);
        if group_count > Self::GROUPS_MAX {
            return Err(IdentifyError::GroupCount { found: bytes[2] });
        }
        let (cap, dom) = (u32_at(bytes, 4), u32_at(bytes, 8));
        let ppaf = PpaFormat::decode(&array_at(bytes, 12)).map_err(IdentifyError::PpaFormat)?;
        let group = |index: usize| {
            let descriptor = array_at(bytes, 256 + GroupDescriptor::BYTES * index);
            GroupDescriptor::decode(&descriptor).map_err(|error| IdentifyError::Group { index, error })
        };
        Ok(Self {
            vnvmt: bytes[1],
            cap: Capabilities { bbt: bit(cap, 0), hybrid: bit(cap, 1) },
            dom: DeviceModel { hybrid: bit(dom, 0), host_ecc: bit(dom, 1) },
            ppaf,
            groups: (0..group_count).map(group).collect::<Result<_, _>>()?,
        })
    }

    /// The 4096 bytes.
    ///
    /// # Panics
    /// If there are more than [`Identify::GROUPS_MAX`] groups, or a group's media table does not fit.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let count = self.groups.len();
        assert!(count <= Self::GROUPS_MAX, "a 1.2 identify holds {} groups, not {count}", Self::GROUPS_MAX);
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &[1, self.vnvmt, u8::try_from(count).expect("at most four")]);
        let cap = flag(self.cap.bbt, 0) | flag(self.cap.hybrid, 1);
        let dom = flag(self.dom.hybrid, 0) | flag(self.dom.host_ecc, 1);
        put(&mut bytes, 4, &cap.to_le_bytes());
        put(&mut bytes, 8, &dom.to_le_bytes());
        put(&mut bytes, 12, &self.ppaf.encode());
        for (index, group) in self.groups.iter().enumerate() {
            put(&mut bytes, 256 + GroupDescriptor::BYTES * index, &group.encode());
        }
        bytes
    }
}

const _: () =
    assert!(256 + Identify::GROUPS_MAX * GroupDescriptor::BYTES == Identify::BYTES, "four groups fill it");

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; 4096] {
        let mut bytes = [0; 4096];
        bytes[0] = 1;
        bytes[2] = 2;
        bytes[4] = 1;
        bytes[8] = 2;
        bytes[12..24].copy_from_slice(&[25, 4, 22, 3, 2, 1, 12, 10, 3, 9, 0, 2]);
        bytes[256 + 4] = 16;
        bytes[256 + 960 + 4] = 3;
        bytes
    }

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let identify = Identify::decode(&bytes()).expect("a valid identify");
        assert_eq!(identify.cap, Capabilities { bbt: true, hybrid: false });
        assert_eq!(identify.dom, DeviceModel { hybrid: false, host_ecc: true });
        let fields = identify.ppaf.fields();
        assert_eq!((fields.ch.offset, fields.sec.len, identify.groups.len()), (25, 2, 2));
        assert_eq!((identify.groups[0].num_ch, identify.groups[1].num_ch), (16, 3));
        assert_eq!(identify.encode(), bytes());
    }

    #[test]
    fn unusable_identifies_are_refused_with_a_sentence() {
        let rows = [
            (0, 2, "2.0 drive"),
            (0, 7, "it is 7"),
            (2, 5, "CGRPS (byte 2) is 5"),
            (12, 62, "channel"),
            (256 + 960 + 1, 9, "group 1"),
        ];
        for (offset, value, says) in rows {
            let mut bytes = bytes();
            bytes[offset] = value;
            let error = Identify::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(Identify::decode(&bytes()[..4000]), Err(IdentifyError::Short(_))));
    }
}
