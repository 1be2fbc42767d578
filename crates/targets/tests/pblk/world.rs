//! A drive, a pblk instance on it, and requests whose answers are checked; the power can go at any command.

use super::oracle::{Oracle, Version};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{BufId, Buffers, Device, Geometry, PuId, Status, Tag, Target};
use ocssd_targets::pblk::{MountReport, Options, Pblk};
use std::collections::BTreeMap;

/// A small drive: `geometry` with the tiny preset's media, every unit written and erased in no time worth waiting for.
pub fn config(geometry: Geometry) -> Config {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_opt;
    config.geometry = geometry;
    config
}

struct Outstanding {
    request: BlockRequest,
    /// The oracle's moment when it was sent.
    moment: u64,
    /// What was not answered then: a flush does not cover it.
    unanswered: Vec<(u64, u32)>,
}

pub struct World {
    pub flash: Check<Flash>,
    pub buffers: Buffers,
    pub clock: VirtualClock,
    pub pblk: Option<Pblk>,
    pub units: Vec<PuId>,
    pub options: Options,
    pub oracle: Oracle,
    pub version: Version,
    /// Commands the device took since the world was made.
    pub commands: u64,
    /// The power goes when so many were taken.
    pub cut_at: Option<u64>,
    pub label: String,
    outstanding: BTreeMap<u32, Outstanding>,
    spare: Vec<BufId>,
    next_tag: u32,
    pub failures: Vec<Status>,
}

/// Largest request.
pub const REQUEST_MAX: u32 = 64;

impl World {
    pub fn new(config: Config, options: Options, label: &str) -> Self {
        let flash = Flash::format(config).expect("a sound drive");
        let buffers = Buffers::new(flash.payload_format());
        let units = (0..flash.geometry().pu_count()).map(PuId).collect();
        let mut world = Self {
            flash: Check::new(flash),
            buffers,
            clock: VirtualClock::default(),
            pblk: None,
            units,
            options,
            oracle: Oracle::new(1),
            version: 0,
            commands: 0,
            cut_at: None,
            label: label.to_owned(),
            outstanding: BTreeMap::new(),
            spare: Vec::new(),
            next_tag: 0,
            failures: Vec::new(),
        };
        world.mount();
        world.oracle = Oracle::new(world.blocks());
        world
    }

    pub fn blocks(&self) -> u64 {
        self.pblk().block_count()
    }

    pub fn pblk(&self) -> &Pblk {
        self.pblk.as_ref().expect("it is mounted")
    }

    fn pblk_mut(&mut self) -> &mut Pblk {
        self.pblk.as_mut().expect("it is mounted")
    }

    pub fn mount(&mut self) -> MountReport {
        self.try_mount(None).unwrap_or_else(|| panic!("{}: no cut was asked for", self.label))
    }

    /// Mounts; `None` if the power was cut at `cut_at`.
    pub fn try_mount(&mut self, cut_at: Option<Nanos>) -> Option<MountReport> {
        let mut buffers = Buffers::new(self.buffers.format());
        self.spare = (0..16).map(|_| buffers.take(REQUEST_MAX)).collect();
        let mut caller =
            Caller { device: &mut self.flash, clock: &mut self.clock, buffers: &mut buffers, cut_at };
        let mounted = Pblk::mount(&mut caller, &self.units, &self.options);
        self.buffers = buffers;
        match mounted {
            Ok((pblk, report)) => {
                pblk.check();
                self.pblk = Some(pblk);
                Some(report)
            }
            Err(error) => {
                assert!(cut_at.is_some(), "{}: mount failed: {error}", self.label);
                None
            }
        }
    }

    /// The power goes now.
    pub fn cut(&mut self, prng: &mut Prng) {
        let now = self.clock.now();
        let mut flash = self.flash.inner().fork().expect("a drive in memory");
        flash.power_cut(now, prng).expect("memory does not fail");
        self.flash = Check::new(flash);
        self.pblk = None;
        self.outstanding.clear();
    }

    /// Sends a request; false if the target takes none now.
    pub fn send(&mut self, op: BlockOp, block: u64, count: u32) -> bool {
        let Some(buffer) = self.spare.pop() else { return false };
        let tag = self.next_tag;
        self.next_tag += 1;
        for offset in 0..count {
            let at = block + u64::from(offset);
            match op {
                BlockOp::Write { .. } => {
                    self.version += 1;
                    let stamp = self.buffers.data_mut(buffer, offset, 1);
                    stamp[..8].copy_from_slice(&at.to_le_bytes());
                    stamp[8..16].copy_from_slice(&self.version.to_le_bytes());
                    self.oracle.sent(at, self.version);
                }
                BlockOp::Discard | BlockOp::WriteZeroes => self.oracle.sent(at, 0),
                _ => {}
            }
        }
        let request = BlockRequest { tag: Tag(tag), op, block, count, buffer: Some(buffer) };
        let now = self.clock.now();
        let moment = self.oracle.moment;
        assert!(self.pblk_mut().submit(now, request).is_ok(), "{}: refused", self.label);
        let all = self.outstanding.values().map(|other| (other.request.block, other.request.count));
        let unanswered = all.collect();
        self.outstanding.insert(tag, Outstanding { request, moment, unanswered });
        true
    }

    /// True if a request in flight touches the range.
    pub fn is_busy(&self, block: u64, count: u32) -> bool {
        self.outstanding.values().any(|other| {
            let theirs = other.request.block..other.request.block + u64::from(other.request.count);
            theirs.start < block + u64::from(count) && block < theirs.end
        })
    }

    pub fn in_flight(&self) -> usize {
        self.outstanding.len()
    }

    /// One turn at the present time. True if anything happened. False also once the power should go.
    pub fn turn(&mut self) -> bool {
        let now = self.clock.now();
        let mut any = false;
        let pblk = self.pblk.as_mut().expect("it is mounted");
        while let Some(completion) = self.flash.poll_completion(now, &mut self.buffers) {
            pblk.on_completion(now, completion, &mut self.buffers);
            any = true;
        }
        if pblk.deadline().is_some_and(|at| at <= now) {
            pblk.on_deadline(now);
        }
        while !self.cut_at.is_some_and(|at| self.commands >= at) {
            let Some(command) = pblk.poll_command(now, &mut self.buffers) else { break };
            self.flash.submit(now, command, &mut self.buffers).expect("the queue is deep enough");
            self.commands += 1;
            any = true;
        }
        while let Some(reply) = self.pblk_mut().poll_reply() {
            let done = self.outstanding.remove(&reply.tag.0).expect("it was sent");
            self.judge(&done, reply.status);
            self.spare.push(done.request.buffer.expect("all have one"));
            any = true;
        }
        any
    }

    fn judge(&mut self, done: &Outstanding, status: Status) {
        let BlockRequest { op, block, count, buffer, .. } = done.request;
        if !status.is_success() {
            self.failures.push(status);
            return;
        }
        match op {
            BlockOp::Read => {
                for offset in 0..count {
                    let found = version_in(
                        self.buffers.data(buffer.expect("it has one"), offset, 1),
                        block + u64::from(offset),
                    );
                    let expected = self.oracle.now(block + u64::from(offset));
                    assert_eq!(
                        found,
                        Ok(expected),
                        "{}: block {} after {} commands",
                        self.label,
                        block + u64::from(offset),
                        self.commands
                    );
                }
            }
            BlockOp::Write { fua: true } => {
                (0..count)
                    .for_each(|offset| self.oracle.durable_block(block + u64::from(offset), done.moment));
            }
            BlockOp::Flush | BlockOp::Shutdown => {
                // Everything that was answered when it was sent.
                let moment = done.moment;
                for at in 0..self.pblk.as_ref().expect("mounted").block_count() {
                    if !done.unanswered.iter().any(|&(first, count)| (first..first + u64::from(count)).contains(&at)) {
                        self.oracle.durable_block(at, moment);
                    }
                }
            }
            _ => {}
        }
    }

    /// Runs until nothing is outstanding, or the power should go (false).
    pub fn drain(&mut self) -> bool {
        self.run_until(|world| world.outstanding.is_empty())
    }

    /// Runs until `done`; false if the power should go first.
    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            while self.turn() {}
            if self.cut_at.is_some_and(|at| self.commands >= at) {
                return false;
            }
            if done(self) {
                return true;
            }
            let timer = self.pblk().deadline();
            let next = self.flash.deadline().into_iter().chain(timer).min();
            let Some(next) = next else {
                panic!(
                    "{}: stuck after {} commands with {} requests: {}",
                    self.label,
                    self.commands,
                    self.outstanding.len(),
                    self.pblk().debug()
                );
            };
            self.clock.wait_until(next);
        }
    }

    /// Lets everything that goes on by itself come to its end.
    pub fn settle(&mut self) -> bool {
        loop {
            while self.turn() {}
            if self.cut_at.is_some_and(|at| self.commands >= at) {
                return false;
            }
            let Some(next) = self.flash.deadline() else { return true };
            self.clock.wait_until(next);
        }
    }

    /// Reads every block and compares it with what it must be (`settled`: after a cut, with what it may be).
    pub fn read_all(&mut self, settled: bool) {
        let blocks = self.blocks();
        let mut at = 0;
        while at < blocks {
            let count = u32::try_from((blocks - at).min(u64::from(REQUEST_MAX))).expect("small");
            if settled {
                let buffer = *self.spare.last().expect("a buffer");
                let request = BlockRequest {
                    tag: Tag(u32::MAX),
                    op: BlockOp::Read,
                    block: at,
                    count,
                    buffer: Some(buffer),
                };
                let now = self.clock.now();
                self.pblk_mut().submit(now, request).expect("nothing else is asked");
                self.read_settled(at, count, buffer);
            } else {
                assert!(self.send(BlockOp::Read, at, count));
                assert!(self.drain(), "the power went during a check");
            }
            at += u64::from(count);
        }
    }

    fn read_settled(&mut self, block: u64, count: u32, buffer: BufId) {
        loop {
            let now = self.clock.now();
            let pblk = self.pblk.as_mut().expect("mounted");
            while let Some(completion) = self.flash.poll_completion(now, &mut self.buffers) {
                pblk.on_completion(now, completion, &mut self.buffers);
            }
            while let Some(command) = pblk.poll_command(now, &mut self.buffers) {
                self.flash.submit(now, command, &mut self.buffers).expect("deep enough");
            }
            if let Some(reply) = pblk.poll_reply() {
                assert!(reply.status.is_success(), "{}: block {block}: {}", self.label, reply.status);
                break;
            }
            self.clock.wait_until(self.flash.deadline().unwrap_or_else(|| {
                panic!(
                    "{}: a read is stuck: {:#?}",
                    self.label,
                    self.pblk.as_ref().map(|p| p.debug_read(block, count))
                )
            }));
        }
        for offset in 0..count {
            let at = block + u64::from(offset);
            let found = version_in(self.buffers.data(buffer, offset, 1), at);
            let allowed = found.and_then(|found| self.oracle.settle(at, found));
            assert_eq!(allowed, Ok(()), "{} after {} commands", self.label, self.commands);
        }
    }

    /// Whether the whole state is sound.
    pub fn check(&self) {
        self.pblk().check();
        self.flash.inner().check();
    }
}

/// The version in a block's content.
pub fn version_in(content: &[u8], block: u64) -> Result<Version, String> {
    let word = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("eight bytes"));
    match (word(0), word(8)) {
        (0, 0) => Ok(0),
        (at, version) if at == block => Ok(version),
        (at, version) => Err(format!("block {block} holds version {version} of block {at}")),
    }
}

/// A mix of requests, all from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub requests: u32,
    pub depth: usize,
    pub span: u64,
    pub longest: u32,
    pub reads: u64,
    pub flushes: u64,
    pub discards: u64,
    pub fua: u64,
}

impl World {
    /// Runs a mix; false if the power should go first.
    pub fn run(&mut self, mix: &Mix, prng: &mut Prng) -> bool {
        for _ in 0..mix.requests {
            let depth = mix.depth;
            if !self.run_until(|world| world.outstanding.len() < depth) {
                return false;
            }
            let count = 1 + u32::try_from(prng.below(u64::from(mix.longest))).expect("small");
            let block = prng.below(mix.span.min(self.blocks()).saturating_sub(u64::from(count)).max(1));
            let draw = prng.below(100);
            let op = if draw < mix.reads {
                BlockOp::Read
            } else if draw < mix.reads + mix.discards {
                if prng.below(2) == 0 { BlockOp::Discard } else { BlockOp::WriteZeroes }
            } else if draw < mix.reads + mix.discards + mix.flushes {
                BlockOp::Flush
            } else {
                BlockOp::Write { fua: prng.below(100) < mix.fua }
            };
            let (block, count) = if op == BlockOp::Flush { (0, 0) } else { (block, count) };
            if !self.run_until(|world| !world.is_busy(block, count)) {
                return false;
            }
            self.send(op, block, count);
        }
        self.drain()
    }
}
