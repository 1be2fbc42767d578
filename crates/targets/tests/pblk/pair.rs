//! Two instances on one drive: each on units of its own, both at once.

use super::basic::options;
use super::world::config;
use ocssd_base::Prng;
use ocssd_engine::{Caller, Clock, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{BufId, Buffers, Device, Geometry, PuId, Tag, Target};
use ocssd_targets::pblk::{Mode, Pblk};

struct Pair {
    flash: Check<Flash>,
    clock: VirtualClock,
    buffers: Buffers,
    targets: Vec<Pblk>,
    /// What each instance's blocks hold.
    expected: Vec<Vec<u64>>,
    buffer: BufId,
    version: u64,
}

const UNITS: [[u32; 3]; 2] = [[4, 0, 2], [1, 5, 3]];

impl Pair {
    fn mount(flash: Flash, clock: VirtualClock) -> Self {
        let mut buffers = Buffers::new(flash.payload_format());
        let (mut flash, mut clock) = (Check::new(flash), clock);
        let modes = [Mode::Improved, Mode::Faithful];
        let targets = UNITS.iter().zip(modes).map(|(units, mode)| {
            let (device, clock, buffers) = (&mut flash, &mut clock, &mut buffers);
            let mut caller = Caller { device, clock, buffers, cut_at: None };
            let units = units.map(PuId);
            Pblk::mount(&mut caller, &units, &options(mode)).expect("it fits").0
        });
        let targets: Vec<Pblk> = targets.collect();
        let empty = |target: &Pblk| vec![0; usize::try_from(target.block_count()).expect("few")];
        let expected = targets.iter().map(empty).collect();
        let buffer = buffers.take(16);
        Self { flash, clock, buffers, targets, expected, buffer, version: 0 }
    }

    /// Carries out a request of instance `which`; both instances go on meanwhile.
    fn ask(&mut self, which: usize, op: BlockOp, block: u64, count: u32) {
        let request = BlockRequest { tag: Tag(1), op, block, count, buffer: Some(self.buffer) };
        self.targets[which].submit(self.clock.now(), request).expect("it takes requests");
        loop {
            let now = self.clock.now();
            while let Some(mut completion) = self.flash.poll_completion(now, &mut self.buffers) {
                let of = usize::try_from(completion.tag.0 % 2).expect("0 or 1");
                completion.tag = Tag(completion.tag.0 / 2);
                self.targets[of].on_completion(now, completion, &mut self.buffers);
            }
            for (of, target) in (0..).zip(&mut self.targets) {
                if target.deadline().is_some_and(|at| at <= now) {
                    target.on_deadline(now);
                }
                while let Some(mut command) = target.poll_command(now, &mut self.buffers) {
                    command.tag = Tag(command.tag.0 * 2 + of);
                    self.flash.submit(now, command, &mut self.buffers).expect("deep enough");
                }
            }
            if let Some(reply) = self.targets[which].poll_reply() {
                assert!(reply.status.is_success(), "instance {which}: {}", reply.status);
                return;
            }
            let timers = self.targets.iter().filter_map(Target::deadline);
            let next = self.flash.deadline().into_iter().chain(timers).min();
            self.clock.wait_until(next.expect("something goes on while a request waits"));
        }
    }

    fn write(&mut self, which: usize, block: u64, count: u32) {
        self.version += 1;
        for offset in 0..count {
            let stamp = self.buffers.data_mut(self.buffer, offset, 1);
            stamp[..8].copy_from_slice(&(block + u64::from(offset)).to_le_bytes());
            stamp[8..].copy_from_slice(&self.version.to_le_bytes());
            self.expected[which]
                [usize::try_from(block).expect("few") + usize::try_from(offset).expect("few")] = self.version;
        }
        self.ask(which, BlockOp::Write { fua: false }, block, count);
    }

    fn read_all(&mut self) {
        for which in 0..2 {
            for block in 0..self.targets[which].block_count() {
                self.ask(which, BlockOp::Read, block, 1);
                let stamp = self.buffers.data(self.buffer, 0, 1);
                let version = u64::from_le_bytes(stamp[8..16].try_into().expect("eight bytes"));
                let expected = self.expected[which][usize::try_from(block).expect("few")];
                assert_eq!(version, expected, "instance {which}, block {block}");
            }
            self.targets[which].check();
        }
        self.flash.inner().check();
    }
}

#[test]
fn two_instances_share_a_drive_and_both_survive_a_cut() {
    let seed = 31;
    let mut prng = Prng::new(seed);
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(3, 2, 28, 32, 4) };
    let flash = Flash::format(config(geometry)).expect("a sound drive");
    let mut pair = Pair::mount(flash, VirtualClock::default());
    for round in 0..4 {
        for _ in 0..900 {
            let which = usize::try_from(prng.below(2)).expect("0 or 1");
            let count = 1 + u32::try_from(prng.below(12)).expect("small");
            let block = prng.below(pair.targets[which].block_count() - u64::from(count));
            pair.write(which, block, count);
        }
        pair.read_all();
        // One is shut down, the other is cut off after a flush.
        pair.ask(round % 2, BlockOp::Shutdown, 0, 0);
        pair.ask(1 - round % 2, BlockOp::Flush, 0, 0);
        let mut flash = pair.flash.inner().fork().expect("a drive in memory");
        flash.power_cut(pair.clock.now(), &mut prng).expect("memory does not fail");
        let (expected, version) = (pair.expected, pair.version);
        pair = Pair { expected, version, ..Pair::mount(flash, pair.clock) };
        pair.read_all();
    }
}
