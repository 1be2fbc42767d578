//! Every place where a process can end between two calls to the image, one after the other.
//!
//! A drive runs the same commands as a drive in memory, on an image that dies after a number of calls; opened again,
//! the image must be what memory was after the commands that completed, or after one more.

use super::create::Existing;
use super::file::ImageFile;
use super::handle::Image;
use super::layout::Layout;
use super::record::Kept;
use super::store::ImageStore;
use crate::open::OpenOptions;
use crate::spec::DriveSpec;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::store::{Backing, StoreError};
use ocssd_flash::{AddressList, ChunkRecord, Flash, Operation, OperationKind, ReadPolicy};
use ocssd_lightnvm::{Buffers, ChunkDescriptor, ChunkId, ChunkState, Device, Ppa, Status, Tag};
use std::path::Path;
use std::sync::Arc;

/// An image whose process ends after a number of calls.
struct Dying {
    image: ImageStore,
    calls_left: u32,
}

impl Dying {
    fn call(&mut self) -> Result<&mut ImageStore, StoreError> {
        let left = self.calls_left.checked_sub(1);
        self.calls_left = left.ok_or_else(|| StoreError("the process ended".into()))?;
        Ok(&mut self.image)
    }
}

impl Backing for Dying {
    fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) -> Result<(), StoreError> {
        self.call()?.write(chunk, first, data, oob)
    }

    fn read(
        &mut self,
        chunk: ChunkId,
        first: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(), StoreError> {
        self.image.read(chunk, first, data, oob)
    }

    fn keep(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError> {
        self.call()?.keep(chunk, record)
    }

    fn keep_unreadable(&mut self, chunk: ChunkId, bits: &[u64]) -> Result<(), StoreError> {
        self.call()?.keep_unreadable(chunk, bits)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.image.sync()
    }
}

/// Content and metadata of a sector in a life of its chunk.
fn content(chunk: ChunkId, sector: u32, life: u32) -> ([u8; 16], [u8; 16]) {
    let word = (u64::from(chunk.0) << 40 | u64::from(sector) << 20 | u64::from(life)).to_le_bytes();
    let sixteen = |first: u8| std::array::from_fn(|index| if index < 8 { word[index] } else { first });
    (sixteen(1), sixteen(2))
}

fn run(flash: &mut Flash, now: &mut Nanos, operation: Operation<'_>) -> Status {
    flash.execute(*now, operation).expect("the drive is idle");
    let mut none = Buffers::new(flash.payload_format());
    loop {
        if let Some(completion) = flash.poll_completion(*now, &mut none) {
            return completion.status;
        }
        *now = flash.deadline().expect("a command is in flight");
    }
}

/// The next command on a chunk: a write where it ends, or a reset of a full one.
fn step(flash: &mut Flash, now: &mut Nanos, chunk: ChunkId) -> Status {
    let found = flash.chunk(chunk);
    let (mut data, mut oob, mut kind, mut count) = (Vec::new(), Vec::new(), OperationKind::Reset, 1);
    let first = found.write_pointer.unwrap_or(0);
    if matches!(found.state, ChunkState::Free | ChunkState::Open) {
        (kind, count) = (OperationKind::Write { fua: false }, 16.min(32 - first));
        for sector in first..first + count {
            let (sector_data, sector_oob) = content(chunk, sector, flash.cycles(chunk));
            data.extend_from_slice(&sector_data);
            oob.extend_from_slice(&sector_oob);
        }
    }
    let at = if matches!(kind, OperationKind::Reset) { 0 } else { first };
    let addresses = AddressList::Run { first: Ppa::new(chunk, at), count };
    run(flash, now, Operation { tag: Tag(0), kind, addresses, data: &mut data, oob: &mut oob })
}

type Seen = Vec<(ChunkDescriptor, u32, Vec<u64>)>;

fn seen(flash: &Flash) -> Seen {
    let chunk = |chunk| {
        let marks = flash.unreadable(chunk).to_vec();
        (
            flash.chunk(chunk),
            flash.cycles(chunk),
            if marks.iter().all(|&word| word == 0) { Vec::new() } else { marks },
        )
    };
    (0..flash.geometry().chunk_count()).map(ChunkId).map(chunk).collect()
}

fn check_content(flash: &mut Flash, context: &str) {
    let mut now = Nanos::ZERO;
    for (chunk, (found, life, marks)) in (0..).map(ChunkId).zip(seen(flash)) {
        for sector in 0..found.write_pointer.unwrap_or(0) {
            let (mut data, mut oob) = ([0; 16], [0; 16]);
            let addresses = AddressList::Run { first: Ppa::new(chunk, sector), count: 1 };
            let kind = OperationKind::Read(ReadPolicy::STRICT);
            let status = run(
                flash,
                &mut now,
                Operation { tag: Tag(0), kind, addresses, data: &mut data, oob: &mut oob },
            );
            let context = format!("{context}, chunk {} sector {sector}", chunk.0);
            if marks.first().is_some_and(|word| word >> sector & 1 == 1) {
                assert_eq!(status, Status::UNRECOVERED_READ, "{context}");
            } else {
                assert_eq!(
                    (status, data, oob),
                    (Status::SUCCESS, content(chunk, sector, life).0, content(chunk, sector, life).1),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn an_image_left_after_any_call_is_what_completed_or_one_command_more() {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    let settings =
        ["mw_cunits=0", "faults.write_next_unit=20%", "faults.early_close=5%", "faults.reset_failure=5%"];
    spec.apply_all(&settings).expect("the settings fit");
    for seed in 0..3 {
        spec.config.seed = seed;
        let mut prng = Prng::new(seed);
        // Few chunks, so that they are filled and reset several times.
        let chunks: Vec<ChunkId> =
            (0..40).map(|_| ChunkId(u32::try_from(prng.below(3)).expect("below 3"))).collect();
        let mut memory = Flash::format(spec.config.clone()).expect("the settings are sound");
        let mut now = Nanos::ZERO;
        let mut expected = vec![seen(&memory)];
        for chunk in &chunks {
            step(&mut memory, &mut now, *chunk);
            expected.push(seen(&memory));
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let fresh = folder.path().join("fresh.img");
        let drive = Image::create(&fresh, &spec, Existing::Refuse).expect("the image is made");
        let layout = drive.image.as_ref().expect("it is an image").layout;
        drop(drive);
        let (mut calls, mut last) = (0, 0);
        while last < chunks.len() {
            let path = folder.path().join("drive.img");
            std::fs::copy(&fresh, &path).expect("there is room for a copy");
            let opened = (path.as_path(), layout, calls);
            last = cut_after(opened, &spec, &chunks, &expected, &format!("seed {seed}, {calls} calls"));
            calls += 1;
        }
        assert!(calls > 60, "seed {seed}: the drive made only {calls} calls");
    }
}

/// Runs the commands on an image that dies after `calls`, and checks what is left; returns how many completed.
fn cut_after(
    (path, layout, calls): (&Path, Layout, u32),
    spec: &DriveSpec,
    chunks: &[ChunkId],
    expected: &[Seen],
    context: &str,
) -> usize {
    let file = Arc::new(ImageFile::open(path, true).expect("it was just made"));
    let kept = vec![Kept::fresh(0); ChunkId(layout.chunks).index()];
    let records: Vec<ChunkRecord> = kept.iter().map(|kept| kept.record).collect();
    let dying = Dying { image: ImageStore::new(file, layout, kept), calls_left: calls };
    let opened = Flash::open_on(spec.config.clone(), Box::new(dying), &records, Vec::new());
    let mut flash = opened.expect("a fresh drive");
    let mut now = Nanos::ZERO;
    let mut completed = 0;
    for chunk in chunks {
        step(&mut flash, &mut now, *chunk);
        if flash.store_error().is_some() {
            break;
        }
        completed += 1;
    }
    drop(flash);
    let drive = Image::open(path, &OpenOptions::default());
    let mut flash = drive.unwrap_or_else(|error| panic!("{context}: {error}")).flash;
    let found = seen(&flash);
    let more = expected.get(completed + 1);
    if found != expected[completed] && Some(&found) != more {
        for (index, now) in found.iter().enumerate() {
            assert_eq!(
                now, &expected[completed][index],
                "{context}, chunk {index}, after {completed} commands"
            );
        }
    }
    flash.check();
    check_content(&mut flash, context);
    go_on(flash, path, context);
    completed
}

/// What was left over from the command that did not complete must not come to light when the drive is used further.
fn go_on(mut flash: Flash, path: &Path, context: &str) {
    let mut now = Nanos::ZERO;
    // One command each: more would reset the chunk, and marks with it.
    for chunk in (0..3).map(ChunkId) {
        step(&mut flash, &mut now, chunk);
    }
    let before = seen(&flash);
    drop(flash);
    let drive = Image::open(path, &OpenOptions::default());
    let mut flash = drive.unwrap_or_else(|error| panic!("{context}: {error}")).flash;
    for (index, (found, expected)) in seen(&flash).iter().zip(&before).enumerate() {
        assert_eq!(found, expected, "{context}, chunk {index}, used further");
    }
    check_content(&mut flash, context);
}
