//! What block targets count is what was asked of them and what the drive did: requests by their blocks, programs, reads and resets
//! of the drive by their causes. Deliberately not here: how fast anything is, and counters of waits.

use ocssd_base::{Prng, usize_of};
use ocssd_engine::{Host, VirtualClock};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, CounterValue};
use ocssd_lightnvm::{BufId, Buffers, ChunkId, Geometry, PuId, Status, Tag, TargetId};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::collections::BTreeMap;

/// The only target.
const TARGET: TargetId = TargetId(0);
/// Units of the drive.
const UNITS: u32 = 2;
/// Sectors of a write unit.
const UNIT: u32 = 4;
/// Requests of a run, of which each leaves half of the blocks alone.
const REQUESTS: u64 = 6_000;
/// Blocks of a request at most.
const BLOCKS_MAX: u64 = 12;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, UNITS, 120, 32, UNIT) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.queue_depth = 4_096;
    config.geometry = geometry;
    config
}

/// What the drive did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OfDrive {
    read: i64,
    written: i64,
    resets: i64,
}

/// What was asked, and what of it was there.
#[derive(Debug, Default)]
struct Asked {
    read: i64,
    /// Of these, blocks that nobody wrote, or that were discarded.
    empty: i64,
    written: i64,
    discarded: i64,
    flushes: i64,
    /// Requests that wrote or discarded.
    changes: i64,
}

struct Run {
    host: Host<Flash, VirtualClock>,
    tag: u32,
    /// By block: it holds something.
    is_written: Vec<bool>,
    asked: Asked,
    /// What the drive had done, and the target counted, when it was mounted.
    before: (OfDrive, BTreeMap<&'static str, i64>),
}

impl Run {
    fn new(kind: &str, options: &[(&str, &str)]) -> Self {
        let flash = Flash::format(config()).expect("a sound drive");
        let buffers = Buffers::new(flash.payload_format());
        let mut host = Host::new(flash, VirtualClock::default(), buffers);
        let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
        let options: Vec<_> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
        let made = registry::find(kind).expect("a kind").make(&mut host.caller(), &spec);
        let target = made.unwrap_or_else(|error| panic!("{kind}: {error}")).target;
        let blocks = usize::try_from(target.block_count()).expect("a small drive");
        host.add(target);
        host.settle();
        let nothing = OfDrive { read: 0, written: 0, resets: 0 };
        let mut run = Self {
            host,
            tag: 0,
            is_written: vec![false; blocks],
            asked: Asked::default(),
            before: (nothing, BTreeMap::new()),
        };
        run.before = (run.of_drive(), run.counters());
        run
    }

    fn of_drive(&self) -> OfDrive {
        let counters = self.host.device().counters();
        let signed = |count: u64| i64::try_from(count).expect("small");
        OfDrive {
            read: signed(counters.sectors_read),
            written: signed(counters.sectors_written),
            resets: signed(counters.resets),
        }
    }

    fn counters(&self) -> BTreeMap<&'static str, i64> {
        let counted = self.host.target(TARGET).counters().into_iter();
        let counts = counted.filter_map(|counter| match counter.value {
            CounterValue::Count(count) => Some((counter.name, i64::try_from(count).expect("small"))),
            _ => None,
        });
        counts.collect()
    }

    fn ask(&mut self, op: BlockOp, block: u64, count: u32, buffer: Option<BufId>) -> BlockReply {
        self.tag += 1;
        let reply = self.host.ask(BlockRequest { tag: Tag(self.tag), op, block, count, buffer });
        assert!(reply.status.is_success(), "{op:?} of {count} from {block}: {reply:?}");
        buffer.into_iter().for_each(|buffer| self.host.buffers_mut().give_back(buffer));
        reply
    }

    /// Requests of all kinds, mostly to the first quarter of the blocks.
    fn requests(&mut self, seed: u64) {
        let mut prng = Prng::new(seed);
        let blocks = u64::try_from(self.is_written.len()).expect("small");
        for _ in 0..REQUESTS {
            let count = 1 + prng.below(BLOCKS_MAX);
            let within = if prng.below(4) == 0 { blocks } else { blocks / 4 };
            let block = prng.below(within - count);
            let short = u32::try_from(count).expect("short");
            let range = usize_of(u32::try_from(block).expect("small"))..;
            let of_blocks = &mut self.is_written[range][..usize_of(short)];
            let signed = i64::from(short);
            match prng.below(10) {
                0..=2 => {
                    let empty = of_blocks.iter().filter(|&&is_written| !is_written).count();
                    self.asked.read += signed;
                    self.asked.empty += i64::try_from(empty).expect("small");
                    let buffer = self.host.buffers_mut().take(short);
                    self.ask(BlockOp::Read, block, short, Some(buffer));
                }
                3..=7 => {
                    of_blocks.fill(true);
                    self.asked.written += signed;
                    self.asked.changes += 1;
                    let buffer = self.host.buffers_mut().take(short);
                    self.ask(BlockOp::Write { fua: false }, block, short, Some(buffer));
                }
                8 => {
                    of_blocks.fill(false);
                    self.asked.discarded += signed;
                    self.asked.changes += 1;
                    self.ask(BlockOp::Discard, block, short, None);
                }
                _ => {
                    self.asked.flushes += 1;
                    self.ask(BlockOp::Flush, 0, 0, None);
                }
            }
        }
        self.asked.flushes += 1;
        self.ask(BlockOp::Flush, 0, 0, None);
        self.host.settle();
        self.host.target(TARGET).check();
    }

    /// What was counted under this name.
    fn of(&self, name: &str) -> i64 {
        let counters = self.counters();
        let (now, before) = (counters.get(name), self.before.1.get(name));
        *now.unwrap_or_else(|| panic!("nothing is counted as {name}"))
            - before.expect("it was counted before")
    }

    fn sum(&self, names: &[&str]) -> i64 {
        names.iter().map(|name| self.of(name)).sum()
    }

    /// What the drive did since the mount.
    fn drive(&self) -> OfDrive {
        let (now, before) = (self.of_drive(), self.before.0);
        OfDrive {
            read: now.read - before.read,
            written: now.written - before.written,
            resets: now.resets - before.resets,
        }
    }

    /// What users are told of their own requests.
    fn assert_users(&self, label: &str) {
        println!("{label}: {:?}, {:?}\n{:?}", self.asked, self.drive(), self.counters());
        let Asked { read, written, .. } = self.asked;
        // Linux's pblk writes zeroes where a block was discarded, and counts them.
        let zeroed =
            if self.counters().contains_key("zeroed_sectors") { self.of("zeroed_sectors") } else { 0 };
        let counted = (self.of("user_read_sectors"), self.of("user_written_sectors"));
        assert_eq!(counted, (read, written + zeroed), "{label}");
    }
}

impl Run {
    /// Sectors of every chunk are lost; then each block is read alone, and of those that fail as many are counted under `failed`,
    /// and each was asked for again, which is counted under `again`.
    fn assert_lost(&mut self, (failed, again): (&str, &str), label: &str) {
        let chunks = self.host.device().config().geometry.chunks_per_pu * UNITS;
        for (chunk, sector) in (0..chunks).flat_map(|chunk| [3, 9, 18].map(|sector| (chunk, sector))) {
            let (kind, chunk) = (FaultKind::UnrecoveredRead, ChunkId(chunk));
            let fault = ScheduledFault { kind, chunk, sector: Some(sector), times: u32::MAX };
            self.host.device_mut().schedule_fault(fault);
        }
        let (mut lost, before) = (0, (self.of(failed), self.of(again)));
        let buffer = self.host.buffers_mut().take(1);
        let blocks = u64::try_from(self.is_written.len()).expect("small");
        for block in 0..blocks {
            self.tag += 1;
            let (op, tag) = (BlockOp::Read, Tag(self.tag));
            let reply = self.host.ask(BlockRequest { tag, op, block, count: 1, buffer: Some(buffer) });
            assert!(
                reply.status.is_success() || reply.status == Status::UNRECOVERED_READ,
                "{label}: {reply:?}"
            );
            lost += i64::from(!reply.status.is_success());
        }
        println!("{label}: {lost} of {blocks} blocks are lost");
        assert!(lost > 20, "{label}: {lost} of {blocks} blocks are lost");
        assert_eq!(self.of(failed) - before.0, lost, "{label}: {failed}");
        assert_eq!(
            (self.of(again) - before.1) % lost,
            0,
            "{label}: each is asked for again as often as any other"
        );
        assert!(self.of(again) > before.1, "{label}: nothing was asked for again");
    }
}

#[test]
fn pblk_counts_what_was_asked_and_what_the_drive_did() {
    for (seed, options) in (0..).zip([&[][..], &[("mode", "faithful")], &[("classification", "sepbit")]]) {
        let mut run = Run::new("pblk", options);
        run.requests(seed);
        let label = format!("seed {seed}, {options:?}");
        run.assert_users(&label);
        let Asked { empty, discarded, flushes, .. } = run.asked;
        assert_eq!(run.of("read_empty_sectors"), empty, "{label}");
        assert_eq!((run.of("user_discarded_sectors"), run.of("flushes")), (discarded, flushes), "{label}");
        let drive = run.drive();
        let not_read = run.sum(&["read_cached_sectors", "read_empty_sectors"]);
        let read = run.sum(&["user_read_sectors", "gc_read_sectors"]) - not_read;
        assert_eq!(read, drive.read, "{label}: reads");
        assert_eq!(run.of("lines_erased") * i64::from(UNITS), drive.resets, "{label}: resets");
        assert!(run.of("gc_written_sectors") > 0, "{label}: nothing was collected");
        let units = run.of("units_written") * i64::from(UNIT);
        assert_eq!(units + run.of("meta_written_sectors"), drive.written, "{label}: programs");
        run.assert_lost(("read_failed", "read_again"), &label);
        let copied = run.sum(&["gc_written_sectors", "gc_dead_sectors"]);
        // Of copies that wait some die with the line that they are to be written to.
        let (collected, not_copied) = (run.of("gc_read_sectors"), run.of("gc_read_sectors") - copied);
        assert!(
            (0..=collected / 100).contains(&not_copied),
            "{label}: {not_copied} of {collected} were lost count of"
        );
    }
}

#[test]
fn linux_pblk_counts_what_was_asked_and_what_the_drive_did() {
    for seed in 0..2 {
        let mut run = Run::new("linux-pblk", &[("create", "yes")]);
        run.requests(seed);
        let label = format!("seed {seed}");
        run.assert_users(&label);
        let Asked { empty, discarded, flushes, .. } = run.asked;
        assert_eq!(run.of("flushes"), flushes, "{label}");
        assert!((1..=discarded).contains(&run.of("zeroed_sectors")), "{label}: of {discarded} discarded");
        assert!((1..=empty).contains(&run.of("empty_read_sectors")), "{label}: of {empty} that hold nothing");
        let drive = run.drive();
        assert_eq!(run.of("units_written") * i64::from(UNIT), drive.written, "{label}: programs");
        assert_eq!(run.of("lines_erased") * i64::from(UNITS), drive.resets, "{label}: resets");
        run.assert_lost(("failed_read_sectors", "read_again"), &label);
    }
}

#[test]
fn ox_block_counts_what_was_asked_and_what_the_drive_did() {
    let in_part: &[(&str, &str)] = &[("map_cache_bytes", "4096"), ("map_page_bytes", "512")];
    for (seed, options) in (0..).zip([&[][..], in_part]) {
        let mut run = Run::new("ox-block", options);
        run.requests(seed);
        let label = format!("seed {seed}, {options:?}");
        run.assert_users(&label);
        let Asked { empty, written, discarded, changes, .. } = run.asked;
        assert_eq!(run.of("read_empty_sectors"), empty, "{label}");
        assert_eq!(
            (run.of("user_discarded_sectors"), run.of("transactions")),
            (discarded, changes),
            "{label}"
        );
        assert_eq!(run.of("data_written_sectors"), written, "{label}");
        let drive = run.drive();
        let not_read = run.sum(&["read_cached_sectors", "read_empty_sectors"]);
        let read = run.sum(&["user_read_sectors", "gc_read_sectors", "map_read_sectors"]) - not_read;
        assert_eq!(read, drive.read, "{label}: reads");
        assert_eq!(
            (run.of("resets"), run.of("programmed_sectors")),
            (drive.resets, drive.written),
            "{label}"
        );
        if options.is_empty() {
            run.assert_lost(("read_failed_sectors", "read_again_sectors"), &label);
        }
    }
}
