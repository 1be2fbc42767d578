//! A thread of the benchmark: what it does, and what it has yet to do.
//!
//! Deliberately not here: what it waits for (`writes`, `reads`).

use super::merge::Merge;
use super::options::Benchmark;
use super::tree::Probe;
use super::wire::Ask;
use ocssd_base::{Nanos, Prng};

/// A get.
#[derive(Clone, Debug)]
pub(super) struct Get {
    pub(super) began: Nanos,
    pub(super) key: u64,
    /// The version it must find: that of the last put before it.
    pub(super) newest: Option<u64>,
    /// Found in memory.
    pub(super) in_memory: Option<u64>,
    pub(super) probes: Vec<Probe>,
    /// The table that is read next.
    pub(super) at: usize,
}

/// A `readseq`.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) merge: Merge,
    /// Tables it reads.
    pub(super) held: Vec<u64>,
    /// What it asks for once its processor is done.
    pub(super) pending: Option<Ask>,
    /// The last key it came to.
    pub(super) last: Option<u64>,
}

/// What a thread is at.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// Between two operations.
    Nothing,
    /// In the write queue, or behind it, since.
    Put {
        key: u64,
        began: Nanos,
    },
    Get(Get),
    Scan(Box<Scan>),
    /// It is done.
    Over,
}

/// What a thread does in a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    PutInOrder,
    PutRandom,
    /// As long as others work.
    PutRandomBeside,
    GetRandom,
    Scan,
}

/// The thread.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) doing: Doing,
    pub(super) work: Work,
    /// Operations it has yet to begin.
    pub(super) left: u64,
    /// It may put from then on, if it is held to a rate.
    pub(super) puts_from: Nanos,
    prng: Prng,
    next_key: u64,
    keys: u64,
}

impl Client {
    /// The threads of a benchmark; none, if it has none.
    pub(super) fn all(
        benchmark: Benchmark,
        threads: usize,
        (num, reads): (u64, u64),
        prng: &Prng,
    ) -> Vec<Self> {
        let work = match benchmark {
            Benchmark::FillSeq => Work::PutInOrder,
            Benchmark::FillRandom | Benchmark::Overwrite => Work::PutRandom,
            Benchmark::ReadSeq => Work::Scan,
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => Work::GetRandom,
            Benchmark::WaitForCompaction => return Vec::new(),
        };
        let is_put = matches!(work, Work::PutInOrder | Work::PutRandom);
        let mut works = vec![(work, if is_put { num } else { reads }); threads];
        if benchmark == Benchmark::ReadWhileWriting {
            works.push((Work::PutRandomBeside, u64::MAX));
        }
        let client = |(number, (work, left)): (usize, (Work, u64))| {
            let prng = prng.split(&format!("{} {number}", benchmark.name()));
            let puts_from = Nanos::ZERO;
            Self { doing: Doing::Nothing, work, left, puts_from, prng, next_key: 0, keys: num }
        };
        works.into_iter().enumerate().map(client).collect()
    }

    /// The key of the next operation.
    pub(super) fn next_key(&mut self) -> u64 {
        if self.work != Work::PutInOrder {
            return self.prng.below(self.keys);
        }
        self.next_key += 1;
        self.next_key - 1
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Over)
    }

    /// It works as long as others do.
    pub(super) fn is_beside(&self) -> bool {
        self.work == Work::PutRandomBeside
    }
}
