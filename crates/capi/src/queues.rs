//! Queue pairs: how many commands are in progress, whose each is, and completions that wait to be told.
//!
//! Deliberately not here: the drive, and calling back; that is done by whoever polls, with nothing locked.

use crate::failure::Failure;
use ocssd_base::{Slab, SlabKey};
use ocssd_nvme::Cqe;
use std::collections::VecDeque;
use std::ffi::c_void;

/// How a command ended: the 16-byte completion entry, byte for byte on little-endian machines.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// DW1:DW0. Of vector commands the bitmap of entries that failed, bit 0 the first.
    pub result: u64,
    /// Submission queue head: entries taken from the queue so far, modulo its depth.
    pub sq_head: u16,
    /// The queue: 0 admin, and of commands that were waited for.
    pub sq_id: u16,
    /// The command's identifier.
    pub cid: u16,
    /// Bit 0 the phase tag, bits 11:1 the status (SCT and SC), bit 15 DNR: doing the same again would fail again.
    pub status: u16,
}

const _: () = assert!(size_of::<Completion>() == Cqe::BYTES);

impl Completion {
    /// Of the wire's.
    pub fn of(cqe: &Cqe) -> Self {
        let status = cqe.status.to_bits() << 1 | u16::from(cqe.phase);
        Self { result: cqe.failed_entries(), sq_head: cqe.sqhd, sq_id: cqe.sqid, cid: cqe.cid, status }
    }

    /// SCT and SC as one number, 0 for success.
    pub const fn status_code(self) -> u16 {
        self.status >> 1 & 0x7FF
    }
}

/// Called by `ocssd_queue_poll` when a command has ended. It may submit, and call everything but polls and closes of the
/// queue that calls it. It must return: no longjmp, no C++ exception.
pub type CommandEnded = Option<unsafe extern "C" fn(context: *mut c_void, completion: *const Completion)>;

/// Which queue of a drive: 0 is the admin queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId(pub u16);

impl QueueId {
    /// The admin queue.
    pub const ADMIN: Self = Self(0);
    /// Of commands that are waited for.
    pub const WAITED_FOR: Self = Self(u16::MAX);

    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Somebody who waits for a command.
#[derive(Clone, Copy)]
pub struct Waiter {
    /// Whom to call.
    pub ended: CommandEnded,
    /// What with.
    pub context: *mut c_void,
    /// The identifier the caller gave the command.
    pub cid: u16,
}

/// A queue pair.
pub struct Queue {
    depth: u32,
    in_progress: Slab<Waiter>,
    /// Event requests the controller holds, of the admin queue.
    events: usize,
    ended: VecDeque<(Waiter, Completion)>,
    /// Commands taken, and completions posted, ever.
    taken: u64,
    posted: u64,
}

/// Most commands of a queue: NVMe's queues have at most 65535 entries in use, as do their identifiers.
pub const DEPTH_MAX: u32 = 65_535;

impl Queue {
    fn new(depth: u32) -> Self {
        Self { depth, in_progress: Slab::new(depth), events: 0, ended: VecDeque::new(), taken: 0, posted: 0 }
    }

    /// Whether one more command has a place.
    pub fn has_room(&self) -> Result<(), Failure> {
        let held = self.in_progress.len() + self.events + self.ended.len();
        if u32::try_from(held).expect("at most the depth") < self.depth {
            return Ok(());
        }
        let text = format!("the queue has {held} commands, as many as its depth; poll, and submit again");
        Err(Failure::new(libc::EAGAIN, text))
    }

    /// A place for a command; its number is the identifier that the controller sees.
    pub fn take(&mut self, waiter: Waiter) -> Result<u16, Failure> {
        self.has_room()?;
        let key = self.in_progress.insert(waiter).unwrap_or_else(|_| unreachable!("there is room"));
        self.taken += 1;
        Ok(u16::try_from(key.0).expect("below the largest depth"))
    }

    /// The command was not taken after all.
    pub fn give_back(&mut self, place: u16) {
        self.in_progress.remove(SlabKey(u32::from(place)));
        self.taken -= 1;
    }

    /// The controller has completed the command at a place.
    fn post(&mut self, cqe: &Cqe) {
        let waiter = self.in_progress.remove(SlabKey(u32::from(cqe.cid)));
        self.post_to(waiter, cqe);
    }

    /// A completion for somebody.
    fn post_to(&mut self, waiter: Waiter, cqe: &Cqe) {
        let depth = u64::from(self.depth);
        let sqhd = u16::try_from(self.taken % depth).expect("below the depth");
        // The first pass through the completion queue has phase 1 (NVMe base 1.4 section 4.6).
        let phase = (self.posted / depth).is_multiple_of(2);
        self.posted += 1;
        self.ended.push_back((waiter, Completion::of(&Cqe { sqhd, phase, cid: waiter.cid, ..*cqe })));
    }

    /// Whether a completion waits to be told.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The next completion to tell.
    pub fn tell(&mut self) -> Option<(Waiter, Completion)> {
        self.ended.pop_front()
    }

    /// Commands in progress that the drive will end by itself.
    pub fn in_drive(&self) -> usize {
        self.in_progress.len()
    }
}

/// Most event requests: what the controller holds (4), and those of admin queues that were closed with some.
const EVENTS_MAX: u32 = 8;

/// All queue pairs of a drive.
pub struct Queues {
    list: Vec<Option<Queue>>,
    /// Event requests the controller holds, and for whom; `None` if the admin queue they came from is closed.
    events: Slab<Option<Waiter>>,
}

impl Queues {
    /// None.
    pub fn new() -> Self {
        Self { list: vec![None], events: Slab::new(EVENTS_MAX) }
    }

    /// Opens the admin queue, or the next I/O queue.
    pub fn open(&mut self, is_admin: bool, depth: u32) -> Result<QueueId, Failure> {
        if !(1..=DEPTH_MAX).contains(&depth) {
            let text = format!("a queue has a depth of 1 to {DEPTH_MAX}, but {depth} was asked for");
            return Err(Failure::invalid(text));
        }
        if is_admin {
            if self.list[0].is_some() {
                return Err(Failure::new(
                    libc::EBUSY,
                    "the drive has one admin queue, which is open already",
                ));
            }
            self.list[0] = Some(Queue::new(depth));
            return Ok(QueueId::ADMIN);
        }
        let free = self.list.iter().skip(1).position(Option::is_none).map(|place| place + 1);
        let place = free.unwrap_or(self.list.len());
        let id = u16::try_from(place).ok().map(QueueId).filter(|&id| id != QueueId::WAITED_FOR);
        let id = id.ok_or_else(|| Failure::new(libc::EMFILE, "a drive has at most 65534 I/O queues"))?;
        if place == self.list.len() {
            self.list.push(None);
        }
        self.list[place] = Some(Queue::new(depth));
        Ok(id)
    }

    /// An open queue.
    ///
    /// # Panics
    /// If it is not open: handles keep theirs open.
    pub fn get(&mut self, id: QueueId) -> &mut Queue {
        self.list[id.index()].as_mut().expect("a handle's queue is open")
    }

    /// Closes a queue. Event requests stay with the controller, and their ends are nobody's.
    pub fn close(&mut self, id: QueueId) -> Result<(), Failure> {
        let queue = self.get(id);
        let outstanding = queue.in_drive() + queue.ended.len();
        if outstanding > 0 {
            let text = format!("{outstanding} commands of the queue were not told yet; poll until all are");
            return Err(Failure::new(libc::EBUSY, text));
        }
        if id == QueueId::ADMIN {
            let held: Vec<SlabKey> = self.events.iter().map(|(key, _)| key).collect();
            held.into_iter().for_each(|key| *self.events.get_mut(key) = None);
        }
        self.list[id.index()] = None;
        Ok(())
    }

    /// The controller has completed a command of an I/O queue.
    pub fn post(&mut self, id: QueueId, cqe: &Cqe) {
        self.get(id).post(cqe);
    }

    /// An admin command was completed at once.
    pub fn post_admin(&mut self, waiter: Waiter, cqe: &Cqe) {
        let queue = self.get(QueueId::ADMIN);
        queue.taken += 1;
        queue.post_to(waiter, cqe);
    }

    /// A place for an event request; its number is the identifier that the controller sees.
    pub fn take_event(&mut self, waiter: Waiter) -> Result<u16, Failure> {
        let full = |_| Failure::new(libc::EAGAIN, "the drive holds as many event requests as it can");
        let key = self.events.insert(Some(waiter)).map_err(full)?;
        Ok(u16::try_from(key.0).expect("a few"))
    }

    /// The controller holds the event request.
    pub fn event_is_held(&mut self) {
        let queue = self.get(QueueId::ADMIN);
        queue.taken += 1;
        queue.events += 1;
    }

    /// The controller took no event request.
    pub fn give_back_event(&mut self, place: u16) {
        self.events.remove(SlabKey(u32::from(place)));
    }

    /// The controller has completed an event request.
    pub fn post_event(&mut self, cqe: &Cqe) {
        let waiter = self.events.remove(SlabKey(u32::from(cqe.cid)));
        if let Some(waiter) = waiter {
            let queue = self.get(QueueId::ADMIN);
            queue.events -= 1;
            queue.post_to(waiter, cqe);
        }
    }

    /// Queues that are open.
    pub fn open_count(&self) -> usize {
        self.list.iter().flatten().count()
    }

    /// Completions that wait to be told, of all queues.
    pub fn ended(&self) -> usize {
        self.list.iter().flatten().map(|queue| queue.ended.len()).sum()
    }

    /// Commands in progress that the drive will end, of all queues.
    pub fn in_drive(&self) -> usize {
        self.list.iter().flatten().map(Queue::in_drive).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_nvme::StatusField;

    fn waiter(cid: u16) -> Waiter {
        Waiter { ended: None, context: std::ptr::null_mut(), cid }
    }

    fn cqe(cid: u16) -> Cqe {
        Cqe { dw0: 1, dw1: 2, sqhd: 0, sqid: 1, cid, phase: false, status: StatusField::SUCCESS }
    }

    #[test]
    fn a_queue_takes_as_many_as_its_depth_until_they_are_told() {
        let mut queues = Queues::new();
        let id = queues.open(false, 2).unwrap();
        let places = [7, 7].map(|cid| queues.get(id).take(waiter(cid)).unwrap());
        assert_eq!(queues.get(id).take(waiter(9)).err().unwrap().errno, libc::EAGAIN);
        queues.post(id, &cqe(places[1]));
        assert_eq!(queues.get(id).take(waiter(9)).err().unwrap().errno, libc::EAGAIN);
        assert_eq!(queues.close(id).err().unwrap().errno, libc::EBUSY);
        let (_, told) = queues.get(id).tell().unwrap();
        assert_eq!((told.cid, told.result, told.status), (7, 2 << 32 | 1, 1));
        assert!(queues.get(id).take(waiter(9)).is_ok());
    }

    #[test]
    fn head_and_phase_are_those_of_a_ring() {
        let mut queues = Queues::new();
        let id = queues.open(false, 2).unwrap();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let place = queues.get(id).take(waiter(0)).unwrap();
            queues.post(id, &cqe(place));
            let (_, told) = queues.get(id).tell().unwrap();
            seen.push((told.sq_head, told.status & 1));
        }
        assert_eq!(seen, [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)]);
    }

    #[test]
    fn numbers_of_queues_are_used_again_and_there_is_one_admin_queue() {
        let mut queues = Queues::new();
        let ids = [(); 3].map(|()| queues.open(false, 1).unwrap().0);
        assert_eq!(ids, [1, 2, 3]);
        queues.close(QueueId(2)).unwrap();
        assert_eq!(queues.open(false, 1).unwrap(), QueueId(2));
        assert_eq!(queues.open(true, 1).unwrap(), QueueId::ADMIN);
        assert_eq!(queues.open(true, 1).err().unwrap().errno, libc::EBUSY);
        for depth in [0, DEPTH_MAX + 1] {
            assert_eq!(queues.open(false, depth).err().unwrap().errno, libc::EINVAL);
        }
    }

    #[test]
    fn events_of_a_closed_admin_queue_are_nobodys() {
        let mut queues = Queues::new();
        queues.open(true, 4).unwrap();
        let left = queues.take_event(waiter(1)).unwrap();
        queues.event_is_held();
        queues.close(QueueId::ADMIN).unwrap();
        queues.open(true, 4).unwrap();
        let place = queues.take_event(waiter(5)).unwrap();
        queues.event_is_held();
        queues.post_event(&cqe(left));
        assert!(!queues.get(QueueId::ADMIN).has_ended());
        queues.post_event(&cqe(place));
        assert_eq!(queues.get(QueueId::ADMIN).tell().unwrap().1.cid, 5);
    }
}
