//! Requests to a target of tables and logs, as C has them and as the target does.
//!
//! There are no flags: logs become durable by their sync, tables by the edit that publishes them. Deliberately not here: the
//! exported functions.

use crate::ask::{Ask, ended, refused};
use crate::boundary::Memory;
use crate::content::{Given, piece, room_for};
use crate::failure::Failure;
use crate::payload::Loan;
use crate::reply::{End, Reply};
use crate::status::errno_of;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableHint, TableId, TableKind, TableLimits, TableOp,
    TableRefusal, TableReply, TableRequest,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::ffi::{c_int, c_void};

/// Begins a table or a log under a free name.
pub const OCSSD_TABLES_CREATE: u32 = 0;
/// Adds to the end of an unpublished table or of a log; the reply says at which byte.
pub const OCSSD_TABLES_APPEND: u32 = 1;
/// Ends when every byte that was appended to the log before is durable.
pub const OCSSD_TABLES_SYNC: u32 = 2;
/// Reads bytes of a published table or of a log.
pub const OCSSD_TABLES_READ: u32 = 3;
/// Reads the attributes of a published table or of a log.
pub const OCSSD_TABLES_ATTRIBUTES: u32 = 4;
/// The table is complete: it can be read, survives a power cut, and has these attributes. An operation, and of a row of an edit.
pub const OCSSD_TABLES_PUBLISH: u32 = 5;
/// The table or log is gone; a table that is not published is given up. An operation, and of a row of an edit.
pub const OCSSD_TABLES_DELETE: u32 = 6;
/// Carries out the rows of an edit, all or none.
pub const OCSSD_TABLES_EDIT: u32 = 7;
/// Lists published tables, and logs.
pub const OCSSD_TABLES_LIST: u32 = 8;
/// Of a row of an edit: the published table or log has these attributes from now on.
pub const OCSSD_TABLES_DESCRIBE: u32 = 9;

/// Invisible until it is published, then constant.
pub const OCSSD_TABLE: u32 = 0;
/// Visible from its creation; grows.
pub const OCSSD_LOG: u32 = 1;

/// A published table or a log, as a list shows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub table: u64,
    /// Its bytes.
    pub bytes: u64,
    /// `OCSSD_TABLE` or `OCSSD_LOG`.
    pub kind: u32,
    /// Bytes of its attributes.
    pub attributes_bytes: u32,
}

/// A row of an edit. Rows apply in their order: a name that is deleted above is free below.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// `OCSSD_TABLES_PUBLISH`, `OCSSD_TABLES_DELETE` or `OCSSD_TABLES_DESCRIBE`.
    pub op: u32,
    /// Bytes of its attributes; 0 of a deletion.
    pub attributes_bytes: u32,
    /// Which table or log.
    pub table: u64,
    /// Its attributes, any bytes; NULL without.
    pub attributes: *const c_void,
}

/// A request to a target of tables. What an operation does not name is 0 or NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TablesRequest {
    /// `OCSSD_TABLES_CREATE` and so on.
    pub op: u32,
    /// Of a creation `OCSSD_TABLE` or `OCSSD_LOG`.
    pub kind: u32,
    /// The table or log, of all but edits: any number. Of a list the first that may be listed, if it exists or not.
    pub table: u64,
    /// Of a creation the level of the tree it will be of, 0 to 255: tables of a level are expected to be deleted together.
    pub level: u32,
    /// Of a creation who writes it, 0 to 255: what different streams write may lie on different parallel units.
    pub stream: u32,
    /// Of a read the first byte. Of a creation how many bytes it will have, 0 if that is not known.
    pub offset: u64,
    /// Of an append what is added, of a publication the attributes: both may change when the call that submits returns. Of a read,
    /// of attributes and of a list (an array of `ocssd_table`) where to put what is read: it must stay until the request has ended.
    pub data: *mut c_void,
    /// Bytes of the data, or that there is room for.
    pub bytes: u64,
    /// Of an edit its rows, which may change when the call that submits returns, as their attributes may.
    pub edits: *const Edit,
    /// How many.
    pub edit_count: u32,
    /// Zero.
    pub reserved: u32,
}

/// What is asked of a target of tables.
#[derive(Clone, Copy)]
pub enum TablesAsk {
    /// A table or a log begins.
    Create {
        /// Its name.
        table: TableId,
        /// Which it is.
        kind: TableKind,
        /// What is known of it.
        hint: TableHint,
        /// Bytes it will have; 0 says nothing.
        bytes_expected: u64,
    },
    /// Content is added.
    Append(TableId, Memory),
    /// A log becomes durable.
    Sync(TableId),
    /// A read.
    Read {
        /// Of which table or log.
        table: TableId,
        /// From which byte on.
        offset: u64,
        /// Where to.
        memory: Memory,
    },
    /// A read of attributes.
    Attributes(TableId, Memory),
    /// A table is published, with attributes.
    Publish(TableId, Memory),
    /// A table or log is deleted.
    Delete(TableId),
    /// Rows, as C has them.
    Edit(Memory),
    /// A list, from a name on.
    List(TableId, Memory),
}

/// A number of eight bits.
fn small(value: u32, what: &str) -> Result<u8, Failure> {
    u8::try_from(value).map_err(|_| Failure::invalid(format!("{what} is {value}, but should be 0 to 255")))
}

impl TablesRequest {
    /// One that names no more than a table.
    pub const fn of(op: u32, table: u64) -> Self {
        Self {
            op,
            kind: OCSSD_TABLE,
            table,
            level: 0,
            stream: 0,
            offset: 0,
            data: std::ptr::null_mut(),
            bytes: 0,
            edits: std::ptr::null(),
            edit_count: 0,
            reserved: 0,
        }
    }

    /// What it asks of a target with these limits.
    ///
    /// # Errors
    /// Why it asks nothing.
    pub fn ask(&self, limits: &TableLimits) -> Result<Ask, Failure> {
        self.check_unnamed()?;
        let table = TableId(self.table);
        let ask = match self.op {
            OCSSD_TABLES_CREATE => TablesAsk::Create {
                table,
                kind: self.kind()?,
                hint: TableHint { level: small(self.level, "level")?, stream: small(self.stream, "stream")? },
                bytes_expected: self.offset,
            },
            OCSSD_TABLES_APPEND => TablesAsk::Append(table, self.memory()?),
            OCSSD_TABLES_SYNC => TablesAsk::Sync(table),
            OCSSD_TABLES_READ => TablesAsk::Read { table, offset: self.offset, memory: self.memory()? },
            OCSSD_TABLES_ATTRIBUTES => TablesAsk::Attributes(table, self.memory()?),
            OCSSD_TABLES_PUBLISH => TablesAsk::Publish(table, self.memory()?),
            OCSSD_TABLES_DELETE => TablesAsk::Delete(table),
            OCSSD_TABLES_EDIT => TablesAsk::Edit(self.rows(limits)?),
            OCSSD_TABLES_LIST => TablesAsk::List(table, self.listed()?),
            other => {
                return Err(Failure::invalid(format!(
                    "op is {other}, but the operations of tables are 0 to {OCSSD_TABLES_LIST}"
                )));
            }
        };
        Ok(Ask::Tables(ask))
    }

    /// Refuses what is given and belongs to other operations.
    fn check_unnamed(&self) -> Result<(), Failure> {
        let is = |ops: &[u32]| ops.contains(&self.op);
        let has_data = is(&[
            OCSSD_TABLES_APPEND,
            OCSSD_TABLES_READ,
            OCSSD_TABLES_ATTRIBUTES,
            OCSSD_TABLES_PUBLISH,
            OCSSD_TABLES_LIST,
        ]);
        let creates = self.op == OCSSD_TABLES_CREATE;
        let edits = self.op == OCSSD_TABLES_EDIT;
        let fields = [
            ("kind", self.kind != 0, creates),
            ("table", self.table != 0, !edits),
            ("level", self.level != 0, creates),
            ("stream", self.stream != 0, creates),
            ("offset", self.offset != 0, creates || self.op == OCSSD_TABLES_READ),
            ("data", !self.data.is_null(), has_data),
            ("bytes", self.bytes != 0, has_data),
            ("edits", !self.edits.is_null(), edits),
            ("edit_count", self.edit_count != 0, edits),
            ("reserved", self.reserved != 0, false),
        ];
        match fields.into_iter().find(|(_, is_given, is_taken)| *is_given && !*is_taken) {
            None => Ok(()),
            Some((name, ..)) => {
                Err(Failure::invalid(format!("operation {} of tables has no {name}: leave it 0", self.op)))
            }
        }
    }

    fn kind(&self) -> Result<TableKind, Failure> {
        match self.kind {
            OCSSD_TABLE => Ok(TableKind::Table),
            OCSSD_LOG => Ok(TableKind::Log),
            other => Err(Failure::invalid(format!(
                "kind is {other}, but should be {OCSSD_TABLE} (a table) or {OCSSD_LOG} (a log)"
            ))),
        }
    }

    fn memory(&self) -> Result<Memory, Failure> {
        Memory::new(self.data, self.bytes, "data")
    }

    fn listed(&self) -> Result<Memory, Failure> {
        let row = u64::try_from(size_of::<Table>()).expect("24 bytes");
        if !self.bytes.is_multiple_of(row) {
            return Err(Failure::invalid(format!(
                "bytes is {}, but a list has room for whole ocssd_table of {row} bytes",
                self.bytes
            )));
        }
        self.memory()
    }

    fn rows(&self, limits: &TableLimits) -> Result<Memory, Failure> {
        if self.edit_count > limits.edits_max {
            let (count, most) = (self.edit_count, limits.edits_max);
            return Err(Failure::new(libc::EFBIG, format!("an edit has at most {most} rows, not {count}")));
        }
        let count = usize_of(self.edit_count);
        let bytes = u64::try_from(count * size_of::<Edit>()).expect("few rows");
        let rows = Memory::new(self.edits.cast(), bytes, "edits")?;
        for row in 0..count {
            let named =
                |failure: Failure| Failure { text: format!("row {row}: {}", failure.text), ..failure };
            rows.nth::<Edit>(row).check().map_err(named)?;
        }
        Ok(rows)
    }
}

impl Edit {
    fn check(&self) -> Result<(), Failure> {
        let (op, attributes) = (self.op()?, self.attributes()?);
        if op == EditOp::Delete && attributes.bytes() > 0 {
            return Err(Failure::invalid(format!(
                "attributes_bytes is {}, but a deletion has no attributes",
                self.attributes_bytes
            )));
        }
        Ok(())
    }

    fn op(&self) -> Result<EditOp, Failure> {
        match self.op {
            OCSSD_TABLES_PUBLISH => Ok(EditOp::Publish),
            OCSSD_TABLES_DELETE => Ok(EditOp::Delete),
            OCSSD_TABLES_DESCRIBE => Ok(EditOp::Describe),
            other => Err(Failure::invalid(format!(
                "op is {other}, but a row publishes ({OCSSD_TABLES_PUBLISH}), deletes ({OCSSD_TABLES_DELETE}) or describes \
                 ({OCSSD_TABLES_DESCRIBE})"
            ))),
        }
    }

    fn attributes(&self) -> Result<Memory, Failure> {
        Memory::new(self.attributes, u64::from(self.attributes_bytes), "attributes")
    }
}

fn narrow(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a buffer on loan has at most 16 MiB")
}

/// The caller's rows as a list, and their attributes, one after the other.
fn edit(rows: Memory, loan: &mut Loan<'_>) -> Result<TableOp, Failure> {
    let rows: Vec<Edit> = (0..rows.bytes() / size_of::<Edit>()).map(|row| rows.nth(row)).collect();
    let bytes = rows.iter().map(|row| usize_of(row.attributes_bytes)).fold(0, usize::saturating_add);
    let list = loan.room(rows.len() * TableEdit::BYTES)?;
    let attributes = if bytes == 0 { Content::Empty } else { piece(loan.room(bytes)?, bytes) };
    let mut first = 0;
    let mut edits = Vec::with_capacity(rows.len());
    for row in &rows {
        // SAFETY: the caller lets what is given be read during the call that submits it.
        let given = unsafe { row.attributes()?.as_shared() };
        if let Content::Piece(piece) = attributes {
            loan.buffers.bytes_mut(piece.buffer, first, given.len()).copy_from_slice(given);
        }
        edits.push(TableEdit {
            op: row.op()?,
            table: TableId(row.table),
            attributes_first: narrow(first),
            attributes_bytes: narrow(given.len()),
        });
        first += given.len();
    }
    Ok(TableOp::Edit { edits: List::write(loan.buffers, list, &edits), attributes })
}

/// Room for a list in the caller's memory.
fn list(from: TableId, memory: Memory, loan: &mut Loan<'_>) -> Result<TableOp, Failure> {
    let count = memory.bytes() / size_of::<Table>();
    let buffer = loan.room(count * TableEntry::BYTES)?;
    Ok(TableOp::List { from, into: List::new(buffer, narrow(count)) })
}

/// Puts a list where the caller wants it.
fn put_list(listed: List<TableEntry>, memory: Memory, buffers: &Buffers) {
    for (place, entry) in listed.entries(buffers).enumerate() {
        let entry = entry.expect("the target lists entries");
        let kind = match entry.kind {
            TableKind::Table => OCSSD_TABLE,
            TableKind::Log => OCSSD_LOG,
        };
        let TableEntry { table, bytes, attributes_bytes, .. } = entry;
        memory.put_nth(place, Table { table: table.0, bytes, kind, attributes_bytes });
    }
}

impl TablesAsk {
    /// The request.
    ///
    /// # Errors
    /// There is no memory for it now, or it has more than a request can have.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<TableRequest, Failure> {
        let op = match *self {
            Self::Create { table, kind, hint, bytes_expected } => {
                TableOp::Create { table, kind, hint, bytes_expected }
            }
            Self::Append(table, memory) => {
                let content = Given::Here(memory).content(loan)?;
                TableOp::Append { table, content, durability: Durability::AtFlush }
            }
            Self::Sync(table) => TableOp::Sync { table },
            Self::Read { table, offset, memory } => {
                TableOp::Read { table, offset, into: room_for(memory, loan)? }
            }
            Self::Attributes(table, memory) => TableOp::Attributes { table, into: room_for(memory, loan)? },
            Self::Publish(table, memory) => {
                TableOp::Publish { table, attributes: Given::Here(memory).content(loan)? }
            }
            Self::Delete(table) => TableOp::Delete { table },
            Self::Edit(rows) => edit(rows, loan)?,
            Self::List(from, memory) => list(from, memory, loan)?,
        };
        Ok(TableRequest { tag, op })
    }

    /// What the reply brings.
    pub fn end(&self, reply: &TableReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        let mut told = Reply::of(reply.status);
        let is_fine = errno_of(reply.status) == 0 && reply.refusal.is_none();
        match (reply.answer, self) {
            (TableAnswer::Appended { offset }, _) => told.offset = offset,
            (TableAnswer::Read { bytes }, Self::Read { memory, .. })
            | (TableAnswer::Attributes { bytes }, Self::Attributes(_, memory)) => {
                told.bytes = u64::from(bytes);
                if is_fine {
                    memory.fill_as_far(buffers, buffer, bytes);
                }
            }
            (TableAnswer::Listed { listed, matching }, Self::List(_, memory)) => {
                told.count = u64::from(matching);
                put_list(listed, *memory, buffers);
            }
            (TableAnswer::Done, _) => {}
            (answer, _) => unreachable!("{answer:?} answers what was not asked"),
        }
        told.entry = reply.row.map_or(told.entry, u64::from);
        let Some(refusal) = reply.refusal else { return ended(told, || self.words()) };
        let what = match reply.row {
            Some(row) => format!("row {row} of {}", self.words()),
            None => self.words(),
        };
        refused(told, errno_of_refusal(refusal), &what, &refusal)
    }

    fn words(&self) -> String {
        match self {
            Self::Create { table, kind: TableKind::Table, .. } => format!("creating table {}", table.0),
            Self::Create { table, kind: TableKind::Log, .. } => format!("creating log {}", table.0),
            Self::Append(table, _) => format!("an append to {}", table.0),
            Self::Sync(table) => format!("a sync of {}", table.0),
            Self::Read { table, .. } => format!("a read of {}", table.0),
            Self::Attributes(table, _) => format!("a read of the attributes of {}", table.0),
            Self::Publish(table, _) => format!("publishing table {}", table.0),
            Self::Delete(table) => format!("deleting {}", table.0),
            Self::Edit(_) => "an edit".to_owned(),
            Self::List(..) => "a list of tables".to_owned(),
        }
    }
}

const fn errno_of_refusal(refusal: TableRefusal) -> c_int {
    match refusal {
        TableRefusal::NoSuchTable => libc::ENOENT,
        TableRefusal::NameTaken => libc::EEXIST,
        TableRefusal::NotPublished => libc::EBUSY,
        TableRefusal::IsPublished => libc::EROFS,
        TableRefusal::TooManyTables => libc::EMFILE,
        TableRefusal::TooLong | TableRefusal::AttributesTooLong | TableRefusal::TooManyEdits => libc::EFBIG,
        TableRefusal::NoRoom => libc::ENOSPC,
        TableRefusal::WrongKind | TableRefusal::BadEdit | TableRefusal::BadContent => libc::EINVAL,
    }
}
