//! What the host sees: names, lengths, attributes, and what each request may do to them, decided when it is taken.
//!
//! Requests take effect here in the order in which they come, whatever is on media by then; a refused one changes nothing.
//! Deliberately not here: what makes it durable (`commit`).

use super::change::Number;
use super::object::Object;
use super::placement::Written;
use super::sizes::Sizes;
use ocssd_base::usize_of;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableId, TableKind, TableLimits, TableRefusal,
};
use ocssd_lightnvm::interface::{Content, Entry, List, Piece};
use std::collections::{BTreeMap, BTreeSet};

/// A row of an edit that may be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub op: EditOp,
    pub number: Number,
    pub attributes: Vec<u8>,
    /// A table that nobody saw is given up: the log hears nothing of it.
    pub is_unseen: bool,
}

/// Why a request is refused, and for which row.
pub type Refused = (TableRefusal, Option<u32>);

/// Names, and all that has one or had one and is not gone.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    pub names: BTreeMap<TableId, Number>,
    pub objects: BTreeMap<Number, Box<Object>>,
    /// Bytes of what has a name.
    pub live_bytes: u64,
    /// What is not at rest.
    written: BTreeSet<Number>,
    /// Chunks that what is at rest leaves unfilled, so that placing a table does not ask every other.
    slack_at_rest: u32,
}

/// A name as rows of an edit find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Unpublished(Number),
    Table(Number),
    Log(Number),
}

/// True if content may be read or written: none of it staged, all within its buffers.
pub fn is_sound(content: &Content, buffers: &Buffers) -> bool {
    !matches!(content, Content::Staged { .. }) && content.lies_within(buffers)
}

impl Shelf {
    pub fn get(&self, number: Number) -> &Object {
        self.objects.get(&number).expect("what is under way is kept")
    }

    pub fn get_mut(&mut self, number: Number) -> &mut Object {
        self.objects.get_mut(&number).expect("what is under way is kept")
    }

    fn named(&self, name: TableId) -> Option<&Object> {
        self.names.get(&name).map(|&number| self.get(number))
    }

    /// Whether a table or log may begin.
    pub fn may_create(&self, name: TableId, bytes: u64, limits: &TableLimits) -> Result<(), TableRefusal> {
        if self.names.contains_key(&name) {
            return Err(TableRefusal::NameTaken);
        }
        if self.names.len() >= usize_of(limits.tables_max) {
            return Err(TableRefusal::TooManyTables);
        }
        if bytes > limits.table_bytes_max {
            return Err(TableRefusal::TooLong);
        }
        if self.live_bytes.saturating_add(bytes) > limits.capacity_bytes {
            return Err(TableRefusal::NoRoom);
        }
        Ok(())
    }

    /// Takes a new table or log in.
    pub fn create(&mut self, object: Object) {
        assert!(!self.objects.contains_key(&object.number), "number {} is used twice", object.number.0);
        let before = self.names.insert(object.name, object.number);
        assert!(before.is_none(), "name {} is taken", object.name.0);
        self.written.insert(object.number);
        self.objects.insert(object.number, Box::new(object));
    }

    /// A table that is on media lets go of what writing takes.
    pub fn rest(&mut self, number: Number, sizes: &Sizes) {
        let object = self.objects.get_mut(&number).expect("what is under way is kept");
        if object.rest(sizes) {
            let was_written = self.written.remove(&number);
            assert!(was_written, "table {} comes to rest twice", number.0);
            self.slack_at_rest += object.slack(sizes);
        }
    }

    /// What is deleted goes.
    pub fn remove(&mut self, number: Number, sizes: &Sizes) -> Object {
        let object = self.objects.remove(&number).expect("it is on its way out");
        if !self.written.remove(&number) {
            let slack = object.slack(sizes);
            assert!(slack <= self.slack_at_rest, "table {} leaves more than all at rest", number.0);
            self.slack_at_rest -= slack;
        }
        *object
    }

    /// Tables that are being written, in the order in which they began.
    pub fn being_written(&self) -> Vec<Written> {
        let objects = self.written.iter().map(|&number| self.get(number));
        let tables = objects.filter(|object| object.kind == TableKind::Table && !object.is_deleted);
        let columns = tables.filter_map(|object| Some((object.stream, object.columns.first()?.unit)));
        columns.map(|(stream, unit)| Written { stream, unit }).collect()
    }

    /// Chunks that all of them may leave unfilled.
    pub fn slack(&self, sizes: &Sizes) -> u32 {
        let written = self.written.iter().map(|&number| self.get(number).slack(sizes));
        self.slack_at_rest + written.sum::<u32>()
    }

    /// Adds bytes to a table or log; says to which, and where they begin.
    pub fn append(
        &mut self,
        name: TableId,
        bytes: u32,
        limits: &TableLimits,
    ) -> Result<(Number, u64), TableRefusal> {
        let number = *self.names.get(&name).ok_or(TableRefusal::NoSuchTable)?;
        let live = self.live_bytes + u64::from(bytes);
        let object = self.get_mut(number);
        if object.kind == TableKind::Table && object.is_published {
            return Err(TableRefusal::IsPublished);
        }
        let begin = object.bytes;
        if begin + u64::from(bytes) > limits.table_bytes_max {
            return Err(TableRefusal::TooLong);
        }
        if live > limits.capacity_bytes {
            return Err(TableRefusal::NoRoom);
        }
        assert!(!object.is_deleted, "number {} is appended to and was deleted", number.0);
        object.bytes += u64::from(bytes);
        self.live_bytes = live;
        Ok((number, begin))
    }

    /// The log of a name.
    pub fn log(&self, name: TableId) -> Result<Number, TableRefusal> {
        let object = self.named(name).ok_or(TableRefusal::NoSuchTable)?;
        if object.kind == TableKind::Log { Ok(object.number) } else { Err(TableRefusal::WrongKind) }
    }

    /// What may be read under a name.
    pub fn readable(&self, name: TableId) -> Result<&Object, TableRefusal> {
        let object = self.named(name).ok_or(TableRefusal::NoSuchTable)?;
        if object.is_published { Ok(object) } else { Err(TableRefusal::NotPublished) }
    }

    fn seen(&self, name: TableId) -> Seen {
        match self.named(name) {
            None => Seen::Nothing,
            Some(object) if object.kind == TableKind::Log => Seen::Log(object.number),
            Some(object) if object.is_published => Seen::Table(object.number),
            Some(object) => Seen::Unpublished(object.number),
        }
    }

    /// The rows of an edit, as they lie in a buffer.
    pub fn rows_of(
        edits: List<TableEdit>,
        edits_max: u32,
        buffers: &Buffers,
    ) -> Result<Vec<Option<TableEdit>>, TableRefusal> {
        if edits.count > edits_max {
            return Err(TableRefusal::TooManyEdits);
        }
        if !edits.lies_within(buffers) {
            return Err(TableRefusal::BadEdit);
        }
        Ok(edits.entries(buffers).collect())
    }

    /// Whether rows may be carried out, one after the other; what they do.
    pub fn may_edit(
        &self,
        rows: &[TableEdit],
        attributes: &[u8],
        limits: &TableLimits,
    ) -> Result<Vec<Row>, Refused> {
        let mut changed: BTreeMap<TableId, Seen> = BTreeMap::new();
        let mut out = Vec::with_capacity(rows.len());
        for (nth, row) in (0..).zip(rows) {
            let seen = changed.get(&row.table).copied().unwrap_or_else(|| self.seen(row.table));
            let (done, after) =
                judge(row, seen, attributes, limits).map_err(|refusal| (refusal, Some(nth)))?;
            changed.insert(row.table, after);
            out.push(done);
        }
        Ok(out)
    }

    /// Carries out rows as far as the host sees.
    pub fn edit(&mut self, rows: &[Row]) {
        for row in rows {
            let object = self.get_mut(row.number);
            match row.op {
                EditOp::Publish => {
                    assert!(!object.is_published, "table {} is published twice", row.number.0);
                    object.is_published = true;
                    object.attributes.clone_from(&row.attributes);
                }
                EditOp::Describe => {
                    assert!(object.is_published, "number {} is described and nobody sees it", row.number.0);
                    object.attributes.clone_from(&row.attributes);
                }
                EditOp::Delete => {
                    object.is_deleted = true;
                    let (name, bytes) = (object.name, object.bytes);
                    let before = self.names.remove(&name);
                    assert_eq!(before, Some(row.number), "another table has the name {}", name.0);
                    self.live_bytes -= bytes;
                }
            }
        }
    }

    /// Lists what is visible from a name on.
    pub fn list(
        &self,
        from: TableId,
        into: List<TableEntry>,
        buffers: &mut Buffers,
    ) -> Result<TableAnswer, TableRefusal> {
        if !into.lies_within(buffers) {
            return Err(TableRefusal::BadContent);
        }
        let (mut bytes, mut matching, mut count) = (Vec::new(), 0, 0);
        for object in
            self.names.range(from..).map(|(_, &number)| self.get(number)).filter(|object| object.is_published)
        {
            matching += 1;
            if count == into.count {
                continue;
            }
            count += 1;
            let attributes_bytes = u32::try_from(object.attributes.len()).expect("attributes are short");
            let mut place = [0; TableEntry::BYTES];
            TableEntry { table: object.name, kind: object.kind, bytes: object.bytes, attributes_bytes }
                .encode(&mut place);
            bytes.extend_from_slice(&place);
        }
        let room = u32::try_from(bytes.len()).expect("a listing fits its buffer");
        Piece { buffer: into.buffer, first_byte: 0, bytes: room }.scatter(buffers, &bytes);
        Ok(TableAnswer::Listed { listed: List::new(into.buffer, count), matching })
    }

    /// Asserts that names, objects and bytes agree.
    pub fn check(&self, sizes: &Sizes) {
        let live: u64 = self.names.values().map(|&number| self.get(number).bytes).sum();
        assert_eq!(live, self.live_bytes, "bytes of tables are counted wrong");
        for (name, number) in &self.names {
            let object = self.get(*number);
            assert!(object.name == *name && !object.is_deleted, "name {} is of number {}", name.0, number.0);
        }
        self.objects.values().for_each(|object| object.check(sizes));
        let slack: u32 = self.objects.values().map(|object| object.slack(sizes)).sum();
        assert_eq!(slack, self.slack(sizes), "chunks that tables leave unfilled are counted wrong");
    }
}

/// What a row does to a name that is seen so, and how it is seen then.
fn judge(
    row: &TableEdit,
    seen: Seen,
    attributes: &[u8],
    limits: &TableLimits,
) -> Result<(Row, Seen), TableRefusal> {
    let (first, bytes) = (usize_of(row.attributes_first), usize_of(row.attributes_bytes));
    let of_row = attributes.get(first..first + bytes).ok_or(TableRefusal::BadEdit)?;
    if row.attributes_bytes > limits.attributes_bytes_max {
        return Err(TableRefusal::AttributesTooLong);
    }
    let (number, after) = match (row.op, seen) {
        (_, Seen::Nothing) => return Err(TableRefusal::NoSuchTable),
        (EditOp::Publish, Seen::Unpublished(number)) => (number, Seen::Table(number)),
        (EditOp::Publish, Seen::Log(_)) => return Err(TableRefusal::WrongKind),
        (EditOp::Publish, Seen::Table(_)) => return Err(TableRefusal::IsPublished),
        (EditOp::Delete, _) if bytes > 0 => return Err(TableRefusal::BadEdit),
        (EditOp::Delete, Seen::Unpublished(number) | Seen::Table(number) | Seen::Log(number)) => {
            (number, Seen::Nothing)
        }
        (EditOp::Describe, Seen::Table(number) | Seen::Log(number)) => (number, seen),
        (EditOp::Describe, Seen::Unpublished(_)) => return Err(TableRefusal::NotPublished),
    };
    let is_unseen = row.op == EditOp::Delete && matches!(seen, Seen::Unpublished(_));
    Ok((Row { op: row.op, number, attributes: of_row.to_vec(), is_unseen }, after))
}
