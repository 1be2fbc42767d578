//! The tree of names in memory, made at the mount from what every table says of itself.
//!
//! Directories are known by the name of their table, so that a directory is renamed by one change, whatever lies in it.
//! Deliberately not here: content, and what is asked of the drive (`store`, `rename`, `content`).

use crate::content::{File, Replace};
use crate::error::{ErrorKind, StoreError};
use crate::record::{Record, RecordKind};
use ocssd_lightnvm::interface::table::TableId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The root's number; no table has it.
pub const ROOT: u64 = 0;

/// Where a file or directory lies: its directory, and its name in there.
pub type Place = (u64, String);

/// What of a file is on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nothing.
    Absent,
    /// A table that nobody sees, and that is gone after a power cut.
    Unpublished(TableId),
    /// A published table; its content lies in its record, or not.
    Published {
        /// Its name.
        table: TableId,
        /// In the record.
        is_inline: bool,
    },
    /// A log.
    Log(TableId),
}

impl Identity {
    /// The table or log, whichever it is.
    pub const fn table(self) -> Option<TableId> {
        match self {
            Self::Absent => None,
            Self::Unpublished(table) | Self::Published { table, .. } | Self::Log(table) => Some(table),
        }
    }
}

/// A file.
#[derive(Debug)]
pub struct FileEntry {
    /// Its content.
    pub file: Arc<File>,
    /// Where it lies; `None` while it has no name yet.
    pub place: Option<Place>,
    /// What of it is on the drive.
    pub identity: Identity,
    /// Its content, if that lies in its record.
    pub inline: Vec<u8>,
    /// Tables that go once it is published: what had its names before.
    pub replaces: Vec<TableId>,
    /// Bytes the user keeps with it.
    pub label: Vec<u8>,
}

impl FileEntry {
    /// Every table that goes with the file.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        self.identity.table().into_iter().chain(self.replaces.iter().copied())
    }

    /// A file that is not on the drive.
    pub fn absent(file: Arc<File>, place: Option<Place>, label: Vec<u8>) -> Self {
        let (inline, replaces) = (Vec::new(), Vec::new());
        Self { file, place, identity: Identity::Absent, inline, replaces, label }
    }
}

/// A directory.
#[derive(Debug)]
pub struct Directory {
    /// Where it lies.
    pub place: Place,
    /// Nanoseconds since 1970.
    pub modified_ns: u64,
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory, by the name of its table.
    Directory(u64),
    /// A file, by its number in this process.
    File(u64),
}

/// All names.
#[derive(Debug)]
pub struct Names {
    nodes: BTreeMap<Place, Node>,
    directories: BTreeMap<u64, Directory>,
    files: BTreeMap<u64, FileEntry>,
    next_table: u64,
    next_file: u64,
}

impl Names {
    /// None; tables are named from `next_table` on.
    pub const fn new(next_table: u64) -> Self {
        assert!(next_table > ROOT, "the root's number is no table's");
        Self {
            nodes: BTreeMap::new(),
            directories: BTreeMap::new(),
            files: BTreeMap::new(),
            next_table,
            next_file: 0,
        }
    }

    /// A name for a table that no other has had since the mount.
    pub const fn next_table(&mut self) -> TableId {
        self.next_table += 1;
        TableId(self.next_table - 1)
    }

    /// A number for a file.
    pub const fn next_file(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file - 1
    }

    /// What lies at these names, from the root on.
    pub fn find(&self, names: &[&str]) -> Option<Node> {
        let mut found = Node::Directory(ROOT);
        for name in names {
            let Node::Directory(directory) = found else { return None };
            found = *self.nodes.get(&(directory, (*name).to_owned()))?;
        }
        Some(found)
    }

    /// The directory at these names.
    ///
    /// # Errors
    /// If there is none.
    pub fn directory(&self, names: &[&str], path: &str) -> Result<u64, StoreError> {
        match self.find(names) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => {
                let sentence = format!("{path}: a file lies where a directory is needed");
                Err(StoreError::new(ErrorKind::Invalid, sentence))
            }
            None => Err(StoreError::not_found(path)),
        }
    }

    /// What has this place.
    pub fn at(&self, place: &Place) -> Option<Node> {
        self.nodes.get(place).copied()
    }

    /// A file; `None` once it is deleted.
    pub fn file(&self, number: u64) -> Option<&FileEntry> {
        self.files.get(&number)
    }

    /// A file, to change all but its place; `None` once it is deleted.
    pub fn file_mut(&mut self, number: u64) -> Option<&mut FileEntry> {
        self.files.get_mut(&number)
    }

    /// A directory that is not the root.
    pub fn directory_entry(&self, directory: u64) -> Option<&Directory> {
        self.directories.get(&directory)
    }

    /// Names and nodes of a directory, in order.
    pub fn children(&self, directory: u64) -> impl Iterator<Item = (&str, Node)> {
        let all = self.nodes.range((directory, String::new())..);
        let of_directory = all.take_while(move |((in_directory, _), _)| *in_directory == directory);
        of_directory.map(|((_, name), node)| (name.as_str(), *node))
    }

    /// True if nothing lies in a directory.
    pub fn is_empty(&self, directory: u64) -> bool {
        self.children(directory).next().is_none()
    }

    /// True if a directory is another, or lies somewhere in it.
    pub fn is_within(&self, mut directory: u64, other: u64) -> bool {
        while directory != other {
            let Some(entry) = self.directories.get(&directory) else { return false };
            directory = entry.place.0;
        }
        true
    }

    /// Adds a file; what had its place is forgotten.
    pub fn add_file(&mut self, entry: FileEntry) {
        let number = entry.file.number;
        if let Some(place) = entry.place.clone() {
            self.forget_at(&place);
            self.nodes.insert(place, Node::File(number));
        }
        let before = self.files.insert(number, entry);
        assert!(before.is_none(), "file {number} is there twice");
    }

    /// Adds a directory.
    pub fn add_directory(&mut self, number: u64, directory: Directory) {
        let before = self.nodes.insert(directory.place.clone(), Node::Directory(number));
        assert!(before.is_none(), "directory {number} has the place of {before:?}");
        self.directories.insert(number, directory);
    }

    /// A file has a new place; what had it is forgotten.
    pub fn move_file(&mut self, number: u64, to: Place) {
        let from = self.files.get_mut(&number).expect("a file that moves is there").place.replace(to.clone());
        if from.as_ref() == Some(&to) {
            return;
        }
        if let Some(from) = from {
            self.nodes.remove(&from);
        }
        self.forget_at(&to);
        self.nodes.insert(to, Node::File(number));
    }

    /// A directory has a new place; an empty directory that had it is forgotten.
    pub fn move_directory(&mut self, number: u64, to: Place) {
        self.forget_at(&to);
        let directory = self.directories.get_mut(&number).expect("a directory that moves is there");
        let from = std::mem::replace(&mut directory.place, to.clone());
        self.nodes.remove(&from);
        self.nodes.insert(to, Node::Directory(number));
    }

    /// Forgets what has this place.
    pub fn forget_at(&mut self, place: &Place) {
        match self.nodes.remove(place) {
            Some(Node::File(number)) => drop(self.files.remove(&number)),
            Some(Node::Directory(number)) => {
                assert!(self.is_empty(number), "directory {number} is forgotten with what lies in it");
                drop(self.directories.remove(&number));
            }
            None => {}
        }
    }

    /// Forgets a file that may have no name.
    pub fn forget_file(&mut self, number: u64) {
        if let Some(FileEntry { place: Some(place), .. }) = self.files.remove(&number) {
            self.nodes.remove(&place);
        }
    }

    /// What a file's attributes must say if it lies at `place`. `content` is what it holds, if that is to lie there too.
    pub fn record(&self, number: u64, place: &Place, kind: RecordKind, content: &[u8]) -> Record {
        let entry = &self.files[&number];
        assert!(
            content.is_empty() || kind == RecordKind::Table { is_inline: true },
            "content in a record of {kind:?}"
        );
        Record {
            kind,
            directory: place.0,
            name: place.1.clone(),
            modified_ns: entry.file.modified_ns(),
            label: entry.label.clone(),
            content: content.to_vec(),
        }
    }

    /// Looks whether what lies at a place may be replaced so.
    ///
    /// # Errors
    /// If not.
    pub fn may_replace(&self, place: &Place, replace: Replace) -> Result<(), StoreError> {
        let found = match self.at(place) {
            Some(Node::File(number)) => self.files.get(&number),
            _ => None,
        };
        match (replace, found) {
            (Replace::Anything, _) => Ok(()),
            (Replace::Nothing, _) if self.at(place).is_none() => Ok(()),
            (Replace::Nothing, _) => {
                Err(StoreError::new(ErrorKind::Exists, format!("{}: there is such a file already", place.1)))
            }
            (Replace::Only { table, modified_ns }, Some(entry))
                if entry.identity.table() == Some(table) && entry.file.modified_ns() == modified_ns =>
            {
                Ok(())
            }
            (Replace::Only { .. }, _) => {
                let sentence = format!("{}: another file has this name than the one to be replaced", place.1);
                Err(StoreError::new(ErrorKind::Changed, sentence))
            }
        }
    }

    /// Tables that keep what a place holds until something else is published there: those that survive a power cut.
    pub fn kept_at(&self, place: &Place) -> Vec<TableId> {
        let Some(Node::File(number)) = self.at(place) else { return Vec::new() };
        match &self.files[&number] {
            FileEntry { identity: Identity::Published { table, .. }, .. } => vec![*table],
            FileEntry { replaces, .. } => replaces.clone(),
        }
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.values()
    }
}
