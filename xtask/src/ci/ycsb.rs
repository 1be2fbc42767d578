//! YCSB's own client and core workloads on a served key-value target, by the binding in `plugins/ycsb`.
//!
//! Each of A to F loads a table of its own and runs on it; contents are what YCSB can tell from key and field, so it checks what it
//! reads. Then the server is killed, and all that was loaded is read again. Deliberately not here: rates, which experiments measure
//! in virtual time.

use super::packages;
use super::served::Served;
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Records of each table, and operations on them (chosen: a second or two of each).
const RECORDS: u64 = 1_000;
const OPERATIONS: u64 = 4_000;
/// Clients at once.
const THREADS: u64 = 8;

/// YCSB's workloads as its authors define them: `workloads/workloada` to `workloadf`.
const WORKLOADS: [(&str, &[&str]); 6] = [
    ("a", &["readproportion=0.5", "updateproportion=0.5"]),
    ("b", &["readproportion=0.95", "updateproportion=0.05"]),
    ("c", &["readproportion=1", "updateproportion=0"]),
    (
        "d",
        &["readproportion=0.95", "updateproportion=0", "insertproportion=0.05", "requestdistribution=latest"],
    ),
    (
        "e",
        &[
            "readproportion=0",
            "updateproportion=0",
            "scanproportion=0.95",
            "insertproportion=0.05",
            "maxscanlength=100",
        ],
    ),
    ("f", &["readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5"]),
];

/// Runs YCSB.
///
/// Errors: it or the binding cannot be had, an operation fails, or a content is not what was stored.
pub fn run(workspace: &Workspace) -> Result<()> {
    packages::ensure_installed(packages::YCSB_BUILD)?;
    let program = workspace.program()?;
    let folder = workspace.target.join("ycsb");
    std::fs::create_dir_all(&folder)?;
    let classes = build(workspace, &folder)?;
    let image = folder.join("drive.img");
    let mut format = Command::new(&program);
    format.args(["format", "--replace", "--drive", "qemu"]).arg(&image);
    process::run(&mut format)?;
    let drive = image.to_str().context("the target folder has a name in UTF-8")?;
    let arguments = ["--drive", drive, "--target", "kv", "--resp", "tcp:127.0.0.1:0"];
    let (served, said) = Served::start(&program, &arguments)?;
    for (name, words) in WORKLOADS {
        for phase in ["-load", "-t"] {
            let told = Client { classes: &classes, port: port(&said)?, table: name, phase }.run(words)?;
            let expected = if phase == "-load" { RECORDS } else { OPERATIONS };
            judge(&told, expected).with_context(|| format!("YCSB's workload {name}, {phase}:\n{told}"))?;
        }
        println!("YCSB {name}: {RECORDS} records, {OPERATIONS} operations, none failed");
    }
    served.kill()?;
    let (served, said) = Served::start(&program, &arguments)?;
    for (name, _) in WORKLOADS {
        let client = Client { classes: &classes, port: port(&said)?, table: name, phase: "-t" };
        let told =
            client.run(&["readproportion=1", "updateproportion=0", "requestdistribution=sequential"])?;
        judge(&told, OPERATIONS)
            .with_context(|| format!("what YCSB's workload {name} left, after a kill:\n{told}"))?;
    }
    println!("after a kill every record of the six tables is what was stored");
    served.stop()?;
    std::fs::remove_file(image)?;
    Ok(())
}

/// Fetches YCSB's core and compiles the binding: the class path of both.
fn build(workspace: &Workspace, folder: &Path) -> Result<String> {
    let plugin = workspace.root.join("plugins/ycsb");
    let (jars, classes) = (folder.join("lib"), folder.join("classes"));
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(plugin.join("pom.xml")).arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", jars.display()));
    process::run(&mut maven).context("YCSB's core could not be fetched")?;
    std::fs::create_dir_all(&classes)?;
    let mut sources: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(plugin.join("src/main/java/ocssd/ycsb"))? {
        sources.push(entry?.path());
    }
    let mut javac = Command::new("javac");
    javac.args(["-Xlint:all", "-Werror", "-d"]).arg(&classes);
    javac.args(["-cp", &format!("{}/*", jars.display())]).args(sources);
    process::run(&mut javac)?;
    Ok(format!("{}:{}/*", classes.display(), jars.display()))
}

/// The port that a server says it found.
fn port(said: &str) -> Result<&str> {
    let (_, behind) = said.split_once("tcp:127.0.0.1:").context("the server says where it listens")?;
    Ok(behind.split('"').next().unwrap_or_default())
}

/// YCSB's client on a table.
struct Client<'a> {
    classes: &'a str,
    port: &'a str,
    table: &'a str,
    /// `-load` or `-t`.
    phase: &'a str,
}

impl Client<'_> {
    fn run(&self, words: &[&str]) -> Result<String> {
        let mut java = Command::new("java");
        java.args(["-cp", self.classes, "site.ycsb.Client", self.phase, "-db", "ocssd.ycsb.RespClient"]);
        java.args(["-threads", &THREADS.to_string()]);
        for word in [
            "workload=site.ycsb.workloads.CoreWorkload",
            "requestdistribution=zipfian",
            // Contents are told from key and field, and what is read is compared.
            "dataintegrity=true",
            "fieldlengthdistribution=constant",
            &format!("recordcount={RECORDS}"),
            &format!("operationcount={OPERATIONS}"),
            &format!("table={}", self.table),
            &format!("resp.port={}", self.port),
        ]
        .into_iter()
        .chain(words.iter().copied())
        {
            java.args(["-p", word]);
        }
        process::output(&mut java)
    }
}

/// Looks through what YCSB tells: so many operations, all of which succeeded, and every content that was read as it was stored.
fn judge(told: &str, expected: u64) -> Result<()> {
    let (mut done, mut read, mut verified) = (0, 0, 0);
    for line in told.lines() {
        let cells: Vec<&str> = line.split(", ").collect();
        let [kind, name, count] = cells[..] else { continue };
        ensure!(!kind.ends_with("-FAILED]"), "operations failed: {line}");
        let Some(status) = name.strip_prefix("Return=") else { continue };
        ensure!(status == "OK", "operations ended with {status}: {line}");
        let count: u64 = count.parse().with_context(|| format!("no count: {line}"))?;
        match kind {
            "[VERIFY]" => verified = count,
            "[READ]" => (read, done) = (count, done + count),
            "[INSERT]" | "[SCAN]" => done += count,
            // One of YCSB's read-modify-writes is a read and an update; those of A and B are told apart by what is read.
            "[UPDATE]" => done += if told.contains("[READ-MODIFY-WRITE]") { 0 } else { count },
            _ => bail!("an operation nobody asked for: {line}"),
        }
    }
    ensure!(done == expected, "{done} operations were done, and {expected} asked for");
    ensure!(verified == read, "of {read} records that were read {verified} are what was stored");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ycsb_tells_is_judged() {
        let sound = "[OVERALL], RunTime(ms), 961\n[READ], Return=OK, 7\n[VERIFY], Return=OK, 7\n[UPDATE], Return=OK, 3\n";
        judge(sound, 10).unwrap();
        let changed = format!("{sound}[READ-MODIFY-WRITE], Operations, 3\n");
        judge(&changed, 7).unwrap();
        for (told, expected, says) in [
            (sound.to_owned(), 11, "10 operations were done"),
            (
                sound.replace("VERIFY], Return=OK, 7", "VERIFY], Return=OK, 6"),
                10,
                "7 records that were read 6",
            ),
            (sound.replace("VERIFY], Return=OK", "VERIFY], Return=UNEXPECTED_STATE"), 10, "UNEXPECTED_STATE"),
            (format!("{sound}[SCAN-FAILED], Operations, 1\n"), 10, "operations failed"),
            (String::new(), 1, "0 operations"),
        ] {
            let error = judge(&told, expected).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
