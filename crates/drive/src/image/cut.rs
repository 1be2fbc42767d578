//! Every place where a process can end between two writes to the image's file, one after the other.
//!
//! A drive runs the same commands as a drive in memory, on an image whose file takes a number of writes and no more;
//! opened again, the image must be what memory was after the commands that completed, or after one more. Half of the
//! writes are of whole sectors beside their stamps.

use super::file::ImageFile;
use super::handle::Image;
use super::layout::Layout;
use super::record::Kept;
use super::simulated::{FileFaults, SimulatedFile};
use super::store::ImageStore;
use super::whole::WholeFlags;
use crate::open::OpenOptions;
use crate::spec::DriveSpec;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{AddressList, ChunkRecord, Flash, Operation, OperationKind, ReadPolicy};
use ocssd_lightnvm::{Buffers, ChunkDescriptor, ChunkId, ChunkState, Device, Ppa, Status, Tag};
use std::sync::Arc;

/// Bytes of a sector, as the settings say.
const SECTOR_BYTES: usize = 512;

/// What a sector holds in a life of its chunk.
struct Content {
    stamp: [u8; 16],
    oob: [u8; 16],
    /// All its bytes, or its stamp and zeros; the stamp says which.
    all: Vec<u8>,
}

fn content(chunk: ChunkId, sector: u32, life: u32, is_whole: bool) -> Content {
    let word = (u64::from(chunk.0) << 40 | u64::from(sector) << 20 | u64::from(life)).to_le_bytes();
    let sixteen = |rest: u8| std::array::from_fn(|index| if index < 8 { word[index] } else { rest });
    let stamp: [u8; 16] = sixteen(1 + 2 * u8::from(is_whole));
    let all = if is_whole {
        word.into_iter().cycle().map(|byte| byte ^ 0x5A).take(SECTOR_BYTES).collect()
    } else {
        stamp.into_iter().chain(std::iter::repeat(0)).take(SECTOR_BYTES).collect()
    };
    Content { stamp, oob: sixteen(2), all }
}

pub(super) fn run(flash: &mut Flash, now: &mut Nanos, operation: Operation<'_>) -> Status {
    flash.execute(*now, operation).expect("the drive is idle");
    let mut none = Buffers::new(flash.payload_format());
    loop {
        if let Some(completion) = flash.poll_completion(*now, &mut none) {
            return completion.status;
        }
        *now = flash.deadline().expect("a command is in flight");
    }
}

/// The next command on a chunk: a write where it ends, or a reset of a full one. Every other write is whole; `turn` says
/// which of them.
pub(super) fn step(flash: &mut Flash, now: &mut Nanos, chunk: ChunkId, turn: u32) -> Status {
    let (found, life) = (flash.chunk(chunk), flash.cycles(chunk));
    let (mut data, mut oob, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kind, mut count) = (OperationKind::Reset, 1);
    let first = found.write_pointer.unwrap_or(0);
    if matches!(found.state, ChunkState::Free | ChunkState::Open) {
        (kind, count) = (OperationKind::Write { fua: false }, 16.min(32 - first));
        let is_whole = (chunk.0 + first / 8 + life + turn).is_multiple_of(2);
        for sector in first..first + count {
            let content = content(chunk, sector, life, is_whole);
            data.extend_from_slice(&content.stamp);
            oob.extend_from_slice(&content.oob);
            whole.extend_from_slice(if is_whole { &content.all } else { &[] });
        }
    }
    let at = if matches!(kind, OperationKind::Reset) { 0 } else { first };
    let addresses = AddressList::Run { first: Ppa::new(chunk, at), count };
    let (data, oob, whole) = (&mut data[..], &mut oob[..], &mut whole[..]);
    run(flash, now, Operation { tag: Tag(0), kind, addresses, data, oob, whole })
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

/// Asserts that every sector below its write pointer can be read or is marked, and tells how many are whole.
pub(super) fn check_content(flash: &mut Flash, context: &str) -> u32 {
    let (mut now, mut whole_sectors) = (Nanos::ZERO, 0);
    for (chunk, (found, life, marks)) in (0..).map(ChunkId).zip(seen(flash)) {
        for sector in 0..found.write_pointer.unwrap_or(0) {
            let (mut data, mut oob, mut all) = ([0; 16], [0; 16], [7; SECTOR_BYTES]);
            let addresses = AddressList::Run { first: Ppa::new(chunk, sector), count: 1 };
            let kind = OperationKind::Read(ReadPolicy::STRICT);
            let (tag, data_place, oob_place, whole) = (Tag(0), &mut data[..], &mut oob[..], &mut all[..]);
            let read = Operation { tag, kind, addresses, data: data_place, oob: oob_place, whole };
            let status = run(flash, &mut now, read);
            let context = format!("{context}, chunk {} sector {sector}", chunk.0);
            if marks.first().is_some_and(|word| word >> sector & 1 == 1) {
                assert_eq!(status, Status::UNRECOVERED_READ, "{context}");
            } else {
                let is_whole = data[15] == 3;
                let expected = content(chunk, sector, life, is_whole);
                assert_eq!((status, data, oob), (Status::SUCCESS, expected.stamp, expected.oob), "{context}");
                assert!(all[..] == expected.all, "{context}: other bytes, whole: {is_whole}");
                whole_sectors += u32::from(is_whole);
            }
        }
    }
    whole_sectors
}

#[test]
fn an_image_left_after_any_write_is_what_completed_or_one_command_more() {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    let settings = [
        "mw_cunits=0",
        "sector_bytes=512",
        "faults.write_next_unit=20%",
        "faults.early_close=5%",
        "faults.reset_failure=5%",
    ];
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
            step(&mut memory, &mut now, *chunk, 0);
            expected.push(seen(&memory));
        }
        let fresh = SimulatedFile::new(seed);
        let drive = Image::create_simulated(&fresh, &spec).expect("the image is made");
        let layout = drive.image.as_ref().expect("it is an image").layout;
        drop(drive);
        let (mut writes, mut last, mut whole) = (0, 0, 0);
        while last < chunks.len() {
            let opened = (fresh.fork(), layout, writes);
            let context = format!("seed {seed}, {writes} writes");
            let (completed, whole_sectors) = cut_after(opened, &spec, &chunks, &expected, &context);
            (last, whole, writes) = (completed, whole + whole_sectors, writes + 1);
        }
        assert!(writes > 120, "seed {seed}: the drive wrote only {writes} times");
        assert!(whole > 1000, "seed {seed}: only {whole} sectors were whole");
    }
}

/// Runs the commands on an image whose file takes `writes`, and checks what is left; returns how many completed, and how
/// many sectors are whole.
fn cut_after(
    (disk, layout, writes): (SimulatedFile, Layout, u32),
    spec: &DriveSpec,
    chunks: &[ChunkId],
    expected: &[Seen],
    context: &str,
) -> (usize, u32) {
    let file = Arc::new(ImageFile::simulated(&disk, true).expect("it was just made"));
    let kept = vec![Kept::fresh(0); ChunkId(layout.chunks).index()];
    let records: Vec<ChunkRecord> = kept.iter().map(|kept| kept.record).collect();
    disk.set_faults(FileFaults { writes_left: Some(writes), ..FileFaults::default() });
    let store = ImageStore::new(file, layout, kept, WholeFlags::default());
    let opened = Flash::open_on(spec.config.clone(), Box::new(store), &records, Vec::new());
    let mut flash = opened.expect("a fresh drive");
    let mut now = Nanos::ZERO;
    let mut completed = 0;
    for chunk in chunks {
        step(&mut flash, &mut now, *chunk, 0);
        if flash.store_error().is_some() {
            break;
        }
        completed += 1;
    }
    drop(flash);
    disk.set_faults(FileFaults::default());
    let drive = Image::open_simulated(&disk, &OpenOptions::default());
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
    let whole = check_content(&mut flash, context);
    go_on(flash, &disk, context);
    (completed, whole)
}

/// What was left over from the command that did not complete must not come to light when the drive is used further.
fn go_on(mut flash: Flash, disk: &SimulatedFile, context: &str) {
    let mut now = Nanos::ZERO;
    // One command each: more would reset the chunk, and marks with it.
    for chunk in (0..3).map(ChunkId) {
        // Whole where the command that did not complete was not, and the other way round.
        step(&mut flash, &mut now, chunk, 1);
    }
    let before = seen(&flash);
    drop(flash);
    let drive = Image::open_simulated(disk, &OpenOptions::default());
    let mut flash = drive.unwrap_or_else(|error| panic!("{context}: {error}")).flash;
    for (index, (found, expected)) in seen(&flash).iter().zip(&before).enumerate() {
        assert_eq!(found, expected, "{context}, chunk {index}, used further");
    }
    check_content(&mut flash, context);
}
