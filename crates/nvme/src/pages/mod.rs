//! A page store for log-structured hosts (OX-ELEOS): what identify says of its namespace, its opcodes, and its commands.
//!
//! NVMe has no command set for it, so that this one is a vendor's. Source: OX reserves opcodes A1h (flush) and A3h (read) for
//! OX-ELEOS (ox-ctrl 2.7); all else is of this project. What the commands mean is
//! [`ocssd_lightnvm::interface::log_structured`]. Deliberately not here: what is stored, and stages of hosts (the server).

mod command;
mod identify;
mod opcode;

pub use command::{FlushPages, PageSession, ReadPage, StagePages};
pub use identify::PageNamespace;
pub use opcode::PageOpcode;

/// The command set's identifier, CSI: the second number that is a vendor's (NVMe base 2.0 figure 274); the first is the raw
/// drive's.
pub const CSI: u8 = 0x31;
