//! Gets and `readseq`: what a thread computes, and the blocks it waits for.
//!
//! A get sees the puts that were there when it began: it holds the tables it may look into until it ends. Deliberately not
//! here: which tables these are (`tree`).

use super::client::{Doing, Get, Scan};
use super::merge::{Merge, Step};
use super::source::{Lsm, Owner};
use super::wire::Ask;
use ocssd_base::Nanos;

/// Records a `readseq` comes to in one event, so that its series has no steps (chosen: a millisecond).
const SCAN_AT_ONCE: u64 = 1_000;

impl Lsm {
    pub(super) fn begin_get(&mut self, now: Nanos, client: usize) {
        let key = self.clients[client].next_key();
        let in_memory = self.memtables.get(key);
        let probes = if in_memory.is_some() { Vec::new() } else { self.tree.probes(key) };
        probes.iter().for_each(|probe| self.tree.hold(probe.table));
        let newest = self.newest.get(&key).copied();
        let get = Get { began: now, key, newest, in_memory, probes, at: 0 };
        self.clients[client].doing = Doing::Get(get);
        self.wake(now + self.options.costs.get, client);
    }

    /// The processor is done: the next block is read, or the get ends. True if it has ended.
    pub(super) fn go_on_get(&mut self, now: Nanos, client: usize) -> bool {
        let Doing::Get(get) = &self.clients[client].doing else {
            unreachable!("thread {client} gets nothing")
        };
        if let Some(probe) = get.probes.get(get.at) {
            let (offset, bytes, _) =
                self.layout.window(probe.record.min(probe.records - 1), probe.records, 0);
            let ask = Ask::Read { table: probe.table, offset, bytes };
            self.asks.push_back((Owner::Client(client), ask));
            return false;
        }
        let Doing::Get(get) = std::mem::replace(&mut self.clients[client].doing, Doing::Nothing) else {
            unreachable!("it was a get")
        };
        get.probes.iter().for_each(|probe| self.tree.let_go(probe.table));
        let found = get.in_memory.or_else(|| get.probes.last().and_then(|probe| probe.found));
        assert_eq!(
            found, get.newest,
            "a get of key {} found another version than the last put before it",
            get.key
        );
        let wrong = get.probes.iter().filter(|probe| probe.found.is_none()).count();
        let phase = self.phase();
        phase.filter_wrong += wrong as u64;
        phase.gets.record(now.saturating_since(get.began));
        phase.point(now).reads += 1;
        true
    }

    pub(super) fn begin_scan(&mut self, now: Nanos, client: usize) {
        let held: Vec<u64> = self.tree.levels.iter().flatten().copied().collect();
        held.iter().for_each(|&table| self.tree.hold(table));
        let tables = held.iter().map(|&table| (self.tree.tables[&table].run.clone(), Some(table)));
        let runs = self.memtables.runs().into_iter().map(|run| (run, None)).chain(tables).collect();
        let merge = Merge::new(runs, self.layout, self.options.readahead_bytes);
        let scan = Scan { merge, held, pending: None, last: None };
        self.clients[client].doing = Doing::Scan(Box::new(scan));
        self.go_on_scan(now, client);
    }

    /// The processor is done, or a block is there. True if the scan has ended.
    pub(super) fn go_on_scan(&mut self, now: Nanos, client: usize) -> bool {
        let left = self.clients[client].left;
        let Doing::Scan(scan) = &mut self.clients[client].doing else {
            unreachable!("thread {client} scans nothing")
        };
        if let Some(ask) = scan.pending.take() {
            self.asks.push_back((Owner::Client(client), ask));
            return false;
        }
        let (mut stepped, mut came, mut is_over) = (0, 0, left == 0);
        while !is_over && stepped < SCAN_AT_ONCE && scan.pending.is_none() {
            match scan.merge.step() {
                Step::Read { table, offset, bytes } => {
                    scan.pending = Some(Ask::Read { table, offset, bytes });
                }
                Step::Took(record, is_newest) => {
                    assert!(scan.last.is_none_or(|last| last <= record.key), "a scan goes back");
                    scan.last = Some(record.key);
                    (stepped, came) = (stepped + 1, came + u64::from(is_newest));
                    is_over = came == left;
                }
                Step::End => is_over = true,
            }
        }
        self.clients[client].left = left - came;
        if is_over {
            self.clients[client].left = 0;
        }
        let phase = self.phase();
        phase.scanned += came;
        phase.point(now).reads += came;
        if is_over && stepped == 0 {
            self.end_scan(client);
            return true;
        }
        self.wake(now + self.options.costs.next * stepped, client);
        false
    }

    fn end_scan(&mut self, client: usize) {
        let doing = std::mem::replace(&mut self.clients[client].doing, Doing::Nothing);
        let Doing::Scan(scan) = doing else { unreachable!("it was a scan") };
        scan.held.iter().for_each(|&table| self.tree.let_go(table));
    }

    /// A block a thread waited for is there: its processor looks at it.
    pub(super) fn on_client_read(&mut self, now: Nanos, client: usize, bytes: u64) {
        match &mut self.clients[client].doing {
            Doing::Get(get) => get.at += 1,
            Doing::Scan(scan) => scan.merge.loaded(),
            other => unreachable!("thread {client} waits for no block: {other:?}"),
        }
        let blocks = bytes.div_ceil(self.layout.block_bytes());
        self.wake(now + self.options.costs.of_blocks(blocks, bytes), client);
    }
}
