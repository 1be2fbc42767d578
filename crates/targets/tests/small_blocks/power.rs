//! Small blocks on pblk: what a power cut at any command leaves, and what a shutdown does.

use super::oracle::Oracle;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Observer, Requests, VirtualClock};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget, CounterValue};
use ocssd_lightnvm::{
    BufId, Buffers, ChunkId, Command, Completion, Geometry, Payload, PuId, Status, Tag, TargetId,
};
use ocssd_targets::{Layout, registry};
use std::collections::BTreeMap;

const BLOCK: usize = 512;
/// Blocks the requests touch: eight sectors, so that most requests share one.
const SPAN: u64 = 64;
/// Blocks the oracle knows.
const BLOCKS: u64 = 2400;
const LONGEST: u64 = 20;

/// A drive so small that everything happens within a few hundred commands.
fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 28, 32, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

/// Stops the turn after each command.
#[derive(Default)]
struct OneCommand {
    commands: u32,
    events: u32,
}

impl Observer for OneCommand {
    fn events_left(&self) -> u64 {
        u64::from(1 - self.commands)
    }

    fn on_completion(&mut self, _now: Nanos, _completion: &Completion) {
        self.events += 1;
    }

    fn on_command(&mut self, _now: Nanos, _command: &Command, _buffers: &Buffers) {
        self.commands += 1;
        self.events += 1;
    }
}

struct Sent {
    request: BlockRequest,
    moment: u64,
    /// What was not answered then: a flush does not cover it.
    unanswered: Vec<(u64, u32)>,
}

struct Rig {
    host: Host<Flash, VirtualClock>,
    requests: Requests,
    oracle: Oracle,
    version: u64,
    sent: BTreeMap<u32, Sent>,
    spare: Vec<BufId>,
    next: u32,
    commands: u64,
    label: String,
    failures: Vec<(BlockOp, u64, Status)>,
}

impl Rig {
    fn on(flash: Flash, clock: VirtualClock, oracle: Oracle, version: u64, label: &str) -> Self {
        Self {
            host: {
                let buffers = Buffers::new(flash.payload_format());
                Host::new(flash, clock, buffers)
            },
            requests: Requests::default(),
            oracle,
            version,
            sent: BTreeMap::new(),
            spare: Vec::new(),
            next: 0,
            commands: 0,
            label: label.to_owned(),
            failures: Vec::new(),
        }
    }

    fn mount(&mut self) {
        let units: Vec<PuId> = (0..2).map(PuId).collect();
        let options =
            [("over_provisioning_percent", "60"), ("write_buffer_bytes", "589824"), ("block_bytes", "512")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options: &options };
        let kind = registry::find("pblk").expect("there is pblk");
        let made = kind
            .make(&mut self.host.caller(), &spec)
            .unwrap_or_else(|error| panic!("{}: {error}", self.label));
        assert!(made.notes.iter().any(|note| note.contains("512 B")), "{:?}", made.notes);
        self.host.add(made.target);
        self.spare = (0..16).map(|_| self.host.buffers_mut().take(4)).collect();
    }

    fn target(&self) -> &dyn BlockTarget {
        self.host.target(TargetId(0))
    }

    /// The same drive and oracle, with the power gone.
    fn cut(&self, label: &str) -> Self {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.host.clock().now();
        flash.power_cut(now, &mut Prng::new(self.commands)).expect("memory does not fail");
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        Self::on(flash, clock, self.oracle.clone(), self.version, label)
    }

    fn count(&mut self, name: &str) -> u64 {
        let counters = self.target().counters();
        let found = counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
        let Some(CounterValue::Count(count)) = found else { panic!("{name} is not counted") };
        count
    }

    fn is_busy(&self, block: u64, count: u32) -> bool {
        self.sent.values().any(|other| {
            let theirs = other.request.block..other.request.block + u64::from(other.request.count);
            theirs.start < block + u64::from(count) && block < theirs.end
        })
    }

    fn send(&mut self, op: BlockOp, block: u64, count: u32) {
        let buffer = self.spare.pop().expect("a buffer for each");
        for (place, at) in (0..).zip(block..block + u64::from(count)) {
            match op {
                BlockOp::Write { .. } => {
                    self.version += 1;
                    let bytes = super::model::content(at, self.version);
                    self.host.buffers_mut().bytes_mut(buffer, place * BLOCK, BLOCK).copy_from_slice(&bytes);
                    self.oracle.sent(at, self.version);
                }
                BlockOp::WriteZeroes => self.oracle.sent(at, 0),
                BlockOp::Discard if Self::is_discarded(at, block, count) => self.oracle.sent(at, 0),
                _ => {}
            }
        }
        let request = BlockRequest { tag: Tag(self.next), op, block, count, buffer: Some(buffer) };
        let unanswered = self.sent.values().map(|other| (other.request.block, other.request.count)).collect();
        self.requests.push(request);
        self.sent.insert(self.next, Sent { request, moment: self.oracle.moment, unanswered });
        self.next += 1;
    }

    /// A discard reaches whole sectors.
    fn is_discarded(at: u64, block: u64, count: u32) -> bool {
        let (first, end) = (at / 8 * 8, at / 8 * 8 + 8);
        first >= block && end <= block + u64::from(count)
    }

    /// One turn; `each` sees the rig after every command. True if anything happened.
    fn turn(&mut self, each: &mut dyn FnMut(&Self)) -> bool {
        let mut one = OneCommand::default();
        self.host.step_observed(&mut self.requests, &mut one);
        self.commands += u64::from(one.commands);
        if one.commands > 0 {
            each(self);
        }
        let replies = self.requests.take_replies();
        let any = one.events > 0 || !replies.is_empty();
        for reply in replies {
            let done = self.sent.remove(&reply.tag.0).expect("it was sent");
            self.judge(&done, reply.status);
            self.spare.push(done.request.buffer.expect("all have one"));
        }
        self.target().check();
        any
    }

    fn judge(&mut self, done: &Sent, status: Status) {
        let BlockRequest { op, block, count, buffer, .. } = done.request;
        let blocks = block..block + u64::from(count);
        if !status.is_success() {
            self.failures.push((op, block, status));
            if op != BlockOp::Read {
                blocks.for_each(|at| self.oracle.refused(at));
            }
            return;
        }
        match op {
            BlockOp::Read => {
                for (place, at) in (0..).zip(blocks) {
                    let found = self.version_in(buffer.expect("it has one"), place, at);
                    assert_eq!(self.oracle.read(at, found), Ok(()), "{}", self.label);
                }
            }
            BlockOp::Write { fua: true } => {
                for at in blocks {
                    self.oracle.made(at);
                    self.oracle.durable_block(at, done.moment);
                }
            }
            BlockOp::Flush | BlockOp::Shutdown => {
                let covered = |at| !done.unanswered.iter().any(|&(b, n)| (b..b + u64::from(n)).contains(&at));
                (0..SPAN).filter(|&at| covered(at)).for_each(|at| self.oracle.durable_block(at, done.moment));
            }
            _ => blocks.for_each(|at| self.oracle.made(at)),
        }
    }

    fn version_in(&self, buffer: BufId, place: usize, block: u64) -> u64 {
        let bytes = self.host.buffers().bytes(buffer, place * BLOCK, BLOCK);
        let version = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        assert!(
            bytes == super::model::content(block, version),
            "{}: block {block} is a mixture: {:?}",
            self.label,
            &bytes[..20]
        );
        version
    }

    /// Runs until so many are in flight.
    fn drain_to(&mut self, most: usize, each: &mut dyn FnMut(&Self)) {
        while self.sent.len() > most {
            if !self.turn(each) {
                let next = self.host.next_deadline();
                let next = next.unwrap_or_else(|| panic!("{}: stuck", self.label));
                self.host.clock_mut().wait_until(next);
            }
        }
    }

    fn run(&mut self, requests: u32, prng: &mut Prng, each: &mut dyn FnMut(&Self)) {
        for _ in 0..requests {
            self.drain_to(6, each);
            let count = 1 + prng.below(LONGEST);
            let block = prng.below(SPAN - count);
            let count = u32::try_from(count).expect("small");
            let op = match prng.below(100) {
                0..20 => BlockOp::Read,
                20..75 => BlockOp::Write { fua: prng.below(5) == 0 },
                75..83 => BlockOp::WriteZeroes,
                83..90 => BlockOp::Discard,
                _ => BlockOp::Flush,
            };
            if op == BlockOp::Flush {
                self.send(op, 0, 0);
                continue;
            }
            // Sectors are shared, blocks are not: what a read then gives is known.
            while self.is_busy(block, count) {
                let most = self.sent.len() - 1;
                self.drain_to(most, each);
            }
            self.send(op, block, count);
        }
        self.drain_to(0, each);
        assert!(self.failures.is_empty(), "{}: {:?}", self.label, self.failures);
    }

    /// After a cut each block is old or new; what it is now, it stays.
    fn settle(&mut self) {
        let buffer = self.spare.pop().expect("a buffer");
        for block in 0..SPAN {
            let request =
                BlockRequest { tag: Tag(u32::MAX), op: BlockOp::Read, block, count: 1, buffer: Some(buffer) };
            self.sent.insert(u32::MAX, Sent { request, moment: 0, unanswered: Vec::new() });
            let status = Some(self.host.ask(request).status);
            assert_eq!(status, Some(Status::SUCCESS), "{}: block {block}", self.label);
            let found = self.version_in(buffer, 0, block);
            assert_eq!(self.oracle.settle(block, found), Ok(()), "{}", self.label);
        }
        self.sent.clear();
        self.spare.push(buffer);
    }
}

fn fresh(label: &str) -> Rig {
    let flash = Flash::format(config()).expect("a sound drive");
    let mut rig = Rig::on(flash, VirtualClock::default(), Oracle::new(BLOCKS), 0, label);
    rig.mount();
    rig
}

#[test]
fn a_power_cut_at_any_command_leaves_every_small_block_old_or_new() {
    let (mut cuts, seed) = (0, 1);
    let mut rig = fresh("without a cut");
    rig.run(60, &mut Prng::new(seed), &mut |rig| {
        let label = format!("seed {seed}, cut at command {}", rig.commands);
        let mut branch = rig.cut(&label);
        branch.mount();
        branch.settle();
        if rig.commands.is_multiple_of(7) {
            branch.run(10, &mut Prng::new(rig.commands), &mut |_| {});
        }
        cuts += 1;
    });
    let merges = rig.count("rmw_requests");
    assert!(cuts > 40 && merges > 25, "only {cuts} cuts and {merges} merges");
}

#[test]
fn a_sector_the_media_lost_fails_what_needs_its_rest_and_heals_when_written_whole() {
    let mut rig = fresh("lost sectors");
    for block in (0..BLOCKS - 24).step_by(24) {
        rig.send(BlockOp::Write { fua: false }, block, 24);
        rig.drain_to(0, &mut |_| {});
    }
    assert!(rig.failures.is_empty(), "{:?}", rig.failures);
    for chunk in 0..56 {
        for sector in 4..28 {
            let kind = FaultKind::UnrecoveredRead;
            let fault = ScheduledFault { kind, chunk: ChunkId(chunk), sector: Some(sector), times: 3 };
            rig.host.device_mut().schedule_fault(fault);
        }
    }
    // Sector 1 in part: it is on media, and lost.
    rig.send(BlockOp::Write { fua: true }, 10, 3);
    rig.drain_to(0, &mut |_| {});
    let lost = (BlockOp::Write { fua: true }, 10, Status::UNRECOVERED_READ);
    assert_eq!((rig.failures.clone(), rig.count("rmw_read_failed")), (vec![lost], 1));
    rig.send(BlockOp::Write { fua: false }, 8, 8);
    rig.send(BlockOp::Write { fua: false }, 16, 0x10);
    rig.drain_to(0, &mut |_| {});
    rig.send(BlockOp::Write { fua: false }, 13, 5);
    rig.drain_to(0, &mut |_| {});
    rig.send(BlockOp::Read, 9, 20);
    rig.drain_to(0, &mut |_| {});
    assert_eq!(rig.failures.len(), 1, "what was written whole is sound: {:?}", rig.failures);
}

#[test]
fn a_shutdown_keeps_every_small_block() {
    let mut rig = fresh("shutdown");
    rig.run(60, &mut Prng::new(9), &mut |_| {});
    rig.send(BlockOp::Shutdown, 0, 0);
    rig.drain_to(0, &mut |_| {});
    let mut after = rig.cut("after a shutdown");
    after.mount();
    after.settle();
    assert_eq!(after.target().is_mapped(SPAN), Some(false), "nothing wrote there");
}
