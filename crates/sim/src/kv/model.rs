//! The model: each key holds its last value, and after a power cut any value since the last durable one.

use crate::contract::{Answerer, Broken};
use crate::model::{Expected, Model, Pending, Staging, equal};
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvAnswer, KvLimits, KvOp, KvRefusal, KvReply, KvRequest,
    ListOrder, StoreCondition, decode_keys, encode_keys,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece, StageRefusal};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// Keys and their values.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// One request's changes, in order: a value, or `None` of a deletion.
type Change = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The model of a key-value target.
#[derive(Clone, Debug)]
pub struct KvModel {
    limits: KvLimits,
    pub(super) durable: Pairs,
    volatile: Pairs,
    pub(super) pending: Pending<Change>,
    staging: Staging,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a value has at most 2^32 bytes")
}

fn of_stage(refusal: StageRefusal) -> KvRefusal {
    if refusal == StageRefusal::BadContent { KvRefusal::BadContent } else { KvRefusal::Stage(refusal) }
}

fn make(pairs: &mut Pairs, change: &Change) {
    for (key, value) in change {
        match value {
            Some(value) => pairs.insert(key.clone(), value.clone()),
            None => pairs.remove(key),
        };
    }
}

fn bytes_of(pairs: &Pairs) -> u64 {
    pairs.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
}

/// A refusal, and of a batch the entry it is for.
type Refused = (KvRefusal, Option<u32>);

impl KvModel {
    /// A store without keys.
    #[must_use]
    pub fn new(limits: KvLimits) -> Self {
        Self {
            limits,
            durable: Pairs::new(),
            volatile: Pairs::new(),
            pending: Pending::default(),
            staging: Staging::new(limits.stages),
        }
    }

    /// What the target takes.
    #[must_use]
    pub const fn limits(&self) -> &KvLimits {
        &self.limits
    }

    /// Bytes of all keys and values as reads see them. Cost: a look at each.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        bytes_of(&self.volatile)
    }

    /// All pairs as reads see them.
    #[must_use]
    pub const fn pairs(&self) -> &Pairs {
        &self.volatile
    }

    fn key(&self, key: Key, buffers: &Buffers) -> Result<Vec<u8>, KvRefusal> {
        if key.bytes() == 0 || key.bytes() > self.limits.key_bytes_max {
            return Err(KvRefusal::KeyLength);
        }
        key.lies_within(buffers).then(|| key.gathered(buffers)).ok_or(KvRefusal::BadContent)
    }

    fn check_store(
        &self,
        pairs: &Pairs,
        key: &[u8],
        bytes: u32,
        condition: StoreCondition,
    ) -> Result<(), KvRefusal> {
        match (condition, pairs.contains_key(key)) {
            _ if bytes > self.limits.value_bytes_max => Err(KvRefusal::ValueLength),
            (StoreCondition::MustExist, false) => Err(KvRefusal::NoSuchKey),
            (StoreCondition::MustNotExist, true) => Err(KvRefusal::KeyExists),
            _ => Ok(()),
        }
    }

    /// The pairs after a change, if they have room. A change that adds no bytes always has.
    fn after(&self, change: &Change) -> Result<Pairs, KvRefusal> {
        let mut after = self.volatile.clone();
        make(&mut after, change);
        let (before, bytes) = (bytes_of(&self.volatile), bytes_of(&after));
        let fits = bytes <= self.limits.capacity_bytes || bytes <= before;
        fits.then_some(after).ok_or(KvRefusal::NoRoom)
    }

    fn take(&mut self, tag: Tag, change: Change, durability: Durability) -> Result<(), KvRefusal> {
        self.volatile = self.after(&change)?;
        self.pending.take(tag, change, durability);
        Ok(())
    }

    fn store(&mut self, request: &KvRequest, buffers: &Buffers) -> Result<KvAnswer, KvRefusal> {
        let KvOp::Store { key, content, condition, durability } = request.op else {
            unreachable!("only stores come here")
        };
        let key = self.key(key, buffers)?;
        self.check_store(&self.volatile, &key, content.bytes(), condition)?;
        let value = self.staging.content(&content, buffers).map_err(of_stage)?;
        self.take(request.tag, vec![(key, Some(value))], durability)?;
        self.staging.end(&content);
        Ok(KvAnswer::Done)
    }

    fn delete(
        &mut self,
        tag: Tag,
        key: Vec<u8>,
        absent: AbsentKey,
        durability: Durability,
    ) -> Result<KvAnswer, KvRefusal> {
        if absent == AbsentKey::Refused && !self.volatile.contains_key(&key) {
            return Err(KvRefusal::NoSuchKey);
        }
        self.take(tag, vec![(key, None)], durability)?;
        Ok(KvAnswer::Done)
    }

    /// What one entry of a batch changes, if the entries above left `pairs`.
    fn entry(
        &self,
        pairs: &Pairs,
        entry: Option<BatchEntry>,
        buffers: &Buffers,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), KvRefusal> {
        let BatchEntry { key, change } = entry.ok_or(KvRefusal::BadBatch)?;
        let key = self.key(key, buffers)?;
        match change {
            BatchChange::Store { value, condition } => {
                let content = value.map_or(Content::Empty, Content::Piece);
                self.check_store(pairs, &key, content.bytes(), condition)?;
                let fits = content.lies_within(buffers);
                let value = fits.then(|| content.gathered(buffers)).ok_or(KvRefusal::BadContent)?;
                Ok((key, Some(value)))
            }
            BatchChange::Delete { absent: AbsentKey::Refused } if !pairs.contains_key(&key) => {
                Err(KvRefusal::NoSuchKey)
            }
            BatchChange::Delete { .. } => Ok((key, None)),
        }
    }

    fn batch(
        &mut self,
        tag: Tag,
        entries: List<BatchEntry>,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<KvAnswer, Refused> {
        if entries.count > self.limits.batch_entries_max {
            return Err((KvRefusal::BatchTooLong, None));
        }
        if !entries.lies_within(buffers) {
            return Err((KvRefusal::BadBatch, None));
        }
        let (mut pairs, mut change) = (self.volatile.clone(), Change::new());
        for (row, entry) in (0..).zip(entries.entries(buffers)) {
            let one = self.entry(&pairs, entry, buffers).map_err(|refusal| (refusal, Some(row)))?;
            change.push(one);
            make(&mut pairs, &change[change.len() - 1..].to_vec());
        }
        self.take(tag, change, durability).map_err(|refusal| (refusal, None))?;
        Ok(KvAnswer::Done)
    }

    /// The keys a listing shows, in the order of their bytes.
    fn listed(&self, from: Key, prefix_bytes: u8, buffers: &Buffers) -> Result<Vec<Vec<u8>>, KvRefusal> {
        if from.bytes() > self.limits.key_bytes_max {
            return Err(KvRefusal::KeyLength);
        }
        let from = from.lies_within(buffers).then(|| from.gathered(buffers)).ok_or(KvRefusal::BadContent)?;
        let prefix = from.get(..usize::from(prefix_bytes)).ok_or(KvRefusal::PrefixLength)?;
        let is_ordered = self.limits.list_order == ListOrder::Bytewise;
        let keys = self.volatile.keys().filter(|key| !is_ordered || **key >= from);
        Ok(keys.filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    /// Carries out a request that has no content to give.
    fn carry_out(&mut self, request: &KvRequest, buffers: &Buffers) -> Result<KvAnswer, Refused> {
        let alone = |refusal| (refusal, None);
        match request.op {
            KvOp::Store { .. } => self.store(request, buffers).map_err(alone),
            KvOp::Delete { key, absent, durability } => {
                let key = self.key(key, buffers).map_err(alone)?;
                self.delete(request.tag, key, absent, durability).map_err(alone)
            }
            KvOp::Batch { entries, durability } => self.batch(request.tag, entries, durability, buffers),
            KvOp::Stage(op) => {
                self.staging.apply(&op, buffers).map_err(|refusal| alone(KvRefusal::Stage(refusal)))?;
                Ok(KvAnswer::Done)
            }
            KvOp::Flush | KvOp::Shutdown => {
                self.pending.take_flush(request.tag);
                Ok(KvAnswer::Done)
            }
            KvOp::Exist { key } | KvOp::Retrieve { key, .. } => {
                let key = self.key(key, buffers).map_err(alone)?;
                let value = self.volatile.get(&key).ok_or(alone(KvRefusal::NoSuchKey))?;
                Ok(KvAnswer::Value { bytes: length(value) })
            }
            KvOp::List { .. } => unreachable!("a listing has content"),
        }
    }

    /// Content and answer of what reads.
    fn look(&self, op: &KvOp, buffers: &Buffers) -> Result<Option<(KvAnswer, Vec<u8>, Content)>, KvRefusal> {
        let (KvOp::Retrieve { into, .. } | KvOp::List { into, .. }) = *op else { return Ok(None) };
        if matches!(into, Content::Staged { .. }) || !into.lies_within(buffers) {
            return Err(KvRefusal::BadContent);
        }
        let room = index(into.bytes());
        match *op {
            KvOp::Retrieve { key, offset, .. } => {
                let key = self.key(key, buffers)?;
                let value = self.volatile.get(&key).ok_or(KvRefusal::NoSuchKey)?;
                let from = index(offset).min(value.len());
                let content = value[from..].iter().copied().take(room).collect();
                Ok(Some((KvAnswer::Value { bytes: length(value) }, content, into)))
            }
            KvOp::List { from, prefix_bytes, .. } => {
                let keys = self.listed(from, prefix_bytes, buffers)?;
                let (bytes, count) = encode_keys(keys.iter().map(Vec::as_slice), room);
                Ok(Some((KvAnswer::Listed { keys: count, bytes: length(&bytes) }, bytes, into)))
            }
            _ => unreachable!("only these two read"),
        }
    }

    /// The most changes that may have survived if this is what is left, each as an index: every set of changes that leaves it is a
    /// part of this one. A change cannot have survived if it is the last that is left of a key and the key holds something else.
    fn survivors(&self, found: &Pairs) -> BTreeSet<usize> {
        let mut left: BTreeSet<usize> = (0..self.pending.len()).collect();
        let changes: Vec<&Change> = self.pending.iter().map(|taken| &taken.change).collect();
        loop {
            let mut last: BTreeMap<&[u8], (usize, Option<&[u8]>)> = BTreeMap::new();
            for &change in &left {
                for (key, value) in changes[change] {
                    last.insert(key, (change, value.as_deref()));
                }
            }
            let wrong = |&(key, (_, value)): &(&&[u8], &(usize, Option<&[u8]>))| {
                found.get(*key).map(Vec::as_slice) != *value
            };
            let gone: Vec<usize> = last.iter().filter(wrong).map(|(_, &(change, _))| change).collect();
            if gone.is_empty() {
                return left;
            }
            left.retain(|change| !gone.contains(change));
        }
    }

    /// Asks for all keys, with as many listings as it takes.
    fn observe_keys(
        target: &mut dyn Answerer<KvRequest, KvReply>,
        buffer: BufId,
        bytes: u32,
    ) -> Result<BTreeSet<Vec<u8>>, Broken> {
        let (mut keys, mut from) = (BTreeSet::new(), Key::EMPTY);
        loop {
            let into = Content::Piece(Piece { buffer, first_byte: 0, bytes });
            let reply =
                target.ask(KvRequest { tag: Tag(0), op: KvOp::List { from, prefix_bytes: 0, into } })?;
            let listed = decode_keys(&into.gathered(target.buffers()));
            let listed = listed.filter(|_| matches!(reply.answer, KvAnswer::Listed { .. }));
            let listed =
                listed.ok_or_else(|| Broken::new("a listing", "a list of keys", format!("{reply:?}")))?;
            let before = keys.len();
            let last = listed.last().cloned();
            keys.extend(listed);
            let Some(last) = last.filter(|_| keys.len() > before) else { return Ok(keys) };
            // Behind what is listed: a long key lies there while it is asked from.
            from = Key::place(&last, target.buffers(), buffer, bytes);
        }
    }
}

impl Model for KvModel {
    type Request = KvRequest;
    type Reply = KvReply;
    type Observation = Pairs;

    fn tag(request: &KvRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &KvReply) -> Tag {
        reply.tag
    }

    fn is_refused(reply: &KvReply) -> bool {
        !reply.status.is_success()
    }

    fn flush(tag: Tag) -> KvRequest {
        KvRequest { tag, op: KvOp::Flush }
    }

    fn apply(&mut self, request: &KvRequest, buffers: &Buffers) -> Expected<KvReply> {
        let tag = request.tag;
        let refused = |refusal, entry| Expected::plain(KvReply::refused(tag, refusal, entry));
        match self.look(&request.op, buffers) {
            Err(refusal) => return refused(refusal, None),
            Ok(Some((answer, content, into))) => {
                return Expected { reply: KvReply::success(tag, answer), content, into };
            }
            Ok(None) => {}
        }
        match self.carry_out(request, buffers) {
            Ok(answer) => Expected::plain(KvReply::success(tag, answer)),
            Err((refusal, entry)) => refused(refusal, entry),
        }
    }

    /// A target with an order of its own lists some of the keys that exist, each once; which ones is its own.
    fn agrees(&self, expected: &Expected<KvReply>, reply: &KvReply, buffers: &Buffers) -> Result<(), Broken> {
        let (KvAnswer::Listed { .. }, ListOrder::Own) = (expected.reply.answer, self.limits.list_order)
        else {
            return equal(expected, reply, buffers);
        };
        let promised = decode_keys(&expected.content).unwrap_or_default();
        let KvAnswer::Listed { keys, bytes } = reply.answer else { return equal(expected, reply, buffers) };
        let mut found = expected.into.gathered(buffers);
        found.truncate(index(bytes));
        let found = decode_keys(&found).unwrap_or_default();
        let distinct: BTreeSet<&Vec<u8>> = found.iter().collect();
        let is_whole = distinct.len() == found.len() && index(keys) == found.len();
        if is_whole && found.iter().all(|key| promised.contains(key) || self.volatile.contains_key(key)) {
            return Ok(());
        }
        Err(Broken::new("a listing", "keys that exist, each once", format!("{found:?}")))
    }

    fn answered(&mut self, reply: &KvReply) {
        if !reply.status.is_success() {
            return;
        }
        self.pending.answered(reply.tag);
        for change in self.pending.take_durable() {
            make(&mut self.durable, &change);
        }
    }

    fn observe(&self, target: &mut dyn Answerer<KvRequest, KvReply>) -> Result<Pairs, Broken> {
        // The longest key and one more, so that every listing shows something new.
        let room = 4 + 2 * (self.limits.key_bytes_max + 6);
        let bytes = room.max(self.limits.value_bytes_max);
        let sector = u32::try_from(target.buffers().format().sector_bytes).expect("a sector is short");
        let buffer = target.buffers().take_whole((bytes + self.limits.key_bytes_max).div_ceil(sector));
        let mut pairs = Pairs::new();
        for key in Self::observe_keys(target, buffer, bytes)? {
            let name = Key::place(&key, target.buffers(), buffer, bytes);
            let piece = Piece { buffer, first_byte: 0, bytes };
            let op = KvOp::Retrieve { key: name, offset: 0, into: Content::Piece(piece) };
            let reply = target.ask(KvRequest { tag: Tag(0), op })?;
            let KvAnswer::Value { bytes } = reply.answer else {
                return Err(Broken::new("a listed key can be read", "its value", format!("{reply:?}")));
            };
            pairs.insert(key, Content::Piece(Piece { bytes, ..piece }).gathered(target.buffers()));
        }
        target.buffers().give_back(buffer);
        Ok(pairs)
    }

    fn may_hold(&self, found: &Pairs) -> Result<(), Broken> {
        let survivors = self.survivors(found);
        let mut image = self.durable.clone();
        for (nth, taken) in self.pending.iter().enumerate() {
            if survivors.contains(&nth) {
                make(&mut image, &taken.change);
            } else if taken.is_durable {
                let keys: Vec<_> = taken.change.iter().map(|(key, _)| key).collect();
                let promised = format!("what was stored durably under {keys:02X?}, or anything stored later");
                return Err(Broken::new("what survives a power cut", promised, "something else"));
            }
        }
        if image == *found {
            return Ok(());
        }
        let differs = |key: &&Vec<u8>| image.get(*key) != found.get(*key);
        let key = image.keys().chain(found.keys()).find(differs).expect("two maps that differ");
        let told = |value: Option<&Vec<u8>>| {
            value.map_or("nothing".to_owned(), |value| {
                format!("{} bytes: {:02X?}", value.len(), &value[..value.len().min(16)])
            })
        };
        let promised = format!("key {key:02X?} holds {}, or a later value", told(self.durable.get(key)));
        Err(Broken::new("what survives a power cut", promised, told(found.get(key))))
    }

    fn settle(&mut self, found: &Pairs) {
        self.durable.clone_from(found);
        self.volatile.clone_from(found);
        self.pending.clear();
        self.staging.clear();
    }

    fn cut(&mut self) {
        for taken in self.pending.iter().filter(|taken| taken.is_durable) {
            make(&mut self.durable, &taken.change);
        }
        self.volatile.clone_from(&self.durable);
        self.pending.clear();
        self.staging.clear();
    }
}
