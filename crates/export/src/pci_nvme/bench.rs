//! A guest for tests: queues and data in flat memory, and whatever function it finds.

use super::port::{NoSuchPlace, Port};
use super::{BAR0, FlatMemory, Function, GuestMemory, PciFunction, PciId, PretendDrive};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::{Cqe, HostAddress, Sqe};

/// Where the memory begins, and how much there is.
pub(super) const MEMORY: u64 = 0x10_0000;
pub(super) const MEMORY_BYTES: usize = 4 << 20;
/// Entries of every queue.
pub(super) const ENTRIES: u32 = 8;
/// CC that begins.
pub(super) const ENABLE: u32 = 0x46_0001;

/// Where the queues of a number are.
const fn submission_at(qid: u16) -> u64 {
    MEMORY + qid as u64 * 0x2000
}

pub(super) const fn completion_at(qid: u16) -> u64 {
    submission_at(qid) + 0x1000
}

/// Memory behind the queues of numbers 0 to 3, one page.
pub(super) const fn page(index: u64) -> u64 {
    MEMORY + 0x8000 + index * 0x1000
}

/// The command that makes one half of a pair, for tests to spoil.
pub(super) fn create_completion(qid: u16) -> Sqe {
    let cdw10 = (ENTRIES - 1) << 16 | u32::from(qid);
    let sqe = Sqe { opcode: 0x05, cdw10, cdw11: u32::from(qid) << 16 | 3, ..Sqe::default() };
    sqe.with_prps(HostAddress(completion_at(qid)), HostAddress(0))
}

/// The other half.
pub(super) fn create_submission(qid: u16) -> Sqe {
    let cdw10 = (ENTRIES - 1) << 16 | u32::from(qid);
    let sqe = Sqe { opcode: 0x01, cdw10, cdw11: u32::from(qid) << 16 | 1, ..Sqe::default() };
    sqe.with_prps(HostAddress(submission_at(qid)), HostAddress(0))
}

/// A function as the guest of a test finds it.
pub(super) trait Benched {
    /// Its port.
    fn port(&self) -> &Port<FlatMemory>;

    /// The guest writes a region.
    fn write(&mut self, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace>;

    /// It works. True if it did anything.
    fn work(&mut self) -> bool;
}

impl Benched for Function<PretendDrive, FlatMemory> {
    fn port(&self) -> &Port<FlatMemory> {
        &self.port
    }

    fn write(&mut self, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace> {
        PciFunction::write(self, Nanos::ZERO, region, offset, from)
    }

    fn work(&mut self) -> bool {
        self.turn(Nanos::ZERO)
    }
}

/// A guest and its function.
pub(super) struct Bench<F = Function<PretendDrive, FlatMemory>> {
    pub(super) function: F,
    tails: [u32; 4],
    heads: [u32; 4],
    cid: u16,
}

impl Bench {
    /// Powered on, and nothing done.
    pub(super) fn new() -> Self {
        let drive = PretendDrive { is_quick: true, ..PretendDrive::default() };
        let function = Function::new(drive, FlatMemory::new(MEMORY, MEMORY_BYTES), PciId::Qemu);
        Self::of(function)
    }

    /// Enabled, with queue pair 1.
    pub(super) fn ready() -> Self {
        let mut bench = Self::new();
        bench.enable();
        bench.make_queue(1);
        bench
    }
}

impl<F: Benched> Bench<F> {
    /// With this function.
    pub(super) fn of(function: F) -> Self {
        Self { function, tails: [0; 4], heads: [0; 4], cid: 0 }
    }

    pub(super) fn write(&mut self, offset: u64, value: u32) {
        self.function.write(BAR0, offset, &value.to_le_bytes()).expect("a register");
    }

    pub(super) fn read(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.function.port().read(BAR0, offset, &mut bytes).expect("a register");
        u32::from_le_bytes(bytes)
    }

    pub(super) fn csts(&self) -> u32 {
        self.read(0x1C)
    }

    pub(super) fn enable(&mut self) {
        self.enable_with(ENABLE);
    }

    /// The same, with more in CC.
    pub(super) fn enable_with(&mut self, cc: u32) {
        let size = ENTRIES - 1;
        for (offset, value) in
            [(0x24, u64::from(size << 16 | size)), (0x28, submission_at(0)), (0x30, completion_at(0))]
        {
            self.write(offset, u32::try_from(value).expect("low"));
        }
        (self.tails, self.heads) = ([0; 4], [0; 4]);
        self.write(0x14, cc);
    }

    pub(super) fn make_queue(&mut self, qid: u16) {
        let place = usize::from(qid);
        (self.tails[place], self.heads[place]) = (0, 0);
        self.put(completion_at(qid), &[0; 128]);
        assert_eq!(self.admin(create_completion(qid)), Status::SUCCESS);
        assert_eq!(self.admin(create_submission(qid)), Status::SUCCESS);
    }

    pub(super) fn put(&self, at: u64, bytes: &[u8]) {
        self.function.port().memory.write(HostAddress(at), bytes).expect("its own memory");
    }

    pub(super) fn get(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.function.port().memory.read(HostAddress(at), &mut bytes).expect("its own memory");
        bytes
    }

    /// Puts a command into a queue without ringing; its identifier.
    pub(super) fn queue(&mut self, qid: u16, sqe: Sqe) -> u16 {
        let place = usize::from(qid);
        self.cid += 1;
        let at = submission_at(qid) + 64 * u64::from(self.tails[place]);
        self.put(at, &sqe.with_cid(self.cid).encode());
        self.tails[place] = (self.tails[place] + 1) % ENTRIES;
        self.cid
    }

    pub(super) fn tail(&self, qid: u16) -> u32 {
        self.tails[usize::from(qid)]
    }

    pub(super) fn head(&self, qid: u16) -> u32 {
        self.heads[usize::from(qid)]
    }

    pub(super) fn ring(&mut self, qid: u16) {
        self.write(0x1000 + u64::from(qid) * 8, self.tail(qid));
    }

    pub(super) fn submit(&mut self, qid: u16, sqe: Sqe) -> u16 {
        let cid = self.queue(qid, sqe);
        self.ring(qid);
        cid
    }

    /// The function works until it has nothing to do.
    pub(super) fn run(&mut self) {
        for _ in 0..1000 {
            if !self.function.work() {
                return;
            }
        }
        panic!("the function always has something to do");
    }

    /// The next completion of a queue; the head is rung.
    pub(super) fn take(&mut self, qid: u16) -> Option<Cqe> {
        let cqe = self.peek(qid)?;
        let place = usize::from(qid);
        self.heads[place] = (self.heads[place] + 1) % ENTRIES;
        self.write(0x1004 + u64::from(qid) * 8, self.head(qid));
        Some(cqe)
    }

    /// The next completion, if the function's own tail says that there is one.
    pub(super) fn peek(&self, qid: u16) -> Option<Cqe> {
        let head = self.head(qid);
        let queue = self.function.port().completion(qid)?;
        (queue.tail != head).then(|| {
            let bytes = self.get(completion_at(qid) + 16 * u64::from(head), 16);
            Cqe::decode(bytes.as_slice().try_into().expect("16 bytes"))
        })
    }

    /// A command and its completion.
    pub(super) fn carry_out(&mut self, qid: u16, sqe: Sqe) -> Cqe {
        let cid = self.submit(qid, sqe);
        self.run();
        let cqe = self.take(qid).expect("it has ended");
        assert_eq!((cqe.cid, cqe.sqid), (cid, qid));
        cqe
    }

    pub(super) fn admin(&mut self, sqe: Sqe) -> Status {
        self.carry_out(0, sqe).status.status
    }

    pub(super) fn io(&mut self, sqe: Sqe) -> Status {
        self.carry_out(1, sqe).status.status
    }
}
