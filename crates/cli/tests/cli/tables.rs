//! `ocssd inspect IMAGE tables`: files of a store, to an image and back.

use crate::program::Program;
use std::fs;

/// Enough chunks for a `lightlsm` with room for some files.
pub const DRIVE: &str = "preset = \"westlake\"
payload = \"bytes\"
groups = 2
pus_per_group = 2
chunks_per_pu = 60
sectors_per_chunk = 64
ws_min = 8
ws_opt = 8
mw_cunits = 16
[media]
planes = 1
sectors_per_page = 8
";

/// A folder with a database of which nothing can be read as one.
fn with_folder() -> Program {
    let program = Program::new();
    fs::create_dir_all(program.path("saved/db/empty")).expect("the build directory can be written");
    let table: Vec<u8> = (0..700_001_u32).flat_map(u32::to_le_bytes).collect();
    for (name, content) in [
        ("saved/db/CURRENT", b"MANIFEST-000004\n".as_slice()),
        ("saved/db/MANIFEST-000004", b"edits"),
        ("saved/db/000005.log", &table[..9_999]),
        ("saved/db/000006.sst", &table),
        ("saved/db/LOG", b"for people"),
    ] {
        program.write(name, content);
    }
    program.write("drive.toml", DRIVE.as_bytes());
    program.good("format a.img --drive drive.toml");
    program
}

#[test]
fn files_go_to_an_image_and_come_back() {
    let program = with_folder();
    let copied = program.json("inspect a.img tables restore saved --json");
    assert_eq!((&copied["files"], &copied["directories"]), (&4.into(), &2.into()), "LOG stays: {copied}");
    let listed = program.json("inspect a.img tables list --json");
    let paths: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|file| file["path"].as_str()).collect();
    let expected =
        ["/db", "/db/000005.log", "/db/000006.sst", "/db/CURRENT", "/db/MANIFEST-000004", "/db/empty"];
    assert_eq!(paths, expected);
    assert_eq!(program.good("inspect a.img tables dump /db/CURRENT"), "MANIFEST-000004\n");
    let df = program.json("inspect a.img tables --json");
    assert_eq!(df["files"], 4, "{df}");
    let used = df["used_bytes"].as_u64().expect("a count");
    assert_eq!(
        used + df["free_bytes"].as_u64().expect("a count"),
        df["capacity_bytes"].as_u64().expect("a count")
    );
    program.good("inspect a.img tables backup again --path /db");
    for name in ["CURRENT", "MANIFEST-000004", "000005.log", "000006.sst"] {
        let (before, after) = (
            fs::read(program.path(&format!("saved/db/{name}"))),
            fs::read(program.path(&format!("again/{name}"))),
        );
        assert!(before.expect("it was made") == after.expect("it was copied"), "{name} is another one");
    }
    assert!(program.path("again/empty").is_dir() && !program.path("again/LOG").exists());
    assert!(program.good("inspect a.img tables list /db").contains("/db/empty/"), "a directory ends with /");
}

#[test]
fn what_cannot_be_is_refused_in_words_and_changes_nothing() {
    let program = with_folder();
    program.good("inspect a.img tables restore saved");
    for (arguments, part) in [
        ("inspect tiny tables", "no image"),
        ("inspect a.img tables restore saved", "is there already, and nothing was restored"),
        ("inspect a.img tables restore none", "none cannot be read"),
        ("inspect a.img tables dump /db", "a directory is not read as a file"),
        ("inspect a.img tables dump /db/none", "/db/none"),
        ("inspect a.img tables list /none", "/none"),
        ("inspect a.img tables backup other --path /none", "/none"),
        ("inspect a.img tables backup saved", "not there yet"),
        ("inspect a.img tables --store target=pblk df", "a store needs tables"),
    ] {
        let answer = program.run(arguments);
        assert_eq!(answer.code, 2, "`ocssd {arguments}` said:\n{}{}", answer.out, answer.err);
        assert!(
            answer.err.contains(part),
            "`ocssd {arguments}` should say \"{part}\", but said:\n{}",
            answer.err
        );
    }
    assert!(!program.path("other").exists(), "a folder was left behind");
    assert_eq!(program.json("inspect a.img tables df --json")["files"], 4);
}

/// A copy that ended too early, one whose header was written over, and a file that never was an image.
#[test]
fn a_torn_image_is_told_as_such_and_stays_as_it_is() {
    let program = with_folder();
    program.good("inspect a.img tables restore saved");
    let whole = fs::read(program.path("a.img")).expect("the image");
    let mut overwritten = whole.clone();
    overwritten[..8192].fill(0xa5);
    for (name, content, part) in [
        ("short.img", &whole[..whole.len() - 4096], "short.img is not usable: it is truncated: "),
        ("begin.img", &whole[..4096], "begin.img is not usable: it is truncated: "),
        ("empty.img", &whole[..0], "empty.img is not usable: "),
        ("over.img", &overwritten[..], "over.img is not usable: "),
    ] {
        program.write(name, content);
        for what in ["", " list", " dump /db/CURRENT", " backup torn", " restore saved"] {
            let answer = program.run(&format!("inspect {name} tables{what}"));
            assert_eq!(answer.code, 2, "{name}{what} said:\n{}{}", answer.out, answer.err);
            assert!(
                answer.err.contains(part),
                "{name}{what} should say \"{part}\", but said:\n{}",
                answer.err
            );
        }
        let after = fs::read(program.path(name)).expect("it was written");
        assert!(after == content, "{name} was refused and is another one");
    }
    assert!(!program.path("torn").exists(), "a folder was left behind");
    assert_eq!(program.json("inspect a.img tables df --json")["files"], 4, "the whole one is as it was");
}
