//! What a refusal of the target means for a tree, with numbers: what it needed, what there is, and what helps.
//!
//! Deliberately not here: when a target refuses (`lightnvm::interface::table`), and edits that are too long, which are not asked
//! for (`background`).

use super::source::Lsm;
use super::wire::Ask;
use ocssd_lightnvm::interface::table::TableRefusal;

impl Lsm {
    /// The sentence of a refusal, and the numbers behind it if it is about room.
    pub(super) fn sentence_of(&self, ask: &Ask, refusal: TableRefusal) -> String {
        let said = format!("{}: {refusal}", ask.name());
        match refusal {
            TableRefusal::TooLong => format!("{said}: {}", self.too_long(ask)),
            TableRefusal::TooManyTables => format!("{said}: {}", self.too_many()),
            TableRefusal::NoRoom => format!("{said}: {}", self.no_room()),
            _ => said,
        }
    }

    fn too_long(&self, ask: &Ask) -> String {
        let needed = match *ask {
            Ask::Create { bytes, .. } => bytes,
            Ask::Append { offset, bytes, .. } => offset + bytes,
            Ask::Read { .. } | Ask::Edit(_) => unreachable!("{} makes no table longer", ask.name()),
        };
        format!(
            "it may come to {needed} bytes, and the target takes {}; choose a smaller write_buffer_size and \
             target_file_size_base, or a drive with larger chunks",
            self.limits.table_bytes_max
        )
    }

    /// The table that was refused is the one more.
    fn too_many(&self) -> String {
        format!(
            "the tree has {} that are published and needs more, and the target keeps {} with those that are being written; \
             choose a larger write_buffer_size and target_file_size_base, a smaller num, or a larger drive",
            self.tree.tables.len(),
            self.limits.tables_max
        )
    }

    fn no_room(&self) -> String {
        let live: u64 = self.tree.tables.values().map(|table| table.bytes).sum();
        format!(
            "the tree has {live} bytes in tables that are published and needs more, and {} fit for sure with those that are being \
             written; choose a smaller num, or a larger drive",
            self.limits.capacity_bytes
        )
    }
}
