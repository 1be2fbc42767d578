//! The commands. A table's name, 64 bits, lies in CDW2 and CDW3.
//!
//! Source: this project. Dwords that a command does not name mean nothing.

use super::TableOpcode;
use crate::sqe::Sqe;
use crate::wire::{bit, byte, flag, join, split};

/// CDW11: force unit access, where a Write of NVMe has it in CDW12.
const FUA_BIT: u32 = 30;

/// Begins a table or log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateTable {
    /// CDW2 and CDW3: its name.
    pub table: u64,
    /// CDW10 bit 0: it is a log.
    pub is_log: bool,
    /// CDW10 bits 15:8: the level it will be of.
    pub level: u8,
    /// CDW10 bits 23:16: who writes it.
    pub stream: u8,
    /// CDW12 and CDW13: bytes it will have; 0 says nothing.
    pub bytes_expected: u64,
}

/// Adds to the end of a table or log; the data is what is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendTable {
    /// CDW2 and CDW3: its name.
    pub table: u64,
    /// CDW10: bytes.
    pub bytes: u32,
    /// CDW11 bit 30: answered when durable only.
    pub force_unit_access: bool,
}

/// Reads a table or log, or its attributes. DW0 of the completion: bytes that were read, or bytes of all attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTable {
    /// CDW2 and CDW3: its name.
    pub table: u64,
    /// CDW10: room, bytes.
    pub bytes: u32,
    /// CDW12 and CDW13: the first byte; means nothing for attributes.
    pub offset: u64,
}

/// Publishes, deletes and describes. The data is the rows, 24 bytes each, and behind them the attributes that they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditTables {
    /// CDW10: rows.
    pub rows: u32,
    /// CDW11: bytes of attributes.
    pub attributes_bytes: u32,
}

/// Lists tables and logs by ascending name. DW0 of the completion: rows; DW1: how many there are from the name on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListTables {
    /// CDW2 and CDW3: the first name.
    pub from: u64,
    /// CDW10: rows at most, 24 bytes each.
    pub rows: u32,
}

/// Any command of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableCommand {
    /// Flush.
    Flush,
    /// B0h.
    Create(CreateTable),
    /// B1h.
    Append(AppendTable),
    /// B2h.
    Read(ReadTable),
    /// B4h, of this log.
    Sync(u64),
    /// B5h.
    Edit(EditTables),
    /// B6h.
    Attributes(ReadTable),
    /// BAh.
    List(ListTables),
}

impl TableCommand {
    /// The view of an entry; `None` of an opcode that the set does not have.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Option<Self> {
        let name = join(sqe.cdw2, sqe.cdw3);
        let read = ReadTable { table: name, bytes: sqe.cdw10, offset: join(sqe.cdw12, sqe.cdw13) };
        Some(match TableOpcode(sqe.opcode) {
            TableOpcode::FLUSH => Self::Flush,
            TableOpcode::CREATE => Self::Create(CreateTable {
                table: name,
                is_log: bit(sqe.cdw10, 0),
                level: byte(sqe.cdw10, 1),
                stream: byte(sqe.cdw10, 2),
                bytes_expected: join(sqe.cdw12, sqe.cdw13),
            }),
            TableOpcode::APPEND => Self::Append(AppendTable {
                table: name,
                bytes: sqe.cdw10,
                force_unit_access: bit(sqe.cdw11, FUA_BIT),
            }),
            TableOpcode::READ => Self::Read(read),
            TableOpcode::SYNC => Self::Sync(name),
            TableOpcode::EDIT => Self::Edit(EditTables { rows: sqe.cdw10, attributes_bytes: sqe.cdw11 }),
            TableOpcode::ATTRIBUTES => Self::Attributes(read),
            TableOpcode::LIST => Self::List(ListTables { from: name, rows: sqe.cdw10 }),
            _ => return None,
        })
    }

    /// The entry.
    #[must_use]
    pub fn entry(self, nsid: u32) -> Sqe {
        let named = |opcode: TableOpcode, name: u64| {
            let (cdw2, cdw3) = split(name);
            Sqe { opcode: opcode.0, nsid, cdw2, cdw3, ..Sqe::default() }
        };
        let reading = |opcode, read: ReadTable| {
            let (cdw12, cdw13) = split(read.offset);
            Sqe { cdw10: read.bytes, cdw12, cdw13, ..named(opcode, read.table) }
        };
        match self {
            Self::Flush => named(TableOpcode::FLUSH, 0),
            Self::Create(create) => {
                let (cdw12, cdw13) = split(create.bytes_expected);
                let hint = u32::from(create.level) << 8 | u32::from(create.stream) << 16;
                let cdw10 = flag(create.is_log, 0) | hint;
                Sqe { cdw10, cdw12, cdw13, ..named(TableOpcode::CREATE, create.table) }
            }
            Self::Append(append) => Sqe {
                cdw10: append.bytes,
                cdw11: flag(append.force_unit_access, FUA_BIT),
                ..named(TableOpcode::APPEND, append.table)
            },
            Self::Read(read) => reading(TableOpcode::READ, read),
            Self::Sync(table) => named(TableOpcode::SYNC, table),
            Self::Edit(edit) => {
                Sqe { cdw10: edit.rows, cdw11: edit.attributes_bytes, ..named(TableOpcode::EDIT, 0) }
            }
            Self::Attributes(read) => reading(TableOpcode::ATTRIBUTES, ReadTable { offset: 0, ..read }),
            Self::List(list) => Sqe { cdw10: list.rows, ..named(TableOpcode::LIST, list.from) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_lies_where_the_table_puts_it() {
        let create = CreateTable {
            table: 0x0807_0605_0403_0201,
            is_log: true,
            level: 5,
            stream: 6,
            bytes_expected: 0x1817_1615_1413_1211,
        };
        let bytes = TableCommand::Create(create).entry(9).encode();
        assert_eq!((bytes[0], bytes[4], &bytes[8..16]), (0xB0, 9, &[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(&bytes[40..44], &[1, 5, 6, 0]);
        assert_eq!(&bytes[48..56], &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    }

    #[test]
    fn commands_survive_their_encoding_and_others_are_none() {
        let read = ReadTable { table: 7, bytes: 4096, offset: 0 };
        let create = CreateTable { table: 1 << 40, is_log: false, level: 1, stream: 2, bytes_expected: 3 };
        for command in [
            TableCommand::Flush,
            TableCommand::Create(create),
            TableCommand::Append(AppendTable { table: 9, bytes: 77, force_unit_access: true }),
            TableCommand::Read(ReadTable { offset: 1 << 33, ..read }),
            TableCommand::Sync(1 << 50),
            TableCommand::Edit(EditTables { rows: 3, attributes_bytes: 400 }),
            TableCommand::Attributes(read),
            TableCommand::List(ListTables { from: 5, rows: 1024 }),
        ] {
            assert_eq!(TableCommand::of(&command.entry(2)), Some(command));
        }
        assert_eq!(TableCommand::of(&Sqe { opcode: 0xB3, ..Sqe::default() }), None);
    }
}
