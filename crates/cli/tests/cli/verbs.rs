//! Every verb, as text and as JSON; and an image from its making to its reopening.

use crate::program::Program;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

#[test]
fn every_verb_speaks_json() {
    let program = Program::new();
    for arguments in [
        "presets",
        "options",
        "explain 2F2h",
        "inspect tiny",
        "inspect tiny drive",
        "inspect tiny geometry",
        "inspect tiny chunks --all",
        "inspect tiny chunk g1/p1/c7",
        "inspect tiny wear",
        "inspect tiny targets",
        "inspect tiny toml",
        "run --drive tiny --parse-only --name=a",
        "run --drive tiny --showcmd --name=a",
    ] {
        program.json(&format!("{arguments} --json"));
        let text = program.good(arguments);
        assert!(!text.trim().is_empty(), "`ocssd {arguments}` printed nothing");
    }
    let geometry = program.json("inspect tiny geometry --json");
    assert_eq!(geometry["ws_min"], 4, "a count is a number: {geometry}");
    assert_eq!(program.json("explain 0x2f2 --json")["name"], "Out of Order Write");
    assert_eq!(program.json("explain 754 --decimal --json")["status"], 0x2F2);
}

#[test]
fn completions_and_manual_pages_come_from_the_same_definitions() {
    let program = Program::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = program.good(&format!("completions {shell}"));
        assert!(script.contains("inspect"), "the {shell} completions do not know the verb inspect");
    }
    assert!(program.good("man").contains(".TH ocssd"), "no manual page");
    assert!(program.good("man run").contains("clock"), "the page of run does not name its options");
    assert_eq!(program.run("man nothing").code, 2);
}

#[test]
fn an_image_keeps_what_was_done_to_it() {
    let program = Program::new();
    program.good("format a.img --drive tiny");
    assert_eq!(program.run("format a.img --drive tiny").code, 2, "an image was replaced unasked");
    assert!(program.run("format a.img --drive tiny").err.contains("--replace"));
    program.good("target create a.img db --units pu:0-1");
    assert!(program.run("target create a.img other --units pu:1").err.contains("\"db\""));
    assert_eq!(program.json("target list a.img --json")[0]["units"], "pu:0-1");

    let elsewhere =
        program.run("run --quiet --drive a.img --name=a --rw=read --ocssd=target=db --ocssd=place=pu:2-3");
    assert_eq!(elsewhere.code, 2, "a place was ignored: {}", elsewhere.out);
    assert!(elsewhere.err.contains("lies on pu:0-1, but pu:2-3 was asked for"), "{}", elsewhere.err);

    let job = "--name=a --bs=16k --size=256k --ocssd=target=db";
    program.good(&format!("run --quiet --drive a.img {job} --rw=write"));
    let chunks = program.json("inspect a.img chunks --json");
    let written: u64 =
        chunks.as_array().expect("a list of chunks").iter().filter_map(|chunk| chunk["wp"].as_u64()).sum();
    assert_eq!(written, 64, "256 KiB are 64 sectors: {chunks}");

    let stamp = program.good("inspect a.img chunks");
    assert_eq!(program.good("inspect a.img chunks"), stamp, "looking changed the image");
    let unnamed = program.run("run --quiet --drive a.img --name=a --rw=randread --bs=4k --size=64k");
    assert!(unnamed.err.contains("target=db"), "a lease of the image was met, and it said: {}", unnamed.err);

    program.good("target remove a.img db");
    assert_eq!(program.json("inspect a.img targets --json"), serde_json::json!([]));
    program.good("format a.img --drive tiny --replace");
    assert_eq!(program.json("inspect a.img chunks --json"), serde_json::json!([]), "a new image is empty");
}

#[test]
fn a_result_file_has_the_keys_of_fio() {
    let program = Program::new();
    let printed = program
        .json("run --quiet --json --results kept --drive tiny --name=a --rw=randread --bs=4k --size=1m");
    let text = std::fs::read_to_string(program.path("kept/a.json")).expect("the result is kept");
    let kept: serde_json::Value = serde_json::from_str(&text).expect("the result file is JSON");
    assert_eq!(printed, kept, "what is printed and what is kept differ");
    for key in ["fio version", "timestamp", "time", "jobs"] {
        assert!(kept.get(key).is_some(), "the key {key:?} is missing");
    }
    let job = &kept["jobs"][0];
    for key in
        ["jobname", "groupid", "error", "elapsed", "job options", "read", "write", "trim", "iodepth_level"]
    {
        assert!(job.get(key).is_some(), "the job's key {key:?} is missing");
    }
    assert_eq!(job["read"]["total_ios"], 256);
    assert!(job["read"]["clat_ns"]["bins"].is_object(), "json+ has bins");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let program = Program::new();
    let mut child = program
        .command("inspect westlake chunks --all")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    let mut first = [0; 64];
    let read = child.stdout.take().expect("it is piped").read(&mut first).expect("something is printed");
    assert!(read > 0, "nothing was printed");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "ended with {} and said: {said}", output.status);
}

#[test]
fn an_image_is_whole_after_its_run_was_killed() {
    let program = Program::new();
    program.good("format a.img --drive qemu");
    let job = "--name=a --rw=write --bs=64k --iodepth=16 --size=1g --time_based --runtime=600";
    let mut child = program
        .command(&format!("run --quiet --clock wall --drive a.img {job}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built for this test");
    // 512 bytes a block: wait for 2 MiB of content, as long as the run lasts.
    while program.path("a.img").metadata().expect("the image exists").blocks() < 4096 {
        assert!(
            child.try_wait().expect("the child is ours").is_none(),
            "the run ended before it wrote 2 MiB"
        );
        std::thread::yield_now();
    }
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    let chunks = program.json("inspect a.img chunks --json");
    let written = |chunk: &serde_json::Value| chunk["wp"].as_u64().unwrap_or_default();
    let total: u64 = chunks.as_array().expect("a list of chunks").iter().map(written).sum();
    assert!(
        total > 0 && total.is_multiple_of(4),
        "{total} sectors were written, in units of ws_min = 4: {chunks}"
    );
    program.good("run --quiet --drive a.img --name=b --rw=randread --bs=4k --size=1m");
}
