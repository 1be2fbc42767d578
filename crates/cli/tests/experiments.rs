//! Experiments, small: they run, keep their files, report again without running, and have the shape the papers claim.

use ocssd_report::PaperTable;
use std::path::PathBuf;
use std::process::Command;

/// A folder of one experiment, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("exp-{name}-{}", std::process::id()));
        Self(folder)
    }

    fn ocssd(&self, arguments: &[&str]) -> (bool, String) {
        let folder = self.0.to_str().expect("the build directory has a plain name");
        let output = Command::new(env!("CARGO_BIN_EXE_ocssd"))
            .args(arguments)
            .args(["--out", folder])
            .output()
            .expect("the program was built for this test");
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), text.concat())
    }

    /// Runs it small, and reads its rows.
    fn run(&self, id: &str) -> PaperTable {
        let (is_good, text) = self.ocssd(&["experiment", "run", id, "--small", "--quiet"]);
        assert!(is_good, "{id}: {text}");
        assert!(text.contains("numbers compared with the paper's"), "{id}: {text}");
        for name in ["ours.csv", "run.json", "report.html", "figure.svg", "figure.png"] {
            assert!(self.0.join(name).is_file(), "{id}: {name} was not kept");
        }
        self.rows()
    }

    fn rows(&self) -> PaperTable {
        let text = std::fs::read_to_string(self.0.join("ours.csv")).expect("the run kept its rows");
        PaperTable::load(&text).expect("our rows read as a paper's do")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left in the build directory, which `cargo clean` empties.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn uniform_writes_amplify_as_theory_says_and_streams_pay() {
    use ocssd_report::closed_form::{Utilisation, fifo_write_amplification};
    let folder = Folder::new("wa");
    let ours = folder.run("wa-theory");
    let get = |model, skew, metric| {
        ours.value(&[("model", model), ("skew", skew), ("metric", metric)]).expect("the small run has it")
    };
    let effective = get("greedy", "uniform", "effective_utilisation");
    let theory = fifo_write_amplification(Utilisation::new(effective).expect("a fraction"));
    let measured = get("greedy", "uniform", "write_amplification");
    assert!((measured / theory - 1.0).abs() < 0.05, "{measured} measured, {theory} in theory at {effective}");
    let one = get("greedy", "90/10", "write_amplification");
    let two = get("cost_benefit_gc_stream", "90/10", "write_amplification");
    assert!(two < 0.8 * one, "one stream {one}, two {two}");
}

#[test]
fn units_of_their_own_keep_reads_from_writes_and_a_report_needs_no_run() {
    let folder = Folder::new("f8");
    let ours = folder.run("nvmw18-f3");
    let p99 = |device, reads| {
        ours.value(&[("device", device), ("reads_percent", reads), ("percentile", "99")])
            .expect("the small run has it")
    };
    let (alone, apart) = (p99("ocssd", "100"), p99("ocssd", "50"));
    assert!(apart <= 1.5 * alone, "alone {alone} us, beside writes on other units {apart} us");
    for device in ["ocssd_shared", "nvme"] {
        let (alone, shared) = (p99(device, "100"), p99(device, "50"));
        assert!(shared >= 8.0 * alone, "{device}: alone {alone} us, beside writes {shared} us");
    }
    std::fs::remove_file(folder.0.join("report.html")).expect("the run wrote it");
    let (is_good, text) = folder.ocssd(&["experiment", "report", "fast17-f8"]);
    assert!(is_good && folder.0.join("report.html").is_file(), "{text}");
    let page = std::fs::read_to_string(folder.0.join("report.html")).expect("it was just written");
    assert!(
        page.contains("ocssd experiment run fast17-f8 --small --seed 1"),
        "the page says how to run it again"
    );
}

#[test]
fn a_report_without_a_run_and_an_unknown_name_say_what_to_do() {
    let folder = Folder::new("none");
    let (is_good, text) = folder.ocssd(&["experiment", "report", "fast17-f8"]);
    assert!(!is_good && text.contains("run it first: ocssd experiment run fast17-f8"), "{text}");
    let (is_good, text) = folder.ocssd(&["experiment", "run", "fast17-f9"]);
    assert!(!is_good && text.contains("the experiments are: wa-theory"), "{text}");
}

#[test]
fn reads_reach_the_drive_and_small_sequential_ones_find_their_page() {
    let folder = Folder::new("f4");
    let ours = folder.run("fast17-f4");
    let rate = |pattern, size, depth| {
        let keys =
            [("metric", "throughput"), ("pattern", pattern), ("block_kib", size), ("queue_depth", depth)];
        ours.value(&keys).expect("the small run has it")
    };
    let largest = rate("sequential_read", "256", "16");
    assert!((3.6..4.6).contains(&largest), "{largest} GB/s");
    let (sequential, random) = (rate("sequential_read", "4", "1"), rate("random_read", "4", "1"));
    assert!(sequential > 1.5 * random, "{sequential} against {random} GB/s");
}

#[test]
fn writes_to_fewer_units_leave_reads_faster() {
    let folder = Folder::new("f5");
    let ours = folder.run("fast17-f5");
    let rate = |active| {
        let keys = [
            ("panel", "a"),
            ("metric", "throughput"),
            ("series", "read"),
            ("load", "mixed"),
            ("active_write_pus", active),
            ("layout", "baseline"),
        ];
        ours.value(&keys).expect("the small run has it")
    };
    assert!(rate("4") > rate("128"), "4 units {} GB/s, 128 units {}", rate("4"), rate("128"));
}

#[test]
fn a_small_buffer_writes_more_slowly_beyond_a_socket() {
    let folder = Folder::new("rootcause");
    let ours = folder.run("ksc17-rootcause");
    let rate = |factor, threads| {
        ours.value(&[("buffer_mib", "32"), ("factor", factor), ("threads", threads)])
            .expect("the small run has it")
    };
    let change = |factor| rate(factor, "36") / rate(factor, "18") - 1.0;
    assert!(change("baseline") < -0.15, "with the host: {:+.3}", change("baseline"));
    assert!(change("no_host").abs() < 0.05, "without: {:+.3}", change("no_host"));
}
