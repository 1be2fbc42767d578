//! YCSB's core workloads A to F for key-value targets: a load phase, then operations in given proportions.
//!
//! Words and values are YCSB's: `recordcount`, `operationcount`, `readproportion`, `requestdistribution` and so on. A record is one
//! value of `fieldcount * fieldlength` bytes. An update stores a whole value; a scan lists keys from one on and retrieves
//! those listed; a read-modify-write stores after its retrieve was answered. What is added: `deleteproportion`,
//! `batchproportion` with `batchsize`, and `flush` (operations between flushes).

use super::payload;
use super::words::Words;
use super::zipfian::{Chooser, RequestDistribution, YCSB_THETA, fnv};
use super::{Answered, Generator, Outcome};
use ocssd_base::{Prng, Problems};
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvAnswer, KvOp, KvRefusal, KvReply, KvRequest, StoreCondition,
    decode_keys,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{Buffers, Tag};
use std::collections::VecDeque;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Reads a record.
    Read,
    /// Replaces a record.
    Update,
    /// Adds a record.
    Insert,
    /// Lists keys, and reads their records.
    Scan,
    /// Reads a record, then replaces it.
    ReadModifyWrite,
    /// Deletes a record.
    Delete,
    /// Replaces several at once.
    Batch,
}

/// All operations, in the order of [`YcsbOptions::proportions`].
const OPERATIONS: [Operation; 7] = [
    Operation::Read,
    Operation::Update,
    Operation::Insert,
    Operation::Scan,
    Operation::ReadModifyWrite,
    Operation::Delete,
    Operation::Batch,
];

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbOptions {
    /// Records that are loaded first.
    pub record_count: u64,
    /// Operations after that.
    pub operation_count: u64,
    /// How often each of read, update, insert, scan, read-modify-write, delete and batch comes; their sum is 1.
    pub proportions: [f64; 7],
    /// Which records are asked for.
    pub distribution: RequestDistribution,
    /// Zipfian constant.
    pub theta: f64,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Most keys of a scan; lengths are uniform.
    pub scan_length_max: u32,
    /// Entries of a batch.
    pub batch_size: u32,
    /// Operations between flushes; 0 is never.
    pub flush_interval: u64,
    /// When stores survive.
    pub durability: Durability,
}

impl YcsbOptions {
    /// Reads `workload=a` to `f`, and what differs from it.
    ///
    /// # Errors
    /// Every option that cannot be used, in a sentence.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        use RequestDistribution::{Latest, Sequential, Uniform, Zipfian};
        let mut words = Words::new(text);
        // Read, update, insert, scan, read-modify-write: SoCC 2010, table 2, and workloads/workload[a-f].
        let (core, distribution) = words.choice(
            "workload",
            ([0.5, 0.5, 0.0, 0.0, 0.0], Zipfian),
            &[
                ("a", ([0.5, 0.5, 0.0, 0.0, 0.0], Zipfian)),
                ("b", ([0.95, 0.05, 0.0, 0.0, 0.0], Zipfian)),
                ("c", ([1.0, 0.0, 0.0, 0.0, 0.0], Zipfian)),
                ("d", ([0.95, 0.0, 0.05, 0.0, 0.0], Latest)),
                ("e", ([0.0, 0.0, 0.05, 0.95, 0.0], Zipfian)),
                ("f", ([0.5, 0.0, 0.0, 0.0, 0.5], Zipfian)),
            ],
        );
        let distributions =
            [("uniform", Uniform), ("zipfian", Zipfian), ("latest", Latest), ("sequential", Sequential)];
        let fields = words.number32("fieldcount", 10, 1..=1_024);
        let options = Self {
            record_count: words.number("recordcount", 1_000, 1..=1 << 40),
            operation_count: words.number("operationcount", 1_000, 0..=1 << 50),
            proportions: [
                words.decimal("readproportion", core[0], 0.0..=1.0),
                words.decimal("updateproportion", core[1], 0.0..=1.0),
                words.decimal("insertproportion", core[2], 0.0..=1.0),
                words.decimal("scanproportion", core[3], 0.0..=1.0),
                words.decimal("readmodifywriteproportion", core[4], 0.0..=1.0),
                words.decimal("deleteproportion", 0.0, 0.0..=1.0),
                words.decimal("batchproportion", 0.0, 0.0..=1.0),
            ],
            distribution: words.choice("requestdistribution", distribution, &distributions),
            theta: words.decimal("zipfianconstant", YCSB_THETA, 0.01..=0.999),
            value_bytes: fields * words.number32("fieldlength", 100, 0..=1 << 20),
            scan_length_max: words.number32("maxscanlength", 100, 1..=100_000),
            batch_size: words.number32("batchsize", 16, 1..=4_096),
            flush_interval: words.number("flush", 0, 0..=u64::MAX),
            durability: words.choice(
                "durable",
                Durability::AtFlush,
                &[("reply", Durability::AtReply), ("flush", Durability::AtFlush)],
            ),
        };
        let sum: f64 = options.proportions.iter().sum();
        let expected = "the proportions of all operations must be 1 together: set the others too";
        words.require((sum - 1.0).abs() < 1e-9, "sum of proportions", sum, expected);
        words.finish().map(|()| options)
    }
}

/// The key of a record: YCSB's hash of its number, and the number itself, so that no two are the same; both with the highest
/// byte first, so that listings go by the hash.
#[must_use]
pub fn key_of(record: u64) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&fnv(record).to_be_bytes());
    key[8..].copy_from_slice(&record.to_be_bytes());
    Key::inline(&key).expect("sixteen bytes")
}

/// What comes next, and does not depend on the draw.
#[derive(Clone, Copy, Debug)]
enum Due {
    Retrieve(Key),
    Update(u64),
}

/// The generator.
#[derive(Clone, Debug)]
pub struct Ycsb {
    options: YcsbOptions,
    prng: Prng,
    chooser: Chooser,
    /// Records that were ever inserted.
    records: u64,
    /// Those the loading phase has done.
    loaded: u64,
    /// Those that were there before: no operations of this run.
    taken_over: u64,
    operations: u64,
    versions: u64,
    due: VecDeque<Due>,
    /// Reads of read-modify-writes, and the record each is of.
    modified: Vec<(Tag, u64)>,
    outstanding: u64,
}

impl Ycsb {
    /// The workload of these options, with randomness of `prng`.
    #[must_use]
    pub fn new(options: YcsbOptions, prng: &Prng) -> Self {
        let chooser = Chooser::new(options.distribution, options.theta);
        Self {
            options,
            prng: prng.split("ycsb"),
            chooser,
            records: 0,
            loaded: 0,
            taken_over: 0,
            operations: 0,
            versions: 0,
            due: VecDeque::new(),
            modified: Vec::new(),
            outstanding: 0,
        }
    }

    /// The same on records that another run has loaded, as many as the options say: there is no loading phase, and they do not
    /// count as operations.
    #[must_use]
    pub fn on_records(options: YcsbOptions, prng: &Prng) -> Self {
        let records = options.record_count;
        Self { records, loaded: records, taken_over: records, ..Self::new(options, prng) }
    }

    /// The power went: nothing is outstanding, and what followed from replies does not come any more.
    pub fn power_cut(&mut self) {
        self.due.clear();
        self.modified.clear();
        self.outstanding = 0;
    }

    fn draw_operation(&mut self) -> Operation {
        let mut draw = self.prng.unit_f64();
        for (operation, proportion) in OPERATIONS.into_iter().zip(self.options.proportions) {
            if draw < proportion {
                return operation;
            }
            draw -= proportion;
        }
        // The rest is a rounding error: the last one that comes at all.
        let comes =
            OPERATIONS.into_iter().zip(self.options.proportions).rev().find(|(_, share)| *share > 0.0);
        comes.expect("the proportions are 1 together").0
    }

    /// A whole buffer of a value.
    fn room(&self, bytes: u32, buffers: &mut Buffers) -> Piece {
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let most = self.options.value_bytes.max(4 + self.options.scan_length_max.saturating_mul(20));
        let buffer = buffers.take_whole(most.max(bytes).div_ceil(sector).max(1));
        Piece { buffer, first_byte: 0, bytes }
    }

    fn store(&mut self, record: u64, buffers: &mut Buffers) -> KvOp {
        let piece = self.room(self.options.value_bytes, buffers);
        self.versions += 1;
        payload::fill(buffers, piece, record, self.versions);
        let (condition, durability) = (StoreCondition::Always, self.options.durability);
        KvOp::Store { key: key_of(record), content: Content::Piece(piece), condition, durability }
    }

    fn retrieve(&self, key: Key, buffers: &mut Buffers) -> KvOp {
        let into = Content::Piece(self.room(self.options.value_bytes, buffers));
        KvOp::Retrieve { key, offset: 0, into }
    }

    fn batch(&mut self, buffers: &mut Buffers) -> KvOp {
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let count = self.options.batch_size;
        let entry_bytes = u32::try_from(BatchEntry::BYTES).expect("short");
        let bytes = count * entry_bytes + self.options.value_bytes;
        let buffer = buffers.take_whole(bytes.div_ceil(sector));
        // All entries store the same version, behind the list.
        let piece = Piece { buffer, first_byte: count * entry_bytes, bytes: self.options.value_bytes };
        self.versions += 1;
        payload::fill(buffers, piece, u64::MAX, self.versions);
        let change = BatchChange::Store { value: Some(piece), condition: StoreCondition::Always };
        let entries: Vec<BatchEntry> = (0..count)
            .map(|_| BatchEntry { key: key_of(self.chooser.choose(self.records, &mut self.prng)), change })
            .collect();
        KvOp::Batch { entries: List::write(buffers, buffer, &entries), durability: self.options.durability }
    }

    fn operation(&mut self, tag: Tag, buffers: &mut Buffers) -> KvOp {
        let operation = self.draw_operation();
        if operation == Operation::Insert {
            self.records += 1;
            return self.store(self.records - 1, buffers);
        }
        if operation == Operation::Batch {
            return self.batch(buffers);
        }
        let record = self.chooser.choose(self.records, &mut self.prng);
        let key = key_of(record);
        match operation {
            Operation::Update => self.store(record, buffers),
            Operation::Delete => {
                KvOp::Delete { key, absent: AbsentKey::Success, durability: self.options.durability }
            }
            Operation::Scan => {
                let most = u64::from(self.options.scan_length_max);
                let length = 1 + u32::try_from(self.prng.below(most)).expect("32 bits");
                // A key of 16 bytes takes 20 in a list, behind 4 for their number.
                let into = Content::Piece(self.room(4 + length * 20, buffers));
                KvOp::List { from: key, prefix_bytes: 0, into }
            }
            Operation::ReadModifyWrite => {
                self.modified.push((tag, record));
                self.retrieve(key, buffers)
            }
            Operation::Read | Operation::Insert | Operation::Batch => self.retrieve(key, buffers),
        }
    }

    /// The next operation of the phase that is on; `None` between the two, and at the end.
    fn draw(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<KvOp> {
        if self.loaded < self.options.record_count {
            self.loaded += 1;
            self.records += 1;
            return Some(self.store(self.records - 1, buffers));
        }
        if self.operations == self.options.operation_count {
            return None;
        }
        self.operations += 1;
        let interval = self.options.flush_interval;
        if interval > 0 && self.operations.is_multiple_of(interval) {
            return Some(KvOp::Flush);
        }
        Some(self.operation(tag, buffers))
    }
}

impl Generator for Ycsb {
    type Request = KvRequest;
    type Reply = KvReply;

    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<KvRequest> {
        let op = match self.due.pop_front() {
            Some(Due::Retrieve(key)) => self.retrieve(key, buffers),
            Some(Due::Update(record)) => self.store(record, buffers),
            None => self.draw(tag, buffers)?,
        };
        self.outstanding += 1;
        Some(KvRequest { tag, op })
    }

    fn on_reply(&mut self, request: &KvRequest, reply: &KvReply, buffers: &mut Buffers) {
        self.outstanding -= 1;
        match request.op {
            KvOp::List { into: Content::Piece(piece), .. } => {
                if let KvAnswer::Listed { bytes, .. } = reply.answer {
                    let listed = Content::Piece(Piece { bytes, ..piece }).gathered(buffers);
                    let keys = decode_keys(&listed).unwrap_or_default();
                    self.due.extend(keys.iter().filter_map(|key| Key::inline(key)).map(Due::Retrieve));
                }
                buffers.give_back(piece.buffer);
            }
            KvOp::Retrieve { into: Content::Piece(piece), .. } => {
                if let Some(nth) = self.modified.iter().position(|&(tag, _)| tag == request.tag) {
                    self.due.push_back(Due::Update(self.modified.swap_remove(nth).1));
                }
                buffers.give_back(piece.buffer);
            }
            KvOp::Store { content: Content::Piece(piece), .. } => buffers.give_back(piece.buffer),
            KvOp::Batch { entries, .. } => buffers.give_back(entries.buffer),
            _ => {}
        }
    }

    fn tag(request: &KvRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &KvReply) -> Tag {
        reply.tag
    }

    fn answered(&self, request: &KvRequest, reply: &KvReply) -> Answered {
        let (name, bytes) = match request.op {
            KvOp::Store { content, .. } => ("store", u64::from(content.bytes())),
            KvOp::Retrieve { into, .. } => match reply.answer {
                KvAnswer::Value { bytes } => ("retrieve", u64::from(bytes.min(into.bytes()))),
                _ => ("retrieve", 0),
            },
            KvOp::Delete { .. } => ("delete", 0),
            KvOp::Exist { .. } => ("exist", 0),
            KvOp::List { .. } => ("list", 0),
            KvOp::Batch { entries, .. } => {
                ("batch", u64::from(entries.count) * u64::from(self.options.value_bytes))
            }
            KvOp::Stage(_) => ("stage", 0),
            KvOp::Flush => ("flush", 0),
            KvOp::Shutdown => ("shutdown", 0),
        };
        let outcome = match reply.refusal {
            Some(KvRefusal::NoSuchKey) => Outcome::Absent,
            Some(refusal) => Outcome::of(reply.status, Some(&refusal)),
            None => Outcome::of(reply.status, None),
        };
        Answered { name, bytes, is_stored: matches!(name, "store" | "batch"), outcome }
    }

    fn shutdown(tag: Tag) -> KvRequest {
        KvRequest { tag, op: KvOp::Shutdown }
    }

    fn phase(&self) -> &'static str {
        let loads = self.operations == 0 && self.taken_over == 0;
        if loads && self.loaded <= self.options.record_count { "load" } else { "run" }
    }

    fn is_loading(&self) -> bool {
        self.loaded < self.options.record_count
    }

    fn operations_begun(&self) -> u64 {
        self.loaded + self.operations - self.taken_over
    }

    fn operation_count_max(&self) -> u64 {
        self.options.record_count + self.options.operation_count - self.taken_over
    }

    fn is_finished(&self) -> bool {
        let is_drawn =
            self.loaded == self.options.record_count && self.operations == self.options.operation_count;
        is_drawn && self.due.is_empty() && self.outstanding == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};
    use std::collections::BTreeMap;

    fn pool() -> Buffers {
        Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24)))
    }

    fn name(op: &KvOp) -> &'static str {
        match op {
            KvOp::Store { .. } => "store",
            KvOp::Retrieve { .. } => "retrieve",
            KvOp::Delete { .. } => "delete",
            KvOp::List { .. } => "list",
            KvOp::Batch { .. } => "batch",
            _ => "flush",
        }
    }

    /// All requests of a workload, answered at once.
    fn run(text: &str, seed: u64) -> (Vec<KvRequest>, BTreeMap<&'static str, u64>) {
        let (mut buffers, mut requests, mut counts) = (pool(), Vec::new(), BTreeMap::new());
        let options = YcsbOptions::parse(text).expect("the options can be used");
        let mut ycsb = Ycsb::new(options, &Prng::new(seed));
        while let Some(request) = ycsb.next(Tag(u32::try_from(requests.len()).expect("few")), &mut buffers) {
            let mut answer = KvAnswer::Done;
            if let KvOp::List { from, into: Content::Piece(piece), .. } = request.op {
                let list = [&1_u32.to_le_bytes()[..], &[16, 0], &from.gathered(&buffers), &[0, 0]].concat();
                piece.scatter(&mut buffers, &list);
                answer = KvAnswer::Listed { keys: 1, bytes: 24 };
            }
            ycsb.on_reply(&request, &KvReply::success(request.tag, answer), &mut buffers);
            *counts.entry(name(&request.op)).or_default() += 1;
            requests.push(request);
        }
        assert!(ycsb.is_finished() && buffers.in_use() == 0, "{text}");
        (requests, counts)
    }

    #[test]
    fn the_core_workloads_have_their_proportions() {
        const OPERATIONS: u64 = 20_000;
        for (workload, store, retrieve, list) in [
            ("a", 0.5, 0.5, 0.0),
            ("b", 0.05, 0.95, 0.0),
            ("c", 0.0, 1.0, 0.0),
            ("d", 0.05, 0.95, 0.0),
            ("e", 0.05, 0.95, 0.95),
            ("f", 0.5, 1.0, 0.0),
        ] {
            let text =
                format!("workload={workload},recordcount=100,operationcount={OPERATIONS},fieldlength=1");
            let (_, counts) = run(&text, 5);
            for (op, promised, loaded) in
                [("store", store, 100), ("retrieve", retrieve, 0), ("list", list, 0)]
            {
                let count = counts.get(op).copied().unwrap_or_default() - loaded;
                #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
                let share = count as f64 / OPERATIONS as f64;
                assert!((share - promised).abs() < 0.015, "seed 5, workload {workload}: {op} {share}");
            }
        }
    }

    #[test]
    fn the_same_seed_repeats_and_another_differs() {
        let text = "workload=a,deleteproportion=0.1,batchproportion=0.1,updateproportion=0.3,flush=50";
        assert_eq!(run(text, 1).0, run(text, 1).0);
        assert_ne!(run(text, 1).0, run(text, 2).0);
        assert_eq!(run(text, 1).1["flush"], 20);
    }

    #[test]
    fn records_that_are_there_are_neither_loaded_nor_counted() {
        let mut buffers = pool();
        let options = YcsbOptions::parse("workload=d,recordcount=100,operationcount=50,fieldlength=1");
        let mut ycsb = Ycsb::on_records(options.expect("sound"), &Prng::new(3));
        let (mut known, mut inserted) = ((0..100).map(key_of).collect::<Vec<Key>>(), 0);
        assert_eq!((ycsb.phase(), ycsb.operations_begun(), ycsb.operation_count_max()), ("run", 0, 50));
        while let Some(request) = ycsb.next(Tag(0), &mut buffers) {
            match request.op {
                KvOp::Store { key, .. } => {
                    assert!(!known.contains(&key), "seed 3: a record that is there was loaded");
                    inserted += 1;
                    known.push(key);
                }
                KvOp::Retrieve { key, .. } => assert!(known.contains(&key), "seed 3: {key:?} is not there"),
                op => panic!("seed 3: {op:?} in workload d"),
            }
            ycsb.on_reply(&request, &KvReply::success(request.tag, KvAnswer::Done), &mut buffers);
        }
        assert!(inserted > 0 && ycsb.is_finished());
        assert_eq!((ycsb.phase(), ycsb.operations_begun()), ("run", 50));
    }

    #[test]
    fn keys_are_distinct_and_fit_a_command() {
        let keys: std::collections::BTreeSet<Vec<u8>> =
            (0..10_000).map(|record| key_of(record).gathered(&pool())).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.len() == 16));
    }

    #[test]
    fn bad_options_are_refused_in_words() {
        for (text, says) in [
            ("workload=g", "one of a, b, c, d, e, f"),
            ("workload=a,readproportion=0.9", "must be 1 together"),
            ("recordcount=0", "from 1 to"),
            ("zipfianconstant=1", "from 0.01 to 0.999"),
            ("requestdistribution=zipfan", "did you mean `zipfian`?"),
            ("record_count=5", "did you mean `recordcount`?"),
            ("durable=always", "one of reply, flush"),
        ] {
            let problem = YcsbOptions::parse(text).expect_err(text).to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
