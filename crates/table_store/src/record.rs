//! What the attributes of a table or log say of the file it holds: its place among the names, and short content.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `OTS1` |
//! | 4 | 1 | 1 directory, 2 table, 3 log |
//! | 5 | 1 | 1 if the content lies here, else 0 |
//! | 6 | 2 | bytes of the name |
//! | 8 | 8 | the directory it lies in: the name of that directory's table, 0 for the root |
//! | 16 | 8 | when it was changed, in nanoseconds since 1970 |
//! | 24 | 4 | bytes of the label |
//! | 28 | | the name, the label, and then the content up to the end |
//!
//! All numbers are little-endian. A *label* is bytes a user of the store keeps with a file. Deliberately not here: checksums;
//! the target has its own.

/// Bytes before the name.
pub const HEADER_BYTES: usize = 28;
const MAGIC: [u8; 4] = *b"OTS1";

/// How a file lies on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Appears as a whole when it is synced or closed, and hardly ever changes then.
    Table,
    /// Grows by small appends, and is there from its creation.
    Log,
    /// In this process's memory: no promise at all.
    Memory,
}

impl Class {
    /// The class RocksDB's name of a file asks for: `*.log` and `MANIFEST-*` grow, `LOG*` and `LOCK` are for people and for
    /// the process, everything else is written once.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        if name.ends_with(".log") || name.starts_with("MANIFEST-") {
            Self::Log
        } else if name == "LOG" || name == "LOCK" || name.starts_with("LOG.old.") {
            Self::Memory
        } else {
            Self::Table
        }
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A directory: a table without content.
    Directory,
    /// A table; its content lies in the record, or in the table.
    Table {
        /// In the record.
        is_inline: bool,
    },
    /// A log.
    Log,
}

/// A file or directory as its table's attributes have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: RecordKind,
    /// The directory's table; 0 for the root.
    pub directory: u64,
    /// The name in it.
    pub name: String,
    /// Nanoseconds since 1970.
    pub modified_ns: u64,
    /// Bytes the user keeps with the file.
    pub label: Vec<u8>,
    /// Content, if it lies here.
    pub content: Vec<u8>,
}

impl Record {
    /// Bytes of a record without content.
    #[must_use]
    pub const fn bytes_without_content(name: &str, label: &[u8]) -> usize {
        HEADER_BYTES + name.len() + label.len()
    }

    /// As attributes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity(Self::bytes_without_content(&self.name, &self.label) + self.content.len());
        let (kind, inline) = match self.kind {
            RecordKind::Directory => (1, 0),
            RecordKind::Table { is_inline } => (2, u8::from(is_inline)),
            RecordKind::Log => (3, 0),
        };
        let name_bytes = u16::try_from(self.name.len()).expect("a name is at most 255 bytes long");
        let label_bytes = u32::try_from(self.label.len()).expect("a label is shorter than attributes are");
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[kind, inline]);
        bytes.extend_from_slice(&name_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.directory.to_le_bytes());
        bytes.extend_from_slice(&self.modified_ns.to_le_bytes());
        bytes.extend_from_slice(&label_bytes.to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.label);
        bytes.extend_from_slice(&self.content);
        bytes
    }

    /// The record in these attributes; `None` if somebody else wrote them.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let kind = match (header[..4] == MAGIC, header[4], header[5]) {
            (true, 1, 0) => RecordKind::Directory,
            (true, 2, inline @ 0..=1) => RecordKind::Table { is_inline: inline == 1 },
            (true, 3, 0) => RecordKind::Log,
            _ => return None,
        };
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let name_bytes = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let label_bytes = u32::from_le_bytes(header[24..].try_into().expect("four bytes"));
        let (name, rest) = rest.split_at_checked(name_bytes)?;
        let (label, content) = rest.split_at_checked(usize::try_from(label_bytes).ok()?)?;
        let is_inline = kind == (RecordKind::Table { is_inline: true });
        if !is_inline && !content.is_empty() {
            return None;
        }
        Some(Self {
            kind,
            directory: number(8),
            name: String::from_utf8(name.to_vec()).ok()?,
            modified_ns: number(16),
            label: label.to_vec(),
            content: content.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordKind, content: &[u8]) -> Record {
        Record {
            kind,
            directory: 7,
            name: "000012.sst".to_owned(),
            modified_ns: 1 << 60,
            label: b"label".to_vec(),
            content: content.to_vec(),
        }
    }

    #[test]
    fn records_survive_their_encoding() {
        for (kind, content) in [
            (RecordKind::Directory, &b""[..]),
            (RecordKind::Table { is_inline: false }, b""),
            (RecordKind::Table { is_inline: true }, b"MANIFEST-000004\n"),
            (RecordKind::Table { is_inline: true }, b""),
            (RecordKind::Log, b""),
        ] {
            let record = record(kind, content);
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn no_prefix_and_no_changed_header_is_taken_for_another_record() {
        let whole = record(RecordKind::Table { is_inline: false }, b"").encode();
        for end in 0..whole.len() {
            assert_eq!(Record::decode(&whole[..end]), None, "{end} bytes");
        }
        for at in [0, 3, 4, 5] {
            let mut other = whole.clone();
            other[at] ^= 0x80;
            assert_eq!(Record::decode(&other), None, "byte {at}");
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(Record::decode(&longer), None, "content where none is");
    }

    #[test]
    fn names_of_rocksdb_choose_their_class() {
        for (name, class) in [
            ("000004.log", Class::Log),
            ("MANIFEST-000001", Class::Log),
            ("LOG", Class::Memory),
            ("LOG.old.1", Class::Memory),
            ("LOCK", Class::Memory),
            ("000009.sst", Class::Table),
            ("CURRENT", Class::Table),
            ("OPTIONS-000007.dbtmp", Class::Table),
        ] {
            assert_eq!(Class::of_name(name), class, "{name}");
        }
    }
}
