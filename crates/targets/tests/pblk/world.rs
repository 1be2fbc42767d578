//! A drive, a pblk instance on it, and requests whose answers are checked; the power can go at any command.

use super::oracle::{Oracle, Version};
use super::power::CutAfter;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Observer, Requests, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{
    BlockingDevice, BufId, Buffers, Command, Completion, Geometry, PuId, Status, Tag, Target, TargetId,
};
use ocssd_targets::pblk::{MountError, MountReport, Options, Pblk};
use std::collections::BTreeMap;

/// A small drive: `geometry` with the tiny preset's media, every unit written and reset in no time worth waiting for.
pub fn config(geometry: Geometry) -> Config {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

/// Counts commands, of which so many may still be given.
struct Commands {
    left: u64,
    commands: u64,
    completions: u64,
}

impl Observer for Commands {
    fn events_left(&self) -> u64 {
        self.left - self.commands
    }

    fn on_completion(&mut self, _now: Nanos, _completion: &Completion) {
        self.completions += 1;
    }

    fn on_command(&mut self, _now: Nanos, _command: &Command, _buffers: &Buffers) {
        self.commands += 1;
    }
}

struct Outstanding {
    request: BlockRequest,
    sent_at: Nanos,
    /// The oracle's moment when it was sent.
    moment: u64,
    /// What was not answered then: a flush does not cover it.
    unanswered: Vec<(u64, u32)>,
}

/// A request that was answered. Tags count requests as they were sent.
pub struct Answer {
    pub request: BlockRequest,
    pub waited: Nanos,
}

pub struct World {
    pub host: Host<Check<Flash>, VirtualClock, Pblk>,
    requests: Requests<Pblk>,
    pub units: Vec<PuId>,
    pub options: Options,
    pub oracle: Oracle,
    pub version: Version,
    /// Commands the device took since the world was made.
    pub commands: u64,
    /// Turns of the loop, idle ones too.
    pub turns: u64,
    /// The power goes when so many were taken.
    pub cut_at: Option<u64>,
    pub label: String,
    /// The media may lose what was written: reads may fail.
    pub media_fail: bool,
    /// The instance may run out of good chunks.
    pub may_give_up: bool,
    outstanding: BTreeMap<u32, Outstanding>,
    /// In order.
    pub answered: Vec<Answer>,
    spare: Vec<BufId>,
    next_tag: u32,
    pub failures: Vec<Status>,
}

/// More commands than any test needs: an instance that sends them goes round in circles.
const COMMANDS_MAX: u64 = 400_000;
/// Largest request.
pub const REQUEST_MAX: u32 = 64;

impl World {
    pub fn new(config: Config, options: Options, label: &str) -> Self {
        let units = (0..config.geometry.pu_count()).map(PuId).collect();
        Self::on(config, units, options, label)
    }

    /// An instance on some of the drive's units.
    pub fn on(config: Config, units: Vec<PuId>, options: Options, label: &str) -> Self {
        let mut world = Self::unmounted(Flash::format(config).expect("a sound drive"), units, options, label);
        world.mount();
        world.oracle = Oracle::new(world.blocks());
        world
    }

    /// Whether options fit a drive.
    pub fn try_on(config: Config, units: Vec<PuId>, options: Options) -> Result<(), MountError> {
        let mut world = Self::unmounted(Flash::format(config).expect("a sound drive"), units, options, "");
        world.try_mount(CutAfter::NEVER).map(|_| ())
    }

    /// Why options do not fit a drive.
    pub fn refused(config: Config, options: Options) -> MountError {
        let units = (0..config.geometry.pu_count()).map(PuId).collect();
        Self::try_on(config, units, options).expect_err("the options do not fit the drive")
    }

    /// A drive with nothing on it yet.
    pub fn bare(config: Config, options: Options, label: &str) -> Self {
        let units = (0..config.geometry.pu_count()).map(PuId).collect();
        Self::unmounted(Flash::format(config).expect("a sound drive"), units, options, label)
    }

    /// Makes an instance, or mounts the one that is there though nothing was written to it.
    pub fn make(&mut self) {
        self.mount();
        self.oracle = Oracle::new(self.blocks());
    }

    /// Does commands outside of any target, one after the other.
    pub fn raw(&mut self, commands: &[Command]) {
        for &command in commands {
            let done = self.host.caller().call(&[command]).expect("the power stays");
            assert!(done[0].status.is_success(), "{}: {command:?}: {}", self.label, done[0].status);
        }
    }

    fn unmounted(flash: Flash, units: Vec<PuId>, options: Options, label: &str) -> Self {
        Self {
            host: {
                let buffers = Buffers::new(flash.payload_format());
                Host::new(Check::new(flash), VirtualClock::default(), buffers)
            },
            requests: Requests::default(),
            units,
            options,
            oracle: Oracle::new(1),
            version: 0,
            commands: 0,
            turns: 0,
            cut_at: None,
            label: label.to_owned(),
            media_fail: false,
            may_give_up: false,
            outstanding: BTreeMap::new(),
            answered: Vec::new(),
            spare: Vec::new(),
            next_tag: 0,
            failures: Vec::new(),
        }
    }

    /// The same drive and oracle as of now; what happens to it does not happen here. Nothing is mounted on it.
    pub fn branch(&self, label: &str) -> Self {
        let flash = self.host.device().inner().fork().expect("a drive in memory");
        let mut branch = Self::unmounted(flash, self.units.clone(), self.options.clone(), label);
        branch.host.clock_mut().wait_until(self.clock_now());
        branch.oracle = self.oracle.clone();
        branch.version = self.version;
        branch.media_fail = self.media_fail;
        branch.may_give_up = self.may_give_up;
        branch.commands = self.commands;
        branch
    }

    pub fn blocks(&self) -> u64 {
        self.pblk().block_count()
    }

    pub fn pblk(&self) -> &Pblk {
        self.host.target(TargetId(0))
    }

    pub fn pblk_mut(&mut self) -> &mut Pblk {
        self.host.target_mut(TargetId(0))
    }

    pub fn mount(&mut self) -> MountReport {
        self.try_mount(CutAfter::NEVER).unwrap_or_else(|error| panic!("{}: {error}", self.label))
    }

    /// Mounts; fails if the options do not fit or the power was cut.
    pub fn try_mount(&mut self, cut: CutAfter) -> Result<MountReport, MountError> {
        self.host.drop_targets();
        let buffers = self.host.buffers_mut();
        *buffers = Buffers::new(buffers.format());
        self.spare = (0..16).map(|_| buffers.take(REQUEST_MAX)).collect();
        let mut device = cut.around(self.host.caller());
        let mounted = Pblk::mount(&mut device, &self.units, &self.options);
        if matches!(mounted, Err(MountError::DoesNotFit(_))) {
            assert_eq!(
                self.host.buffers().in_use(),
                self.spare.len(),
                "{}: a mount that failed kept buffers",
                self.label
            );
        }
        mounted.map(|(pblk, report)| {
            pblk.check();
            self.host.add(Box::new(pblk));
            report
        })
    }

    /// The power goes now.
    pub fn cut(&mut self, prng: &mut Prng) {
        let now = self.clock_now();
        let mut flash = self.host.device().inner().fork().expect("a drive in memory");
        flash.power_cut(now, prng).expect("memory does not fail");
        *self.host.device_mut() = Check::new(flash);
        self.host.drop_targets();
        self.requests.clear();
        self.outstanding.clear();
    }

    /// A unit dies with all that it holds; nothing is mounted on the drive.
    pub fn kill_unit(&mut self, unit: PuId) {
        let mut none = Buffers::new(self.host.buffers().format());
        let lost =
            self.host.device_mut().inner_mut().kill_unit(unit, &mut none).expect("memory does not fail");
        assert!(lost > 0, "{}: unit {unit:?} was dead", self.label);
    }

    /// The power goes now; what is mounted then holds what it must, and is sound.
    pub fn survive_cut(&mut self, prng: &mut Prng) {
        self.cut(prng);
        self.mount();
        self.read_all(true);
        self.check();
    }

    /// Shuts the instance down and takes the power away.
    pub fn shut_down(&mut self, prng: &mut Prng) {
        assert!(self.send(BlockOp::Shutdown, 0, 0));
        assert!(self.drain(), "{}: the power went", self.label);
        self.check();
        self.cut(prng);
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
                    write_version(self.host.buffers_mut().data_mut(buffer, offset, 1), at, self.version);
                    self.oracle.sent(at, self.version);
                }
                BlockOp::Discard | BlockOp::WriteZeroes => self.oracle.sent(at, 0),
                _ => {}
            }
        }
        let request = BlockRequest { tag: Tag(tag), op, block, count, buffer: Some(buffer) };
        let now = self.host.clock().now();
        let moment = self.oracle.moment;
        self.requests.push(request);
        let all = self.outstanding.values().map(|other| (other.request.block, other.request.count));
        let unanswered = all.collect();
        self.outstanding.insert(tag, Outstanding { request, sent_at: now, moment, unanswered });
        true
    }

    fn on_reply(&mut self, reply: BlockReply) {
        let done = self.outstanding.remove(&reply.tag.0).expect("it was sent");
        let waited = self.host.clock().now() - done.sent_at;
        self.answered.push(Answer { request: done.request, waited });
        self.judge(&done, reply.status);
        self.spare.push(done.request.buffer.expect("all have one"));
    }

    /// Writes blocks, and waits until they are in the buffer.
    pub fn write(&mut self, block: u64, count: u32) {
        assert!(self.send(BlockOp::Write { fua: false }, block, count));
        assert!(self.drain(), "{}: the power went", self.label);
    }

    /// Flushes, and waits for it.
    pub fn flush(&mut self) {
        assert!(self.send(BlockOp::Flush, 0, 0));
        assert!(self.drain(), "{}: the power went", self.label);
    }

    /// True if a request in flight touches the range.
    pub fn is_busy(&self, block: u64, count: u32) -> bool {
        self.outstanding.values().any(|other| {
            let theirs = other.request.block..other.request.block + u64::from(other.request.count);
            theirs.start < block + u64::from(count) && block < theirs.end
        })
    }

    /// One turn at the present time. True if anything happened. False also once the power should go.
    pub fn turn(&mut self) -> bool {
        self.turns += 1;
        let left = self.cut_at.map_or(u64::MAX, |at| at.saturating_sub(self.commands));
        let mut commands = Commands { left, commands: 0, completions: 0 };
        self.host.step_observed(&mut self.requests, &mut commands);
        self.commands += commands.commands;
        let pblk = self.pblk();
        assert!(self.commands < COMMANDS_MAX, "{}: no end in sight: {}", self.label, pblk.summary());
        let sound = self.may_give_up || pblk.stats().gave_up == 0 && !pblk.is_read_only();
        assert!(
            sound,
            "{}: nothing went on after {} commands: {}",
            self.label,
            self.commands,
            pblk.summary()
        );
        let replies = self.requests.take_replies();
        let any = commands.commands + commands.completions > 0 || !replies.is_empty();
        replies.into_iter().for_each(|reply| self.on_reply(reply));
        any
    }

    fn is_cut(&self) -> bool {
        self.cut_at.is_some_and(|at| self.commands >= at)
    }

    fn judge(&mut self, done: &Outstanding, status: Status) {
        let BlockRequest { op, block, count, buffer, .. } = done.request;
        let blocks = (0..count).map(|offset| block + u64::from(offset));
        let changes = matches!(op, BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes);
        if !status.is_success() {
            self.failures.push(status);
            blocks.filter(|_| changes).for_each(|block| self.oracle.refused(block));
            return;
        }
        match op {
            BlockOp::Read => {
                for (offset, at) in (0..).zip(blocks) {
                    let data = self.host.buffers().data(buffer.expect("it has one"), offset, 1);
                    let read = version_in(data, at).and_then(|found| self.oracle.read(at, found));
                    assert_eq!(read, Ok(()), "{} after {} commands", self.label, self.commands);
                }
            }
            BlockOp::Write { fua: true } => blocks.for_each(|block| {
                self.oracle.made(block);
                self.oracle.durable_block(block, done.moment);
            }),
            BlockOp::Flush | BlockOp::Shutdown => {
                // Everything that was answered when it was sent.
                let covered = |at: u64| {
                    !done
                        .unanswered
                        .iter()
                        .any(|&(first, count)| (first..first + u64::from(count)).contains(&at))
                };
                for at in (0..self.blocks()).filter(|&at| covered(at)) {
                    self.oracle.durable_block(at, done.moment);
                }
            }
            _ => blocks.for_each(|block| self.oracle.made(block)),
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
            if self.is_cut() {
                return false;
            }
            if done(self) {
                return true;
            }
            if !self.pass_time() {
                let (commands, requests) = (self.commands, self.outstanding.len());
                let summary = self.pblk().summary();
                panic!("{}: stuck after {commands} commands with {requests} requests: {summary}", self.label);
            }
        }
    }

    /// Lets everything that goes on by itself come to its end.
    pub fn settle(&mut self) -> bool {
        while self.step() {}
        !self.is_cut()
    }

    /// Does what can be done at the present time, and goes on to the next; false if there is none, or the power should go.
    pub fn step(&mut self) -> bool {
        while self.turn() {}
        !self.is_cut() && self.pass_time()
    }

    /// Goes on to the next time at which something happens by itself; false if there is none.
    pub fn pass_time(&mut self) -> bool {
        let next = self.host.next_deadline();
        next.map(|next| self.host.clock_mut().wait_until(next)).is_some()
    }

    /// Reads every block and compares it with what it must be (`settled`: after a cut, with what it may be). Returns the
    /// blocks the media lost, of which there must be none unless `media_fail`.
    pub fn read_all(&mut self, settled: bool) -> Vec<u64> {
        assert!(self.cut_at.is_none(), "the power may not go during a check");
        assert!(self.drain(), "nothing else is asked during a check");
        let (blocks, mut at, mut lost) = (self.blocks(), 0, Vec::new());
        while at < blocks {
            let count = u32::try_from((blocks - at).min(u64::from(REQUEST_MAX))).expect("small");
            if !self.read_and_judge(at, count, settled) {
                let each =
                    (at..at + u64::from(count)).filter(|&block| !self.read_and_judge(block, 1, settled));
                lost.extend(each.collect::<Vec<_>>());
            }
            at += u64::from(count);
        }
        assert!(self.media_fail || lost.is_empty(), "{}: blocks {lost:?} were lost", self.label);
        lost
    }

    /// True if the blocks could be read; what they hold must then be right.
    pub fn read_and_judge(&mut self, block: u64, count: u32, settled: bool) -> bool {
        let buffer = *self.spare.last().expect("a buffer");
        let status = self.read_into(block, count, buffer);
        if !status.is_success() {
            assert!(self.media_fail, "{}: blocks {block} + {count}: {status}", self.label);
            assert_eq!(status, Status::UNRECOVERED_READ, "{}: blocks {block} + {count}", self.label);
            if count == 1 && settled {
                self.oracle.refused(block);
            }
            return false;
        }
        for offset in 0..count {
            let at = block + u64::from(offset);
            let found = version_in(self.host.buffers().data(buffer, offset, 1), at);
            let fits = found.and_then(|found| {
                if settled { self.oracle.settle(at, found) } else { self.oracle.read(at, found) }
            });
            assert_eq!(fits, Ok(()), "{} after {} commands", self.label, self.commands);
        }
        true
    }

    fn read_into(&mut self, block: u64, count: u32, buffer: BufId) -> Status {
        let tag = Tag(u32::MAX);
        let request = BlockRequest { tag, op: BlockOp::Read, block, count, buffer: Some(buffer) };
        self.host.ask(request).status
    }

    /// Requests without an answer.
    pub fn in_flight(&self) -> usize {
        self.outstanding.len()
    }

    pub fn clock_now(&self) -> Nanos {
        self.host.clock().now()
    }

    /// Time passes.
    pub fn wait(&mut self, time: Nanos) {
        let until = self.host.clock().now() + time;
        self.host.clock_mut().wait_until(until);
    }

    /// Whether the whole state is sound.
    pub fn check(&self) {
        self.pblk().check();
        self.host.device().inner().check();
    }
}

fn write_version(content: &mut [u8], block: u64, version: Version) {
    let (head, rest) = content.split_at_mut(16);
    head[..8].copy_from_slice(&block.to_le_bytes());
    head[8..].copy_from_slice(&version.to_le_bytes());
    rest.fill(version.to_le_bytes()[0]);
}

/// The version in a block's content.
fn version_in(content: &[u8], block: u64) -> Result<Version, String> {
    let word = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("eight bytes"));
    let (at, version) = (word(0), word(8));
    let whole = content[16..].iter().all(|&byte| byte == version.to_le_bytes()[0]);
    match (at, version, whole) {
        (0, 0, true) => Ok(0),
        (at, version, true) if at == block => Ok(version),
        _ => Err(format!("block {block} holds version {version} of block {at}, whole: {whole}")),
    }
}
