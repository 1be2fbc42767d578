//! NVMe over Fabrics: the commands (opcode 7Fh) that make and end an association, controller properties, and discovery.
//!
//! Deliberately not here: transports, whose packets carry these. Source: NVMe over Fabrics 1.1 sections 3 and 5.

mod connect;
mod discovery;
mod property;

pub use connect::{Connect, ConnectData, ConnectDataError, ConnectStatus, DYNAMIC_CNTLID};
pub use discovery::{AddressFamily, DISCOVERY_NQN, DiscoveryEntry, DiscoveryHeader, TextField};
pub use property::{Capabilities, Configuration, ControllerStatus, PropertyGet, PropertySet, offset};

use crate::sqe::Sqe;

/// Longest qualified name, bytes (NVMe base 1.4 section 7.9: 223 and a zero byte).
pub const NQN_BYTES_MAX: usize = 223;

/// Which Fabrics command, byte 4 of the entry (FCTYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricsType(pub u8);

impl FabricsType {
    /// Sets a controller property.
    pub const PROPERTY_SET: Self = Self(0x00);
    /// Makes a queue, and with queue 0 an association.
    pub const CONNECT: Self = Self(0x01);
    /// Reads a controller property.
    pub const PROPERTY_GET: Self = Self(0x04);
    /// Ends an I/O queue.
    pub const DISCONNECT: Self = Self(0x08);

    /// The type of an entry whose opcode is 7Fh.
    pub fn of(sqe: &Sqe) -> Self {
        Self(crate::wire::byte(sqe.nsid, 0))
    }
}

impl Sqe {
    /// A Fabrics command: what is a namespace elsewhere begins with the type.
    fn fabrics(kind: FabricsType) -> Self {
        Self { opcode: crate::AdminOpcode::FABRICS.0, nsid: u32::from(kind.0), ..Self::default() }
    }

    /// Disconnect.
    pub fn disconnect() -> Self {
        Self::fabrics(FabricsType::DISCONNECT)
    }
}
