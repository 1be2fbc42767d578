//! What can be wrong with a structure on media.

use std::fmt;

/// Why bytes are not the structure they should be. A reader takes its line for one that holds no such structure, but for
/// [`FormatError::Version`], which ends the mount, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// Fewer bytes than the structure has.
    Short {
        /// Bytes of the structure.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// The checksum does not fit the bytes.
    Crc {
        /// The checksum of the bytes.
        expected: u32,
        /// The checksum in its field.
        found: u32,
    },
    /// It is not of pblk.
    Identifier {
        /// The number in the place of 70626C6Bh (`PBLK_MAGIC`).
        found: u32,
    },
    /// A format of the future.
    Version {
        /// Its major number.
        major: u8,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { expected, found } => {
                write!(f, "line metadata of {expected} bytes were expected, but {found} bytes were found")
            }
            Self::Crc { expected, found } => {
                write!(f, "the line metadata's checksum should be {expected:08x}h, but is {found:08x}h")
            }
            Self::Identifier { found } => write!(
                f,
                "line metadata begin with {:08x}h, but {found:08x}h was found: it is no line of pblk's",
                super::header::PBLK_MAGIC
            ),
            Self::Version { major } => write!(
                f,
                "line metadata of major version 0 were expected, but {major} was found: this program cannot read it"
            ),
        }
    }
}

impl std::error::Error for FormatError {}
