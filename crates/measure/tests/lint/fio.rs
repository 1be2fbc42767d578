//! fio's own output. Needs the `fio` program, version 3.33 as in Debian 12.

use crate::made::words;
use ocssd_measure::lint::Settings;
use std::path::PathBuf;
use std::process::Command;

/// A closed loop on fio's null engine, one that claims a depth its engine does not have, buffered writes, and two
/// sections in one entry.
const JOB_FILE: &str = "\
[global]
size=16m
bs=4k
[sync]
rw=randread
ioengine=psync
iodepth=16
runtime=300ms
time_based
[buffered]
stonewall
rw=write
ioengine=psync
fsync=64
[pair]
stonewall
new_group
group_reporting
rw=randread
ioengine=null
runtime=300ms
time_based
[pair-too]
group_reporting
rw=randwrite
ioengine=null
iodepth=4
runtime=300ms
time_based
";

fn fio() -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fio-lint-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    std::fs::write(folder.join("job.fio"), JOB_FILE).expect("the folder was just made");
    let run = Command::new("fio")
        .args(["--output-format=json+", "--output=out.json", "job.fio"])
        .current_dir(&folder)
        .output()
        .unwrap_or_else(|error| {
            panic!("this test lints what the program `fio` prints: install the package `fio` ({error})")
        });
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "fio ended with {}: {said}", run.status);
    let text = std::fs::read_to_string(folder.join("out.json")).expect("fio wrote its output");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    text
}

#[test]
fn fios_own_output_is_read_and_judged() {
    let text = fio();
    let said = |id: &str| words(id, &Settings::default(), std::slice::from_ref(&text));
    assert_eq!(said("L01").len(), 3, "sync, buffered, and a pair in one entry");
    assert_eq!(said("L01")[0], "fail", "psync has no depth of 16");
    assert_eq!(said("L01")[2], "unknown", "the pair's depth is not known");
    assert_eq!(said("L07")[..2], ["fail", "fail"], "buffered");
    assert_eq!(said("L08")[1], "apart", "writes");
    assert_eq!(said("L09")[0], "label", "16 MiB");
    assert_eq!(said("L10")[1], "label", "no steady state");
    assert_eq!(said("L11")[1], "label", "4096 samples");
    let units = said("L16");
    assert_eq!((units[0], units[2]), ("pass", "pass"), "fio's units fit");
    assert!(
        ["pass", "unknown"].contains(&units[1]),
        "{units:?}: only a run of less than 0.1 s is not compared"
    );
}
