//! Sorted tables and logs of an LSM tree (LightLSM behind a server): what identify says of their namespace, opcodes, commands.
//!
//! NVMe has no command set for it, so that this one is a vendor's, and all of it is of this project. What the commands mean is
//! [`ocssd_lightnvm::interface::table`]. Deliberately not here: what is stored, and which host may come.

mod command;
mod identify;
mod opcode;
mod refusal;

pub use command::{AppendTable, CreateTable, EditTables, ListTables, ReadTable, TableCommand};
pub use identify::TableNamespace;
pub use opcode::TableOpcode;
pub use refusal::{refusal_number, refusal_of};

/// The command set's identifier, CSI: the third number that is a vendor's (NVMe base 2.0 figure 274), behind the raw drive's and
/// that of pages.
pub const CSI: u8 = 0x32;
