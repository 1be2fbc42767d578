//! Transactions over several requests on `ox-block`: whole or absent after a power cut at any time, unseen before their commit.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Requests, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, CounterValue};
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart, TransactionRefusal, Transactions};
use ocssd_lightnvm::{BufId, Buffers, Geometry, PuId, Status, Tag, TargetId};
use ocssd_targets::{Layout, registry};
use std::collections::BTreeMap;

/// Blocks the requests touch.
const BLOCKS: u64 = 24;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 120, 32, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

struct Rig {
    host: Host<Flash, VirtualClock>,
    next: u32,
    /// What is there for sure, and what each commit that was not answered would make of it.
    content: BTreeMap<u64, u64>,
    label: String,
}

impl Rig {
    fn new(flash: Flash, now: Nanos, label: &str) -> Self {
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        let buffers = Buffers::new(flash.payload_format());
        let host = Host::new(flash, clock, buffers);
        let mut rig = Self { host, next: 0, content: BTreeMap::new(), label: label.to_owned() };
        let units: Vec<PuId> = (0..2).map(PuId).collect();
        let options = [("over_provisioning_percent".to_owned(), "70".to_owned())];
        let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options: &options };
        let kind = registry::find("ox-block").expect("a kind");
        let made = kind.make(&mut rig.host.caller(), &spec);
        let target = made.unwrap_or_else(|error| panic!("{}: {error}", rig.label)).target;
        rig.host.add(target);
        rig
    }

    fn transactions(&mut self) -> &mut dyn Transactions {
        self.host.target_mut(TargetId(0)).transactions().expect("ox-block has them")
    }

    fn begin(&mut self) -> BlockTransaction {
        let label = self.label.clone();
        self.transactions().begin().unwrap_or_else(|refusal| panic!("{label}: {refusal}"))
    }

    fn request(&mut self, op: BlockOp, block: u64, count: u32, buffer: Option<BufId>) -> BlockRequest {
        self.next += 1;
        BlockRequest { tag: Tag(self.next), op, block, count, buffer }
    }

    fn write_of(&mut self, block: u64, content: u64) -> BlockRequest {
        self.write_run(block, 1, content)
    }

    fn write_run(&mut self, block: u64, count: u32, content: u64) -> BlockRequest {
        let buffer = self.host.buffers_mut().take(count);
        for sector in 0..count {
            let data = self.host.buffers_mut().data_mut(buffer, sector, 1);
            data[..8].copy_from_slice(&content.to_le_bytes());
        }
        self.request(BlockOp::Write { fua: false }, block, count, Some(buffer))
    }

    fn ask(&mut self, request: BlockRequest) -> BlockReply {
        let reply = self.host.ask(request);
        if let Some(buffer) = request.buffer {
            self.host.buffers_mut().give_back(buffer);
        }
        self.host.target(TargetId(0)).check();
        reply
    }

    fn write_within(&mut self, transaction: BlockTransaction, block: u64, content: u64) -> Status {
        let request = self.write_of(block, content);
        let part = TransactionPart::Write;
        self.transactions().join(transaction, request.tag, part).expect("it is open");
        self.ask(request).status
    }

    fn end(&mut self, transaction: BlockTransaction, part: TransactionPart) -> Status {
        let request = self.request(BlockOp::Flush, 0, 0, None);
        self.transactions().join(transaction, request.tag, part).expect("it is open");
        self.ask(request).status
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.host.target(TargetId(0)).counters();
        match counters.into_iter().find(|counter| counter.name == name).map(|counter| counter.value) {
            Some(CounterValue::Count(count)) => count,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// How many the target gave up.
    fn given_way(&self) -> usize {
        usize::try_from(self.counter("transactions_given_way")).expect("few")
    }

    fn read(&mut self, block: u64) -> u64 {
        let buffer = self.host.buffers_mut().take(1);
        let request = self.request(BlockOp::Read, block, 1, Some(buffer));
        let status = self.host.ask(request).status;
        assert!(status.is_success(), "{}: block {block}: {status}", self.label);
        let bytes = self.host.buffers_mut().data(buffer, 0, 1)[..8].try_into().expect("eight bytes");
        self.host.buffers_mut().give_back(buffer);
        u64::from_le_bytes(bytes)
    }

    fn all(&mut self) -> Vec<u64> {
        (0..BLOCKS).map(|block| self.read(block)).collect()
    }

    fn expected(&self) -> Vec<u64> {
        (0..BLOCKS).map(|block| self.content.get(&block).copied().unwrap_or(0)).collect()
    }

    /// The same drive after a power cut, mounted again.
    fn cut(&self, seed: u64, label: &str) -> Self {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.host.clock().now();
        flash.power_cut(now, &mut Prng::new(seed)).expect("memory does not fail");
        let mut cut = Self::new(flash, now, label);
        cut.content.clone_from(&self.content);
        cut
    }
}

fn rig(label: &str) -> Rig {
    rig_on(config(), label)
}

fn rig_on(config: Config, label: &str) -> Rig {
    Rig::new(Flash::format(config).unwrap_or_else(|problems| panic!("{problems}")), Nanos(0), label)
}

#[test]
fn nobody_sees_a_transaction_before_its_commit_is_answered() {
    let mut rig = rig("isolation");
    let (first, second) = (rig.begin(), rig.begin());
    assert!(rig.write_within(first, 3, 30).is_success() && rig.write_within(second, 3, 31).is_success());
    assert!(rig.write_within(first, 9, 90).is_success() && rig.write_within(first, 3, 33).is_success());
    assert_eq!((rig.read(3), rig.read(9)), (0, 0), "they are open");
    assert!(rig.end(second, TransactionPart::Commit).is_success());
    assert_eq!((rig.read(3), rig.read(9)), (31, 0));
    assert!(rig.end(first, TransactionPart::Commit).is_success());
    assert_eq!((rig.read(3), rig.read(9)), (33, 90), "the later write of a block, the later commit");
    let given_up = rig.begin();
    assert!(rig.write_within(given_up, 9, 99).is_success());
    assert!(rig.end(given_up, TransactionPart::Abort).is_success());
    assert_eq!(rig.read(9), 90);
    let plain = rig.write_of(5, 50);
    assert!(rig.ask(plain).status.is_success());
    let empty = rig.begin();
    assert!(rig.end(empty, TransactionPart::Commit).is_success());
    assert_eq!(rig.read(5), 50);
}

#[test]
fn what_cannot_be_is_refused_by_name_and_changes_nothing() {
    let mut rig = rig("refusals");
    let transaction = rig.begin();
    let limits = rig.transactions().limits();
    for nth in 0..u64::from(limits.blocks) {
        assert!(rig.write_within(transaction, nth % BLOCKS, nth).is_success(), "block {nth}");
    }
    assert_eq!(rig.write_within(transaction, 0, 1), Status::CAPACITY_EXCEEDED, "over the bound");
    let request = rig.request(BlockOp::Flush, 0, 0, None);
    rig.transactions().join(transaction, request.tag, TransactionPart::Commit).expect("it is open");
    let again = rig.transactions().join(transaction, request.tag, TransactionPart::Abort);
    assert_eq!(again, Err(TransactionRefusal::TagInUse));
    assert!(rig.ask(request).status.is_success());
    let over = rig.transactions().join(transaction, Tag(999), TransactionPart::Abort);
    assert_eq!(over, Err(TransactionRefusal::NotOpen));
    let mut open = Vec::new();
    let refusal = loop {
        match rig.transactions().begin() {
            Ok(transaction) => open.push(transaction),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, TransactionRefusal::TooMany);
    assert!(
        !open.is_empty() && u32::try_from(open.len()).is_ok_and(|open| open <= limits.at_once),
        "{} open",
        open.len()
    );
    let flush = rig.write_of(1, 7);
    rig.transactions().join(open[0], flush.tag, TransactionPart::Commit).expect("it is open");
    assert_eq!(rig.ask(flush).status, Status::INVALID_FIELD, "a write commits nothing");
    let shutdown = rig.request(BlockOp::Shutdown, 0, 0, None);
    assert!(rig.ask(shutdown).status.is_success(), "open ones are given up");
    assert_eq!(
        [refusal, TransactionRefusal::NotOpen, TransactionRefusal::TagInUse]
            .map(|r| r.to_string().len() > 30),
        [true; 3]
    );
}

/// Random transactions and plain writes; after each step the power may go, and what was answered is there.
#[test]
fn a_power_cut_leaves_whole_transactions() {
    let (mut cuts, mut commits) = (0, 0);
    for seed in 0..25 {
        let label = format!("seed {seed}");
        let (mut prng, mut rig) = (Prng::new(seed), rig(&label));
        let mut open: BTreeMap<BlockTransaction, BTreeMap<u64, u64>> = BTreeMap::new();
        for step in 1..120_u64 {
            let block = prng.below(BLOCKS);
            let count = u64::try_from(open.len()).expect("few").max(1);
            let nth = usize::try_from(prng.below(count)).expect("few");
            let chosen = open.keys().nth(nth).copied();
            match (prng.below(10), chosen) {
                (0..2, _) if open.len() < 3 => drop(open.insert(rig.begin(), BTreeMap::new())),
                (2..6, Some(transaction)) => {
                    let status = rig.write_within(transaction, block, step);
                    assert!(status.is_success(), "{label}: {status}");
                    open.get_mut(&transaction).expect("it is open").insert(block, step);
                }
                (6, Some(transaction)) => {
                    assert!(rig.end(transaction, TransactionPart::Commit).is_success(), "{label}");
                    rig.content.extend(open.remove(&transaction).expect("it is open"));
                    commits += 1;
                }
                (7, Some(transaction)) => {
                    assert!(rig.end(transaction, TransactionPart::Abort).is_success(), "{label}");
                    open.remove(&transaction);
                }
                _ => {
                    let plain = rig.write_of(block, step);
                    assert!(rig.ask(plain).status.is_success(), "{label}");
                    rig.content.insert(block, step);
                }
            }
            if prng.below(12) == 0 {
                rig = rig.cut(step, &label);
                open.clear();
                cuts += 1;
                assert_eq!(rig.all(), rig.expected(), "{label}, step {step}");
            }
        }
        assert_eq!(rig.all(), rig.expected(), "{label}");
    }
    assert!(cuts > 100 && commits > 100, "{cuts} cuts, {commits} commits");
}

/// The power goes at every point of a commit: all of it is there, or nothing.
#[test]
fn a_commit_that_is_cut_is_whole_or_absent() {
    let (mut whole, mut absent) = (0, 0);
    for nanos in (0..6_000_000).step_by(150_000) {
        let label = format!("{nanos} ns");
        let mut rig = rig(&label);
        let transaction = rig.begin();
        for block in 0..12 {
            assert!(rig.write_within(transaction, block, 100 + block).is_success());
        }
        let request = rig.request(BlockOp::Flush, 0, 0, None);
        rig.transactions().join(transaction, request.tag, TransactionPart::Commit).expect("it is open");
        let mut requests = Requests::default();
        requests.push(request);
        let stop = rig.host.clock().now() + Nanos(nanos);
        rig.host.run(&mut requests, stop);
        let is_answered = !requests.take_replies().is_empty();
        let found = rig.cut(nanos, &label).all();
        let committed: Vec<u64> = (0..BLOCKS).map(|block| if block < 12 { 100 + block } else { 0 }).collect();
        match found {
            _ if found == committed => whole += 1,
            _ if found.iter().all(|&content| content == 0) && !is_answered => absent += 1,
            _ => panic!("{label}: torn, or answered and gone ({is_answered}): {found:?}"),
        }
    }
    assert!(whole > 3 && absent > 3, "{whole} whole, {absent} absent");
}

/// Blocks of open transactions are written between others that die soon after, a chunk with one of them each time: were these kept
/// where they are, there would be no room for others though there are chunks enough (seed 1573 of the simulator).
#[test]
fn blocks_of_open_transactions_keep_no_chunk_to_themselves() {
    let mut rig = rig("scattered");
    let open: Vec<BlockTransaction> = (0..4).map(|_| rig.begin()).collect();
    let mut expected = BTreeMap::new();
    for round in 0..60 {
        for (nth, &transaction) in (0..).zip(&open) {
            let (block, content) = (100 + 100 * nth + round, 1000 * (nth + 1) + round);
            assert!(rig.write_within(transaction, block, content).is_success(), "round {round}");
            expected.insert(block, if nth < 2 { content } else { 0 });
            for half in 0..2 {
                let plain = rig.write_run(32 * half, 32, round + 1);
                let status = rig.ask(plain).status;
                assert!(status.is_success(), "a plain write in round {round}: {status}");
            }
        }
        // A block that is written again is not needed where it was.
        assert!(rig.write_within(open[3], 400, round).is_success(), "round {round}");
    }
    assert_eq!(rig.given_way(), 0, "there are chunks enough");
    let moved = rig.counter("gc_written_sectors");
    assert!(moved > 20, "{moved} sectors were moved");
    assert!(expected.keys().all(|&block| rig.read(block) == 0), "they are open");
    for &transaction in &open[..2] {
        assert!(rig.end(transaction, TransactionPart::Commit).is_success());
    }
    assert!(rig.end(open[2], TransactionPart::Abort).is_success());
    let found =
        |rig: &mut Rig| expected.keys().map(|&block| (block, rig.read(block))).collect::<BTreeMap<_, _>>();
    assert_eq!(found(&mut rig), expected, "two are committed, one is given up, one is open");
    for round in 0..200 {
        let plain = rig.write_run(32 * (round % 2), 32, round);
        assert!(rig.ask(plain).status.is_success(), "a plain write in round {round} after the commits");
    }
    assert_eq!(found(&mut rig), expected, "also when they were moved again");
    assert_eq!(found(&mut rig.cut(7, "scattered, cut")), expected, "also after a power cut");
}

/// As many transactions are open as there is room for, and every reset takes its chunk away: the youngest give way, and plain
/// writes go on. What had room to the end is committed.
#[test]
fn the_youngest_gives_way_when_chunks_go_bad() {
    let mut config = config();
    config.faults.reset_failure = 1_000_000_000;
    let mut rig = rig_on(config, "chunks go bad");
    let mut open = Vec::new();
    while let Ok(transaction) = rig.transactions().begin() {
        let block = u64::try_from(open.len()).expect("few");
        assert!(rig.write_within(transaction, block, 100 + block).is_success());
        open.push(transaction);
    }
    let mut given_way = 0;
    for step in 0..100_000 {
        if given_way > 1 {
            break;
        }
        let plain = rig.write_of(BLOCKS - 1 - step % 4, step);
        let status = rig.ask(plain).status;
        assert!(status.is_success(), "a plain write at step {step}, {given_way} gave way: {status}");
        given_way = rig.given_way();
    }
    let left = open.len() - given_way;
    assert!(given_way > 1 && left > 0, "{given_way} of {} gave way", open.len());
    let (youngest, next) = (open[open.len() - 1], open[left]);
    assert_eq!(rig.write_within(youngest, 20, 1), Status::COMMAND_INTERRUPTED);
    assert_eq!(rig.end(youngest, TransactionPart::Commit), Status::COMMAND_INTERRUPTED);
    let over = rig.transactions().join(youngest, Tag(u32::MAX), TransactionPart::Commit);
    assert_eq!(over, Err(TransactionRefusal::NotOpen), "its end was answered");
    assert_eq!(rig.end(next, TransactionPart::Abort), Status::SUCCESS);
    assert_eq!(rig.transactions().begin(), Err(TransactionRefusal::TooMany), "there is room for no other");
    for &transaction in &open[..left] {
        assert!(rig.end(transaction, TransactionPart::Commit).is_success(), "there was room for it");
    }
    let committed = |block: usize| if block < left { 100 + u64::try_from(block).expect("few") } else { 0 };
    let expected: Vec<u64> = (0..open.len()).map(committed).collect();
    assert_eq!(rig.all()[..open.len()], expected, "only what was committed");
    assert_eq!(rig.cut(1, "after").all()[..open.len()], expected, "also after a power cut");
}
