//! The contract of a key-value target whose media lose pages of the index.
//!
//! Nobody knows any more which of a lost page's keys there are. So these, which are next to each other and to the first that the
//! page had, may answer with an unrecovered read; whoever answers otherwise answers right, and never with an older value. Changes
//! may end with that, until the next mount, and mounts go on. Requests are asked one at a time: what becomes of one that is refused
//! is known then. Deliberately not here: batches as a whole, conditions, stages (`model` judges them where nothing is lost), and
//! requests that overlap.

use super::believed::{Believed, Key, Value};
use crate::contract::{Answerer, Broken, Contract, Media, Room};
use crate::counted;
use crate::model::held::Held;
use crate::watched::Harmed;
use crate::wear::Promise;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::FailedOp;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, Key as KeyPlace, KvAnswer, KvOp, KvRefusal, KvReply, KvRequest, KvTarget, StoreCondition,
    decode_keys,
};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Buffers, Status, Tag};
use ocssd_targets::kv::pages_on_media;
use std::cmp::Ordering;

/// Different keys (chosen: pages of the fewest bytes hold some ten).
const KEYS: u64 = 120;
/// The longest value (chosen: all of them are a part of the smallest capacity that is drawn).
const BYTES_MAX: u64 = 1_200;
/// Room for a listing of all keys.
const LIST_BYTES: u32 = 16_384;
/// Where a key lies in its buffer: behind every value, and behind a listing.
const KEY_AT: u32 = LIST_BYTES;
const KEY_ROOM: u32 = 64;

/// A request that was not answered.
#[derive(Clone, Debug)]
struct Asked {
    request: KvRequest,
    at: Nanos,
    /// What it changes, or asks for.
    key: Key,
    value: Value,
    is_durable: bool,
}

/// The contract.
#[derive(Clone, Debug)]
pub struct LossContract {
    believed: Believed,
    /// First keys of pages that were lost.
    lost: Vec<Key>,
    /// A change was refused for that; all others must be, until the next mount.
    has_ended: bool,
    asked: Option<Asked>,
    next_tag: u32,
    held: Held,
    limits: Option<String>,
    was_cut: bool,
    failed: u64,
    refused: u64,
}

impl Default for LossContract {
    fn default() -> Self {
        Self {
            believed: Believed::default(),
            lost: Vec::new(),
            has_ended: false,
            asked: None,
            next_tag: 1,
            held: Held::default(),
            limits: None,
            was_cut: false,
            failed: 0,
            refused: 0,
        }
    }
}

/// The key of a number; keys of neighbours are on one page.
fn name(nth: u64) -> Key {
    let nth = u8::try_from(nth).expect("few keys");
    let mut name = vec![b'k'; 10 + usize::from(nth) % 9];
    (name[0], name[1]) = (nth / 16, nth % 16);
    name
}

impl LossContract {
    /// Judges which keys failed, in their order, and whether each did: those of a page are next to each other, and so is the first
    /// that the page had when it was written.
    fn judge_failing(&self, all: &[(Key, bool)]) -> Result<Vec<Key>, Broken> {
        let mut failing = Vec::new();
        for run in all.chunk_by(|(_, one), (_, other)| one == other).filter(|run| run[0].1) {
            let keys: Vec<Key> = run.iter().map(|(key, _)| key.clone()).collect();
            let before = all.iter().rev().find(|(key, fails)| !fails && *key < keys[0]);
            let behind = all.iter().find(|(key, fails)| !fails && *key > keys[keys.len() - 1]);
            let is_of_page = |first: &&Key| {
                before.is_none_or(|(key, _)| key < first) && behind.is_none_or(|(key, _)| *first < key)
            };
            if self.lost.iter().find(is_of_page).is_none() {
                let promised =
                    format!("errors of keys of lost pages, of which the first are {:02X?}", self.lost);
                return Err(Broken::new("what lost pages cost", promised, format!("errors of {keys:02X?}")));
            }
            failing.extend(keys);
        }
        Ok(failing)
    }

    fn broken(asked: &Asked, promised: &str, reply: &KvReply) -> Broken {
        let key = &asked.key;
        Broken::new("what lost pages cost", format!("{promised}, key {key:02X?}"), format!("{reply:?}"))
    }

    /// Judges a request that failed.
    fn on_failure(&mut self, asked: &Asked, reply: &KvReply) -> Result<(), Broken> {
        let is_change = matches!(asked.request.op, KvOp::Store { .. } | KvOp::Delete { .. });
        match reply.status {
            // Audits look at whose key it is.
            Status::UNRECOVERED_READ if !self.lost.is_empty() => {
                self.failed += 1;
                Ok(())
            }
            Status::WRITE_TO_READ_ONLY if !self.lost.is_empty() => {
                self.refused += 1;
                self.has_ended = true;
                if is_change && asked.is_durable {
                    // It may have waited to be durable when changes ended.
                    self.believed.may_hold(&asked.key, &asked.value);
                }
                Ok(())
            }
            _ => Err(Self::broken(asked, "a success", reply)),
        }
    }

    fn on_success(&mut self, asked: &Asked, reply: &KvReply, buffers: &Buffers) -> Result<(), Broken> {
        match asked.request.op {
            KvOp::Store { .. } | KvOp::Delete { .. } => {
                if self.has_ended {
                    return Err(Self::broken(asked, "no change after one that was refused", reply));
                }
                self.believed.changed(&asked.key, &asked.value, asked.is_durable);
                Ok(())
            }
            KvOp::Flush => {
                self.believed.flushed();
                Ok(())
            }
            KvOp::Retrieve { into: Content::Piece(into), .. } => {
                let KvAnswer::Value { bytes } = reply.answer else {
                    return Err(Self::broken(asked, "a value", reply));
                };
                let found = Content::Piece(Piece { bytes, ..into }).gathered(buffers);
                self.believed.seen(&asked.key, &Some(found))
            }
            KvOp::Exist { .. } => self.believed.exists(&asked.key),
            // Of a shutdown after changes ended nothing more is promised than of a power cut.
            _ => Ok(()),
        }
    }

    fn judge(&mut self, asked: &Asked, reply: &KvReply, buffers: &Buffers) -> Result<(), Broken> {
        let reads = matches!(asked.request.op, KvOp::Retrieve { .. } | KvOp::Exist { .. });
        if reads && reply.refusal == Some(KvRefusal::NoSuchKey) {
            return self.believed.seen(&asked.key, &None);
        }
        if reply.status.is_success() {
            self.on_success(asked, reply, buffers)
        } else {
            self.on_failure(asked, reply)
        }
    }

    /// A request, drawn.
    fn drawn(&mut self, tag: Tag, prng: &mut Prng, buffers: &mut Buffers) -> (KvOp, Key, Value, bool) {
        let key = name(prng.below(KEYS));
        let byte = prng.next_u64().to_le_bytes()[0];
        let buffer = self.held.take_whole(tag, buffers, KEY_AT + KEY_ROOM, byte);
        let place = KeyPlace::place(&key, buffers, buffer, KEY_AT);
        let bytes = u32::try_from(prng.below(BYTES_MAX)).expect("short");
        let of = |bytes: u32| Content::Piece(Piece { buffer, first_byte: 0, bytes });
        let is_durable = prng.below(3) == 0;
        let durability = if is_durable { Durability::AtReply } else { Durability::AtFlush };
        let op = match prng.below(100) {
            ..45 => {
                KvOp::Store { key: place, content: of(bytes), condition: StoreCondition::Always, durability }
            }
            45..58 => KvOp::Delete { key: place, absent: AbsentKey::Success, durability },
            58..82 => KvOp::Retrieve { key: place, offset: 0, into: of(LIST_BYTES) },
            82..88 => KvOp::Exist { key: place },
            88..93 => KvOp::List { from: place, prefix_bytes: 0, into: of(LIST_BYTES) },
            _ => KvOp::Flush,
        };
        let value = matches!(op, KvOp::Store { .. }).then(|| of(bytes).gathered(buffers));
        (op, key, value, is_durable)
    }

    /// Reads all keys, and lists them; those that failed.
    fn read_all(&mut self, target: &mut dyn Answerer<KvRequest, KvReply>) -> Result<Vec<Key>, Broken> {
        let buffers = target.buffers();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let buffer = buffers.take_whole((KEY_AT + KEY_ROOM).div_ceil(sector));
        let into = Content::Piece(Piece { buffer, first_byte: 0, bytes: LIST_BYTES });
        let mut keys: Vec<Key> = (0..KEYS).map(name).collect();
        keys.sort_unstable();
        let mut all = Vec::new();
        for key in keys {
            let place = KeyPlace::place(&key, target.buffers(), buffer, KEY_AT);
            let request = KvRequest { tag: Tag(0), op: KvOp::Retrieve { key: place, offset: 0, into } };
            let reply = target.ask(request)?;
            let asked = Asked { request, at: Nanos(0), key, value: None, is_durable: false };
            self.judge(&asked, &reply, target.buffers())?;
            all.push((asked.key, reply.status == Status::UNRECOVERED_READ));
        }
        let failing = self.judge_failing(&all)?;
        let from = KvOp::List { from: KeyPlace::EMPTY, prefix_bytes: 0, into };
        let reply = target.ask(KvRequest { tag: Tag(0), op: from })?;
        if reply.status.is_success() {
            let listed = decode_keys(&into.gathered(target.buffers())).unwrap_or_default();
            self.believed.listed(&listed)?;
        } else if failing.is_empty() {
            return Err(Broken::new("what lost pages cost", "a listing of all keys", format!("{reply:?}")));
        }
        target.buffers().give_back(buffer);
        Ok(failing)
    }
}

impl Contract for LossContract {
    type Target = dyn KvTarget;

    const KNOWS_DEAD_DRIVES: bool = false;

    fn mounted(&mut self, target: &Self::Target, _: &mut Buffers, _: Ordering) -> Result<(), Broken> {
        (self.asked, self.has_ended) = (None, false);
        self.held.forget();
        let limits = format!("{:?}", target.limits());
        let before = self.limits.get_or_insert_with(|| limits.clone());
        if *before == limits { Ok(()) } else { Err(Broken::new("limits", before.clone(), limits)) }
    }

    fn draw(
        &mut self,
        draw: u64,
        now: Nanos,
        buffers: &mut Buffers,
        _: &mut Self::Target,
    ) -> Option<KvRequest> {
        if self.asked.is_some() {
            return None;
        }
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let (op, key, value, is_durable) = self.drawn(tag, &mut Prng::new(draw), buffers);
        let request = KvRequest { tag, op };
        self.asked = Some(Asked { request, at: now, key, value, is_durable });
        Some(request)
    }

    fn shutdown(&mut self, now: Nanos, _: &Buffers) -> KvRequest {
        assert!(self.asked.is_none(), "nothing is outstanding at a shutdown");
        let request = KvRequest { tag: Tag(self.next_tag), op: KvOp::Shutdown };
        self.next_tag += 1;
        self.asked = Some(Asked { request, at: now, key: Vec::new(), value: None, is_durable: false });
        request
    }

    fn begin_audit(&mut self) {
        assert!(self.asked.is_none(), "an audit begins when everything was answered");
    }

    fn audit(&mut self, _: Nanos) -> Option<KvRequest> {
        None
    }

    fn replied(
        &mut self,
        reply: &KvReply,
        buffers: &mut Buffers,
        _: &dyn Fn() -> Room,
    ) -> Result<&'static str, Broken> {
        let Some(asked) = self.asked.take().filter(|asked| asked.request.tag == reply.tag) else {
            return Err(Broken::new("answered once", "every request is answered once", format!("{reply:?}")));
        };
        self.judge(&asked, reply, buffers)?;
        self.held.give_back(reply.tag, buffers);
        Ok(match asked.request.op {
            KvOp::Store { .. } => "requests.stores",
            KvOp::Delete { .. } => "requests.deletes",
            KvOp::Retrieve { .. } => "requests.retrieves",
            KvOp::Exist { .. } => "requests.exists",
            KvOp::List { .. } => "requests.lists",
            KvOp::Shutdown => "requests.shutdowns",
            _ => "requests.flushes",
        })
    }

    fn end_audit(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    fn observe(&mut self, target: &mut dyn Answerer<KvRequest, KvReply>) -> Result<(), Broken> {
        if std::mem::take(&mut self.was_cut) {
            self.believed.power_cut();
            let failing = self.read_all(target)?;
            self.believed.settled(&failing);
            return Ok(());
        }
        self.read_all(target).map(drop)
    }

    fn outstanding(&self) -> u32 {
        u32::from(self.asked.is_some())
    }

    fn oldest(&self) -> Option<Nanos> {
        self.asked.as_ref().map(|asked| asked.at)
    }

    fn power_cut(&mut self, _: &mut dyn Media) {
        if let Some(asked) = self.asked.take() {
            let is_change = matches!(asked.request.op, KvOp::Store { .. } | KvOp::Delete { .. });
            if is_change {
                self.believed.may_survive(&asked.key, &asked.value);
            }
        }
        self.was_cut = true;
    }

    fn harmed(&mut self, harmed: &Harmed, media: &mut dyn Media) {
        let all = media.contents(&[harmed.at.chunk]);
        let sector = usize::try_from(harmed.at.sector).expect("an index");
        let unit = (0..=sector).rev().find_map(|first| {
            let content = all[first..].concat();
            pages_on_media(&content).map(|pages| (first, pages))
        });
        let Some((first, pages)) = unit else { return };
        let bytes = all[sector].len();
        let begin = (sector - first) * bytes;
        let is_hit = |page: &&ocssd_targets::kv::PageOnMedia| {
            page.bytes.start < begin + bytes && page.bytes.end > begin
        };
        self.lost.extend(pages.iter().filter(is_hit).map(|page| page.first.clone()));
    }

    fn command_failed(&mut self, _: FailedOp, _: Status) {}

    fn content_in_words(&self, _: &[u8]) -> String {
        "a page of the index".to_owned()
    }

    fn request_in_words(request: &KvRequest) -> (u32, String) {
        (request.tag.0, format!("{request:?}"))
    }

    fn reply_in_words(reply: &KvReply) -> (u32, String) {
        (reply.tag.0, format!("{reply:?}"))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("requests.failed_for_lost_pages", self.failed),
            ("requests.refused_for_lost_pages", self.refused),
            ("faults.index_pages_lost", u64::try_from(self.lost.len()).expect("few")),
        ]
    }

    fn target_summary(&self, target: &Self::Target) -> String {
        target.summary()
    }

    fn chunks_needed(target: &Self::Target) -> Option<u32> {
        counted::gauge(target, "chunks_needed").and_then(|chunks| u32::try_from(chunks).ok())
    }

    fn wear_promise(&self, _: &Self::Target) -> Option<Promise> {
        None
    }

    fn target_counts(&self, target: &Self::Target) -> Vec<(&'static str, u64)> {
        counted::counts(target)
    }
}
