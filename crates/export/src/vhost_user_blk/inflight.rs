//! Which requests were taken and have not ended, in memory that outlives this process.
//!
//! The frontend keeps the memory and gives it to the next server. If the one before was killed, what it had taken is carried
//! out once more, in the order it came. A part for each ring, padded to 64 bytes:
//!
//! ```text
//!   0 features u64 | 8 version u16 | 10 desc_num u16 | 12 last_batch_head u16 | 14 used_idx u16
//!   16 + 16 i, of the chain that begins with descriptor i:  inflight u8 | 5 unused | next u16 | counter u64
//! ```
//! A chain goes back in four steps ([`RingLog::ends`], the used ring, [`RingLog::ended`] twice), and a kill between any two leaves
//! it either in the used ring or in flight. Source: the vhost-user specification, "Inflight I/O tracking", split virtqueues.
//! Deliberately not here: packed rings, and batches of more than one chain (what other servers left of them is understood).

use super::config::{QUEUES_MAX, RING_SIZE_MAX};
use super::memory::{Memory, Place};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::sync::atomic::Ordering;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Places in a part.
const VERSION: u64 = 8;
const COUNT: u64 = 10;
const LAST: u64 = 12;
const USED: u64 = 14;
/// Bytes before the states, and of a state; places in it.
const HEAD_BYTES: u64 = 16;
const STATE_BYTES: u64 = 16;
const NEXT: u64 = 6;
const COUNTER: u64 = 8;
/// What a part is padded to: QEMU's library does so, and memory may go from one server to another.
const PART_ALIGNMENT: u64 = 64;
/// The only version there is.
const VERSION_1: u16 = 1;

/// The shape of such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rings.
    pub rings: u16,
    /// Descriptors of each.
    pub size: u16,
}

impl Shape {
    /// Bytes of a ring's part.
    const fn part_bytes(self) -> u64 {
        (HEAD_BYTES + STATE_BYTES * self.size as u64).next_multiple_of(PART_ALIGNMENT)
    }

    /// Bytes of all.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.part_bytes() * self.rings as u64
    }

    /// # Errors
    /// A sentence, if rings of this device are not such.
    pub fn check(self) -> Result<(), String> {
        let is_sound = (1..=QUEUES_MAX).contains(&self.rings)
            && self.size.is_power_of_two()
            && self.size <= RING_SIZE_MAX;
        if is_sound {
            return Ok(());
        }
        Err(format!(
            "expected memory for requests in flight of 1 to {QUEUES_MAX} rings of a power of two up to {RING_SIZE_MAX}, found \
             {} of {}",
            self.rings, self.size
        ))
    }

    /// Fresh memory of this shape.
    ///
    /// # Errors
    /// A sentence, if the system has none.
    pub fn file(self) -> Result<File, String> {
        let made = rustix::fs::memfd_create("in-flight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let file = made.map(File::from).map_err(std::io::Error::from);
        let sized = file.and_then(|file| file.set_len(self.bytes()).map(|()| file));
        sized.map_err(|error| format!("there is no memory for requests in flight: {error}"))
    }

    /// Maps memory that a frontend gave: the logs of its rings.
    ///
    /// # Errors
    /// A sentence, if it is not of this shape.
    pub fn map(self, file: File, bytes: u64, offset: u64) -> Result<Vec<RingLog>, String> {
        self.check()?;
        if bytes < self.bytes() {
            return Err(format!(
                "memory for requests in flight has {bytes} bytes, and {} of its rings' are needed",
                self.bytes()
            ));
        }
        let mut memory = Memory::default();
        memory.add(Place { guest: 0, user: 0, bytes: self.bytes() }, file, offset)?;
        let mapped = memory.mapped();
        let log = |ring: u16| {
            let at = self.part_bytes() * u64::from(ring);
            RingLog { memory: mapped.clone(), at, size: self.size, counter: 0 }
        };
        Ok((0..self.rings).map(log).collect())
    }
}

/// The part of a ring.
#[derive(Debug)]
pub struct RingLog {
    memory: GuestMemoryMmap,
    at: u64,
    size: u16,
    counter: u64,
}

/// Why reading and writing do not fail.
const MAPPED: &str = "the part was mapped whole";

impl RingLog {
    /// Before a ring of `ring_size` descriptors begins, whose used index is `used`: what the server before took and did not
    /// end, in the order it took it.
    ///
    /// # Errors
    /// A sentence, if the memory is of another shape, or says what cannot be.
    pub fn resume(&mut self, ring_size: u16, used: u16) -> Result<Vec<u16>, String> {
        let (version, count) = (self.word(VERSION), self.word(COUNT));
        if ring_size > self.size {
            return Err(format!(
                "a ring of {ring_size} descriptors begins, and its memory for requests in flight is for {}",
                self.size
            ));
        }
        if version == 0 {
            self.put_word(COUNT, self.size);
            self.put_word(USED, used);
            self.put_word(VERSION, VERSION_1);
        } else if (version, count) != (VERSION_1, self.size) {
            return Err(format!(
                "memory for requests in flight is of version {version} with {count} descriptors; expected 1 with {}",
                self.size
            ));
        }
        self.settle(used)?;
        let mut found: Vec<(u64, u16)> = Vec::new();
        for head in (0..self.size).filter(|head| self.is_in_flight(*head)) {
            let counter = self.memory.load(GuestAddress(self.state(head) + COUNTER), Ordering::Relaxed);
            found.push((u64::from_le(counter.expect(MAPPED)), head));
        }
        found.sort_unstable();
        if let Some((_, head)) = found.iter().find(|(_, head)| *head >= ring_size) {
            return Err(format!("chain {head} is said to be in flight in a ring of {ring_size} descriptors"));
        }
        self.counter = found.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        Ok(found.into_iter().map(|(_, head)| head).collect())
    }

    /// What was put into the used ring before a kill, and not noted as ended.
    fn settle(&self, used: u16) -> Result<(), String> {
        let mut head = self.word(LAST);
        for _ in 0..used.wrapping_sub(self.word(USED)).min(self.size) {
            if head >= self.size {
                return Err(format!(
                    "chain {head} is said to have ended in a ring of {} descriptors",
                    self.size
                ));
            }
            self.put_state(head, 0);
            let next = self.memory.load(GuestAddress(self.state(head) + NEXT), Ordering::Relaxed);
            head = u16::from_le(next.expect(MAPPED));
        }
        self.put_word(USED, used);
        Ok(())
    }

    /// A chain was taken. One that the ring cannot have is not noted: its request will not be answered.
    pub fn taken(&mut self, head: u16) {
        if head >= self.size {
            return;
        }
        let place = GuestAddress(self.state(head) + COUNTER);
        self.memory.store(self.counter.to_le(), place, Ordering::Relaxed).expect(MAPPED);
        self.counter = self.counter.wrapping_add(1);
        self.put_state(head, 1);
    }

    /// A chain will be put into the used ring next.
    pub fn ends(&self, head: u16) {
        assert!(head < self.size, "chain {head} of a log of {} ends", self.size);
        let place = GuestAddress(self.state(head) + NEXT);
        self.memory.store(self.word(LAST).to_le(), place, Ordering::Relaxed).expect(MAPPED);
        self.put_word(LAST, head);
    }

    /// It was, and `used` is the ring's index now.
    pub fn ended(&self, head: u16, used: u16) {
        self.put_state(head, 0);
        self.put_word(USED, used);
    }

    /// Nothing is in flight: the driver began anew.
    pub fn forget(&self) {
        (0..self.size).for_each(|head| self.put_state(head, 0));
        self.put_word(USED, 0);
    }

    fn is_in_flight(&self, head: u16) -> bool {
        self.memory.load::<u8>(GuestAddress(self.state(head)), Ordering::Acquire).expect(MAPPED) == 1
    }

    fn state(&self, head: u16) -> u64 {
        self.at + HEAD_BYTES + STATE_BYTES * u64::from(head)
    }

    fn put_state(&self, head: u16, in_flight: u8) {
        self.memory.store(in_flight, GuestAddress(self.state(head)), Ordering::Release).expect(MAPPED);
    }

    fn word(&self, place: u64) -> u16 {
        u16::from_le(self.memory.load(GuestAddress(self.at + place), Ordering::Acquire).expect(MAPPED))
    }

    fn put_word(&self, place: u64, word: u16) {
        self.memory.store(word.to_le(), GuestAddress(self.at + place), Ordering::Release).expect(MAPPED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rings: 2, size: 8 };

    /// The logs of memory that a server before left.
    fn map(file: &File) -> Vec<RingLog> {
        SHAPE.map(file.try_clone().unwrap(), SHAPE.bytes(), 0).unwrap()
    }

    #[test]
    fn what_was_taken_and_did_not_end_is_found_in_its_order() {
        let file = SHAPE.file().unwrap();
        let mut log = map(&file).pop().unwrap();
        assert_eq!(log.resume(8, 65_530), Ok(vec![]));
        for head in [5, 0, 7, 2] {
            log.taken(head);
        }
        log.ends(0);
        log.ended(0, 65_531);
        log.taken(1);
        drop(log);
        let mut logs = map(&file);
        assert_eq!(logs[1].resume(8, 65_531), Ok(vec![5, 7, 2, 1]));
        assert_eq!(logs[0].resume(8, 3), Ok(vec![]), "another ring's is its own");
        // What comes later is later after another kill, too.
        logs[1].taken(0);
        assert_eq!(map(&file)[1].resume(8, 65_531), Ok(vec![5, 7, 2, 1, 0]));
        logs[1].forget();
        assert_eq!(map(&file)[1].resume(8, 0), Ok(vec![]));
    }

    #[test]
    fn a_kill_at_any_step_leaves_a_chain_used_or_in_flight() {
        // Steps: taken, about to end, used, noted as not in flight, noted as used.
        for steps in 0..=5 {
            let file = SHAPE.file().unwrap();
            let mut log = map(&file).remove(0);
            log.resume(8, 9).unwrap();
            log.taken(4);
            let mut used = 9;
            for step in 0..steps {
                match step {
                    0 => log.taken(3),
                    1 => log.ends(3),
                    2 => used += 1,
                    3 => log.put_state(3, 0),
                    _ => log.ended(3, used),
                }
            }
            let again = map(&file).remove(0).resume(8, used).unwrap();
            let expected = if steps == 1 || steps == 2 { vec![4, 3] } else { vec![4] };
            assert_eq!(again, expected, "{steps} steps");
        }
    }

    #[test]
    fn a_batch_that_another_server_left_half_noted_is_understood() {
        let file = SHAPE.file().unwrap();
        let mut log = map(&file).remove(0);
        log.resume(8, 0).unwrap();
        [1, 2, 3, 6].iter().for_each(|head| log.taken(*head));
        [2, 6, 1].iter().for_each(|head| log.ends(*head));
        assert_eq!(map(&file).remove(0).resume(8, 3), Ok(vec![3]));
    }

    #[test]
    fn memory_that_cannot_be_is_refused_with_a_sentence() {
        for (rings, size) in [(0, 8), (17, 8), (1, 0), (1, 9), (1, 2048)] {
            let error = Shape { rings, size }.check().unwrap_err();
            assert!(error.contains(&format!("found {rings} of {size}")), "{error}");
        }
        let bytes = SHAPE.bytes();
        let error = SHAPE.map(SHAPE.file().unwrap(), bytes - 1, 0).unwrap_err();
        assert!(error.contains("383 bytes"), "{error}");
        let error = SHAPE.map(SHAPE.file().unwrap(), bytes, 4096).unwrap_err();
        assert!(error.contains("ends at byte 384"), "{error}");
        let said = |write: &dyn Fn(&mut RingLog), ring_size: u16| {
            let mut log = map(&SHAPE.file().unwrap()).remove(0);
            log.resume(8, 0).unwrap();
            write(&mut log);
            log.resume(ring_size, 1).unwrap_err()
        };
        let cases = [
            (said(&|log| log.put_word(VERSION, 2), 8), "version 2"),
            (said(&|log| log.put_word(COUNT, 4), 8), "4 descriptors"),
            (said(&|log| log.put_word(LAST, 8), 8), "chain 8 is said to have ended"),
            (said(&|_| (), 16), "a ring of 16 descriptors"),
            (said(&|log| log.taken(5), 4), "chain 5 is said to be in flight in a ring of 4"),
        ];
        for (error, expected) in cases {
            assert!(error.contains(expected), "{error}");
        }
    }
}
