//! Files on `lightlsm` while the drive loses its power, again and again: after each mount everything is there that was promised.
//!
//! Drawn calls, as RocksDB makes them: logs that grow and are synced, tables that are written beside each other and published,
//! renames over files, deletions, logs made shorter. The power goes in the middle of a drawn request, or the store is closed.
//! What the next store finds is held against a naive model of the promises.

mod drawn;
mod promised;

use drawn::Drawn;
use ocssd_base::{Nanos, Prng};
use ocssd_drive::DriveSpec;
use ocssd_engine::{Caller, Clock, DriveClock, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_table_store::{AfterCut, SharedDrive, Store};
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry::{self, MakeOf};
use promised::{Promise, Promised};
use std::sync::Arc;

/// Chunks of 256 KiB on four units: files are several chunks, and some rounds write every chunk again.
const DRIVE: &str = "preset = \"westlake\"
payload = \"bytes\"
groups = 2
pus_per_group = 2
chunks_per_pu = 48
sectors_per_chunk = 64
ws_min = 8
ws_opt = 8
mw_cunits = 16
[media]
planes = 1
sectors_per_page = 8
";
/// Requests until the power goes, at most: from the mount's own to dozens of files.
const REQUESTS_MAX: u64 = 250;
/// Cuts that one drive goes through.
const CUTS: usize = 25;
/// Drives; each has cuts of its own.
const SEEDS: std::ops::Range<u64> = 0..6;
/// Times the store is closed instead, of a hundred.
const CLOSES_PERCENT: u64 = 10;

fn fresh() -> Flash {
    let spec = DriveSpec::from_toml(DRIVE, "the test's drive").expect("settings");
    Flash::format(spec.config).expect("a drive")
}

/// The drive's time passes on from mount to mount.
fn mount(mut flash: Flash, now: Nanos) -> Arc<Store> {
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    clock.wait_until(now);
    let geometry = flash.config().geometry.clone();
    let manager = MediaManager::new(&geometry);
    let named = NamedTarget::named("lightlsm", &UnitSelection::All, &geometry, &manager, registry::find);
    let named = named.expect("there is such a target");
    let MakeOf::Table(make) = registry::find("lightlsm").expect("it is built in").make_of() else {
        panic!("lightlsm has tables")
    };
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let target = make(&mut caller, &named.spec()).expect("it mounts what it left").target;
    let drive = SharedDrive::new(flash, DriveClock::Virtual(clock), buffers, target, None);
    Store::mount(drive, None, Vec::new()).expect("what lies there is a store")
}

/// One drive through all its cuts. Returns the first promise that was broken.
fn life(seed: u64, promise: Promise) -> Result<(), String> {
    let mut prng = Prng::new(seed);
    let (mut flash, mut now) = (fresh(), Nanos::ZERO);
    let mut promised = Promised::new(promise);
    for cut in 0..CUTS {
        let store = mount(flash, now);
        promised.meet(&store).map_err(|broken| format!("seed {seed}, before cut {cut}: {broken}"))?;
        let requests = 1 + prng.below(REQUESTS_MAX);
        store.drive().cut_power_after(requests, AfterCut::Refuse).expect("no bug");
        let mut drawn = Drawn::new(&store, prng.split(&format!("cut {cut}")));
        if prng.below(100) < CLOSES_PERCENT {
            let is_on =
                (0..prng.below(40)).all(|_| drawn.call(&mut promised)) && drawn.publish_all(&mut promised);
            if is_on && store.close().is_ok() {
                promised.closed();
            }
        } else {
            while drawn.call(&mut promised) {}
        }
        let left = store.drive().fork().expect("no bug");
        (flash, now) = left.expect("a drive in memory can be forked");
    }
    Ok(())
}

#[test]
fn what_was_promised_is_there_after_every_power_cut() {
    for seed in SEEDS {
        if let Err(broken) = life(seed, Promise::Synced) {
            panic!("{broken}");
        }
    }
}

#[test]
fn a_promise_that_the_store_does_not_make_is_seen_to_be_broken() {
    for promise in [Promise::AppendedLogs, Promise::UnpublishedTables] {
        let broken = SEEDS.into_iter().find_map(|seed| life(seed, promise).err());
        assert!(broken.is_some(), "{promise:?}: this test would not see what is missing");
    }
}
