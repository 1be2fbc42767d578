//! What is to be sent to a client: short texts (headers), long ones and pieces of payload, in order, sent from where they lie.
//!
//! Deliberately not here: the socket. The transport asks for [`SendQueue::slices`], sends them, and says how much went.

use crate::pool::{Pool, PoolPiece};
use crate::shared_bytes::SharedBytes;
use ocssd_lightnvm::Buffers;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Something to send.
#[derive(Debug)]
enum Part {
    /// The next bytes of the text.
    Text(usize),
    /// A text that is not copied.
    Shared(SharedBytes),
    /// Bytes of a piece, which comes back to the pool once they are sent.
    Payload { piece: PoolPiece, first: usize, count: usize },
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub struct SendQueue {
    text: Vec<u8>,
    /// Bytes of the text that are sent.
    text_sent: usize,
    /// Bytes of texts that are not copied.
    shared: usize,
    parts: VecDeque<Part>,
}

/// More parts than this wait: nothing more is asked of the target until the client takes some (chosen: an answer has two
/// parts, and a client that has this many answers open does not read them).
const PARTS_MAX: usize = 2048;

/// More text than this waits: as above (chosen: 2 048 answers without payload).
const TEXT_BYTES_MAX: usize = 32 << 10;

impl SendQueue {
    /// Adds bytes.
    pub fn push_text(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.text.extend_from_slice(bytes);
        match self.parts.back_mut() {
            Some(Part::Text(count)) => *count += bytes.len(),
            _ => self.parts.push_back(Part::Text(bytes.len())),
        }
    }

    /// Adds bytes without a copy of them, which pays for long ones.
    pub fn push_shared(&mut self, bytes: SharedBytes) {
        if !bytes.is_empty() {
            self.shared += bytes.len();
            self.parts.push_back(Part::Shared(bytes));
        }
    }

    /// Adds `count` bytes of a piece from byte `first` on.
    pub fn push_payload(&mut self, piece: PoolPiece, first: usize, count: usize) {
        assert!(count > 0, "payload has bytes");
        self.parts.push_back(Part::Payload { piece, first, count });
    }

    /// Nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// So much waits that no more should be made.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.parts.len() >= PARTS_MAX || self.text.len() - self.text_sent + self.shared >= TEXT_BYTES_MAX
    }

    /// Fills `slices` with what comes first; returns how many.
    pub fn slices<'a>(&'a self, buffers: &'a Buffers, slices: &mut [IoSlice<'a>]) -> usize {
        let mut text = self.text_sent;
        let mut used = 0;
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = match *part {
                Part::Text(count) => {
                    text += count;
                    IoSlice::new(&self.text[text - count..text])
                }
                Part::Shared(ref bytes) => IoSlice::new(bytes),
                Part::Payload { ref piece, first, count } => {
                    IoSlice::new(buffers.bytes(piece.buffer, first, count))
                }
            };
            used += 1;
        }
        used
    }

    /// The first `bytes` bytes were sent. Returns how many of them were payload.
    pub fn sent(&mut self, mut bytes: usize, pool: &mut Pool) -> usize {
        let mut payload = 0;
        while bytes > 0 {
            let part = self.parts.pop_front().expect("no more was sent than waited");
            bytes = match part {
                Part::Text(count) => {
                    let taken = count.min(bytes);
                    self.text_sent += taken;
                    if taken < count {
                        self.parts.push_front(Part::Text(count - taken));
                    }
                    bytes - taken
                }
                Part::Shared(part) => {
                    let taken = part.len().min(bytes);
                    self.shared -= taken;
                    if taken < part.len() {
                        self.parts.push_front(Part::Shared(part.behind(taken)));
                    }
                    bytes - taken
                }
                Part::Payload { piece, first, count } => {
                    let taken = count.min(bytes);
                    payload += taken;
                    if taken < count {
                        let (first, count) = (first + taken, count - taken);
                        self.parts.push_front(Part::Payload { piece, first, count });
                    } else {
                        pool.give_back(piece);
                    }
                    bytes - taken
                }
            };
        }
        self.forget_text();
        payload
    }

    /// Text that is sent takes no memory for long.
    fn forget_text(&mut self) {
        if self.text_sent == self.text.len() {
            self.text.clear();
            self.text_sent = 0;
        } else if self.text_sent > TEXT_BYTES_MAX && self.text_sent > self.text.len() / 2 {
            // Half of it at least, or of a long text all would be moved again and again.
            self.text.drain(..self.text_sent);
            self.text_sent = 0;
        }
    }

    /// Nobody will take it: pieces come back to the pool.
    pub fn clear(&mut self, pool: &mut Pool) {
        for part in self.parts.drain(..) {
            if let Part::Payload { piece, .. } = part {
                pool.give_back(piece);
            }
        }
        self.text.clear();
        (self.text_sent, self.shared) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::testing::buffers;
    use crate::shares::{ClientId, Want};

    #[test]
    fn what_is_sent_is_what_was_put_in_however_it_is_cut() {
        for cut in 1..=14 {
            let mut buffers = buffers();
            let mut pool = Pool::with_counts(&mut buffers, [1, 0, 0]);
            let piece = pool.take(ClientId(0), 4, Want::Last).unwrap();
            buffers.bytes_mut(piece.buffer, 0, 4).copy_from_slice(b"0123");
            let mut send_queue = SendQueue::default();
            send_queue.push_text(b"ab");
            send_queue.push_text(b"c");
            send_queue.push_payload(piece, 1, 3);
            send_queue.push_shared(SharedBytes::from(&b"_xyz"[..]).behind(1));
            send_queue.push_shared(SharedBytes::from(Vec::new()));
            send_queue.push_text(b"defgh");
            let (mut sent, mut payload) = (Vec::new(), 0);
            while !send_queue.is_empty() {
                let mut slices = [IoSlice::new(&[]); 2];
                let used = send_queue.slices(&buffers, &mut slices);
                let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
                let count = cut.min(bytes.len());
                sent.extend_from_slice(&bytes[..count]);
                payload += send_queue.sent(count, &mut pool);
            }
            assert_eq!((sent.as_slice(), payload, pool.lent()), (&b"abc123xyzdefgh"[..], 3, 0), "cut {cut}");
        }
    }

    #[test]
    fn a_cleared_send_queue_gives_its_pieces_back() {
        let mut buffers = buffers();
        let mut pool = Pool::with_counts(&mut buffers, [1, 0, 0]);
        let mut send_queue = SendQueue::default();
        send_queue.push_payload(pool.take(ClientId(0), 1, Want::Last).unwrap(), 0, 1);
        send_queue.push_text(&[0; TEXT_BYTES_MAX / 2]);
        send_queue.push_shared(vec![0; TEXT_BYTES_MAX / 2].into());
        assert!(send_queue.is_long());
        send_queue.clear(&mut pool);
        assert!(send_queue.is_empty() && !send_queue.is_long() && pool.lent() == 0);
    }
}
