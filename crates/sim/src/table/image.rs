//! Published tables and logs, the edits that change which there are, and the bytes of logs.

use ocssd_lightnvm::interface::table::{TableId, TableKind};
use std::collections::BTreeMap;

/// What a power cut leaves of a table or a log, and what a target shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedTable {
    /// Which it is.
    pub kind: TableKind,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its attributes.
    pub attributes: Vec<u8>,
}

/// One thing on the shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A published table and its bytes.
    Table(Vec<u8>),
    /// A log, by the number of its creation: its bytes are kept elsewhere.
    Log(u64),
}

/// Published tables and logs, with their attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shelf {
    /// By name.
    pub items: BTreeMap<TableId, (Item, Vec<u8>)>,
}

/// A change of the shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A log began.
    Created(TableId, u64),
    /// A table is visible, with its bytes and its attributes.
    Published(TableId, Vec<u8>, Vec<u8>),
    /// A table or log is gone.
    Deleted(TableId),
    /// Other attributes.
    Described(TableId, Vec<u8>),
}

impl Shelf {
    /// Carries out a change.
    pub fn change(&mut self, edit: &Edit) {
        match edit {
            Edit::Created(table, number) => {
                self.items.insert(*table, (Item::Log(*number), Vec::new()));
            }
            Edit::Published(table, bytes, attributes) => {
                self.items.insert(*table, (Item::Table(bytes.clone()), attributes.clone()));
            }
            Edit::Deleted(table) => {
                self.items.remove(table);
            }
            Edit::Described(table, attributes) => {
                let (_, place) = self.items.get_mut(table).expect("only what is there is described");
                place.clone_from(attributes);
            }
        }
    }
}

/// The bytes of a log, and how many of the first survive for sure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBytes {
    /// All of them.
    pub bytes: Vec<u8>,
    /// Those that are durable.
    pub synced: usize,
}
