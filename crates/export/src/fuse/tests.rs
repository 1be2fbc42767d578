//! The session against a disk in memory, without a mount: bytes of any place, failures, and messages that are none.

use super::directory::Directory;
use super::open_request::FilePart;
use super::session::{Answer, Session};
use super::wire::{HEADER_BYTES, Header, opcode};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::pool::PIECE_BYTES_MAX;
use crate::shares::{ClientId, Want};
use ocssd_base::{Prng, usize_of};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Blocks of the disk, of 512 bytes each.
const BLOCKS: u64 = 2048;
const BYTES: usize = 2048 * 512;
/// The node of the first file.
const FILE: u64 = 2;

/// A session with its dispatcher and disk.
struct Talk {
    session: Session,
    dispatcher: Dispatcher,
    disks: MemoryDisks,
    unique: u64,
    /// What was answered: bytes, or an error.
    answers: BTreeMap<u64, Result<Vec<u8>, Errno>>,
}

impl Talk {
    fn new() -> Self {
        let (dispatcher, disks) = MemoryDisks::new(&[("a", BLOCKS), ("b-ro", 8)], [4, 4, 120]);
        let directory = Directory::new(&dispatcher.exports, (0, 0), Duration::ZERO).unwrap();
        Self { session: Session::new(directory, 7), dispatcher, disks, unique: 0, answers: BTreeMap::new() }
    }

    /// Sends a message and returns its name.
    fn ask(&mut self, opcode: u32, node: u64, body: &[u8], payload: &[u8]) -> u64 {
        while !self.session.has_room()
            || self.dispatcher.pool.room(ClientId(7), PIECE_BYTES_MAX, Want::Share) == 0
        {
            assert!(self.advance(0), "the session is stuck");
        }
        self.unique += 1;
        let length = u32::try_from(HEADER_BYTES + body.len() + payload.len()).unwrap();
        let header = Header { length, opcode, unique: self.unique, node };
        let piece = (opcode == opcode::WRITE)
            .then(|| self.dispatcher.pool.take(ClientId(7), PIECE_BYTES_MAX, Want::Share).unwrap());
        if let Some(piece) = &piece {
            self.dispatcher.buffers.bytes_mut(piece.buffer, 0, payload.len()).copy_from_slice(payload);
        }
        self.session.on_message(&header, body, piece, Duration::ZERO, &mut self.dispatcher);
        self.unique
    }

    /// A request with an offset and a size, as reads and writes have them.
    fn content(&mut self, opcode: u32, bytes: &Range<usize>, payload: &[u8]) -> u64 {
        let size = u32::try_from(bytes.len()).unwrap();
        let fields =
            [&[0; 8][..], &as_u64(bytes.start).to_ne_bytes(), &size.to_ne_bytes(), &[0; 20]].concat();
        self.ask(opcode, FILE, &fields, payload)
    }

    fn fallocate(&mut self, bytes: &Range<usize>, mode: u32) -> u64 {
        let numbers = [0, as_u64(bytes.start), as_u64(bytes.len())].map(u64::to_ne_bytes);
        self.ask(
            opcode::FALLOCATE,
            FILE,
            &[numbers.as_flattened(), &mode.to_ne_bytes(), &[0; 4]].concat(),
            &[],
        )
    }

    /// One of the jobs out ends. False if nothing moved at all.
    fn advance(&mut self, which: usize) -> bool {
        let mut any = self.session.go_on(&mut self.dispatcher);
        self.disks.take(&mut self.dispatcher);
        any |= self.disks.carry_out(which, &mut self.dispatcher);
        while let Some(done) = self.dispatcher.poll_done() {
            assert_eq!(done.job.owner.connection, 7);
            self.session.on_done(done, &mut self.dispatcher);
        }
        while let Some(Answer { unique, result }) = self.session.poll_answer() {
            let bytes = result.map(|(mut text, parts)| {
                for FilePart { piece, first, count } in parts {
                    text.extend_from_slice(self.dispatcher.buffers.bytes(piece.buffer, first, count));
                    self.dispatcher.pool.give_back(piece);
                }
                text
            });
            assert!(self.answers.insert(unique, bytes).is_none(), "{unique} was answered twice");
            any = true;
        }
        any
    }

    /// Until everything is answered; no piece is lent then.
    fn settle(&mut self) {
        while self.advance(0) {}
        assert!(self.session.is_idle());
        assert_eq!((self.dispatcher.pool.lent(), self.dispatcher.open_jobs()), (0, 0));
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap()
}

/// Something asked that a model knows the answer to.
enum Expected {
    Bytes(Vec<u8>),
    Written(u32),
    Nothing,
}

#[test]
fn requests_that_share_blocks_but_no_bytes_do_not_lose_each_others() {
    for seed in 0..8 {
        let mut random = Prng::new(seed);
        let mut below = |limit: usize| usize::try_from(random.below(as_u64(limit))).unwrap();
        let mut talk = Talk::new();
        let mut model = vec![0; BYTES];
        let mut busy: Vec<(u64, Range<usize>, Expected)> = Vec::new();
        for step in 0..150_u8 {
            // Near each other, so that blocks are shared; now and then longer than a piece.
            let longest = if below(20) == 0 { PIECE_BYTES_MAX } else { 900 };
            let first = if longest > 900 { below(BYTES / 2) } else { below(8000) };
            let bytes = first..first + 1 + below(longest);
            if busy.iter().all(|(_, other, _)| other.end <= bytes.start || bytes.end <= other.start) {
                let (unique, expected) = match below(4) {
                    0 => (
                        talk.content(opcode::READ, &bytes, &[]),
                        Expected::Bytes(model[bytes.clone()].to_vec()),
                    ),
                    1 => {
                        model[bytes.clone()].fill(0);
                        let mode = if step % 2 == 0 { 3 } else { 0x11 };
                        (talk.fallocate(&bytes, mode), Expected::Nothing)
                    }
                    _ => {
                        model[bytes.clone()].fill(step);
                        let count = u32::try_from(bytes.len()).unwrap();
                        (
                            talk.content(opcode::WRITE, &bytes, &vec![step; bytes.len()]),
                            Expected::Written(count),
                        )
                    }
                };
                busy.push((unique, bytes, expected));
            }
            for _ in 0..below(4) {
                let which = below(100);
                talk.advance(which);
            }
            busy.retain(|(unique, bytes, expected)| match (talk.answers.get(unique), expected) {
                (None, _) => true,
                (Some(found), Expected::Bytes(bytes_expected)) => {
                    assert!(found.as_ref() == Ok(bytes_expected), "seed {seed}, {bytes:?}");
                    false
                }
                (Some(found), Expected::Written(count)) => {
                    assert_eq!(
                        found.as_ref().map(|text| text[..4].to_vec()),
                        Ok(count.to_ne_bytes().to_vec())
                    );
                    false
                }
                (Some(found), Expected::Nothing) => {
                    assert_eq!(found, &Ok(Vec::new()), "seed {seed}, {bytes:?}");
                    false
                }
            });
        }
        talk.settle();
        let all = (0..BYTES).step_by(PIECE_BYTES_MAX).map(|first| {
            let unique = talk.content(opcode::READ, &(first..first + PIECE_BYTES_MAX), &[]);
            talk.settle();
            talk.answers[&unique].clone().unwrap()
        });
        let all: Vec<u8> = all.flatten().collect();
        assert!(all == model, "seed {seed}");
    }
}

#[test]
fn a_block_that_cannot_be_read_is_an_error_and_nothing_is_lost() {
    let mut talk = Talk::new();
    talk.disks.bad = 3..4;
    let read = talk.content(opcode::READ, &(0..4096), &[]);
    let merged = talk.content(opcode::WRITE, &(1537..1600), &[1; 63]);
    let fine = talk.content(opcode::WRITE, &(0..512), &[2; 512]);
    let hole = talk.fallocate(&(1500..3000), 3);
    talk.settle();
    let io: Result<Vec<u8>, Errno> = Err(Errno::IO);
    assert_eq!([&talk.answers[&read], &talk.answers[&merged], &talk.answers[&hole]], [&io; 3]);
    assert!(talk.answers[&fine].is_ok());
    assert_eq!(talk.dispatcher.stats.errors, 3);
}

#[test]
fn the_directory_answers_at_once() {
    let mut talk = Talk::new();
    let init = [7_u32, 38, 1 << 20, u32::MAX, 0, 0].map(u32::to_ne_bytes);
    let old = [7_u32, 12, 1 << 20, u32::MAX].map(u32::to_ne_bytes);
    let asked = [
        (opcode::INIT, 0, init.as_flattened().to_vec(), Ok(64)),
        (opcode::INIT, 0, old.as_flattened().to_vec(), Err(Errno::PROTO)),
        (opcode::LOOKUP, 1, b"a\0".to_vec(), Ok(128)),
        (opcode::LOOKUP, 1, b"nobody\0".to_vec(), Err(Errno::NOENT)),
        (opcode::GETATTR, 3, vec![0; 16], Ok(104)),
        (opcode::GETATTR, 99, vec![0; 16], Err(Errno::NOENT)),
        (opcode::OPEN, 3, 2_u32.to_ne_bytes().to_vec(), Err(Errno::ROFS)),
        (opcode::OPEN, 2, 2_u32.to_ne_bytes().to_vec(), Ok(16)),
        (opcode::STATFS, 1, Vec::new(), Ok(80)),
        (opcode::LINK, 1, b"x\0".to_vec(), Err(Errno::PERM)),
        (9999, 2, Vec::new(), Err(Errno::NOSYS)),
    ];
    for (opcode, node, body, expected) in asked {
        let unique = talk.ask(opcode, node, &body, &[]);
        talk.settle();
        assert_eq!(
            talk.answers[&unique].as_ref().map(Vec::len),
            expected.as_ref().map(|len: &usize| *len),
            "{opcode}"
        );
    }
    assert!(talk.session.poll_trouble().is_some_and(|sentence| sentence.contains("7.12")));
    let forget = talk.ask(opcode::FORGET, 2, &[0; 8], &[]);
    talk.settle();
    assert!(!talk.answers.contains_key(&forget), "nobody waits for an answer");
}

#[test]
fn messages_of_any_bytes_are_answered_once_and_leave_nothing() {
    for seed in 0..20 {
        let mut random = Prng::new(seed);
        let mut talk = Talk::new();
        for _ in 0..50 {
            let opcode = u32::try_from(random.below(54)).unwrap();
            let count = usize::try_from(random.below(120)).unwrap();
            let body: Vec<u8> = (0..count)
                .map(|_| if random.chance(1 << 31) { 0 } else { random.next_u64().to_ne_bytes()[0] })
                .collect();
            let payload = vec![1; usize_of(u32::try_from(random.below(600)).unwrap())];
            let payload = if opcode == opcode::WRITE { payload.as_slice() } else { &[] };
            talk.ask(opcode, random.below(5), &body, payload);
            talk.advance(0);
        }
        talk.settle();
        assert!(talk.answers.len() <= 50, "seed {seed}");
    }
}
