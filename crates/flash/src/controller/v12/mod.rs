//! OCSSD 1.2: the same drive seen as channels, luns, planes, blocks and pages.
//!
//! A block on all planes is a chunk; its sectors are counted page by page, in a page plane by plane. The only place
//! of the drive for these words; `docs/controller.md` says what was chosen. Deliberately not here: the wire form
//! (`nvme`).

mod bad_blocks;
mod identify;
mod io;
mod shape;

pub(super) use bad_blocks::BadBlocks;
pub(super) use shape::PageShape;

use crate::config::Config;

/// What only a 1.2 controller has.
#[derive(Clone, Debug)]
pub(super) struct Compat12 {
    pub(super) shape: PageShape,
    pub(super) bad_blocks: BadBlocks,
}

impl Compat12 {
    /// The 1.2 view of a drive, or a sentence that says why there is none.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        Ok(Self { shape: PageShape::new(config)?, bad_blocks: BadBlocks::new(config) })
    }

    /// Size of the address space, holes included.
    pub(super) fn address_count(&self) -> u64 {
        self.shape.address_count()
    }
}
