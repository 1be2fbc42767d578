//! Databases on a drive that `ocssd serve` holds: RocksDB's programs here, the drive in another process.
//!
//! Deliberately not here: files without RocksDB on such a drive (`cli/tests/cli/served_store.rs`).

use super::program::{Program, Rocks};
use super::{SMALL, kill};
use crate::ci::served::Served;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Keys that are reported before `db_bench` is killed.
const REPORTED: u64 = 4_000;

/// Runs it, with the program whose server is to be used.
///
/// Errors: a key is missing, or what cannot be is not told in words.
pub fn run(rocks: &Rocks, ocssd: &Path) -> Result<()> {
    let mut format = Command::new(ocssd);
    let image = rocks.path("served.ocssd");
    format.arg("format").arg(&image).arg("--drive").arg(rocks.path("drive.toml"));
    crate::process::run(&mut format)?;
    let (server, store) = serve(rocks, ocssd, &image)?;
    super::on_an_image(rocks, &format!("{store},placement=vertical"))?;
    let bench = rocks.program(&Program::DbBench, &store).args(SMALL);
    let threads = ["--num=10000", "--threads=4", "--use_existing_db=1", "--benchmarks=readwhilewriting"];
    bench.args(threads).succeeds()?;
    let counted = kill::count_after(rocks, &store, REPORTED)?;
    ensure!(counted >= REPORTED, "{REPORTED} keys were put before the kill, and {counted} are there");
    println!("killed after {REPORTED} reported puts on a served drive: {counted} keys are there");
    gone(rocks, &store, server)?;
    let (server, store) = serve(rocks, ocssd, &image)?;
    let told = rocks.program(&Program::Ldb, &store).args(["checkconsistency"]).succeeds()?;
    ensure!(told.contains("OK"), "after a kill of the server ldb should say OK, but said:\n{told}");
    server.stop()?;
    tables(rocks, ocssd)
}

/// The target is the server's too: the same, and whoever is killed leaves nothing behind.
fn tables(rocks: &Rocks, ocssd: &Path) -> Result<()> {
    let mut format = Command::new(ocssd);
    let image = rocks.path("tables.ocssd");
    format.arg("format").arg(&image).arg("--drive").arg(rocks.path("drive.toml"));
    crate::process::run(&mut format)?;
    let image = image.display().to_string();
    let target = "t=lightlsm:placement=vertical";
    let arguments = ["--nvme-tcp", "127.0.0.1:0", "--drive", &image, "--export", target];
    let (server, store) = serve_at(rocks, ocssd, &arguments)?;
    let store = format!("{store},target=served");
    super::on_an_image(rocks, &store)?;
    let counted = kill::count_after(rocks, &store, REPORTED)?;
    ensure!(counted >= REPORTED, "{REPORTED} keys were put before the kill, and {counted} are there");
    println!("killed after {REPORTED} reported puts on served tables: {counted} keys are there");
    gone(rocks, &store, server)?;
    let (server, store) = serve_at(rocks, ocssd, &arguments)?;
    let store = format!("{store},target=served");
    let told = rocks.program(&Program::Ldb, &store).args(["checkconsistency"]).succeeds()?;
    ensure!(told.contains("OK"), "after a kill of the server ldb should say OK, but said:\n{told}");
    server.stop().map(|_| ())
}

/// The image is served beside a small export; the store that lies there.
fn serve(rocks: &Rocks, ocssd: &Path, image: &Path) -> Result<(Served, String)> {
    let (image, drive) = (image.display().to_string(), rocks.path("drive.toml").display().to_string());
    let arguments = ["--nvme-tcp", "127.0.0.1:0", "--drive", &drive, "--raw", &image];
    serve_at(rocks, ocssd, &arguments)
}

/// A server, and the store that is reached there.
fn serve_at(rocks: &Rocks, ocssd: &Path, arguments: &[&str]) -> Result<(Served, String)> {
    let (server, said) = Served::start(ocssd, arguments)?;
    let address = said.split_once("\"addresses\": [").and_then(|(_, rest)| rest.split('"').nth(1));
    let address = address.context("the server did not say where it listens")?;
    let tails = rocks.path("served");
    Ok((server, format!("drive=nvme-tcp://{address},tails={}", tails.display())))
}

/// The server is killed while `db_bench` writes: RocksDB is told, and ends.
fn gone(rocks: &Rocks, store: &str, server: Served) -> Result<()> {
    let bench = rocks.program(&Program::DbBench, store).args(SMALL);
    let bench = bench.args(["--benchmarks=overwrite", "--num=100000000", "--use_existing_db=1"]);
    let told = kill::told_after(bench.start()?, REPORTED, || server.kill())?;
    for part in ["IO error", "the connection to the server at", "was lost"] {
        ensure!(
            told.contains(part),
            "\"{part}\" should be told of a server that is gone, but db_bench said:\n{told}"
        );
    }
    Ok(())
}
