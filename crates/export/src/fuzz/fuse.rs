//! Any bytes as what a kernel asks of a mount.

use super::BYTES_MAX;
use crate::dispatcher::Dispatcher;
use crate::fuse::{Answer, Directory, HEADER_BYTES, Header, Session, opcode};
use crate::memory_disk::MemoryDisks;
use crate::pool::PIECE_BYTES_MAX;
use crate::shares::{ClientId, Want};
use ocssd_base::usize_of;
use std::collections::BTreeSet;
use std::time::Duration;

/// Requests that nobody has answered, at most: fewer than the session takes, so that few pieces are enough.
const UNANSWERED_MAX: usize = 3;
/// Pieces of each size: two large ones for each of those, one for the next message, and one more.
const PIECES: [u32; 3] = [2, 2, 8];
/// The owner of jobs.
const CONNECTION: u32 = 7;

/// Plays a kernel that sends what `data` says. Returns how many bytes of answers it got.
///
/// # Panics
/// If the session breaks a promise.
pub fn fuse_kernel(data: &[u8]) -> usize {
    let Some((&shape, data)) = data.split_first() else { return 0 };
    let (dispatcher, mut disks) = MemoryDisks::new(&[("a", 1 << 10), ("b-ro", 8)], PIECES);
    if shape & 1 != 0 {
        disks.bad = 3..5;
    }
    let directory = Directory::new(&dispatcher.exports, (0, 0), Duration::ZERO).expect("the names are sound");
    let session = Session::new(directory, CONNECTION);
    let mut kernel = Kernel { session, dispatcher, disks, unique: 0, waiting: BTreeSet::new(), answered: 0 };
    let mut input = Input(&data[..data.len().min(BYTES_MAX)]);
    while kernel.ask(&mut input).is_some() {
        if kernel.waiting.len() >= UNANSWERED_MAX {
            kernel.settle();
        } else if kernel.unique % 3 == u64::from(shape >> 1 & 3) {
            kernel.advance(usize::from(shape));
        }
    }
    kernel.settle();
    assert_eq!(
        (kernel.dispatcher.open_jobs(), kernel.dispatcher.pool.lent()),
        (0, 0),
        "something of a mount was kept"
    );
    kernel.answered
}

/// The bytes, as numbers.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    /// A place of the file, mostly; sometimes far behind its end.
    fn place(&mut self) -> Option<u64> {
        let number = u32::from_le_bytes(self.bytes(4)?.try_into().expect("four bytes"));
        Some(match number >> 28 {
            0 => u64::MAX - u64::from(number & 0xFFFF),
            1 => u64::from(number) << 16,
            2..8 => u64::from(number & 0x7F) * 512,
            _ => u64::from(number & 0x0008_FFFF),
        })
    }

    /// A length that is short, mostly.
    fn length(&mut self) -> Option<u32> {
        let number = u32::from_le_bytes(self.bytes(4)?.try_into().expect("four bytes"));
        Some(match number >> 28 {
            0 => number << 4,
            1 => number & 0x7_FFFF,
            2..8 => number % 9 * 512,
            _ => number & 0x0FFF,
        })
    }
}

/// A kernel and what it talks to.
struct Kernel {
    session: Session,
    dispatcher: Dispatcher,
    disks: MemoryDisks,
    unique: u64,
    /// What has not been answered, and need not be.
    waiting: BTreeSet<u64>,
    answered: usize,
}

impl Kernel {
    /// Sends a message; `None` at the end of the input.
    fn ask(&mut self, input: &mut Input<'_>) -> Option<()> {
        let (kind, node) = (input.byte()?, u64::from(input.byte()? % 5));
        let (opcode, body, payload_bytes) = match kind % 16 {
            0..=3 => (opcode::READ, content(input.place()?, input.length()?), 0),
            4..=7 => {
                let (offset, size) = (input.place()?, input.length()?);
                (opcode::WRITE, content(offset, size), usize_of(size).min(PIECE_BYTES_MAX))
            }
            8 | 9 => {
                let numbers = [0, input.place()?, u64::from(input.length()?)].map(u64::to_ne_bytes);
                let mode = u32::from(input.byte()? % 64).to_ne_bytes();
                (opcode::FALLOCATE, [numbers.as_flattened(), &mode, &[0; 4]].concat(), 0)
            }
            10 => (opcode::FSYNC, vec![0; 16], 0),
            _ => {
                let (opcode, count) = (u32::from(input.byte()? % 54), usize::from(input.byte()? % 130));
                (opcode, input.bytes(count)?.to_vec(), usize::from(kind) * 8)
            }
        };
        self.send(opcode, node, &body, payload_bytes);
        Some(())
    }

    /// As the transport of a mount does: the payload of a write lies in a piece.
    fn send(&mut self, opcode: u32, node: u64, body: &[u8], payload_bytes: usize) {
        self.unique += 1;
        let is_write = opcode == opcode::WRITE;
        let payload = is_write.then(|| {
            self.dispatcher
                .pool
                .take(ClientId(CONNECTION), PIECE_BYTES_MAX, Want::Last)
                .expect("there are enough")
        });
        if let Some(piece) = &payload {
            let fill = self.unique.to_le_bytes()[0];
            self.dispatcher.buffers.bytes_mut(piece.buffer, 0, payload_bytes).fill(fill);
        }
        let length = HEADER_BYTES + body.len() + if is_write { payload_bytes } else { 0 };
        let length = u32::try_from(length).expect("a message is short");
        let header = Header { length, opcode, unique: self.unique, node };
        self.waiting.insert(self.unique);
        self.session.on_message(&header, body, payload, Duration::ZERO, &mut self.dispatcher);
        self.take_answers();
    }

    /// A job ends, and what comes of it; false if nothing happened.
    fn advance(&mut self, which: usize) -> bool {
        let mut any = self.session.go_on(&mut self.dispatcher);
        self.disks.take(&mut self.dispatcher);
        any |= self.disks.carry_out(which, &mut self.dispatcher);
        while let Some(done) = self.dispatcher.poll_done() {
            assert_eq!(done.job.owner.connection, CONNECTION, "another's job ended here");
            self.session.on_done(done, &mut self.dispatcher);
        }
        self.take_answers() || any
    }

    fn take_answers(&mut self) -> bool {
        let mut any = false;
        while let Some(Answer { unique, result }) = self.session.poll_answer() {
            assert!(self.waiting.remove(&unique), "{unique} was answered twice, or never asked");
            any = true;
            let Ok((text, parts)) = result else { continue };
            self.answered += text.len();
            for part in parts {
                self.answered +=
                    self.dispatcher.buffers.bytes(part.piece.buffer, part.first, part.count).len();
                self.dispatcher.pool.give_back(part.piece);
            }
        }
        any
    }

    /// Until nothing happens any more: then all is answered but what needs no answer.
    fn settle(&mut self) {
        while self.advance(self.waiting.len()) {}
        assert!(self.session.is_idle(), "a request never ended");
        let _ = self.session.poll_trouble();
        self.waiting.clear();
    }
}

/// `fuse_read_in` and `fuse_write_in`.
fn content(offset: u64, size: u32) -> Vec<u8> {
    [&[0; 8][..], &offset.to_ne_bytes(), &size.to_ne_bytes(), &[0; 20]].concat()
}
