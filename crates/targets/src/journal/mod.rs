//! What a log-structured target keeps about itself: a log of changes, and checkpoints, on their way to media.
//!
//! [`Journal`] says which page goes where next, as a [`PageWrite`]; its owner makes a command of it and tells the journal how
//! that ended. `page_io` has the buffers, `points` the places. Two checkpoints and the log from the older one on are on media at
//! any time, and a third is written in places of its own: a power cut at any write, or one checkpoint that the media lost, leaves
//! one that is whole.
//! Deliberately not here: what is logged and what the sections of a checkpoint hold, when a checkpoint is due (the target), and
//! reading them back (`recovery`).

mod info;
mod log_places;
mod page_io;
mod pages;
mod points;
#[cfg(test)]
mod tests;

pub use info::{decode_info, encode_info};
pub use page_io::PageIo;
pub use pages::{
    Journal, JournalSizes, Kept, Logged, NewJournal, Oldest, PageChunks, PageKind, PageWrite, outcome,
};
pub use points::{PagePoints, checkpoint_chunks_of, chunks_of, log_width, narrow, reach_of_loss};
