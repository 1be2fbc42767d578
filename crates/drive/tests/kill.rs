//! A process that writes to an image is killed at any moment; everything it was told of is there afterwards.
//!
//! The test starts itself as that process. The writer prints a line after each completion; the tester reads lines,
//! kills it with SIGKILL after a varied number of them, reads the rest, and compares the reopened image with what the
//! lines say. The writer does one command at a time, so at most one more may have reached the image than was printed.
//! Images of real bytes and of stamps take turns; to the latter half of the writes give whole sectors.

use ocssd_base::{Nanos, Prng};
use ocssd_drive::{DriveSpec, Existing, Image, OpenDrive, OpenOptions};
use ocssd_flash::Flash;
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkId, ChunkState, Command, Completion, Device, Op, Payload, PlaneMode, Ppa,
    Status, Tag,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};

/// Rounds of writing and killing on one image, for each of the seeds.
const ROUNDS: u64 = 20;
const SEEDS: u64 = 4;
/// The argument that makes this program the writer.
const WRITER: &str = "--write-until-killed";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, path, seed] = arguments.as_slice()
        && role == WRITER
    {
        write_until_killed(Path::new(path), seed.parse().expect("the tester gives a number"));
    }
    for seed in 0..SEEDS {
        let (told, untold) = kill_rounds(seed);
        println!(
            "seed {seed}: {ROUNDS} kills, {told} completions told and kept, {untold} more begun and kept"
        );
    }
}

/// A drive with a host that does one thing at a time.
struct Host {
    flash: Flash,
    buffers: Buffers,
    buffer: BufId,
    whole: BufId,
    now: Nanos,
}

impl Host {
    fn new(drive: OpenDrive) -> Self {
        let flash = drive.flash;
        let mut buffers = Buffers::new(flash.payload_format());
        let (buffer, whole) = (buffers.take(64), buffers.take_whole(64));
        Self { flash, buffers, buffer, whole, now: Nanos::ZERO }
    }

    fn run(&mut self, op: Op, first: Ppa, count: u32) -> Completion {
        self.run_on(self.buffer, op, first, count)
    }

    fn run_on(&mut self, buffer: BufId, op: Op, first: Ppa, count: u32) -> Completion {
        let buffer = (op != Op::Reset).then_some(buffer);
        let addresses = Addresses::Run { first, count };
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
}

/// What a sector holds in a life of its chunk.
fn content(place: Ppa, life: u32, bytes: usize) -> Vec<u8> {
    let mut prng =
        Prng::new(u64::from(place.chunk.0) << 48 | u64::from(place.sector) << 32 | u64::from(life));
    (0..bytes.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes()).take(bytes).collect()
}

/// All bytes of a sector whose stamp this is: the stamp's last byte says whether it was written whole.
fn all_bytes(stamp: &[u8], sector_bytes: usize) -> Vec<u8> {
    if stamp.last().is_some_and(|last| last % 2 == 1) {
        stamp.iter().map(|byte| !byte).cycle().take(sector_bytes).collect()
    } else {
        stamp.iter().copied().chain(std::iter::repeat(0)).take(sector_bytes).collect()
    }
}

fn spec(payload: Payload) -> DriveSpec {
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    let settings = [
        if payload == Payload::Bytes { "payload=bytes" } else { "payload=stamp" },
        "mw_cunits=0",
        "sector_bytes=512",
        "faults.write_next_unit=3%",
        "faults.early_close=1%",
    ];
    spec.apply_all(&settings).unwrap_or_else(|error| panic!("{error}"));
    spec
}

/// The writer: fills chunks in turn and resets full ones, telling each completion, until it is killed.
fn write_until_killed(path: &Path, seed: u64) -> ! {
    let drive = Image::open(path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut host = Host::new(drive);
    let mut prng = Prng::new(seed);
    let chunks = u64::from(host.flash.geometry().chunk_count());
    let mut out = std::io::stdout();
    loop {
        let chunk = ChunkId(u32::try_from(prng.below(chunks)).expect("few chunks"));
        let found = host.flash.chunk(chunk);
        let line = match (found.state, found.write_pointer) {
            (ChunkState::Closed, _) => {
                let status = host.run(Op::Reset, Ppa::new(chunk, 0), 1).status;
                assert_eq!(status, Status::SUCCESS, "chunk {}", chunk.0);
                format!("R {} {}\n", chunk.0, host.flash.cycles(chunk))
            }
            (_, Some(first)) => {
                let count = u32::try_from(prng.below(u64::from((32 - first) / 4))).expect("few") * 4 + 4;
                let is_whole = prng.below(2) == 1;
                write(&mut host, Ppa::new(chunk, first), count, is_whole)
            }
            (state, None) => panic!("chunk {} is {state}", chunk.0),
        };
        // One write of one line: it is told whole or not at all.
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the tester reads until the end");
    }
}

fn write(host: &mut Host, first: Ppa, count: u32, is_whole: bool) -> String {
    let life = host.flash.cycles(first.chunk);
    let format = host.flash.payload_format();
    for sector in 0..count {
        let bytes =
            content(Ppa::new(first.chunk, first.sector + sector), life, format.data_bytes + format.oob_bytes);
        let (mut data, oob) = (bytes[..format.data_bytes].to_vec(), &bytes[format.data_bytes..]);
        if format.payload == Payload::Stamp {
            let last = data.last_mut().expect("sixteen bytes");
            *last = *last & !1 | u8::from(is_whole);
        }
        for buffer in [host.buffer, host.whole] {
            host.buffers.data_mut(buffer, sector, 1).copy_from_slice(&data);
            host.buffers.oob_mut(buffer, sector, 1).copy_from_slice(oob);
        }
        if format.payload == Payload::Stamp && is_whole {
            let all = all_bytes(&data, format.sector_bytes);
            host.buffers.whole_mut(host.whole, sector, 1).copy_from_slice(&all);
        }
    }
    let buffer = if is_whole { host.whole } else { host.buffer };
    let status = host.run_on(buffer, Op::Write { fua: false }, first, count).status;
    let known = [Status::SUCCESS, Status::WRITE_NEXT_UNIT, Status::EARLY_CLOSE];
    assert!(known.contains(&status), "a write ended with {:03X}h", status.0);
    let found = host.flash.chunk(first.chunk);
    let pointer = found.write_pointer.expect("the chunk is not offline");
    let marks = host.flash.unreadable(first.chunk).first().copied().unwrap_or(0);
    format!("W {} {life} {pointer} {} {marks}\n", first.chunk.0, found.state)
}

/// A chunk as the writer last told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    life: u32,
    pointer: u32,
    state: String,
    marks: u64,
}

impl Told {
    fn fresh(life: u32) -> Self {
        Self { life, pointer: 0, state: "FREE".into(), marks: 0 }
    }
}

/// Takes a line; false if it is not whole.
fn take_line(line: &str, told: &mut [Told]) -> bool {
    let Some(line) = line.strip_suffix('\n') else { return false };
    let words: Vec<&str> = line.split(' ').collect();
    let number = |index: usize| words[index].parse::<u64>().expect("the writer prints numbers");
    let small = |index: usize| u32::try_from(number(index)).expect("a small number");
    let chunk = ChunkId(small(1)).index();
    told[chunk] = match words[0] {
        "R" => Told::fresh(small(2)),
        "W" => Told { life: small(2), pointer: small(3), state: words[4].into(), marks: number(5) },
        other => panic!("the writer printed {other}"),
    };
    true
}

/// Kills the writer in rounds on one image; returns how many completions were told, and how many more commands left a
/// trace.
fn kill_rounds(seed: u64) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("drive.img");
    let payload = if seed.is_multiple_of(2) { Payload::Stamp } else { Payload::Bytes };
    let drive =
        Image::create(&path, &spec(payload), Existing::Refuse).unwrap_or_else(|error| panic!("{error}"));
    let chunks = ChunkId(drive.spec.config.geometry.chunk_count()).index();
    drop(drive);
    let mut told = vec![Told::fresh(0); chunks];
    let mut prng = Prng::new(seed);
    let (mut count, mut untold) = (0, 0);
    for round in 0..ROUNDS {
        let context = format!("seed {seed}, round {round}");
        count += kill_once(&path, seed * ROUNDS + round, prng.below(400), &mut told);
        let drive =
            Image::open(&path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
        untold += compare(drive, &mut told, &context);
    }
    (count, untold)
}

fn kill_once(path: &Path, seed: u64, lines: u64, told: &mut [Told]) -> u64 {
    let program = std::env::current_exe().expect("this program has a path");
    let mut writer = Process::new(program)
        .args([WRITER.as_ref(), path.as_os_str(), seed.to_string().as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut output = BufReader::new(writer.stdout.take().expect("it is piped"));
    let mut count = 0;
    loop {
        let mut line = String::new();
        if count == lines {
            writer.kill().expect("it is running");
        }
        if output.read_line(&mut line).expect("the writer prints text") == 0 {
            break;
        }
        count += u64::from(take_line(&line, told));
    }
    let status = writer.wait().expect("it was started");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9),
        "the writer ended by itself: {status}"
    );
    assert!(count >= lines, "{count} of {lines} lines");
    count
}

/// Compares the image with what was told, and takes over what the one untold command did; returns 1 if there was one.
fn compare(drive: OpenDrive, told: &mut [Told], context: &str) -> u64 {
    drive.flash.check();
    let mut host = Host::new(drive);
    let mut untold = 0;
    for (chunk, told) in (0..).map(ChunkId).zip(told) {
        let found = host.flash.chunk(chunk);
        let seen = Told {
            life: host.flash.cycles(chunk),
            pointer: found.write_pointer.unwrap_or(0),
            state: found.state.to_string(),
            marks: host.flash.unreadable(chunk).first().copied().unwrap_or(0),
        };
        if seen != *told {
            untold += 1;
            let context = format!("{context}, chunk {}: {told:?} was told, {seen:?} was found", chunk.0);
            let reset = seen == Told::fresh(told.life + 1) && told.state == "CLOSED";
            let below = (1u64 << told.pointer) - 1;
            let written = seen.life == told.life && seen.pointer >= told.pointer && told.state != "CLOSED";
            assert!(reset || (written && seen.marks & below == told.marks), "{context}");
            *told = seen;
        }
        check_content(&mut host, chunk, told, context);
    }
    assert!(untold <= 1, "{context}: {untold} chunks differ from what was told");
    untold
}

fn check_content(host: &mut Host, chunk: ChunkId, told: &Told, context: &str) {
    let format = host.flash.payload_format();
    for sector in 0..told.pointer {
        let place = Ppa::new(chunk, sector);
        let status = host.run_on(host.whole, Op::Read, place, 1).status;
        let context = format!("{context}, chunk {} sector {sector} of {told:?}", chunk.0);
        if told.marks >> sector & 1 == 1 {
            assert_eq!(status, Status::UNRECOVERED_READ, "{context}");
            continue;
        }
        assert_eq!(status, Status::SUCCESS, "{context}");
        let expected = content(place, told.life, format.data_bytes + format.oob_bytes);
        let mut stamp = host.buffers.data(host.whole, 0, 1).to_vec();
        if format.payload == Payload::Stamp {
            let all = all_bytes(&stamp, format.sector_bytes);
            assert!(host.buffers.whole(host.whole, 0, 1) == all, "{context}: other bytes beside the stamp");
            let last = stamp.len() - 1;
            stamp[last] = stamp[last] & !1 | expected[last] & 1;
        }
        assert_eq!(stamp, &expected[..format.data_bytes], "{context}");
        assert_eq!(host.buffers.oob(host.whole, 0, 1), &expected[format.data_bytes..], "{context}");
    }
}
