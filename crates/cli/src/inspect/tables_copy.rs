//! Files of a store to a folder of the machine, and back.
//!
//! Deliberately not here: what is printed (`tables`).

use super::tables::PART_BYTES;
use anyhow::{Context, bail, ensure};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_table_store::{Class, Created, FileStatus, Hint, Store};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files.
    pub files: u64,
    /// Directories, without the first.
    pub directories: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// A counter's value.
pub fn shown(value: CounterValue) -> String {
    match value {
        CounterValue::Count(count) | CounterValue::Gauge(count) => count.to_string(),
        CounterValue::Ratio(ratio) => ratio.map_or("none yet".to_owned(), |ratio| format!("{ratio:.3}")),
    }
}

/// Everything below a directory: each directory before what lies in it.
pub fn walk(
    store: &Arc<Store>,
    path: &str,
    visit: &mut dyn FnMut(&str, &FileStatus) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for (name, status) in store.children(path)? {
        let below = format!("{}/{name}", path.trim_end_matches('/'));
        visit(&below, &status)?;
        if status.is_directory {
            walk(store, &below, visit)?;
        }
    }
    Ok(())
}

/// A file's bytes. Returns how many.
pub fn copy_out(store: &Arc<Store>, path: &str, into: &mut dyn Write) -> anyhow::Result<u64> {
    let reader = store.open_file(path)?;
    let mut part = vec![0; PART_BYTES];
    let mut copied = 0;
    loop {
        let read = reader.read(copied, &mut part)?;
        if read == 0 {
            ensure!(
                copied == reader.bytes(),
                "{path} has {} bytes, and ended at byte {copied}",
                reader.bytes()
            );
            return Ok(copied);
        }
        into.write_all(&part[..read])?;
        copied += read as u64;
    }
}

/// Copies what lies in a directory of the store to a folder that is not there yet, and syncs it.
pub fn backup(store: &Arc<Store>, path: &str, folder: &Path) -> anyhow::Result<Copied> {
    // A wrong path must not leave a folder.
    store.children(path)?;
    fs::create_dir(folder).with_context(|| {
        format!("{} cannot be made; name a folder that is not there yet, in one that is", folder.display())
    })?;
    let mut copied = Copied::default();
    walk(store, path, &mut |below, status| {
        let relative =
            below.strip_prefix(path.trim_end_matches('/')).expect("it lies below").trim_start_matches('/');
        let to = folder.join(relative);
        let written = || format!("{} cannot be written", to.display());
        if status.is_directory {
            copied.directories += 1;
            return fs::create_dir(&to).with_context(written);
        }
        let mut file = File::create_new(&to).with_context(written)?;
        copied.bytes += copy_out(store, below, &mut file).with_context(written)?;
        copied.files += 1;
        file.sync_all().with_context(written)
    })?;
    Ok(copied)
}

/// Copies what lies in a folder to a directory of the store. RocksDB's `CURRENT` comes last: a database that is there in part is
/// none.
pub fn restore(store: &Arc<Store>, folder: &Path, path: &str) -> anyhow::Result<Copied> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    find(folder, path.trim_end_matches('/'), &mut files, &mut directories)?;
    for (_, to) in &files {
        ensure!(
            store.status(to).is_err(),
            "{to} is there already, and nothing was restored; restore below another --path, or delete it with `ldb destroy`"
        );
    }
    files.sort_by_key(|(_, to)| to.ends_with("/CURRENT"));
    store.create_directory(path, false)?;
    for directory in &directories {
        store.create_directory(directory, false)?;
    }
    let mut copied = Copied { directories: directories.len() as u64, ..Copied::default() };
    for (from, to) in &files {
        copied.bytes += copy_in(store, from, to)?;
        copied.files += 1;
    }
    store.sync_names()?;
    Ok(copied)
}

/// Files with where they go, and the directories they need.
fn find(
    folder: &Path,
    path: &str,
    files: &mut Vec<(PathBuf, String)>,
    directories: &mut Vec<String>,
) -> anyhow::Result<()> {
    let read = || format!("{} cannot be read; name a folder that `backup` made", folder.display());
    let mut found: Vec<_> =
        fs::read_dir(folder).with_context(read)?.collect::<Result<_, _>>().with_context(read)?;
    found.sort_by_key(fs::DirEntry::file_name);
    for entry in found {
        let from = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{}: a name is not UTF-8, and the store keeps names that are; rename it", from.display())
        };
        let to = format!("{path}/{name}");
        let kind = entry.file_type().with_context(read)?;
        if kind.is_dir() {
            directories.push(to.clone());
            find(&from, &to, files, directories)?;
        } else if !kind.is_file() {
            bail!("{} is neither a file nor a folder; leave it out", from.display())
        } else if Class::of_name(&name) != Class::Memory {
            // What RocksDB tells people, and its lock, would be gone with this process.
            files.push((from, to));
        }
    }
    Ok(())
}

fn copy_in(store: &Arc<Store>, from: &Path, to: &str) -> anyhow::Result<u64> {
    let read = || format!("{} cannot be read", from.display());
    let mut file = File::open(from).with_context(read)?;
    let bytes_expected = file.metadata().with_context(read)?.len();
    let mut writer = store.create(to, Created::Anew)?;
    writer.hint(Hint { bytes_expected, ..Hint::default() })?;
    let mut part = vec![0; PART_BYTES];
    loop {
        let length = file.read(&mut part).with_context(read)?;
        if length == 0 {
            break;
        }
        writer.append(&part[..length]).with_context(|| format!("{to} cannot be written"))?;
    }
    writer.sync()?;
    writer.close()?;
    Ok(writer.bytes())
}
