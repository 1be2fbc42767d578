//! What lies on the units: how far each chunk is written, what it is for, and the newest unit in it.
//!
//! What was written last cannot be read before as much follows as MW_CUNITS says, so open chunks are padded first: the
//! newest units lie there. A chunk is known by the first unit that can be read, and its newest number by the last: two
//! sectors of each as a rule. Deliberately not here: records (`load`).

use crate::kv::record::{UnitHeader, UnitNumber};
use crate::kv::space::Role;
use crate::mount_error::MountError;
use crate::recovery::media::{Media, Padding};
use ocssd_ftl::checkpoint::{CheckpointPage, CheckpointPageError};
use ocssd_ftl::{ChunkIndex, InstanceGeometry};
use ocssd_lightnvm::{ChunkState, Geometry, Ppa};

/// A chunk as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written.
    pub written: u32,
    /// What it is for; `None` if nothing in it says so.
    pub role: Option<Role>,
    /// The number of the newest unit in it.
    pub newest: UnitNumber,
}

/// All chunks.
pub struct Survey(pub Vec<FoundChunk>);

fn found(media: &Media<'_>, shape: &InstanceGeometry, chunk: ChunkIndex) -> FoundChunk {
    let descriptor = media.device.chunk(shape.chunk_id(chunk));
    let written = descriptor.write_pointer.unwrap_or(0);
    FoundChunk { state: descriptor.state, written, role: None, newest: UnitNumber(0) }
}

/// What a sector at the begin of a unit says.
enum Said {
    Unit(UnitHeader),
    Checkpoint,
    Nothing,
}

fn said(bytes: Option<&[u8]>) -> Said {
    let Some(bytes) = bytes else { return Said::Nothing };
    if let Some(header) = UnitHeader::decode(bytes) {
        return Said::Unit(header);
    }
    match CheckpointPage::decode(bytes) {
        Ok(_) | Err(CheckpointPageError::Corrupt | CheckpointPageError::Version(_)) => Said::Checkpoint,
        Err(CheckpointPageError::NotACheckpointPage) => Said::Nothing,
    }
}

impl Survey {
    /// What the drive reports.
    pub fn new(media: &Media<'_>, shape: &InstanceGeometry) -> Self {
        Self((0..shape.chunks()).map(|chunk| found(media, shape, ChunkIndex(chunk))).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (ChunkIndex, &FoundChunk)> {
        (0..).map(ChunkIndex).zip(&self.0)
    }

    pub fn get(&self, chunk: ChunkIndex) -> &FoundChunk {
        &self.0[chunk.index()]
    }

    /// Chunks that are not offline.
    pub fn good(&self) -> u32 {
        let good = self.0.iter().filter(|chunk| chunk.state != ChunkState::Offline).count();
        u32::try_from(good).expect("fewer chunks than 2^32")
    }

    fn look_again(&mut self, media: &Media<'_>, shape: &InstanceGeometry, chunk: ChunkIndex) {
        let FoundChunk { role, newest, .. } = self.0[chunk.index()];
        self.0[chunk.index()] = FoundChunk { role, newest, ..found(media, shape, chunk) };
    }

    /// Pads open chunks to where `until` says, from how far they are written.
    fn pad(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        open: &[ChunkIndex],
        until: impl Copy + Fn(u32) -> u32,
    ) -> Result<(), MountError> {
        let unit = media.device.geometry().ws_opt;
        let padding = |&chunk: &ChunkIndex| {
            let from = self.get(chunk).written;
            Padding { chunk: shape.chunk_id(chunk), from, to: until(from) }
        };
        let paddings: Vec<Padding> = open.iter().map(padding).collect();
        assert!(paddings.iter().all(|padding| padding.from <= padding.to), "padding goes back: {paddings:?}");
        let elsewhere = media.pad(&paddings, unit)?;
        let mut behind = Vec::new();
        for &chunk in open {
            let before = self.get(chunk).written;
            self.look_again(media, shape, chunk);
            let found = self.get(chunk);
            assert!(
                found.written <= media.device.geometry().sectors_per_chunk,
                "chunk {} is overfull",
                chunk.0
            );
            assert!(
                found.state != ChunkState::Free || found.written == 0,
                "chunk {} is FREE and written",
                chunk.0
            );
            let is_elsewhere = elsewhere.contains(&shape.chunk_id(chunk)) && found.written != before;
            if (found.written < before || is_elsewhere) && found.state == ChunkState::Open {
                behind.push(chunk);
            }
        }
        // The drive's report of those was not true; it is since they were named by a write.
        if behind.is_empty() { Ok(()) } else { self.pad(media, shape, &behind, until) }
    }

    fn open(&self) -> Vec<ChunkIndex> {
        let is_open = |(_, found): &(ChunkIndex, &FoundChunk)| found.state == ChunkState::Open;
        self.iter().filter(is_open).map(|(chunk, _)| chunk).collect()
    }

    /// Pads open chunks until all that was written before can be read, and to a border of write units.
    pub fn make_readable(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
    ) -> Result<(), MountError> {
        let Geometry { ws_opt, mw_cunits, sectors_per_chunk, .. } = *media.device.geometry();
        let open = self.open();
        let until = |from: u32| (from + mw_cunits).next_multiple_of(ws_opt).min(sectors_per_chunk);
        self.pad(media, shape, &open, until)
    }

    /// Writes open chunks to their end.
    pub fn close(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        open: &[ChunkIndex],
    ) -> Result<(), MountError> {
        let end = media.device.geometry().sectors_per_chunk;
        self.pad(media, shape, open, |_| end)
    }

    /// Units of a chunk that can be read, a part of one counted.
    pub fn units(&self, geometry: &Geometry, chunk: ChunkIndex) -> u32 {
        let found = self.get(chunk);
        assert!(found.written <= geometry.sectors_per_chunk, "chunk {} is written beyond its end", chunk.0);
        let readable = match found.state {
            ChunkState::Free | ChunkState::Offline => 0,
            ChunkState::Closed => found.written,
            ChunkState::Open => found.written.saturating_sub(geometry.mw_cunits),
        };
        readable.div_ceil(geometry.ws_opt)
    }

    /// Finds out what each chunk is for, and the newest unit in it.
    pub fn identify(&mut self, media: &mut Media<'_>, shape: &InstanceGeometry) -> Result<(), MountError> {
        let geometry = media.device.geometry().clone();
        let units = geometry.sectors_per_chunk / geometry.ws_opt;
        for is_from_end in [false, true] {
            for round in 0..units {
                let is_asked = |chunk: ChunkIndex, found: &FoundChunk| {
                    let of_chunk = self.units(&geometry, chunk);
                    let is_unknown = match found.role {
                        None => !is_from_end,
                        Some(Role::Records) => is_from_end && found.newest == UnitNumber(0),
                        Some(Role::Checkpoint) => false,
                    };
                    (is_unknown && round < of_chunk).then(|| {
                        let unit = if is_from_end { of_chunk - 1 - round } else { round };
                        (chunk, Ppa::new(shape.chunk_id(chunk), unit * geometry.ws_opt))
                    })
                };
                let asked: Vec<(ChunkIndex, Ppa)> =
                    self.iter().filter_map(|(chunk, found)| is_asked(chunk, found)).collect();
                if asked.is_empty() {
                    break;
                }
                let firsts: Vec<Ppa> = asked.iter().map(|&(_, ppa)| ppa).collect();
                let mut heard = Vec::new();
                media.read_pages(&firsts, 1, |index, bytes| heard.push((asked[index].0, said(bytes))))?;
                for (chunk, said) in heard {
                    let found = &mut self.0[chunk.index()];
                    match said {
                        Said::Unit(_) if !is_from_end => found.role = Some(Role::Records),
                        Said::Unit(header) => found.newest = header.number,
                        Said::Checkpoint if !is_from_end => found.role = Some(Role::Checkpoint),
                        Said::Checkpoint | Said::Nothing => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The first sectors of all units of chunks that `wanted` names.
    pub fn unit_places(
        &self,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        wanted: impl Fn(&FoundChunk) -> bool,
    ) -> Vec<(ChunkIndex, Ppa)> {
        let of_role = self.iter().filter(|&(_, found)| wanted(found)).map(|(chunk, _)| chunk);
        let units = of_role.flat_map(|chunk| {
            let count = self.get(chunk).written / geometry.ws_opt;
            let units = self.units(geometry, chunk).min(count);
            (0..units).map(move |unit| (chunk, Ppa::new(shape.chunk_id(chunk), unit * geometry.ws_opt)))
        });
        units.collect()
    }
}
