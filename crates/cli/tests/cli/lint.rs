//! `ocssd lint`: exit codes, text and JSON, on our own result, the shipped table and what is no result.

use crate::program::Program;
use std::path::Path;

/// The shipped table, as an argument.
fn report() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lint/report-2024.csv").display().to_string()
}

#[test]
fn our_quickstart_has_no_finding_at_the_usual_level() {
    let program = Program::new();
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart.fio");
    let text = std::fs::read_to_string(job).expect("the example is in the repository");
    // Long enough for L16, short enough for an unoptimised program.
    let shorter = text.replace("runtime=2", "runtime=120ms").replace("size=2g", "size=128m");
    program.write("quickstart.fio", shorter.as_bytes());
    program.good("run --quiet quickstart.fio");
    let value = program.json("lint --json ocssd-results/quickstart.json");
    assert_eq!((&value["verdict"], &value["files"][0]["format"]), (&"clean".into(), &"ocssd result".into()));
    let judged = value["judged"].as_array().expect("a list");
    let outcome =
        |rule: &str| judged.iter().find(|one| one["rule"] == rule).map(|one| one["outcome"].clone());
    for rule in ["L01", "L03", "L07", "L08", "L09", "L15", "L16"] {
        assert_eq!(outcome(rule), Some("pass".into()), "{rule} of {value:#}");
    }
    let has_label = |rule: &str| judged.iter().any(|one| one["rule"] == rule && one["outcome"] == "label");
    assert!(has_label("L10"), "no steady state was asked for, but nothing says so: {value:#}");
    for rule in ["L12", "L13", "L14"] {
        assert_eq!(outcome(rule), Some("not_applicable".into()), "{rule}: a closed loop in virtual time");
    }
}

#[test]
fn exit_codes_follow_the_level_and_the_rules_asked_for() {
    let (program, report) = (Program::new(), report());
    for (options, code) in [
        ("", 1),
        ("--level fail", 1),
        ("--rule L05", 1),
        ("--rule L05 --level fail", 0),
        ("--rule L11", 0),
        ("--rule little --rule L03", 1),
        ("--rule L02", 0),
        ("--rule L02 --link 3.5GB/s", 1),
        ("--level label --ignore L01 --ignore L03 --ignore L04 --ignore L05 --ignore L06 --ignore L16", 0),
    ] {
        let answer = program.run(&format!("lint {options} {report}"));
        assert_eq!(answer.code, code, "{options}: {}{}", answer.out, answer.err);
        assert!(answer.out.starts_with("verdict: "), "{options}: {}", answer.out);
    }
}

#[test]
fn findings_say_what_they_mean_and_what_to_do() {
    let (program, report) = (Program::new(), report());
    let text = program.run(&format!("lint {report}")).out;
    for part in ["T3 QD100", "rho is 0.013", "means: ", "do: ", "not judged", "the rate of the link (--link)"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let answer = program.run(&format!("lint --json {report}"));
    let value: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON also with findings");
    assert_eq!((answer.code, &value["verdict"]), (1, &"findings".into()));
    assert_eq!(value["judged"].as_array().map(Vec::len), Some(170), "seventeen rules, ten rows");
    let explained = program.good("lint --explain l07");
    for part in ["L07 direct", "holds:", "means:", "what to do:", "needs:"] {
        assert!(explained.contains(part), "{part} is missing in {explained}");
    }
    assert_eq!(program.json("lint --explain L07 --json")["id"], "L07");
}

#[test]
fn what_cannot_be_read_or_asked_for_ends_with_two_and_a_sentence() {
    let (program, report) = (Program::new(), report());
    program.write("cut.json", b"{\"jobs\": [{\"jobname\": ");
    program.write("text.json", b"read: IOPS=10k");
    for (arguments, part) in [
        ("lint cut.json".to_owned(), "cut short"),
        ("lint text.json".to_owned(), "text that begins `read: IOPS=10k`"),
        ("lint none.json".to_owned(), "none.json: expected a file"),
        (format!("lint {report} cut.json"), "cut.json"),
        (format!("lint --rule L99 {report}"), "the rules are: L01 Little"),
        (format!("lint --rule L01 --ignore L01 {report}"), "no rule is left"),
        (format!("lint --level loud {report}"), "expected label, warn or fail"),
        (format!("lint --link fast {report}"), "expected a rate such as"),
        (format!("lint --dram much {report}"), "expected a size such as"),
        ("lint --explain L99".to_owned(), "there is no rule `L99`"),
        ("lint".to_owned(), "RESULT"),
    ] {
        let answer = program.run(&arguments);
        assert_eq!(answer.code, 2, "{arguments}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(part), "{arguments}: {}", answer.err);
    }
}

#[test]
fn a_result_may_come_by_a_pipe_and_the_verdict_says_what_could_not_be_judged() {
    let program = Program::new();
    let job = "run --quiet --json --drive qemu --name=r --rw=randread --bs=4k --size=16m --number_ios=2000";
    let line = format!("'{0}' {job} | '{0}' lint --level fail -", env!("CARGO_BIN_EXE_ocssd"));
    let output = std::process::Command::new("sh").current_dir(program.path(".")).args(["-c", &line]).output();
    let text = String::from_utf8(output.expect("there is a shell").stdout).expect("it says text");
    let verdict = text
        .split("\nstandard input: ")
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(verdict.starts_with("verdict: clean at level fail ("), "{text}");
    let (_, counts) = verdict.split_once("); ").expect("some rules need what one run does not say");
    let numbers: Vec<usize> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() == 2 && 0 < numbers[0] && numbers[0] < numbers[1], "{verdict}");
    assert!(counts.contains("rules not judged"), "{verdict}");
}
