//! Opcodes of a namespace of tables. All but Flush are a vendor's; bits 1:0 say which way data moves, as everywhere.

use crate::opcode::opcodes;
use std::fmt;

/// An opcode of an I/O queue, for a namespace of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableOpcode(pub u8);

opcodes!(TableOpcode {
    /// Make everything acknowledged durable.
    FLUSH = 0x00, "Flush";
    /// A table or log begins.
    CREATE = 0xB0, "Create Table";
    /// Its next bytes.
    APPEND = 0xB1, "Append to Table";
    /// Bytes of a published table, or of a log.
    READ = 0xB2, "Read Table";
    /// All bytes of a log become durable.
    SYNC = 0xB4, "Sync Log";
    /// Tables are published, deleted and described, all at once: the data is the rows, and behind them the attributes.
    EDIT = 0xB5, "Edit Tables";
    /// The attributes of a table or log.
    ATTRIBUTES = 0xB6, "Read Attributes";
    /// Which tables and logs there are.
    LIST = 0xBA, "List Tables";
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::DataDirection;

    #[test]
    fn data_moves_as_the_bits_say() {
        use DataDirection::{None, ToDevice, ToHost};
        let directions: Vec<_> =
            TableOpcode::all().iter().map(|opcode| DataDirection::of(opcode.0)).collect();
        assert_eq!(directions, [None, None, ToDevice, ToHost, None, ToDevice, ToHost, ToHost]);
        assert_eq!(TableOpcode::EDIT.to_string(), "Edit Tables (B5h)");
    }
}
