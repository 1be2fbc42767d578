//! What is known of the chunks of a served drive: what the server reported, and what this host has done since.
//!
//! A write or reset that succeeded changes what is known of its chunk; after one that failed the server is asked again. Nobody
//! else changes anything: the drive is this host's alone. Wear indices are those of the beginning, or of the newest answer.
//! Deliberately not here: asking (`drive`).

use crate::error::HostError;
use ocssd_base::usize_of;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Geometry};
use ocssd_nvme::ocssd20;

/// Descriptors of all chunks.
#[derive(Debug)]
pub struct ChunkReport {
    chunks: Vec<ChunkDescriptor>,
}

/// One descriptor of the wire.
///
/// # Errors
/// If it is none of this drive's.
pub fn decode(bytes: &[u8], geometry: &Geometry) -> Result<ChunkDescriptor, HostError> {
    let found = ocssd20::ChunkDescriptor::decode(bytes)
        .map_err(|error| HostError::broken(format!("the server's chunk report: {error}")))?;
    let state = match found.cs {
        ocssd20::ChunkState::Free => ChunkState::Free,
        ocssd20::ChunkState::Open => ChunkState::Open,
        ocssd20::ChunkState::Closed => ChunkState::Closed,
        ocssd20::ChunkState::Offline => ChunkState::Offline,
    };
    let small =
        |number: u64| u32::try_from(number).ok().filter(|&number| number <= geometry.sectors_per_chunk);
    let wrong = || {
        HostError::broken(format!("the server reports a chunk that no drive of this shape has: {found:?}"))
    };
    let sectors = small(found.cnlb).ok_or_else(wrong)?;
    let write_pointer = match state {
        ChunkState::Offline => None,
        _ => Some(small(found.wp).ok_or_else(wrong)?),
    };
    Ok(ChunkDescriptor { state, wear_index: found.wli, first: found.slba, sectors, write_pointer })
}

impl ChunkReport {
    /// Of a log page CAh.
    ///
    /// # Errors
    /// If it holds what no drive of this shape has.
    pub fn of_page(page: &[u8], geometry: &Geometry) -> Result<Self, HostError> {
        let chunks: Result<Vec<_>, _> =
            page.chunks_exact(ocssd20::ChunkDescriptor::BYTES).map(|bytes| decode(bytes, geometry)).collect();
        let chunks = chunks?;
        assert_eq!(chunks.len(), usize_of(geometry.chunk_count()), "the page was asked for as a whole");
        Ok(Self { chunks })
    }

    /// What is known of a chunk.
    pub fn get(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.chunks[chunk.index()]
    }

    /// The server said this of it.
    pub fn set(&mut self, chunk: ChunkId, found: ChunkDescriptor) {
        self.chunks[chunk.index()] = found;
    }

    /// It was written up to sector `end`.
    pub fn on_written(&mut self, chunk: ChunkId, end: u32) {
        let known = &mut self.chunks[chunk.index()];
        let end = end.max(known.write_pointer.unwrap_or(0));
        known.state = if end >= known.sectors { ChunkState::Closed } else { ChunkState::Open };
        known.write_pointer = Some(end);
    }

    /// It was reset.
    pub fn on_reset(&mut self, chunk: ChunkId) {
        let known = &mut self.chunks[chunk.index()];
        known.state = ChunkState::Free;
        known.write_pointer = Some(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_nvme::Lba;
    use ocssd_nvme::ocssd20::{ChunkKind, ChunkType};

    fn wire(cs: ocssd20::ChunkState, cnlb: u64, wp: u64) -> Vec<u8> {
        let ct = ChunkType { kind: ChunkKind::SequentialWrite, size_deviates: false };
        ocssd20::ChunkDescriptor { cs, ct, wli: 3, slba: Lba(0), cnlb, wp }.encode().to_vec()
    }

    #[test]
    fn chunks_are_as_the_server_says_and_change_with_what_is_done() {
        let geometry = Geometry::example(1, 1, 2, 48, 24);
        let page = [wire(ocssd20::ChunkState::Free, 48, 0), wire(ocssd20::ChunkState::Offline, 48, u64::MAX)]
            .concat();
        let mut report = ChunkReport::of_page(&page, &geometry).expect("sound");
        let of = |report: &ChunkReport, chunk| {
            let found = report.get(ChunkId(chunk));
            (found.state, found.write_pointer)
        };
        assert_eq!(of(&report, 1), (ChunkState::Offline, None));
        report.on_written(ChunkId(0), 24);
        assert_eq!(of(&report, 0), (ChunkState::Open, Some(24)));
        report.on_written(ChunkId(0), 48);
        assert_eq!(of(&report, 0), (ChunkState::Closed, Some(48)));
        report.on_reset(ChunkId(0));
        assert_eq!(of(&report, 0), (ChunkState::Free, Some(0)));
    }

    #[test]
    fn a_report_of_another_drive_is_told() {
        let geometry = Geometry::example(1, 1, 1, 48, 24);
        for page in
            [wire(ocssd20::ChunkState::Open, 49, 0), wire(ocssd20::ChunkState::Open, 48, 49), vec![0; 32]]
        {
            assert!(ChunkReport::of_page(&page, &geometry).is_err(), "{page:?}");
        }
    }
}
