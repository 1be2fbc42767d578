//! What lies on a drive, read past any target.

use super::world::World;
use ocssd_ftl::{Head, SectorTag};
use ocssd_lightnvm::{
    Addresses, ChunkDescriptor, ChunkId, ChunkState, Command, Device, Op, PlaneMode, Ppa, Tag,
};

/// A sector on media whose tag is sound.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub ppa: Ppa,
    pub tag: SectorTag,
    /// The head, if it holds one.
    pub head: Option<Head>,
}

/// Everything that can be read on a drive nobody writes to, chunk by chunk.
pub fn on_media(world: &mut World) -> Vec<Found> {
    let geometry = world.host.device().geometry().clone();
    let buffer = world.host.buffers_mut().take(1);
    let mut found = Vec::new();
    for chunk in (0..geometry.chunk_count()).map(ChunkId) {
        let ChunkDescriptor { state, write_pointer, .. } = world.host.device().chunk(chunk);
        let window = if state == ChunkState::Open { geometry.mw_cunits } else { 0 };
        let end = write_pointer.map_or(0, |end| end.saturating_sub(window));
        for ppa in (0..end).map(|sector| Ppa::new(chunk, sector)) {
            let addresses = Addresses::Run { first: ppa, count: 1 };
            let (tag, buffer, buffer_first) = (Tag(0), Some(buffer), 0);
            world.raw(&[Command {
                tag,
                op: Op::Read,
                addresses,
                buffer,
                buffer_first,
                oob: true,
                plane_mode: PlaneMode::Single,
            }]);
            let buffer = buffer.expect("it was just taken");
            let content = world.host.buffers().data(buffer, 0, 1);
            if let Ok(tag) = SectorTag::decode(world.host.buffers().oob(buffer, 0, 1), content) {
                found.push(Found { ppa, tag, head: Head::decode(tag, content).ok() });
            }
        }
    }
    world.host.buffers_mut().give_back(buffer);
    found
}
