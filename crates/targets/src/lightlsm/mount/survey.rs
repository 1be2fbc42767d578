//! What lies on the units: how far each chunk is written, and what it is for, by the first tag that can be read.
//!
//! What was written last cannot be read before as much follows as MW_CUNITS says, so fill is written behind what must be read:
//! the first sector of an open chunk, the pages in chunks of the log and of checkpoints, and the last unit of a table, each
//! only if it cannot be read yet. Deliberately not here: what is in the chunks (`load`).

use crate::lightlsm::space::Role;
use crate::mount_error::MountError;
use crate::ox::mount::media::{Media, Padding};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, Kind, Shape};
use ocssd_lightnvm::{ChunkState, Geometry, Ppa};

/// A chunk as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written.
    pub written: u32,
    /// What it is for; `None` if nothing in it says so.
    pub role: Option<Role>,
}

/// All chunks.
pub struct Survey {
    chunks: Vec<FoundChunk>,
}

fn found(media: &Media<'_>, shape: &Shape, chunk: ChunkIndex) -> FoundChunk {
    let descriptor = media.device.chunk(shape.chunk_id(chunk));
    FoundChunk { state: descriptor.state, written: descriptor.write_pointer.unwrap_or(0), role: None }
}

impl Survey {
    /// What the drive reports.
    pub fn new(media: &Media<'_>, shape: &Shape) -> Self {
        let chunks = (0..shape.chunks()).map(|chunk| found(media, shape, ChunkIndex(chunk)));
        Self { chunks: chunks.collect() }
    }

    pub fn iter(&self) -> impl Iterator<Item = (ChunkIndex, &FoundChunk)> {
        (0..).map(ChunkIndex).zip(&self.chunks)
    }

    pub fn get(&self, chunk: ChunkIndex) -> &FoundChunk {
        &self.chunks[chunk.index()]
    }

    /// Chunks that are not offline.
    pub fn good(&self) -> u32 {
        let good = self.chunks.iter().filter(|chunk| chunk.state != ChunkState::Offline).count();
        u32::try_from(good).expect("fewer chunks than 2^32")
    }

    /// Writes fill until the first so many sectors of each of these chunks can be read, and to a border of write units.
    pub fn make_readable(
        &mut self,
        media: &mut Media<'_>,
        shape: &Shape,
        wanted: &[(ChunkIndex, u32)],
    ) -> Result<(), MountError> {
        let Geometry { ws_opt, mw_cunits, sectors_per_chunk, .. } = *media.device.geometry();
        let is_open = |&&(chunk, _): &&(ChunkIndex, u32)| self.get(chunk).state == ChunkState::Open;
        let open: Vec<(ChunkIndex, u32)> = wanted.iter().filter(is_open).copied().collect();
        let paddings: Vec<Padding> = open
            .iter()
            .map(|&(chunk, end)| {
                let from = self.get(chunk).written;
                let to = (end + mw_cunits).max(from).next_multiple_of(ws_opt).min(sectors_per_chunk);
                Padding { chunk: shape.chunk_id(chunk), from, to }
            })
            .collect();
        assert!(paddings.iter().all(|padding| padding.from <= padding.to), "a chunk is filled backwards");
        media.pad(&paddings, ws_opt)?;
        for (chunk, _) in open {
            let role = self.get(chunk).role;
            self.chunks[chunk.index()] = FoundChunk { role, ..found(media, shape, chunk) };
        }
        Ok(())
    }

    /// Sectors of a chunk that can be read.
    pub fn readable(&self, geometry: &Geometry, chunk: ChunkIndex) -> u32 {
        let found = self.get(chunk);
        match found.state {
            ChunkState::Free | ChunkState::Offline => 0,
            ChunkState::Closed => found.written,
            ChunkState::Open => found.written.saturating_sub(geometry.mw_cunits),
        }
    }

    /// Finds out what each chunk is for: by its first page, or the next where the media lost that.
    pub fn identify(&mut self, media: &mut Media<'_>, shape: &Shape) -> Result<(), MountError> {
        let geometry = media.device.geometry().clone();
        let mut unknown: Vec<ChunkIndex> = self.iter().map(|(chunk, _)| chunk).collect();
        for sector in (0..geometry.sectors_per_chunk).step_by(usize_of(geometry.ws_min)) {
            unknown
                .retain(|&chunk| self.get(chunk).role.is_none() && sector < self.readable(&geometry, chunk));
            if unknown.is_empty() {
                break;
            }
            let asked: Vec<Ppa> =
                unknown.iter().map(|&chunk| Ppa::new(shape.chunk_id(chunk), sector)).collect();
            let tags = media.read_tags(&asked)?;
            for (&chunk, tag) in unknown.iter().zip(tags) {
                self.chunks[chunk.index()].role = tag.and_then(|tag| match tag.kind {
                    Kind::Log => Some(Role::Log),
                    Kind::Map => Some(Role::Checkpoint),
                    Kind::Pad => None,
                    Kind::Data | Kind::Lost | Kind::Trim | Kind::Head | Kind::Tail => Some(Role::Content),
                });
            }
        }
        Ok(())
    }

    /// The first sectors of all pages of `step` sectors in chunks of a role that can be read.
    pub fn pages(&self, geometry: &Geometry, shape: &Shape, role: Role, step: u32) -> Vec<(ChunkIndex, Ppa)> {
        let of_role = self.iter().filter(|(_, found)| found.role == Some(role)).map(|(chunk, _)| chunk);
        let pages = of_role.flat_map(|chunk| {
            let whole = self.readable(geometry, chunk) / step;
            (0..whole).map(move |page| (chunk, Ppa::new(shape.chunk_id(chunk), page * step)))
        });
        pages.collect()
    }
}
