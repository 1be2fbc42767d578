//! fio's `zonemode=zbd` for zoned targets, with appends and zone management.
//!
//! Words are fio's: `rw`, `bs`, `size`, `io_size`, `max_open_zones`, `zone_reset_frequency`, `zone_reset_threshold`,
//! `read_beyond_wp`, `rwmixread`, `fsync`, `zone_append`. What is added: `finish_frequency`, `open_explicitly`, and `durable`.
//!
//! Writes land at the write pointer of an open zone, as in fio; a full zone is reset before it is written again. A random
//! write chooses among open zones. The generator believes its own write pointers while writes are outstanding, and those
//! replies tell after an append. Deliberately not here: jobs on block targets (`run`).

use super::payload;
use super::words::Words;
use super::{Answered, Generator, Outcome};
use ocssd_base::{Prng, Problems};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    ZoneAction, ZoneGeometry, ZoneScope, ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::{Buffers, Tag};
use std::collections::VecDeque;

/// Bytes that are read and written if `io_size` does not say, or `size` if that is less (chosen: seconds of one core in requests
/// of a block, where all zones of a drive of 2 TB take an hour).
const IO_BYTES: u64 = 1 << 30;

/// What is read and written, and how (fio `rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads one after another.
    Read,
    /// Writes zone after zone.
    Write,
    /// Reads anywhere.
    RandRead,
    /// Writes any open zone.
    RandWrite,
    /// Reads anywhere, writes any open zone.
    RandRw,
}

/// Options of a zoned workload.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedOptions {
    /// What is asked.
    pub access: Access,
    /// Blocks of a request.
    pub blocks: u32,
    /// Zones that are used, from the first on.
    pub zones: u32,
    /// Requests that read or write, until the generator ends.
    pub requests: u64,
    /// Zones written at a time.
    pub open_max: u32,
    /// Writes are appends.
    pub appends: bool,
    /// Zones are opened before they are written.
    pub opens: bool,
    /// Part of writes after which a zone is reset though it was not needed (fio `zone_reset_frequency`).
    pub reset_frequency: f64,
    /// Part of blocks that must be written before that happens (fio `zone_reset_threshold`).
    pub reset_threshold: f64,
    /// Part of writes after which a zone is finished early.
    pub finish_frequency: f64,
    /// Reads may go behind write pointers (fio `read_beyond_wp`).
    pub reads_beyond: bool,
    /// Percent of reads when there are both.
    pub mix_read_percent: u64,
    /// Writes between flushes; 0 is never (fio `fsync`).
    pub flush_interval: u64,
    /// When writes survive.
    pub durability: Durability,
}

impl ZonedOptions {
    /// Reads options for zones of this geometry.
    ///
    /// # Errors
    /// Every option that cannot be used, in a sentence.
    pub fn parse(text: &str, geometry: &ZoneGeometry) -> Result<Self, Problems> {
        let mut words = Words::new(text);
        let block = u64::from(geometry.block_bytes);
        let access = words.choice(
            "rw",
            Access::Write,
            &[
                ("read", Access::Read),
                ("write", Access::Write),
                ("randread", Access::RandRead),
                ("randwrite", Access::RandWrite),
                ("randrw", Access::RandRw),
            ],
        );
        let bytes = words.number("bs", block, 1..=1 << 30);
        words.require(bytes.is_multiple_of(block), "bs", bytes, "it must be a multiple of the block");
        let blocks = bytes / block;
        let appends = words.choice("zone_append", false, &[("0", false), ("1", true)]);
        let most = if appends { u64::from(geometry.append_blocks_max) } else { geometry.capacity_blocks };
        words.require(
            (1..=most).contains(&blocks),
            "bs",
            bytes,
            "a request fits the capacity of a zone, and an append the longest append",
        );
        let zone_bytes = geometry.zone_blocks * block;
        let all = zone_bytes * u64::from(geometry.zone_count);
        let size = words.number("size", all, zone_bytes..=all);
        words.require(size.is_multiple_of(zone_bytes), "size", size, "it must be whole zones");
        let io_size = words.number("io_size", size.min(IO_BYTES), 1..=u64::MAX);
        let limit = geometry.open_bound().min(geometry.zone_count);
        let options = Self {
            access,
            blocks: u32::try_from(blocks).unwrap_or(1),
            zones: u32::try_from(size / zone_bytes).expect("at most all zones"),
            requests: io_size.div_ceil(bytes),
            open_max: words.number32("max_open_zones", limit, 1..=limit),
            appends,
            opens: words.choice("open_explicitly", false, &[("0", false), ("1", true)]),
            reset_frequency: words.decimal("zone_reset_frequency", 0.0, 0.0..=1.0),
            reset_threshold: words.decimal("zone_reset_threshold", 0.0, 0.0..=1.0),
            finish_frequency: words.decimal("finish_frequency", 0.0, 0.0..=1.0),
            reads_beyond: words.choice("read_beyond_wp", false, &[("0", false), ("1", true)]),
            mix_read_percent: words.number("rwmixread", 50, 0..=100),
            flush_interval: words.number("fsync", 0, 0..=u64::MAX),
            durability: words.choice(
                "durable",
                Durability::AtFlush,
                &[("reply", Durability::AtReply), ("flush", Durability::AtFlush)],
            ),
        };
        words.finish().map(|()| options)
    }
}

/// A zone as the generator believes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Zone {
    /// Blocks written or on their way.
    written: u64,
    /// Blocks whose writes were answered.
    answered: u64,
    /// Requests outstanding: it is not reset or finished before they are over.
    outstanding: u32,
    /// Nothing is written behind what is.
    is_full: bool,
    /// A reset or finish is on its way, or a write failed: it is not used.
    is_busy: bool,
}

/// The generator.
#[derive(Clone, Debug)]
pub struct Zoned {
    options: ZonedOptions,
    geometry: ZoneGeometry,
    prng: Prng,
    zones: Vec<Zone>,
    /// Zones that are written.
    open: Vec<usize>,
    /// Where the next zone is looked for, and where the next read begins.
    cursor: usize,
    read_cursor: u64,
    due: VecDeque<(ZonedOp, u64)>,
    drawn: u64,
    writes: u64,
    outstanding: u64,
}

fn long(index: usize) -> u64 {
    u64::try_from(index).expect("an index fits 64 bits")
}

impl Zoned {
    /// The workload of these options on empty zones, with randomness of `prng`.
    #[must_use]
    pub fn new(options: ZonedOptions, geometry: ZoneGeometry, prng: &Prng) -> Self {
        let zones = vec![Zone::default(); usize::try_from(options.zones).expect("an index")];
        Self {
            options,
            geometry,
            prng: prng.split("zoned"),
            zones,
            open: Vec::new(),
            cursor: 0,
            read_cursor: 0,
            due: VecDeque::new(),
            drawn: 0,
            writes: 0,
            outstanding: 0,
        }
    }

    /// The power went: zones hold so many blocks, those that are full first in mind. Nothing is outstanding.
    pub fn power_cut(&mut self, written: impl Iterator<Item = (u64, bool)>) {
        for (zone, (written, is_full)) in self.zones.iter_mut().zip(written) {
            *zone = Zone { written, answered: written, outstanding: 0, is_full, is_busy: false };
        }
        let zones = &self.zones;
        self.open.retain(|&zone| !zones[zone].is_full);
        self.due.clear();
        self.outstanding = 0;
    }

    fn start(&self, zone: usize) -> u64 {
        self.geometry.start_of(u32::try_from(zone).expect("a zone has 32 bits"))
    }

    fn has_room(&self, zone: usize) -> bool {
        let Zone { written, is_full, .. } = self.zones[zone];
        !is_full && written + u64::from(self.options.blocks) <= self.geometry.capacity_blocks
    }

    /// A zone that can be written now; one that must be reset or finished first is asked to be.
    fn writable(&mut self) -> Option<usize> {
        let full: Vec<usize> = self.open.iter().copied().filter(|&zone| !self.has_room(zone)).collect();
        for zone in full {
            self.open.retain(|&other| other != zone);
            self.end(zone);
        }
        let open_max = usize::try_from(self.options.open_max).expect("an index");
        while self.open.len() < open_max.min(self.zones.len()) {
            let Some(zone) = self.find() else { break };
            self.open.push(zone);
            if self.options.opens && self.zones[zone].written == 0 {
                let op = ZonedOp::Manage { action: ZoneAction::Open, scope: ZoneScope::One };
                self.due.push_back((op, self.start(zone)));
            }
        }
        let ready: Vec<usize> = self.open.iter().copied().filter(|&zone| !self.zones[zone].is_busy).collect();
        let is_random = matches!(self.options.access, Access::RandWrite | Access::RandRw);
        let nth = if is_random && !ready.is_empty() { self.prng.below(long(ready.len())) } else { 0 };
        ready.get(usize::try_from(nth).expect("an index")).copied()
    }

    /// What is left of a zone is too short for a request: it is finished, so that it holds no resources.
    fn end(&mut self, zone: usize) {
        let Zone { written, is_full, .. } = self.zones[zone];
        if !is_full && written < self.geometry.capacity_blocks {
            self.manage(zone, ZoneAction::Finish);
        }
        self.zones[zone].is_full = true;
    }

    fn manage(&mut self, zone: usize, action: ZoneAction) {
        self.zones[zone].is_busy = true;
        let op = ZonedOp::Manage { action, scope: ZoneScope::One };
        self.due.push_back((op, self.start(zone)));
    }

    /// The next zone nobody writes; a full one is reset.
    fn find(&mut self) -> Option<usize> {
        let count = self.zones.len();
        let places = (0..count).map(|step| (self.cursor + step) % count);
        let usable = |&zone: &usize| {
            let Zone { is_busy, outstanding, is_full, .. } = self.zones[zone];
            !self.open.contains(&zone) && !is_busy && (!is_full || outstanding == 0)
        };
        let zone = places.into_iter().find(usable)?;
        self.cursor = (zone + 1) % count;
        if self.zones[zone].is_full || !self.has_room(zone) {
            self.manage(zone, ZoneAction::Reset);
        }
        Some(zone)
    }

    /// The part of all blocks that is written.
    #[expect(clippy::cast_precision_loss, reason = "blocks of a target are far below 2^53")]
    fn share(&self) -> f64 {
        let written: u64 = self.zones.iter().map(|zone| zone.written).sum();
        let all = self.geometry.capacity_blocks * long(self.zones.len());
        written as f64 / all as f64
    }

    /// fio's `zone_reset_frequency`, and the same for finishing, after a write to a zone.
    fn manage_early(&mut self, zone: usize) {
        if self.prng.unit_f64() < self.options.finish_frequency {
            self.open.retain(|&other| other != zone);
            self.zones[zone].is_full = true;
            self.manage(zone, ZoneAction::Finish);
            return;
        }
        // The draw comes first: what is written is counted over all zones.
        if self.prng.unit_f64() < self.options.reset_frequency && self.share() >= self.options.reset_threshold
        {
            let idle = |zone: &Zone| zone.is_full && !zone.is_busy && zone.outstanding == 0;
            if let Some(zone) = self.zones.iter().position(idle) {
                self.manage(zone, ZoneAction::Reset);
            }
        }
    }

    fn write(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<ZonedRequest> {
        let zone = self.writable()?;
        let (start, count) = (self.start(zone), self.options.blocks);
        let durability = self.options.durability;
        let (op, block) = if self.options.appends {
            (ZonedOp::Append { durability }, start)
        } else {
            (ZonedOp::Write { durability }, start + self.zones[zone].written)
        };
        self.zones[zone].written += u64::from(count);
        self.zones[zone].outstanding += 1;
        self.zones[zone].is_full = self.zones[zone].written == self.geometry.capacity_blocks;
        self.drawn += 1;
        self.writes += 1;
        let sectors = buffers.format().sectors_of_blocks(count, self.geometry.block_bytes);
        let buffer = buffers.take(sectors);
        // An append does not know its address yet: its content is of the zone's start.
        payload::fill_sectors(buffers, buffer, sectors, block, self.writes);
        let is_due =
            self.options.flush_interval > 0 && self.writes.is_multiple_of(self.options.flush_interval);
        if is_due {
            self.due.push_back((ZonedOp::Flush, 0));
        }
        self.manage_early(zone);
        Some(ZonedRequest { tag, op, block, count, buffer: Some(buffer) })
    }

    /// Where `count` blocks can be read.
    fn readable(&mut self) -> Option<u64> {
        let count = u64::from(self.options.blocks);
        let end = |zone: &Zone| {
            if self.options.reads_beyond { self.geometry.capacity_blocks } else { zone.answered }
        };
        let holds = |zone: &Zone| !zone.is_busy && end(zone) >= count;
        if matches!(self.options.access, Access::Read) {
            for _ in 0..=self.zones.len() {
                let zone = usize::try_from(self.read_cursor / self.geometry.zone_blocks).expect("an index");
                let zone = zone % self.zones.len();
                let within = self.read_cursor % self.geometry.zone_blocks;
                if holds(&self.zones[zone]) && within + count <= end(&self.zones[zone]) {
                    self.read_cursor += count;
                    return Some(self.start(zone) + within);
                }
                self.read_cursor = self.start((zone + 1) % self.zones.len());
            }
            return None;
        }
        let places: Vec<usize> = (0..self.zones.len()).filter(|&zone| holds(&self.zones[zone])).collect();
        let nth = self.prng.below(long(places.len()).max(1));
        let zone = *places.get(usize::try_from(nth).expect("an index"))?;
        let slots = end(&self.zones[zone]) / count;
        Some(self.start(zone) + self.prng.below(slots) * count)
    }

    fn read(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<ZonedRequest> {
        let block = self.readable()?;
        let zone = usize::try_from(block / self.geometry.zone_blocks).expect("an index");
        self.zones[zone].outstanding += 1;
        self.drawn += 1;
        let count = self.options.blocks;
        let buffer = buffers.take(buffers.format().sectors_of_blocks(count, self.geometry.block_bytes));
        Some(ZonedRequest { tag, op: ZonedOp::Read, block, count, buffer: Some(buffer) })
    }

    /// What was asked for between reads and writes. Management waits until nothing else of the zone is outstanding.
    fn due(&mut self, tag: Tag) -> Option<ZonedRequest> {
        let is_ready = |(op, block): &(ZonedOp, u64)| {
            let zone = usize::try_from(block / self.geometry.zone_blocks).expect("an index");
            let waits = matches!(op, ZonedOp::Manage { action: ZoneAction::Reset | ZoneAction::Finish, .. });
            !waits || self.zones[zone].outstanding == 0
        };
        let nth = self.due.iter().position(is_ready)?;
        let (op, block) = self.due.remove(nth).expect("it was just found");
        Some(ZonedRequest { tag, op, block, count: 0, buffer: None })
    }

    fn on_managed(&mut self, zone: usize, action: ZoneAction, success: bool) {
        let entry = &mut self.zones[zone];
        match action {
            _ if !success => entry.is_full = true,
            ZoneAction::Reset => *entry = Zone::default(),
            ZoneAction::Finish => (entry.is_full, entry.is_busy) = (true, false),
            _ => {}
        }
    }
}

impl Generator for Zoned {
    type Request = ZonedRequest;
    type Reply = ZonedReply;

    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<ZonedRequest> {
        let request = match self.due(tag) {
            Some(request) => request,
            None if self.drawn == self.options.requests => return None,
            None => {
                let reads = match self.options.access {
                    Access::Read | Access::RandRead => true,
                    Access::Write | Access::RandWrite => false,
                    Access::RandRw => self.prng.below(100) < self.options.mix_read_percent,
                };
                let read = if reads { self.read(tag, buffers) } else { None };
                let only_reads = matches!(self.options.access, Access::Read | Access::RandRead);
                // Where there is nothing to read yet, a mixed workload writes.
                let drawn = read.or_else(|| if only_reads { None } else { self.write(tag, buffers) });
                if drawn.is_none() && only_reads && self.outstanding == 0 {
                    // Nothing is written, and nobody will: fio ends such a job, too.
                    self.drawn = self.options.requests;
                }
                drawn.or_else(|| self.due(tag))?
            }
        };
        self.outstanding += 1;
        Some(request)
    }

    fn tag(request: &ZonedRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &ZonedReply) -> Tag {
        reply.tag
    }

    fn answered(&self, request: &ZonedRequest, reply: &ZonedReply) -> Answered {
        let name = match request.op {
            ZonedOp::Read => "read",
            ZonedOp::Write { .. } => "write",
            ZonedOp::Append { .. } => "append",
            ZonedOp::Flush => "flush",
            ZonedOp::Manage { action: ZoneAction::Open, .. } => "open",
            ZonedOp::Manage { action: ZoneAction::Close, .. } => "close",
            ZonedOp::Manage { action: ZoneAction::Finish, .. } => "finish",
            ZonedOp::Manage { action: ZoneAction::Reset, .. } => "reset",
            ZonedOp::Manage { action: ZoneAction::Offline, .. } => "offline",
            ZonedOp::Report { .. } | ZonedOp::ReportExtended { .. } => "report",
            ZonedOp::SetExtension => "describe",
            ZonedOp::OpenWithArea => "open",
            ZonedOp::CommitArea => "commit",
            ZonedOp::Shutdown => "shutdown",
        };
        let blocks = if matches!(name, "read" | "write" | "append") { request.count } else { 0 };
        let bytes = u64::from(blocks) * u64::from(self.geometry.block_bytes);
        Answered {
            name,
            bytes,
            is_stored: matches!(name, "write" | "append"),
            outcome: Outcome::of(reply.status, None),
        }
    }

    fn shutdown(tag: Tag) -> ZonedRequest {
        ZonedRequest { tag, op: ZonedOp::Shutdown, block: 0, count: 0, buffer: None }
    }

    fn operations_begun(&self) -> u64 {
        self.drawn
    }

    fn operation_count_max(&self) -> u64 {
        self.options.requests
    }

    fn on_reply(&mut self, request: &ZonedRequest, reply: &ZonedReply, buffers: &mut Buffers) {
        self.outstanding -= 1;
        let zone = usize::try_from(request.block / self.geometry.zone_blocks).expect("an index");
        let success = reply.status.is_success();
        match request.op {
            ZonedOp::Write { .. } | ZonedOp::Append { .. } => {
                let end = match reply.answer {
                    ZonedAnswer::Appended { block } => block,
                    _ => request.block,
                } + u64::from(request.count)
                    - self.start(zone);
                let entry = &mut self.zones[zone];
                entry.outstanding -= 1;
                if success {
                    entry.answered = entry.answered.max(end);
                } else {
                    (entry.is_full, entry.is_busy) = (true, true);
                }
            }
            ZonedOp::Read => self.zones[zone].outstanding -= 1,
            ZonedOp::Manage { action, .. } => self.on_managed(zone, action, success),
            // It asks for no other.
            ZonedOp::Flush
            | ZonedOp::Report { .. }
            | ZonedOp::ReportExtended { .. }
            | ZonedOp::SetExtension
            | ZonedOp::OpenWithArea
            | ZonedOp::CommitArea
            | ZonedOp::Shutdown => {}
        }
        if let Some(buffer) = request.buffer {
            buffers.give_back(buffer);
        }
    }

    fn is_finished(&self) -> bool {
        self.drawn == self.options.requests && self.due.is_empty() && self.outstanding == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat, Status};

    const ZONES: ZoneGeometry = ZoneGeometry {
        capacity_blocks: 48,
        open_max: Some(4),
        append_blocks_max: 8,
        ..ZoneGeometry::plain(64, 10)
    };

    /// All requests of a workload, answered at once by zones that take what the specification lets them take.
    fn run(text: &str, seed: u64) -> Vec<ZonedRequest> {
        let geometry = Geometry::example(1, 1, 4, 24, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let options = ZonedOptions::parse(text, &ZONES).expect("the options can be used");
        let mut zoned = Zoned::new(options, ZONES, &Prng::new(seed));
        let (mut written, mut requests) = ([0_u64; 10], Vec::new());
        while let Some(request) = zoned.next(Tag(0), &mut buffers) {
            let zone = usize::try_from(request.block / 64).expect("an index");
            let mut answer = ZonedAnswer::Done;
            match request.op {
                ZonedOp::Write { .. } => {
                    assert_eq!(request.block % 64, written[zone], "seed {seed}: at the write pointer");
                    written[zone] += u64::from(request.count);
                }
                ZonedOp::Append { .. } => {
                    answer = ZonedAnswer::Appended { block: request.block + written[zone] };
                    written[zone] += u64::from(request.count);
                }
                ZonedOp::Manage { action: ZoneAction::Reset, .. } => written[zone] = 0,
                ZonedOp::Manage { action: ZoneAction::Finish, .. } => written[zone] = 48,
                ZonedOp::Read => assert!(request.block % 64 + u64::from(request.count) <= 48),
                _ => {}
            }
            assert!(written[zone] <= 48, "seed {seed}: beyond the capacity of zone {zone}");
            let reply = ZonedReply { tag: request.tag, status: Status::SUCCESS, answer };
            zoned.on_reply(&request, &reply, &mut buffers);
            requests.push(request);
        }
        assert!(zoned.is_finished() && buffers.in_use() == 0, "seed {seed}: {text}");
        requests
    }

    fn count(requests: &[ZonedRequest], is: impl Fn(ZonedOp) -> bool) -> usize {
        requests.iter().filter(|request| is(request.op)).count()
    }

    const fn is(action: ZoneAction) -> impl Fn(ZonedOp) -> bool {
        move |op| matches!(op, ZonedOp::Manage { action: found, .. } if found as u8 == action as u8)
    }

    #[test]
    fn zones_are_filled_and_reset_before_they_are_written_again() {
        let requests = run("rw=write,bs=16k,io_size=5m,max_open_zones=1", 1);
        let writes = count(&requests, |op| matches!(op, ZonedOp::Write { .. }));
        // 1,280 blocks are 26.7 zones of 48 blocks, of which ten were empty.
        assert_eq!((writes, count(&requests, is(ZoneAction::Reset))), (320, 17));
        assert_eq!(count(&requests, is(ZoneAction::Finish)), 0, "48 blocks are 12 requests");
        let requests = run("rw=write,bs=20k,io_size=1m,max_open_zones=1,open_explicitly=1,fsync=10", 1);
        assert!(count(&requests, is(ZoneAction::Finish)) >= 4, "three blocks of each zone are left");
        assert!(count(&requests, is(ZoneAction::Open)) >= 5);
        assert_eq!(count(&requests, |op| op == ZonedOp::Flush), 5);
    }

    #[test]
    fn random_writes_keep_to_their_open_zones_and_reads_to_what_is_written() {
        for seed in 0..10 {
            for text in [
                "rw=randwrite,bs=4k,io_size=8m,max_open_zones=3",
                "rw=randrw,bs=8k,io_size=8m,zone_append=1,rwmixread=70",
                "rw=randrw,bs=12k,io_size=8m,zone_reset_frequency=0.2,finish_frequency=0.05,durable=reply",
                "rw=randrw,bs=4k,size=512k,io_size=8m,read_beyond_wp=1",
            ] {
                let requests = run(text, seed);
                assert_eq!(requests, run(text, seed), "the same seed repeats");
            }
        }
        let mixed = run("rw=randrw,bs=8k,io_size=8m,zone_append=1,rwmixread=70", 3);
        let reads = count(&mixed, |op| op == ZonedOp::Read);
        assert!((620..800).contains(&reads), "seed 3: {reads} of 1024 are reads");
        assert_eq!(run("rw=randread,bs=4k", 1).len(), 0, "nothing is written");
        let large = ZoneGeometry::plain(1 << 20, 1_000);
        let options = ZonedOptions::parse("bs=1m", &large).expect("defaults can be used");
        assert_eq!(options.requests, 1 << 10, "without io_size no more than a GiB of 4 TB");
        assert_eq!(count(&run("rw=read,bs=4k,read_beyond_wp=1,size=256k", 1), |_| true), 64);
    }

    #[test]
    fn bad_options_are_refused_in_words() {
        for (text, says) in [
            ("rw=randwritte", "did you mean `randwrite`?"),
            ("bs=5000", "multiple of the block"),
            ("bs=256k", "fits the capacity"),
            ("bs=64k,zone_append=1", "the longest append"),
            ("size=100k", "size is 100k"),
            ("max_open_zones=5", "from 1 to 4"),
            ("zone_reset_frequency=2", "from 0 to 1"),
            ("max_open_zone=5", "did you mean `max_open_zones`?"),
        ] {
            let problem = ZonedOptions::parse(text, &ZONES).expect_err(text).to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
