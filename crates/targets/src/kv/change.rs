//! Changes: looked at as a whole before anything is done, then written, then true all at once.
//!
//! Long values are written first, piece by piece, as buffer units become free, under numbers that no key holds yet; then the
//! records that name keys are appended together. So nobody sees a part of a change, and neither does a checkpoint. Deliberately not
//! here: what each request is (`serve`).

use super::buffer_units::Stream;
use super::canary::Canary;
use super::index::{Found, Location};
use super::key_bytes::KeyBytes;
use super::record::{RecordHeader, RecordKind};
use super::released::Room;
use super::stage::Writer;
use super::state::{Kv, Waiter, record_bytes};
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvAnswer, KvRefusal, KvReply, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability, List, StageId, StageRefusal};
use ocssd_lightnvm::{Buffers, Tag};
use std::collections::BTreeMap;

/// What becomes of a key.
#[derive(Clone, Debug)]
enum Value {
    /// It is gone.
    Delete,
    /// It holds this, in one record. The content stays where the request has it until its reply.
    Small(Content),
    /// It holds what is being written.
    Long(Writer),
    /// It holds what was staged: so many bytes.
    Staged(StageId, u32),
}

#[derive(Clone, Debug)]
struct Change {
    key: KeyBytes,
    value: Value,
}

/// The changes of a request: most are of one key, which takes no memory of its own.
#[derive(Clone, Debug)]
enum KeyChanges {
    One([Change; 1]),
    Many(Vec<Change>),
}

impl std::ops::Deref for KeyChanges {
    type Target = [Change];

    fn deref(&self) -> &[Change] {
        match self {
            Self::One(change) => change,
            Self::Many(changes) => changes,
        }
    }
}

impl std::ops::DerefMut for KeyChanges {
    fn deref_mut(&mut self) -> &mut [Change] {
        match self {
            Self::One(change) => change,
            Self::Many(changes) => changes,
        }
    }
}

/// A change that was looked at and is under way.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    tag: Tag,
    durability: Durability,
    changes: KeyChanges,
    /// Changes whose long values are written.
    written: usize,
    /// It needs room that the power may take again.
    waits_for_room: bool,
}

impl Taking {
    /// Numbers of its values that are written in pieces; 0 of one that has none yet.
    pub fn long_values(&self) -> impl Iterator<Item = u64> {
        self.changes.iter().filter_map(|change| match &change.value {
            Value::Long(writer) => Some(writer.value()),
            Value::Delete | Value::Small(_) | Value::Staged(..) => None,
        })
    }
}

/// A refusal, and of a batch the entry it is for.
pub(super) type Refused = (KvRefusal, Option<u32>);

/// Keys as a batch leaves them so far: bytes of their values, or nothing.
type Overlay = BTreeMap<KeyBytes, Option<u32>>;

pub(super) fn of_stage(refusal: StageRefusal) -> KvRefusal {
    if refusal == StageRefusal::BadContent { KvRefusal::BadContent } else { KvRefusal::Stage(refusal) }
}

impl Kv {
    /// The bytes of a key that may have a value.
    pub(super) fn key(&self, key: Key, buffers: &Buffers) -> Result<KeyBytes, KvRefusal> {
        if key.bytes() == 0 || key.bytes() > self.sizes.limits().key_bytes_max {
            return Err(KvRefusal::KeyLength);
        }
        key.lies_within(buffers).then(|| KeyBytes::gathered(&key, buffers)).ok_or(KvRefusal::BadContent)
    }

    const fn check_store(
        &self,
        exists: bool,
        bytes: u32,
        condition: StoreCondition,
    ) -> Result<(), KvRefusal> {
        match (condition, exists) {
            _ if bytes > self.sizes.promised.value_bytes_max => Err(KvRefusal::ValueLength),
            (StoreCondition::MustExist, false) => Err(KvRefusal::NoSuchKey),
            (StoreCondition::MustNotExist, true) => Err(KvRefusal::KeyExists),
            _ => Ok(()),
        }
    }

    /// Looks at a store.
    pub(super) fn look_at_store(
        &mut self,
        (tag, key, content): (Tag, Key, Content),
        condition: StoreCondition,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<Taking, Refused> {
        let alone = |refusal| (refusal, None);
        let key = self.key(key, buffers).map_err(alone)?;
        let before = self.index.get(&key);
        self.check_store(before.is_some(), content.bytes(), condition).map_err(alone)?;
        let value = match content {
            Content::Staged { stage, bytes } => {
                self.look_at_staged(stage, bytes).map_err(|refusal| alone(of_stage(refusal)))?;
                Value::Staged(stage, bytes)
            }
            _ if !content.lies_within(buffers) => return Err(alone(KvRefusal::BadContent)),
            _ => self.value_of(key.len(), content, buffers),
        };
        let room = [(key.len(), before, Some(content.bytes()))].into_iter();
        let waits_for_room = self.check_room(room).map_err(alone)?;
        let changes = KeyChanges::One([Change { key, value }]);
        Ok(Taking { tag, durability, changes, written: 0, waits_for_room })
    }

    fn value_of(&self, key: usize, content: Content, buffers: &Buffers) -> Value {
        if record_bytes(key, content.bytes()) <= self.sizes.record_bytes_max {
            Value::Small(content)
        } else {
            Value::Long(Writer::of(content, buffers))
        }
    }

    /// Looks at a deletion. Of a key that is not there nothing is written.
    pub(super) fn look_at_delete(
        &self,
        (tag, key): (Tag, Key),
        absent: AbsentKey,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<Taking, Refused> {
        let key = self.key(key, buffers).map_err(|refusal| (refusal, None))?;
        let exists = self.index.get(&key).is_some();
        if absent == AbsentKey::Refused && !exists {
            return Err((KvRefusal::NoSuchKey, None));
        }
        let changes = if exists {
            KeyChanges::One([Change { key, value: Value::Delete }])
        } else {
            KeyChanges::Many(Vec::new())
        };
        Ok(Taking { tag, durability, changes, written: 0, waits_for_room: false })
    }

    /// Looks at a batch: each entry with those above applied.
    pub(super) fn look_at_batch(
        &self,
        tag: Tag,
        entries: List<BatchEntry>,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<Taking, Refused> {
        if entries.count > self.sizes.limits().batch_entries_max {
            return Err((KvRefusal::BatchTooLong, None));
        }
        if !entries.lies_within(buffers) {
            return Err((KvRefusal::BadBatch, None));
        }
        let (mut after, mut last) = (Overlay::new(), BTreeMap::new());
        for (row, entry) in (0..).zip(entries.entries(buffers)) {
            let (key, value) =
                self.look_at_entry(&after, entry, buffers).map_err(|refusal| (refusal, Some(row)))?;
            after.insert(key.clone(), value.map(|content| content.bytes()));
            last.insert(key, value);
        }
        assert_eq!(after.len(), last.len(), "keys of a batch are counted wrong");
        let planned = after.iter().map(|(key, &bytes)| (key.len(), self.index.get(key), bytes));
        let waits_for_room = self.check_room(planned).map_err(|refusal| (refusal, None))?;
        // The deletion of a key that is not there is written too: the change that took the key away may be lost with the
        // power while this batch survives, and then the batch has to take it away. A batch of nothing else changes nothing.
        let changes_nothing =
            last.iter().all(|(key, content)| content.is_none() && self.index.get(key).is_none());
        if changes_nothing {
            last.retain(|key, content| content.is_some() || self.index.get(key).is_some());
        }
        // Of a key named twice only the last change is left.
        let change_of = |(key, content): (KeyBytes, Option<Content>)| {
            let value = content.map_or(Value::Delete, |content| self.value_of(key.len(), content, buffers));
            Change { key, value }
        };
        let changes = KeyChanges::Many(last.into_iter().map(change_of).collect());
        Ok(Taking { tag, durability, changes, written: 0, waits_for_room })
    }

    fn look_at_entry(
        &self,
        after: &Overlay,
        entry: Option<BatchEntry>,
        buffers: &Buffers,
    ) -> Result<(KeyBytes, Option<Content>), KvRefusal> {
        let BatchEntry { key, change } = entry.ok_or(KvRefusal::BadBatch)?;
        let key = self.key(key, buffers)?;
        let exists = after.get(&key).map_or_else(|| self.index.get(&key).is_some(), Option::is_some);
        match change {
            BatchChange::Store { value, condition } => {
                let content = value.map_or(Content::Empty, Content::Piece);
                self.check_store(exists, content.bytes(), condition)?;
                content.lies_within(buffers).then_some((key, Some(content))).ok_or(KvRefusal::BadContent)
            }
            BatchChange::Delete { absent: AbsentKey::Refused } if !exists => Err(KvRefusal::NoSuchKey),
            BatchChange::Delete { .. } => Ok((key, None)),
        }
    }

    /// Looks whether there is room for keys as they are after a change: of each its bytes, what it holds, and bytes of what it will
    /// hold. One that adds no bytes always has. True if it needs room that the power may take again.
    fn check_room(
        &self,
        keys: impl Iterator<Item = (usize, Option<Found>, Option<u32>)>,
    ) -> Result<bool, KvRefusal> {
        let now = self.room();
        let Room { mut user, mut kept, mut index } = now;
        let (mut count, mut stored) = (0, 0);
        for (key, before, after) in keys {
            count += 1;
            let length = u64::try_from(key).expect("a key is short");
            let entry = length + u64::try_from(super::index::ENTRY_BYTES).expect("small");
            if let Some(before) = before {
                user -= length + u64::from(before.bytes);
                kept -= self.kept_of(key, before.bytes);
                index -= entry;
            }
            if let Some(bytes) = after {
                user += length + u64::from(bytes);
                kept += self.kept_of(key, bytes);
                index += entry;
                stored += u64::from(bytes);
            }
        }
        let promised = &self.sizes.promised;
        let fits_beside = |may_come_back: Room| {
            (user + may_come_back.user <= promised.capacity_bytes || user <= now.user)
                && (kept + may_come_back.kept <= promised.live_bytes_max || kept <= now.kept)
                && (index + may_come_back.index <= promised.index_bytes_max || index <= now.index)
        };
        let is_short = count == 1 || stored <= u64::from(promised.value_bytes_max);
        if !fits_beside(Room::default()) || !is_short {
            return Err(KvRefusal::NoRoom);
        }
        Ok(!fits_beside(self.released.room()))
    }

    /// Goes on with the change under way. True once it was made.
    pub(super) fn take(&mut self, buffers: &mut Buffers) -> bool {
        let mut taking = self.taking.take().expect("a change is under way");
        assert!(taking.written <= taking.changes.len(), "more was written than changes");
        assert!(!self.is_mounting, "a mount takes a change");
        if taking.waits_for_room {
            if !self.room_is_sure() {
                self.taking = Some(taking);
                return false;
            }
            taking.waits_for_room = false;
            self.stats.waited_for_room += 1;
        }
        if !self.write_long(&mut taking, buffers) || !self.make_room_for(&taking) {
            self.taking = Some(taking);
            return false;
        }
        self.make(&taking, buffers);
        let Taking { tag, durability, .. } = taking;
        let reply = KvReply::success(tag, KvAnswer::Done);
        let waits = durability == Durability::AtReply && !self.has_canary(Canary::AnsweredBeforeDurable);
        if waits {
            self.wait(reply);
        } else {
            self.replies.push_back(reply);
        }
        true
    }

    /// True once no power cut brings back what changes took away.
    fn room_is_sure(&mut self) -> bool {
        self.released.durable_before(self.buffer_units.durable_before(&Stream::USERS, self.sequence + 1));
        self.released.last().is_none()
    }

    /// The sequence up to which the change under way needs everything to be durable.
    pub(super) fn sequence_for_room(&self) -> Option<u64> {
        let waits = self.taking.as_ref().is_some_and(|taking| taking.waits_for_room);
        self.released.last().filter(|_| waits)
    }

    /// The change under way cannot be made: what was written of it is not needed.
    pub(super) fn abandon_change(&mut self) {
        let Some(taking) = self.taking.take() else { return };
        taking.long_values().filter(|&value| value > 0).for_each(|value| self.forget_long(value));
    }

    /// Replies once all that was taken by now is durable.
    pub(super) fn wait(&mut self, reply: KvReply) {
        self.waiters.push_back(Waiter { until: self.sequence, reply });
        self.work_due = true;
    }

    /// Writes the long values of a change, as far as there are buffer units. True if all are written.
    fn write_long(&mut self, taking: &mut Taking, buffers: &mut Buffers) -> bool {
        while let Some(change) = taking.changes.get_mut(taking.written) {
            let is_written = match &mut change.value {
                Value::Long(writer) => self.write_pieces(writer, true, buffers),
                &mut Value::Staged(stage, _) => self.end_staged(stage, buffers),
                Value::Delete | Value::Small(_) => true,
            };
            if !is_written {
                return false;
            }
            taking.written += 1;
        }
        true
    }

    fn make_room_for(&mut self, taking: &Taking) -> bool {
        let bytes = |change: &Change| match &change.value {
            Value::Small(content) => record_bytes(change.key.len(), content.bytes()),
            Value::Delete | Value::Long(_) | Value::Staged(..) => record_bytes(change.key.len(), 0),
        };
        self.make_room(Stream::Small, taking.changes.iter().map(bytes))
    }

    /// Appends the records of a change, and tells the index after the last: what the change replaces is needed until all of it is
    /// on media, so its chunk waits for the last record's sequence.
    fn make(&mut self, taking: &Taking, buffers: &mut Buffers) {
        let (mut made, mut last) = (Vec::new(), None);
        let is_torn = self.has_canary(Canary::BatchTorn);
        let parts = if is_torn { 1 } else { u16::try_from(taking.changes.len()).expect("a batch is short") };
        for (part, change) in (0..).zip(&*taking.changes) {
            let part = if is_torn { 0 } else { part };
            let sequence = self.next_sequence();
            let key = &change.key[..];
            let key_bytes = u8::try_from(key.len()).expect("a key has at most 255 bytes");
            let header = |kind, payload_bytes, value, offset| RecordHeader {
                kind,
                key_bytes,
                payload_bytes,
                sequence,
                value,
                offset,
                part,
                parts,
            };
            let long = |value, bytes| {
                (header(RecordKind::Long, 0, value, bytes), Some((Location::Long(value), bytes)))
            };
            let (header, content, found) = match &change.value {
                Value::Delete => (header(RecordKind::Delete, 0, 0, 0), &Content::Empty, None),
                Value::Small(content) => {
                    let found = Some((Location::Record(0), content.bytes()));
                    (header(RecordKind::Whole, content.bytes(), 0, 0), content, found)
                }
                Value::Long(writer) => {
                    let (header, found) = long(writer.value(), writer.written());
                    (header, &Content::Empty, found)
                }
                &Value::Staged(stage, bytes) => {
                    let ended = self.stages.remove(&stage).expect("a stage that was looked at is there");
                    let (header, found) = long(ended.writer.value(), bytes);
                    (header, &Content::Empty, found)
                }
            };
            self.count_change(found.map(|(_, bytes)| bytes), key.len());
            let is_forgotten = header.kind == RecordKind::Delete && self.has_canary(Canary::DeletesForgotten);
            let at = if is_forgotten {
                0
            } else {
                self.append_content(Stream::Small, &header, (key, content), buffers)
            };
            let found = found.map(|(location, bytes)| match location {
                Location::Record(_) => Found { location: Location::Record(at), bytes },
                Location::Long(_) | Location::Lost => Found { location, bytes },
            });
            // One change alone takes no memory.
            made.extend(last.replace((change, found)));
        }
        for (change, found) in made.into_iter().chain(last) {
            self.put(&change.key, found);
        }
    }

    fn count_change(&mut self, stored: Option<u32>, key: usize) {
        match stored {
            Some(bytes) => {
                self.stats.stores += 1;
                self.stats.stored_bytes += u64::from(bytes) + u64::try_from(key).expect("short");
            }
            None => self.stats.deletes += 1,
        }
    }
}
