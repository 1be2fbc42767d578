//! A block target in memory that works in any order it may: reads whenever, changes of a sector in the order they came.

use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Status, Target};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

pub const SECTOR: usize = 4096;

/// What a test sees and sets of a disk that a target owns.
pub struct Disk {
    pub content: Vec<u8>,
    /// Sectors whose reads fail.
    pub unreadable: BTreeSet<u64>,
    /// Sectors whose reads end with High ECC.
    pub weak: BTreeSet<u64>,
    /// Requests taken and not answered.
    pub queue: VecDeque<BlockRequest>,
    /// Requests it takes at once.
    pub depth: usize,
    /// It works on nothing.
    pub is_stopped: bool,
    /// Everything it was asked, in order.
    pub asked: Vec<BlockRequest>,
    pub refused: u64,
    done: VecDeque<BlockReply>,
    prng: Prng,
    is_shut_down: bool,
}

pub type Handle = Rc<RefCell<Disk>>;

/// The target, and a handle on it.
pub struct Shared(Handle);

/// A disk of so many sectors.
pub fn disk(sectors: usize, depth: usize, seed: u64) -> (Box<dyn BlockTarget>, Handle) {
    let disk = Disk {
        content: vec![0; sectors * SECTOR],
        unreadable: BTreeSet::new(),
        weak: BTreeSet::new(),
        queue: VecDeque::new(),
        depth,
        is_stopped: false,
        asked: Vec::new(),
        refused: 0,
        done: VecDeque::new(),
        prng: Prng::new(seed),
        is_shut_down: false,
    };
    let handle = Rc::new(RefCell::new(disk));
    (Box::new(Shared(Rc::clone(&handle))), handle)
}

fn overlap(a: &BlockRequest, b: &BlockRequest) -> bool {
    a.block < b.block + u64::from(b.count) && b.block < a.block + u64::from(a.count)
}

impl Disk {
    /// A request that may be done now.
    fn choose(&mut self) -> Option<usize> {
        let free: Vec<usize> = (0..self.queue.len())
            .filter(|&place| {
                let request = &self.queue[place];
                let mut earlier = self.queue.iter().take(place);
                match request.op {
                    BlockOp::Read => true,
                    BlockOp::Flush | BlockOp::Shutdown => place == 0,
                    _ => !earlier.any(|other| other.op != BlockOp::Read && overlap(other, request)),
                }
            })
            .collect();
        let count = u64::try_from(free.len()).expect("few");
        (count > 0).then(|| free[usize::try_from(self.prng.below(count)).expect("few")])
    }

    fn do_one(&mut self, request: &BlockRequest, buffers: &mut Buffers) -> Status {
        let place = |sector: u64| usize::try_from(sector).expect("few") * SECTOR;
        let range = place(request.block)..place(request.block + u64::from(request.count));
        let sectors = request.block..request.block + u64::from(request.count);
        match request.op {
            BlockOp::Read => {
                if self.unreadable.range(sectors.clone()).next().is_some() {
                    return Status::UNRECOVERED_READ;
                }
                let buffer = request.buffer.expect("a read has a buffer");
                buffers.data_mut(buffer, 0, request.count).copy_from_slice(&self.content[range]);
                if self.weak.range(sectors).next().is_some() {
                    return Status::HIGH_ECC;
                }
            }
            BlockOp::Write { .. } => {
                let buffer = request.buffer.expect("a write has a buffer");
                self.content[range].copy_from_slice(buffers.data(buffer, 0, request.count));
            }
            BlockOp::Discard | BlockOp::WriteZeroes => self.content[range].fill(0),
            BlockOp::Shutdown => self.is_shut_down = true,
            BlockOp::Flush => {}
            BlockOp::ResetZone => unreachable!("a disk has no zones"),
        }
        Status::SUCCESS
    }
}

impl Target for Shared {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        let request = *request;
        let mut disk = self.0.borrow_mut();
        assert!(!disk.is_shut_down, "{request:?} came after the shutdown");
        let end = request.block + u64::from(request.count);
        assert!(usize::try_from(end).expect("few") * SECTOR <= disk.content.len(), "{request:?} is outside");
        if disk.queue.len() + disk.done.len() >= disk.depth {
            disk.refused += 1;
            return Admission::Full;
        }
        disk.asked.push(request);
        disk.queue.push_back(request);
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _out: &mut Out<BlockReply>) {
        unreachable!("completion {} of no command", completion.tag.0);
    }

    /// Does one request each time, now and then none, and replies to one or none.
    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        let mut disk = self.0.borrow_mut();
        let works = !disk.is_stopped && disk.prng.below(3) > 0;
        if works && let Some(place) = disk.choose() {
            let request = disk.queue.remove(place).expect("just seen");
            let status = disk.do_one(&request, &mut out.buffers);
            disk.done.push_back(BlockReply { tag: request.tag, status, violation: None });
        }
        if disk.prng.below(2) > 0
            && let Some(reply) = disk.done.pop_front()
        {
            out.reply(reply);
        }
    }

    fn check(&self) {}
}

impl BlockTarget for Shared {
    fn block_bytes(&self) -> u32 {
        4096
    }

    fn block_count(&self) -> u64 {
        u64::try_from(self.0.borrow().content.len() / SECTOR).expect("few")
    }

    fn zones(&self) -> Option<Zones> {
        None
    }

    fn write_unit(&self) -> u32 {
        1
    }

    fn unreadable_tail(&self) -> u64 {
        0
    }

    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a disk");
    }
}
