//! A host for the controller's tests: sends entries, waits in virtual time, and decodes what comes back.

use ocssd_base::Nanos;
use ocssd_flash::controller::{AdminOutcome, Controller, IoBuffers};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, Device, Lba, Payload, Ppa};
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sqe::{DatasetManagement, GetFeatures, ReadWrite, SetFeatures, Vector, VectorCopy};
use ocssd_nvme::{AddressList, Cqe, HostAddress, Sqe};

pub const SECTOR: usize = 4096;
pub const OOB: usize = 16;
/// Where lists and metadata pretend to be; only that it is not 0 matters.
pub const SOMEWHERE: HostAddress = HostAddress(0x1000);

/// The tiny drive, with real bytes and half its chunks: 2 x 2 units of 8 chunks of 32 sectors; ws_min 4, ws_opt 8, mw_cunits 8.
pub fn tiny() -> Config {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry.chunks_per_pu = 8;
    config.geometry.lba_format.chunk_bits = 3;
    config.payload = Payload::Bytes;
    config
}

pub struct Host {
    pub controller: Controller,
    pub now: Nanos,
    cid: u16,
}

/// Buffers of one command.
#[derive(Default)]
pub struct Buffers {
    pub data: Vec<u8>,
    pub metadata: Vec<u8>,
    pub list: Vec<u64>,
    pub destinations: Vec<u64>,
}

impl Buffers {
    pub fn sectors(count: usize, fill: u8) -> Self {
        let (data, metadata) = (vec![fill; count * SECTOR], vec![fill ^ 0x55; count * OOB]);
        Self { data, metadata, ..Self::default() }
    }
}

pub fn addresses(list: &[u64]) -> AddressList<Lba> {
    match list {
        [one] => AddressList::One(Lba(*one)),
        many => AddressList::Many { at: SOMEWHERE, count: u8::try_from(many.len()).expect("at most 64") },
    }
}

/// The status field as hosts see it: 42F2h is 2F2h with DNR.
pub fn bits(cqe: &Cqe) -> u16 {
    cqe.status.to_bits()
}

impl Host {
    pub fn new(config: Config) -> Self {
        let flash = Flash::format(config).expect("a sound configuration");
        let controller = Controller::new(flash).expect("a drive with bytes");
        Self { controller, now: Nanos::ZERO, cid: 0 }
    }

    /// The chunks as the tests of rules want them: 0 FREE, 1 OPEN at 16, 2 CLOSED, 3 OFFLINE, 4 CLOSED early at 8.
    pub fn with_every_state() -> Self {
        Self::with_every_state_of(tiny())
    }

    pub fn with_every_state_of(config: Config) -> Self {
        let mut host = Self::new(config);
        host.fill(1, 16);
        host.fill(2, 32);
        host.fill(3, 32);
        host.fault(FaultKind::ResetFailure, 3, None);
        let offline = host.lba(3, 0);
        assert_eq!(bits(&host.vector_reset(&[offline])), 0x42C0);
        host.fill(4, 8);
        host.fault(FaultKind::EarlyClose, 4, None);
        let at = host.lba(4, 8);
        assert_eq!(bits(&host.write(at, 8, 1)), 0x42F1);
        host
    }

    pub fn fault(&mut self, kind: FaultKind, chunk: u32, sector: Option<u32>) {
        let fault = ScheduledFault { kind, chunk: ChunkId(chunk), sector, times: 1 };
        self.controller.flash_mut().schedule_fault(fault);
    }

    pub fn lba(&self, chunk: u32, sector: u32) -> u64 {
        self.controller.flash().geometry().lba_of(Ppa::new(ChunkId(chunk), sector)).0
    }

    /// An address whose group does not exist.
    pub fn nowhere(&self) -> u64 {
        self.controller.flash().geometry().lba_format.span()
    }

    pub fn lbas(&self, chunk: u32, sectors: std::ops::Range<u32>) -> Vec<u64> {
        sectors.map(|sector| self.lba(chunk, sector)).collect()
    }

    /// Writes the chunk from its start to `end`; sector `s` is filled with `s + 1`.
    pub fn fill(&mut self, chunk: u32, end: u32) {
        self.fill_range(chunk, 0..end);
    }

    /// Writes the chunk from `start` to its end.
    pub fn fill_rest(&mut self, chunk: u32, start: u32) {
        self.fill_range(chunk, start..32);
    }

    fn fill_range(&mut self, chunk: u32, sectors: std::ops::Range<u32>) {
        for sector in sectors.step_by(4) {
            let mut buffers = Buffers::sectors(4, 0);
            for (index, value) in (0..4).zip(sector + 1..) {
                let value = u8::try_from(value).expect("small chunks");
                buffers.data[index * SECTOR..][..SECTOR].fill(value);
                buffers.metadata[index * OOB..][..OOB].fill(value ^ 0x55);
            }
            let at = self.lba(chunk, sector);
            let sqe = Sqe::write(1, scalar(at, 4)).with_mptr(SOMEWHERE);
            assert_eq!(bits(&self.io(sqe, &mut buffers)), 0, "filling chunk {chunk} at {sector}");
        }
    }

    pub fn table(&self) -> Vec<ChunkDescriptor> {
        let flash = self.controller.flash();
        (0..flash.geometry().chunk_count()).map(|chunk| flash.chunk(ChunkId(chunk))).collect()
    }

    pub fn submit(&mut self, sqe: Sqe, buffers: &mut Buffers) -> u16 {
        self.cid = self.cid.wrapping_add(1);
        let io = IoBuffers {
            data: &mut buffers.data,
            metadata: &mut buffers.metadata,
            lba_list: &buffers.list,
            destination_list: &buffers.destinations,
        };
        self.controller.submit(self.now, 3, &sqe.with_cid(self.cid).encode(), io).expect("room in the queue");
        self.cid
    }

    /// The next completion, however long it takes.
    pub fn wait(&mut self) -> Cqe {
        loop {
            if let Some((queue, bytes)) = self.controller.poll(self.now) {
                assert_eq!(queue, 3, "completions come to the queue of the command");
                return Cqe::decode(&bytes);
            }
            let next = self.controller.deadline().expect("a command in progress has a deadline");
            assert!(next >= self.now, "deadlines do not lie in the past");
            self.now = next;
        }
    }

    pub fn io(&mut self, sqe: Sqe, buffers: &mut Buffers) -> Cqe {
        let cid = self.submit(sqe, buffers);
        let cqe = self.wait();
        assert_eq!((cqe.cid, cqe.sqid), (cid, 3));
        cqe
    }

    pub fn admin(&mut self, sqe: Sqe, data: &mut [u8]) -> Cqe {
        match self.controller.admin(self.now, &sqe.encode(), data) {
            AdminOutcome::Done(bytes) => Cqe::decode(&bytes),
            AdminOutcome::Held => panic!("{:02X}h was held", sqe.opcode),
        }
    }

    pub fn set_feature(&mut self, fid: FeatureId, value: u32) -> Cqe {
        self.admin(Sqe::set_features(1, SetFeatures { fid, save: false, value }), &mut [])
    }

    pub fn get_feature(&mut self, fid: FeatureId, select: Select) -> Cqe {
        self.admin(Sqe::get_features(1, GetFeatures { fid, select, selector: 0 }), &mut [])
    }

    pub fn write(&mut self, lba: u64, count: u32, fill: u8) -> Cqe {
        let mut buffers = Buffers::sectors(usize::try_from(count).expect("small"), fill);
        self.io(Sqe::write(1, scalar(lba, count)).with_mptr(SOMEWHERE), &mut buffers)
    }

    /// A scalar read with metadata.
    pub fn read(&mut self, lba: u64, count: u32) -> (Cqe, Buffers) {
        let mut buffers = Buffers::sectors(usize::try_from(count).expect("small"), 0xA5);
        (self.io(Sqe::read(1, scalar(lba, count)).with_mptr(SOMEWHERE), &mut buffers), buffers)
    }

    pub fn vector_write(&mut self, list: &[u64], fill: u8) -> Cqe {
        let mut buffers = Buffers { list: list.to_vec(), ..Buffers::sectors(list.len(), fill) };
        self.io(Sqe::vector_write(1, vector(list)).with_mptr(SOMEWHERE), &mut buffers)
    }

    pub fn vector_read(&mut self, list: &[u64]) -> (Cqe, Buffers) {
        let mut buffers = Buffers { list: list.to_vec(), ..Buffers::sectors(list.len(), 0xA5) };
        (self.io(Sqe::vector_read(1, vector(list)).with_mptr(SOMEWHERE), &mut buffers), buffers)
    }

    pub fn vector_reset(&mut self, list: &[u64]) -> Cqe {
        let mut buffers = Buffers { list: list.to_vec(), ..Buffers::default() };
        self.io(Sqe::vector_reset(1, addresses(list), None), &mut buffers)
    }

    pub fn copy(&mut self, from: &[u64], to: &[u64]) -> Cqe {
        let copy = VectorCopy { sources: addresses(from), destinations: addresses(to), limited_retry: false };
        let mut buffers = Buffers { list: from.to_vec(), destinations: to.to_vec(), ..Buffers::default() };
        self.io(Sqe::vector_copy(1, copy), &mut buffers)
    }

    pub fn deallocate(&mut self, ranges: &[(u64, u32)]) -> Cqe {
        let range = |&(slba, nlb): &(u64, u32)| DsmRange { cattr: 0, nlb, slba: Lba(slba) }.encode();
        let mut buffers = Buffers { data: ranges.iter().flat_map(range).collect(), ..Buffers::default() };
        let range_count = u16::try_from(ranges.len()).expect("at most 256");
        let dsm =
            DatasetManagement { range_count, deallocate: true, integral_read: false, integral_write: false };
        self.io(Sqe::dataset_management(1, dsm), &mut buffers)
    }
}

pub fn scalar(lba: u64, count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(lba), block_count: count, limited_retry: false, force_unit_access: false }
}

pub fn vector(list: &[u64]) -> Vector {
    Vector { lbas: addresses(list), limited_retry: false }
}
