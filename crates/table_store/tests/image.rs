//! A store on an image, by the text users write: what one opening leaves the next finds.

use ocssd_table_store::{Created, ErrorKind, Replace, Store, StoreOptions};
use std::path::Path;
use std::sync::Arc;

/// A small drive of 200 MiB: the file is as long as what is written.
const DRIVE: &str =
    "create=westlake,set.groups=1,set.pus_per_group=2,set.chunks_per_pu=200,set.sectors_per_chunk=128,set.mw_cunits=32";

fn text(image: &Path, more: &str) -> String {
    format!("drive={},{DRIVE}{more}", image.display())
}

fn open(image: &Path) -> Arc<Store> {
    Store::open(&StoreOptions::parse(&text(image, "")).expect("options")).expect("it opens")
}

fn read(store: &Arc<Store>, path: &str) -> Vec<u8> {
    let reader = store.open_file(path).expect("it is there");
    let mut found = vec![0; usize::try_from(reader.bytes()).expect("short")];
    let length = reader.read(0, &mut found).expect("it can be read");
    assert_eq!(length, found.len(), "{path}");
    found
}

#[test]
fn the_next_opening_finds_files_logs_directories_and_labels() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("d.ocssd");
    let long: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.to_le_bytes()).take(3_000_001).collect();
    {
        let store = open(&image);
        store.create_directory("/db/sub", true).expect("there is room");
        let log = store.create("/db/000003.log", Created::Anew).expect("it can be begun");
        log.append(b"synced").expect("there is room");
        log.sync().expect("there is room");
        log.append(b" and not synced").expect("there is room");
        let mut table = store.create("/db/000004.sst", Created::Anew).expect("it can be begun");
        table.append(&long).expect("there is room");
        table.close().expect("there is room");
        let mut object = store.create_unnamed(b"label".to_vec()).expect("no bug");
        object.append(b"short").expect("there is room");
        object.publish_at("/db/sub/object", Replace::Nothing).expect("the name is free");
        let unfinished = store.create("/db/LOG", Created::Anew).expect("it can be begun");
        unfinished.append(b"for people").expect("memory");
        drop(log);
        store.close().expect("the image can be kept");
    }
    let store = open(&image);
    let names: Vec<String> =
        store.children("/db").expect("a directory").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["000003.log", "000004.sst", "sub"]);
    assert_eq!(read(&store, "/db/000003.log"), b"synced and not synced");
    assert!(read(&store, "/db/000004.sst") == long);
    let status = store.status("/db/sub/object").expect("it is there");
    assert_eq!((status.bytes, status.label.as_slice()), (5, &b"label"[..]));
    store.rename("/db/sub/object", "/db/object").expect("there is room");
    drop(store);
    assert_eq!(read(&open(&image), "/db/object"), b"short");
}

#[test]
fn an_image_has_one_user_and_a_process_one_store_of_a_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("d.ocssd");
    let shared = Store::open_shared(&text(&image, "")).expect("it opens");
    let again = Store::open_shared(&text(&image, "")).expect("it is open");
    assert!(Arc::ptr_eq(&shared, &again));
    let other = Store::open_shared(&text(&image, ",placement=vertical")).expect_err("it has a user");
    assert!(other.kind == ErrorKind::Busy && other.sentence.contains("in use"), "{other}");
    drop((shared, again));
    Store::open_shared(&text(&image, ",placement=vertical")).expect("nobody has it any more");
}

#[test]
fn what_is_no_store_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("d.ocssd");
    for (more, part) in [
        (",target=pblk", "a store needs tables"),
        (",target=no_such", "there is no target"),
        (",color=blue", "no option \"color\""),
        (",on=pu:7", "pu"),
    ] {
        let error = Store::open_shared(&text(&image, more)).expect_err(more);
        assert!(error.sentence.contains(part), "{more}: {error}");
    }
    let missing = Store::open_shared("drive=/no/such/image").expect_err("there is none");
    assert!(
        missing.kind == ErrorKind::NotFound && missing.sentence.contains("no preset and no file"),
        "{missing}"
    );
    std::fs::write(directory.path().join("torn.ocssd"), [7; 5_000]).expect("there is room");
    let torn = format!("drive={}", directory.path().join("torn.ocssd").display());
    let torn = Store::open_shared(&torn).expect_err("it is no image");
    assert!(torn.kind == ErrorKind::Corrupt && torn.sentence.contains("not usable"), "{torn}");
}
