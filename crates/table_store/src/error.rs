//! Why something was not done: what a program can act on, and a sentence for whoever reads it.

use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::table::{TableRefusal, TableReply};
use std::fmt;

/// What a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such file or directory.
    NotFound,
    /// There is one already, and that was not wanted.
    Exists,
    /// Something else is there than was expected.
    Changed,
    /// The drive, or its table of files, is full. Deleting files makes room.
    NoSpace,
    /// Somebody has it: another process the image, or this one the lock.
    Busy,
    /// The call itself cannot be: a bad name, an option that does not exist.
    Invalid,
    /// It is not offered here.
    NotSupported,
    /// What was found on the drive is not what was written there.
    Corrupt,
    /// The drive failed.
    Io,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What a program can act on.
    pub kind: ErrorKind,
    /// What was expected, what was found, what to change.
    pub sentence: String,
}

impl StoreError {
    /// A failure in words.
    #[must_use]
    pub fn new(kind: ErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// Nothing of this name.
    pub(crate) fn not_found(path: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{path}: no such file or directory"))
    }

    /// What a target's reply means, if it is no success.
    pub(crate) fn of_reply(doing: &str, reply: &TableReply) -> Self {
        let why = match reply.refusal {
            Some(refusal) => refusal.sentence().to_owned(),
            None => format!("the drive answered with status {}", reply.status),
        };
        let kind = match reply.refusal {
            Some(TableRefusal::NoRoom | TableRefusal::TooManyTables) => ErrorKind::NoSpace,
            Some(TableRefusal::NoSuchTable) => ErrorKind::NotFound,
            Some(_) => ErrorKind::Invalid,
            None if reply.status == Status::CAPACITY_EXCEEDED => ErrorKind::NoSpace,
            None => ErrorKind::Io,
        };
        Self::new(kind, format!("{doing}: {why}"))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Tag;

    #[test]
    fn a_full_drive_is_told_from_a_broken_one_and_from_a_bug() {
        let refused = |refusal| StoreError::of_reply("append", &TableReply::refused(Tag(1), refusal, None));
        assert_eq!(refused(TableRefusal::NoRoom).kind, ErrorKind::NoSpace);
        assert_eq!(refused(TableRefusal::TooManyTables).kind, ErrorKind::NoSpace);
        assert_eq!(refused(TableRefusal::WrongKind).kind, ErrorKind::Invalid);
        for (status, kind) in
            [(Status::CAPACITY_EXCEEDED, ErrorKind::NoSpace), (Status::INTERNAL_ERROR, ErrorKind::Io)]
        {
            let reply = TableReply {
                status,
                refusal: None,
                ..TableReply::refused(Tag(1), TableRefusal::NoRoom, None)
            };
            let error = StoreError::of_reply("append", &reply);
            assert!(error.kind == kind && error.sentence.starts_with("append: "), "{error}");
        }
    }
}
