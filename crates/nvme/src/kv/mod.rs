//! The Key Value Command Set: what identify says of a namespace of keys and values, its opcodes, and its commands.
//!
//! Source: NVMe Key Value Command Set 1.0 and later; statuses 81h and 85h to 89h are [`crate::Status`]. Deliberately not here:
//! reservations, and the lists of keys ([`ocssd_lightnvm::interface::key_value::encode_keys`]).

mod command;
mod identify;
mod opcode;

pub use command::{KEY_BYTES_MAX, KeyValueCommand, StoreOptions};
pub use identify::{KeyValueFormat, KvNamespace};
pub use opcode::KvOpcode;

/// The command set's identifier, CSI (NVMe base 2.0 figure 274).
pub const CSI: u8 = 0x01;
