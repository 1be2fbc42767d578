//! What a mounted instance writes: read again, and mounted again from what is on media.

use super::linux::{Linux, Mounted, config, content};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::RunEnd;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{BufId, Buffers, ChunkId, ChunkState, Source, Status, Tag, TargetId};
use ocssd_targets::linux_pblk::Options;
use ocssd_targets::linux_pblk::format::{ADDR_EMPTY, LineOffset};
use std::collections::BTreeMap;

const NOTHING: [u8; 16] = [0; 16];

/// Every block is what the model says.
fn compare(mounted: &mut Mounted, model: &BTreeMap<u64, u64>, blocks: u64, when: &str) {
    for lba in 0..blocks {
        let expected = model.get(&lba).map_or(NOTHING, |&version| content(lba, version));
        assert_eq!(mounted.read(lba, 1), [expected], "{when}: block {lba}");
    }
}

/// Writes at random; what was written last is in the model.
fn churn(mounted: &mut Mounted, model: &mut BTreeMap<u64, u64>, prng: &mut Prng, writes: u64, span: u64) {
    for _ in 0..writes {
        let (block, version) = (prng.below(span - 8), 1 + prng.below(1 << 40));
        let count = 1 + prng.below(8);
        let versions: Vec<u64> = (0..count).map(|more| version + more).collect();
        let kind = prng.below(20);
        let status = match kind {
            0 => mounted.ask(BlockOp::Discard, block, versions.len().try_into().expect("few")),
            1 => mounted.write(BlockOp::Write { fua: true }, block, &versions),
            2 => mounted.ask(BlockOp::Flush, 0, 0),
            _ => mounted.write(BlockOp::Write { fua: false }, block, &versions),
        };
        assert_eq!(status, Status::SUCCESS);
        for (lba, &version) in (block..).zip(&versions) {
            match kind {
                0 => drop(model.remove(&lba)),
                2 => {}
                _ => drop(model.insert(lba, version)),
            }
        }
    }
}

#[test]
fn what_linux_left_is_read_overwritten_and_found_again_after_a_shutdown() {
    for (mw_cunits, oob_bytes) in [(0, 16), (8, 16), (0, 0), (8, 0), (4, 64)] {
        let geometry = |geometry: &mut ocssd_lightnvm::Geometry| {
            geometry.mw_cunits = mw_cunits;
            geometry.oob_bytes = oob_bytes;
        };
        let what = format!("mw_cunits {mw_cunits}, {oob_bytes} bytes beside a sector");
        let mut linux = Linux::new(config(geometry));
        linux.line(7, &(0..70).collect::<Vec<_>>(), 1);
        linux.line(2, &[5, 6, 50], 2);
        let mut model: BTreeMap<u64, u64> = (0..70).map(|lba| (lba, 1)).collect();
        model.extend([(5, 2), (6, 2), (50, 2)]);
        let (mut mounted, _) = linux.mounted();
        let blocks = mounted.blocks();
        compare(&mut mounted, &model, 200, &what);
        let mut prng = Prng::new(4);
        churn(&mut mounted, &mut model, &mut prng, 300, 400);
        compare(&mut mounted, &model, 400, &what);
        assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS, "{what}");
        let (mut again, report) =
            mounted.leave().mounted_as(&Options { read_only: true, ..Options::default() });
        assert_eq!((report.by_sectors, report.miscounted), (0, 0), "{what}: every line has its list");
        assert_eq!(again.blocks(), blocks, "{what}");
        compare(&mut again, &model, blocks, &what);
    }
}

#[test]
fn a_full_device_is_overwritten_again_and_again() {
    for (seed, factory_bad) in [(1, 0), (2, 30_000_000)] {
        let mut config = config(|_| ());
        config.faults.factory_bad = factory_bad;
        let linux = Linux::new(config);
        let (mut mounted, report) = linux.mounted_as(&Options { create: true, ..Options::default() });
        assert!(report.is_fresh);
        let (mut model, mut prng) = (BTreeMap::new(), Prng::new(seed));
        let blocks = mounted.blocks();
        for lba in 0..blocks {
            assert_eq!(
                mounted.write(BlockOp::Write { fua: false }, lba, &[1]),
                Status::SUCCESS,
                "block {lba}"
            );
            model.insert(lba, 1);
        }
        churn(&mut mounted, &mut model, &mut prng, 4000, blocks);
        let (collected, moved) = (mounted.count("lines_collected"), mounted.count("life_gc_sectors"));
        assert!(
            collected > 20 && moved > 100,
            "seed {seed}: {collected} lines were collected, {moved} moved"
        );
        compare(&mut mounted, &model, blocks, "before");
        assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS);
        let (mut again, report) = mounted.leave().mounted();
        assert_eq!((report.by_sectors, report.sectors_written), (0, 0), "seed {seed}");
        compare(&mut again, &model, blocks, "after");
    }
}

/// Chunks of a line that fail a reset for different reasons: one goes OFFLINE, the others were FREE already. The drive tells
/// one status for all.
#[test]
fn a_chunk_that_goes_offline_is_bad_and_those_that_were_free_beside_it_are_not() {
    for unit in 0..4 {
        let mut linux = Linux::new(config(|_| ()));
        linux.line(0, &[1, 2, 3], 1);
        let offline = [7, 19, 30].map(|line| unit * 40 + line);
        for chunk in offline.map(ChunkId) {
            let offsets = (0..4 * 32).step_by(4).map(LineOffset);
            let own: Vec<LineOffset> =
                offsets.filter(|&offset| linux.ppa(chunk.0 % 40, offset).chunk == chunk).collect();
            own.into_iter()
                .for_each(|offset| linux.write(chunk.0 % 40, offset, &[7; 4 * 4096], &[ADDR_EMPTY; 4]));
            let fault = ScheduledFault { kind: FaultKind::ResetFailure, chunk, sector: None, times: 1 };
            linux.flash.schedule_fault(fault);
        }
        let (mut mounted, _) = linux.mounted();
        let (mut model, mut prng) = (BTreeMap::from([(1, 1), (2, 1), (3, 1)]), Prng::new(5));
        churn(&mut mounted, &mut model, &mut prng, 3000, 400);
        compare(&mut mounted, &model, 400, &format!("unit {unit}"));
        let is_offline = |chunk: &ChunkId| mounted.flash().chunk(*chunk).state == ChunkState::Offline;
        let found: Vec<ChunkId> = (0..160).map(ChunkId).filter(is_offline).collect();
        assert_eq!(found, offline.map(ChunkId), "unit {unit}: every line was used");
        assert_eq!((mounted.count("failed_resets"), mounted.count("failed_units")), (3, 0), "unit {unit}");
    }
}

/// Reads of the first blocks and writes of others at random, as many at all times as there are buffers for each.
struct Both {
    prng: Prng,
    reads: Vec<BufId>,
    writes: Vec<BufId>,
    /// Writes to be made.
    left: u32,
    out: u32,
    /// Writes that were refused, because nothing more can be written.
    refused: u32,
}

/// Above the tags of reads, which are the numbers of their buffers.
const WRITES: u32 = 1 << 16;

impl Source for Both {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        let (op, buffer) = if let Some(buffer) = self.reads.pop() {
            (BlockOp::Read, buffer)
        } else if self.left > 0
            && let Some(buffer) = self.writes.pop()
        {
            (self.left, self.out) = (self.left - 1, self.out + 1);
            (BlockOp::Write { fua: false }, buffer)
        } else {
            return None;
        };
        let tag = Tag(buffer.0 + if op == BlockOp::Read { 0 } else { WRITES });
        // What is read stays where it is.
        let block = self.prng.below(36) + if op == BlockOp::Read { 0 } else { 100 };
        let request = BlockRequest { tag, op, block, count: 1, buffer: Some(buffer) };
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: BlockRequest) {
        panic!("{request:?} is more than a target takes");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        let is_refused = reply.status == Status::WRITE_TO_READ_ONLY && reply.tag.0 >= WRITES;
        assert!(is_refused || reply.status == Status::SUCCESS, "{reply:?}");
        self.refused += u32::from(is_refused);
        if reply.tag.0 < WRITES {
            self.reads.push(BufId(reply.tag.0));
        } else {
            self.writes.push(BufId(reply.tag.0 - WRITES));
            self.out -= 1;
        }
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.out == 0
    }
}

/// Reads without end, and 2 000 writes, on a drive whose resets fail as told: writes that were refused.
fn read_and_write(reset_failure: u32) -> u32 {
    let mut config = config(|_| ());
    config.faults.reset_failure = reset_failure;
    let mut linux = Linux::new(config);
    // Lines that hold one block each: two of them do not fill a unit, and nothing is written before one is free.
    for line in 0..36 {
        linux.line(line, &[u64::from(line)], 1);
    }
    let (mut mounted, _) = linux.mounted();
    let seed = 5;
    let reads = (0..8).map(|_| mounted.take_buffer()).collect();
    let writes = (0..4).map(|_| mounted.take_buffer()).collect();
    let mut both = Both { prng: Prng::new(seed), reads, writes, left: 2000, out: 0, refused: 0 };
    let ended = mounted.run(&mut both, Nanos(10_000_000_000));
    assert_eq!(ended, RunEnd::Finished, "seed {seed}: {} writes are left, {} wait", both.left, both.out);
    both.refused
}

#[test]
fn reads_that_never_end_do_not_hold_up_writes() {
    assert_eq!(read_and_write(0), 0);
}

/// Every line that was emptied is lost, until none is left to write to.
#[test]
fn writes_that_can_never_succeed_are_refused_while_reads_go_on() {
    let refused = read_and_write(1_000_000_000);
    assert!((1000..2000).contains(&refused), "{refused} of 2000 writes");
}

/// A line that Linux could not use, and holds much, waits while free lines are few: each power cut costs one, and those that hold
/// next to nothing give one for a few sectors.
#[test]
fn where_free_lines_are_few_the_cheapest_is_emptied_first() {
    let mut linux = Linux::new(config(|_| ()));
    for line in 0..36 {
        linux.line(line, &[u64::from(line)], 1);
    }
    // Without a list: what should be its end is anything.
    linux.open(36);
    let many: Vec<u64> = (200..).take(linux.room(36)).collect();
    linux.data(36, 0, &many, 1);
    let end = linux.emeta(36, &many).len();
    linux.close(36, &vec![0x70; end]);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors), (36, 1));
    assert_eq!(mounted.write(BlockOp::Write { fua: true }, 300, &[2]), Status::SUCCESS);
    let (erased, moved) = (mounted.count("lines_erased"), mounted.count("life_gc_sectors"));
    assert!(erased > 0 && moved < 20, "{moved} sectors were moved before {erased} lines were free");
    assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS);
    let (mut again, report) = mounted.leave().mounted();
    assert_eq!(report.by_sectors, 0, "the line was emptied in the end");
    assert_eq!((again.read(200, 1), again.read(300, 1)), (vec![content(200, 1)], vec![content(300, 2)]));
}
