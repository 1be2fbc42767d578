//! Requests of tables and logs, drawn: a few names, many requests at a wrong time.
//!
//! Deliberately not here: what they must be answered with (`model`).

use super::TableModel;
use crate::model::held::Held;
use crate::model::judge::Interface;
use crate::model::trial::Requests;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::table::{
    EditOp, TableEdit, TableEntry, TableHint, TableId, TableKind, TableLimits, TableOp, TableReply,
    TableRequest, TableTarget,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{Buffers, Tag};

/// Pieces of content of 256 that are zeroes (chosen: an eighth).
const ZEROES_OF_256: u8 = 32;
/// Longest append (chosen: more than most write units of drawn drives).
const BYTES_MAX: u64 = 150_000;

/// The table interface.
pub struct TableInterface;

impl Interface for TableInterface {
    type Model = TableModel;
    type Target = dyn TableTarget;
    type Drawn = DrawnTable;

    fn model(target: &dyn TableTarget) -> TableModel {
        TableModel::new(target.limits())
    }

    fn limits(target: &dyn TableTarget) -> String {
        format!("{:?}", target.limits())
    }

    fn drawn(model: &TableModel, prng: &mut Prng) -> DrawnTable {
        DrawnTable::new(*model.limits(), prng)
    }

    fn shutdown(tag: Tag) -> TableRequest {
        TableRequest { tag, op: TableOp::Shutdown }
    }

    fn name(request: &TableRequest) -> &'static str {
        match request.op {
            TableOp::Create { .. } => "requests.creates",
            TableOp::Append { .. } => "requests.appends",
            TableOp::Sync { .. } => "requests.syncs",
            TableOp::Read { .. } => "requests.reads",
            TableOp::Attributes { .. } => "requests.attributes",
            TableOp::Publish { .. } => "requests.publishes",
            TableOp::Delete { .. } => "requests.deletes",
            TableOp::Edit { .. } => "requests.edits",
            TableOp::List { .. } => "requests.lists",
            TableOp::Flush => "requests.flushes",
            TableOp::Shutdown => "requests.shutdowns",
        }
    }
}

/// Draws.
#[derive(Clone, Debug)]
pub struct DrawnTable {
    limits: TableLimits,
    /// Different names.
    names: u64,
    /// Appends are shorter than this, but for one in many.
    usual: u64,
    durable_percent: u64,
    held: Held,
}

fn short(number: u64) -> u32 {
    u32::try_from(number).expect("a drawn number is short")
}

impl DrawnTable {
    /// In a manner that `prng` chooses.
    pub fn new(limits: TableLimits, prng: &mut Prng) -> Self {
        let three = |prng: &mut Prng| usize::try_from(prng.below(3)).expect("three");
        Self {
            limits,
            names: [2, 5, 12][three(prng)],
            usual: [300, 5_000, 40_000][three(prng)].min(limits.table_bytes_max),
            durable_percent: [0, 20, 60][three(prng)],
            held: Held::default(),
        }
    }

    fn content(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> Content {
        let most = if prng.below(30) == 0 { self.limits.table_bytes_max.min(BYTES_MAX) } else { self.usual };
        let bytes = short(prng.below(most + 1));
        let byte = u8::try_from(prng.below(256)).expect("a byte");
        // Zeroes now and then: what was never written reads like them.
        let byte = if byte < ZEROES_OF_256 { 0 } else { byte };
        let buffer = self.held.take_whole(tag, buffers, bytes, byte);
        Content::Piece(Piece { buffer, first_byte: 0, bytes })
    }

    fn attributes(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> (Content, u32) {
        // Now and then one byte more than a target takes.
        let bytes = short(prng.below(u64::from(self.limits.attributes_bytes_max.min(200)) + 2));
        let byte = u8::try_from(prng.below(256)).expect("a byte");
        let buffer = self.held.take_whole(tag, buffers, bytes, byte);
        (Content::Piece(Piece { buffer, first_byte: 0, bytes }), bytes)
    }

    fn edit(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> TableOp {
        let (attributes, bytes) = self.attributes(tag, prng, buffers);
        let mut rows = Vec::new();
        for _ in 0..1 + prng.below(u64::from(self.limits.edits_max.min(4))) {
            let op = [EditOp::Publish, EditOp::Delete, EditOp::Describe]
                [usize::try_from(prng.below(3)).expect("three")];
            let attributes_bytes = if op == EditOp::Delete { 0 } else { bytes };
            let table = TableId(prng.below(self.names));
            rows.push(TableEdit { op, table, attributes_first: 0, attributes_bytes });
        }
        let list = self.held.take_whole(tag, buffers, short((rows.len() * TableEdit::BYTES) as u64), 0);
        TableOp::Edit { edits: List::write(buffers, list, &rows), attributes }
    }
}

impl Requests<TableModel> for DrawnTable {
    fn next(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &TableModel,
        buffers: &mut Buffers,
    ) -> Option<TableRequest> {
        let names: Vec<u64> = model.names().map(|table| table.0).collect();
        let nth = usize::try_from(prng.below(names.len().max(1) as u64)).expect("few");
        let drawn = prng.below(self.names);
        // Mostly one that exists.
        let table = TableId(names.get(nth).copied().filter(|_| prng.below(6) > 0).unwrap_or(drawn));
        let durable = prng.below(100) < self.durable_percent;
        let durability = if durable { Durability::AtReply } else { Durability::AtFlush };
        let op = match prng.below(32) {
            0..5 => TableOp::Create {
                table: TableId(drawn),
                kind: if prng.below(3) == 0 { TableKind::Log } else { TableKind::Table },
                hint: TableHint {
                    level: u8::try_from(prng.below(3)).expect("few"),
                    stream: u8::try_from(prng.below(3)).expect("few"),
                },
                // As often as not the host does not know, and now and then it is wrong.
                bytes_expected: if prng.below(2) == 0 { 0 } else { prng.below(self.usual * 4) },
            },
            5..14 => TableOp::Append { table, content: self.content(tag, prng, buffers), durability },
            14..16 => TableOp::Sync { table },
            16..21 => {
                let offset = prng.below(self.usual * 2);
                TableOp::Read { table, offset, into: self.content(tag, prng, buffers) }
            }
            21 => TableOp::Attributes { table, into: self.attributes(tag, prng, buffers).0 },
            22..25 => TableOp::Publish { table, attributes: self.attributes(tag, prng, buffers).0 },
            25..27 => TableOp::Delete { table },
            27..29 => self.edit(tag, prng, buffers),
            29 => {
                let sectors = List::<TableEntry>::sectors(5, buffers);
                let buffer = self.held.hold(tag, buffers.take_whole(sectors));
                TableOp::List { from: table, into: List::new(buffer, 5) }
            }
            _ => TableOp::Flush,
        };
        Some(TableRequest { tag, op })
    }

    fn answered(&mut self, request: &TableRequest, _: &TableReply, buffers: &mut Buffers) {
        self.held.give_back(request.tag, buffers);
    }

    fn power_cut(&mut self, _: &TableModel, _: &mut Buffers) {
        self.held.forget();
    }
}
