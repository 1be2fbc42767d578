//! What ends a chunk: its tail, and before it what is too little for a buffer unit.
//!
//! A chunk begun before this mount gets fill for a tail: not all of its tags are known. Deliberately not here: the layout of
//! a tail (`ftl::tail`), when one is due (`ftl::OpenLine`).

use super::Pblk;
use ocssd_base::usize_of;
use ocssd_ftl::tail::ENTRY_BYTES;
use ocssd_ftl::{ChunkLayout, Kind, LineContent, SectorTag, tail};
use ocssd_lightnvm::{BufId, Buffers};

/// Most that is written at once of what ends a chunk; 0 if nothing does.
pub(super) fn sectors_at_once(layout: &ChunkLayout) -> u32 {
    layout.tail.max(layout.batch - layout.unit)
}

/// Buffers for what ends chunks. Of a tail the drive is lent the list and no more: it looks at every byte, and most of a
/// small chunk's tail lies behind its list.
pub(super) fn take_buffers(layout: &ChunkLayout, count: u32, buffers: &mut Buffers) -> Vec<BufId> {
    let sectors = sectors_at_once(layout);
    let count = if sectors > 0 { count } else { 0 };
    let list = list_sectors(layout, buffers);
    (0..count).map(|_| buffers.take_whole_front(sectors, list)).collect()
}

/// Sectors of a tail's list; 0 if chunks have no tail.
fn list_sectors(layout: &ChunkLayout, buffers: &Buffers) -> u32 {
    let sector_bytes = u32::try_from(buffers.format().sector_bytes).expect("a sector is small");
    if layout.tail > 0 { tail::list_sectors(layout.sectors, sector_bytes) } else { 0 }
}

/// Nothing is in the sectors a list takes.
fn clear_list(layout: &ChunkLayout, buffer: BufId, buffers: &mut Buffers) {
    let list = list_sectors(layout, buffers);
    if list > 0 {
        buffers.whole_mut(buffer, 0, list).fill(0);
    }
}

/// Makes the content of what ends a chunk: of its tail, if it has `tags` to list. What kind of sectors it is.
fn fill(
    layout: &ChunkLayout,
    piece: LineContent,
    tags: Option<&[u8]>,
    buffer: BufId,
    buffers: &mut Buffers,
) -> Kind {
    let Some(tags) = tags.filter(|_| piece == LineContent::Tail) else {
        clear_list(layout, buffer, buffers);
        return Kind::Pad;
    };
    let listed = usize_of(layout.data_end()) * ENTRY_BYTES;
    assert_eq!(tags.len(), listed, "every tail lists all sectors before it, and no more was ever written");
    let list = list_sectors(layout, buffers);
    assert!(list > 0, "a tail is due in chunks that have none");
    tail::encode(tags, buffers.whole_mut(buffer, 0, list));
    Kind::Tail
}

impl Pblk {
    /// Sends what is due at the ends of chunks, of every open line.
    pub(super) fn write_tails(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(&line) = self.tails_due.front() {
            let open = self.open[line.index()].as_ref().expect("a line with a tail due is open");
            let Some((write, tags)) = open.next_tail() else {
                self.tails_due.pop_front();
                continue;
            };
            if !self.flight.has_room(1) {
                break;
            }
            let Some(buffer) = self.tails.pop() else { break };
            let layout = &self.capacity.layout;
            assert!(
                matches!(write.piece, LineContent::Padding | LineContent::Tail),
                "a chunk does not end with data"
            );
            assert!(write.sector.is_multiple_of(layout.unit), "a chunk ends within a write unit");
            // Zeroed at its first use, and not at mount: most mounts of a small instance write few tails.
            if self.tails.len() < self.tails_fresh {
                self.tails_fresh = self.tails.len();
                buffers.data_mut(buffer, 0, sectors_at_once(layout)).fill(0);
                clear_list(layout, buffer, buffers);
            }
            let kind = fill(layout, write.piece, tags, buffer, buffers);
            self.write_meta((line, write), buffer, (0, 0), |_| SectorTag { kind, ..SectorTag::PAD }, buffers);
            any = true;
        }
        any
    }
}
