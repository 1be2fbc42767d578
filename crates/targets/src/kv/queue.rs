//! Requests that wait, in the order in which they were taken, and the keys that changes among them name.
//!
//! Names are noted when the first read comes that would pass, so whoever only stores pays nothing for them. Deliberately not
//! here: what passes (`serve`), and what is carried out.

use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::key_value::{BatchEntry, KEY_BYTES_MAX, Key, KvOp, KvRequest};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Requests that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    requests: VecDeque<KvRequest>,
    /// Of these, so many from the first on have their names noted.
    noted: usize,
    /// Requests that left.
    left: u64,
    /// Keys that changes name, in their order, each with how many requests are before the one that names it since the first of all.
    names: VecDeque<(u64, Vec<u8>)>,
    /// How often each of these is named.
    named: BTreeMap<Vec<u8>, u32>,
}

impl Queue {
    pub fn push(&mut self, request: KvRequest) {
        self.requests.push_back(request);
    }

    /// The request whose turn it is.
    pub fn first(&self) -> Option<&KvRequest> {
        self.requests.front()
    }

    /// The first request was carried out.
    pub fn pop(&mut self) {
        let request = self.requests.pop_front();
        assert!(request.is_some(), "a request left an empty queue");
        self.left += 1;
        self.noted = self.noted.saturating_sub(1);
        while let Some((_, key)) = self.names.pop_front_if(|(nth, _)| *nth < self.left) {
            let times = self.named.get_mut(&key).expect("each name was counted");
            assert!(*times > 0, "a name was counted down twice");
            *times -= 1;
            if *times == 0 {
                self.named.remove(&key);
            }
        }
        assert!(self.noted > 0 || self.named.is_empty(), "names are left of requests that are gone");
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// True if a change that waits names this key.
    pub fn names(&mut self, key: &[u8], buffers: &Buffers) -> bool {
        self.note(buffers);
        self.named.contains_key(key)
    }

    /// True if a change that waits names a key with this prefix, that one or one behind it.
    pub fn names_any(&mut self, from: &[u8], prefix: &[u8], buffers: &Buffers) -> bool {
        assert!(from.starts_with(prefix), "a listing begins before its prefix");
        self.note(buffers);
        let next = self.named.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        next.is_some_and(|(key, _)| key.starts_with(prefix))
    }

    /// Notes the names of requests that came since the last time.
    fn note(&mut self, buffers: &Buffers) {
        for (nth, request) in (0..).zip(&self.requests).skip(self.noted) {
            for key in names_of(&request.op, buffers) {
                *self.named.entry(key.clone()).or_default() += 1;
                self.names.push_back((self.left + nth, key));
            }
        }
        self.noted = self.requests.len();
    }
}

/// The keys that a change names; those that no value can have are left out, for it will be refused.
fn names_of(op: &KvOp, buffers: &Buffers) -> Vec<Vec<u8>> {
    let sound = |key: Key| {
        let is_sound = key.bytes() <= KEY_BYTES_MAX && key.lies_within(buffers);
        is_sound.then(|| key.gathered(buffers))
    };
    match *op {
        KvOp::Store { key, .. } | KvOp::Delete { key, .. } => sound(key).into_iter().collect(),
        KvOp::Batch { entries, .. } if entries.lies_within(buffers) => {
            let entries: Vec<BatchEntry> = entries.entries(buffers).flatten().collect();
            entries.into_iter().filter_map(|entry| sound(entry.key)).collect()
        }
        KvOp::Batch { .. }
        | KvOp::Retrieve { .. }
        | KvOp::Exist { .. }
        | KvOp::List { .. }
        | KvOp::Stage(_)
        | KvOp::Flush
        | KvOp::Shutdown => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::key_value::{AbsentKey, BatchChange};
    use ocssd_lightnvm::interface::{Durability, List};
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat, Tag};

    const DURABILITY: Durability = Durability::AtFlush;
    const ABSENT: AbsentKey = AbsentKey::Success;

    fn buffers() -> Buffers {
        Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 4)))
    }

    fn key(name: &[u8]) -> Key {
        Key::inline(name).expect("a short key")
    }

    fn delete(name: &[u8]) -> KvRequest {
        let op = KvOp::Delete { key: key(name), absent: ABSENT, durability: DURABILITY };
        KvRequest { tag: Tag(1), op }
    }

    fn batch(names: &[&[u8]], buffers: &mut Buffers) -> KvRequest {
        let change = BatchChange::Delete { absent: ABSENT };
        let entries: Vec<BatchEntry> =
            names.iter().map(|name| BatchEntry { key: key(name), change }).collect();
        let table = buffers.take_whole(4);
        let entries = List::write(buffers, table, &entries);
        KvRequest { tag: Tag(2), op: KvOp::Batch { entries, durability: DURABILITY } }
    }

    #[test]
    fn a_key_is_named_until_the_last_change_that_names_it_left() {
        let (mut buffers, mut queue) = (buffers(), Queue::default());
        queue.push(delete(b"both"));
        queue.push(KvRequest { tag: Tag(3), op: KvOp::Exist { key: key(b"read") } });
        assert!(queue.names(b"both", &buffers) && !queue.names(b"read", &buffers));
        let more = batch(&[b"both", b"batch", b"both"], &mut buffers);
        queue.push(more);
        for (left, expected) in [(0, [true, true]), (1, [true, true]), (2, [true, true]), (3, [false; 2])] {
            let found = [&b"both"[..], b"batch"].map(|name| queue.names(name, &buffers));
            assert_eq!((queue.len(), found), (3 - left, expected), "{left} left");
            if left < 3 {
                queue.pop();
            }
        }
        assert!(queue.is_empty() && queue.named.is_empty() && queue.names.is_empty());
        // Requests that come and leave without a read are never looked through.
        queue.push(delete(b"one"));
        queue.push(delete(b"two"));
        queue.pop();
        assert!(queue.names.is_empty(), "nobody asked");
        assert!(queue.names(b"two", &buffers) && !queue.names(b"one", &buffers));
    }

    #[test]
    fn a_listing_is_named_by_any_key_it_may_show() {
        let (buffers, mut queue) = (buffers(), Queue::default());
        queue.push(delete(b"ab5"));
        let cases = [("ab", 2, true), ("ab5", 0, true), ("ab6", 2, false), ("a", 0, true), ("ac", 1, false)];
        for (from, prefix, expected) in cases {
            let found = queue.names_any(from.as_bytes(), &from.as_bytes()[..prefix], &buffers);
            assert_eq!(found, expected, "from {from} with {prefix} bytes of it");
        }
        assert!(!queue.names_any(b"b", b"", &buffers), "it lies before");
    }

    #[test]
    fn what_no_key_can_be_is_named_by_nothing() {
        let (mut buffers, mut queue) = (buffers(), Queue::default());
        let table = buffers.take_whole(1);
        let beyond = KvOp::Batch { entries: List::new(table, 100_000), durability: DURABILITY };
        queue.push(KvRequest { tag: Tag(1), op: beyond });
        let piece = ocssd_lightnvm::interface::Piece { buffer: table, first_byte: 4_000, bytes: 200 };
        let op = KvOp::Delete { key: Key::Placed(piece), absent: ABSENT, durability: DURABILITY };
        queue.push(KvRequest { tag: Tag(2), op });
        assert!(!queue.names(&[0; 200], &buffers) && queue.named.is_empty());
    }
}
