//! Requests are taken: judged, carried out as far as the host sees, and left to the procedures that make them true.
//!
//! Deliberately not here: what becomes of content (`append`, `read`), of edits (`commit`), of a shutdown (`stop`).

use super::change::Number;
use super::commit::{EditJob, SyncJob};
use super::object::Object;
use super::placement::Asked;
use super::shelf::{Refused, Row, Shelf, is_sound};
use super::state::LightLsm;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableHint, TableId, TableKind, TableOp, TableReply, TableRequest,
};
use ocssd_lightnvm::interface::table::{TableLimits, TableRefusal};
use ocssd_lightnvm::interface::{Content, Durability, List};
use ocssd_lightnvm::{Buffers, Status};

/// What became of a request.
enum Taken {
    /// It is over.
    Answered(TableAnswer),
    /// It was kept.
    Kept,
    /// It was kept, and only reads can go on with it.
    Reads,
}

const fn alone(refusal: TableRefusal) -> Refused {
    (refusal, None)
}

impl LightLsm {
    pub(super) const fn limits_of(&self) -> TableLimits {
        self.sizes.limits()
    }

    /// Takes a request; false if there is no room for it.
    pub(super) fn take_request(&mut self, request: TableRequest, buffers: &mut Buffers) -> bool {
        if !self.requests.has_room() {
            return false;
        }
        let is_read = matches!(
            request.op,
            TableOp::Read { .. } | TableOp::Attributes { .. } | TableOp::List { .. } | TableOp::Shutdown
        );
        let is_over = self.is_shut_down || self.shutdown.is_some();
        let status = if is_over {
            Some(Status::COMMAND_SEQUENCE_ERROR)
        } else {
            self.refuses_changes().filter(|_| !is_read)
        };
        if let Some(status) = status {
            let refused = TableReply::success(request.tag, TableAnswer::Done);
            self.requests.reply(TableReply { status, ..refused });
            return true;
        }
        match self.carry_out(request, buffers) {
            Ok(Taken::Answered(answer)) => self.requests.reply(TableReply::success(request.tag, answer)),
            Ok(Taken::Kept) => self.work_due = true,
            Ok(Taken::Reads) => self.reads_due = true,
            Err((refusal, row)) => self.requests.reply(TableReply::refused(request.tag, refusal, row)),
        }
        true
    }

    fn carry_out(&mut self, request: TableRequest, buffers: &mut Buffers) -> Result<Taken, Refused> {
        match request.op {
            TableOp::Create { table, kind, hint, bytes_expected } => {
                self.shelf.may_create(table, bytes_expected, &self.limits_of()).map_err(alone)?;
                self.create(table, kind, hint, bytes_expected);
                Ok(Taken::Answered(TableAnswer::Done))
            }
            TableOp::Append { table, content, durability } => {
                self.take_append(request, table, content, durability, buffers).map_err(alone)
            }
            TableOp::Sync { table } => {
                let number = self.shelf.log(table).map_err(alone)?;
                let key = self.requests.take(request, TableAnswer::Done);
                let upto = self.shelf.get(number).bytes;
                self.sync(SyncJob { number, upto, key });
                Ok(Taken::Kept)
            }
            TableOp::Read { table, offset, into } => {
                self.take_read(request, table, offset, into, buffers).map_err(alone)
            }
            TableOp::Attributes { table, into } => {
                if !is_sound(&into, buffers) {
                    return Err(alone(TableRefusal::BadContent));
                }
                let attributes = self.shelf.readable(table).map_err(alone)?.attributes.clone();
                let room = attributes.len().min(usize_of(into.bytes()));
                into.scatter(buffers, &attributes[..room]);
                let bytes = u32::try_from(attributes.len()).expect("attributes are short");
                Ok(Taken::Answered(TableAnswer::Attributes { bytes }))
            }
            TableOp::List { from, into } => {
                self.shelf.list(from, into, buffers).map(Taken::Answered).map_err(alone)
            }
            TableOp::Publish { table, attributes } => {
                if !is_sound(&attributes, buffers) {
                    return Err(alone(TableRefusal::BadContent));
                }
                self.take_one(request, EditOp::Publish, table, &attributes.gathered(buffers), buffers)
            }
            TableOp::Delete { table } => self.take_one(request, EditOp::Delete, table, &[], buffers),
            TableOp::Edit { edits, attributes } => self.take_edit(request, edits, attributes, buffers),
            TableOp::Flush => {
                let key = self.requests.take(request, TableAnswer::Done);
                let syncs = self.sync_all();
                self.edits.push_back(EditJob::Flush { key: Some(key), syncs });
                Ok(Taken::Kept)
            }
            TableOp::Shutdown => {
                self.shutdown = Some(self.requests.take(request, TableAnswer::Done));
                let syncs = self.sync_all();
                self.edits.push_back(EditJob::Flush { key: None, syncs });
                Ok(Taken::Kept)
            }
        }
    }

    fn create(&mut self, name: TableId, kind: TableKind, hint: TableHint, bytes: u64) {
        let slack = self.shelf.slack(&self.sizes);
        let bound = self.space.pool.good().saturating_sub(self.sizes.chunks_needed);
        let asked = Asked { kind, hint, bytes, slack: bound.saturating_sub(slack) };
        let units = self.placer.place(asked, &self.shelf.being_written(), &self.space, &self.sizes);
        let number = Number(self.next_number);
        self.next_number += 1;
        assert!(number.0 <= ocssd_ftl::BLOCK_MAX, "more tables were made than a tag can count");
        let object = Object::new(number, name, kind, &units, &self.sizes);
        self.shelf.create(Object { stream: hint.stream, ..object });
        if kind == TableKind::Log {
            self.edits.push_back(EditJob::Begin { number });
        }
        self.work_due = true;
    }

    fn take_append(
        &mut self,
        request: TableRequest,
        table: TableId,
        content: Content,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<Taken, TableRefusal> {
        if !is_sound(&content, buffers) {
            return Err(TableRefusal::BadContent);
        }
        let (number, offset) = self.shelf.append(table, content.bytes(), &self.limits_of())?;
        let kind = self.shelf.get(number).kind;
        let appended = match kind {
            TableKind::Table => &mut self.stats.table_bytes,
            TableKind::Log => &mut self.stats.log_bytes,
        };
        *appended += u64::from(content.bytes());
        let key = self.requests.take(request, TableAnswer::Appended { offset });
        if kind == TableKind::Log && durability == Durability::AtReply {
            // It is answered once it is durable, not once it is in memory.
            let upto = offset + u64::from(content.bytes());
            self.sync(SyncJob { number, upto, key });
        }
        self.shelf.get_mut(number).appends.push_back(key);
        self.unreserved.push_back((number, key));
        self.wake(number);
        Ok(Taken::Kept)
    }

    fn take_read(
        &mut self,
        request: TableRequest,
        table: TableId,
        offset: u64,
        into: Content,
        buffers: &Buffers,
    ) -> Result<Taken, TableRefusal> {
        if !is_sound(&into, buffers) {
            return Err(TableRefusal::BadContent);
        }
        let object = self.shelf.readable(table)?;
        let (number, from) = (object.number, offset.min(object.bytes));
        let bytes = u32::try_from(object.bytes - from).unwrap_or(u32::MAX).min(into.bytes());
        let key = self.requests.take(request, TableAnswer::Read { bytes });
        assert!(from + u64::from(bytes) <= object.bytes, "a read beyond the end was not cut");
        self.shelf.get_mut(number).holds += 1;
        self.reads.begin(key, number, (from, bytes), into, buffers);
        Ok(Taken::Reads)
    }

    fn take_one(
        &mut self,
        request: TableRequest,
        op: EditOp,
        table: TableId,
        attributes: &[u8],
        buffers: &mut Buffers,
    ) -> Result<Taken, Refused> {
        let attributes_bytes = u32::try_from(attributes.len()).expect("content is below 4 GiB");
        let row = TableEdit { op, table, attributes_first: 0, attributes_bytes };
        let rows = self.shelf.may_edit(&[row], attributes, &self.limits_of());
        let rows = rows.map_err(|(refusal, _)| alone(refusal))?;
        self.accept_edit(request, rows, buffers);
        Ok(Taken::Kept)
    }

    fn take_edit(
        &mut self,
        request: TableRequest,
        edits: List<TableEdit>,
        attributes: Content,
        buffers: &mut Buffers,
    ) -> Result<Taken, Refused> {
        let limits = self.limits_of();
        let rows = Shelf::rows_of(edits, limits.edits_max, buffers).map_err(alone)?;
        if !is_sound(&attributes, buffers) {
            return Err(alone(TableRefusal::BadContent));
        }
        if let Some(bad) = rows.iter().position(Option::is_none) {
            return Err((TableRefusal::BadEdit, u32::try_from(bad).ok()));
        }
        let rows: Vec<TableEdit> = rows.into_iter().flatten().collect();
        let rows = self.shelf.may_edit(&rows, &attributes.gathered(buffers), &limits)?;
        self.accept_edit(request, rows, buffers);
        Ok(Taken::Kept)
    }

    fn accept_edit(&mut self, request: TableRequest, rows: Vec<Row>, buffers: &mut Buffers) {
        let key = self.requests.take(request, TableAnswer::Done);
        self.shelf.edit(&rows);
        for row in &rows {
            if row.is_unseen {
                self.drop_appends(row.number, buffers);
            }
            self.wake(row.number);
        }
        self.edits.push_back(EditJob::Rows { key, rows });
    }
}
