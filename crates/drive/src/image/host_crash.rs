//! Crashes of the host, after which any of the pages that were not synced are on the disk.
//!
//! A drive runs commands and flushes on an image whose file forgets as a disk does. Opened again, each chunk must be what it
//! was at some moment since the last flush, and whatever lies below its write pointer must be what was written there in
//! this life of the chunk: nothing of a life before, and no holes.

use super::cut::{check_content, run, step};
use super::handle::Image;
use super::simulated::{FileFaults, SimulatedFile, Unsynced};
use crate::open::{OpenDrive, OpenOptions};
use crate::spec::DriveSpec;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{AddressList, Flash, Operation, OperationKind};
use ocssd_lightnvm::{ChunkId, ChunkState, Status, Tag};
use std::collections::BTreeSet;

/// Few chunks, so that they are filled and reset several times.
const CHUNKS: u32 = 3;

/// Seeds in which a crash takes a life of a chunk back, and the chunk lives it again, with older pages of that life still on
/// the disk.
const REPEATED_LIVES: [u64; 2] = [783, 1138];

/// What a chunk is to its host.
type State = (u32, u32, ChunkState);

fn state(flash: &Flash, chunk: ChunkId) -> State {
    let found = flash.chunk(chunk);
    (flash.cycles(chunk), found.write_pointer.unwrap_or(0), found.state)
}

/// The one state each chunk is in.
fn states(flash: &Flash) -> Vec<BTreeSet<State>> {
    (0..CHUNKS).map(|chunk| BTreeSet::from([state(flash, ChunkId(chunk))])).collect()
}

fn flush(flash: &mut Flash, now: &mut Nanos) {
    let addresses = AddressList::Run { first: ocssd_lightnvm::Ppa::new(ChunkId(0), 0), count: 1 };
    let operation = Operation {
        tag: Tag(0),
        kind: OperationKind::Flush,
        addresses,
        data: &mut [],
        oob: &mut [],
        whole: &mut [],
    };
    assert_eq!(run(flash, now, operation), Status::SUCCESS, "the disk works");
}

fn spec(seed: u64) -> DriveSpec {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    let settings = [
        "chunks_per_pu=8",
        "mw_cunits=0",
        "sector_bytes=512",
        "faults.write_next_unit=10%",
        "faults.early_close=5%",
        "faults.reset_failure=1%",
    ];
    spec.apply_all(&settings).expect("the settings fit");
    spec.config.seed = seed;
    spec
}

/// Commands with a flush now and then; returns what each chunk was since the last flush.
fn use_drive(flash: &mut Flash, prng: &mut Prng) -> Vec<BTreeSet<State>> {
    let mut now = Nanos::ZERO;
    let mut since = states(flash);
    for turn in 0..prng.below(40) {
        let chunk = ChunkId(u32::try_from(prng.below(CHUNKS.into())).expect("below 3"));
        step(flash, &mut now, chunk, u32::try_from(turn).expect("below 40"));
        if prng.below(5) == 0 {
            flush(flash, &mut now);
            since = states(flash);
        }
        since[chunk.index()].insert(state(flash, chunk));
    }
    since
}

/// What the drive is after the host has come up again: checked, and used further after a second crash.
fn crash(file: &SimulatedFile, since: &[BTreeSet<State>], context: &str) -> (OpenDrive, u32) {
    file.crash(Unsynced::InPart);
    let opened = Image::open_simulated(file, &OpenOptions::default());
    let mut drive = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    for (chunk, since) in (0..).map(ChunkId).zip(since) {
        let found = state(&drive.flash, chunk);
        assert!(since.contains(&found), "{context}, chunk {}: {found:?} of {since:?}", chunk.0);
    }
    drive.flash.check();
    check_content(&mut drive.flash, context);
    let taken = drive.image.as_ref().expect("it is an image").taken_back();
    assert_eq!(taken.chunks == 0, taken.sectors == 0, "{context}: {taken:?}");
    (drive, taken.chunks)
}

#[test]
fn a_chunk_is_what_it_was_since_the_last_flush_with_all_that_it_counts() {
    let mut taken_back = 0;
    for seed in (0..300).chain(REPEATED_LIVES) {
        let file = SimulatedFile::new(seed);
        let mut drive = Image::create_simulated(&file, &spec(seed)).expect("the image is made");
        let mut prng = Prng::new(seed).split("commands");
        for round in 0..3 {
            let since = use_drive(&mut drive.flash, &mut prng);
            drop(drive);
            let (again, taken) = crash(&file, &since, &format!("seed {seed}, crash {round}"));
            (drive, taken_back) = (again, taken_back + taken);
        }
    }
    assert!(taken_back > 100, "only {taken_back} tails were not on the disk whole");
}

#[test]
fn a_sync_that_failed_leaves_what_was_flushed_before_and_no_holes() {
    for seed in 0..300 {
        let file = SimulatedFile::new(seed);
        let mut drive = Image::create_simulated(&file, &spec(seed)).expect("the image is made");
        let mut prng = Prng::new(seed).split("commands");
        let mut since = use_drive(&mut drive.flash, &mut prng);
        let mut now = Nanos::ZERO;
        let faults =
            FileFaults { sync_error: 1_000_000, failed_sync: Unsynced::InPart, ..FileFaults::default() };
        file.set_faults(faults);
        // A sync of its own may come before the write, so the chunk is as before or as after.
        step(&mut drive.flash, &mut now, ChunkId(0), 0);
        since[0].insert(state(&drive.flash, ChunkId(0)));
        drop(drive);
        file.set_faults(FileFaults::default());
        crash(&file, &since, &format!("seed {seed}, a failed sync"));
    }
}
