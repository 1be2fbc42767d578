//! The wire: NVMe and open-channel SSD structures as bytes, and nothing else.
//!
//! What it is: every command, completion, log page and identify structure that an open-channel drive (specification
//! 2.0 or 1.2) and its host exchange, as plain structs with `encode` and `decode`. All multi-byte fields are
//! little-endian and are placed field by field at the offsets of the specification's tables; no memory is
//! reinterpreted.
//!
//! Conventions:
//! - `encode` gives an array of the structure's exact size; reserved bytes are zero.
//! - `decode` takes bytes from outside. Input that is too short, or that means nothing, is an error with a sentence
//!   that says what was expected, what was found and where. Input that is longer than the structure is accepted; the
//!   rest is ignored. Reserved bits are ignored. Nothing panics on any input.
//! - Counts are stored as counts (from 1). The 0-based form of the wire exists only inside `encode` and `decode`.
//! - The names are those of the specifications: NVMe base 1.3/1.4 (2.0 where said), NVMe over Fabrics 1.1, NVM
//!   command set, ZNS 1.1, KV 1.0, OCSSD 2.0 (2018-01-29) and OCSSD 1.2 (2016-04). OCSSD 1.2 words (channel, lun, plane, page) live
//!   only in [`ocssd12`].
//!
//! Deliberately not here: queues, doorbells, transports, rules of the drive, time. Who owns them: the drive's
//! controller (commands in, completions out) and the exporters (transports).
#![forbid(unsafe_code)]

pub mod address;
pub mod cqe;
pub mod fabrics;
pub mod feature;
pub mod fuzz;
pub mod identify;
pub mod kv;
pub mod log_page;
pub mod ocssd12;
pub mod ocssd20;
pub mod opcode;
pub mod pages;
pub mod sgl;
pub mod sqe;
pub mod status;
pub mod tables;
pub mod tcp;
mod wire;
pub mod zns;

pub use address::{AddressList, HostAddress, Lba};
pub use cqe::Cqe;
pub use opcode::{AdminOpcode, IoOpcode};
pub use sqe::Sqe;
pub use status::{Status, StatusField};
pub use wire::ShortInput;
