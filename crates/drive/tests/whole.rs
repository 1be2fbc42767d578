//! Whole sectors in images of stamps: all bytes last as long as their stamps, and no longer.

use ocssd_base::{Nanos, Prng};
use ocssd_drive::image::{Access, Damage};
use ocssd_drive::{DriveSpec, Existing, Image, OpenDrive, OpenOptions};
use ocssd_flash::Flash;
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkId, ChunkState, Command, Device, Op, PlaneMode, Ppa, Status, Tag,
};
use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the header gives the offsets of the records, of the flags of whole sectors, and of their bytes.
const RECORDS: u64 = 72;
const FLAGS: u64 = 112;
const BYTES: u64 = 120;

struct Place {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary directory");
    Place { path: folder.path().join("drive.img"), _folder: folder }
}

fn create(path: &Path, settings: &[&str]) -> OpenDrive {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    spec.apply_all(&[&["mw_cunits=0", "sector_bytes=512"], settings].concat())
        .unwrap_or_else(|error| panic!("{error}"));
    Image::create(path, &spec, Existing::Refuse).unwrap_or_else(|error| panic!("{error}"))
}

fn reopen(path: &Path) -> OpenDrive {
    Image::open(path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(path: &Path) -> String {
    Image::open(path, &OpenOptions::default()).err().expect("the image is not sound").to_string()
}

fn header_u64(path: &Path, at: u64) -> u64 {
    let mut bytes = [0; 8];
    std::fs::File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at)).expect("it can be read");
    u64::from_le_bytes(bytes)
}

fn patch(path: &Path, at: u64, bytes: &[u8]) {
    let file = FileOptions::new().write(true).open(path).expect("it can be opened");
    file.write_all_at(bytes, at).expect("it can be written");
}

/// A host whose sectors say themselves what they hold: a number in the stamp, and whether they were written whole in its
/// lowest bit.
struct Host<'a> {
    flash: &'a mut Flash,
    buffers: Buffers,
    plain: BufId,
    whole: BufId,
    now: Nanos,
}

fn stamp(id: u64) -> [u8; 16] {
    let mut bytes = [0xA5; 16];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// What a read into a whole buffer gives.
fn all_bytes(id: u64, sector_bytes: usize) -> Vec<u8> {
    let stamp = stamp(id);
    if id & 1 == 1 {
        stamp.iter().map(|byte| !byte).cycle().take(sector_bytes).collect()
    } else {
        stamp.into_iter().chain(std::iter::repeat(0)).take(sector_bytes).collect()
    }
}

impl<'a> Host<'a> {
    fn new(flash: &'a mut Flash) -> Self {
        let mut buffers = Buffers::new(flash.payload_format());
        let (plain, whole) = (buffers.take(64), buffers.take_whole(64));
        Self { flash, buffers, plain, whole, now: Nanos::ZERO }
    }

    fn submit(&mut self, op: Op, addresses: Addresses, buffer: BufId) {
        let buffer = (op != Op::Reset).then_some(buffer);
        let command = Command {
            tag: Tag(1),
            op,
            addresses,
            buffer,
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        self.flash.submit(self.now, command, &mut self.buffers).expect("room");
    }

    fn run(&mut self, op: Op, addresses: Addresses, buffer: BufId) -> Status {
        self.submit(op, addresses, buffer);
        loop {
            if let Some(completion) = self.flash.poll_completion(self.now, &mut self.buffers) {
                return completion.status;
            }
            self.now = self.flash.deadline().expect("a command is in flight");
        }
    }

    /// Fills the buffer that suits `id`, for sectors `id`, `id + 2`, ...
    fn fill(&mut self, id: u64, count: u32) -> BufId {
        let buffer = if id & 1 == 1 { self.whole } else { self.plain };
        for sector in 0..count {
            let id = id + 2 * u64::from(sector);
            self.buffers.data_mut(buffer, sector, 1).copy_from_slice(&stamp(id));
            if id & 1 == 1 {
                let unit = self.buffers.format().sector_bytes;
                self.buffers.whole_mut(buffer, sector, 1).copy_from_slice(&all_bytes(id, unit));
            }
        }
        buffer
    }

    fn write(&mut self, first: Ppa, count: u32, id: u64) -> Status {
        let buffer = self.fill(id, count);
        self.run(Op::Write { fua: false }, Addresses::Run { first, count }, buffer)
    }

    fn write_ok(&mut self, first: Ppa, count: u32, id: u64) {
        assert_eq!(self.write(first, count, id), Status::SUCCESS, "{first:?}");
    }

    fn reset(&mut self, chunk: u32) -> Status {
        let first = Ppa::new(ChunkId(chunk), 0);
        self.run(Op::Reset, Addresses::Run { first, count: 1 }, self.plain)
    }

    /// The number of a sector, if it can be read; asserts that it holds all of it.
    fn id_of(&mut self, at: Ppa, context: &str) -> Option<u64> {
        self.buffers.whole_mut(self.whole, 0, 1).fill(7);
        if self.run(Op::Read, Addresses::Run { first: at, count: 1 }, self.whole) != Status::SUCCESS {
            return None;
        }
        let data = self.buffers.data(self.whole, 0, 1);
        let id = u64::from_le_bytes(data[..8].try_into().expect("eight bytes"));
        assert_eq!(data, stamp(id), "{context}, {at:?}");
        let (found, unit) = (self.buffers.whole(self.whole, 0, 1), self.buffers.format().sector_bytes);
        assert!(found == all_bytes(id, unit), "{context}, {at:?}, number {id}: other bytes");
        Some(id)
    }

    fn ids(&mut self, chunk: u32, count: u32, context: &str) -> Vec<u64> {
        let number = |sector| self.id_of(Ppa::new(ChunkId(chunk), sector), context).expect("it can be read");
        (0..count).map(number).collect()
    }
}

fn at(chunk: u32, sector: u32) -> Ppa {
    Ppa::new(ChunkId(chunk), sector)
}

fn numbers(first: u64, count: u64) -> Vec<u64> {
    (0..count).map(|number| first + 2 * number).collect()
}

#[test]
fn whole_and_plain_sectors_are_the_same_after_a_reopening() {
    let place = place();
    let mut drive = create(&place.path, &[]);
    let mut host = Host::new(&mut drive.flash);
    for (unit, id) in [(0, 1001), (1, 2000), (2, 3001)] {
        host.write_ok(at(3, unit * 8), 8, id);
    }
    let expected = [numbers(1001, 8), numbers(2000, 8), numbers(3001, 8)].concat();
    assert_eq!(host.ids(3, 24, "at once"), expected);
    drop(drive);
    let inspect = OpenOptions { access: Access::Inspect, ..OpenOptions::default() };
    let mut look = Image::open(&place.path, &inspect).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Host::new(&mut look.flash).ids(3, 24, "looked at"), expected);
    drop(look);
    let mut drive = reopen(&place.path);
    let mut host = Host::new(&mut drive.flash);
    assert_eq!(host.ids(3, 24, "reopened"), expected);
    host.write_ok(at(3, 24), 8, 4000);
    drop(drive);
    let all = [expected, numbers(4000, 8)].concat();
    assert_eq!(Host::new(&mut reopen(&place.path).flash).ids(3, 32, "reopened again"), all);
}

#[test]
fn copies_stay_as_whole_as_their_sources_in_the_file() {
    let place = place();
    let mut drive = create(&place.path, &[]);
    let mut host = Host::new(&mut drive.flash);
    host.write_ok(at(0, 0), 8, 11);
    host.write_ok(at(0, 8), 8, 100);
    let list: Vec<Ppa> = (4..12).map(|sector| at(0, sector)).chain((0..8).map(|to| at(9, to))).collect();
    let plain = host.plain;
    host.buffers.addresses_mut(plain)[..16].copy_from_slice(&list);
    assert_eq!(host.run(Op::Copy, Addresses::List { offset: 0, count: 8 }, plain), Status::SUCCESS);
    drop(drive);
    let expected = [numbers(19, 4), numbers(100, 4)].concat();
    assert_eq!(Host::new(&mut reopen(&place.path).flash).ids(9, 8, "copied"), expected);
}

#[test]
fn a_reset_chunk_has_no_whole_bytes_of_its_earlier_life() {
    let place = place();
    let mut drive = create(&place.path, &[]);
    let mut host = Host::new(&mut drive.flash);
    for chunk in [1, 2, 3] {
        (0..4).for_each(|unit| host.write_ok(at(chunk, unit * 8), 8, 501));
        assert_eq!(host.reset(chunk), Status::SUCCESS);
    }
    host.write_ok(at(1, 0), 8, 600);
    host.write_ok(at(2, 0), 8, 700);
    host.write_ok(at(2, 8), 8, 801);
    drop(drive);
    let mut drive = reopen(&place.path);
    let mut host = Host::new(&mut drive.flash);
    assert_eq!(host.ids(1, 8, "plain"), numbers(600, 8));
    assert_eq!(host.ids(2, 16, "both"), [numbers(700, 8), numbers(801, 8)].concat());
    host.write_ok(at(3, 0), 8, 900);
    assert_eq!(host.ids(3, 8, "written after the reopening"), numbers(900, 8));
}

#[test]
fn power_cuts_and_reopenings_leave_every_sector_with_the_bytes_it_was_written_with() {
    let mut undone = 0;
    for seed in 0..25 {
        let place = place();
        let mut drive = create(&place.path, &["cache.sectors=64", &format!("seed={seed}")]);
        let (mut prng, mut next_id, mut seen) = (Prng::new(seed), 2, 0);
        for round in 0..6 {
            let context = format!("seed {seed}, round {round}");
            let mut host = Host::new(&mut drive.flash);
            for step in 0..30 {
                // Two chunks of each of two units.
                let chunk = u32::try_from(prng.below(4)).expect("below 4");
                let chunk = chunk % 2 + chunk / 2 * 8;
                let found = host.flash.chunk(ChunkId(chunk));
                let pointer = found.write_pointer.expect("no chunk is offline");
                let (op, first, count, buffer) = if found.state == ChunkState::Closed {
                    (Op::Reset, 0, 1, host.plain)
                } else {
                    next_id += 64;
                    let buffer = host.fill(next_id | prng.below(2), 4);
                    (Op::Write { fua: false }, pointer, 4, buffer)
                };
                let addresses = Addresses::Run { first: at(chunk, first), count };
                host.submit(op, addresses, buffer);
                // Some commands overlap; the cut finds the last ones on their way.
                while step < 26 && host.flash.poll_completion(host.now, &mut host.buffers).is_none() {
                    host.now = host.flash.deadline().expect("a command is in flight");
                }
            }
            host.now = Nanos(host.now.0 + prng.below(1_500_000));
            undone += host.flash.power_cut(host.now, &mut prng).expect("the image takes it").resets_undone;
            if prng.below(2) == 0 {
                drop(drive);
                drive = reopen(&place.path);
            }
            drive.flash.check();
            let mut host = Host::new(&mut drive.flash);
            for chunk in [0, 1, 8, 9] {
                let end = host.flash.chunk(ChunkId(chunk)).write_pointer.expect("no chunk is offline");
                seen += (0..end).filter(|&sector| host.id_of(at(chunk, sector), &context).is_some()).count();
            }
        }
        assert!(seen > 50, "seed {seed}: only {seen} sectors could be read");
    }
    assert!(undone > 5, "only {undone} resets were undone: that is not tried");
}

#[test]
fn damaged_flags_are_named_and_can_be_accepted_as_lost_sectors() {
    let place = place();
    let mut drive = create(&place.path, &[]);
    let mut host = Host::new(&mut drive.flash);
    host.write_ok(at(5, 0), 8, 51);
    host.write_ok(at(6, 0), 8, 61);
    drop(drive);
    let flags = header_u64(&place.path, FLAGS) + 5 * 4096;
    patch(&place.path, flags + 16, &[0x0F]);
    let error = refusal(&place.path);
    for part in
        [&format!("the flags of whole sectors of chunk 5 at byte {flags} "), "have checksum", "restore"]
    {
        assert!(error.contains(part), "\"{part}\" in \"{error}\"");
    }
    for access in [Access::Inspect, Access::Write] {
        let options = OpenOptions { access, damage: Damage::Accept, settings: Vec::new() };
        let mut drive = Image::open(&place.path, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(drive.image.as_ref().expect("an image").damage().len(), 1, "{access:?}");
        let mut host = Host::new(&mut drive.flash);
        assert_eq!(host.id_of(at(5, 0), "lost"), None, "{access:?}");
        assert_eq!(host.flash.unreadable(ChunkId(5)), [0xFF], "{access:?}");
        assert_eq!(host.ids(6, 8, "its neighbour"), numbers(61, 8));
    }
    let mut drive = reopen(&place.path);
    assert!(drive.image.as_ref().expect("an image").damage().is_empty(), "it is settled");
    assert_eq!(drive.flash.unreadable(ChunkId(5)), [0xFF], "and lost for good");
    let mut host = Host::new(&mut drive.flash);
    (1..4).for_each(|unit| host.write_ok(at(5, unit * 8), 8, 71));
    assert_eq!(host.id_of(at(5, 8), "later sectors"), Some(71));
    assert_eq!(host.reset(5), Status::SUCCESS);
    host.write_ok(at(5, 0), 8, 81);
    drop(drive);
    assert_eq!(Host::new(&mut reopen(&place.path).flash).ids(5, 8, "the next life"), numbers(81, 8));
}

#[test]
fn an_image_of_real_bytes_has_no_room_for_whole_sectors_and_no_record_of_any() {
    let place = place();
    drop(create(&place.path, &["payload=bytes"]));
    let length = std::fs::metadata(&place.path).expect("it exists").len();
    assert_eq!((header_u64(&place.path, FLAGS), header_u64(&place.path, BYTES)), (length, length));
    // The record of a chunk that is OPEN at sector 8 and has whole sectors.
    let mut record = [0; 32];
    (record[0], record[4], record[6], record[8]) = (4, 2, 1, 8);
    let crc = crc32fast::hash(&record[..28]);
    record[28..].copy_from_slice(&crc.to_le_bytes());
    patch(&place.path, header_u64(&place.path, RECORDS) + 4 * 32, &record);
    let error = refusal(&place.path);
    assert!(error.contains("the record of chunk 4 says that it has whole sectors"), "{error}");
}

#[test]
fn whole_sectors_of_a_drive_of_two_terabytes_take_their_own_bytes_only() {
    let place = place();
    let mut spec = DriveSpec::preset("westlake").expect("the preset exists");
    spec.apply("mw_cunits=0").expect("what is written can be read at once");
    let made = Image::create(&place.path, &spec, Existing::Refuse);
    let mut drive = made.unwrap_or_else(|error| panic!("{error}"));
    let last = spec.config.geometry.chunk_count() - 1;
    let mut host = Host::new(&mut drive.flash);
    (0..4).for_each(|unit| host.write_ok(at(last, unit * 64), 64, 1001 + u64::from(unit % 2)));
    drop(drive);
    let metadata = std::fs::metadata(&place.path).expect("it exists");
    assert!(metadata.len() > 2_000_000_000_000, "{} bytes", metadata.len());
    assert!(metadata.blocks() * 512 < 4 << 20, "{} bytes on disk", metadata.blocks() * 512);
    let mut drive = reopen(&place.path);
    let mut host = Host::new(&mut drive.flash);
    for unit in 0..4 {
        let id = 1001 + u64::from(unit % 2) + 2 * 63;
        assert_eq!(host.id_of(at(last, unit * 64 + 63), "at the end"), Some(id));
    }
}
