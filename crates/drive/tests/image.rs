//! Images: a drive lasts in its file, and a file that is not sound is refused with a sentence.

use ocssd_base::{Nanos, Prng};
use ocssd_drive::image::{Access, Damage};
use ocssd_drive::{DriveError, DriveSpec, Existing, Image, OpenDrive, OpenOptions, Source, open};
use ocssd_flash::Flash;
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkId, ChunkState, Command, Completion, Device, Op, PlaneMode, Ppa, PuId,
    Status, Tag,
};
use std::fs::{File, OpenOptions as FileOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// An image in a directory that goes away with it.
struct Place {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary directory");
    Place { path: folder.path().join("drive.img"), _folder: folder }
}

fn spec(settings: &[&str]) -> DriveSpec {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    spec.apply_all(settings).unwrap_or_else(|error| panic!("{error}"));
    spec
}

fn create(path: &Path, spec: &DriveSpec) -> OpenDrive {
    Image::create(path, spec, Existing::Refuse).unwrap_or_else(|error| panic!("{error}"))
}

fn reopen(path: &Path) -> OpenDrive {
    Image::open(path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(path: &Path) -> String {
    Image::open(path, &OpenOptions::default()).err().expect("the image is not sound").to_string()
}

/// A drive with a host that does one thing at a time.
struct Host<'a> {
    flash: &'a mut Flash,
    buffers: Buffers,
    buffer: BufId,
    now: Nanos,
}

impl<'a> Host<'a> {
    fn new(flash: &'a mut Flash) -> Self {
        let mut buffers = Buffers::new(flash.payload_format());
        let buffer = buffers.take(64);
        Self { flash, buffers, buffer, now: Nanos::ZERO }
    }

    fn run(&mut self, op: Op, addresses: Addresses) -> Completion {
        let buffer = matches!(op, Op::Read | Op::Write { .. }).then_some(self.buffer);
        let command = Command {
            tag: Tag(1),
            op,
            addresses,
            buffer,
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        self.flash.submit(self.now, command, &mut self.buffers).expect("the drive is idle");
        loop {
            if let Some(completion) = self.flash.poll_completion(self.now, &mut self.buffers) {
                return completion;
            }
            self.now = self.flash.deadline().expect("a command is in flight");
        }
    }

    fn write(&mut self, chunk: ChunkId, first: u32, count: u32, life: u32) -> Status {
        for sector in 0..count {
            let (data, oob) = content(self.flash, chunk, first + sector, life);
            self.buffers.data_mut(self.buffer, sector, 1).copy_from_slice(&data);
            self.buffers.oob_mut(self.buffer, sector, 1).copy_from_slice(&oob);
        }
        self.run(Op::Write { fua: false }, Addresses::Run { first: Ppa::new(chunk, first), count }).status
    }

    fn reset(&mut self, chunk: ChunkId) -> Status {
        self.run(Op::Reset, Addresses::Run { first: Ppa::new(chunk, 0), count: 1 }).status
    }

    /// Asserts that a sector holds what was written to it.
    fn check(&mut self, chunk: ChunkId, sector: u32, life: u32) {
        let status = self.run(Op::Read, Addresses::Run { first: Ppa::new(chunk, sector), count: 1 }).status;
        assert_eq!(status, Status::SUCCESS, "chunk {} sector {sector}", chunk.0);
        let (data, oob) = content(self.flash, chunk, sector, life);
        assert_eq!(self.buffers.data(self.buffer, 0, 1), data, "chunk {} sector {sector}", chunk.0);
        assert_eq!(self.buffers.oob(self.buffer, 0, 1), oob, "chunk {} sector {sector}", chunk.0);
    }
}

/// What a sector holds in a life of its chunk: data and metadata, both nowhere the same.
fn content(flash: &Flash, chunk: ChunkId, sector: u32, life: u32) -> (Vec<u8>, Vec<u8>) {
    let format = flash.payload_format();
    let mut prng = Prng::new(u64::from(chunk.0) << 40 | u64::from(sector) << 20 | u64::from(life));
    let mut bytes = |count: usize| -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes()).take(count).collect()
    };
    (bytes(format.data_bytes), bytes(format.oob_bytes))
}

#[test]
fn a_drive_is_the_same_after_it_was_closed_and_opened() {
    for settings in
        [&["payload=bytes"][..], &["payload=stamp"], &["payload=bytes", "oob_bytes=0"], &["oob_bytes=64"]]
    {
        let place = place();
        let spec = spec(&[settings, &["wear.initial_cycles=5", "capabilities.early_reset=true"]].concat());
        let mut drive = create(&place.path, &spec);
        let mut host = Host::new(&mut drive.flash);
        let (full, open, again, free) = (ChunkId(0), ChunkId(9), ChunkId(17), ChunkId(31));
        for first in (0..32).step_by(8) {
            assert_eq!(host.write(full, first, 8, 5), Status::SUCCESS);
            assert_eq!(host.write(again, first, 8, 5), Status::SUCCESS);
        }
        assert_eq!(host.write(open, 0, 16, 5), Status::SUCCESS);
        assert_eq!(host.reset(again), Status::SUCCESS);
        assert_eq!(host.write(again, 0, 20, 6), Status::SUCCESS);
        host.run(Op::Flush, Addresses::None);
        drop(drive);

        let mut drive = reopen(&place.path);
        assert_eq!(drive.spec, spec);
        let expected = [
            (full, ChunkState::Closed, 32, 5),
            (open, ChunkState::Open, 16, 5),
            (again, ChunkState::Open, 20, 6),
            (free, ChunkState::Free, 0, 5),
        ];
        for (chunk, state, pointer, cycles) in expected {
            let found = drive.flash.chunk(chunk);
            assert_eq!((found.state, found.write_pointer), (state, Some(pointer)), "chunk {}", chunk.0);
            assert_eq!(drive.flash.cycles(chunk), cycles, "chunk {}", chunk.0);
        }
        let mut host = Host::new(&mut drive.flash);
        for (chunk, end, life) in [(full, 32, 5), (open, 16 - 8, 5), (again, 20 - 8, 6)] {
            (0..end).for_each(|sector| host.check(chunk, sector, life));
        }
        assert_eq!(host.write(open, 16, 16, 5), Status::SUCCESS, "writing goes on where it ended");
        (0..32).for_each(|sector| host.check(open, sector, 5));
    }
}

#[test]
fn metadata_of_a_write_without_any_is_zero_even_where_there_was_some() {
    let place = place();
    let mut drive = create(&place.path, &spec(&["mw_cunits=0"]));
    let chunk = ChunkId(3);
    let mut host = Host::new(&mut drive.flash);
    (0..4).for_each(|first| assert_eq!(host.write(chunk, first * 8, 8, 0), Status::SUCCESS));
    assert_eq!(host.reset(chunk), Status::SUCCESS);
    let mut data = vec![7; 16 * 8];
    let operation = ocssd_flash::Operation {
        tag: Tag(2),
        kind: ocssd_flash::OperationKind::Write { fua: false },
        addresses: ocssd_flash::AddressList::Run { first: Ppa::new(chunk, 0), count: 8 },
        data: &mut data,
        oob: &mut [],
        whole: &mut [],
    };
    host.flash.execute(host.now, operation).expect("the drive is idle");
    host.run(Op::Flush, Addresses::None);
    host.run(Op::Read, Addresses::Run { first: Ppa::new(chunk, 0), count: 8 });
    host.run(Op::Read, Addresses::Run { first: Ppa::new(chunk, 0), count: 8 });
    assert_eq!(host.buffers.data(host.buffer, 0, 8), [7; 16 * 8]);
    assert_eq!(host.buffers.oob(host.buffer, 0, 8), [0; 16 * 8]);
}

#[test]
fn unreadable_sectors_stay_so_until_their_chunk_is_reset() {
    let place = place();
    let fault = "fault={kind=\"write_next_unit\", at=\"g0/p0/c2/s8\"}";
    let mut drive = create(&place.path, &spec(&["mw_cunits=0", fault]));
    let chunk = ChunkId(2);
    let mut host = Host::new(&mut drive.flash);
    assert_eq!(host.write(chunk, 0, 8, 0), Status::SUCCESS);
    assert_eq!(host.write(chunk, 8, 8, 0), Status::WRITE_NEXT_UNIT);
    assert_eq!(host.write(chunk, 16, 16, 0), Status::SUCCESS);
    drop(drive);

    let mut drive = reopen(&place.path);
    assert_eq!(drive.flash.unreadable(chunk), [0xFF00]);
    let mut host = Host::new(&mut drive.flash);
    let read = host.run(Op::Read, Addresses::Run { first: Ppa::new(chunk, 8), count: 1 });
    assert_eq!(read.status, Status::UNRECOVERED_READ);
    host.check(chunk, 16, 0);
    assert_eq!(host.reset(chunk), Status::SUCCESS);
    drop(drive);

    let drive = reopen(&place.path);
    assert_eq!(drive.flash.unreadable(chunk), [] as [u64; 0]);
    assert_eq!(drive.flash.chunk(chunk).state, ChunkState::Free);
}

#[test]
fn factory_bad_and_failed_chunks_stay_offline() {
    let place = place();
    let fault = "fault={kind=\"reset_failure\", at=\"g1/p1/c7\"}";
    let mut drive =
        create(&place.path, &spec(&["chunks_per_pu=8", "faults.factory_bad=20%", "seed=3", fault]));
    let failing = ChunkId(31);
    let states = |flash: &Flash| -> Vec<ChunkState> {
        (0..32).map(|chunk| flash.chunk(ChunkId(chunk)).state).collect()
    };
    assert_ne!(drive.flash.chunk(failing).state, ChunkState::Offline, "the seed leaves this chunk good");
    let mut host = Host::new(&mut drive.flash);
    (0..4).for_each(|unit| assert_eq!(host.write(failing, unit * 8, 8, 0), Status::SUCCESS));
    assert_eq!(host.reset(failing), Status::OFFLINE_CHUNK);
    let before = states(&drive.flash);
    assert!(before.iter().filter(|state| **state == ChunkState::Offline).count() > 2, "{before:?}");
    drop(drive);
    assert_eq!(states(&reopen(&place.path).flash), before);
}

#[test]
fn a_power_cut_in_a_backed_drive_is_kept_in_its_image() {
    let settings = ["payload=bytes", "mw_cunits=0", "cache.sectors=64", "faults.write_next_unit=25%"];
    for seed in 0..60 {
        let place = place();
        let mut drive = create(&place.path, &spec(&[&settings[..], &[&format!("seed={seed}")]].concat()));
        let mut prng = Prng::new(seed);
        let mut host = Host::new(&mut drive.flash);
        let fine = [Status::SUCCESS, Status::WRITE_NEXT_UNIT];
        for chunk in (0..6).map(ChunkId) {
            (0..4).for_each(|unit| assert!(fine.contains(&host.write(chunk, unit * 8, 8, 0)), "seed {seed}"));
        }
        let command = |op, chunk, count| Command {
            tag: Tag(9),
            op,
            addresses: Addresses::Run { first: Ppa::new(ChunkId(chunk), 0), count },
            buffer: (op != Op::Reset).then_some(host.buffer),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        for chunk in 0..6 {
            host.flash.submit(host.now, command(Op::Reset, chunk, 1), &mut host.buffers).expect("room");
            let write = command(Op::Write { fua: false }, chunk + 8, 16);
            host.flash.submit(host.now, write, &mut host.buffers).expect("room");
        }
        host.now = Nanos(host.now.0 + prng.below(6_000_000));
        host.flash.power_cut(host.now, &mut prng).expect("the image takes it");
        // Used further, so that marks of sectors that were taken back would come to light.
        for chunk in (0..14).map(ChunkId) {
            let found = host.flash.chunk(chunk);
            if found.state != ChunkState::Closed {
                let life = host.flash.cycles(chunk);
                let first = found.write_pointer.expect("no chunk is offline");
                assert!(fine.contains(&host.write(chunk, first, 8, life)), "seed {seed}");
            }
        }
        let seen = |flash: &Flash| -> Vec<_> {
            let marks = |chunk| flash.unreadable(chunk).first().copied().unwrap_or(0);
            let chunk = |chunk| (flash.chunk(chunk), flash.cycles(chunk), marks(chunk));
            (0..32).map(ChunkId).map(chunk).collect()
        };
        let before = seen(&drive.flash);
        drop(drive);
        for (chunk, (found, expected)) in seen(&reopen(&place.path).flash).iter().zip(&before).enumerate() {
            assert_eq!(found, expected, "seed {seed}, chunk {chunk}");
        }
    }
}

#[test]
fn the_table_of_targets_lasts_and_a_torn_update_leaves_the_older_one() {
    let place = place();
    let mut drive = create(&place.path, &spec(&[]));
    for (name, unit) in [("a", 0), ("b", 1), ("c", 2)] {
        drive.media_manager.create(name, "linear", &[PuId(unit)]).expect("free");
        drive.save_leases().unwrap_or_else(|error| panic!("{error}"));
    }
    drop(drive);
    let drive = reopen(&place.path);
    assert_eq!(drive.media_manager.to_text(), "a linear pu:0\nb linear pu:1\nc linear pu:2\n");
    drop(drive);

    // Generation 4 lies in slot 0, generation 3 in slot 1.
    let at = header_u64(&place.path, 56);
    flip(&place.path, at + 40, 1);
    let drive = reopen(&place.path);
    assert_eq!(drive.media_manager.to_text(), "a linear pu:0\nb linear pu:1\n");
    let damage = drive.image.as_ref().expect("an image").damage().to_vec();
    assert!(damage.len() == 1 && damage[0].contains("older table is used"), "{damage:?}");
    drop(drive);
    flip(&place.path, at + header_u64(&place.path, 64) + 40, 1);
    assert!(refusal(&place.path).contains("neither copy of its table of targets is sound"));
}

fn header_u64(path: &Path, at: u64) -> u64 {
    let mut bytes = [0; 8];
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at)).expect("it can be read");
    u64::from_le_bytes(bytes)
}

fn flip(path: &Path, at: u64, bits: u8) {
    let file = FileOptions::new().read(true).write(true).open(path).expect("it can be opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ bits], at).expect("it can be written");
}

#[test]
fn a_flipped_byte_of_header_or_settings_is_refused() {
    let place = place();
    drop(create(&place.path, &spec(&[])));
    let end = header_u64(&place.path, 56);
    for at in 0..end {
        flip(&place.path, at, 0x10);
        let error = refusal(&place.path);
        assert!(error.contains("drive.img is not usable: "), "byte {at}: {error}");
        flip(&place.path, at, 0x10);
    }
    reopen(&place.path);
}

#[test]
fn a_damaged_record_is_named_and_can_be_accepted_as_a_lost_chunk() {
    let place = place();
    let mut drive = create(&place.path, &spec(&[]));
    let mut host = Host::new(&mut drive.flash);
    assert_eq!(host.write(ChunkId(5), 0, 16, 0), Status::SUCCESS);
    assert_eq!(host.write(ChunkId(6), 0, 16, 0), Status::SUCCESS);
    drop(drive);
    let at = header_u64(&place.path, 72) + 5 * 32 + 8;
    flip(&place.path, at, 1);
    let error = refusal(&place.path);
    for part in
        ["the record of chunk 5 at byte ", "has checksum", "restore the image from a copy, or open it with"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(error.contains(&(at - 8).to_string()), "{error}");

    let options = OpenOptions { damage: Damage::Accept, ..OpenOptions::default() };
    let mut drive = Image::open(&place.path, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(drive.image.as_ref().expect("an image").damage().len(), 1);
    assert_eq!(drive.flash.chunk(ChunkId(5)).state, ChunkState::Offline);
    Host::new(&mut drive.flash).check(ChunkId(6), 0, 0);
    drop(drive);
    let drive = reopen(&place.path);
    assert_eq!(drive.flash.chunk(ChunkId(5)).state, ChunkState::Offline, "it stays lost");
    assert!(drive.image.expect("an image").damage().is_empty(), "and is settled");
}

#[test]
fn what_is_no_whole_image_is_refused_with_what_is_wrong() {
    let place = place();
    drop(create(&place.path, &spec(&[])));
    let whole = std::fs::read(&place.path).expect("it can be read");
    let length = whole.len();
    let version = [&whole[..8], &[9, 0, 0, 0], &whole[12..]].concat();
    let older = [&whole[..8], &[1, 0, 0, 0], &whole[12..]].concat();
    let table: [(Vec<u8>, String); 7] = [
        (Vec::new(), "it has 0 bytes, but an image has more than 4096".into()),
        (vec![b'x'; 9000], "it does not begin with \"OCSSDIMG\"".into()),
        (version, "it has format version 9, but this program reads version 3; use the newer program".into()),
        (older, "it has format version 1, but this program reads version 3; use the older program".into()),
        (
            whole[..length - 1].to_vec(),
            format!("it is truncated: {length} bytes are expected, {} were found", length - 1),
        ),
        (whole[..4096].to_vec(), format!("it is truncated: {length} bytes are expected, 4096 were found")),
        ([&whole[..], b"more"].concat(), format!("longer than it was made: {length} bytes are expected")),
    ];
    for (bytes, expected) in table {
        std::fs::write(&place.path, bytes).expect("it can be written");
        let error = refusal(&place.path);
        assert!(error.contains(&expected), "expected \"{expected}\" in \"{error}\"");
    }
    let error = Image::open(place.path.parent().expect("a folder"), &OpenOptions::default()).err();
    assert!(matches!(error, Some(DriveError::Io { .. } | DriveError::Image { .. })), "a folder is no image");
    let missing = refusal(&place.path.with_file_name("missing.img"));
    assert!(missing.contains("missing.img cannot be opened: "), "{missing}");
}

#[test]
fn one_process_at_a_time_writes_and_lookers_share() {
    let place = place();
    let drive = create(&place.path, &spec(&[]));
    assert!(refusal(&place.path).contains("is in use by another process"));
    let replaced = Image::create(&place.path, &spec(&[]), Existing::Replace).err().expect("it is in use");
    assert!(matches!(replaced, DriveError::Locked { .. }), "{replaced}");
    // The handle alone still locks it, and so does the drive alone.
    let OpenDrive { flash, image, .. } = drive;
    drop(flash);
    assert!(refusal(&place.path).contains("is in use"));
    drop(image);

    let inspect = OpenOptions { access: Access::Inspect, ..OpenOptions::default() };
    let look = || Image::open(&place.path, &inspect).unwrap_or_else(|error| panic!("{error}"));
    let (mut one, two) = (look(), look());
    assert!(refusal(&place.path).contains("is in use"));
    assert_eq!(Host::new(&mut one.flash).write(ChunkId(0), 0, 8, 0), Status::INTERNAL_ERROR);
    assert!(one.flash.store_error().expect("it failed").to_string().contains("opened read-only"));
    one.media_manager.create("a", "linear", &[PuId(0)]).expect("free");
    assert!(matches!(one.save_leases(), Err(DriveError::ReadOnly { .. })));
    drop((one, two));
    assert_eq!(reopen(&place.path).flash.chunk(ChunkId(0)).state, ChunkState::Free, "nothing was written");
}

#[test]
fn a_new_image_is_for_its_owner_only_and_replacing_follows_no_link() {
    let place = place();
    drop(create(&place.path, &spec(&[])));
    let mode = std::fs::metadata(&place.path).expect("it was made").mode();
    assert_eq!(mode & 0o777, 0o600);
    let link = place.path.with_extension("link");
    std::os::unix::fs::symlink(&place.path, &link).expect("a temporary directory");
    let before = std::fs::read(&place.path).expect("it was made");
    let refused =
        Image::create(&link, &spec(&["seed=9"]), Existing::Replace).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|error| error.contains("symbolic link")), "{refused:?}");
    assert_eq!(std::fs::read(&place.path).expect("it is there"), before, "nothing of it is lost");
}

#[test]
fn an_existing_file_is_replaced_only_when_asked() {
    let place = place();
    std::fs::write(&place.path, b"somebody's data").expect("it can be written");
    let refused = Image::create(&place.path, &spec(&[]), Existing::Refuse).err().expect("the file exists");
    assert!(matches!(refused, DriveError::Exists { .. }), "{refused}");
    assert_eq!(std::fs::read(&place.path).expect("it exists"), b"somebody's data");
    drop(Image::create(&place.path, &spec(&[]), Existing::Replace).unwrap_or_else(|error| panic!("{error}")));
    let source = Source::named(place.path.to_str().expect("plain")).expect("it exists");
    assert_eq!(source, Source::Image(place.path));
    assert!(open(&source).is_ok_and(|drive| drive.image.is_some()));
}

#[test]
fn settings_on_top_of_an_image_hold_for_one_opening_and_leave_its_shape() {
    let place = place();
    drop(create(&place.path, &spec(&[])));
    let with = |setting: &str| OpenOptions { settings: vec![setting.into()], ..OpenOptions::default() };
    let drive = Image::open(&place.path, &with("media.erase=5ms")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(drive.flash.config().media.erase, Nanos::from_millis(5));
    drop(drive);
    assert_eq!(reopen(&place.path).flash.config().media.erase, Nanos::from_millis(3));
    for setting in
        ["chunks_per_pu=9", "payload=bytes", "wear.initial_cycles=1", "oob_bytes=8", "lba_format.pu_bits=7"]
    {
        let error = Image::open(&place.path, &with(setting)).err().expect(setting);
        assert!(matches!(error, DriveError::Shape { .. }), "{setting}: {error}");
    }
}

#[test]
fn a_drive_of_two_terabytes_is_made_of_holes_and_used_at_its_end() {
    let place = place();
    let mut spec = DriveSpec::preset("westlake").expect("the preset exists");
    spec.apply("payload=bytes").expect("a known payload");
    let mut drive = create(&place.path, &spec);
    let last = ChunkId(spec.config.geometry.chunk_count() - 1);
    let mut host = Host::new(&mut drive.flash);
    for first in (0..256).step_by(64) {
        assert_eq!(host.write(last, first, 64, 0), Status::SUCCESS);
    }
    drop(drive);
    let metadata = std::fs::metadata(&place.path).expect("it exists");
    assert!(metadata.len() > 2_000_000_000_000, "{} bytes", metadata.len());
    assert!(metadata.blocks() * 512 < 8 << 20, "{} bytes on disk", metadata.blocks() * 512);
    let mut drive = reopen(&place.path);
    assert_eq!(drive.flash.chunk(last).write_pointer, Some(256));
    Host::new(&mut drive.flash).check(last, 0, 0);
}

#[test]
fn a_file_system_that_cannot_take_the_size_says_so_and_keeps_no_file() {
    let place = place();
    // 8 EiB less a little: beyond every file system but within what a file's length can say.
    let huge =
        ["payload=bytes", "sector_bytes=65536", "groups=1024", "pus_per_group=1024", "chunks_per_pu=64"];
    let spec = spec(&[&huge[..], &["sectors_per_chunk=1048576", "oob_bytes=0"]].concat());
    let Err(error) = Image::create(&place.path, &spec, Existing::Refuse) else {
        panic!("no file is that large")
    };
    let error = error.to_string();
    assert!(error.contains("cannot be given its size") || error.contains("no file can hold"), "{error}");
    assert!(!place.path.exists());
}

/// Hosts tell drives apart by names that are made of the UUID. Images of one seed have different ones, which stay.
#[test]
fn an_image_has_a_uuid_of_its_own_that_stays() {
    let places = [place(), place()];
    let uuids = places.each_ref().map(|place| create(&place.path, &spec(&[])).uuid);
    assert_ne!(uuids[0], uuids[1]);
    for (place, uuid) in places.iter().zip(uuids) {
        assert_eq!(uuid.to_string().as_bytes()[14], b'4', "{uuid} is random: of version 4");
        (0..2).for_each(|_| assert_eq!(reopen(&place.path).uuid, uuid));
    }
    let of_preset = || open(&Source::named("tiny").expect("a preset")).expect("it opens").uuid;
    assert_ne!(of_preset(), of_preset(), "drives in memory");
    drop(Image::create(&places[0].path, &spec(&[]), Existing::Replace));
    assert_ne!(reopen(&places[0].path).uuid, uuids[0], "another drive is in the file");
}

/// Images that were made before there were UUIDs have zeroes there.
#[test]
fn an_image_without_a_uuid_is_called_by_its_seed() {
    let place = place();
    drop(create(&place.path, &spec(&["seed=77"])));
    let file = FileOptions::new().read(true).write(true).open(&place.path).expect("it exists");
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, 0).expect("a page");
    page[136..152].fill(0);
    page[12..16].fill(0);
    let crc = crc32fast::hash(&page);
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    file.write_all_at(&page, 0).expect("it can be written");
    for _ in 0..2 {
        assert_eq!(reopen(&place.path).uuid.to_string(), "00000000-0000-8000-8000-00000000004d");
    }
}
