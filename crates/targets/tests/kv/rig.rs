//! A target of keys and values on a small drive in virtual time, asked one request at a time.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, FailedOp, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvOp, KvReply, KvRequest, KvTarget, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::{Buffers, ChunkId, Geometry, Payload, PuId, Status, Tag, TargetId};
use ocssd_targets::kv::{Kv, Options};

/// The only target.
const TARGET: TargetId = TargetId(0);
/// Units of the drive.
const UNITS: u32 = 2;
/// Chunks of a unit.
const CHUNKS: u32 = 60;
/// Sectors of a chunk.
const SECTORS: u32 = 32;
/// Bytes of every value.
pub const VALUE_BYTES: u32 = 3_000;

/// A small drive on which what was written last cannot be read at once.
fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(1, UNITS, CHUNKS, SECTORS, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Everything of a test.
pub struct Rig {
    pub host: Host<Flash, VirtualClock, dyn KvTarget>,
    options: Vec<(&'static str, &'static str)>,
    tag: u32,
}

impl Rig {
    /// Keys and values on a fresh drive.
    pub fn new(options: &[(&'static str, &'static str)]) -> Self {
        Self::on(Flash::format(config()).expect("a sound drive"), VirtualClock::default(), options)
            .expect("it fits")
    }

    /// The same on a drive of another shape.
    pub fn of_shape(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        let flash = Flash::format(config).expect("a sound drive");
        Self::on(flash, VirtualClock::default(), &[]).expect("it fits")
    }

    /// The same on a drive with so many times as many chunks.
    pub fn larger(times: u32, options: &[(&'static str, &'static str)]) -> Self {
        let mut config = config();
        let geometry = Geometry::example(1, UNITS, CHUNKS * times, SECTORS, 8);
        config.geometry = Geometry { mw_cunits: 8, ws_min: 4, ..geometry };
        let flash = Flash::format(config).expect("a sound drive");
        Self::on(flash, VirtualClock::default(), options).expect("it fits")
    }

    fn on(
        flash: Flash,
        clock: VirtualClock,
        options: &[(&'static str, &'static str)],
    ) -> Result<Self, String> {
        let buffers = Buffers::new(flash.payload_format());
        let units: Vec<PuId> = (0..flash.config().geometry.pu_count()).map(PuId).collect();
        let mut host: Host<Flash, VirtualClock, dyn KvTarget> = Host::new(flash, clock, buffers);
        let mut chosen = Options::default();
        for (name, value) in options {
            chosen.set(name, value).expect("a sound option");
        }
        let (target, _) =
            Kv::mount(&mut host.caller(), &units, &chosen).map_err(|error| error.to_string())?;
        host.add(Box::new(target));
        Ok(Self { host, options: options.to_vec(), tag: 0 })
    }

    /// The same drive after a power cut, mounted again.
    pub fn cut(&self) -> Result<Self, String> {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.host.clock().now();
        flash.power_cut(now, &mut Prng::new(1)).expect("memory does not fail");
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        Self::on(flash, clock, &self.options)
    }

    /// The drive itself after a power cut, mounted again.
    pub fn cut_off(self, prng: &mut Prng) -> Self {
        let now = self.host.clock().now();
        let mut flash = self.host.into_device();
        flash.power_cut(now, prng).expect("memory does not fail");
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        Self::on(flash, clock, &self.options).expect("it was mounted before")
    }

    /// The same drive, mounted again after a shutdown that ended well.
    pub fn shut_down(mut self) -> Self {
        assert_eq!(self.ask(KvOp::Shutdown).status, Status::SUCCESS);
        let mut clock = VirtualClock::default();
        clock.wait_until(self.host.clock().now());
        Self::on(self.host.into_device(), clock, &self.options).expect("it was mounted before")
    }

    /// The next reads of every chunk, so many of each, end with this status.
    pub fn fail_reads(&mut self, times: u32, status: Status) {
        for chunk in 0..UNITS * CHUNKS {
            self.schedule(FaultKind::Failed(FailedOp::Read, status), chunk, times);
        }
    }

    /// This sector is lost, whatever is written there later.
    pub fn lose(&mut self, (chunk, sector): (u32, u32)) {
        self.schedule_at(FaultKind::UnrecoveredRead, chunk, Some(sector), u32::MAX);
    }

    fn schedule(&mut self, kind: FaultKind, chunk: u32, times: u32) {
        self.schedule_at(kind, chunk, None, times);
    }

    fn schedule_at(&mut self, kind: FaultKind, chunk: u32, sector: Option<u32>, times: u32) {
        let chunk = ChunkId(chunk);
        self.host.device_mut().schedule_fault(ScheduledFault { kind, chunk, sector, times });
    }

    /// Sectors that a retrieve of this key reads, by chunk and sector: of each is asked whether a read of it was
    /// tried again. Nine hundred keys behind it exist, too.
    pub fn sectors_of(&mut self, key: u32) -> Vec<(u32, u32)> {
        let mut sectors = Vec::new();
        for chunk in 0..UNITS * CHUNKS {
            let kind = FaultKind::Failed(FailedOp::Read, Status::INTERNAL_ERROR);
            if !self.is_tried_again(key, |rig| rig.schedule(kind, chunk, 1)) {
                continue;
            }
            for sector in 0..SECTORS {
                let kind = FaultKind::UnrecoveredRead;
                if self.is_tried_again(key, |rig| rig.schedule_at(kind, chunk, Some(sector), 1)) {
                    sectors.push((chunk, sector));
                }
            }
        }
        sectors
    }

    /// Sectors that hold the value of this key, by chunk and sector, in an instance whose index is in memory.
    pub fn sectors_of_value(&mut self, key: u32) -> Vec<(u32, u32)> {
        let all = (0..UNITS * CHUNKS).flat_map(|chunk| (0..SECTORS).map(move |sector| (chunk, sector)));
        let mut sectors = Vec::new();
        for (chunk, sector) in all {
            let before = self.count("read_again");
            self.schedule_at(FaultKind::TransientRead, chunk, Some(sector), 1);
            assert_eq!(self.retrieve(key).0, Status::SUCCESS, "key {key}");
            sectors.extend((self.count("read_again") > before).then_some((chunk, sector)));
        }
        sectors
    }

    /// Retrieves others, so that the page of this key leaves memory.
    pub fn let_page_leave(&mut self, key: u32) {
        for other in [300, 600, 900] {
            assert_eq!(self.retrieve(key + other).0, Status::SUCCESS, "key {key} + {other}");
        }
    }

    fn is_tried_again(&mut self, key: u32, schedule: impl FnOnce(&mut Self)) -> bool {
        self.let_page_leave(key);
        let before = self.count("read_again");
        schedule(self);
        assert_eq!(self.retrieve(key).0, Status::SUCCESS, "key {key}");
        self.count("read_again") > before
    }

    /// How many values are so many percent of what fits.
    pub fn values_in(&self, percent: u64) -> u32 {
        let bytes = self.host.target(TARGET).limits().capacity_bytes;
        u32::try_from(bytes * percent / 100 / u64::from(VALUE_BYTES + 4)).expect("a small drive")
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

    /// How often each chunk was reset.
    pub fn cycles(&self) -> Vec<u32> {
        (0..UNITS * CHUNKS).map(|chunk| self.host.device().cycles(ChunkId(chunk))).collect()
    }

    /// Asks for this, and waits no longer than this.
    pub fn ask_until(&mut self, op: KvOp, limit: Nanos) -> Option<KvReply> {
        let mut requests = Requests::default();
        self.tag += 1;
        requests.push(KvRequest { tag: Tag(self.tag), op });
        self.host.run(&mut requests, limit);
        requests.take_replies().pop()
    }

    pub fn ask(&mut self, op: KvOp) -> KvReply {
        self.tag += 1;
        self.host.ask(KvRequest { tag: Tag(self.tag), op })
    }

    /// Asks for all of this at once: the replies in their order, each with its place in the list.
    pub fn ask_together(&mut self, ops: &[KvOp]) -> Vec<(usize, KvReply)> {
        let (mut requests, first) = (Requests::default(), self.tag + 1);
        for &op in ops {
            self.tag += 1;
            requests.push(KvRequest { tag: Tag(self.tag), op });
        }
        assert_eq!(self.host.run(&mut requests, Nanos::MAX), RunEnd::Finished);
        let nth = |reply: &KvReply| usize::try_from(reply.tag.0 - first).expect("an index");
        requests.take_replies().into_iter().map(|reply| (nth(&reply), reply)).collect()
    }

    pub fn room(&mut self) -> Piece {
        let buffers = self.host.buffers_mut();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("short");
        let buffer = buffers.take_whole(VALUE_BYTES.div_ceil(sector));
        Piece { buffer, first_byte: 0, bytes: VALUE_BYTES }
    }

    /// Stores a value of one byte's value.
    pub fn store(&mut self, key: u32, fill: u8) -> Status {
        let piece = self.room();
        piece.scatter(self.host.buffers_mut(), &[fill; VALUE_BYTES as usize]);
        let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
        let op = KvOp::Store { key: key_of(key), content: Content::Piece(piece), condition, durability };
        let reply = self.ask(op);
        self.host.buffers_mut().give_back(piece.buffer);
        reply.status
    }

    /// Stores one value under all of these keys, in one batch.
    pub fn store_all(&mut self, keys: &[u32], fill: u8) -> Status {
        let piece = self.room();
        let buffers = self.host.buffers_mut();
        piece.scatter(buffers, &[fill; VALUE_BYTES as usize]);
        let change = BatchChange::Store { value: Some(piece), condition: StoreCondition::Always };
        let entries: Vec<BatchEntry> =
            keys.iter().map(|&key| BatchEntry { key: key_of(key), change }).collect();
        let count = u32::try_from(entries.len()).expect("few");
        let sectors = List::<BatchEntry>::sectors(count, buffers);
        let list = buffers.take_whole(sectors);
        let entries = List::write(buffers, list, &entries);
        let reply = self.ask(KvOp::Batch { entries, durability: Durability::AtFlush });
        [list, piece.buffer].into_iter().for_each(|buffer| self.host.buffers_mut().give_back(buffer));
        reply.status
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: u32) -> Status {
        let (absent, durability) = (AbsentKey::Refused, Durability::AtFlush);
        self.ask(KvOp::Delete { key: key_of(key), absent, durability }).status
    }

    /// Retrieves a value.
    pub fn retrieve(&mut self, key: u32) -> (Status, Vec<u8>) {
        let piece = self.room();
        let reply = self.ask(KvOp::Retrieve { key: key_of(key), offset: 0, into: Content::Piece(piece) });
        let mut found = Vec::new();
        piece.gather(self.host.buffers_mut(), &mut found);
        self.host.buffers_mut().give_back(piece.buffer);
        (reply.status, found)
    }

    /// Everything is durable, and the target's books are right.
    pub fn flush(&mut self) -> Status {
        let status = self.ask(KvOp::Flush).status;
        self.host.target(TARGET).check();
        status
    }
}

pub fn key_of(key: u32) -> Key {
    Key::inline(&key.to_be_bytes()).expect("four bytes")
}
