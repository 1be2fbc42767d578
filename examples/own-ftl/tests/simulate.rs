//! The simulator passes the FTL of docs/own-ftl.md, and finds the mistake in its broken twin.

use std::process::{Command, Output};

/// Runs `own-ftl` with `arguments`, and gives what it said.
fn own_ftl(arguments: &[&str]) -> (Output, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_own-ftl")).args(arguments).output().expect("the program was built");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, said)
}

#[test]
fn seeds_0_to_30_of_tiny_drives_find_nothing() {
    let (output, said) = own_ftl(&["simulate", "--target", "own-ftl", "--size", "tiny", "--seeds", "0..30"]);
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_flush_that_leaves_a_unit_in_memory_is_found_by_the_first_seed_and_named() {
    let (output, said) =
        own_ftl(&["simulate", "--target", "own-ftl-broken", "--size", "tiny", "--seeds", "0..30"]);
    assert!(!output.status.success(), "nothing was found: {said}");
    for part in ["seed 0 failed", "promised:", "found:", "run again: ", "--target own-ftl-broken"] {
        assert!(said.contains(part), "\"{part}\" is not in: {said}");
    }
}

#[test]
fn a_job_runs_on_it_and_its_counters_are_printed() {
    let job = ["--name=j", "--rw=randwrite", "--bs=4k", "--size=1m", "--iodepth=8", "--verify=crc32c"];
    let drive = [
        "run",
        "--drive",
        "tiny",
        "--target",
        "own-ftl",
        "--verbose",
        "--results",
        env!("CARGO_TARGET_TMPDIR"),
    ];
    let (output, said) = own_ftl(&[&drive[..], &job[..]].concat());
    assert!(output.status.success() && said.contains("user_written_sectors"), "{said}");
}
