//! A mount without records of its own: what lies on the units, as reports and tags of sectors say.
//!
//! Reports are doubted first (`chunk_reports`). Open chunks are gone on with, behind as much padding as the media want before they
//! answer reads of all that was written (MW_CUNITS); those the stream has no place for are padded to their end. Then every tag is
//! read: simple, and slow on large drives. Deliberately not here: which version of a block counts, and what to do about sectors
//! that the media lost, of which nothing says whose they were.

use crate::mount_error::MountError;
use crate::recovery::media::{Media, Padding};
use ocssd_ftl::{AppendPoint, ChunkIndex, ChunkUse, InstanceGeometry, Kind, PhysicalAddress, SectorTag};
use ocssd_lightnvm::{BlockingDevice, ChunkState, Geometry, Ppa};

/// What lies on the units.
#[derive(Debug)]
pub struct Scanned {
    /// What each chunk is used for: those that the stream goes on with are open.
    pub uses: Vec<ChunkUse>,
    /// Sectors of blocks, and of blocks whose content the media lost: those written first in front, copies of one write by place.
    pub blocks: Vec<(SectorTag, PhysicalAddress)>,
}

/// Looks what lies on the units of `shape`; `append` goes on with open chunks.
///
/// # Errors
/// A sentence, if the drive fails what is asked, or what it reports of a chunk cannot be true.
pub fn scan<T: Copy>(
    device: &mut dyn BlockingDevice,
    shape: &InstanceGeometry,
    append: &mut AppendPoint<T>,
) -> Result<Scanned, String> {
    let mut media = Media::new(device);
    let found = look(&mut media, shape, append);
    media.end();
    found.map_err(|error| error.to_string())
}

fn look<T: Copy>(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    append: &mut AppendPoint<T>,
) -> Result<Scanned, MountError> {
    media.settle_reports(shape)?;
    go_on(media, shape, append)?;
    let mut blocks = Vec::new();
    for line in 0..shape.lines() {
        // A line at a time: all sectors of a drive would be a long list.
        let mut places = Vec::new();
        for chunk in (line * shape.units()..).take_while(|&chunk| chunk < (line + 1) * shape.units()) {
            let chunk = ChunkIndex(chunk);
            let written = media.device.chunk(shape.chunk_id(chunk)).write_pointer.unwrap_or(0);
            places.extend(
                (shape.first_place(chunk).0..).take(ocssd_base::usize_of(written)).map(PhysicalAddress),
            );
        }
        let ppas: Vec<Ppa> = places.iter().map(|&place| shape.ppa(place)).collect();
        let tags = media.read_tags(&ppas)?;
        assert_eq!(tags.len(), places.len(), "every sector of line {line} was asked for");
        let of_blocks = |tag: &SectorTag| matches!(tag.kind, Kind::Data | Kind::Lost);
        blocks.extend(
            tags.into_iter().zip(places).filter_map(|(tag, place)| Some((tag.filter(of_blocks)?, place))),
        );
    }
    assert!(u64::try_from(blocks.len()).is_ok_and(|found| found <= shape.places()), "more tags than sectors");
    blocks.sort_by_key(|&(tag, place)| (tag.sequence, place));
    let uses = (0..shape.chunks()).map(|chunk| usage(media, shape, append, ChunkIndex(chunk))).collect();
    Ok(Scanned { uses, blocks })
}

fn usage<T: Copy>(
    media: &Media<'_>,
    shape: &InstanceGeometry,
    append: &AppendPoint<T>,
    chunk: ChunkIndex,
) -> ChunkUse {
    match media.device.chunk(shape.chunk_id(chunk)).state {
        ChunkState::Free => ChunkUse::Free,
        ChunkState::Offline => ChunkUse::Bad,
        ChunkState::Open if append.has(chunk) => ChunkUse::Open,
        // One that takes no writes is as good as closed, for a reset brings it back.
        ChunkState::Open | ChunkState::Closed => ChunkUse::Closed,
    }
}

/// Goes on with the chunks that are open.
fn go_on<T: Copy>(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    append: &mut AppendPoint<T>,
) -> Result<(), MountError> {
    let Geometry { ws_opt, mw_cunits, sectors_per_chunk: all, .. } = *media.device.geometry();
    let pointer = |media: &Media<'_>, chunk: ChunkIndex| {
        let report = media.device.chunk(shape.chunk_id(chunk));
        report.write_pointer.filter(|_| report.state == ChunkState::Open)
    };
    let readable = |from: u32| (from + mw_cunits).next_multiple_of(ws_opt).min(all);
    let mut open = Vec::new();
    for chunk in (0..shape.chunks()).map(ChunkIndex) {
        if let Some(from) = pointer(media, chunk) {
            open.push((chunk, Padding { chunk: shape.chunk_id(chunk), from, to: readable(from) }));
        }
    }
    let paddings: Vec<Padding> = open.iter().map(|&(_, padding)| padding).collect();
    media.pad(&paddings, ws_opt)?;
    let mut rest = Vec::new();
    for (chunk, padding) in open {
        let Some(from) = pointer(media, chunk) else { continue };
        assert!(from < all, "chunk {} is open and full", chunk.0);
        if from != padding.to || !append.adopt(chunk, shape.split_chunk(chunk).1, from) {
            rest.push(Padding { from, to: all, ..padding });
        }
    }
    media.pad(&rest, ws_opt).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit_writer::append_point;
    use ocssd_engine::{Host, VirtualClock};
    use ocssd_flash::{Flash, presets};
    use ocssd_lightnvm::{Addresses, Buffers, ChunkId, Command, Op, PlaneMode, PuId, Status, Tag};

    /// Sectors that were written before the mount.
    const WRITTEN: u32 = 4;

    #[test]
    fn an_open_chunk_is_padded_until_what_was_written_can_be_read_and_gone_on_with_there() {
        let geometry = Geometry { mw_cunits: 2 * WRITTEN, ..Geometry::example(1, 1, 4, 64, WRITTEN) };
        let mut config = presets::find("tiny").expect("a preset").config();
        (config.media.planes, config.media.sectors_per_page) = (1, geometry.ws_min);
        config.geometry = geometry.clone();
        let flash = Flash::format(config).unwrap_or_else(|problems| panic!("{problems}"));
        let buffers = Buffers::new(flash.payload_format());
        let mut host: Host<Flash, VirtualClock> = Host::new(flash, VirtualClock::default(), buffers);
        let mut device = host.caller();
        let chunk = ChunkId(2);
        let buffer = Some(device.buffers().take(WRITTEN));
        let addresses = Addresses::Run { first: Ppa::new(chunk, 0), count: WRITTEN };
        let (op, plane_mode) = (Op::Write { fua: true }, PlaneMode::Single);
        let write = Command { tag: Tag(0), op, addresses, buffer, buffer_first: 0, oob: true, plane_mode };
        let ends = device.call(&[write]).expect("the power is on");
        assert_eq!(ends[0].status, Status::SUCCESS);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0)]);
        let mut append = append_point(&geometry, &shape, 1);
        let found = scan(&mut device, &shape, &mut append).expect("the drive is sound");
        // The media answer reads of a sector once eight more are written behind it.
        assert_eq!(device.chunk(chunk).write_pointer, Some(3 * WRITTEN));
        assert_eq!(found.uses, [ChunkUse::Free, ChunkUse::Free, ChunkUse::Open, ChunkUse::Free]);
        assert!(append.has(ChunkIndex(2)), "it is written on");
        assert!(found.blocks.is_empty(), "no tag names a block");
    }
}
