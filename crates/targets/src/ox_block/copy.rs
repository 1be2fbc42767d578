//! Copies of a victim's blocks: each goes to a buffer unit of its group, and says where it was copied from.
//!
//! Deliberately not here: what is read of a victim, and when a buffer unit of copies goes out (`ox::collect`).

use super::store::{Owner, OxBlock, Slot};
use ocssd_ftl::{Kind, Mapped, PhysicalAddress, SectorTag};
use ocssd_lightnvm::{BufId, Buffers};

impl OxBlock {
    /// Copies a sector that was read, or notes that it was lost, if it still is needed.
    pub(super) fn copy_sector(
        &mut self,
        from: PhysicalAddress,
        (buffer, at): (BufId, u32),
        is_lost: bool,
        buffers: &mut Buffers,
    ) {
        if !self.space.live.is_valid(from) {
            return;
        }
        let chunk = self.space.shape.chunk_of(from).0;
        let Some((lba, kind)) = self.whose(from, (buffer, at), is_lost, buffers) else {
            return self.look_for_owner(from);
        };
        self.ask_ahead(lba, 1, buffers);
        let stream = self.copies_of(chunk);
        let (buffer_unit, room) =
            self.buffer.filling(stream).expect("buffer units were counted before it was read");
        assert!(room > 0, "a full buffer unit is being filled");
        self.copy_begun(chunk);
        let (target, offset) = self.buffer.push(buffer_unit, Slot { lba, owner: Owner::Copy(from) }, 1);
        self.buffer.close_if_full(stream);
        if kind == Kind::Lost {
            buffers.data_mut(target, offset, 1).fill(0);
        } else {
            buffers.copy_data(buffer, at, target, offset, 1);
        }
        self.tag(kind, lba, (target, offset), buffers);
    }

    /// The block of a valid sector that was read, and what it is: only the map knows whose a lost one was, and of a block that is
    /// not true yet its transaction. None if the page that says so is not in memory, and was not looked for yet.
    fn whose(
        &self,
        from: PhysicalAddress,
        (buffer, at): (BufId, u32),
        is_lost: bool,
        buffers: &Buffers,
    ) -> Option<(u64, Kind)> {
        let tag = SectorTag::decode(buffers.oob(buffer, at, 1), buffers.data(buffer, at, 1));
        let tag = tag.ok().filter(|tag| !is_lost && tag.block < self.sizes.blocks);
        if self.store.cache.is_none() {
            let is_own = |tag: &SectorTag| self.store.l2p.get(tag.block) == Mapped::Media(from);
            if let Some(SectorTag { block, kind, .. }) = tag.filter(is_own) {
                return Some((block, kind));
            }
            if let Some(lba) = self.uncommitted_block(from) {
                let own = tag.filter(|tag| tag.block == lba);
                return Some((lba, own.map_or(Kind::Lost, |tag| tag.kind)));
            }
            return Some((self.store.l2p.find(from).expect("a valid sector is some block's"), Kind::Lost));
        }
        // When the copy becomes true its page is looked at.
        let found = || {
            let lba = self.uncommitted_block(from).or_else(|| self.owner_of_lost(from));
            lba.map(|lba| (lba, Kind::Lost))
        };
        let tag = tag.filter(|tag| matches!(tag.kind, Kind::Data | Kind::Lost));
        tag.map(|tag| (tag.block, tag.kind)).or_else(found)
    }
}
