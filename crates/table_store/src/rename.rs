//! Another place for a file or directory: one edit of the drive, which also deletes what had the place.

use crate::error::{ErrorKind, StoreError};
use crate::names::{Identity, Names, Node, Place};
use crate::path;
use crate::record::{Class, Record, RecordKind};
use crate::shared_drive::EditRow;
use crate::store::Store;
use ocssd_lightnvm::interface::table::{EditOp, TableId};

impl Store {
    /// Gives a file or directory another name. A file that has the name is deleted in the same edit: after a power cut the
    /// name is the old file's or the new one's. A file that is still written, and no log, has the new name once it is
    /// published.
    ///
    /// # Errors
    /// If there is no such file or directory, the name is a directory's that is not empty, or the drive fails.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut names = self.names()?;
        let node = names.find(&path::names(from)?).ok_or_else(|| StoreError::not_found(from))?;
        let (directory, name) = path::split(to)?;
        let place = (names.directory(&directory, to)?, name.to_owned());
        if names.at(&place) == Some(node) {
            return Ok(());
        }
        match node {
            Node::Directory(directory) => self.rename_directory(&mut names, directory, place, to),
            Node::File(number) => self.rename_file(&mut names, number, place),
        }
    }

    fn rename_file(&self, names: &mut Names, number: u64, place: Place) -> Result<(), StoreError> {
        let entry = names.file(number).expect("what has a name is there");
        if entry.file.class == Class::Memory && Class::of_name(&place.1) != Class::Memory {
            let sentence = format!("{}: a file in memory keeps a name of one, as LOG.old.1", place.1);
            return Err(StoreError::new(ErrorKind::NotSupported, sentence));
        }
        let mut rows = Vec::new();
        self.make_room_at(names, &place, &mut rows)?;
        let kind = match entry.identity {
            Identity::Published { is_inline, .. } => Some(RecordKind::Table { is_inline }),
            Identity::Log(_) => Some(RecordKind::Log),
            Identity::Absent | Identity::Unpublished(_) => None,
        };
        if let (Some(kind), Some(table)) = (kind, entry.identity.table()) {
            let record = names.record(number, &place, kind, &entry.inline);
            rows.push((EditOp::Describe, table, record.encode()));
        } else {
            // Not yet on the drive: what has the name stays there until this file is.
            let kept = names.kept_at(&place);
            rows.retain(|(_, table, _)| !kept.contains(table));
            names.file_mut(number).expect("it was there under the same lock").replaces.extend(kept);
        }
        self.edit_of(&rows)?;
        names.move_file(number, place);
        Ok(())
    }

    fn rename_directory(
        &self,
        names: &mut Names,
        directory: u64,
        place: Place,
        to: &str,
    ) -> Result<(), StoreError> {
        if names.is_within(place.0, directory) {
            let sentence = format!("{to}: a directory does not move into itself");
            return Err(StoreError::new(ErrorKind::Invalid, sentence));
        }
        let mut rows: Vec<EditRow> = Vec::new();
        match names.at(&place) {
            Some(Node::File(_)) => {
                let sentence = format!("{to}: a file has this name, and a directory does not replace it");
                return Err(StoreError::new(ErrorKind::Exists, sentence));
            }
            Some(Node::Directory(old)) if names.is_empty(old) => {
                rows.push((EditOp::Delete, TableId(old), Vec::new()))
            }
            Some(Node::Directory(_)) => {
                let sentence = format!("{to}: a directory that is not empty has this name");
                return Err(StoreError::new(ErrorKind::Exists, sentence));
            }
            None => {}
        }
        let modified_ns = names.directory_entry(directory).map_or(0, |entry| entry.modified_ns);
        rows.push((EditOp::Describe, TableId(directory), record_of_directory(&place, modified_ns).encode()));
        self.edit_of(&rows)?;
        names.move_directory(directory, place);
        Ok(())
    }

    /// Adds the rows that delete the file at a place.
    pub(crate) fn make_room_at(
        &self,
        names: &Names,
        place: &Place,
        rows: &mut Vec<EditRow>,
    ) -> Result<(), StoreError> {
        match names.at(place) {
            None => {}
            Some(Node::Directory(_)) => {
                let sentence = format!("{}: a directory has this name", place.1);
                return Err(StoreError::new(ErrorKind::Exists, sentence));
            }
            Some(Node::File(number)) => {
                let entry = names.file(number).expect("what has a name is there");
                rows.extend(entry.tables().map(|table| (EditOp::Delete, table, Vec::new())));
            }
        }
        Ok(())
    }

    /// An edit that may turn out to change nothing.
    pub(crate) fn edit_of(&self, rows: &[EditRow]) -> Result<(), StoreError> {
        if rows.is_empty() { Ok(()) } else { self.drive.edit(rows) }
    }
}

/// The attributes of a directory at a place.
pub fn record_of_directory(place: &Place, modified_ns: u64) -> Record {
    Record {
        kind: RecordKind::Directory,
        directory: place.0,
        name: place.1.clone(),
        modified_ns,
        label: Vec::new(),
        content: Vec::new(),
    }
}
