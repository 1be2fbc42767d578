//! Guests of targets, whose namespaces are disks in memory and the simulator's models.

mod hostile;
mod pages_and_keys;
mod sound;
mod tables;
mod zones;

use super::super::bench::{Bench, Benched, ENABLE, ENTRIES, MEMORY, MEMORY_BYTES, page};
use super::super::memory::FlatMemory;
use super::super::port::{NoSuchPlace, Port};
use super::{Attended, TargetFunction};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::nvme_subsystem::{Subsystem, SubsystemConfig};
use crate::pci_nvme::PciFunction;
use crate::shares::ClientId;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{Cqe, HostAddress, Lba, Sqe};

/// The function, with what a server has beside it.
struct Served {
    function: TargetFunction<FlatMemory>,
    dispatcher: Dispatcher,
    disks: MemoryDisks,
    /// Targets do nothing.
    is_stuck: bool,
}

impl Benched for Served {
    fn port(&self) -> &Port<FlatMemory> {
        &self.function.port
    }

    fn write(&mut self, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace> {
        self.attended().write(Nanos::ZERO, region, offset, from)
    }

    fn work(&mut self) -> bool {
        let mut any = self.function.take(&mut self.dispatcher);
        if !self.is_stuck {
            self.disks.take(&mut self.dispatcher);
            while self.disks.carry_out(0, &mut self.dispatcher) {
                any = true;
            }
        }
        self.disks.tell_changed_zones(&mut self.dispatcher);
        while let Some(done) = self.dispatcher.poll_done() {
            any = true;
            self.function.on_done(done, &mut self.dispatcher);
        }
        // Who is called has its turn in any case.
        while self.dispatcher.poll_call().is_some() {
            any = true;
        }
        self.function.post();
        any | self.function.waits_for_room() & self.dispatcher.take_room_made()
    }
}

impl Served {
    fn attended(&mut self) -> Attended<'_, FlatMemory> {
        Attended { function: &mut self.function, dispatcher: &mut self.dispatcher }
    }
}

/// CC that begins, with all command sets.
const ENABLE_ALL: u32 = ENABLE | 6 << 4;

/// Names of disks and how many blocks each has.
type Disks<'a> = &'a [(&'a str, u64)];

/// Powered on, and nothing done.
fn powered(disks: Disks<'_>, others: Vec<(&str, AnyTarget)>, pieces: [u32; 3]) -> Bench<Served> {
    let (mut dispatcher, disks) = MemoryDisks::beside(disks, others, pieces);
    let nqn = "nqn.2014-08.org.nvmexpress:test".to_owned();
    let config = SubsystemConfig { nqn, uuid: Uuid::of_seed(7), ..SubsystemConfig::default() };
    dispatcher.subsystem = Some(Subsystem::new(config).expect("a sound name"));
    let function = TargetFunction::new(FlatMemory::new(MEMORY, MEMORY_BYTES), ClientId::FIRST_TRANSPORT);
    Bench::of(Served { function, dispatcher, disks, is_stuck: false })
}

/// Two disks, one of which cannot be written, and what is behind them; with a queue.
fn ready(others: Vec<(&str, AnyTarget)>) -> Bench<Served> {
    let mut bench = powered(&[("a", 1 << 11), ("b-ro", 64)], others, [8, 4, 4]);
    bench.enable_with(ENABLE_ALL);
    bench.make_queue(1);
    bench
}

impl Bench<Served> {
    /// PRPs of the pages from page 16 on; lists are in pages 8 to 15.
    fn pointed(&self, sqe: Sqe, bytes: usize) -> Sqe {
        let count = u64::try_from(bytes.div_ceil(4096)).expect("small");
        let second = if count == 2 { page(17) } else { page(8) };
        let list: Vec<u8> = (1..count).flat_map(|index| page(16 + index).to_le_bytes()).collect();
        self.put(page(8), &list);
        sqe.with_prps(HostAddress(page(16)), HostAddress(second))
    }

    /// A command with data for its target.
    fn send(&mut self, sqe: Sqe, data: &[u8]) -> Cqe {
        self.put(page(16), data);
        let sqe = self.pointed(sqe, data.len());
        self.carry_out(1, sqe)
    }

    /// A command that brings so many bytes, and what it brought.
    fn fetch(&mut self, sqe: Sqe, bytes: usize) -> (Vec<u8>, Cqe) {
        self.put(page(16), &vec![0xEE; bytes]);
        let sqe = self.pointed(sqe, bytes);
        let cqe = self.carry_out(1, sqe);
        (self.get(page(16), bytes), cqe)
    }

    /// An admin command that brings a page.
    fn ask(&mut self, sqe: Sqe) -> Result<Vec<u8>, Status> {
        let sqe = sqe.with_prps(HostAddress(page(4)), HostAddress(0));
        let status = self.carry_out(0, sqe).status.status;
        if status.is_success() { Ok(self.get(page(4), 4096)) } else { Err(status) }
    }

    /// The guest goes, and nothing is kept of it.
    fn end(mut self) {
        self.function.is_stuck = false;
        self.function.attended().reset(Nanos::ZERO);
        self.run();
        let dispatcher = &self.function.dispatcher;
        let controllers = dispatcher.subsystem.as_ref().map(Subsystem::association_count);
        assert_eq!((dispatcher.open_jobs(), dispatcher.pool.lent(), controllers), (0, 0, Some(0)));
        assert!(self.function.function.is_idle(), "{:?}", self.function.function);
    }
}

fn io(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

/// Entries that a test may queue at once: one of the ring stays free.
const QUEUE_MAX: u32 = ENTRIES - 1;
