//! A store on a target that is a model: files, names, a full drive, threads.

use ocssd_base::Prng;
use ocssd_drive::{OpenOptions, Source};
use ocssd_engine::{DriveClock, VirtualClock};
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::table::TableLimits;
use ocssd_sim::model::target::ReferenceTarget;
use ocssd_sim::table::TableModel;
use ocssd_table_store::{Created, ErrorKind, Hint, Replace, SharedDrive, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

const LIMITS: TableLimits = TableLimits {
    tables_max: 200,
    table_bytes_max: 64 << 20,
    attributes_bytes_max: 512,
    edits_max: 16,
    capacity_bytes: 64 << 20,
};

fn drive_with(limits: TableLimits) -> SharedDrive {
    let options = OpenOptions { settings: vec!["payload=bytes".to_owned()], ..OpenOptions::default() };
    let open = ocssd_drive::open_with(&Source::Preset("tiny".to_owned()), &options).expect("a preset");
    let buffers = Buffers::new(open.flash.payload_format());
    let target = Box::new(ReferenceTarget::new(TableModel::new(limits), &Prng::new(7)));
    let clock = DriveClock::Virtual(VirtualClock::default());
    SharedDrive::new(open.flash, clock, buffers, target, None)
}

fn store_with(limits: TableLimits) -> Arc<Store> {
    Store::mount(drive_with(limits), None, Vec::new()).expect("an empty target is an empty store")
}

fn store() -> Arc<Store> {
    store_with(LIMITS)
}

fn write(store: &Arc<Store>, path: &str, content: &[u8]) {
    let mut writer = store.create(path, Created::Anew).expect("it can be begun");
    writer.append(content).expect("there is room");
    writer.close().expect("there is room");
}

fn read(store: &Arc<Store>, path: &str) -> Vec<u8> {
    let reader = store.open_file(path).expect("it is there");
    let mut found = vec![0; usize::try_from(reader.bytes()).expect("short") + 100];
    let length = reader.read(0, &mut found).expect("it can be read");
    found.truncate(length);
    found
}

fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> ErrorKind {
    let error = result.expect_err("it is refused");
    assert!(error.sentence.len() > 15, "{error}");
    error.kind
}

fn names_in(store: &Arc<Store>, path: &str) -> Vec<String> {
    store.children(path).expect("a directory").into_iter().map(|(name, _)| name).collect()
}

#[test]
fn short_and_long_files_of_every_class_are_read_as_they_were_written() {
    let store = store();
    let bytes =
        |length: usize| -> Vec<u8> { (0..length).map(|n| u8::try_from(n % 251).expect("a byte")).collect() };
    for name in ["000007.sst", "000008.log", "MANIFEST-000001", "CURRENT", "LOG"] {
        for length in [0, 1, 480, 5_000, 70_000, 1 << 20, 2_600_001] {
            let (path, content) = (format!("/{name}"), bytes(length));
            let mut writer = store.create(&path, Created::Anew).expect("it can be begun");
            for part in content.chunks(300_007) {
                writer.append(part).expect("there is room");
            }
            writer.sync().expect("there is room");
            assert_eq!(writer.bytes(), length as u64, "{path}");
            assert!(read(&store, &path) == content, "{path} of {length} bytes, synced");
            writer.append(b"and more").expect("there is room");
            writer.close().expect("there is room");
            assert!(
                read(&store, &path) == [&content[..], b"and more"].concat(),
                "{path} of {length} bytes, closed"
            );
        }
    }
}

#[test]
fn a_log_is_read_while_it_grows() {
    let store = store();
    let writer = store.create("/000004.log", Created::Anew).expect("it can be begun");
    let reader = store.open_file("/000004.log").expect("a log is there from its creation");
    let mut content = Vec::new();
    for round in 0..200_u32 {
        writer.append(&round.to_le_bytes().repeat(3_000)).expect("there is room");
        content.extend_from_slice(&round.to_le_bytes().repeat(3_000));
        let from = content.len() - 14_000_usize.min(content.len());
        let mut found = vec![0; 20_000];
        let length = reader.read(from as u64, &mut found).expect("it can be read");
        assert!(found[..length] == content[from..], "round {round}");
    }
}

#[test]
fn a_rename_replaces_what_has_the_name() {
    let store = store();
    store.create_directory("/db", true).expect("there is room");
    write(&store, "/db/CURRENT", b"MANIFEST-000001\n");
    write(&store, "/db/000003.dbtmp", b"MANIFEST-000002\n");
    store.rename("/db/000003.dbtmp", "/db/CURRENT").expect("it is one edit");
    assert_eq!(read(&store, "/db/CURRENT"), b"MANIFEST-000002\n");
    assert_eq!(names_in(&store, "/db"), ["CURRENT"]);
    write(&store, "/db/000009.log", b"log");
    store.rename("/db/000009.log", "/db/000010.log").expect("a log too");
    assert_eq!(read(&store, "/db/000010.log"), b"log");
    let writer = store.create("/db/000011.dbtmp", Created::Anew).expect("it can be begun");
    writer.append(b"MANIFEST-000003\n").expect("there is room");
    store.rename("/db/000011.dbtmp", "/db/CURRENT").expect("while it is written");
    drop(writer);
    assert_eq!(read(&store, "/db/CURRENT"), b"MANIFEST-000003\n");
    assert_eq!(store.space().expect("no bug").file_count, 2);
}

#[test]
fn directories_move_with_what_lies_in_them() {
    let store = store();
    write_in(&store, "/a.tmp/private/1.sst", b"one");
    store.rename("/a.tmp", "/a").expect("there is room");
    assert_eq!(read(&store, "/a/private/1.sst"), b"one");
    assert_eq!(kind(store.rename("/a", "/a/private/a")), ErrorKind::Invalid);
    assert_eq!(kind(store.delete_directory("/a/private")), ErrorKind::Exists);
    assert_eq!(kind(store.delete_directory("/")), ErrorKind::Invalid);
    store.delete("/a/private/1.sst").expect("it is there");
    store.delete_directory("/a/private").expect("it is empty");
    assert_eq!(names_in(&store, "/"), ["a"]);
    assert!(names_in(&store, "/a").is_empty());
}

fn write_in(store: &Arc<Store>, path: &str, content: &[u8]) {
    let mut writer = store.create_unnamed(b"label".to_vec()).expect("no bug");
    writer.append(content).expect("there is room");
    writer.publish_at(path, Replace::Nothing).expect("the name is free");
}

#[test]
fn an_unnamed_file_appears_as_a_whole_and_not_over_another_unless_asked() {
    let store = store();
    write_in(&store, "/x/y/object", b"first");
    let status = store.status("/x/y/object").expect("it is there");
    assert_eq!((status.bytes, status.label.as_slice()), (5, &b"label"[..]));
    let mut second = store.create_unnamed(Vec::new()).expect("no bug");
    second.append(&[2; 3_000_000]).expect("there is room");
    assert_eq!(kind(second.publish_at("/x/y/object", Replace::Nothing)), ErrorKind::Exists);
    assert_eq!(read(&store, "/x/y/object"), b"first");
    let table = status.table.expect("it lies in one");
    let other = Replace::Only { table, modified_ns: status.modified_ns + 1 };
    assert_eq!(kind(second.publish_at("/x/y/object", other)), ErrorKind::Changed);
    let this = Replace::Only { table, modified_ns: status.modified_ns };
    second.publish_at("/x/y/object", this).expect("it may replace");
    assert_eq!(read(&store, "/x/y/object").len(), 3_000_000);
    let given_up = store.create_unnamed(Vec::new()).expect("no bug");
    given_up.append(&[3; 3_000_000]).expect("there is room");
    drop(given_up);
    assert_eq!(store.space().expect("no bug").used_bytes, 3_000_000);
    assert_eq!(store.drive().list().expect("no bug").len(), 3, "two directories and a file");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let store = store();
    write(&store, "/file", b"content");
    store.create_directory("/dir", true).expect("there is room");
    assert_eq!(kind(store.open_file("/none")), ErrorKind::NotFound);
    assert_eq!(kind(store.open_file("/dir")), ErrorKind::Invalid);
    assert_eq!(kind(store.create("/none/file", Created::Anew)), ErrorKind::NotFound);
    assert_eq!(kind(store.create("/dir", Created::Anew)), ErrorKind::Exists);
    assert_eq!(kind(store.create("/file/below", Created::Anew)), ErrorKind::Invalid);
    assert_eq!(kind(store.children("/file")), ErrorKind::Invalid);
    assert_eq!(kind(store.children("/none")), ErrorKind::NotFound);
    assert_eq!(kind(store.delete("/none")), ErrorKind::NotFound);
    assert_eq!(kind(store.delete("/dir")), ErrorKind::Invalid);
    assert_eq!(kind(store.create_directory("/dir", true)), ErrorKind::Exists);
    assert_eq!(kind(store.create_directory("/file/x", false)), ErrorKind::Exists);
    assert_eq!(kind(store.rename("/none", "/other")), ErrorKind::NotFound);
    assert_eq!(kind(store.rename("/file", "/dir")), ErrorKind::Exists);
    assert_eq!(kind(store.rename("/dir", "/file")), ErrorKind::Exists);
    store.lock("/LOCK").expect("it is free");
    assert_eq!(kind(store.lock("//LOCK")), ErrorKind::Busy);
    store.unlock("/LOCK").expect("it was taken");
    assert_eq!(kind(store.unlock("/LOCK")), ErrorKind::Invalid);
    assert_eq!(read(&store, "/file"), b"content");
    assert_eq!(names_in(&store, "/"), ["dir", "file"]);
}

#[test]
fn a_full_drive_says_so_and_goes_on_when_files_are_deleted() {
    let store = store_with(TableLimits { capacity_bytes: 4 << 20, ..LIMITS });
    write(&store, "/1.sst", &[1; 2_500_000]);
    let mut second = store.create("/2.sst", Created::Anew).expect("it can be begun");
    second.hint(Hint { bytes_expected: 60 << 20, ..Hint::default() }).expect("no bug");
    second.append(&[2; 1_000_000]).expect("what is announced is a guess");
    assert_eq!(kind(second.append(&[2; 1_000_000])), ErrorKind::NoSpace);
    assert_eq!(second.bytes(), 1_000_000, "the refused bytes are no part of it");
    store.delete("/1.sst").expect("deleting needs no room");
    second.append(&[3; 1_000_000]).expect("there is room again");
    second.close().expect("there is room again");
    assert_eq!(read(&store, "/2.sst"), [vec![2; 1_000_000], vec![3; 1_000_000]].concat());
}

#[test]
fn files_can_be_made_shorter_and_longer() {
    let store = store();
    for name in ["/1.sst", "/2.log", "/CURRENT"] {
        for (length, is_synced) in [(100, false), (100, true), (2_000_000, false), (2_000_000, true)] {
            let mut writer = store.create(name, Created::Anew).expect("it can be begun");
            writer.append(&vec![7; length]).expect("there is room");
            if is_synced {
                writer.sync().expect("there is room");
            }
            writer.truncate(length as u64 / 2).expect("shorter");
            writer.truncate(length as u64 / 2 + 10).expect("longer");
            writer.close().expect("there is room");
            let expected = [vec![7; length / 2], vec![0; 10]].concat();
            assert!(read(&store, name) == expected, "{name} of {length} bytes, synced: {is_synced}");
        }
    }
}

#[test]
fn drawn_calls_leave_what_a_map_holds() {
    for seed in 0..12 {
        let (store, mut prng) = (store(), Prng::new(seed));
        let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for step in 0..120 {
            let mut path = || {
                format!(
                    "/{}.{}",
                    prng.below(5),
                    ["sst", "log", "dbtmp"][usize::try_from(prng.below(3)).expect("three")]
                )
            };
            let (from, to) = (path(), path());
            let content = vec![
                u8::try_from(prng.below(256)).expect("a byte");
                usize::try_from(prng.below(100_000)).expect("short")
            ];
            match prng.below(6) {
                0 | 1 => {
                    write(&store, &from, &content);
                    model.insert(from, content);
                }
                2 => {
                    let writer = store.create(&from, Created::Continued).expect("it can be begun");
                    writer.append(&content).expect("there is room");
                    drop(writer);
                    model.entry(from).or_default().extend_from_slice(&content);
                }
                3 => {
                    let is_there = model.remove(&from).is_some();
                    assert_eq!(store.delete(&from).is_ok(), is_there, "seed {seed}, step {step}");
                }
                4 => {
                    let moved = store.rename(&from, &to);
                    assert_eq!(moved.is_ok(), model.contains_key(&from), "seed {seed}, step {step}");
                    if let Some(content) = model.remove(&from) {
                        model.insert(to, content);
                    }
                }
                _ => {
                    let found = model.contains_key(&from).then(|| read(&store, &from));
                    assert!(found.as_ref() == model.get(&from), "seed {seed}, step {step}, {from}");
                }
            }
        }
        let found: BTreeMap<String, Vec<u8>> = names_in(&store, "/")
            .into_iter()
            .map(|name| (format!("/{name}"), read(&store, &format!("/{name}"))))
            .collect();
        assert!(found == model, "seed {seed}");
        assert_eq!(
            store.drive().list().expect("no bug").len(),
            model.len(),
            "seed {seed}: no table is left over"
        );
    }
}

/// An append that was refused in its middle has given the drive a part, which a flush after it must not look for in memory.
#[test]
fn a_log_that_was_refused_in_the_middle_of_an_append_can_be_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = TableLimits { capacity_bytes: 3 << 19, ..LIMITS };
    let store =
        Store::mount(drive_with(limits), Some(folder.path().join("image")), Vec::new()).expect("empty");
    let writer = store.create("/1.log", Created::Anew).expect("there is room");
    writer.append(&[1; 10]).expect("there is room");
    writer.flush().expect("the tail is kept");
    assert_eq!(kind(writer.append(&vec![2; 2 << 20])), ErrorKind::NoSpace);
    writer.flush().expect("what the drive has can be kept");
    assert_eq!(writer.bytes(), 1 << 20, "as much as the drive took");
    writer.append(&[3; 10]).expect("there is room");
    writer.flush().expect("the tail is kept");
}

#[test]
fn threads_share_a_store() {
    let store = store();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = store.clone();
            scope.spawn(move || {
                for round in 0..15_usize {
                    let (path, content) = (format!("/{thread}.{round}.sst"), vec![thread; 40_000 + round]);
                    write(&store, &path, &content);
                    assert!(read(&store, &path) == content, "{path}");
                    if round % 2 == 0 {
                        store.delete(&path).expect("it is there");
                    }
                }
            });
        }
    });
    assert_eq!(names_in(&store, "/").len(), 4 * 7);
}

#[test]
fn a_map_is_the_file_as_it_was_and_maps_take_what_they_may() {
    let store = store();
    let content: Vec<u8> = (0..300_000_u32).map(|at| u8::try_from(at * 7 % 251).expect("small")).collect();
    write(&store, "/a.sst", &content);
    write(&store, "/b.sst", &content[..100_000]);
    let first = store.map_file("/a.sst").expect("it fits");
    assert!(first.content() == content, "the map is the file");
    assert_eq!(store.map_bytes(), (300_000, 300_000));
    store.bound_maps(399_999);
    let error = store.map_file("/b.sst").expect_err("a byte is missing");
    assert!(error.sentence.contains("of its 100000 bytes 99999 may be"), "{error}");
    store.bound_maps(400_000);
    let second = store.map_file("/b.sst").expect("it fits now");
    assert_eq!(store.map_bytes(), (400_000, 400_000));
    // The file goes, its map stays.
    store.delete("/a.sst").expect("it is there");
    assert!(first.content() == content && second.content() == &content[..100_000]);
    drop((first, second));
    assert_eq!(store.map_bytes(), (0, 400_000), "what maps took is given back");
    assert_eq!(kind(store.map_file("/a.sst")), ErrorKind::NotFound);
    let told = store.report().expect("counts");
    assert!(told.iter().any(|line| line.starts_with("400000 bytes of files were held")), "{told:?}");
}

/// Reads of any bytes of a file, which the store asks for in whole sectors.
#[test]
fn any_bytes_of_a_file_are_read_as_they_were_written() {
    let store = store();
    let content: Vec<u8> =
        (0..2_300_000_u32).map(|at| u8::try_from(at / 3 * 7 % 251).expect("small")).collect();
    write(&store, "/a.sst", &content);
    let reader = store.open_file("/a.sst").expect("it is there");
    for seed in 0..3 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        for turn in 0..200 {
            let offset = prng.below(2_310_000);
            // A read of more than a request goes in several.
            let bytes = prng.below(if turn % 20 == 0 { 2_200_000 } else { 9_000 });
            let mut found = vec![0xee; usize::try_from(bytes).expect("short")];
            let length = reader.read(offset, &mut found).expect("it can be read");
            let begin = usize::try_from(offset).expect("short").min(content.len());
            let expected = &content[begin..content.len().min(begin + found.len())];
            assert!(
                length == expected.len() && found[..length] == *expected,
                "{bytes} bytes from {offset} on"
            );
            assert!(found[length..].iter().all(|&byte| byte == 0xee), "nothing behind them is touched");
        }
    }
}
