//! Requests that make chunks wear differently: most bytes are stored once and left alone, a few keys are stored again and again.
//!
//! Deliberately not here: what is promised of wear (`crate::wear`).

use super::KvModel;
use super::drawn::DrawnKv;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::key_value::{KvLimits, KvOp, KvRequest, StoreCondition};
use ocssd_lightnvm::{Buffers, Tag};

/// Keys that are left alone (chosen: several to a chunk of most tiny drives).
const KEYS: u16 = 48;
/// Keys that are not (chosen: what dies is spread over few chunks).
const HOT_KEYS: u64 = 12;
/// Values of these, on the average half as long (chosen: a request fills a part of a chunk that can be seen).
const HOT_BYTES_MAX: u64 = 30_000;
/// Of the capacity, in percent: what is left alone (chosen: half of all chunks, and the others have room).
const ALONE_PERCENT: u64 = 50;

/// Keys that are stored once.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftAlone {
    /// Bytes of the value of each.
    bytes: u32,
}

impl LeftAlone {
    fn name(nth: u16) -> [u8; 3] {
        let [high, low] = nth.to_be_bytes();
        [b'z', high, low]
    }
}

impl DrawnKv {
    /// As [`Self::new`], but half of what fits is stored once.
    pub(super) fn for_wear(limits: KvLimits, prng: &mut Prng) -> Self {
        let mut drawn = Self::new(limits, prng);
        let bytes = limits.capacity_bytes * ALONE_PERCENT / 100 / u64::from(KEYS);
        let bytes = bytes.clamp(3, u64::from(limits.value_bytes_max)) - 3;
        drawn.alone = Some(LeftAlone { bytes: u32::try_from(bytes).expect("no longer than a value") });
        let rest = limits.capacity_bytes - limits.capacity_bytes * ALONE_PERCENT / 100;
        drawn.keys = HOT_KEYS;
        drawn.usual = HOT_BYTES_MAX.min(rest / HOT_KEYS).min(u64::from(limits.value_bytes_max));
        drawn.deleted_percent = drawn.deleted_percent.min(5);
        drawn
    }

    /// The store of a key that is to be left alone and is missing, as a rule.
    pub(super) fn next_alone(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &KvModel,
        buffers: &mut Buffers,
    ) -> Option<KvRequest> {
        let LeftAlone { bytes } = self.alone?;
        let is_missing = |name: &[u8; 3]| !model.pairs().contains_key(name.as_slice());
        let name = (0..KEYS).map(LeftAlone::name).find(is_missing).filter(|_| prng.below(4) > 0)?;
        let (key, content) = self.place_key(tag, prng, buffers, (&name, bytes));
        let (condition, durability) = (StoreCondition::Always, self.durability(prng));
        Some(KvRequest { tag, op: KvOp::Store { key, content, condition, durability } })
    }
}
