//! Two instances on one drive: each on units of its own, both at once.

use super::basic::options;
use super::world::config;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::wrap::Check;
use ocssd_lightnvm::{BufId, Buffers, Geometry, PuId, Source, Tag, Target, TargetId};
use ocssd_targets::pblk::{Mode, Pblk};

struct Pair {
    host: Host<Check<Flash>, VirtualClock, Pblk>,
    /// What each instance's blocks hold.
    expected: Vec<Vec<u64>>,
    buffer: BufId,
    version: u64,
}

/// One request to one of the instances.
struct One {
    request: Option<(TargetId, BlockRequest)>,
    reply: Option<BlockReply>,
}

impl Source<Pblk> for One {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        self.request.take()
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, _request: BlockRequest) {
        panic!("an instance that was asked for nothing takes a request");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(self.reply.replace(reply).is_none(), "one request, two replies");
    }

    fn is_finished(&self) -> bool {
        self.reply.is_some()
    }
}

const UNITS: [[u32; 3]; 2] = [[4, 0, 2], [1, 5, 3]];

impl Pair {
    fn mount(flash: Flash, clock: VirtualClock) -> Self {
        let buffers = Buffers::new(flash.payload_format());
        let mut host = Host::new(Check::new(flash), clock, buffers);
        let mut expected = Vec::new();
        for (units, mode) in UNITS.iter().zip([Mode::Improved, Mode::Faithful]) {
            let units = units.map(PuId);
            let (target, _) = Pblk::mount(&mut host.caller(), &units, &options(mode)).expect("it fits");
            expected.push(vec![0; usize::try_from(target.block_count()).expect("few")]);
            host.add(Box::new(target));
        }
        let buffer = host.buffers_mut().take(16);
        Self { host, expected, buffer, version: 0 }
    }

    fn target(&self, which: usize) -> &Pblk {
        self.host.target(TargetId(u32::try_from(which).expect("0 or 1")))
    }

    /// Carries out a request of instance `which`; both instances go on meanwhile.
    fn ask(&mut self, which: usize, op: BlockOp, block: u64, count: u32) {
        let request = BlockRequest { tag: Tag(1), op, block, count, buffer: Some(self.buffer) };
        let target = TargetId(u32::try_from(which).expect("0 or 1"));
        let mut one = One { request: Some((target, request)), reply: None };
        assert_eq!(self.host.run(&mut one, Nanos::MAX), RunEnd::Finished);
        let status = one.reply.expect("it is finished").status;
        assert!(status.is_success(), "instance {which}: {status}");
    }

    fn write(&mut self, which: usize, block: u64, count: u32) {
        self.version += 1;
        for offset in 0..count {
            let stamp = self.host.buffers_mut().data_mut(self.buffer, offset, 1);
            stamp[..8].copy_from_slice(&(block + u64::from(offset)).to_le_bytes());
            stamp[8..].copy_from_slice(&self.version.to_le_bytes());
            self.expected[which]
                [usize::try_from(block).expect("few") + usize::try_from(offset).expect("few")] = self.version;
        }
        self.ask(which, BlockOp::Write { fua: false }, block, count);
    }

    fn read_all(&mut self) {
        for which in 0..2 {
            for block in 0..self.target(which).block_count() {
                self.ask(which, BlockOp::Read, block, 1);
                let stamp = self.host.buffers().data(self.buffer, 0, 1);
                let version = u64::from_le_bytes(stamp[8..16].try_into().expect("eight bytes"));
                let expected = self.expected[which][usize::try_from(block).expect("few")];
                assert_eq!(version, expected, "instance {which}, block {block}");
            }
            self.target(which).check();
        }
        self.host.device().inner().check();
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
            let block = prng.below(pair.target(which).block_count() - u64::from(count));
            pair.write(which, block, count);
        }
        pair.read_all();
        // One is shut down, the other is cut off after a flush.
        pair.ask(round % 2, BlockOp::Shutdown, 0, 0);
        pair.ask(1 - round % 2, BlockOp::Flush, 0, 0);
        let mut flash = pair.host.device().inner().fork().expect("a drive in memory");
        flash.power_cut(pair.host.clock().now(), &mut prng).expect("memory does not fail");
        let (expected, version) = (pair.expected, pair.version);
        pair = Pair { expected, version, ..Pair::mount(flash, pair.host.clock().clone()) };
        pair.read_all();
    }
}
