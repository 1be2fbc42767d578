//! `ocssd inspect IMAGE tables`: the files of RocksDB or of an object store, without either.
//!
//! The store is mounted as its user would mount it, so an image whose process was killed is put in order first, and one that a
//! process has open is refused. Deliberately not here: copies to and from the machine's own files (`tables_copy`), and what is in
//! a file: `ldb` and `sst_dump` read it through the plugin.

use super::{tables_copy, to_json};
use crate::args::{TablesArgs, TablesVerb};
use crate::table;
use anyhow::{Context, ensure};
use ocssd_table_store::{FileStatus, Store, StoreOptions};
use serde_json::json;
use std::io::{ErrorKind, Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Bytes that are read at once (chosen: a request of the store).
pub const PART_BYTES: usize = 1 << 20;

/// Shows or copies what was asked for.
pub fn tables(drive: &str, args: &TablesArgs, as_json: bool) -> anyhow::Result<()> {
    ensure!(
        Path::new(drive).is_file(),
        "{drive} is no image: tables are kept by one; `ocssd format IMAGE` makes one, and lightlsm://drive=IMAGE fills it"
    );
    let separator = if args.store.contains(';') { ';' } else { ',' };
    let options = StoreOptions::parse(&format!("drive={drive}{separator}{}", args.store))?;
    let store = Store::open(&options)?;
    carry_out(&store, args.what.as_ref().unwrap_or(&TablesVerb::Df), as_json)?;
    store.close().context("the image was read, and could not be left in order")
}

fn carry_out(store: &Arc<Store>, what: &TablesVerb, as_json: bool) -> anyhow::Result<()> {
    match what {
        TablesVerb::Df => df(store, as_json),
        TablesVerb::List { path } => list(store, path, as_json),
        TablesVerb::Dump { path } => dump(store, path),
        TablesVerb::Backup { folder, path } => {
            let copied = tables_copy::backup(store, path, folder)?;
            print_copied(&copied, &format!("from {path} to {}", folder.display()), as_json);
            Ok(())
        }
        TablesVerb::Restore { folder, path } => {
            let copied = tables_copy::restore(store, folder, path)?;
            print_copied(&copied, &format!("from {} to {path}", folder.display()), as_json);
            Ok(())
        }
    }
}

fn print_copied(copied: &tables_copy::Copied, way: &str, as_json: bool) {
    let tables_copy::Copied { files, directories, bytes } = *copied;
    if as_json {
        table::print_json(&json!({ "files": files, "directories": directories, "bytes": bytes }));
    } else {
        table::line(&format!(
            "copied {files} files and {directories} directories, {}, {way}",
            table::bytes(bytes)
        ));
    }
}

fn df(store: &Arc<Store>, as_json: bool) -> anyhow::Result<()> {
    let space = store.space()?;
    let counts = store.drive().counts()?;
    let limits = *store.drive().limits();
    let tables = store.drive().list()?.len();
    let free = space.capacity_bytes.saturating_sub(space.used_bytes);
    let mut rows: Vec<(String, String)> = [
        ("capacity_bytes", space.capacity_bytes),
        ("used_bytes", space.used_bytes),
        ("free_bytes", free),
        ("files", space.file_count),
        ("tables", tables as u64),
        ("tables_max", u64::from(limits.tables_max)),
        ("table_bytes_max", limits.table_bytes_max),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .to_vec();
    let shown = |counter: &ocssd_lightnvm::counter::Counter| {
        (counter.name.to_owned(), tables_copy::shown(counter.value))
    };
    rows.extend(counts.target.iter().map(shown));
    if as_json {
        let map: serde_json::Map<_, _> =
            rows.iter().map(|(name, value)| (name.clone(), to_json(value))).collect();
        table::print_json(&map.into());
    } else {
        let lines: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name, value]).collect();
        table::print(&["", ""], &lines);
    }
    Ok(())
}

fn list(store: &Arc<Store>, path: &str, as_json: bool) -> anyhow::Result<()> {
    let mut found = Vec::new();
    tables_copy::walk(store, path, &mut |path, status| {
        found.push((path.to_owned(), status.clone()));
        Ok(())
    })?;
    if as_json {
        let list: Vec<_> = found.iter().map(|(path, status)| entry(path, status)).collect();
        table::print_json(&json!(list));
    } else if found.is_empty() {
        table::line(&format!("{path} is empty"));
    } else {
        let lines: Vec<Vec<String>> = found.iter().map(|(path, status)| line(path, status)).collect();
        table::print(&["bytes", "table", "changed", "path"], &lines);
    }
    Ok(())
}

fn entry(path: &str, status: &FileStatus) -> serde_json::Value {
    json!({
        "path": path,
        "is_directory": status.is_directory,
        "bytes": status.bytes,
        "modified_ns": status.modified_ns,
        "table": status.table.map(|table| table.0),
        "label": status.label,
    })
}

fn line(path: &str, status: &FileStatus) -> Vec<String> {
    let changed = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(status.modified_ns));
    let table = status.table.map_or(String::new(), |table| table.0.to_string());
    if status.is_directory {
        return vec![String::new(), table, changed.to_string(), format!("{path}/")];
    }
    vec![status.bytes.to_string(), table, changed.to_string(), path.to_owned()]
}

/// To standard output; a reader that has seen enough ends it without a word.
fn dump(store: &Arc<Store>, path: &str) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let written = tables_copy::copy_out(store, path, &mut out).and_then(|_| Ok(out.flush()?));
    match written {
        Err(error)
            if error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        other => other,
    }
}
