//! The drive of a world as its contract sees it: what was harmed, what lies there, and how many chunks are left.

use crate::contract::Media;
use crate::watched::Watched;
use ocssd_flash::Flash;
use ocssd_lightnvm::{ChunkId, ChunkState, Device, Ppa, PuId};

/// The media, as the contract sees them.
pub struct Seen<'a> {
    /// The drive.
    pub device: &'a mut Watched,
    /// The units the target is on.
    pub units: &'a [PuId],
}

impl Media for Seen<'_> {
    fn is_still_harmed(&self, at: Ppa) -> bool {
        self.device.is_still_harmed(at)
    }

    fn contents(&mut self, chunks: &[ChunkId]) -> Vec<Vec<u8>> {
        chunks.iter().flat_map(|&chunk| self.device.contents(chunk)).collect()
    }

    fn line_of(&self, chunk: ChunkId) -> Vec<ChunkId> {
        let chunks = self.device.geometry().chunks_per_pu;
        self.units.iter().map(|unit| ChunkId(unit.0 * chunks + chunk.0 % chunks)).collect()
    }
}

/// Chunks of these units that are not OFFLINE, neither in truth nor by the report that the drive gives of them: a target cannot
/// know better than the report, and an empty chunk gives nothing to find out by.
pub fn good_chunks(drive: &Watched, units: &[PuId]) -> u32 {
    let chunks = drive.geometry().chunks_per_pu;
    let of_unit = |unit: &PuId| (unit.0 * chunks..(unit.0 + 1) * chunks).map(ChunkId);
    let is_good = |&id: &ChunkId| {
        [Flash::chunk(drive, id), Device::chunk(drive, id)].iter().all(|now| now.state != ChunkState::Offline)
    };
    u32::try_from(units.iter().flat_map(of_unit).filter(is_good).count()).expect("fewer chunks than 2^32")
}
