//! Plain reads take a short way through the drive, and their content is copied later. Neither can be seen: a drive of
//! stamps, which has both, ends every command of a random run at the same time and with the same content as a drive of
//! real bytes, which has neither.

use crate::rig::{Rig, index, ppa, preset};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::config::{CacheConfig, PlaneReads, Scheduler, Suspension};
use ocssd_flash::{Config, FaultKind, ScheduledFault};
use ocssd_lightnvm::{
    Addresses, BufId, ChunkId, ChunkState, Command, Completion, Device, Op, Payload, PlaneMode, Ppa, Tag,
};
use std::collections::BTreeMap;

/// Sectors of a command at most: each has a buffer of so many.
const SECTORS: u32 = 8;
const STEPS: u32 = 600;

/// What a completed read found: each sector's content, or none where the read failed.
type Found = (Nanos, Completion, Vec<Option<u64>>);

struct Side {
    rig: Rig,
    free: Vec<BufId>,
    in_flight: BTreeMap<Tag, Command>,
    ended: Vec<Found>,
}

impl Side {
    fn new(mut config: Config, payload: Payload) -> Self {
        config.payload = payload;
        let mut rig = Rig::new(config);
        let free = (0..rig.drive.config().queue_depth).map(|_| rig.buffers.take(SECTORS)).collect();
        Self { rig, free, in_flight: BTreeMap::new(), ended: Vec::new() }
    }

    fn submit(&mut self, mut command: Command, list: &[Ppa], id: u64) {
        let Some(buffer) = self.free.pop() else { return };
        for sector in 0..SECTORS {
            self.rig.fill(buffer, sector, id + u64::from(sector));
        }
        self.rig.buffers.addresses_mut(buffer)[..list.len()].copy_from_slice(list);
        command.buffer = Some(buffer);
        self.rig.drive.submit(self.rig.now, command, &mut self.rig.buffers).expect("a buffer means room");
        self.in_flight.insert(command.tag, command);
    }

    /// Lets everything end that is due by `now`, at its own time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.rig.drive.deadline().filter(|&at| at <= now) {
            self.rig.now = self.rig.now.max(at);
            while let Some(end) = self.rig.drive.poll_completion(self.rig.now, &mut self.rig.buffers) {
                self.on_end(end);
            }
        }
        self.rig.now = self.rig.now.max(now);
        self.rig.drive.check();
    }

    fn on_end(&mut self, end: Completion) {
        let command = self.in_flight.remove(&end.tag).expect("it was in flight");
        let buffer = command.buffer.expect("every command has a buffer");
        let count = if command.op == Op::Read { command.addresses.count() } else { 0 };
        let whole = |sector: u32| end.failed >> sector & 1 == 0 && command.oob;
        let ids = (0..count).map(|sector| whole(sector).then(|| self.rig.id_of(buffer, sector))).collect();
        self.ended.push((self.rig.now, end, ids));
        self.free.push(buffer);
    }
}

fn draw(prng: &mut Prng, bound: u32) -> u32 {
    u32::try_from(prng.below(u64::from(bound))).expect("below 32 bits")
}

/// A random command, its address list, and what it writes.
fn command(prng: &mut Prng, side: &Side, number: u32) -> (Command, Vec<Ppa>, u64) {
    let geometry = side.rig.drive.geometry();
    let chunk = ChunkId(draw(prng, 6));
    let entry = side.rig.drive.chunk(chunk);
    let pointer = entry.write_pointer.unwrap_or_default();
    // Mostly where something is written.
    let bound = if prng.below(4) == 0 { geometry.sectors_per_chunk } else { pointer.max(1) };
    let sector = draw(prng, bound);
    let mut list = Vec::new();
    let (op, addresses) = match prng.below(20) {
        0..=6 if matches!(entry.state, ChunkState::Free | ChunkState::Open) => {
            let count = geometry.ws_min.min(geometry.sectors_per_chunk - pointer);
            (Op::Write { fua: prng.below(4) == 0 }, Addresses::Run { first: Ppa::new(chunk, pointer), count })
        }
        0 | 1 if entry.state == ChunkState::Closed => {
            (Op::Reset, Addresses::Run { first: Ppa::new(chunk, 0), count: 1 })
        }
        7 | 8 => {
            let count = 1 + draw(prng, 3);
            list = (0..count).map(|_| ppa(draw(prng, 6), draw(prng, bound))).collect();
            (Op::Read, Addresses::List { offset: 0, count })
        }
        9 => (Op::Flush, Addresses::None),
        _ => (Op::Read, Addresses::Run { first: Ppa::new(chunk, sector), count: 1 + draw(prng, SECTORS) }),
    };
    let oob = matches!(op, Op::Write { .. }) || prng.below(3) > 0;
    let tag = Tag(number);
    let plane_mode = if prng.below(2) == 0 { PlaneMode::Single } else { PlaneMode::Multi };
    let command = Command { tag, op, addresses, buffer: None, buffer_first: 0, oob, plane_mode };
    (command, list, u64::from(number) << 8)
}

#[test]
fn stamps_and_bytes_end_alike_in_random_runs() {
    let suspension =
        Suspension { suspend: Nanos::from_micros(50), resume: Nanos::from_micros(30), suspends_max: 3 };
    let priority = Scheduler::ReadPriority { erase: suspension, program: suspension, bypasses_max: 5 };
    let mut plain_ends = 0;
    for seed in 0..12u64 {
        let mut prng = Prng::new(seed);
        let mut config = preset(if seed % 2 == 0 { "tiny" } else { "odd" });
        config.scheduler = if seed % 3 == 0 { priority } else { Scheduler::Fifo };
        if seed % 4 == 1 {
            config.cache = CacheConfig { sectors: 96, power_loss_protection: false };
        }
        if seed % 3 != 1 {
            config.media.plane_reads = PlaneReads::Asked;
        }
        if seed % 5 == 0 {
            config.geometry.mw_cunits = 0;
        }
        let mut sides = [Payload::Stamp, Payload::Bytes].map(|payload| Side::new(config.clone(), payload));
        for chunk in [1, 5] {
            let kind = if prng.below(2) == 0 { FaultKind::HighEcc } else { FaultKind::LatencySpike };
            let fault = ScheduledFault { kind, chunk: ChunkId(chunk), sector: None, times: 2 };
            sides.iter_mut().for_each(|side| side.rig.drive.schedule_fault(fault));
        }
        for step in 0..STEPS {
            let (command, list, id) = command(&mut prng, &sides[0], step);
            sides.iter_mut().for_each(|side| side.submit(command, &list, id));
            let now = sides[0].rig.now + Nanos(prng.below(3) * prng.below(200_000));
            sides.iter_mut().for_each(|side| side.run_until(now));
        }
        sides.iter_mut().for_each(|side| side.run_until(Nanos::from_secs(10)));
        let [stamps, bytes] = &sides;
        for (left, right) in stamps.ended.iter().zip(&bytes.ended) {
            assert_eq!(left, right, "seed {seed}");
        }
        assert_eq!(stamps.ended.len(), bytes.ended.len(), "seed {seed}");
        assert_eq!(stamps.rig.drive.counters(), bytes.rig.drive.counters(), "seed {seed}");
        plain_ends += stamps.ended.iter().filter(|(_, _, ids)| ids.iter().any(Option::is_some)).count();
    }
    assert!(plain_ends > index(STEPS), "hardly any read found something: {plain_ends}");
}
