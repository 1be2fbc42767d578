//! What lies on the units: how far each chunk is written, and what it holds, by the first tag that can be read.
//!
//! What was written last cannot be read before as much follows as MW_CUNITS says, so padding is written behind what must be
//! read. Deliberately not here: which chunks must be readable (the target's mount), what is in them (`found`).

use super::media::{Media, Padding};
use crate::journal::PageKind;
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, InstanceGeometry, Kind};
use ocssd_lightnvm::{ChunkState, Geometry, Ppa};

/// What a chunk holds, as its tags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What the host wrote, or something beside it that is no page.
    Content,
    /// Pages of the target's own.
    Pages(PageKind),
    /// Pages of a map that is larger than memory.
    MapPages,
}

impl Holds {
    /// What a tag says of its chunk; nothing, if it is of padding.
    const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Log => Some(Self::Pages(PageKind::Log)),
            Kind::Map => Some(Self::Pages(PageKind::Checkpoint)),
            Kind::MapPage => Some(Self::MapPages),
            Kind::Pad => None,
            Kind::Data
            | Kind::Lost
            | Kind::Discard
            | Kind::Head
            | Kind::Tail
            | Kind::Placed
            | Kind::Unwritten => Some(Self::Content),
        }
    }
}

/// A chunk as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written, padding of this mount counted.
    pub written: u32,
    /// Sectors written before this mount.
    pub before: u32,
    /// What it holds; `None` if nothing in it says so.
    pub holds: Option<Holds>,
}

impl FoundChunk {
    /// Which pages it holds, if it holds any.
    pub const fn pages(&self) -> Option<PageKind> {
        if let Some(Holds::Pages(kind)) = self.holds { Some(kind) } else { None }
    }

    /// Open on the drive.
    pub fn is_open(&self) -> bool {
        self.state == ChunkState::Open
    }
}

fn found(media: &Media<'_>, shape: &InstanceGeometry, chunk: ChunkIndex) -> FoundChunk {
    let descriptor = media.device.chunk(shape.chunk_id(chunk));
    let written = descriptor.write_pointer.unwrap_or(0);
    FoundChunk { state: descriptor.state, written, before: written, holds: None }
}

/// All chunks.
pub struct Survey(Vec<FoundChunk>);

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

    /// The same of each line of chunks, one on each of so many units.
    pub fn good_of_lines(&self, units: u32) -> Vec<u32> {
        let good = |line: &[FoundChunk]| {
            let good = line.iter().filter(|chunk| chunk.state != ChunkState::Offline).count();
            u32::try_from(good).expect("fewer chunks than 2^32")
        };
        self.0.chunks(usize_of(units)).map(good).collect()
    }

    /// Chunks that are not offline.
    pub fn good(&self) -> u32 {
        let good = self.0.iter().filter(|chunk| chunk.state != ChunkState::Offline).count();
        u32::try_from(good).expect("fewer chunks than 2^32")
    }

    /// Open chunks of which `is_wanted` is true, and up to where each must be padded so that all that is written can be read.
    pub fn windows(
        &self,
        geometry: &Geometry,
        is_wanted: impl Fn(&FoundChunk) -> bool,
    ) -> Vec<(ChunkIndex, u32)> {
        let wanted = self.iter().filter(|(_, found)| found.is_open() && is_wanted(found));
        wanted.map(|(chunk, found)| (chunk, found.written + geometry.mw_cunits)).collect()
    }

    /// Pads those of these chunks that are open: up to the sector given with each, and to a border of write units. One that turns
    /// out to be written less far than the drive reported first, or farther, is padded again, for its report is true since. The
    /// halves of the units take turns: what has copies on both (`journal`) is not lost with both if the power goes meanwhile.
    pub fn pad(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        wanted: &[(ChunkIndex, u32)],
    ) -> Result<(), MountError> {
        let Geometry { mw_cunits, .. } = *media.device.geometry();
        let side = |&(chunk, _): &(ChunkIndex, u32)| shape.split_chunk(chunk).1.0 % 2;
        let (even, odd): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(|wanted| side(wanted) == 0);
        for mut wanted in [even, odd] {
            while !wanted.is_empty() {
                let behind = self.pad_once(media, shape, &wanted)?;
                wanted =
                    behind.into_iter().map(|chunk| (chunk, self.get(chunk).written + mw_cunits)).collect();
            }
        }
        Ok(())
    }

    /// The same once; the chunks whose reports were behind.
    fn pad_once(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        wanted: &[(ChunkIndex, u32)],
    ) -> Result<Vec<ChunkIndex>, MountError> {
        let Geometry { ws_opt, sectors_per_chunk, .. } = *media.device.geometry();
        let is_open = |&&(chunk, _): &&(ChunkIndex, u32)| self.get(chunk).is_open();
        let open: Vec<(ChunkIndex, u32)> = wanted.iter().filter(is_open).copied().collect();
        let padding = |&(chunk, until): &(ChunkIndex, u32)| {
            let from = self.get(chunk).written;
            let to = until.max(from).next_multiple_of(ws_opt).min(sectors_per_chunk);
            Padding { chunk: shape.chunk_id(chunk), from, to }
        };
        let paddings: Vec<Padding> = open.iter().map(padding).collect();
        assert!(paddings.iter().all(|padding| padding.from <= padding.to), "padding goes back: {paddings:?}");
        let elsewhere = media.pad(&paddings, ws_opt)?;
        let mut behind = Vec::new();
        for (chunk, _) in open {
            let FoundChunk { holds, before, written, .. } = *self.get(chunk);
            let now = found(media, shape, chunk);
            assert!(before <= written, "chunk {} was written further before this mount", chunk.0);
            assert!(now.written <= sectors_per_chunk, "chunk {} is overfull", chunk.0);
            // Shorter, or longer: what was written last is hidden still.
            let is_elsewhere = now.written != written && elsewhere.contains(&shape.chunk_id(chunk));
            if now.written < written || is_elsewhere {
                behind.push(chunk);
            }
            self.0[chunk.index()] = FoundChunk { holds, before: before.min(now.written), ..now };
        }
        Ok(behind)
    }

    /// Chunks are written up to where they are said to be, whatever was found: they hold content that may look like none.
    pub fn believe(&mut self, geometry: &Geometry, ends: &[(ChunkIndex, u32)]) {
        let all = geometry.sectors_per_chunk;
        for &(chunk, written) in ends {
            assert!(0 < written && written <= all, "{written} sectors of chunk {} are content", chunk.0);
            let found = &mut self.0[chunk.index()];
            let state = if written == all { ChunkState::Closed } else { ChunkState::Open };
            assert!(found.state != ChunkState::Offline, "chunk {} of a block target is offline", chunk.0);
            *found = FoundChunk { state, written, before: written, holds: Some(Holds::Content) };
        }
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

    /// Finds out what each chunk before `end` holds of which that is not known: by its first page, or the next where the media lost
    /// that.
    pub fn identify(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        end: ChunkIndex,
    ) -> Result<(), MountError> {
        let geometry = media.device.geometry().clone();
        assert!(end.0 <= shape.chunks(), "chunk {} is behind the last", end.0);
        let mut unknown: Vec<ChunkIndex> = (0..end.0).map(ChunkIndex).collect();
        for sector in (0..geometry.sectors_per_chunk).step_by(usize_of(geometry.ws_min)) {
            unknown
                .retain(|&chunk| self.get(chunk).holds.is_none() && sector < self.readable(&geometry, chunk));
            if unknown.is_empty() {
                break;
            }
            let asked: Vec<Ppa> =
                unknown.iter().map(|&chunk| Ppa::new(shape.chunk_id(chunk), sector)).collect();
            let tags = media.read_tags(&asked)?;
            for (&chunk, tag) in unknown.iter().zip(tags) {
                self.0[chunk.index()].holds = tag.and_then(|tag| Holds::of(tag.kind));
            }
        }
        Ok(())
    }

    /// The first sectors of all pages of `step` sectors that can be read, in chunks of this kind: the first page of each chunk,
    /// then the second, so that those who read them in batches read many units at a time.
    pub fn pages(
        &self,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        kind: PageKind,
        step: u32,
    ) -> Vec<(ChunkIndex, Ppa)> {
        assert!(step > 0, "pages of no sectors");
        let of = self.iter().filter(|(_, found)| found.pages() == Some(kind)).map(|(chunk, _)| chunk);
        let pages = of.flat_map(|chunk| {
            let whole = self.readable(geometry, chunk) / step;
            (0..whole).map(move |page| (chunk, Ppa::new(shape.chunk_id(chunk), page * step)))
        });
        let mut pages: Vec<(ChunkIndex, Ppa)> = pages.collect();
        pages.sort_by_key(|(chunk, ppa)| (ppa.sector, chunk.0));
        pages
    }
}
