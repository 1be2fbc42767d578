//! Opcodes of the Key Value Command Set. They overlap those of blocks: 01h is Store here and Write there. C0h and above are the
//! vendor's: here values longer than a command, which the command set does not have.

use crate::opcode::opcodes;
use std::fmt;

/// An opcode of an I/O queue, for a namespace of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KvOpcode(pub u8);

opcodes!(KvOpcode {
    /// Make everything acknowledged durable.
    FLUSH = 0x00, "Flush";
    /// A key gets a value.
    STORE = 0x01, "Store";
    /// The value of a key.
    RETRIEVE = 0x02, "Retrieve";
    /// Keys from one on.
    LIST = 0x06, "List";
    /// A key and its value go.
    DELETE = 0x10, "Delete";
    /// Whether a key has a value.
    EXIST = 0x14, "Exist";
    /// Vendor's: a value longer than a command begins to be collected.
    STAGE_OPEN = 0xC0, "Stage Open";
    /// Vendor's: its next bytes.
    STAGE_APPEND = 0xC1, "Stage Append";
    /// Vendor's: a part of the value of a key.
    RETRIEVE_PART = 0xC2, "Retrieve Part";
    /// Vendor's: what was collected is the value of a key, all at once.
    STORE_STAGED = 0xC4, "Store Staged";
    /// Vendor's: what was collected is forgotten.
    STAGE_ABORT = 0xC8, "Stage Abort";
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::DataDirection;

    #[test]
    fn opcodes_have_the_direction_of_the_table() {
        let directions: Vec<_> = KvOpcode::all().iter().map(|opcode| DataDirection::of(opcode.0)).collect();
        use DataDirection::{None, ToDevice, ToHost};
        let standard = [None, ToDevice, ToHost, ToHost, None, None];
        assert_eq!(directions[..6], standard);
        assert_eq!(directions[6..], [None, ToDevice, ToHost, None, None], "those of the vendor");
        assert_eq!(KvOpcode::LIST.to_string(), "List (06h)");
    }
}
