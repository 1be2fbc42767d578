//! A drive for tests and fuzzers: it keeps whatever it is given, and ends commands when it is told to.

use super::drive::{DriveFull, OpenChannelDrive, Pointed, Units};
use ocssd_base::Nanos;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::sqe::SetFeatures;
use ocssd_nvme::{AdminOpcode, Cqe, IoOpcode, Sqe, StatusField};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a sector, and of the metadata beside it.
pub(crate) const SECTOR_BYTES: usize = 512;
pub(crate) const OOB_BYTES: usize = 16;

/// What is kept of a sector.
type Sector = ([u8; SECTOR_BYTES], [u8; OOB_BYTES]);

/// The drive.
#[derive(Debug, Default)]
pub(crate) struct PretendDrive {
    /// By address.
    pub(crate) sectors: BTreeMap<u64, Sector>,
    /// Commands that have not ended.
    pub(crate) begun: VecDeque<(u16, Cqe)>,
    /// Commands end in the turn they came.
    pub(crate) is_quick: bool,
    /// Commands may end.
    pub(crate) ended: usize,
    /// Commands at once; none is no limit.
    pub(crate) room: Option<usize>,
    /// It speaks 1.2.
    pub(crate) is_v12: bool,
    /// What was asked of the admin queue.
    pub(crate) asked: Vec<Sqe>,
    /// News that is told.
    pub(crate) news: Option<u32>,
    /// Resets seen.
    pub(crate) resets: u32,
    /// It has an event request.
    pub(crate) holds_request: bool,
}

fn completion(sqe: &Sqe, dw0: u32) -> Cqe {
    Cqe { dw0, dw1: 0, sqhd: 0, sqid: 0, cid: sqe.cid, phase: false, status: StatusField::SUCCESS }
}

impl PretendDrive {
    /// One more command ends.
    pub(crate) fn end_one(&mut self) {
        self.ended += 1;
    }

    fn address(sqe: &Sqe, pointed: &Pointed<'_>, place: usize) -> u64 {
        let first = u64::from(sqe.cdw10) | u64::from(sqe.cdw11) << 32;
        let run = first.wrapping_add(u64::try_from(place).expect("small"));
        pointed.addresses.get(place).copied().unwrap_or(run)
    }

    fn write(&mut self, sqe: &Sqe, pointed: &Pointed<'_>) {
        for (place, data) in pointed.data.as_chunks::<SECTOR_BYTES>().0.iter().enumerate() {
            let oob = pointed.metadata.as_chunks::<OOB_BYTES>().0.get(place).copied().unwrap_or_default();
            self.sectors.insert(Self::address(sqe, pointed, place), (*data, oob));
        }
    }

    fn read(&self, sqe: &Sqe, pointed: &mut Pointed<'_>) {
        for place in 0..pointed.data.len() / SECTOR_BYTES {
            let Some((data, oob)) = self.sectors.get(&Self::address(sqe, pointed, place)) else { continue };
            pointed.data[place * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(data);
            if let Some(room) = pointed.metadata.as_chunks_mut::<OOB_BYTES>().0.get_mut(place) {
                *room = *oob;
            }
        }
    }
}

impl OpenChannelDrive for PretendDrive {
    fn identify_controller(&self) -> IdentifyController {
        IdentifyController { aerl: 3, nn: 1, sqes: 0x66, cqes: 0x44, ..IdentifyController::default() }
    }

    fn units(&self) -> Units {
        Units {
            sector_bytes: u32::try_from(SECTOR_BYTES).expect("512"),
            oob_bytes: u32::try_from(OOB_BYTES).expect("16"),
            is_v12: self.is_v12,
            bad_block_table_bytes: 64 + 32,
            transfer_bytes_max: 64 << 10,
        }
    }

    fn admin(&mut self, _now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Option<Cqe> {
        if sqe.admin_opcode() == AdminOpcode::ASYNC_EVENT_REQUEST {
            assert!(!self.holds_request, "a second event request came before the first was answered");
            self.holds_request = true;
            return None;
        }
        self.asked.push(*sqe);
        // What it says can be told from what was there before.
        data.iter_mut().zip(0u8..=250).for_each(|(byte, value)| *byte = value ^ sqe.opcode);
        let queues = SetFeatures::of(sqe).fid == FeatureId::NUMBER_OF_QUEUES;
        let dw0 = match sqe.admin_opcode() {
            AdminOpcode::SET_FEATURES if queues => sqe.cdw11,
            AdminOpcode::GET_FEATURES if queues => 0x00FF_00FF,
            _ => 0,
        };
        Some(completion(sqe, dw0))
    }

    fn submit(
        &mut self,
        _now: Nanos,
        queue: u16,
        sqe: &Sqe,
        mut pointed: Pointed<'_>,
    ) -> Result<(), DriveFull> {
        if self.room.is_some_and(|room| self.begun.len() >= room) {
            return Err(DriveFull);
        }
        match sqe.io_opcode() {
            IoOpcode::WRITE | IoOpcode::VECTOR_WRITE => self.write(sqe, &pointed),
            IoOpcode::READ | IoOpcode::VECTOR_READ => self.read(sqe, &mut pointed),
            _ => {}
        }
        self.begun.push_back((queue, completion(sqe, 0)));
        Ok(())
    }

    fn poll(&mut self, _now: Nanos) -> Option<(u16, Cqe)> {
        if !self.is_quick {
            self.ended = self.ended.checked_sub(1)?;
        }
        self.begun.pop_front()
    }

    fn poll_event(&mut self) -> Option<u32> {
        assert!(self.holds_request, "news was asked for without a request");
        let news = self.news.take()?;
        self.holds_request = false;
        Some(news)
    }

    fn failure(&self) -> Option<&str> {
        None
    }

    fn deadline(&self) -> Option<Nanos> {
        (self.is_quick && !self.begun.is_empty()).then_some(Nanos::ZERO)
    }

    fn reset(&mut self, _now: Nanos) {
        self.begun.clear();
        self.holds_request = false;
        self.resets += 1;
    }
}
