//! What lies on the units: how far each chunk is written, and what it is for, by the first tag that can be read.
//!
//! What was written last cannot be read before as much follows as MW_CUNITS says, so open chunks of the target's own pages are
//! padded first; chunks of zones only if their zone was written since the last mount (`recover`). Deliberately not here: what is
//! in the chunks.

use crate::mount_error::MountError;
use crate::ox::mount::media::{Media, Padding};
use crate::zns::space::Role;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, Kind, Shape};
use ocssd_lightnvm::{ChunkState, Geometry, Ppa};

/// A chunk as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written, padding of this mount counted.
    pub written: u32,
    /// Sectors written before this mount.
    pub before: u32,
    /// What it is for; `None` if nothing in it says so.
    pub role: Option<Role>,
}

/// All chunks.
pub struct Survey {
    chunks: Vec<FoundChunk>,
}

fn found(media: &Media<'_>, shape: &Shape, chunk: ChunkIndex) -> FoundChunk {
    let descriptor = media.device.chunk(shape.chunk_id(chunk));
    let written = descriptor.write_pointer.unwrap_or(0);
    FoundChunk { state: descriptor.state, written, before: written, role: None }
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

    /// Pads those of these chunks that are open: to a border of write units, and if `window` until all that was written
    /// before can be read.
    pub fn pad(
        &mut self,
        media: &mut Media<'_>,
        shape: &Shape,
        chunks: &[ChunkIndex],
        window: bool,
    ) -> Result<(), MountError> {
        let Geometry { ws_opt, mw_cunits, sectors_per_chunk, .. } = *media.device.geometry();
        let open = chunks.iter().copied().filter(|&chunk| self.get(chunk).state == ChunkState::Open);
        let open: Vec<ChunkIndex> = open.collect();
        let more = if window { mw_cunits } else { 0 };
        let paddings: Vec<Padding> = open
            .iter()
            .map(|&chunk| {
                let from = self.get(chunk).written;
                let to = (from + more).next_multiple_of(ws_opt).min(sectors_per_chunk);
                Padding { chunk: shape.chunk_id(chunk), from, to }
            })
            .collect();
        media.pad(&paddings, ws_opt)?;
        for chunk in open {
            let FoundChunk { role, before, written, .. } = *self.get(chunk);
            assert!(before <= written, "chunk {} was written before it was", chunk.0);
            self.chunks[chunk.index()] = FoundChunk { role, before, ..found(media, shape, chunk) };
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

    /// Finds out what each chunk is for; pads the open ones that hold pages, or do not say, if `window`.
    pub fn identify(&mut self, media: &mut Media<'_>, shape: &Shape, window: bool) -> Result<(), MountError> {
        self.read_roles(media, shape)?;
        let is_ours = |found: &FoundChunk| matches!(found.role, None | Some(Role::Log | Role::Checkpoint));
        let ours: Vec<ChunkIndex> =
            self.iter().filter(|(_, found)| is_ours(found)).map(|(chunk, _)| chunk).collect();
        self.pad(media, shape, &ours, window)?;
        self.read_roles(media, shape)
    }

    /// The role of each chunk that has none: by its first page, or the next where the media lost that.
    fn read_roles(&mut self, media: &mut Media<'_>, shape: &Shape) -> Result<(), MountError> {
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
                    Kind::Data | Kind::Lost | Kind::Trim | Kind::Head | Kind::Tail => Some(Role::Data),
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
