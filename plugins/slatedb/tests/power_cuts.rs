//! SlateDB, unmodified, on a drive that loses its power again and again: after each restart its keys are those after one of the
//! writes since the last flush that was answered.
//!
//! Drawn puts, deletions and flushes; SlateDB's own compactor and garbage collector run beside. The power goes in the middle of
//! a drawn request of the store, or the database is closed. Where a cut meets SlateDB differs from run to run, as its tasks do;
//! what is drawn does not.

use ocssd_base::{Nanos, Prng};
use ocssd_drive::DriveSpec;
use ocssd_engine::{Caller, Clock, DriveClock, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_object_store::DriveObjects;
use ocssd_table_store::{AfterCut, SharedDrive, Store};
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry::{self, MakeOf};
use slatedb::config::{
    CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};
use slatedb::{Db, Error};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Chunks of 256 KiB on four units.
const DRIVE: &str = "preset = \"westlake\"
payload = \"bytes\"
groups = 2
pus_per_group = 2
chunks_per_pu = 320
sectors_per_chunk = 64
ws_min = 8
ws_opt = 8
mw_cunits = 16
[media]
planes = 1
sectors_per_page = 8
";
/// Targets, with their options.
const TARGETS: [(&str, &[(&str, &str)]); 2] =
    [("lightlsm", &[("tables_max", "512")]), ("table-block", &[("tables_max", "512"), ("over", "pblk")])];
/// Requests until the power goes, at most: an opening takes dozens.
const REQUESTS_MAX: u64 = 600;
/// Cuts that one drive goes through.
const CUTS: usize = 8;
/// Drives of each target.
const SEEDS: std::ops::Range<u64> = 0..3;
/// Times the database is closed instead, of a hundred.
const CLOSES_PERCENT: u64 = 10;
/// Keys.
const KEYS: u64 = 150;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn fresh() -> Flash {
    let spec = DriveSpec::from_toml(DRIVE, "the test's drive").expect("settings");
    Flash::format(spec.config).expect("a drive")
}

/// The drive's time passes on from mount to mount.
fn mount(mut flash: Flash, now: Nanos, (kind, options): (&str, &[(&str, &str)])) -> Arc<Store> {
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    clock.wait_until(now);
    let geometry = flash.config().geometry.clone();
    let manager = MediaManager::new(&geometry);
    let named = NamedTarget::named(kind, &UnitSelection::All, &geometry, &manager, registry::find);
    let named = named.expect("there is such a target");
    let MakeOf::Table(make) = registry::find(kind).expect("it is built in").make_of() else {
        panic!("{kind} has tables")
    };
    let options: Vec<(String, String)> =
        options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut spec = named.spec();
    spec.options = &options;
    let target = make(&mut caller, &spec).expect("it mounts what it left").target;
    let drive = SharedDrive::new(flash, DriveClock::Virtual(clock), buffers, target, None);
    Store::mount(drive, None, Vec::new()).expect("what lies there is a store")
}

/// Small tables, so that levels are compacted; files that are done with go at once; a call that fails is not made again.
fn settings() -> Settings {
    let soon = Some(GarbageCollectorDirectoryOptions {
        interval: Some(Duration::from_millis(20)),
        min_age: Duration::ZERO,
        dry_run: false,
    });
    let collector = GarbageCollectorOptions {
        manifest_options: soon,
        wal_options: soon,
        compacted_options: soon,
        compactions_options: soon,
        ..GarbageCollectorOptions::default()
    };
    let compactor =
        CompactorOptions { poll_interval: Duration::from_millis(20), ..CompactorOptions::default() };
    Settings {
        flush_interval: None,
        l0_sst_size_bytes: 64 << 10,
        compactor_options: Some(compactor),
        garbage_collector_options: Some(collector),
        object_store_max_retries: Some(0),
        ..Settings::default()
    }
}

/// What a restart may find.
struct Promised {
    /// After the last write that is known to be durable.
    durable: Content,
    /// Writes since, in order.
    since: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Believes that a write is durable once it is answered, which SlateDB does not promise.
    takes_answers_for_durable: bool,
    /// Flushes that were answered.
    flushes: u64,
    /// Restarts that found keys, and lacked some write.
    torn: u64,
}

fn apply(content: &mut Content, (key, value): &(Vec<u8>, Option<Vec<u8>>)) {
    match value {
        Some(value) => content.insert(key.clone(), value.clone()),
        None => content.remove(key),
    };
}

impl Promised {
    /// All writes are durable.
    fn flushed(&mut self) {
        self.flushes += 1;
        for write in self.since.drain(..) {
            apply(&mut self.durable, &write);
        }
    }

    /// What was found is the content after one of the writes, and durable from now on.
    fn meet(&mut self, found: Content) -> Result<(), String> {
        let mut content = self.durable.clone();
        let least = if self.takes_answers_for_durable { self.since.len() } else { 0 };
        for written in 0..=self.since.len() {
            if written > 0 {
                apply(&mut content, &self.since[written - 1]);
            }
            if written >= least && content == found {
                self.torn += u64::from(written < self.since.len() && !found.is_empty());
                self.since.clear();
                self.durable = found;
                return Ok(());
            }
        }
        Err(format!(
            "{} keys were found, which are not those after any of {} writes since a flush left {}",
            found.len(),
            self.since.len(),
            self.durable.len()
        ))
    }
}

async fn all_of(db: &Db) -> Result<Content, Error> {
    let (mut content, mut found) = (Content::new(), db.scan::<std::ops::RangeFull>(..).await?);
    while let Some(entry) = found.next().await? {
        content.insert(entry.key.to_vec(), entry.value.to_vec());
    }
    Ok(content)
}

/// Writes and flushes until the drive is off or `calls` are made.
async fn draw(db: &Db, promised: &mut Promised, prng: &mut Prng, calls: u64) -> Result<(), Error> {
    for _ in 0..calls {
        if prng.below(12) == 0 {
            db.flush().await?;
            promised.flushed();
            continue;
        }
        let key = format!("key {:04}", prng.below(KEYS)).into_bytes();
        let value = (prng.below(8) > 0).then(|| {
            format!("{:016x}", prng.below(u64::MAX)).repeat(1 + prng.below(250) as usize).into_bytes()
        });
        promised.since.push((key.clone(), value.clone()));
        match value {
            Some(value) => db.put(key, value).await?,
            None => db.delete(key).await?,
        };
    }
    Ok(())
}

/// Opens the database, holds it against what was promised, and goes on. `Ok(false)` if the drive lost its power.
async fn session(store: &Arc<Store>, promised: &mut Promised, prng: &mut Prng) -> Result<bool, String> {
    let is_off = || store.drive().list().is_err();
    let failed = |error: Error| if is_off() { Ok(false) } else { Err(format!("SlateDB failed: {error}")) };
    let objects = match DriveObjects::new(Arc::clone(store)) {
        Ok(objects) => objects,
        Err(_) if is_off() => return Ok(false),
        Err(error) => return Err(format!("no objects: {error}")),
    };
    let db = match Db::builder("db", Arc::new(objects)).with_settings(settings()).build().await {
        Ok(db) => db,
        Err(error) => return failed(error),
    };
    match all_of(&db).await {
        Ok(found) => promised.meet(found)?,
        Err(error) => return failed(error),
    }
    let closes = prng.below(100) < CLOSES_PERCENT;
    let calls = if closes { prng.below(200) } else { u64::MAX };
    if let Err(error) = draw(&db, promised, prng, calls).await {
        return failed(error);
    }
    if let Err(error) = db.close().await {
        return failed(error);
    }
    promised.flushed();
    Ok(true)
}

/// One drive through all its cuts. Returns the first promise that was broken.
fn life(
    seed: u64,
    target: (&str, &[(&str, &str)]),
    takes_answers_for_durable: bool,
) -> Result<Promised, String> {
    let mut prng = Prng::new(seed);
    let (mut flash, mut now) = (fresh(), Nanos::ZERO);
    let (durable, since) = (Content::new(), Vec::new());
    let mut promised = Promised { durable, since, takes_answers_for_durable, flushes: 0, torn: 0 };
    for cut in 0..CUTS {
        let store = mount(flash, now, target);
        store.drive().cut_power_after(1 + prng.below(REQUESTS_MAX), AfterCut::Refuse).expect("no bug");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let ended = runtime.block_on(session(&store, &mut promised, &mut prng));
        // Tasks of SlateDB that are left end with their runtime.
        drop(runtime);
        let is_closed =
            ended.map_err(|broken| format!("{} seed {seed}, before cut {cut}: {broken}", target.0))?;
        if is_closed {
            // The power may go in it: everything was durable before.
            let _ = store.close();
        }
        let left = store.drive().fork().expect("no bug");
        (flash, now) = left.expect("a drive in memory can be forked");
    }
    println!(
        "{} seed {seed}: {} flushes, {} torn ends in {CUTS} cuts",
        target.0, promised.flushes, promised.torn
    );
    Ok(promised)
}

#[test]
fn keys_are_those_after_a_write_since_the_last_flush() {
    for target in TARGETS {
        let (mut flushes, mut torn) = (0, 0);
        for seed in SEEDS {
            let lived = life(seed, target, false).unwrap_or_else(|broken| panic!("{broken}"));
            (flushes, torn) = (flushes + lived.flushes, torn + lived.torn);
        }
        assert!(flushes > 0 && torn > 0, "{}: {flushes} flushes and {torn} torn ends show little", target.0);
    }
}

#[test]
fn a_promise_that_slatedb_does_not_make_is_seen_to_be_broken() {
    let broken = SEEDS.into_iter().find_map(|seed| life(seed, TARGETS[0], true).err());
    assert!(broken.is_some(), "this test would not see what is missing");
}
