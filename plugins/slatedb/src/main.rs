//! SlateDB on an open-channel drive, and on memory for comparison: what puts, gets and a scan take.
//!
//! ```console
//! $ cargo run --release --manifest-path plugins/slatedb/Cargo.toml -- drive=db.ocssd,create=westlake 100000
//! $ cargo run --release --manifest-path plugins/slatedb/Cargo.toml -- memory 100000
//! ```
//!
//! Deliberately not here: keys of any size or skew; SlateDB's caches of blocks and objects, which would hide the drive.

use anyhow::{Context, Result, bail, ensure};
use ocssd_object_store::{DriveObjects, Store};
use ocssd_table_store::StoreOptions;
use slatedb::Db;
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::memory::InMemory;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a value (chosen: as the experiments with RocksDB).
const VALUE_BYTES: usize = 1_024;
/// Bytes of SlateDB's tables of level 0 (chosen: of 64 MiB, its own, a short run would keep all in memory).
const TABLE_BYTES: usize = 4 << 20;
/// Gets, at most.
const GETS: u64 = 20_000;
/// Puts that wait to be durable one by one, at most.
const DURABLE_PUTS: u64 = 200;
const USAGE: &str = "usage: ocssd-slatedb memory|STORE [KEYS]\n\
    STORE: a drive, as drive=db.ocssd,create=westlake,placement=vertical,clock=wall or drive=cidr20,target=table-block,over=pblk\n\
    KEYS: keys with values of 1 KiB; 100000 without";

fn main() -> ExitCode {
    let Err(error) = benchmark() else { return ExitCode::SUCCESS };
    // The sentence; where in this program it came from helps nobody.
    eprintln!("ocssd-slatedb: {error:#}");
    ExitCode::FAILURE
}

fn benchmark() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(place) = arguments.next().filter(|place| !place.starts_with('-')) else { bail!("{USAGE}") };
    let keys = arguments.next().map_or(Ok(100_000), |text| text.parse::<u64>());
    let keys =
        keys.ok().filter(|&keys| keys > 0).with_context(|| format!("KEYS is a number from 1\n{USAGE}"))?;
    ensure!(arguments.next().is_none(), "{USAGE}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if place == "memory" {
        return runtime.block_on(run(Arc::new(InMemory::new()), keys));
    }
    let store = Store::open(&StoreOptions::parse(&place)?)?;
    store.notes().iter().for_each(|note| println!("{note}"));
    runtime.block_on(run(Arc::new(DriveObjects::new(Arc::clone(&store))?), keys))?;
    if let Some(media) = store.report()?.first() {
        println!("{media}");
    }
    store.close()?;
    Ok(())
}

/// Puts all keys, gets some, and reads all of them in order; every value is looked at.
async fn run(objects: Arc<dyn ObjectStore>, keys: u64) -> Result<()> {
    let settings = Settings { l0_sst_size_bytes: TABLE_BYTES, ..Settings::default() };
    let db = Db::builder("db", objects).with_settings(settings).with_db_cache_disabled().build().await?;
    let began = Instant::now();
    for number in 0..keys {
        db.put(key(shuffled(number, keys)), value(shuffled(number, keys))).await?;
    }
    // Out of memory, so that gets read the drive.
    db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    tell("puts, flushed at the end", keys, began);
    let began = Instant::now();
    for number in 0..DURABLE_PUTS.min(keys) {
        db.put(key(number), value(number)).await?;
        db.flush().await?;
    }
    tell("puts, each flushed", DURABLE_PUTS.min(keys), began);
    let began = Instant::now();
    for number in 0..GETS.min(keys) {
        let asked = shuffled(number * 7, keys);
        let found = db.get(key(asked)).await?;
        ensure!(found.as_deref() == Some(&*value(asked)), "key {asked} has another value, or none");
    }
    tell("gets", GETS.min(keys), began);
    let (began, mut count) = (Instant::now(), 0);
    let mut all = db.scan::<std::ops::RangeFull>(..).await?;
    while let Some(entry) = all.next().await? {
        ensure!(
            entry.key == key(count) && entry.value == value(count),
            "key {count} is missing, or another's"
        );
        count += 1;
    }
    ensure!(count == keys, "{count} of {keys} keys were found");
    tell("records in order", keys, began);
    db.close().await?;
    Ok(())
}

/// Each number below `keys` once: a step that shares no factor with it.
fn shuffled(number: u64, keys: u64) -> u64 {
    let mut step = (keys / 2 + keys / 8) | 1;
    while greatest_common_divisor(step, keys) > 1 {
        step += 2;
    }
    number % keys * step % keys
}

const fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(VALUE_BYTES / 8)
}

fn tell(what: &str, count: u64, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {count} in {seconds:.2} s, {:.0} a second", count as f64 / seconds);
}
