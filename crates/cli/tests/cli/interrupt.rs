//! Ctrl-C, SIGTERM, and the second of them: what was measured is kept, and the exit status says that it was ended.

use crate::program::{Answer, Program};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts the program, and waits until it says a line with `word` in it.
fn started(program: &Program, arguments: &str, word: &str) -> (Child, impl FnOnce(Child) -> Answer + use<>) {
    let mut child = program
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(
            said.read_line(&mut line).expect("it is text") > 0,
            "`ocssd {arguments}` never said {word:?}"
        );
    }
    let end = move |child: Child| {
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("it is text");
        let output = child.wait_with_output().expect("it ends");
        Answer { err: rest, ..Answer::of(&output) }
    };
    (child, end)
}

/// Sends signals at once, so that no turn of the program comes between them.
fn send(child: &Child, signals: &[&str]) {
    let script: Vec<String> = signals.iter().map(|signal| format!("kill -{signal} {}", child.id())).collect();
    let sent = Command::new("sh").args(["-c", &script.join("; ")]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{signals:?}");
}

/// Interrupts a command and gives what it answered; it ends soon.
fn interrupted(program: &Program, arguments: &str, word: &str, signals: &[&str]) -> Answer {
    let (child, end) = started(program, arguments, word);
    let began = Instant::now();
    send(&child, signals);
    let answer = end(child);
    assert!(began.elapsed() < Duration::from_secs(30), "`ocssd {arguments}` went on");
    assert_eq!(answer.code, 130, "`ocssd {arguments}` said:\n{}{}", answer.out, answer.err);
    answer
}

fn kept(program: &Program, name: &str) -> serde_json::Value {
    let path = program.path(&format!("ocssd-results/{name}.json"));
    let text = std::fs::read_to_string(path).expect("the result is kept");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Endless work, a job that would begin after it, and one that begins too late.
const JOBS: &str = "--name=work --rw=randread --bs=4k --size=4m --time_based --runtime=9000 --name=late --startdelay=5000 \
                    --rw=randread --bs=4k --size=4m --name=after --stonewall --rw=randread --bs=4k --size=4m";

#[test]
fn a_run_that_is_interrupted_keeps_what_it_measured() {
    for (clock, signal, word) in [("virtual", "INT", "Ctrl-C"), ("wall", "TERM", "SIGTERM")] {
        let program = Program::new();
        let arguments = format!("run --drive tiny --clock {clock} --live=10ms {JOBS}");
        let answer = interrupted(&program, &arguments, "IOPS", &[signal]);
        let first = answer.verdict();
        assert!(first.starts_with(&format!("verdict: interrupted: {word} ended it after ")), "{first}");
        assert!(first.contains("0 of 3 jobs were done"), "{first}");
        assert!(answer.err.contains("a second one ends at once"), "{}", answer.err);
        let result = kept(&program, "work");
        assert_eq!(result["ocssd"]["verdict"]["outcome"], "interrupted");
        assert!(result["jobs"][0]["read"]["total_ios"].as_u64() > Some(0), "{result}");
        for other in [1, 2] {
            assert_eq!(result["jobs"][other]["read"]["total_ios"], 0, "{clock}");
        }
    }
}

#[test]
fn a_layout_that_is_interrupted_says_how_far_it_was() {
    let program = Program::new();
    let arguments = "run --name=all --rw=randread --bs=4k";
    let answer = interrupted(&program, arguments, "laying out 2.29 TB", &["INT"]);
    assert!(
        answer.verdict().ends_with("% of laying out what jobs read; nothing was measured"),
        "{}",
        answer.out
    );
    assert_eq!(kept(&program, "all")["ocssd"]["verdict"]["outcome"], "interrupted");
}

#[test]
fn a_second_signal_ends_at_once() {
    let program = Program::new();
    let arguments = format!("run --drive tiny --clock wall --live=10ms {JOBS}");
    let answer = interrupted(&program, &arguments, "IOPS", &["INT", "TERM"]);
    assert_eq!(answer.out, "", "it took the time to print a result");
    assert!(!program.path("ocssd-results/work.json").exists(), "and to keep one");
}

#[test]
fn a_campaign_that_is_interrupted_says_how_many_seeds_were_run() {
    let program = Program::new();
    let answer = interrupted(&program, "simulate --size tiny --time 10min --jobs 1", "seeds/s", &["INT"]);
    let verdict = answer.out.lines().last().unwrap_or_default();
    let seeds = verdict
        .strip_prefix("verdict: interrupted: every promise was kept in the ")
        .and_then(|rest| rest.strip_suffix(" seeds that were run"))
        .unwrap_or_else(|| panic!("{verdict}"));
    assert!(seeds.parse::<u64>().is_ok_and(|seeds| seeds > 0), "{verdict}");
}

#[test]
fn an_experiment_that_is_interrupted_keeps_its_rows_beside_those_of_whole_runs() {
    let program = Program::new();
    let answer = interrupted(&program, "experiment run ksc17-t3", ": point ", &["INT"]);
    assert!(answer.out.starts_with("verdict: interrupted in point "), "{}", answer.out);
    let folder = program.path("ocssd-results/experiments/ksc17-t3");
    assert!(!folder.join("ours.csv").exists(), "a part would stand where whole runs do");
    let rows = std::fs::read_to_string(folder.join("interrupted/ours.csv")).expect("rows are kept");
    assert!(rows.lines().count() > 1, "{rows}");
    let report = "experiment report ksc17-t3 --out ocssd-results/experiments/ksc17-t3/interrupted";
    let shown = program.good(report);
    assert!(shown.contains("not evaluated"), "{shown}");
}
