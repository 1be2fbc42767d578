//! The key-value interface: the NVMe Key Value Command Set 1.0, with what its users ask for beyond it.
//!
//! Beyond the command set: keys of up to [`KEY_BYTES_MAX`] bytes, values longer than a command (a stage), reads from an
//! offset, listings by prefix, and batches.
//!
//! **Atomicity.** A store replaces the whole value, however long; a batch applies as a whole or not at all.
//!
//! **Order.** Requests take effect in the order in which the target took them. Beyond one key there is no order after a
//! power cut: an unflushed store of one key may survive while an older one of another does not, but for a batch, which
//! is whole.
//!
//! **Durability.** As the request asks ([`Durability`]). After a power cut each key holds its last durable value, or is
//! deleted if that was last, or has any later value; never an earlier one, and never a mixture.
//!
//! **Listing.** A target lists in a fixed total order of all possible keys, from a key on, that key included, if it exists
//! or not. A listing shows what exists when it takes effect.
//!
//! **Errors.** By the specification's status; [`KvRefusal`] where one status has several reasons. A refused batch names
//! its entry.
//!
//! Deliberately not here: key spaces, expiry, and compression.

mod batch;
mod key;

pub use batch::{BatchChange, BatchEntry};
pub use key::{KEY_BYTES_MAX, KEY_INLINE_MAX, Key, decode_keys, encode_keys};

use super::{Content, Durability, List, StageLimits, StageOp, StageRefusal};
use crate::command::Tag;
use crate::status::Status;
use crate::target::Target;
use std::fmt;

/// What must be so for a store to be carried out (KV command set, Store Option).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreCondition {
    /// Nothing.
    #[default]
    Always,
    /// The key exists, or the store is refused with KV Key Does Not Exist.
    MustExist,
    /// The key does not exist, or the store is refused with Key Exists.
    MustNotExist,
}

/// What a deletion of a key that does not exist is (EDNEK of the namespace).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AbsentKey {
    /// A success.
    #[default]
    Success,
    /// Refused with KV Key Does Not Exist.
    Refused,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvOp {
    /// The key holds this value from now on.
    Store {
        /// The key.
        key: Key,
        /// The value; may be empty.
        content: Content,
        /// What must be so.
        condition: StoreCondition,
        /// When it survives a power cut.
        durability: Durability,
    },
    /// Reads a value: as many of its bytes from `offset` on as there are and as `into` has room for.
    Retrieve {
        /// The key.
        key: Key,
        /// First byte of the value.
        offset: u32,
        /// Where to.
        into: Content,
    },
    /// The key does not exist from now on.
    Delete {
        /// The key.
        key: Key,
        /// What it is if it did not exist before.
        absent: AbsentKey,
        /// When it survives a power cut.
        durability: Durability,
    },
    /// Succeeds if the key exists, and tells the length of its value.
    Exist {
        /// The key.
        key: Key,
    },
    /// Lists keys in the target's order, as many as `into` has room for, in the form of [`encode_keys`].
    List {
        /// The first key; an empty one is before all.
        from: Key,
        /// Only keys that begin with so many first bytes of `from`.
        prefix_bytes: u8,
        /// Where to.
        into: Content,
    },
    /// Carries out all changes in order, or none.
    Batch {
        /// The changes.
        entries: List<BatchEntry>,
        /// When they survive a power cut.
        durability: Durability,
    },
    /// A stage for the value of a store.
    Stage(StageOp),
    /// Replies when everything answered before is durable.
    Flush,
    /// Replies when everything is durable and the target can be left; nothing may be asked of it afterwards.
    Shutdown,
}

/// A request to a key-value target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvRequest {
    /// The host's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: KvOp,
}

/// What a successful request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvAnswer {
    /// Nothing but that it was done; also of a refused request.
    Done,
    /// Of a retrieve or an exist: the value.
    Value {
        /// Bytes of the whole value.
        bytes: u32,
    },
    /// Of a list.
    Listed {
        /// Keys in the buffer.
        keys: u32,
        /// Bytes they take there.
        bytes: u32,
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRefusal {
    /// The key is empty, or longer than the target takes.
    KeyLength,
    /// The value is longer than the target takes.
    ValueLength,
    /// The key does not exist.
    NoSuchKey,
    /// The key exists.
    KeyExists,
    /// There is no room; deletions still work.
    NoRoom,
    /// The batch has more entries than the target takes.
    BatchTooLong,
    /// The batch's buffer does not hold it.
    BadBatch,
    /// A prefix longer than its key.
    PrefixLength,
    /// A key or a buffer does not lie where the request says.
    BadContent,
    /// Something about a stage.
    Stage(StageRefusal),
}

impl KvRefusal {
    /// The status of the reply (KV command set 1.0, command specific values of the generic type).
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::KeyLength => Status::INVALID_KEY_SIZE,
            Self::ValueLength => Status::INVALID_VALUE_SIZE,
            Self::NoSuchKey => Status::KEY_DOES_NOT_EXIST,
            Self::KeyExists => Status::KEY_EXISTS,
            Self::NoRoom => Status::CAPACITY_EXCEEDED,
            Self::BatchTooLong | Self::BadBatch | Self::PrefixLength | Self::BadContent => {
                Status::INVALID_FIELD
            }
            Self::Stage(refusal) => refusal.status(),
        }
    }
}

impl fmt::Display for KvRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyLength => "a key has at least one byte and at most as many as the target's limit",
            Self::ValueLength => "the value is longer than the target's limit",
            Self::NoSuchKey => "the key does not exist",
            Self::KeyExists => "the key exists, and the store asked that it does not",
            Self::NoRoom => "there is no room: delete keys",
            Self::BatchTooLong => "the batch has more entries than the target's limit",
            Self::BadBatch => "a batch lies in a whole buffer that has room for its entries",
            Self::PrefixLength => "a prefix is not longer than the key it is of",
            Self::BadContent => "a buffer of the request does not hold what the request names",
            Self::Stage(refusal) => return refusal.fmt(f),
        })
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvReply {
    /// The request's tag.
    pub tag: Tag,
    /// Success, the refusal's status, or a failure of the media.
    pub status: Status,
    /// Why it was refused, if it was.
    pub refusal: Option<KvRefusal>,
    /// Of a batch: the entry it was refused for.
    pub entry: Option<u32>,
    /// What came of it.
    pub answer: KvAnswer,
}

impl KvReply {
    /// The reply to a request that succeeded.
    #[must_use]
    pub const fn success(tag: Tag, answer: KvAnswer) -> Self {
        Self { tag, status: Status::SUCCESS, refusal: None, entry: None, answer }
    }

    /// The reply to a request that was refused.
    #[must_use]
    pub const fn refused(tag: Tag, refusal: KvRefusal, entry: Option<u32>) -> Self {
        Self { tag, status: refusal.status(), refusal: Some(refusal), entry, answer: KvAnswer::Done }
    }
}

/// In which order a target lists keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// Ascending, byte by byte.
    #[default]
    Bytewise,
    /// An order of its own, as by a hash of the key.
    Own,
}

/// What a key-value target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLimits {
    /// Bytes of a key: [`KEY_INLINE_MAX`] of a namespace, up to [`KEY_BYTES_MAX`].
    pub key_bytes_max: u32,
    /// Bytes of a value.
    pub value_bytes_max: u32,
    /// Entries of a batch.
    pub batch_entries_max: u32,
    /// Bytes of keys and values that fit at least.
    pub capacity_bytes: u64,
    /// In which order keys are listed.
    pub list_order: ListOrder,
    /// Stages.
    pub stages: StageLimits,
}

/// A target with the key-value interface.
pub trait KvTarget: Target<Request = KvRequest, Reply = KvReply> {
    /// What it takes; never changes.
    fn limits(&self) -> KvLimits;

    /// Bytes of all keys and values. It falls as soon as a deletion takes effect.
    fn used_bytes(&self) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_command_sets_statuses() {
        for (refusal, status) in [
            (KvRefusal::NoRoom, 0x081),
            (KvRefusal::ValueLength, 0x085),
            (KvRefusal::KeyLength, 0x086),
            (KvRefusal::NoSuchKey, 0x087),
            (KvRefusal::KeyExists, 0x089),
            (KvRefusal::BadBatch, 0x002),
            (KvRefusal::Stage(StageRefusal::NotOpen), 0x00C),
        ] {
            let reply = KvReply::refused(Tag(1), refusal, None);
            assert_eq!(reply.status.to_bits(), status, "{refusal}");
            assert!(!reply.status.name().starts_with("unknown"), "{status:#x}");
        }
        assert!(KvReply::success(Tag(1), KvAnswer::Done).status.is_success());
    }
}
