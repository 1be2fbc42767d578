//! What is done by name: directories, files, their sizes and times.
//!
//! Deliberately not here: renames (`rename`), content (`content`), and how a store begins (`opening`).

use crate::content::{File, now_ns};
use crate::error::{ErrorKind, StoreError};
use crate::file::{Reader, Writer};
use crate::log_tail::{self, LogTail};
use crate::map::MapBooks;
use crate::names::{Directory, FileEntry, Identity, Names, Node, Place, ROOT};
use crate::path;
use crate::record::{Class, RecordKind};
use crate::rename::record_of_directory;
use crate::shared_drive::{DriveCounts, EditRow, SharedDrive};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::table::{EditOp, TableHint, TableId, TableKind};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Files by name on a drive, for any thread.
pub struct Store {
    pub(crate) drive: SharedDrive,
    names: Mutex<Names>,
    locks: Mutex<BTreeSet<String>>,
    /// The image, if flushed bytes of logs are to be kept beside it.
    pub(crate) image: Option<PathBuf>,
    /// Sentences about what the mount found.
    notes: Vec<String>,
    is_closed: Mutex<bool>,
    /// What maps of files take.
    pub(crate) maps: MapBooks,
}

/// What is known of a file before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The level of the tree it will be of.
    pub level: u8,
    /// Who writes it: what different streams write can lie in different groups.
    pub stream: u8,
    /// Bytes it will have at most; 0 says nothing.
    pub bytes_expected: u64,
}

impl Hint {
    pub(crate) const fn of_table(self) -> TableHint {
        TableHint { level: self.level, stream: self.stream }
    }
}

/// Whether a file may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// A new one takes its place, once it is published; of a log, at once.
    Anew,
    /// It is written on from its end.
    Continued,
}

/// What is known of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// It is a directory.
    pub is_directory: bool,
    /// Its bytes; 0 of a directory.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// The table it lies in: another one after each change of a table. `None` of what is not on the drive.
    pub table: Option<TableId>,
    /// Bytes its user keeps with it.
    pub label: Vec<u8>,
}

/// Bytes of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// That fit at least.
    pub capacity_bytes: u64,
    /// Of all files.
    pub used_bytes: u64,
    /// Files.
    pub file_count: u64,
}

fn after_a_bug<T>(_: T) -> StoreError {
    StoreError::new(
        ErrorKind::Io,
        "a bug in ocssd stopped an earlier call; end the process, and open the drive anew",
    )
}

impl Store {
    pub(crate) fn assemble(
        drive: SharedDrive,
        names: Names,
        image: Option<PathBuf>,
        notes: Vec<String>,
    ) -> Self {
        let (locks, is_closed) = (Mutex::new(BTreeSet::new()), Mutex::new(false));
        let (names, maps) = (Mutex::new(names), MapBooks::default());
        Self { drive, names, locks, image, notes, is_closed, maps }
    }

    /// What the mount found and its user should know, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The drive below, for whoever looks at its tables or its counters.
    #[must_use]
    pub const fn drive(&self) -> &SharedDrive {
        &self.drive
    }

    pub(crate) fn names(&self) -> Result<MutexGuard<'_, Names>, StoreError> {
        self.names.lock().map_err(after_a_bug)
    }

    pub(crate) fn new_tail(&self, table: TableId) -> Option<LogTail> {
        self.image.as_ref().map(|image| LogTail::new(image, table))
    }

    /// Begins a file, or goes on with it, of the class its name asks for.
    ///
    /// # Errors
    /// If its directory does not exist, the name is a directory's, or the drive is full or fails.
    pub fn create(self: &Arc<Self>, path: &str, created: Created) -> Result<Writer, StoreError> {
        let mut names = self.names()?;
        let (directory, name) = path::split(path)?;
        let place = (names.directory(&directory, path)?, name.to_owned());
        if let (Some(Node::File(number)), Created::Continued) = (names.at(&place), created) {
            let file = names.file(number).expect("what has a name is there").file.clone();
            return Ok(Writer::new(self.clone(), file));
        }
        let file = match Class::of_name(name) {
            Class::Log => self.create_log(&mut names, place)?,
            class => self.create_table(&mut names, class, place)?,
        };
        Ok(Writer::new(self.clone(), file))
    }

    /// Begins a file without a name, which gets one by [`Writer::publish_at`]. `label` are bytes that are kept with it.
    ///
    /// # Errors
    /// After a bug.
    pub fn create_unnamed(self: &Arc<Self>, label: Vec<u8>) -> Result<Writer, StoreError> {
        let mut names = self.names()?;
        let number = names.next_file();
        let file = Arc::new(File::new(number, Class::Table, Identity::Absent, 0, Vec::new()));
        names.add_file(FileEntry::absent(file.clone(), None, label));
        Ok(Writer::new(self.clone(), file))
    }

    fn create_table(&self, names: &mut Names, class: Class, place: Place) -> Result<Arc<File>, StoreError> {
        let mut rows = Vec::new();
        self.make_room_at(names, &place, &mut rows)?;
        // What survives a power cut stays until the new file is published; what does not, goes.
        let kept = names.kept_at(&place);
        rows.retain(|(_, table, _)| !kept.contains(table));
        self.edit_of(&rows)?;
        let file = Arc::new(File::new(names.next_file(), class, Identity::Absent, 0, Vec::new()));
        let entry = FileEntry::absent(file.clone(), Some(place), Vec::new());
        names.add_file(FileEntry { replaces: kept, ..entry });
        Ok(file)
    }

    fn create_log(&self, names: &mut Names, place: Place) -> Result<Arc<File>, StoreError> {
        let mut rows = Vec::new();
        self.make_room_at(names, &place, &mut rows)?;
        let table = names.next_table();
        self.drive.create(table, TableKind::Log, TableHint::default(), 0)?;
        let identity = Identity::Log(table);
        let file =
            File::new(names.next_file(), Class::Log, identity, 0, Vec::new()).with_tail(self.new_tail(table));
        let file = Arc::new(file);
        names.add_file(FileEntry { identity, ..FileEntry::absent(file.clone(), None, Vec::new()) });
        let record = names.record(file.number, &place, RecordKind::Log, &[]);
        rows.push((EditOp::Describe, table, record.encode()));
        if let Err(error) = self.drive.edit(&rows) {
            names.forget_file(file.number);
            drop(self.drive.edit(&[(EditOp::Delete, table, Vec::new())]));
            return Err(error);
        }
        names.move_file(file.number, place);
        Ok(file)
    }

    /// A file that got no name is given up.
    pub(crate) fn forget_unnamed(&self, file: &File) {
        let Ok(mut names) = self.names() else { return };
        if names.file(file.number).is_some_and(|entry| entry.place.is_none()) {
            let tables = names.file(file.number).into_iter().flat_map(FileEntry::tables);
            let tables: Vec<EditRow> = tables.map(|table| (EditOp::Delete, table, Vec::new())).collect();
            // If it cannot be given up now, the next mount does not see it.
            drop(self.edit_of(&tables));
            names.forget_file(file.number);
        }
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// If there is none.
    pub fn open_file(self: &Arc<Self>, path: &str) -> Result<Reader, StoreError> {
        let names = self.names()?;
        match names.find(&path::names(path)?) {
            Some(Node::File(number)) => {
                let file = names.file(number).expect("what has a name is there").file.clone();
                Ok(Reader::new(self.clone(), file))
            }
            Some(Node::Directory(_)) => {
                Err(StoreError::new(ErrorKind::Invalid, format!("{path}: a directory is not read as a file")))
            }
            None => Err(StoreError::not_found(path)),
        }
    }

    /// What is known of a file or directory.
    ///
    /// # Errors
    /// If there is none.
    pub fn status(&self, path: &str) -> Result<FileStatus, StoreError> {
        let names = self.names()?;
        let node = names.find(&path::names(path)?).ok_or_else(|| StoreError::not_found(path))?;
        Ok(status_of(&names, node))
    }

    /// What lies in a directory, by name.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn children(&self, path: &str) -> Result<Vec<(String, FileStatus)>, StoreError> {
        let names = self.names()?;
        let directory = names.directory(&path::names(path)?, path)?;
        let children = names.children(directory);
        Ok(children.map(|(name, node)| (name.to_owned(), status_of(&names, node))).collect())
    }

    /// Deletes a file. Who has it open cannot read it any more.
    ///
    /// # Errors
    /// If there is no such file, or the drive fails.
    pub fn delete(&self, path: &str) -> Result<(), StoreError> {
        let mut names = self.names()?;
        match names.find(&path::names(path)?) {
            Some(Node::File(number)) => {
                let entry = names.file(number).expect("what has a name is there");
                let tables: Vec<TableId> = entry.tables().collect();
                let rows: Vec<EditRow> =
                    tables.iter().map(|table| (EditOp::Delete, *table, Vec::new())).collect();
                self.edit_of(&rows)?;
                if let (Identity::Log(table), Some(image)) = (entry.identity, &self.image) {
                    log_tail::remove(image, table);
                }
                names.forget_file(number);
                Ok(())
            }
            Some(Node::Directory(_)) => Err(StoreError::new(
                ErrorKind::Invalid,
                format!("{path}: a directory is not deleted as a file"),
            )),
            None => Err(StoreError::not_found(path)),
        }
    }

    /// Makes a directory, and those on the way to it. One that is there already is an error if `is_new` says so.
    ///
    /// # Errors
    /// If a file is in the way, or the drive is full or fails.
    pub fn create_directory(&self, path: &str, is_new: bool) -> Result<(), StoreError> {
        let steps = path::names(path)?;
        if is_new && self.names()?.find(&steps).is_some() {
            return Err(StoreError::new(ErrorKind::Exists, format!("{path}: there is one already")));
        }
        self.create_directories(&steps).map(|_| ())
    }

    /// Makes every directory on a way that is not there. Returns the last.
    pub(crate) fn create_directories(&self, steps: &[&str]) -> Result<u64, StoreError> {
        let mut names = self.names()?;
        let mut directory = ROOT;
        for step in steps {
            let place = (directory, (*step).to_owned());
            directory = match names.at(&place) {
                Some(Node::Directory(number)) => number,
                Some(Node::File(_)) => {
                    let sentence = format!("{step}: a file lies where a directory is needed");
                    return Err(StoreError::new(ErrorKind::Exists, sentence));
                }
                None => self.add_directory(&mut names, place)?,
            };
        }
        Ok(directory)
    }

    fn add_directory(&self, names: &mut Names, place: Place) -> Result<u64, StoreError> {
        let (table, modified_ns) = (names.next_table(), now_ns());
        self.drive.create(table, TableKind::Table, TableHint::default(), 0)?;
        let record = record_of_directory(&place, modified_ns).encode();
        if let Err(error) = self.drive.edit(&[(EditOp::Publish, table, record)]) {
            drop(self.drive.edit(&[(EditOp::Delete, table, Vec::new())]));
            return Err(error);
        }
        names.add_directory(table.0, Directory { place, modified_ns });
        Ok(table.0)
    }

    /// Deletes an empty directory.
    ///
    /// # Errors
    /// If there is none, or something lies in it.
    pub fn delete_directory(&self, path: &str) -> Result<(), StoreError> {
        let mut names = self.names()?;
        let directory = names.directory(&path::names(path)?, path)?;
        let Some(entry) = names.directory_entry(directory) else {
            return Err(StoreError::new(ErrorKind::Invalid, "the root is a directory that stays"));
        };
        if !names.is_empty(directory) {
            let sentence = format!("{path}: the directory is not empty; delete what lies in it first");
            return Err(StoreError::new(ErrorKind::Exists, sentence));
        }
        let place = entry.place.clone();
        self.drive.edit(&[(EditOp::Delete, TableId(directory), Vec::new())])?;
        names.forget_at(&place);
        Ok(())
    }

    /// Changes of names survive a crash of this machine too; they survive a power cut of the drive as soon as they are made.
    ///
    /// # Errors
    /// If the image's disk fails.
    pub fn sync_names(&self) -> Result<(), StoreError> {
        self.drive.sync_image()
    }

    /// Takes a lock by name, for this process; other processes are kept off by the image's own.
    ///
    /// # Errors
    /// If it is taken.
    pub fn lock(&self, path: &str) -> Result<(), StoreError> {
        let name = path::names(path)?.join("/");
        if self.locks.lock().map_err(after_a_bug)?.insert(name) {
            return Ok(());
        }
        let sentence =
            format!("{path}: this process has the lock already; a database is opened once at a time");
        Err(StoreError::new(ErrorKind::Busy, sentence))
    }

    /// Gives a lock back.
    ///
    /// # Errors
    /// If it was not taken.
    pub fn unlock(&self, path: &str) -> Result<(), StoreError> {
        let name = path::names(path)?.join("/");
        if self.locks.lock().map_err(after_a_bug)?.remove(&name) {
            return Ok(());
        }
        Err(StoreError::new(ErrorKind::Invalid, format!("{path}: the lock was not taken")))
    }

    /// How full the drive is.
    ///
    /// # Errors
    /// After a bug.
    pub fn space(&self) -> Result<Space, StoreError> {
        let names = self.names()?;
        let on_drive = || names.files().filter(|entry| entry.file.class != Class::Memory);
        Ok(Space {
            capacity_bytes: self.drive.limits().capacity_bytes,
            used_bytes: on_drive().map(|entry| entry.file.bytes()).sum(),
            file_count: on_drive().count() as u64,
        })
    }

    /// What drive and target did since the store was opened, a line each.
    ///
    /// # Errors
    /// After a bug.
    pub fn report(&self) -> Result<Vec<String>, StoreError> {
        let DriveCounts { flash, wire_bytes, sector_bytes, target, now } = self.drive.counts()?;
        let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
        let media = flash.map(|flash| {
            let written = bytes(flash.sectors_written + flash.sectors_copied);
            let (read, resets) = (bytes(flash.sectors_read), flash.resets);
            format!("after {now}: {written} bytes written to the media, {read} read, {resets} resets")
        });
        let wire = wire_bytes.map(|bytes| format!("after {now}: {bytes} bytes to the server and back"));
        let of_target = target.iter().map(|counter| format!("{}: {}", counter.name, shown(counter.value)));
        let (_, most) = self.map_bytes();
        let maps = (most > 0).then(|| format!("{most} bytes of files were held in memory for maps at once"));
        Ok(media.into_iter().chain(wire).chain(maps).chain(of_target).collect())
    }

    /// Everything is put away, and the next mount is quick: what was appended to logs is on the drive. Nothing may be asked
    /// afterwards. Twice is once.
    ///
    /// # Errors
    /// If the drive or its image fails.
    pub fn close(&self) -> Result<(), StoreError> {
        if std::mem::replace(&mut *self.is_closed.lock().map_err(after_a_bug)?, true) {
            return Ok(());
        }
        let logs: Vec<Arc<File>> = {
            let names = self.names()?;
            let logs = names.files().filter(|entry| entry.file.class == Class::Log);
            logs.map(|entry| entry.file.clone()).collect()
        };
        let left = logs.iter().try_for_each(|log| self.leave_log(log));
        left.and(self.drive.close())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has called it.
        drop(self.close());
    }
}

fn shown(value: CounterValue) -> String {
    match value {
        CounterValue::Count(count) | CounterValue::Gauge(count) => count.to_string(),
        CounterValue::Ratio(ratio) => ratio.map_or("none yet".to_owned(), |ratio| format!("{ratio:.3}")),
    }
}

fn status_of(names: &Names, node: Node) -> FileStatus {
    match node {
        Node::Directory(number) => FileStatus {
            is_directory: true,
            bytes: 0,
            modified_ns: names.directory_entry(number).map_or(0, |directory| directory.modified_ns),
            table: (number != ROOT).then_some(TableId(number)),
            label: Vec::new(),
        },
        Node::File(number) => {
            let entry = names.file(number).expect("what has a name is there");
            FileStatus {
                is_directory: false,
                bytes: entry.file.bytes(),
                modified_ns: entry.file.modified_ns(),
                table: entry.identity.table(),
                label: entry.label.clone(),
            }
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("image", &self.image).finish_non_exhaustive()
    }
}
