//! The seam to what keeps keys and values: requests out, answers in, in any order.
//!
//! Requests take effect in the order in which they are taken out. Deliberately not here: pieces of memory, jobs and targets
//! (`lane`).

use super::view::Change;

/// What is asked of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Reads as many bytes of a value from `offset` on as there are, at most `bytes`.
    Retrieve {
        /// The key.
        key: Vec<u8>,
        /// First byte.
        offset: usize,
        /// Most bytes.
        bytes: usize,
    },
    /// Stores and deletes, all or nothing; never empty.
    Change(Vec<Change>),
    /// Lists keys in the store's order from this one on, it included; an empty one is before all. As many as there is room for in
    /// so many bytes, each with four more.
    List {
        /// The first.
        from: Vec<u8>,
        /// Bytes of the list.
        bytes: usize,
    },
    /// Everything answered before is durable.
    Flush,
}

/// Names a request: the command it is of, and which of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The command under way.
    pub task: u32,
    /// Which of its keys.
    pub place: u32,
}

/// A request to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRequest {
    /// Its name.
    pub token: Token,
    /// What.
    pub op: StoreOp,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// Of a retrieve: the bytes, and how many the whole value has.
    Value {
        /// The bytes.
        bytes: Vec<u8>,
        /// Of the whole value.
        total: usize,
    },
    /// Of a retrieve: the key does not exist.
    Absent,
    /// Of a list: the keys.
    Keys(Vec<Vec<u8>>),
    /// There is no room; deletions still work.
    NoRoom,
    /// It was refused or failed, in a sentence.
    Failed(String),
}

/// What the store takes, and how it is used.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// Bytes of a key.
    pub key_bytes_max: usize,
    /// Bytes of a stored value, head included.
    pub value_bytes_max: usize,
    /// Changes of one request.
    pub changes_max: usize,
}
