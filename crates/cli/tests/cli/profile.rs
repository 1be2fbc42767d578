//! `ocssd profile` as a user runs it: a short profile, and everything that may be in its way.

use crate::program::{Answer, Program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// As short as it gets: two seconds, 16 MiB, the cells of `--quick` once or twice.
const SHORT: &str = "--quick --time 1s --size 16777216 --repetitions 1 --quiet";

fn result(program: &Program) -> Value {
    let text =
        std::fs::read_to_string(program.path("ocssd-results/profile/result.json")).expect("a result is kept");
    serde_json::from_str(&text).expect("a result is JSON")
}

/// Names in the program's folder that a profile could have left.
fn left_behind(program: &Program) -> Vec<String> {
    let entries = std::fs::read_dir(program.path(".")).expect("the folder can be listed");
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".ocssd-profile")).collect()
}

/// 0 or 1: what a busy machine measures may fail the linter's rules, but not as bad input.
fn ran(answer: &Answer) -> bool {
    answer.code == 0 || answer.code == 1
}

/// What a program printed, in one line.
fn unfolded(answer: &Answer) -> String {
    answer.out.replace(" \\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_short_profile_is_a_table_sentences_and_files_that_lint_reads() {
    let program = Program::new();
    let answer = program.run(&format!("profile . {SHORT} --compare d7-p5600"));
    assert!(ran(&answer), "{}{}", answer.out, answer.err);
    for expected in [
        "verdict: ",
        "4 KiB random reads, 1 at a time",
        "queue depth: ",
        "burst and sustained: ",
        "beside the datasheet of Intel D7-P5600",
        "seen below of what was asked: ",
        "again: ocssd profile . --quick --time 1s --repetitions 1 --size 16777216 --seed 1 --compare d7-p5600",
        "for fio: fio --name=",
    ] {
        assert!(unfolded(&answer).contains(expected), "`{expected}` in\n{}", answer.out);
    }
    let result = result(&program);
    assert_eq!(
        result["jobs"].as_array().map(Vec::len),
        Some(17 + 4),
        "a job for each run, and for each load"
    );
    let own = &result["ocssd"];
    assert_eq!((&own["seed"], &own["clock"]), (&"1".into(), &"wall".into()));
    assert!(
        own["environment"].as_array().is_some_and(|rows| rows.len() > 8)
            && own["profile"]["knee"].is_object()
    );
    assert_eq!(left_behind(&program), [""; 0]);
    let lint = program.run("lint --json ocssd-results/profile/result.json");
    assert!(ran(&lint) && lint.out.contains("\"format\": \"ocssd result\""), "{}{}", lint.out, lint.err);
    let rows =
        std::fs::read_to_string(program.path("ocssd-results/profile/runs.csv")).expect("rows are kept");
    assert_eq!(rows.lines().count(), 1 + 17 + 4);
    let own = &result["ocssd"]["profile"];
    assert!(own["surroundings"]["after"]["processor_ticks"].is_number(), "{}", own["surroundings"]);
    open_loop_is_sound(&own["open_loop"]);
}

/// Every load has its rate, and what is said of it fits together. On a busy machine a load may have nothing in its short time.
fn open_loop_is_sound(loads: &Value) {
    let loads = loads.as_array().expect("loads");
    let shares: Vec<u64> = loads.iter().filter_map(|load| load["share_percent"].as_u64()).collect();
    assert_eq!(shares, [25, 50, 75, 90]);
    for load in loads {
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number in {load}"));
        let (asked, done) = (number(&load["asked_iops"]), number(&load["iops"]["mean"]));
        let (whole, late) = (&load["latency_from_due_ns"]["mean"], &load["begun_late_ns"]["mean"]);
        assert_eq!(load["fell_behind"], done < 0.98 * asked, "{load}");
        assert_eq!(number(&load["samples"]) > 0.0, number(whole) > 0.0, "{load}");
        assert!(asked >= 1.0 && number(late) <= number(whole), "{load}");
    }
}

/// A virtual drive of 32 MiB, a minute shortened to a third of a second of its time.
const EMULATED: &str = "profile --emulated qemu --ftl pblk:over_provisioning_percent=20 --size 33554432 --quick \
                        --time 300ms --repetitions 1";

#[test]
fn a_virtual_drive_shows_its_inside_in_pictures_and_rows() {
    let program = Program::new();
    let answer = program.run(&format!("{EMULATED} --quiet"));
    assert!(ran(&answer), "{}{}", answer.out, answer.err);
    let folder = program.path("ocssd-results/profile");
    let entries = std::fs::read_dir(folder.join("pictures")).expect("pictures are kept");
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    for title in [
        "busy-parallel-units",
        "write-amplification",
        "writers-and-write-buffer",
        "latency-exceedance",
        "latency-against-throughput",
        "random-writes-over-time",
    ] {
        for kind in ["svg", "png"] {
            assert!(
                names.iter().any(|name| name.ends_with(&format!("{title}.{kind}"))),
                "{title}.{kind}: {names:?}"
            );
        }
    }
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let described: Value = serde_json::from_str(&text("pictures.json")).expect("pictures are JSON");
    assert_eq!(described.as_array().map(|all| 2 * all.len()), Some(names.len()));
    // Every unit has a row for each time, and what is busy is a share.
    let timeline = text("timeline.csv");
    let shares: Vec<f64> = timeline
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().and_then(|share| share.parse().ok()).expect("a share"))
        .collect();
    assert!(shares.len() > 100 && shares.iter().all(|share| (0.0..=1.0).contains(share)), "{timeline}");
    assert!(shares.iter().any(|share| *share > 0.1), "units were busy");
    assert!(text("pictures.csv").lines().count() > shares.len() / 10);
    let series = |title: &str| -> Vec<String> {
        let chart =
            described.as_array().into_iter().flatten().find(|chart| chart["title"] == title).expect(title);
        let panels = chart["panels"].as_array().expect("panels").iter();
        let series = panels.flat_map(|panel| panel["series"].as_array().expect("series"));
        series.filter_map(|series| series["name"].as_str().map(str::to_owned)).collect()
    };
    let both = ["closed loop", "open loop"];
    assert_eq!(series("Latency against throughput")[..2], both);
    assert!(
        series("Random writes over time").len() >= 3,
        "throughput, collection, resets; the tail with samples enough"
    );
    assert!(series("Coming to rest").contains(&"each round".to_owned()));
    let kept = result(&program);
    let loads = &kept["ocssd"]["profile"]["open_loop"];
    open_loop_is_sound(loads);
    let done = |load: &Value| load["fell_behind"] == false && load["samples"].as_u64() > Some(0);
    assert!(
        loads.as_array().is_some_and(|loads| loads.iter().all(done)),
        "a virtual drive keeps up: {loads}"
    );
    let writers = kept["ocssd"]["profile"]["writers"].as_array().expect("curves of writers");
    assert!(
        !writers.is_empty()
            && writers.iter().all(|curve| curve["points"].as_array().map(Vec::len) == Some(7))
    );
}

#[test]
fn live_without_a_terminal_is_a_line_now_and_then() {
    let program = Program::new();
    let answer = program.run(&format!("{EMULATED} --live=1ms"));
    assert!(ran(&answer), "{}{}", answer.out, answer.err);
    let lines: Vec<&str> = answer.err.lines().filter(|line| line.contains(" IOPS; ")).collect();
    assert!(lines.len() >= 3, "{}", answer.err);
    for word in ["random writes to steady state", "p99 ", "% busy", "lines free, GC ", "buffer "] {
        assert!(lines.iter().any(|line| line.contains(word)), "{word}: {}", answer.err);
    }
    assert!(!answer.err.contains('\u{1b}'), "no terminal, no escapes");
    let quiet = program.run(&format!("{EMULATED} --live=1ms --quiet"));
    assert_eq!(quiet.err, "");
    let wrong = program.run(&format!("{EMULATED} --live=soon"));
    assert!(wrong.code == 2 && wrong.err.contains("--live"), "{}", wrong.err);
}

#[test]
fn a_run_is_shown_live_too() {
    let program = Program::new();
    let job = "--name=j --rw=randwrite --bs=4k --iodepth=8 --size=8m --io_size=64m";
    let answer =
        program.run(&format!("run --drive qemu --target pblk:over_provisioning_percent=20 --live=1ms {job}"));
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains(" IOPS; ") && answer.err.contains("pblk: "), "{}", answer.err);
}

/// Goal: no rule fails a virtual drive for what it is: its media are known, and virtual time repeats itself. Method: the drive
/// with the fastest media, whose reads no NAND could do, each cell three times.
#[test]
fn a_virtual_drive_of_any_media_passes_its_own_rules() {
    let program = Program::new();
    let cells = "--cell randread-4k-qd1 --cell randwrite-4k-qd8 --cell randrw70-4k-qd4";
    let answer = program.run(&format!(
        "profile --emulated z-nand --size 33554432 --quick --time 300ms --repetitions 3 {cells} --quiet"
    ));
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let findings = &result(&program)["ocssd"]["verdict"];
    assert_ne!(findings["outcome"], "fail", "{findings}");
    assert!(answer.out.contains("media_read_ns: 3000"), "{}", answer.out);
}

/// Places drawn in the order in which they were written before lie side by side on media, and half of the reads found what they
/// wanted in a page register: the default drive failed its own rules.
#[test]
fn every_job_draws_places_of_its_own_so_that_random_reads_do_not_follow_random_writes() {
    let program = Program::new();
    let cells = "--cell randread-4k-qd1 --time 1s --repetitions 2 --quick --quiet";
    let answer = program.run(&format!("profile --emulated cidr20 {cells}"));
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let kept = result(&program);
    let jobs = kept["jobs"].as_array().expect("jobs");
    let seeds: BTreeSet<&str> =
        jobs.iter().filter_map(|job| job["job options"]["randseed"].as_str()).collect();
    assert_eq!((jobs.len(), seeds.len()), (2, 2), "{seeds:?}");
    let mean = kept["ocssd"]["profile"]["cells"][0]["latency_ns"]["mean"].as_f64();
    assert!(
        mean.is_some_and(|mean| mean > 60_000.0),
        "a sense of 40 us, 10 us on the channel, and the host: {mean:?}"
    );
}

#[test]
fn the_word_of_a_verdict_and_its_sentence_say_the_same() {
    let program = Program::new();
    let cells = "--cell randread-4k-qd1 --time 300ms --repetitions 1 --quick --quiet --size 33554432";
    // Reads of 3 us are none that NAND could do, which is what the user says it is.
    for (media, code, says, never) in [
        ("--media nand", 1, "rules forbid some of these numbers", "find nothing that forbids"),
        ("", 0, "find nothing that forbids", "forbid some"),
    ] {
        let answer = program.run(&format!("profile --emulated z-nand {cells} {media}"));
        assert_eq!(answer.code, code, "{}{}", answer.out, answer.err);
        let forbids = answer.verdict().contains(") forbids the numbers of 1 run");
        assert_eq!(forbids, code == 1, "{}", answer.out);
        let long = answer.out.split("\n\n").next().and_then(|head| head.lines().find(|line| line.len() > 80));
        assert_eq!(long, None, "{}", answer.out);
        let page =
            std::fs::read_to_string(program.path("ocssd-results/profile/report.html")).expect("a page");
        assert!(page.contains(says) && !page.contains(never), "{media}: expected {says:?} and not {never:?}");
    }
}

#[test]
fn a_virtual_drive_is_profiled_the_same_way_and_the_same_twice() {
    let program = Program::new();
    let arguments = "profile --emulated qemu --ftl pblk:over_provisioning_percent=20 --size 33554432 --quick --time 300ms --repetitions 1 --quiet";
    let first = program.run(arguments);
    assert!(ran(&first), "{}{}", first.out, first.err);
    let kept = result(&program);
    assert_eq!(kept["ocssd"]["clock"], "virtual");
    assert!(unfolded(&first).contains("I/Os below 4 KiB are left out"), "{}", first.out);
    program.run(arguments);
    assert_eq!(result(&program), kept);
    let again = program.run(&format!("{arguments} --compare ocssd-results/profile/result.json"));
    assert!(
        again.out.contains("beside ocssd-results/profile/result.json") && again.out.contains("1.000"),
        "{}",
        again.out
    );
}

#[test]
fn kept_results_are_compared_without_measuring() {
    let program = Program::new();
    let cell = |name: &str, iops: u32| {
        serde_json::json!({ "name": name, "iops": { "mean": iops, "half_width": 5, "count": 3 },
            "bytes_per_second": { "mean": iops * 4096 } })
    };
    for (name, iops) in [("a.json", 1000), ("b.json", 2000)] {
        let cells = [cell("randread-4k-qd32", iops), cell("randwrite-4k-qd32", 500)];
        let steady = serde_json::json!({ "is_steady": true });
        let value = serde_json::json!({ "ocssd": { "profile": { "cells": cells, "steady": steady } } });
        program.write(name, value.to_string().as_bytes());
    }
    let text = program.good("profile --saved a.json --compare b.json --compare d7-p5600");
    for expected in ["beside b.json", "0.500", "not told apart", "Intel D7-P5600", "random 4 KiB writes"] {
        assert!(text.contains(expected), "`{expected}` in\n{text}");
    }
    let value = program.json("profile --saved a.json --compare b.json --json");
    assert_eq!(value[0]["rows"][0]["ratio"], 0.5, "{value}");
    assert!(!program.path("ocssd-results").exists(), "nothing was measured, nothing is kept");
}

#[test]
fn threads_do_where_io_uring_is_not_wanted() {
    let program = Program::new();
    let answer = program.run(&format!("profile . {SHORT} --engine threads"));
    assert!(ran(&answer), "{}{}", answer.out, answer.err);
    let result = result(&program);
    let engine = |job: &Value| job["job options"]["ioengine"].as_str().map(str::to_owned);
    let engines: Vec<String> = result["jobs"].as_array().expect("jobs").iter().filter_map(engine).collect();
    assert!(engines.contains(&"psync".to_owned()) && engines.contains(&"posixaio".to_owned()), "{engines:?}");
}

#[test]
fn memory_is_measured_and_called_no_drive() {
    let program = Program::new();
    let answer = program.run(&format!("profile /dev/shm {SHORT}"));
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    assert!(answer.out.contains("tmpfs: it is memory, and no drive is measured"), "{}", answer.out);
    assert!(answer.out.contains("L07 direct"), "the linter says so too:\n{}", answer.out);
}

#[test]
fn the_page_cache_is_found_out() {
    let program = Program::new();
    let answer = program.run(&format!("profile . {SHORT} --buffered"));
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    assert!(answer.out.contains("verdict: fail") && answer.out.contains("L07 direct"), "{}", answer.out);
}

#[test]
fn a_file_that_may_not_be_written_is_read_only() {
    let program = Program::new();
    program.write("mine", &vec![7; 16 << 20]);
    let answer = program.run(&format!("profile mine {SHORT}"));
    assert!(ran(&answer), "{}{}", answer.out, answer.err);
    assert!(unfolded(&answer).contains("only reads are measured; writes need --overwrite"), "{}", answer.out);
    assert!(!answer.out.contains("random writes, "), "{}", answer.out);
    let kept = std::fs::read(program.path("mine")).expect("it is still there");
    assert!(kept.len() == 16 << 20 && kept.iter().all(|&byte| byte == 7), "nobody wrote it");
}

#[test]
fn what_cannot_be_profiled_is_a_sentence_and_status_2() {
    let program = Program::new();
    program.write("tiny", &[1; 4096]);
    for (arguments, expected) in [
        ("profile nowhere", "name a directory, a file or a block device"),
        ("profile tiny", "has 4096 bytes, fewer than the 16777216 a profile needs"),
        ("profile . --size 4096", "fewer than the 16777216"),
        ("profile . --size 900000TiB", "lower --size"),
        ("profile /dev/null", "neither a directory, a file nor a block device"),
        ("profile . --compare nothing", "there is no datasheet \"nothing\""),
        ("profile --emulated nothing", "nothing"),
        ("profile . --quick --full", "cannot be used with"),
        ("profile . --time 0s", "a number above 0 with a unit"),
        ("profile --saved tiny", "--compare"),
        ("profile --saved tiny --compare d7-p5600", "tiny is not JSON"),
        ("profile --saved nowhere --compare emulated:z-nand", "nowhere cannot be read"),
    ] {
        let answer = program.run(arguments);
        assert_eq!(answer.code, 2, "{arguments}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{arguments}: {}", answer.err);
    }
}

/// The program under a limit on the size of files: what a full disk is to it, without a disk to fill.
fn with_limit(program: &Program, arguments: &str) -> Answer {
    let script = format!("trap '' XFSZ; ulimit -f 20000; exec {} {arguments}", env!("CARGO_BIN_EXE_ocssd"));
    let output = Command::new("bash").args(["-c", &script]).current_dir(program.path(".")).output();
    Answer::of(&output.expect("Linux has bash"))
}

#[test]
fn a_disk_without_room_is_said_before_anything_is_measured() {
    let program = Program::new();
    let answer = with_limit(&program, "profile . --quick --size 67108864");
    assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("gives no room for a file of 67108864 bytes"), "{}", answer.err);
    assert_eq!(left_behind(&program), [""; 0]);
}

#[test]
fn a_disk_that_fills_up_while_it_is_written_is_said_and_the_rest_is_kept() {
    let program = Program::new();
    let sparse = std::fs::File::create(program.path("sparse")).expect("the folder can be written");
    sparse.set_len(64 << 20).expect("a file can be made longer");
    let answer = with_limit(&program, "profile sparse --overwrite --quick --time 1s --quiet");
    assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
    assert!(
        answer.verdict().contains("a file may not be that large (ulimit -f): lower --size"),
        "{}",
        answer.out
    );
    assert!(result(&program)["ocssd"]["profile"]["ended_early"].is_string(), "what there is is kept");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_file() {
    let program = Program::new();
    let mut command = program.command("profile . --quick --time 60s --size 16777216");
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program was built");
    // The first line about a step says that signals are heard and measuring has begun.
    let mut said = std::io::BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("the program says what it does");
    let began = Instant::now();
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert!(began.elapsed() < Duration::from_secs(20), "it ends soon");
    let answer = Answer::of(&output);
    assert_eq!(answer.code, 130, "{}", answer.out);
    assert!(answer.out.starts_with("verdict: interrupted: it was interrupted; "), "{}", answer.out);
    assert_eq!(result(&program)["ocssd"]["verdict"]["outcome"], "interrupted");
    assert!(Path::new(&program.path("ocssd-results/profile/report.html")).exists());
    assert_eq!(left_behind(&program), [""; 0]);
}
