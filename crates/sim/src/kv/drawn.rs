//! Requests of keys and values, drawn: a few keys, values of every size, some requests that must be refused.
//!
//! Deliberately not here: what they must be answered with (`model`).

use super::KvModel;
use super::for_wear::LeftAlone;
use crate::counted;
use crate::model::held::Held;
use crate::model::judge::Interface;
use crate::model::trial::Requests;
use crate::wear::Promise;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvLimits, KvOp, KvReply, KvRequest, KvTarget, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece, StageId, StageOp};
use ocssd_lightnvm::{Buffers, Tag};

/// Values that are stored are at most so long, but for one in many (chosen: some write units).
const BYTES_USUAL: u64 = 6_000;
/// The longest that are stored at all (chosen: longer than most write units of drawn drives).
const BYTES_MAX: u64 = 200_000;
/// Bytes of a staged value at most (chosen: some write units).
const STAGED_MAX: u64 = 150_000;
/// Bytes of an append to a stage at most (chosen: several make a value).
const APPENDED_MAX: u64 = 40_000;
/// The only stage.
const STAGE: StageId = StageId(0);
/// Bytes of keys that lie in a buffer, at its end.
const KEY_ROOM: u32 = 512;

/// The key-value interface.
pub struct KvInterface;

impl Interface for KvInterface {
    type Model = KvModel;
    type Target = dyn KvTarget;
    type Drawn = DrawnKv;

    fn model(target: &dyn KvTarget) -> KvModel {
        KvModel::new(target.limits())
    }

    fn limits(target: &dyn KvTarget) -> String {
        format!("{:?}", target.limits())
    }

    fn drawn(model: &KvModel, prng: &mut Prng) -> DrawnKv {
        DrawnKv::new(*model.limits(), prng)
    }

    fn drawn_for_wear(model: &KvModel, prng: &mut Prng) -> Option<DrawnKv> {
        Some(DrawnKv::for_wear(*model.limits(), prng))
    }

    fn shutdown(tag: Tag) -> KvRequest {
        KvRequest { tag, op: KvOp::Shutdown }
    }

    fn wear_promise(target: &dyn KvTarget) -> Option<Promise> {
        let spread = counted::wear_spread(target)?;
        let put_off = counted::count_of(target, "wear_put_off_resets");
        Some(Promise::Chunks { spread, of: None, put_off, first_line: 0 })
    }

    fn name(request: &KvRequest) -> &'static str {
        match request.op {
            KvOp::Store { .. } => "requests.stores",
            KvOp::Retrieve { .. } => "requests.retrieves",
            KvOp::Delete { .. } => "requests.deletes",
            KvOp::Exist { .. } => "requests.exists",
            KvOp::List { .. } => "requests.lists",
            KvOp::Batch { .. } => "requests.batches",
            KvOp::Stage(_) => "requests.stages",
            KvOp::Flush => "requests.flushes",
            KvOp::Shutdown => "requests.shutdowns",
        }
    }
}

/// Draws.
#[derive(Clone, Debug)]
pub struct DrawnKv {
    limits: KvLimits,
    /// Different keys.
    pub(super) keys: u64,
    /// Values are shorter than this, but for one in many.
    pub(super) usual: u64,
    durable_percent: u64,
    /// Deletions, of a hundred requests.
    pub(super) deleted_percent: u64,
    stage: Option<Staged>,
    /// Keys that are stored once, and then left alone.
    pub(super) alone: Option<LeftAlone>,
    held: Held,
}

/// The stage, as the target has it once all that was asked took effect.
#[derive(Clone, Copy, Debug)]
struct Staged {
    bytes: u32,
    staged: u32,
    /// The store that names it, until that is answered.
    stored: Option<Tag>,
}

impl DrawnKv {
    /// In a manner that `prng` chooses.
    pub fn new(limits: KvLimits, prng: &mut Prng) -> Self {
        let three = |prng: &mut Prng| usize::try_from(prng.below(3)).expect("three");
        let four = |prng: &mut Prng| usize::try_from(prng.below(4)).expect("four");
        Self {
            limits,
            keys: [2, 12, 60][three(prng)],
            usual: [80, BYTES_USUAL, 30_000, BYTES_MAX][four(prng)].min(u64::from(limits.value_bytes_max)),
            durable_percent: [0, 10, 60][three(prng)],
            deleted_percent: [5, 15, 40][three(prng)],
            stage: None,
            alone: None,
            held: Held::default(),
        }
    }

    /// A key's bytes: short ones and long ones; one in many is longer than keys may be, or empty.
    fn name(&self, prng: &mut Prng) -> Vec<u8> {
        let longest = usize::try_from(self.limits.key_bytes_max.min(KEY_ROOM / 2)).expect("short");
        match prng.below(60) {
            0 => return Vec::new(),
            1 => return vec![7; longest + 1],
            _ => {}
        }
        let nth = u8::try_from(prng.below(self.keys)).expect("few keys");
        let length = 1 + usize::from(nth) * 7 % longest;
        let mut name = vec![b'a' + nth % 3; length];
        // What tells it apart from others comes last, so that prefixes are shared.
        name[length - 1] = nth;
        name
    }

    fn bytes(&self, prng: &mut Prng) -> u32 {
        let most = u64::from(self.limits.value_bytes_max);
        let bytes = match prng.below(40) {
            0 => prng.below(most.min(BYTES_MAX) + 1),
            1 => 0,
            2 if most < BYTES_MAX => most + 1,
            _ => prng.below(self.usual + 1),
        };
        u32::try_from(bytes).expect("a drawn value is short")
    }

    pub(super) fn durability(&self, prng: &mut Prng) -> Durability {
        if prng.below(100) < self.durable_percent { Durability::AtReply } else { Durability::AtFlush }
    }

    fn condition(prng: &mut Prng) -> StoreCondition {
        match prng.below(10) {
            0 => StoreCondition::MustExist,
            1 => StoreCondition::MustNotExist,
            _ => StoreCondition::Always,
        }
    }

    fn absent(prng: &mut Prng) -> AbsentKey {
        if prng.below(2) == 0 { AbsentKey::Success } else { AbsentKey::Refused }
    }

    /// A buffer with a key behind `bytes` bytes of value.
    fn place(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers, bytes: u32) -> (Key, Content) {
        let name = self.name(prng);
        self.place_key(tag, prng, buffers, (&name, bytes))
    }

    /// A buffer with this key behind as many bytes of value.
    pub(super) fn place_key(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        buffers: &mut Buffers,
        (name, bytes): (&[u8], u32),
    ) -> (Key, Content) {
        let byte = u8::try_from(prng.below(256)).expect("a byte");
        let buffer = self.held.take_whole(tag, buffers, bytes + KEY_ROOM, byte);
        let key = Key::place(name, buffers, buffer, bytes);
        (key, Content::Piece(Piece { buffer, first_byte: 0, bytes }))
    }

    fn batch(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> KvOp {
        // Now and then one more than a batch may have.
        let more = prng.below(10) / 9;
        let rows = 1 + prng.below(u64::from(self.limits.batch_entries_max.min(8)) + more);
        let mut entries = Vec::new();
        for _ in 0..rows {
            let bytes = u32::try_from(prng.below(self.usual.min(BYTES_USUAL) + 1)).expect("short");
            let (key, content) = self.place(tag, prng, buffers, bytes);
            let Content::Piece(piece) = content else { unreachable!("placed as one piece") };
            let change = if prng.below(4) == 0 {
                BatchChange::Delete { absent: Self::absent(prng) }
            } else {
                let value = (bytes > 0).then_some(piece);
                BatchChange::Store { value, condition: Self::condition(prng) }
            };
            entries.push(BatchEntry { key, change });
        }
        let bytes = entries.len() * BatchEntry::BYTES;
        let table = self.held.take_whole(tag, buffers, u32::try_from(bytes).expect("few entries"), 0);
        KvOp::Batch { entries: List::write(buffers, table, &entries), durability: self.durability(prng) }
    }
}

impl DrawnKv {
    /// The next step of a staged value: it is begun, appended to, and stored, or now and then given up.
    fn staged(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> Option<KvOp> {
        let narrow = |number: u64| u32::try_from(number).expect("a stage is short");
        let Some(found) = &mut self.stage else {
            let most = u64::from(self.limits.stages.bytes_max).min(STAGED_MAX);
            let bytes = narrow(prng.below(most + 1));
            self.stage = Some(Staged { bytes, staged: 0, stored: None });
            return Some(KvOp::Stage(StageOp::Open { stage: STAGE, bytes }));
        };
        if found.stored.is_some() {
            return None;
        }
        if prng.below(20) == 0 {
            self.stage = None;
            return Some(KvOp::Stage(StageOp::Abort { stage: STAGE }));
        }
        let Staged { bytes, staged, .. } = *found;
        if staged == bytes {
            found.stored = Some(tag);
            let (key, _) = self.place(tag, prng, buffers, 0);
            let content = Content::Staged { stage: STAGE, bytes };
            let durability = self.durability(prng);
            return Some(KvOp::Store { key, content, condition: Self::condition(prng), durability });
        }
        let more = narrow(1 + prng.below(u64::from(bytes - staged).min(APPENDED_MAX)));
        found.staged += more;
        let (_, content) = self.place(tag, prng, buffers, more);
        Some(KvOp::Stage(StageOp::Append { stage: STAGE, offset: staged, content }))
    }
}

impl Requests<KvModel> for DrawnKv {
    fn next(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &KvModel,
        buffers: &mut Buffers,
    ) -> Option<KvRequest> {
        if let Some(request) = self.next_alone(tag, prng, model, buffers) {
            return Some(request);
        }
        let percent = prng.below(100);
        if percent < 10 && self.limits.batch_entries_max > 0 {
            return Some(KvRequest { tag, op: self.batch(tag, prng, buffers) });
        }
        if percent < 22
            && self.limits.stages.stages_max > 0
            && let Some(op) = self.staged(tag, prng, buffers)
        {
            return Some(KvRequest { tag, op });
        }
        let bytes = self.bytes(prng);
        let (key, content) = self.place(tag, prng, buffers, bytes);
        let op = match percent {
            _ if prng.below(100) < self.deleted_percent => {
                KvOp::Delete { key, absent: Self::absent(prng), durability: self.durability(prng) }
            }
            ..60 => KvOp::Store {
                key,
                content,
                condition: Self::condition(prng),
                durability: self.durability(prng),
            },
            60..85 => {
                let offset = u32::try_from(prng.below(4) / 3 * prng.below(self.usual + 1)).expect("short");
                KvOp::Retrieve { key, offset, into: content }
            }
            85..90 => KvOp::Exist { key },
            90..95 => KvOp::List { from: key, prefix_bytes: u8::from(prng.below(2) == 0), into: content },
            _ => KvOp::Flush,
        };
        Some(KvRequest { tag, op })
    }

    fn answered(&mut self, request: &KvRequest, reply: &KvReply, buffers: &mut Buffers) {
        if let Some(staged) = self.stage.as_mut().filter(|staged| staged.stored == Some(request.tag)) {
            staged.stored = None;
            // A store that was refused leaves the stage as it is.
            if reply.status.is_success() {
                self.stage = None;
            }
        }
        self.held.give_back(request.tag, buffers);
    }

    fn power_cut(&mut self, _: &KvModel, _: &mut Buffers) {
        self.stage = None;
        self.held.forget();
    }
}
