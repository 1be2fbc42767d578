//! What zones show: what is read of each, whether that is what a zone must show, and which zone it is.
//!
//! Deliberately not here: what a power cut may leave (`survivors`).

use super::image::Zone;
use super::model::{ZonedModel, count};
use super::survivors::{Found, Survivor};
use crate::contract::{Answerer, Broken};
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, UnwrittenRead, ZoneDescriptor, ZoneExtension, ZoneState, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::{BufId, Status, Tag};
use std::rc::Rc;

/// Most blocks that are read at once behind a write pointer (chosen: a vector command's worth).
const BLOCKS_AT_ONCE: u32 = 64;

/// The content of a block, which many share that were not written; `None` if it cannot be read.
pub type ObservedBlock = Option<Rc<Vec<u8>>>;

/// What a zone shows: its state, and each block up to its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedZone {
    /// Its descriptor.
    pub zone: ZoneDescriptor,
    /// Its extension; zeroes if it has none.
    pub extension: ZoneExtension,
    /// Its blocks.
    pub blocks: Vec<ObservedBlock>,
}

impl ObservedZone {
    /// The next block is this; it shares what the one before has, if that is the same.
    fn push(&mut self, content: Option<&[u8]>) {
        let before = self.blocks.last().and_then(Option::as_ref);
        let block = content.map(|content| match before.filter(|before| before.as_slice() == content) {
            Some(same) => same.clone(),
            None => Rc::new(content.to_vec()),
        });
        self.blocks.push(block);
    }
}

impl ZonedModel {
    /// What a block reads as that was not written.
    fn unwritten(&self, state: ZoneState, block_bytes: usize) -> ObservedBlock {
        let is_zeroes = self.geometry.unwritten_read == UnwrittenRead::Zeroes && state != ZoneState::Offline;
        is_zeroes.then(|| Rc::new(vec![0; block_bytes]))
    }

    /// The zone that was found, if it may be.
    pub(super) fn found(&self, number: usize, found: &ObservedZone, legal: &[Survivor]) -> Option<Zone> {
        let bytes = found.blocks.iter().flatten().next().map_or(0, |block| block.len());
        let ObservedZone { zone, blocks, .. } = found;
        let pointer = zone.write_pointer.map(|pointer| pointer.saturating_sub(zone.start));
        let unwritten = self.unwritten(zone.state, bytes);
        let read = Found { state: zone.state, pointer, blocks, unwritten: &unwritten };
        let mut same = legal.iter().filter_map(|survivor| survivor.resolved(&read, &self.geometry));
        same.find(|image| self.shown(number, image, bytes) == *found)
    }

    /// What a zone shows that is this.
    fn shown(&self, zone: usize, image: &Zone, block_bytes: usize) -> ObservedZone {
        let start = self.geometry.start_of(count(zone));
        let write_pointer = image.state.is_writable().then(|| start + image.written());
        let unwritten = self.unwritten(image.state, block_bytes);
        let mut blocks: Vec<_> = image
            .blocks
            .iter()
            .map(|block| block.clone().map(Rc::new).or_else(|| unwritten.clone()))
            .collect();
        blocks.resize(
            usize::try_from(self.geometry.capacity_blocks).expect("a simulated zone is small"),
            unwritten,
        );
        let capacity = self.geometry.capacity_blocks;
        let has_extension = image.extension.is_some();
        ObservedZone {
            zone: ZoneDescriptor {
                state: image.state,
                capacity,
                start,
                write_pointer,
                has_extension,
                has_area: image.has_area,
            },
            extension: image.extension.unwrap_or(ZoneExtension::ZERO),
            blocks,
        }
    }

    /// Reads the blocks of a zone: one by one, as the media may have lost each for itself, but those behind the write pointer, of
    /// which a large zone has many.
    pub(super) fn observe_zone(
        &self,
        target: &mut dyn Answerer<ZonedRequest, ZonedReply>,
        DescribedZone { zone, extension }: DescribedZone,
    ) -> Result<ObservedZone, Broken> {
        let buffer = target.buffers().take(BLOCKS_AT_ONCE);
        let mut observed = ObservedZone { zone, extension, blocks: Vec::new() };
        let (mut block, end) = (zone.start, zone.start + zone.capacity);
        while block < end {
            let is_unwritten = zone.write_pointer.is_some_and(|pointer| block >= pointer);
            let left = u32::try_from(end - block).unwrap_or(u32::MAX);
            let many = if is_unwritten { left.min(BLOCKS_AT_ONCE) } else { 1 };
            if !self.observe_blocks(target, &mut observed, (block, many), buffer)? {
                for block in block..block + u64::from(many) {
                    let is_one = self.observe_blocks(target, &mut observed, (block, 1), buffer)?;
                    assert!(is_one, "block {block} is neither there nor not");
                }
            }
            block += u64::from(many);
        }
        target.buffers().give_back(buffer);
        Ok(observed)
    }

    /// Reads some blocks; false if they are several, and not all of them can be read.
    fn observe_blocks(
        &self,
        target: &mut dyn Answerer<ZonedRequest, ZonedReply>,
        observed: &mut ObservedZone,
        (block, many): (u64, u32),
        buffer: BufId,
    ) -> Result<bool, Broken> {
        let request =
            ZonedRequest { tag: Tag(0), op: ZonedOp::Read, block, count: many, buffer: Some(buffer) };
        let reply = target.ask(request)?;
        let is_known = matches!(reply.status, Status::UNWRITTEN | Status::ZONE_IS_OFFLINE);
        if !reply.status.has_data() && many > 1 {
            return Ok(false);
        }
        if !reply.status.has_data() && !is_known {
            let found = format!("{} of block {block}", reply.status);
            return Err(Broken::new("readable after a power cut", "data, or that there is none", found));
        }
        if !reply.status.has_data() {
            observed.push(None);
            return Ok(true);
        }
        let content = self.content(&request, target.buffers()).gathered(target.buffers());
        let bytes = content.len() / usize::try_from(many).expect("32 bits fit an index");
        content.chunks_exact(bytes).for_each(|block| observed.push(Some(block)));
        Ok(true)
    }
}
