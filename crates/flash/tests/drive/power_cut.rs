//! The power goes at every moment something ends, and at random ones; what was promised is there, and nothing else.

use crate::power_cut_history::{Found, History, Life, Write, works_on};
use crate::rig::{Rig, index, ppa, preset, run};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::Config;
use ocssd_lightnvm::{Addresses, BufId, Command, Completion, Device, Op, Ppa, Tag};

/// Commands the host keeps in flight.
const DEPTH: usize = 4;
/// Chunks in use: few, so that they fill, close and are reset; on two units of one group and one of another.
const CHUNKS: u32 = 6;

/// A host that gives random sound commands and remembers what it was told.
struct Host {
    rig: Rig,
    history: History,
    prng: Prng,
    in_flight: Vec<(Command, Vec<Tag>)>,
    spare: Vec<BufId>,
    told: Vec<Tag>,
    next_id: u64,
}

impl Host {
    fn new(config: Config, seed: u64) -> Self {
        let mut rig = Rig::new(config);
        let spare = (0..DEPTH).map(|_| rig.buffers.take(64)).collect();
        let history = History::new(&rig.drive);
        let prng = Prng::new(seed).split("host");
        Self { rig, history, prng, in_flight: Vec::new(), spare, told: Vec::new(), next_id: 1 }
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.prng.below(u64::from(bound))).expect("below 32 bits")
    }

    fn chunk(&mut self) -> u32 {
        let per_pu = self.rig.drive.geometry().chunks_per_pu;
        let number = self.below(CHUNKS);
        number % 3 * per_pu * (self.rig.drive.geometry().pus_per_group - 1) + number / 3
    }

    /// True if what is acknowledged survives without a flush.
    fn ends_are_durable(&self) -> bool {
        let cache = self.rig.drive.config().cache;
        cache.sectors == 0 || cache.power_loss_protection
    }

    /// Gives one more command.
    fn submit(&mut self) {
        let chunk = self.chunk();
        let size = self.rig.drive.geometry().sectors_per_chunk;
        let pointer = self.history.life(chunk).pointer();
        let kind = self.below(20);
        if kind == 0 {
            let flush = self.rig.command(Op::Flush, Addresses::None);
            self.give(flush);
        } else if kind < 3 && pointer > 0 {
            let first = self.below(pointer);
            let mut read = self.rig.command(Op::Read, run(ppa(chunk, first), 1));
            read.buffer = None;
            self.give(read);
        } else if pointer == size {
            let reset = self.rig.command(Op::Reset, run(ppa(chunk, 0), 1));
            let life = Life { reset: Some(reset.tag), ..Life::default() };
            self.history.chunks[index(chunk)].push(life);
            self.give(reset);
        } else if kind < 6 && self.rig.drive.geometry().capabilities.vector_copy {
            self.copy(chunk, pointer);
        } else {
            self.write(chunk, pointer, kind < 9);
        }
    }

    fn write(&mut self, chunk: u32, pointer: u32, fua: bool) {
        let geometry = self.rig.drive.geometry();
        let (size, minimum) = (geometry.sectors_per_chunk, geometry.ws_min);
        let count = (minimum * (1 + self.below(4))).min(size - pointer).min(64 / minimum * minimum);
        let buffer = self.spare.pop().expect("a buffer for each command in flight");
        let ids: Vec<u64> = (self.next_id..self.next_id + u64::from(count)).collect();
        self.next_id += u64::from(count);
        for (sector, &id) in (0..).zip(&ids) {
            self.rig.fill(buffer, sector, id);
        }
        let mut command = self.rig.command(Op::Write { fua }, run(ppa(chunk, pointer), count));
        command.buffer = Some(buffer);
        self.history.life(chunk).writes.push(Write { tag: command.tag, first: pointer, ids, durable: false });
        self.give(command);
    }

    /// Copies the start of another chunk, as far as it is written, to the pointer of this one.
    fn copy(&mut self, chunk: u32, pointer: u32) {
        let unit = self.rig.drive.geometry().ws_min;
        let source = self.chunk();
        if source == chunk || self.history.life(source).pointer() < unit {
            return;
        }
        let list: Vec<Ppa> = (0..unit)
            .map(|sector| ppa(source, sector))
            .chain((0..unit).map(|at| ppa(chunk, pointer + at)))
            .collect();
        let ids = self.history.life(source).ids()[..index(unit)].to_vec();
        let buffer = self.spare.pop().expect("a buffer for each command in flight");
        self.rig.buffers.addresses_mut(buffer)[..list.len()].copy_from_slice(&list);
        let mut command = self.rig.command(Op::Copy, Addresses::List { offset: 0, count: unit });
        command.buffer = Some(buffer);
        self.history.life(chunk).writes.push(Write { tag: command.tag, first: pointer, ids, durable: false });
        self.give(command);
    }

    fn give(&mut self, command: Command) {
        // What a flush promises is what was told before it was given.
        let promised = if command.op == Op::Flush { self.told.clone() } else { Vec::new() };
        self.rig
            .drive
            .submit(self.rig.now, command, &mut self.rig.buffers)
            .expect("the depth is within the queue");
        self.in_flight.push((command, promised));
    }

    fn on_end(&mut self, completion: Completion) {
        assert!(completion.status.is_success(), "{completion:?}");
        let place = self.in_flight.iter().position(|(command, _)| command.tag == completion.tag);
        let (command, promised) = self.in_flight.remove(place.expect("an end answers a command"));
        self.told.push(command.tag);
        let durable = match command.op {
            Op::Write { fua } => fua || self.ends_are_durable(),
            Op::Reset | Op::Copy => true,
            Op::Read | Op::Flush => false,
        };
        if durable {
            self.history.on_durable(command.tag);
        }
        for tag in promised {
            self.history.on_durable(tag);
        }
        if matches!(command.op, Op::Write { .. } | Op::Copy) {
            self.spare.extend(command.buffer);
        }
    }

    /// Goes on to the next moment something ends, and lets it end.
    fn step(&mut self) {
        while self.in_flight.len() < DEPTH {
            self.submit();
        }
        self.rig.now = self.rig.drive.deadline().expect("commands are in flight");
        while let Some(completion) = self.rig.drive.poll_completion(self.rig.now, &mut self.rig.buffers) {
            self.on_end(completion);
        }
    }

    /// Cuts the power of a copy of the drive at `at`, and judges what is left; `seed` decides what tears.
    fn cut(&self, at: Nanos, seed: u64, thorough: bool, context: &str) -> Found {
        let drive = self.rig.drive.fork().expect("content is in memory");
        let format = drive.payload_format();
        let mut rig = Rig::with(drive, format);
        rig.now = at;
        let report =
            rig.drive.power_cut(at, &mut Prng::new(seed).split("tear")).expect("memory does not fail");
        assert_eq!(rig.drive.deadline(), None, "{context}: the drive is idle afterwards");
        let found = self.history.judge(&mut rig, context);
        assert!(found.torn_units <= report.units_torn, "{context}: {found:?} but {report:?}");
        assert_eq!(found.resets_undone, report.resets_undone, "{context}: {found:?} but {report:?}");
        if thorough {
            works_on(&mut rig, context);
        }
        found
    }
}

fn config(name: &str, cache: u32, protected: bool) -> Config {
    let mut config = preset(name);
    config.geometry.mw_cunits = 0;
    config.geometry.capabilities.vector_copy = true;
    config.cache.sectors = cache;
    config.cache.power_loss_protection = protected;
    config
}

/// Kinds of drives: no cache, a cache, a protected cache.
const CACHES: [(&str, u32, bool); 3] =
    [("no cache", 0, false), ("cache", 64, false), ("protected cache", 64, true)];

#[test]
fn at_every_moment_something_ends_what_was_promised_survives() {
    for (name, cache, protected) in CACHES {
        let mut host = Host::new(config("tiny", cache, protected), 21);
        let (mut torn, mut lost, mut undone) = (0, 0, 0);
        for step in 0..400 {
            host.step();
            // The moment after something ended, and the last nanosecond before the next thing does.
            while host.in_flight.len() < DEPTH {
                host.submit();
            }
            let next = host.rig.drive.deadline().expect("commands are in flight");
            let before = Nanos(next.0 - 1).max(host.rig.now);
            for at in [host.rig.now, before] {
                let context = format!("{name}, seed 21, step {step}, cut at {} ns", at.0);
                let found = host.cut(at, at.0, step % 8 == 0, &context);
                torn += found.torn_units;
                lost += found.lost_sectors;
                undone += found.resets_undone;
            }
        }
        // The cuts must have met what they are for. A protected cache finishes what reached it: nothing is torn.
        assert!(if protected { torn == 0 } else { torn > 20 }, "{name}: {torn} torn units");
        assert!(
            undone > 5 && lost > 100,
            "{name}: {undone} undone resets, {lost} lost sectors nobody was promised"
        );
    }
}

#[test]
fn at_random_moments_of_random_runs_what_was_promised_survives() {
    for seed in 0..120 {
        let (name, cache, protected) = CACHES[usize::try_from(seed % 3).expect("below three")];
        let preset = if seed % 2 == 0 { "odd" } else { "tiny" };
        let mut host = Host::new(config(preset, cache, protected), seed);
        let steps = 20 + host.below(200);
        for _ in 0..steps {
            host.step();
        }
        while host.in_flight.len() < DEPTH {
            host.submit();
        }
        let next = host.rig.drive.deadline().expect("commands are in flight");
        let span = next.saturating_since(host.rig.now).0;
        let at = host.rig.now + Nanos(host.prng.below(span.max(1)));
        host.cut(at, seed, true, &format!("{preset}, {name}, seed {seed}, cut at {} ns", at.0));
    }
}

#[test]
fn with_protection_everything_told_survives_and_no_unit_of_the_cache_is_torn() {
    let mut rig = Rig::new(config("tiny", 64, true));
    for chunk in 0..2 {
        assert!(rig.write(ppa(chunk, 0), 32, u64::from(chunk) * 100).1.status.is_success());
    }
    let report = rig.drive.power_cut(rig.now, &mut Prng::new(3)).expect("memory does not fail");
    assert_eq!((report.units_torn, report.sectors_lost, report.commands), (0, 0, 0));
    for chunk in 0..2 {
        assert!(rig.read(ppa(chunk, 0), 32).1.status.is_success());
        assert_eq!(rig.id_of(rig.buffer, 31), u64::from(chunk) * 100 + 31);
    }
}

#[test]
fn a_reset_not_begun_is_undone_with_content_and_lost_sectors_and_one_begun_is_done() {
    let mut rig = Rig::new(config("tiny", 0, false));
    rig.drive.schedule_fault(ocssd_flash::ScheduledFault {
        kind: ocssd_flash::FaultKind::WriteNextUnit,
        chunk: ocssd_lightnvm::ChunkId(0),
        sector: Some(8),
        times: 1,
    });
    rig.write(ppa(0, 0), 32, 700);
    let blocker = rig.command(Op::Write { fua: false }, run(ppa(1, 0), 8));
    rig.drive.submit(rig.now, blocker, &mut rig.buffers).expect("room");
    // The program is on the channel or in the array for 390 us; the reset waits behind it.
    let start = rig.now + Nanos(10_000);
    let reset = rig.command(Op::Reset, run(ppa(0, 0), 1));
    rig.drive.submit(start, reset, &mut rig.buffers).expect("room");
    for (after, undone) in [(0, true), (380_000, true), (381_464 + 10_000, false), (3_000_000, false)] {
        let drive = rig.drive.fork().expect("content is in memory");
        let format = drive.payload_format();
        let mut cut = Rig::with(drive, format);
        cut.now = start + Nanos(after);
        let report = cut.drive.power_cut(cut.now, &mut Prng::new(1)).expect("memory does not fail");
        assert_eq!(report.resets_undone, u32::from(undone), "{after} ns after the reset");
        let pointer = cut.drive.chunk(ocssd_lightnvm::ChunkId(0)).write_pointer;
        assert_eq!(pointer, Some(if undone { 32 } else { 0 }), "{after} ns after the reset");
        if undone {
            assert_eq!(cut.read(ppa(0, 0), 32).1.failed, 0xFF00, "the lost unit is still lost");
            assert_eq!(cut.id_of(cut.buffer, 31), 731);
        }
    }
}

#[test]
fn the_same_seed_tears_the_same_pages() {
    let torn = |seed: u64| {
        let mut rig = Rig::new(config("tiny", 0, false));
        for unit in 0..4 {
            let command = rig.command(Op::Write { fua: false }, run(ppa(unit * 8, 0), 8));
            rig.drive.submit(rig.now, command, &mut rig.buffers).expect("room");
        }
        let at = Nanos(300_000);
        let report = rig.drive.power_cut(at, &mut Prng::new(seed)).expect("memory does not fail");
        assert_eq!((report.commands, report.units_torn), (4, 4));
        let of = |unit: u32| rig.drive.unreadable(ocssd_lightnvm::ChunkId(unit * 8)).to_vec();
        (0..4).map(of).collect::<Vec<_>>()
    };
    assert_eq!(torn(1), torn(1));
    assert!((2..20).any(|seed| torn(seed) != torn(1)), "seeds tear differently");
}
