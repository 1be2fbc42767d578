//! A drive with its buffers and virtual time, as the tests of this crate use it. Content is a number per sector, so that
//! what a sector holds can be told from any other.

use ocssd_base::Nanos;
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Op, PayloadFormat,
    PlaneMode, Ppa, Status, Tag,
};

/// Sectors of the rig's own buffers.
pub const BUFFER_SECTORS: u32 = 256;

/// The settings of a preset; `tiny` has eight chunks a unit here: tests name chunks by number, and visit every one.
pub fn preset(name: &str) -> Config {
    let mut config = presets::find(name).expect("a preset of this name").config();
    if name == "tiny" {
        config.geometry.chunks_per_pu = 8;
        config.geometry.lba_format.chunk_bits = 3;
    }
    config
}

/// 32 bits as an index.
pub fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// Sector `sector` of chunk `chunk`, both counted as the drive counts them.
pub fn ppa(chunk: u32, sector: u32) -> Ppa {
    Ppa::new(ChunkId(chunk), sector)
}

/// `count` sectors from `first` on.
pub fn run(first: Ppa, count: u32) -> Addresses {
    Addresses::Run { first, count }
}

/// A command end, and when the host heard of it.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub at: Nanos,
    pub completion: Completion,
}

/// A drive under test.
pub struct Rig<D = Flash> {
    pub drive: D,
    pub buffers: Buffers,
    pub now: Nanos,
    pub buffer: BufId,
    next_tag: u32,
}

impl Rig<Flash> {
    /// A freshly formatted drive.
    pub fn new(config: Config) -> Self {
        let flash = Flash::format(config).expect("settings that can be used");
        let format = flash.payload_format();
        Self::with(flash, format)
    }

    /// The descriptors of all chunks.
    pub fn report(&self) -> Vec<ChunkDescriptor> {
        (0..self.drive.geometry().chunk_count()).map(|chunk| self.drive.chunk(ChunkId(chunk))).collect()
    }
}

impl<D: Device> Rig<D> {
    /// Any device whose sectors have this format.
    pub fn with(drive: D, format: PayloadFormat) -> Self {
        let mut buffers = Buffers::new(format);
        let buffer = buffers.take(BUFFER_SECTORS);
        Self { drive, buffers, now: Nanos::ZERO, buffer, next_tag: 0 }
    }

    /// A command on the rig's buffer with a tag of its own.
    pub fn command(&mut self, op: Op, addresses: Addresses) -> Command {
        self.next_tag += 1;
        let buffer = (op != Op::Flush && op != Op::Reset).then_some(self.buffer);
        let buffer = if matches!(addresses, Addresses::List { .. }) { Some(self.buffer) } else { buffer };
        Command {
            tag: Tag(self.next_tag),
            op,
            addresses,
            buffer,
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        }
    }

    /// A command on the addresses of `list`, which is put into the rig's buffer.
    pub fn vector(&mut self, op: Op, list: &[Ppa]) -> Command {
        self.buffers.addresses_mut(self.buffer)[..list.len()].copy_from_slice(list);
        let entries = u32::try_from(list.len()).expect("a short list");
        let count = if op == Op::Copy { entries / 2 } else { entries };
        self.command(op, Addresses::List { offset: 0, count })
    }

    /// Puts `id` into the payload and the metadata of a sector of `buffer`.
    pub fn fill(&mut self, buffer: BufId, sector: u32, id: u64) {
        let stamp = content(id);
        for (place, byte) in self.buffers.data_mut(buffer, sector, 1).iter_mut().zip(stamp.iter().cycle()) {
            *place = *byte;
        }
        let stamp = content(!id);
        for (place, byte) in self.buffers.oob_mut(buffer, sector, 1).iter_mut().zip(stamp.iter().cycle()) {
            *place = *byte;
        }
    }

    /// What [`Rig::fill`] put into a sector; asserts that all its bytes and its metadata agree.
    pub fn id_of(&self, buffer: BufId, sector: u32) -> u64 {
        let data = self.buffers.data(buffer, sector, 1);
        let id = u64::from_le_bytes(data[..8].try_into().expect("eight bytes"));
        assert!(
            data.iter().zip(content(id).iter().cycle()).all(|(a, b)| a == b),
            "a sector of mixed content"
        );
        let oob = self.buffers.oob(buffer, sector, 1);
        assert!(
            oob.iter().zip(content(!id).iter().cycle()).all(|(a, b)| a == b),
            "metadata of another sector"
        );
        id
    }

    /// Submits each command at its time, and waits for all of them. Ends come in the order the drive gives them.
    pub fn play(&mut self, arrivals: &[(Nanos, Command)]) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut arrivals = arrivals.iter().copied().peekable();
        let expected = arrivals.len();
        while ended.len() < expected {
            let arrival = arrivals.peek().map(|&(at, _)| at);
            let next =
                arrival.into_iter().chain(self.drive.deadline()).min().expect("commands are in flight");
            self.now = self.now.max(next);
            while let Some(completion) = self.drive.poll_completion(self.now, &mut self.buffers) {
                ended.push(Ended { at: self.now, completion });
            }
            while let Some((_, command)) = arrivals.next_if(|&(at, _)| at <= self.now) {
                self.drive.submit(self.now, command, &mut self.buffers).expect("room for another command");
            }
        }
        ended
    }

    /// One command, now; returns how long it took and how it ended. The rig's time is then the end of it.
    pub fn one(&mut self, command: Command) -> (Nanos, Completion) {
        let start = self.now;
        let ended = self.play(&[(start, command)]);
        (ended[0].at - start, ended[0].completion)
    }

    /// One read of `count` sectors into the rig's buffer.
    pub fn read(&mut self, first: Ppa, count: u32) -> (Nanos, Completion) {
        let command = self.command(Op::Read, run(first, count));
        self.one(command)
    }

    /// One write of `count` sectors, whose contents are `id`, `id + 1`, ...
    pub fn write(&mut self, first: Ppa, count: u32, id: u64) -> (Nanos, Completion) {
        for sector in 0..count {
            self.fill(self.buffer, sector, id + u64::from(sector));
        }
        let command = self.command(Op::Write { fua: false }, run(first, count));
        self.one(command)
    }

    /// One write that must succeed, unit by unit until `count` sectors are written from the chunk's start.
    pub fn write_ok(&mut self, chunk: u32, sectors: std::ops::Range<u32>, id: u64) {
        let unit = self.drive.geometry().ws_opt;
        let mut at = sectors.start;
        while at < sectors.end {
            let count = unit.min(sectors.end - at);
            let (_, end) = self.write(ppa(chunk, at), count, id + u64::from(at));
            assert_eq!(end.status, Status::SUCCESS, "write of chunk {chunk} at {at}: {end:?}");
            at += count;
        }
        self.settle();
    }

    /// Fills a chunk with the contents `id`, `id + 1`, ...
    pub fn fill_chunk(&mut self, chunk: u32, id: u64) {
        self.write_ok(chunk, 0..self.drive.geometry().sectors_per_chunk, id);
    }

    /// One reset.
    pub fn reset(&mut self, chunk: u32) -> (Nanos, Completion) {
        let command = self.command(Op::Reset, run(ppa(chunk, 0), 1));
        self.one(command)
    }

    /// One flush.
    pub fn flush(&mut self) -> (Nanos, Completion) {
        let command = self.command(Op::Flush, Addresses::None);
        self.one(command)
    }

    /// Lets time pass until the drive has nothing left to do.
    pub fn settle(&mut self) {
        while let Some(at) = self.drive.deadline() {
            self.now = self.now.max(at);
            let completion = self.drive.poll_completion(self.now, &mut self.buffers);
            assert_eq!(completion, None, "nobody waits for a command");
        }
    }
}

/// Sixteen bytes that stand for `id`.
pub fn content(id: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..].copy_from_slice(&id.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    bytes
}
