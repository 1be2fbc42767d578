//! The examples that are shipped run, here in virtual time and shortened; and a seed decides what happens.

use crate::program::Program;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The example with its times and sizes divided, so that an unoptimised program runs it in a moment.
fn shortened(name: &str) -> String {
    let text = std::fs::read_to_string(folder().join(name)).expect("the example is in the repository");
    let shorter = |line: &str| match line {
        "runtime=1" | "runtime=2" | "runtime=4" => "runtime=20ms".to_owned(),
        "size=512m" | "size=1g" | "size=2g" | "size=4g" => "size=128m".to_owned(),
        "offset=2g" => "offset=512m".to_owned(),
        line => line.to_owned(),
    };
    text.lines().map(shorter).collect::<Vec<_>>().join("\n")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the examples are in the repository");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    names
}

#[test]
fn every_example_runs_in_virtual_time_and_none_fails() {
    let names = names();
    assert!(names.len() >= 9, "examples are missing: {names:?}");
    for name in names {
        let program = Program::new();
        program.write(&name, shortened(&name).as_bytes());
        let result = program.json(&format!("run --quiet --json {name}"));
        let verdict = result["ocssd"]["verdict"].to_string();
        assert!(!verdict.contains("fail"), "{name}: {verdict}");
        for job in result["jobs"].as_array().expect("fio's results have jobs") {
            let total = |way: &str| job[way]["total_ios"].as_u64().unwrap_or_default();
            assert!(
                total("read") + total("write") + total("trim") > 0,
                "{name}: {} did nothing",
                job["jobname"]
            );
        }
    }
}

#[test]
fn examples_say_what_to_look_at_and_parse_unshortened() {
    for name in names() {
        let path = folder().join(&name);
        let text = std::fs::read_to_string(&path).expect("the example is in the repository");
        assert!(text.starts_with(';'), "{name} begins without a comment that says what it shows");
        assert!(text.contains("wall"), "{name} does not say how it runs in wall time");
        Program::new().good(&format!("run --parse-only {}", path.display()));
    }
}

#[test]
fn the_seed_decides_the_trace() {
    let program = Program::new();
    let smoke = folder().join("smoke.fio");
    let hash =
        |seed: u32| program.good(&format!("run --quiet --print hash --seed {seed} {}", smoke.display()));
    let first = hash(1);
    assert!(first.starts_with("trace hash "), "printed {first:?}");
    assert_eq!(first, hash(1), "the same seed gave two traces");
    assert_ne!(first, hash(2), "two seeds gave one trace");
    let json = program.json(&format!("run --quiet --print hash --json {}", smoke.display()));
    assert_eq!(Some(first.trim().trim_start_matches("trace hash ")), json["trace_hash"].as_str());
}

#[test]
fn placement_keeps_reads_away_from_writes() {
    let program = Program::new();
    program.write("isolation.fio", shortened("isolation.fio").as_bytes());
    let result = program.json("run --quiet --json isolation.fio");
    let mean = |name: &str| {
        let jobs = result["jobs"].as_array().expect("fio's results have jobs");
        let job = jobs.iter().find(|job| job["jobname"] == name).expect("the job is in the example");
        job["read"]["lat_ns"]["mean"].as_f64().expect("fio gives a mean")
    };
    let (alone, shared) = (mean("reader-alone"), mean("reader-shared"));
    assert!(
        alone * 5.0 < shared,
        "alone {alone} ns, shared {shared} ns: the writes do not disturb, or do everywhere"
    );
}

#[test]
fn fios_own_job_files_are_run_or_refused_as_the_table_says() {
    let package = Path::new("/usr/share/doc/fio/examples");
    let entries = std::fs::read_dir(package).unwrap_or_else(|error| {
        panic!("{}: {error}; Debian's package fio-examples has them", package.display())
    });
    let document = std::fs::read_to_string(folder().join("../docs/fio.md")).expect("it is in the repository");
    let (_, rest) = document.split_once("<!-- fio-examples: refused -->\n\n").expect("the table is there");
    let (table, _) = rest.split_once("\n\n").expect("the table ends");
    let files = |line: &str| line.rsplit(" | ").next().map(str::to_owned).unwrap_or_default();
    let listed: Vec<String> = table.lines().skip(2).flat_map(|line| names_in(&files(line))).collect();
    let (program, mut ran) = (Program::new(), 0);
    let mut refused = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_stem().expect("files have names").to_string_lossy().into_owned();
        let Some(stem) = name
            .strip_suffix(".fio")
            .or_else(|| path.extension().is_some_and(|end| end == "fio").then_some(&name))
        else {
            continue;
        };
        // The package compresses the long ones.
        let unpacked = program.path("job.fio");
        let file = std::fs::File::create(&unpacked).expect("the folder can be written");
        let unpack = if path.extension().is_some_and(|end| end == "gz") { "zcat" } else { "cat" };
        let status = std::process::Command::new(unpack).arg(&path).stdout(file).status();
        assert!(status.expect("every system has it").success());
        match program.run("run --parse-only job.fio").code {
            0 => ran += 1,
            _ => refused.push(stem.to_owned()),
        }
    }
    refused.sort();
    let mut sorted = listed;
    sorted.sort();
    assert_eq!(refused, sorted, "docs/fio.md lists other job files than those that are refused");
    assert!(
        document.contains(&format!("Of the {} job files", ran + refused.len())),
        "{ran} of how many run?"
    );
    assert!(document.contains(&format!("`fio-examples` 3.33, {ran} are accepted")), "{ran} are accepted");
}

/// The names between backquotes.
fn names_in(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
