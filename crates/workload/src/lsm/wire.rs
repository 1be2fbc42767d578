//! Requests to the table target, and whether what it read is what was written.
//!
//! Each block of a table begins with the table's name and the block's number; the rest of a buffer is whatever was in it.
//! Deliberately not here: who asks.

use super::layout::Layout;
use crate::generator::payload::stamp;
use ocssd_lightnvm::interface::table::{EditOp, TableEdit, TableHint, TableId, TableKind, TableOp};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{BufId, Buffers};

/// Bytes of a table's attributes: its level, smallest and largest key.
const ATTRIBUTES_BYTES: usize = 24;
/// The level of a table that was replaced.
const OBSOLETE: u8 = u8::MAX;

/// A row of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    op: EditOp,
    table: u64,
    level: u8,
    smallest: u64,
    largest: u64,
}

impl Row {
    fn of(op: EditOp, table: u64, level: usize, (smallest, largest): (u64, u64)) -> Self {
        let level = u8::try_from(level).expect("seven levels at most");
        Self { op, table, level, smallest, largest }
    }

    pub(super) fn publish(table: u64, level: usize, keys: (u64, u64)) -> Self {
        Self::of(EditOp::Publish, table, level, keys)
    }

    pub(super) fn describe(table: u64, level: usize, keys: (u64, u64)) -> Self {
        Self::of(EditOp::Describe, table, level, keys)
    }

    pub(super) const fn obsolete(table: u64) -> Self {
        Self { op: EditOp::Describe, table, level: OBSOLETE, smallest: 0, largest: 0 }
    }

    pub(super) const fn delete(table: u64) -> Self {
        Self { op: EditOp::Delete, table, level: OBSOLETE, smallest: 0, largest: 0 }
    }

    fn attributes(&self) -> [u8; ATTRIBUTES_BYTES] {
        let mut bytes = [0; ATTRIBUTES_BYTES];
        bytes[0] = self.level;
        bytes[8..16].copy_from_slice(&self.smallest.to_le_bytes());
        bytes[16..].copy_from_slice(&self.largest.to_le_bytes());
        bytes
    }
}

/// What is asked of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Create { table: u64, level: u8, stream: u8, bytes: u64 },
    Append { table: u64, offset: u64, bytes: u64 },
    Read { table: u64, offset: u64, bytes: u64 },
    Edit(Vec<Row>),
}

impl Ask {
    /// In a word.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Append { .. } => "append",
            Self::Read { .. } => "read",
            Self::Edit(_) => "edit",
        }
    }

    /// The operation, and the buffer it lies in.
    pub(super) fn operation(&self, layout: Layout, buffers: &mut Buffers) -> (TableOp, Option<BufId>) {
        match *self {
            Self::Create { table, level, stream, bytes } => {
                let hint = TableHint { level, stream };
                let (table, kind) = (TableId(table), TableKind::Table);
                (TableOp::Create { table, kind, hint, bytes_expected: bytes }, None)
            }
            Self::Append { table, offset, bytes } => {
                let piece = room(bytes, buffers);
                for (place, block) in blocks_of(layout, offset, bytes) {
                    let at = Piece { first_byte: narrow(place), bytes: 16, ..piece };
                    at.scatter(buffers, &stamp(table, block));
                }
                let (content, durability) = (Content::Piece(piece), Durability::AtFlush);
                (TableOp::Append { table: TableId(table), content, durability }, Some(piece.buffer))
            }
            Self::Read { table, offset, bytes } => {
                let piece = room(bytes, buffers);
                let into = Content::Piece(piece);
                (TableOp::Read { table: TableId(table), offset, into }, Some(piece.buffer))
            }
            Self::Edit(ref rows) => edit(rows, buffers),
        }
    }

    /// What is wrong with what a read brought: a block that is another's.
    pub(super) fn judge(&self, layout: Layout, buffer: BufId, buffers: &Buffers) -> Option<String> {
        let &Self::Read { table, offset, bytes } = self else { return None };
        let content = buffers.whole(buffer, 0, buffers.sectors(buffer));
        let wrong = blocks_of(layout, offset, bytes).find(|&(place, block)| {
            let at = usize::try_from(place).expect("a read is short");
            content[at..at + 16] != stamp(table, block)
        });
        wrong.map(|(_, block)| format!("block {block} of table {table} has the content of another"))
    }
}

fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).expect("an append or a read is below 4 GiB")
}

/// The blocks that begin in these bytes of a table: where in them, and which. Behind the last there is what is no block, and has
/// their pattern all the same.
fn blocks_of(layout: Layout, offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let block_bytes = layout.block_bytes();
    let first = offset.div_ceil(block_bytes);
    let all = (first..).map(move |block| (block * block_bytes - offset, block));
    all.take_while(move |(place, _)| place + 16 <= bytes)
}

/// A whole buffer for so many bytes: of a few sizes only, so that buffers are used again.
fn room(bytes: u64, buffers: &mut Buffers) -> Piece {
    assert!(bytes > 0, "nothing is asked for");
    let sector = u64::try_from(buffers.format().sector_bytes).expect("a sector is short");
    let sectors = bytes.div_ceil(sector).next_power_of_two();
    Piece { buffer: buffers.take_whole(narrow(sectors)), first_byte: 0, bytes: narrow(bytes) }
}

fn edit(rows: &[Row], buffers: &mut Buffers) -> (TableOp, Option<BufId>) {
    let list_bytes = rows.len() * TableEdit::BYTES;
    let attributes: Vec<u8> = rows.iter().flat_map(Row::attributes).collect();
    let piece = room((list_bytes + attributes.len()) as u64, buffers);
    let row = |(number, row): (usize, &Row)| {
        let is_deletion = row.op == EditOp::Delete;
        let first = u32::try_from(number * ATTRIBUTES_BYTES).expect("few rows");
        let bytes = u32::try_from(ATTRIBUTES_BYTES).expect("short");
        TableEdit {
            op: row.op,
            table: TableId(row.table),
            attributes_first: first,
            attributes_bytes: if is_deletion { 0 } else { bytes },
        }
    };
    let entries: Vec<TableEdit> = rows.iter().enumerate().map(row).collect();
    let edits = List::write(buffers, piece.buffer, &entries);
    let first_byte = u32::try_from(list_bytes).expect("few rows");
    let bytes = u32::try_from(attributes.len()).expect("few rows");
    let place = Piece { first_byte, bytes, ..piece };
    place.scatter(buffers, &attributes);
    (TableOp::Edit { edits, attributes: Content::Piece(place) }, Some(piece.buffer))
}
