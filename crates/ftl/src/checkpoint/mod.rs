//! Checkpoints: named sections of bytes, written as pages, true once their commit page is on media.
//!
//! [`CheckpointWriter`] cuts an image into pages and gives out the commit page only when every other is on media;
//! [`Checkpoints`] takes the pages that were found and says which checkpoint is the newest whole one. So a power cut at
//! any write leaves the checkpoint before, as long as its owner keeps that: two generations, and neither is touched while
//! the next is written (defects 1 and 2 of docs/ox-block.md). A page is found by what it says of itself, wherever it lies.
//! Deliberately not here: places, commands, what sections hold.

mod page;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use page::{CHECKPOINT_HEADER_BYTES, CheckpointPage, CheckpointPageError, PageIndex, Serial};
pub use reader::{CheckpointError, Checkpoints, Sections};
pub use writer::CheckpointWriter;

/// The name of a section, as it stands on media.
pub type SectionName = [u8; 8];
