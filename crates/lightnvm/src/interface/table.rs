//! The table interface: sorted tables of an LSM tree, and the small logs beside them (LightLSM).
//!
//! A *table* is written once, from its begin to its end, and is invisible until it is published; then it never changes. A
//! *log* is visible from its creation and only grows (RocksDB's WAL). The host names both, as it names its files.
//!
//! **Atomicity.** An edit publishes, deletes and describes any number of tables and logs, all or nothing: RocksDB's
//! version edit, without a MANIFEST. Publishing and deleting alone are edits of one.
//!
//! **Order.** Edits and creations of logs take effect in the order in which the target took them; after a power cut the
//! first so many of them are there.
//!
//! **Durability.** An edit, and all content of what it publishes, is durable when answered. Unpublished tables do not
//! survive a power cut. Of a log there are as many first bytes as were synced, and perhaps more of those appended.
//! Synced bytes, and an answered edit, make durable the creations and edits before them; a log without either may be
//! gone. A deletion that was not answered leaves the whole or nothing.
//!
//! **Errors.** A refused request changes nothing; an edit names the row it was refused for.
//!
//! Reads are of any bytes, whatever the media's write unit is. Deliberately not here: keys, blocks, filters and compaction.

use super::list::{Entry, List, u32_at, u64_at};
use super::{Content, Durability};
use crate::command::Tag;
use crate::status::Status;
use crate::target::Target;
use std::fmt;

/// A table's or log's name, as the host chooses it; free again once it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// Invisible until published, then constant.
    Table,
    /// Visible from creation, grows.
    Log,
}

/// What a host knows of a table before it writes it; decides where it lies, never what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableHint {
    /// The level of the tree it will be of: tables of a level die together.
    pub level: u8,
    /// Who writes it, as flushes and compactions: what different streams write can lie in different groups.
    pub stream: u8,
}

/// What a row of an edit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditOp {
    /// The table is complete: it can be read, and survives. Its attributes are the row's.
    Publish,
    /// The table or log is gone; an unpublished table is given up.
    Delete,
    /// The attributes of a published table, or of a log, are the row's from now on.
    Describe,
}

/// One row of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEdit {
    /// What to do.
    pub op: EditOp,
    /// With which.
    pub table: TableId,
    /// First byte of its attributes in those of the request.
    pub attributes_first: u32,
    /// Bytes of its attributes; 0 of a deletion.
    pub attributes_bytes: u32,
}

impl Entry for TableEdit {
    const BYTES: usize = 24;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[0] = match self.op {
            EditOp::Publish => 1,
            EditOp::Delete => 2,
            EditOp::Describe => 3,
        };
        bytes[8..16].copy_from_slice(&self.table.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.attributes_first.to_le_bytes());
        bytes[20..].copy_from_slice(&self.attributes_bytes.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let op = match bytes[0] {
            1 => EditOp::Publish,
            2 => EditOp::Delete,
            3 => EditOp::Describe,
            _ => return None,
        };
        let (attributes_first, attributes_bytes) = (u32_at(bytes, 16), u32_at(bytes, 20));
        Some(Self { op, table: TableId(u64_at(bytes, 8)), attributes_first, attributes_bytes })
    }
}

/// A published table or a log, as a listing shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its name.
    pub table: TableId,
    /// Which it is.
    pub kind: TableKind,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of its attributes.
    pub attributes_bytes: u32,
}

impl Entry for TableEntry {
    const BYTES: usize = 24;

    fn encode(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.table.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.attributes_bytes.to_le_bytes());
        bytes[20..].fill(0);
        bytes[20] = match self.kind {
            TableKind::Table => 1,
            TableKind::Log => 2,
        };
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let kind = match bytes[20] {
            1 => TableKind::Table,
            2 => TableKind::Log,
            _ => return None,
        };
        let table = TableId(u64_at(bytes, 0));
        Some(Self { table, kind, bytes: u64_at(bytes, 8), attributes_bytes: u32_at(bytes, 16) })
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOp {
    /// Begins a table or a log, under a name that is free.
    Create {
        /// Its name.
        table: TableId,
        /// Which it is.
        kind: TableKind,
        /// What the host knows of it.
        hint: TableHint,
        /// Bytes it will have, if the host knows; a target may refuse what it has no room for. 0 says nothing.
        bytes_expected: u64,
    },
    /// Adds to the end of an unpublished table or of a log; the reply says at which byte.
    Append {
        /// Its name.
        table: TableId,
        /// What is added; never staged.
        content: Content,
        /// Of a log: when it survives a power cut. Tables survive when published.
        durability: Durability,
    },
    /// Replies when every byte of the log appended before is durable, and so the log itself.
    Sync {
        /// Its name.
        table: TableId,
    },
    /// Reads a published table or a log: as many bytes from `offset` on as there are and as `into` has room for.
    Read {
        /// Its name.
        table: TableId,
        /// First byte.
        offset: u64,
        /// Where to.
        into: Content,
    },
    /// Reads the attributes of a published table or of a log, as far as `into` has room.
    Attributes {
        /// Its name.
        table: TableId,
        /// Where to.
        into: Content,
    },
    /// Publishes one table.
    Publish {
        /// Its name.
        table: TableId,
        /// Its attributes.
        attributes: Content,
    },
    /// Deletes one table or log, published or not.
    Delete {
        /// Its name.
        table: TableId,
    },
    /// Carries out all rows, or none. Rows apply in order: a name deleted above is free below.
    Edit {
        /// The rows.
        edits: List<TableEdit>,
        /// Attributes the rows name.
        attributes: Content,
    },
    /// Lists published tables and logs by ascending name, from one on.
    List {
        /// The first name.
        from: TableId,
        /// Where to, and how many at most.
        into: List<TableEntry>,
    },
    /// Replies when everything answered before is durable, of all logs.
    Flush,
    /// Replies when everything is durable and the target can be left; nothing may be asked of it afterwards.
    Shutdown,
}

/// A request to a table target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRequest {
    /// The host's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: TableOp,
}

/// What a successful request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAnswer {
    /// Nothing but that it was done; also of a refused request.
    Done,
    /// Where an append begins.
    Appended {
        /// First byte.
        offset: u64,
    },
    /// What was read.
    Read {
        /// Bytes that were read: fewer than asked for at the end.
        bytes: u32,
    },
    /// What attributes there are.
    Attributes {
        /// All of their bytes.
        bytes: u32,
    },
    /// What was listed.
    Listed {
        /// Rows in the buffer.
        listed: List<TableEntry>,
        /// Tables and logs from the name on, listed or not.
        matching: u32,
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRefusal {
    /// No table or log has this name.
    NoSuchTable,
    /// The name is taken.
    NameTaken,
    /// The table is not published: it cannot be read or described.
    NotPublished,
    /// The table is published: it does not change any more.
    IsPublished,
    /// It is a log, and only a table is published; or a table, and only a log is synced.
    WrongKind,
    /// No more tables and logs.
    TooManyTables,
    /// The table would be longer than one may be.
    TooLong,
    /// The attributes are longer than they may be.
    AttributesTooLong,
    /// The edit has more rows than one may have.
    TooManyEdits,
    /// The edit's buffer does not hold it, or a row's attributes are not within those of the request.
    BadEdit,
    /// There is no room.
    NoRoom,
    /// A buffer does not hold what the request names.
    BadContent,
}

impl TableRefusal {
    /// The status of the reply.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::NotPublished | Self::IsPublished => Status::COMMAND_SEQUENCE_ERROR,
            Self::NoRoom => Status::CAPACITY_EXCEEDED,
            Self::NoSuchTable
            | Self::NameTaken
            | Self::WrongKind
            | Self::TooManyTables
            | Self::TooLong
            | Self::AttributesTooLong
            | Self::TooManyEdits
            | Self::BadEdit
            | Self::BadContent => Status::INVALID_FIELD,
        }
    }

    /// The refusal as one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoSuchTable => "no table or log has this name",
            Self::NameTaken => "the name is taken: delete what has it first, in the same edit if you like",
            Self::NotPublished => "an unpublished table is neither read nor described: publish it first",
            Self::IsPublished => "a published table does not change: write another, and delete this one",
            Self::WrongKind => "only tables are published, and only logs are synced",
            Self::TooManyTables => "the target keeps no more tables and logs: delete some",
            Self::TooLong => "the table would be longer than the target's limit",
            Self::AttributesTooLong => "the attributes of a table are longer than the target's limit",
            Self::TooManyEdits => "the edit has more rows than the target's limit",
            Self::BadEdit => "an edit lies in a whole buffer, and its rows name attributes of the request",
            Self::NoRoom => "there is no room: delete tables",
            Self::BadContent => "a buffer of the request does not hold what the request names",
        }
    }
}

impl fmt::Display for TableRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableReply {
    /// The request's tag.
    pub tag: Tag,
    /// Success, the refusal's status, or a failure of the media.
    pub status: Status,
    /// Why it was refused, if it was.
    pub refusal: Option<TableRefusal>,
    /// Of an edit: the row it was refused for.
    pub row: Option<u32>,
    /// What came of it.
    pub answer: TableAnswer,
}

impl TableReply {
    /// The reply to a request that succeeded.
    #[must_use]
    pub const fn success(tag: Tag, answer: TableAnswer) -> Self {
        Self { tag, status: Status::SUCCESS, refusal: None, row: None, answer }
    }

    /// The reply to a request that was refused.
    #[must_use]
    pub const fn refused(tag: Tag, refusal: TableRefusal, row: Option<u32>) -> Self {
        Self { tag, status: refusal.status(), refusal: Some(refusal), row, answer: TableAnswer::Done }
    }
}

/// What a table target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Tables and logs, unpublished ones included.
    pub tables_max: u32,
    /// Bytes of a table or log.
    pub table_bytes_max: u64,
    /// Bytes of attributes of one.
    pub attributes_bytes_max: u32,
    /// Rows of an edit.
    pub edits_max: u32,
    /// Bytes of tables and logs that fit at least.
    pub capacity_bytes: u64,
}

/// A target with the table interface. One thread at a time asks it; which, may change: the threads of an LSM tree share it.
pub trait TableTarget: Target<Request = TableRequest, Reply = TableReply> + Send {
    /// What it takes; never changes.
    fn limits(&self) -> TableLimits;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_their_encoding_and_other_bytes_are_none() {
        for op in [EditOp::Publish, EditOp::Delete, EditOp::Describe] {
            let edit = TableEdit { op, table: TableId(1 << 40), attributes_first: 5, attributes_bytes: 9 };
            let mut bytes = [0xFF; TableEdit::BYTES];
            edit.encode(&mut bytes);
            assert_eq!(TableEdit::decode(&bytes), Some(edit));
        }
        for kind in [TableKind::Table, TableKind::Log] {
            let entry = TableEntry { table: TableId(7), kind, bytes: 1 << 33, attributes_bytes: 9 };
            let mut bytes = [0xFF; TableEntry::BYTES];
            entry.encode(&mut bytes);
            assert_eq!(TableEntry::decode(&bytes), Some(entry));
        }
        let none = [0; 24];
        assert_eq!((TableEdit::decode(&none), TableEntry::decode(&none)), (None, None));
    }

    #[test]
    fn a_refused_edit_names_its_row() {
        let reply = TableReply::refused(Tag(1), TableRefusal::NotPublished, Some(3));
        assert_eq!((reply.status, reply.row), (Status::COMMAND_SEQUENCE_ERROR, Some(3)));
        assert!(reply.refusal.expect("it was refused").to_string().contains("publish it first"));
        assert!(TableReply::success(Tag(1), TableAnswer::Done).status.is_success());
    }
}
