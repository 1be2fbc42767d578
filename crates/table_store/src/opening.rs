//! How a store begins: the drive is opened, its target mounted, and every table asked what it says of itself.

use crate::content::File;
use crate::drive_of_options::{invalid, lease_of, open_drive};
use crate::error::{ErrorKind, StoreError};
use crate::log_tail;
use crate::names::{Directory, FileEntry, Identity, Names, ROOT};
use crate::options::{Flushed, StoreOptions};
use crate::power_cut::AfterCut;
use crate::record::{Class, Record, RecordKind};
use crate::served::{self, Mounted};
use crate::shared_drive::SharedDrive;
use crate::store::Store;
use crate::store_drive::StoreDrive;
use ocssd_drive::OpenDrive;
use ocssd_engine::{Caller, Clock, DriveClock, VirtualClock, WallClock};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::{EditOp, TableEntry, TableKind, TableTarget};
use ocssd_lightnvm::{Buffers, Device};
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry::{self, MakeOf};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

/// What the units of a store are leased as.
pub(crate) const HOLDER: &str = "store";

/// Stores of this process by the text they were opened with.
static OPEN: Mutex<BTreeMap<String, Weak<Store>>> = Mutex::new(BTreeMap::new());

impl Store {
    /// Opens a drive and mounts what lies on it.
    ///
    /// # Errors
    /// If there is no such drive, another process has it, an option cannot be, or what lies there is no store.
    pub fn open(options: &StoreOptions) -> Result<Arc<Self>, StoreError> {
        if options.is_served() {
            let Mounted { drive, tails, notes } = served::mount(options)?;
            let store = Self::mount(drive, tails, notes)?;
            store.bound_maps(options.map_bytes_max);
            return Ok(store);
        }
        if options.tails.is_some() {
            return Err(invalid(
                "tails=PATH is for a drive that a server holds; an image has its tails beside it, and a drive in memory none",
            ));
        }
        let OpenDrive { flash, media_manager, image, .. } = open_drive(options)?;
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut drive = StoreDrive::from(flash);
        let named = lease_of(drive.geometry(), &media_manager, options, HOLDER)?;
        let (target, notes) = mount_target(&mut drive, &named, &mut clock, &mut buffers)?;
        let clock = if options.is_wall_clock() {
            DriveClock::Wall(Box::new(WallClock::starting_at(clock.now())))
        } else {
            DriveClock::Virtual(clock)
        };
        let keeps = options.flushed == Flushed::ForProcess && options.power_cut.is_none();
        let tails = image.as_ref().filter(|_| keeps).map(|image| image.path().to_owned());
        let drive = SharedDrive::new(drive, clock, buffers, target, image);
        let store = Self::mount(drive, tails, notes)?;
        store.bound_maps(options.map_bytes_max);
        if let Some(requests) = options.power_cut {
            store.drive.cut_power_after(requests, AfterCut::EndProcess)?;
        }
        Ok(store)
    }

    /// The store of this text, which this process may have opened already: several file systems of a program share it.
    ///
    /// # Errors
    /// As [`StoreOptions::parse`] and [`Self::open`].
    pub fn open_shared(text: &str) -> Result<Arc<Self>, StoreError> {
        let options = StoreOptions::parse(text)?;
        let mut open = OPEN
            .lock()
            .map_err(|_| StoreError::new(ErrorKind::Io, "a bug in ocssd stopped an earlier opening"))?;
        if let Some(store) = open.get(text).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Self::open(&options)?;
        open.retain(|_, store| store.strong_count() > 0);
        open.insert(text.to_owned(), Arc::downgrade(&store));
        Ok(store)
    }

    /// The store on a drive whose target was mounted. `image`: flushed bytes of logs are kept beside this file, and those of a
    /// process before are looked for there.
    ///
    /// # Errors
    /// If what lies there is no store, or the drive fails.
    pub fn mount(
        drive: SharedDrive,
        image: Option<PathBuf>,
        mut notes: Vec<String>,
    ) -> Result<Arc<Self>, StoreError> {
        let found = survey(&drive)?;
        let next_table = found.iter().map(|(entry, _)| entry.table.0 + 1).max().unwrap_or(ROOT + 1);
        let mut names = Names::new(next_table);
        let logs = place_all(&drive, found, &mut names, &mut notes)?;
        let store = Self::assemble(drive, names, image, notes);
        for number in logs {
            store.recover_log(number)?;
        }
        Ok(Arc::new(store))
    }

    /// Gives a log its tail, and the bytes that the process before this one flushed.
    fn recover_log(&self, number: u64) -> Result<(), StoreError> {
        let mut names = self.names()?;
        let entry = names.file_mut(number).expect("the mount placed it");
        let Identity::Log(table) = entry.identity else { unreachable!("file {number} is a log") };
        let (bytes, modified_ns) = (entry.file.bytes(), entry.file.modified_ns());
        let kept = match self.image.as_deref() {
            Some(image) => log_tail::kept(image, table, bytes)?,
            None => Vec::new(),
        };
        if !kept.is_empty() {
            self.drive.append(table, &kept, Durability::AtReply).1?;
        }
        if let Some(image) = self.image.as_deref() {
            log_tail::remove(image, table);
        }
        let file = File::new(number, Class::Log, entry.identity, bytes + kept.len() as u64, Vec::new());
        entry.file = Arc::new(file.with_tail(self.new_tail(table)).modified_at(modified_ns));
        Ok(())
    }
}

/// Mounts the target, or makes a new one.
pub(crate) fn mount_target<C: Clock>(
    drive: &mut StoreDrive,
    named: &NamedTarget,
    clock: &mut C,
    buffers: &mut Buffers,
) -> Result<(Box<dyn TableTarget>, Vec<String>), StoreError> {
    let kind = registry::find(&named.kind).map_err(invalid)?;
    let MakeOf::Table(make) = kind.make_of() else {
        return Err(invalid(format!(
            "the target \"{}\" speaks of {}, and a store needs tables; `ocssd targets` lists the kinds of each interface",
            kind.name,
            kind.make_of().interface()
        )));
    };
    let mut caller = Caller { device: &mut *drive, clock, buffers, cut_at: None };
    let made = make(&mut caller, &named.spec());
    let cause = drive.failure().map_or_else(String::new, |failure| format!("{failure}; "));
    let made = made.map_err(|sentence| invalid(format!("{cause}target {}: {sentence}", kind.name)))?;
    Ok((made.target, made.notes))
}

/// Every table and log with what it says of itself. What was begun and never described, nobody has seen: it goes.
fn survey(drive: &SharedDrive) -> Result<Vec<(TableEntry, Record)>, StoreError> {
    let mut found = Vec::new();
    for entry in drive.list()? {
        if entry.attributes_bytes == 0 && entry.kind == TableKind::Log {
            drive.edit(&[(EditOp::Delete, entry.table, Vec::new())])?;
            continue;
        }
        let record = Record::decode(&drive.attributes(entry.table)?);
        let record =
            record.filter(|record| (record.kind == RecordKind::Log) == (entry.kind == TableKind::Log));
        let record = record.ok_or_else(|| {
            let sentence = format!(
                "table {} was not written by a store: its attributes are no record of a file; use other units, or another image",
                entry.table.0
            );
            StoreError::new(ErrorKind::Corrupt, sentence)
        })?;
        found.push((entry, record));
    }
    Ok(found)
}

/// Puts everything found into the tree. Returns the numbers of the logs.
fn place_all(
    drive: &SharedDrive,
    found: Vec<(TableEntry, Record)>,
    names: &mut Names,
    notes: &mut Vec<String>,
) -> Result<Vec<u64>, StoreError> {
    let directories: Vec<u64> = found
        .iter()
        .filter(|(_, record)| record.kind == RecordKind::Directory)
        .map(|(entry, _)| entry.table.0)
        .collect();
    let mut logs = Vec::new();
    for (entry, record) in found {
        let mut place = (record.directory, record.name.clone());
        let is_known = place.0 == ROOT || directories.contains(&place.0);
        if !is_known || names.at(&place).is_some() {
            place = (ROOT, format!("lost.{}.{}", entry.table.0, record.name));
            notes.push(format!(
                "{} lay in no directory, or its name was taken; it is /{} now",
                record.name, place.1
            ));
        }
        if record.kind == RecordKind::Directory {
            names.add_directory(entry.table.0, Directory { place, modified_ns: record.modified_ns });
            continue;
        }
        let number = names.next_file();
        names.add_file(file_entry(number, &entry, record, place));
        if entry.kind == TableKind::Log {
            logs.push(number);
        }
    }
    let bytes: u64 = names.files().map(|entry| entry.file.bytes()).sum();
    notes.push(format!(
        "{} files and {} directories with {bytes} bytes of at least {}",
        names.files().count(),
        directories.len(),
        drive.limits().capacity_bytes
    ));
    Ok(logs)
}

fn file_entry(number: u64, entry: &TableEntry, record: Record, place: (u64, String)) -> FileEntry {
    let (identity, class, given, pending) = match record.kind {
        RecordKind::Log => (Identity::Log(entry.table), Class::Log, entry.bytes, Vec::new()),
        RecordKind::Table { is_inline } => {
            let given = if is_inline { 0 } else { entry.bytes };
            (
                Identity::Published { table: entry.table, is_inline },
                Class::Table,
                given,
                record.content.clone(),
            )
        }
        RecordKind::Directory => unreachable!("a directory is no file"),
    };
    let file = File::new(number, class, identity, given, pending).modified_at(record.modified_ns);
    let absent = FileEntry::absent(Arc::new(file), Some(place), record.label);
    FileEntry { identity, inline: record.content, ..absent }
}
