//! `lightlsm` on a small drive in virtual time, asked one request at a time.

use ocssd_base::Prng;
use ocssd_engine::{Clock, Host, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::table::{
    TableAnswer, TableHint, TableId, TableKind, TableLimits, TableOp, TableReply, TableRequest, TableTarget,
};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Buffers, ChunkId, Geometry, Payload, PuId, Status, Tag, TargetId};
use ocssd_targets::lightlsm::{LightLsm, MountReport, Options};

/// The only target.
const TARGET: TargetId = TargetId(0);
/// Units of the drive, in two groups.
pub const UNITS: u32 = 4;
/// Chunks of a unit.
pub const CHUNKS: u32 = 80;
/// Bytes of a chunk.
pub const CHUNK_BYTES: u32 = 32 * 4096;

/// A small drive on which what was written last cannot be read at once, and which resets closed chunks only.
fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(2, UNITS / 2, CHUNKS, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Everything of a test.
pub struct Rig {
    pub host: Host<Flash, VirtualClock, dyn TableTarget>,
    options: Vec<(&'static str, &'static str)>,
    /// What the mount did.
    pub report: MountReport,
    tag: u32,
}

impl Rig {
    /// Tables on a fresh drive.
    pub fn new(options: &[(&'static str, &'static str)]) -> Self {
        Self::on(Flash::format(config()).expect("a sound drive"), VirtualClock::default(), options)
    }

    fn on(flash: Flash, clock: VirtualClock, options: &[(&'static str, &'static str)]) -> Self {
        let buffers = Buffers::new(flash.payload_format());
        let mut host: Host<Flash, VirtualClock, dyn TableTarget> = Host::new(flash, clock, buffers);
        let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
        let mut chosen = Options::default();
        for (name, value) in options {
            chosen.set(name, value).expect("a sound option");
        }
        let (target, report) = LightLsm::mount(&mut host.caller(), &units, &chosen).expect("it fits");
        host.add(Box::new(target));
        Self { host, options: options.to_vec(), report, tag: 0 }
    }

    /// The same drive after a power cut, mounted again.
    pub fn cut(&self) -> Self {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.host.clock().now();
        flash.power_cut(now, &mut Prng::new(1)).expect("memory does not fail");
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        Self::on(flash, clock, &self.options)
    }

    /// What the target promises.
    pub fn limits(&self) -> TableLimits {
        self.host.target(TARGET).limits()
    }

    /// What the target counted.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.host.target(TARGET).counters();
        let counter = counters.iter().find(|counter| counter.name == name).expect("a counter");
        match counter.value {
            CounterValue::Count(value) | CounterValue::Gauge(value) => value,
            _ => panic!("{name} is no number"),
        }
    }

    /// How often each chunk was reset, by the drive.
    pub fn cycles(&self) -> Vec<u32> {
        (0..UNITS * CHUNKS).map(|chunk| self.host.device().cycles(ChunkId(chunk))).collect()
    }

    /// Resets the least worn chunk is behind the most worn one, by the drive.
    pub fn spread(&self) -> u32 {
        let cycles = self.cycles();
        cycles.iter().max().expect("some") - cycles.iter().min().expect("some")
    }

    fn ask(&mut self, op: TableOp) -> TableReply {
        self.tag += 1;
        let reply = self.host.ask(TableRequest { tag: Tag(self.tag), op });
        assert!(reply.status.is_success() && reply.refusal.is_none(), "{op:?}: {reply:?}");
        reply
    }

    fn piece(&mut self, bytes: u32) -> Piece {
        let buffers = self.host.buffers_mut();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("short");
        Piece { buffer: buffers.take_whole(bytes.div_ceil(sector).max(1)), first_byte: 0, bytes }
    }

    /// Begins a table or log.
    pub fn create(&mut self, table: u64, kind: TableKind, stream: u8, bytes: u64) {
        let hint = TableHint { level: 0, stream };
        self.ask(TableOp::Create { table: TableId(table), kind, hint, bytes_expected: bytes });
    }

    /// Appends bytes of one value, and waits for them.
    pub fn append(&mut self, table: u64, bytes: u32, durability: Durability) {
        let piece = self.piece(bytes);
        let fill = u8::try_from(table % 251).expect("below 256");
        piece.scatter(self.host.buffers_mut(), &vec![fill; usize::try_from(bytes).expect("an index")]);
        self.ask(TableOp::Append { table: TableId(table), content: Content::Piece(piece), durability });
        self.host.buffers_mut().give_back(piece.buffer);
    }

    /// Appends these bytes, and waits for them.
    pub fn append_bytes(&mut self, table: u64, bytes: &[u8], durability: Durability) {
        let piece = self.piece(u32::try_from(bytes.len()).expect("short"));
        piece.scatter(self.host.buffers_mut(), bytes);
        self.ask(TableOp::Append { table: TableId(table), content: Content::Piece(piece), durability });
        self.host.buffers_mut().give_back(piece.buffer);
    }

    /// Reads bytes from `offset` on into a buffer of so many sectors, from byte `first` on. How many there were, and the buffer,
    /// whose bytes were all `around` before.
    pub fn read(
        &mut self,
        table: u64,
        offset: u64,
        (sectors, first, bytes): (u32, u64, u64),
        around: u8,
    ) -> (u32, Vec<u8>) {
        let buffers = self.host.buffers_mut();
        let buffer = buffers.take_whole(sectors);
        buffers.whole_mut(buffer, 0, sectors).fill(around);
        let narrow = |number: u64| u32::try_from(number).expect("a buffer is short");
        let piece = Piece { buffer, first_byte: narrow(first), bytes: narrow(bytes) };
        let reply = self.ask(TableOp::Read { table: TableId(table), offset, into: Content::Piece(piece) });
        let TableAnswer::Read { bytes } = reply.answer else { panic!("{reply:?} is no read's") };
        let all = self.host.buffers().whole(buffer, 0, sectors).to_vec();
        self.host.buffers_mut().give_back(buffer);
        (bytes, all)
    }

    /// How a read of so many bytes as these sectors have ends, from `offset` on.
    pub fn read_status(&mut self, table: u64, offset: u64, sectors: u32) -> Status {
        self.tag += 1;
        let buffer = self.host.buffers_mut().take_whole(sectors);
        let piece = Piece { buffer, first_byte: 0, bytes: sectors * 4096 };
        let op = TableOp::Read { table: TableId(table), offset, into: Content::Piece(piece) };
        let status = self.host.ask(TableRequest { tag: Tag(self.tag), op }).status;
        self.host.buffers_mut().give_back(buffer);
        status
    }

    /// Publishes a table, with no attributes.
    pub fn publish(&mut self, table: u64) {
        let piece = self.piece(0);
        self.ask(TableOp::Publish { table: TableId(table), attributes: Content::Piece(piece) });
        self.host.buffers_mut().give_back(piece.buffer);
    }

    /// A table of so many bytes, from its begin to its publication.
    pub fn table(&mut self, table: u64, stream: u8, bytes: u32) {
        self.create(table, TableKind::Table, stream, u64::from(bytes));
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(CHUNK_BYTES / 2);
            self.append(table, piece, Durability::AtFlush);
            left -= piece;
        }
        self.publish(table);
    }

    /// Deletes a table or log.
    pub fn delete(&mut self, table: u64) {
        self.ask(TableOp::Delete { table: TableId(table) });
    }

    /// The first bytes of a table are what was appended.
    pub fn check_begin(&mut self, table: u64) {
        let piece = self.piece(4096);
        let reply = self.ask(TableOp::Read { table: TableId(table), offset: 0, into: Content::Piece(piece) });
        let mut found = Vec::new();
        piece.gather(self.host.buffers_mut(), &mut found);
        self.host.buffers_mut().give_back(piece.buffer);
        let expected = u8::try_from(table % 251).expect("below 256");
        assert_eq!(reply.answer, TableAnswer::Read { bytes: 4096 }, "table {table}");
        assert!(found.iter().all(|&byte| byte == expected), "table {table} is another one");
    }

    /// Everything is durable, and the target's books are right.
    pub fn flush(&mut self) {
        self.ask(TableOp::Flush);
        self.host.target(TARGET).check();
    }
}
