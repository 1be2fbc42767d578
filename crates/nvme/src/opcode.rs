//! Command opcodes of the admin and the I/O queues.
//!
//! The two spaces overlap (02h is Get Log Page on one queue and Read on the other), so each has its own type. A match
//! over the constants reads as one over an enum, and an opcode nobody knows stays representable. Sources: NVMe base
//! 1.4 figures "Opcodes for Admin Commands" and "Opcodes for NVM Commands"; OCSSD 2.0 section 4; OCSSD
//! 1.2 sections 3 and 4.

use std::fmt;

/// Defines the constants and their names in one place, so that none lacks a name.
macro_rules! opcodes {
    ($type:ident { $($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)* }) => {
        impl $type {
            $($(#[$doc])* pub const $name: Self = Self($code);)*

            /// The specification's name, or `None` for an opcode this crate does not know.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }

            /// Every opcode this crate knows, in the order of the tables.
            pub fn all() -> &'static [Self] {
                &[$(Self::$name),*]
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({:02X}h)", self.0),
                    None => write!(f, "unknown opcode {:02X}h", self.0),
                }
            }
        }
    };
}

pub(crate) use opcodes;

/// An opcode of the admin queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdminOpcode(pub u8);

opcodes!(AdminOpcode {
    /// NVMe: delete an I/O submission queue.
    DELETE_IO_SQ = 0x00, "Delete I/O Submission Queue";
    /// NVMe: create an I/O submission queue.
    CREATE_IO_SQ = 0x01, "Create I/O Submission Queue";
    /// NVMe: read a log page; OCSSD 2.0 adds pages CAh and D0h.
    GET_LOG_PAGE = 0x02, "Get Log Page";
    /// NVMe: delete an I/O completion queue.
    DELETE_IO_CQ = 0x04, "Delete I/O Completion Queue";
    /// NVMe: create an I/O completion queue.
    CREATE_IO_CQ = 0x05, "Create I/O Completion Queue";
    /// NVMe: identify a controller or namespace.
    IDENTIFY = 0x06, "Identify";
    /// NVMe: abort a command.
    ABORT = 0x08, "Abort";
    /// NVMe: set a feature.
    SET_FEATURES = 0x09, "Set Features";
    /// NVMe: get a feature.
    GET_FEATURES = 0x0A, "Get Features";
    /// NVMe: a standing request that completes when the drive has news.
    ASYNC_EVENT_REQUEST = 0x0C, "Asynchronous Event Request";
    /// NVMe: keep the association alive (fabrics).
    KEEP_ALIVE = 0x18, "Keep Alive";
    /// NVMe over Fabrics commands.
    FABRICS = 0x7F, "Fabrics Command";
    /// OCSSD 2.0 Geometry, and OCSSD 1.2 Identify: byte 0 of the reply tells which.
    GEOMETRY = 0xE2, "Geometry";
    /// OCSSD 1.2 legacy: read the drive's mapping table.
    GET_L2P = 0xEA, "Get L2P Table";
    /// OCSSD 1.2: mark blocks in the bad block table.
    SET_BBT = 0xF1, "Set Bad Block Table";
    /// OCSSD 1.2: read the bad block table of one lun.
    GET_BBT = 0xF2, "Get Bad Block Table";
});

/// An opcode of an I/O queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoOpcode(pub u8);

opcodes!(IoOpcode {
    /// NVMe: make everything acknowledged durable.
    FLUSH = 0x00, "Flush";
    /// NVMe write; scalar write of OCSSD 2.0.
    WRITE = 0x01, "Write";
    /// NVMe read; scalar read of OCSSD 2.0; hybrid read of OCSSD 1.2.
    READ = 0x02, "Read";
    /// NVMe: compare what is there with what is sent.
    COMPARE = 0x05, "Compare";
    /// NVMe: write zeroes without sending them.
    WRITE_ZEROES = 0x08, "Write Zeroes";
    /// NVMe Dataset Management; with AD it resets chunks on OCSSD 2.0.
    DATASET_MANAGEMENT = 0x09, "Dataset Management";
    /// ZNS: something is done to zones.
    ZONE_MANAGEMENT_SEND = 0x79, "Zone Management Send";
    /// ZNS: what zones are.
    ZONE_MANAGEMENT_RECEIVE = 0x7A, "Zone Management Receive";
    /// ZNS: a write to a zone, wherever its write pointer is.
    ZONE_APPEND = 0x7D, "Zone Append";
    /// NVMe over Fabrics commands.
    FABRICS = 0x7F, "Fabrics Command";
    /// OCSSD 1.2 legacy: write through the drive's mapping table.
    HYBRID_WRITE = 0x81, "Hybrid Write";
    /// OCSSD 2.0 Vector Chunk Reset; OCSSD 1.2 Physical Block Erase.
    VECTOR_RESET = 0x90, "Vector Chunk Reset";
    /// OCSSD 2.0 Vector Chunk Write; OCSSD 1.2 Physical Page Write.
    VECTOR_WRITE = 0x91, "Vector Chunk Write";
    /// OCSSD 2.0 Vector Chunk Read; OCSSD 1.2 Physical Page Read.
    VECTOR_READ = 0x92, "Vector Chunk Read";
    /// OCSSD 2.0 Vector Chunk Copy, present if MCCAP bit 0.
    VECTOR_COPY = 0x93, "Vector Chunk Copy";
    /// OCSSD 1.2: write without the drive's ECC.
    RAW_WRITE = 0x95, "Physical Page Raw Write";
    /// OCSSD 1.2: read without the drive's ECC.
    RAW_READ = 0x96, "Physical Page Raw Read";
    /// Of this project, in the range of vendors: an open-channel drive, or tables, for one host alone ([`crate::ocssd20::Claim`]).
    CLAIM_DRIVE = 0xE0, "Claim Drive";
});

/// Which way a command moves data: bits 1:0 of every opcode (NVMe base 1.4, figure "Opcodes for Admin Commands").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirection {
    /// 00b: nothing.
    None,
    /// 01b: host to drive.
    ToDevice,
    /// 10b: drive to host.
    ToHost,
    /// 11b: both (only Vector Chunk Copy here, which moves lists and no data).
    Both,
}

impl DataDirection {
    /// The direction that the opcode byte declares.
    pub fn of(opcode: u8) -> Self {
        match opcode & 3 {
            0 => Self::None,
            1 => Self::ToDevice,
            2 => Self::ToHost,
            _ => Self::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_have_the_direction_of_the_table() {
        let rows = [
            (IoOpcode::VECTOR_RESET, DataDirection::None),
            (IoOpcode::VECTOR_WRITE, DataDirection::ToDevice),
            (IoOpcode::VECTOR_READ, DataDirection::ToHost),
            (IoOpcode::VECTOR_COPY, DataDirection::Both),
            (IoOpcode::DATASET_MANAGEMENT, DataDirection::ToDevice),
        ];
        for (opcode, direction) in rows {
            assert_eq!(DataDirection::of(opcode.0), direction, "{opcode}");
        }
        assert_eq!(DataDirection::of(AdminOpcode::GEOMETRY.0), DataDirection::ToHost);
    }

    #[test]
    fn known_opcodes_are_named_and_listed_once() {
        let codes: std::collections::BTreeSet<_> = IoOpcode::all().iter().collect();
        assert_eq!(codes.len(), IoOpcode::all().len());
        let codes: std::collections::BTreeSet<_> = AdminOpcode::all().iter().collect();
        assert_eq!(codes.len(), AdminOpcode::all().len());
        assert_eq!(IoOpcode(0x93).to_string(), "Vector Chunk Copy (93h)");
        assert_eq!(IoOpcode(0x94).to_string(), "unknown opcode 94h");
    }
}
