//! Requests to a target of keys and values, as C has them and as the target does.
//!
//! Deliberately not here: the exported functions.

use crate::ask::{Ask, ended, refused};
use crate::boundary::Memory;
use crate::content::{Given, StageAsk, length, room_for};
use crate::failure::Failure;
use crate::payload::Loan;
use crate::reply::{End, Reply};
use crate::request::{OCSSD_FUA, OCSSD_STAGED, durability};
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, KEY_INLINE_MAX, Key, KvAnswer, KvLimits, KvOp, KvRefusal, KvReply,
    KvRequest, StoreCondition,
};
use ocssd_lightnvm::interface::{Durability, List, Piece};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::ffi::{c_int, c_void};

/// The key has this value from now on.
pub const OCSSD_KV_STORE: u32 = 0;
/// Reads a value.
pub const OCSSD_KV_RETRIEVE: u32 = 1;
/// The key does not exist from now on.
pub const OCSSD_KV_DELETE: u32 = 2;
/// Asks whether a key exists.
pub const OCSSD_KV_EXIST: u32 = 3;
/// Lists keys, from one on.
pub const OCSSD_KV_LIST: u32 = 4;
/// Stores and deletes several keys, all at once.
pub const OCSSD_KV_BATCH: u32 = 5;

/// A store or a deletion is refused if the key does not exist; without it a deletion of such a key succeeds.
pub const OCSSD_MUST_EXIST: u32 = 16;
/// A store is refused if the key exists.
pub const OCSSD_MUST_NOT_EXIST: u32 = 32;

/// One change of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// `OCSSD_KV_STORE` or `OCSSD_KV_DELETE`.
    pub op: u32,
    /// `OCSSD_MUST_EXIST`, `OCSSD_MUST_NOT_EXIST`, or 0; judged with the changes above applied.
    pub flags: u32,
    /// The key. If several changes name it the last one stays.
    pub key: *const c_void,
    /// The value of a store; NULL without bytes.
    pub value: *const c_void,
    /// Bytes of the value.
    pub value_bytes: u64,
    /// Bytes of the key.
    pub key_bytes: u32,
    /// Zero.
    pub reserved: u32,
}

/// A request to a target of keys and values. What an operation does not name is 0 or NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KeysRequest {
    /// `OCSSD_KV_STORE` and so on.
    pub op: u32,
    /// `OCSSD_FUA` of what changes something; `OCSSD_MUST_EXIST` of a store or deletion; `OCSSD_MUST_NOT_EXIST` and
    /// `OCSSD_STAGED` of a store.
    pub flags: u32,
    /// The key, of all but batches: any bytes. Of a list the first that may be listed, if it exists or not.
    pub key: *const c_void,
    /// Bytes of the key; 0 of a list is before all keys.
    pub key_bytes: u32,
    /// Of a list: only keys that begin with so many first bytes of the key.
    pub prefix_bytes: u32,
    /// Of a retrieve the first byte of the value.
    pub offset: u64,
    /// Of a store the value, which may change when the call that submits returns; NULL if it is staged. Of a retrieve or a list
    /// where to put what is read: it must stay until the request has ended.
    pub data: *mut c_void,
    /// Bytes of the value, staged or not; of a retrieve or a list how many bytes there is room for.
    pub bytes: u64,
    /// Of a batch its changes, which may change when the call that submits returns, as keys and values may.
    pub changes: *const Change,
    /// How many.
    pub change_count: u32,
    /// The stage of `OCSSD_STAGED`.
    pub stage: u32,
}

/// What is asked of a target of keys and values.
#[derive(Clone, Copy)]
pub enum KeysAsk {
    /// A store.
    Store {
        /// Of this key.
        key: Memory,
        /// Its value.
        value: Given,
        /// What must be so.
        condition: StoreCondition,
        /// Whether it is durable when it is answered.
        durability: Durability,
    },
    /// A read of a value.
    Retrieve {
        /// Of this key.
        key: Memory,
        /// From which byte on.
        offset: u32,
        /// Where to.
        memory: Memory,
    },
    /// A deletion.
    Delete {
        /// Of this key.
        key: Memory,
        /// What it is if there is none.
        absent: AbsentKey,
        /// Whether it is durable when it is answered.
        durability: Durability,
    },
    /// Whether a key exists.
    Exist(Memory),
    /// A list of keys.
    List {
        /// The first.
        from: Memory,
        /// Bytes of it that all begin with.
        prefix_bytes: u8,
        /// Where to.
        memory: Memory,
    },
    /// Several changes.
    Batch {
        /// As C has them.
        changes: Memory,
        /// Whether they are durable when they are answered.
        durability: Durability,
    },
    /// Something about a stage.
    Stage(StageAsk),
}

const fn absent(flags: u32) -> AbsentKey {
    if flags & OCSSD_MUST_EXIST == 0 { AbsentKey::Success } else { AbsentKey::Refused }
}

fn condition(flags: u32) -> Result<StoreCondition, Failure> {
    match (flags & OCSSD_MUST_EXIST != 0, flags & OCSSD_MUST_NOT_EXIST != 0) {
        (false, false) => Ok(StoreCondition::Always),
        (true, false) => Ok(StoreCondition::MustExist),
        (false, true) => Ok(StoreCondition::MustNotExist),
        (true, true) => Err(Failure::invalid(
            "a key cannot be asked both to exist and not to: OCSSD_MUST_EXIST or _MUST_NOT_EXIST",
        )),
    }
}

/// A key, if it can be one of a value.
fn key_of(pointer: *const c_void, bytes: u32, limits: &KvLimits) -> Result<Memory, Failure> {
    if bytes == 0 || bytes > limits.key_bytes_max {
        return Err(Failure::invalid(format!("a key has 1 to {} bytes, not {bytes}", limits.key_bytes_max)));
    }
    Memory::new(pointer, u64::from(bytes), "key")
}

impl KeysRequest {
    /// One that names no more than a key.
    pub const fn of(op: u32, flags: u32, key: *const c_void, key_bytes: u32) -> Self {
        Self {
            op,
            flags,
            key,
            key_bytes,
            prefix_bytes: 0,
            offset: 0,
            data: std::ptr::null_mut(),
            bytes: 0,
            changes: std::ptr::null(),
            change_count: 0,
            stage: 0,
        }
    }

    /// What it asks of a target with these limits.
    ///
    /// # Errors
    /// Why it asks nothing.
    pub fn ask(&self, limits: &KvLimits) -> Result<Ask, Failure> {
        self.check_flags()?;
        let key = || key_of(self.key, self.key_bytes, limits);
        let durability = durability(self.flags);
        let ask = match self.op {
            OCSSD_KV_STORE => KeysAsk::Store {
                key: key()?,
                value: Given::of(self.flags, self.stage, self.data, self.bytes)?,
                condition: condition(self.flags)?,
                durability,
            },
            OCSSD_KV_RETRIEVE => KeysAsk::Retrieve {
                key: key()?,
                offset: length(self.offset, "offset")?,
                memory: self.memory()?,
            },
            OCSSD_KV_DELETE => KeysAsk::Delete { key: key()?, absent: absent(self.flags), durability },
            OCSSD_KV_EXIST => KeysAsk::Exist(key()?),
            OCSSD_KV_LIST => self.list(limits)?,
            OCSSD_KV_BATCH => KeysAsk::Batch { changes: self.changes(limits)?, durability },
            other => {
                return Err(Failure::invalid(format!(
                    "op is {other}, but the operations of keys are 0 to {OCSSD_KV_BATCH}"
                )));
            }
        };
        Ok(Ask::Keys(ask))
    }

    fn check_flags(&self) -> Result<(), Failure> {
        let allowed = match self.op {
            OCSSD_KV_STORE => OCSSD_FUA | OCSSD_STAGED | OCSSD_MUST_EXIST | OCSSD_MUST_NOT_EXIST,
            OCSSD_KV_DELETE => OCSSD_FUA | OCSSD_MUST_EXIST,
            OCSSD_KV_BATCH => OCSSD_FUA,
            _ => 0,
        };
        if self.flags & !allowed == 0 {
            return Ok(());
        }
        Err(Failure::invalid(format!("operation {} has no flags {:#x}", self.op, self.flags & !allowed)))
    }

    fn memory(&self) -> Result<Memory, Failure> {
        Memory::new(self.data, self.bytes, "data")
    }

    fn list(&self, limits: &KvLimits) -> Result<KeysAsk, Failure> {
        let Self { key_bytes, prefix_bytes, bytes, .. } = *self;
        if key_bytes > limits.key_bytes_max || prefix_bytes > key_bytes || bytes < KEY_COUNT_BYTES {
            return Err(Failure::invalid(format!(
                "a list begins with a key of at most {} bytes, has a prefix no longer than that key, and room for \
                 {KEY_COUNT_BYTES} bytes or more; these are {key_bytes}, {prefix_bytes} and {bytes}",
                limits.key_bytes_max
            )));
        }
        Ok(KeysAsk::List {
            from: Memory::new(self.key, u64::from(key_bytes), "key")?,
            prefix_bytes: u8::try_from(prefix_bytes).expect("no longer than a key"),
            memory: self.memory()?,
        })
    }

    fn changes(&self, limits: &KvLimits) -> Result<Memory, Failure> {
        if self.change_count > limits.batch_entries_max {
            return Err(Failure::new(
                libc::EFBIG,
                format!(
                    "a batch has at most {} changes, not {}",
                    limits.batch_entries_max, self.change_count
                ),
            ));
        }
        let count = usize_of(self.change_count);
        let bytes = u64::try_from(count * size_of::<Change>()).expect("few changes");
        let changes = Memory::new(self.changes.cast(), bytes, "changes")?;
        for number in 0..count {
            let named =
                |failure: Failure| Failure { text: format!("change {number}: {}", failure.text), ..failure };
            changes.nth::<Change>(number).check(limits).map_err(named)?;
        }
        Ok(changes)
    }
}

/// A list begins with the number of its keys (Key Value Command Set 1.0, List).
const KEY_COUNT_BYTES: u64 = 4;

impl Change {
    fn check(&self, limits: &KvLimits) -> Result<(), Failure> {
        let allowed = match self.op {
            OCSSD_KV_STORE => OCSSD_MUST_EXIST | OCSSD_MUST_NOT_EXIST,
            OCSSD_KV_DELETE if self.value_bytes == 0 => OCSSD_MUST_EXIST,
            other => {
                return Err(Failure::invalid(format!(
                    "op is {other}, value_bytes {}; a batch stores, and deletes without a value",
                    self.value_bytes
                )));
            }
        };
        if self.flags & !allowed != 0 {
            return Err(Failure::invalid(format!(
                "operation {} has no flags {:#x}",
                self.op,
                self.flags & !allowed
            )));
        }
        condition(self.flags)?;
        key_of(self.key, self.key_bytes, limits)?;
        self.value()?;
        Ok(())
    }

    fn key(&self) -> Result<Memory, Failure> {
        Memory::new(self.key, u64::from(self.key_bytes), "key")
    }

    fn value(&self) -> Result<Memory, Failure> {
        length(self.value_bytes, "value_bytes")?;
        Memory::new(self.value, self.value_bytes, "value")
    }

    /// Bytes it takes in a buffer beside its entry.
    fn placed_bytes(&self) -> Result<usize, Failure> {
        let key = self.key()?.bytes();
        Ok(self.value()?.bytes() + if key > KEY_INLINE_MAX { key } else { 0 })
    }
}

/// Puts a key where a request has it.
fn place(key: Memory, loan: &mut Loan<'_>) -> Result<Key, Failure> {
    // SAFETY: the caller lets what is given be read during the call that submits it.
    let bytes = unsafe { key.as_shared() };
    if let Some(key) = Key::inline(bytes) {
        return Ok(key);
    }
    let buffer = loan.room(bytes.len())?;
    Ok(Key::place(bytes, loan.buffers, buffer, 0))
}

/// The caller's changes as a list: values and long keys lie in one buffer, one after the other.
fn entries(changes: Memory, loan: &mut Loan<'_>) -> Result<List<BatchEntry>, Failure> {
    let changes: Vec<Change> =
        (0..changes.bytes() / size_of::<Change>()).map(|number| changes.nth(number)).collect();
    let placed: Result<Vec<usize>, Failure> = changes.iter().map(Change::placed_bytes).collect();
    let placed = placed?.into_iter().fold(0, usize::saturating_add);
    let buffer = loan.room(placed)?;
    let mut end = 0;
    let mut put = |memory: Memory, buffers: &mut Buffers| {
        // SAFETY: the caller lets what is given be read during the call that submits it.
        let bytes = unsafe { memory.as_shared() };
        let narrow = |bytes: usize| u32::try_from(bytes).expect("a buffer on loan has at most 16 MiB");
        let piece = Piece { buffer, first_byte: narrow(end), bytes: narrow(bytes.len()) };
        buffers.bytes_mut(buffer, end, bytes.len()).copy_from_slice(bytes);
        end += bytes.len();
        piece
    };
    let mut list = Vec::with_capacity(changes.len());
    for change in &changes {
        let (key, value) = (change.key()?, change.value()?);
        // SAFETY: as above.
        let key =
            Key::inline(unsafe { key.as_shared() }).unwrap_or_else(|| Key::Placed(put(key, loan.buffers)));
        let change = if change.op == OCSSD_KV_STORE {
            let value = (value.bytes() > 0).then(|| put(value, loan.buffers));
            BatchChange::Store { value, condition: condition(change.flags)? }
        } else {
            BatchChange::Delete { absent: absent(change.flags) }
        };
        list.push(BatchEntry { key, change });
    }
    let buffer = loan.room(list.len() * <BatchEntry as ocssd_lightnvm::interface::Entry>::BYTES)?;
    Ok(List::write(loan.buffers, buffer, &list))
}

impl KeysAsk {
    /// The request.
    ///
    /// # Errors
    /// There is no memory for it now, or it has more than a request can have.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<KvRequest, Failure> {
        let op = match *self {
            Self::Store { key, value, condition, durability } => {
                let content = value.content(loan)?;
                KvOp::Store { key: place(key, loan)?, content, condition, durability }
            }
            Self::Retrieve { key, offset, memory } => {
                let into = room_for(memory, loan)?;
                KvOp::Retrieve { key: place(key, loan)?, offset, into }
            }
            Self::Delete { key, absent, durability } => {
                KvOp::Delete { key: place(key, loan)?, absent, durability }
            }
            Self::Exist(key) => KvOp::Exist { key: place(key, loan)? },
            Self::List { from, prefix_bytes, memory } => {
                let into = room_for(memory, loan)?;
                KvOp::List { from: place(from, loan)?, prefix_bytes, into }
            }
            Self::Batch { changes, durability } => {
                KvOp::Batch { entries: entries(changes, loan)?, durability }
            }
            Self::Stage(ask) => KvOp::Stage(ask.op(loan)?),
        };
        Ok(KvRequest { tag, op })
    }

    /// What the reply brings.
    pub fn end(&self, reply: &KvReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        let mut told = Reply::of(reply.status);
        match (reply.answer, self) {
            (KvAnswer::Value { bytes }, Self::Retrieve { offset, memory, .. }) => {
                told.bytes = u64::from(bytes);
                memory.fill_as_far(buffers, buffer, bytes.saturating_sub(*offset));
            }
            (KvAnswer::Listed { keys, bytes }, Self::List { memory, .. }) => {
                (told.count, told.bytes) = (u64::from(keys), u64::from(bytes));
                memory.fill_as_far(buffers, buffer, bytes);
            }
            (KvAnswer::Value { bytes }, _) => told.bytes = u64::from(bytes),
            (KvAnswer::Listed { .. }, _) => unreachable!("nothing was listed that was not asked for"),
            (KvAnswer::Done, _) => {}
        }
        told.entry = reply.entry.map_or(told.entry, u64::from);
        let Some(refusal) = reply.refusal else { return ended(told, || self.words()) };
        let what = match reply.entry {
            Some(entry) => format!("change {entry} of {}", self.words()),
            None => self.words(),
        };
        refused(told, errno_of_refusal(refusal), &what, &refusal)
    }

    fn words(&self) -> String {
        match self {
            Self::Store { .. } => "a store".to_owned(),
            Self::Retrieve { .. } => "a retrieve".to_owned(),
            Self::Delete { .. } => "a deletion".to_owned(),
            Self::Exist(_) => "a question for a key".to_owned(),
            Self::List { .. } => "a list of keys".to_owned(),
            Self::Batch { .. } => "a batch".to_owned(),
            Self::Stage(ask) => ask.words(),
        }
    }
}

const fn errno_of_refusal(refusal: KvRefusal) -> c_int {
    match refusal {
        KvRefusal::NoSuchKey => libc::ENOENT,
        KvRefusal::KeyExists => libc::EEXIST,
        KvRefusal::NoRoom => libc::ENOSPC,
        KvRefusal::ValueLength | KvRefusal::BatchTooLong => libc::EFBIG,
        _ => libc::EINVAL,
    }
}
