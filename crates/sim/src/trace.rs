//! A run as one number: everything targets send, say and count goes into a hash as it happens, so that two runs of the same
//! number behaved the same.
//!
//! The journal feeds it ([`crate::journal::Keep::Hash`]): commands with each address and what they write, completions, requests
//! and replies in words, each with its time, and targets' counters whenever they are counted. Every word is a number of a fixed
//! width or bytes in the order of memory, so the hash does not depend on the machine. What a target takes of the process's own
//! memory does, and is left out. Deliberately not here: which runs are hashed, and what their hashes should be.

use crate::journal::Event;
use ocssd_base::{Nanos, TraceHash, usize_of};
use ocssd_lightnvm::counter::{Counter, CounterValue};
use ocssd_lightnvm::{Addresses, Buffers, Command, Completion, Op, PlaneMode, Ppa};

/// Gauges that tell bytes of the process's memory: they follow from the compiler's layout of structs.
const OF_PROCESS: [&str; 5] =
    ["index_bytes", "map_bytes", "table_bytes", "table_map_bytes", "table_metadata_bytes"];

/// Bytes of a word of the hash.
const WORD: usize = 8;

/// What stands before each kind of event, so that none can be taken for another.
#[derive(Clone, Copy)]
enum Mark {
    Step = 1,
    Request,
    Reply,
    Command,
    Completion,
    Harmed,
    PowerCut,
    Mounted,
    Counters,
    Nothing,
}

/// The hash of what happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace(TraceHash);

impl Trace {
    /// The hash of everything so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0.value()
    }

    /// Adds something that happened.
    ///
    /// # Panics
    /// If it is a command or a completion: [`Self::command`] and [`Self::completion`] see all of it.
    pub fn event(&mut self, now: Nanos, event: &Event) {
        match event {
            Event::Step { index, what } => {
                self.begin(Mark::Step, now);
                self.0.word(u64::try_from(*index).expect("an index fits 64 bits"));
                self.bytes(what.as_bytes());
            }
            Event::Request { number, what } => self.words(Mark::Request, now, *number, what),
            Event::Reply { number, what } => self.words(Mark::Reply, now, *number, what),
            Event::Command { .. } | Event::Completion { .. } => {
                unreachable!("an event does not have all of a command: give the command, or its end")
            }
            Event::Harmed { at, what } => {
                self.begin(Mark::Harmed, now);
                self.place(*at);
                self.bytes(what.as_bytes());
            }
            Event::PowerCut => self.begin(Mark::PowerCut, now),
            Event::Mounted => self.begin(Mark::Mounted, now),
        }
    }

    /// Adds a command with all its addresses, and what it writes: payload, metadata, and whole sectors beside stamps.
    pub fn command(&mut self, now: Nanos, command: &Command, buffers: &Buffers, mount: bool) {
        let Command { tag, op, addresses, buffer, buffer_first, oob, plane_mode } = *command;
        self.begin(Mark::Command, now);
        let is_multi = u64::from(plane_mode == PlaneMode::Multi);
        let numbers = [u64::from(tag.0), op_word(op), u64::from(mount), u64::from(oob), is_multi];
        numbers.into_iter().for_each(|word| self.0.word(word));
        let list = match addresses {
            Addresses::Run { first, .. } => &[first][..],
            Addresses::List { offset, count } => {
                let lists = if op == Op::Copy { 2 } else { 1 };
                let list = buffers.addresses(buffer.expect("a list lies in a buffer"));
                &list[usize_of(offset)..][..usize_of(lists * count)]
            }
            Addresses::None => &[],
        };
        self.0.word(u64::from(addresses.count()));
        list.iter().for_each(|&at| self.place(at));
        let (Op::Write { .. }, Some(buffer)) = (op, buffer) else { return };
        let (first, count) = (buffer_first, addresses.count());
        self.bytes(buffers.data(buffer, first, count));
        if oob {
            self.bytes(buffers.oob(buffer, first, count));
        }
        let whole = buffers.whole_sectors(buffer).saturating_sub(first).min(count);
        if whole > 0 {
            self.bytes(buffers.whole(buffer, first, whole));
        }
    }

    /// Adds the end of a command, with which of its addresses failed.
    pub fn completion(&mut self, now: Nanos, completion: &Completion) {
        self.begin(Mark::Completion, now);
        let Completion { tag, status, failed, .. } = *completion;
        [u64::from(tag.0), u64::from(status.0), failed].into_iter().for_each(|word| self.0.word(word));
    }

    /// Adds what a target counted so far.
    pub fn counters(&mut self, now: Nanos, counters: &[Counter]) {
        self.begin(Mark::Counters, now);
        for Counter { name, value, .. } in
            counters.iter().filter(|counter| !OF_PROCESS.contains(&counter.name))
        {
            self.bytes(name.as_bytes());
            match *value {
                CounterValue::Count(value) | CounterValue::Gauge(value) => self.0.word(value),
                // A quotient of integers is rounded by IEEE 754, the same everywhere.
                CounterValue::Ratio(Some(ratio)) => self.0.word(ratio.to_bits()),
                CounterValue::Ratio(None) => self.0.word(word_of(Mark::Nothing)),
            }
        }
    }

    /// Adds a number counted by name.
    pub fn count(&mut self, name: &str, count: u64) {
        self.bytes(name.as_bytes());
        self.0.word(count);
    }

    fn begin(&mut self, mark: Mark, now: Nanos) {
        self.0.word(word_of(mark));
        self.0.time(now);
    }

    fn words(&mut self, mark: Mark, now: Nanos, number: u32, what: &str) {
        self.begin(mark, now);
        self.0.word(u64::from(number));
        self.bytes(what.as_bytes());
    }

    fn place(&mut self, at: Ppa) {
        self.0.word(u64::from(at.chunk.0) << 32 | u64::from(at.sector));
    }

    /// Adds bytes, their number first, so that where one text ends and the next begins counts too.
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.word(u64::try_from(bytes.len()).expect("a length fits 64 bits"));
        let (words, rest) = bytes.as_chunks::<WORD>();
        words.iter().for_each(|&word| self.0.word(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; WORD];
            word[..rest.len()].copy_from_slice(rest);
            self.0.word(u64::from_le_bytes(word));
        }
    }
}

const fn word_of(mark: Mark) -> u64 {
    mark as u64
}

const fn op_word(op: Op) -> u64 {
    match op {
        Op::Read => 1,
        Op::Write { fua: false } => 2,
        Op::Write { fua: true } => 3,
        Op::Reset => 4,
        Op::Copy => 5,
        Op::Flush => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, Keep};
    use ocssd_lightnvm::{BufId, ChunkId, Payload, PayloadFormat, Status, Tag};

    const FORMAT: PayloadFormat =
        PayloadFormat { payload: Payload::Stamp, data_bytes: 16, sector_bytes: 512, oob_bytes: 16 };

    /// The hash after one write of two listed sectors, the first of which is whole, and its end; `change` changes one thing.
    fn hash(change: impl Fn(&mut Command, &mut Buffers, &mut Completion, &mut Nanos)) -> u64 {
        let mut buffers = Buffers::new(FORMAT);
        let buffer = buffers.take_whole_front(4, 3);
        buffers.addresses_mut(buffer)[..2]
            .copy_from_slice(&[Ppa::new(ChunkId(1), 4), Ppa::new(ChunkId(2), 6)]);
        let (op, addresses) = (Op::Write { fua: false }, Addresses::List { offset: 0, count: 2 });
        let (tag, plane_mode) = (Tag(7), PlaneMode::Single);
        let mut command =
            Command { tag, op, addresses, buffer: Some(buffer), buffer_first: 2, oob: true, plane_mode };
        let (mut end, mut now) = (Completion::success(tag), Nanos(5));
        change(&mut command, &mut buffers, &mut end, &mut now);
        let mut journal = Journal::new(Keep::Hash);
        journal.command(now, &command, &buffers, false);
        journal.completion(now, &end);
        assert_eq!(journal.iter().count(), 0, "a hash keeps no events");
        journal.trace().value()
    }

    #[test]
    fn whatever_differs_in_a_command_what_it_writes_or_its_end_is_another_hash() {
        let same = hash(|_, _, _, _| ());
        assert_eq!(same, hash(|_, _, _, _| ()));
        assert_eq!(
            same,
            hash(|_, buffers, _, _| buffers.data_mut(BufId(0), 1, 1).fill(1)),
            "it is not written"
        );
        let others = [
            hash(|command, _, _, _| command.op = Op::Write { fua: true }),
            hash(|command, _, _, _| command.tag = Tag(8)),
            hash(|command, _, _, _| command.oob = false),
            hash(|command, _, _, _| command.plane_mode = PlaneMode::Multi),
            hash(|command, _, _, _| command.addresses = Addresses::List { offset: 1, count: 2 }),
            hash(|_, buffers, _, _| buffers.addresses_mut(BufId(0))[1].sector = 7),
            hash(|_, buffers, _, _| buffers.data_mut(BufId(0), 3, 1)[15] = 1),
            hash(|_, buffers, _, _| buffers.oob_mut(BufId(0), 3, 1)[15] = 1),
            hash(|_, buffers, _, _| buffers.whole_mut(BufId(0), 2, 1)[511] = 1),
            hash(|_, _, end, _| end.status = Status::INTERNAL_ERROR),
            hash(|_, _, end, _| end.failed = 2),
            hash(|_, _, _, now| now.0 += 1),
        ];
        for (nth, other) in others.iter().enumerate() {
            assert_ne!(same, *other, "change {nth} is not seen");
        }
    }

    #[test]
    fn counters_count_but_for_the_memory_of_the_process() {
        let of = |name: &'static str, value: CounterValue| {
            let mut trace = Trace::default();
            trace.counters(Nanos(1), &[Counter { name, about: "", value }]);
            trace.value()
        };
        let counted = of("copies", CounterValue::Count(3));
        assert_ne!(counted, of("copies", CounterValue::Count(4)));
        assert_ne!(counted, of("moves", CounterValue::Count(3)));
        assert_ne!(of("ratio", CounterValue::Ratio(None)), of("ratio", CounterValue::Ratio(Some(0.5))));
        assert_eq!(of("index_bytes", CounterValue::Gauge(1)), of("index_bytes", CounterValue::Gauge(2)));
    }

    #[test]
    fn where_one_text_ends_counts() {
        let of = |texts: [&str; 2]| {
            let mut trace = Trace::default();
            texts.iter().for_each(|text| trace.bytes(text.as_bytes()));
            trace.value()
        };
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
