//! What each key may hold, judged key by key: now, and after a power cut.
//!
//! Deliberately not here: why a key may answer nothing at all (`losses`).

use crate::contract::Broken;
use std::collections::BTreeMap;

/// A key.
pub(super) type Key = Vec<u8>;
/// A value, or that there is none.
pub(super) type Value = Option<Vec<u8>>;

/// One key.
#[derive(Clone, Debug)]
struct Held {
    /// One of these it holds now; as a rule there is one.
    now: Vec<Value>,
    /// One of these is there after a power cut.
    surviving: Vec<Value>,
}

impl Held {
    fn nothing() -> Self {
        Self { now: vec![None], surviving: vec![None] }
    }
}

/// All keys; others hold nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Believed(BTreeMap<Key, Held>);

fn in_words(value: &Value) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) => format!("{} bytes of {:02X?}", value.len(), value.first()),
    }
}

impl Believed {
    fn of(&mut self, key: &[u8]) -> &mut Held {
        self.0.entry(key.to_vec()).or_insert_with(Held::nothing)
    }

    /// A change succeeded.
    pub fn changed(&mut self, key: &[u8], value: &Value, is_durable: bool) {
        let held = self.of(key);
        held.now = vec![value.clone()];
        if is_durable {
            held.surviving = held.now.clone();
        } else {
            held.surviving.push(value.clone());
        }
    }

    /// A change may have happened.
    pub fn may_hold(&mut self, key: &[u8], value: &Value) {
        self.of(key).now.push(value.clone());
        self.may_survive(key, value);
    }

    /// A change may be there after a power cut.
    pub fn may_survive(&mut self, key: &[u8], value: &Value) {
        self.of(key).surviving.push(value.clone());
    }

    /// All changes are durable.
    pub fn flushed(&mut self) {
        self.0.values_mut().for_each(|held| held.surviving = held.now.clone());
    }

    /// The power went.
    pub fn power_cut(&mut self) {
        self.0.values_mut().for_each(|held| held.now = held.surviving.clone());
    }

    /// What keys hold after a power cut was looked at: they keep it, but for those that told nothing.
    pub fn settled(&mut self, failing: &[Key]) {
        let told = self.0.iter_mut().filter(|(key, _)| !failing.contains(key));
        told.for_each(|(_, held)| held.surviving = held.now.clone());
    }

    /// A key showed what it holds.
    pub fn seen(&mut self, key: &[u8], value: &Value) -> Result<(), Broken> {
        let held = self.of(key);
        if held.now.contains(value) {
            held.now = vec![value.clone()];
            return Ok(());
        }
        let all: Vec<String> = held.now.iter().map(in_words).collect();
        let promised = format!("key {key:02X?} holds {}", all.join(" or "));
        Err(Broken::new("each key holds its last value", promised, in_words(value)))
    }

    /// A key is said to exist.
    pub fn exists(&mut self, key: &[u8]) -> Result<(), Broken> {
        if self.of(key).now.iter().any(Option::is_some) {
            return Ok(());
        }
        Err(Broken::new(
            "each key holds its last value",
            format!("key {key:02X?} holds nothing"),
            "it exists",
        ))
    }

    /// These are said to be all keys.
    pub fn listed(&self, listed: &[Key]) -> Result<(), Broken> {
        for (key, held) in &self.0 {
            let is_listed = listed.contains(key);
            if !held.now.iter().any(|value| value.is_some() == is_listed) {
                let found = if is_listed { "it is listed" } else { "it is not listed" };
                return Err(Broken::new("a listing", format!("what is told of key {key:02X?}"), found));
            }
        }
        let unknown = listed.iter().find(|key| !self.0.contains_key(*key));
        unknown.map_or(Ok(()), |key| Err(Broken::new("a listing", "keys that exist", format!("{key:02X?}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(byte: u8) -> Value {
        Some(vec![byte])
    }

    #[test]
    fn a_key_holds_its_last_value_and_after_a_power_cut_any_since_the_last_durable_one() {
        let mut keys = Believed::default();
        keys.changed(b"a", &value(1), false);
        keys.changed(b"a", &value(2), true);
        keys.changed(b"a", &value(3), false);
        assert!(keys.seen(b"a", &value(2)).is_err(), "an older value");
        assert!(keys.seen(b"a", &value(3)).is_ok());
        keys.power_cut();
        assert!(keys.seen(b"a", &value(1)).is_err() && keys.seen(b"a", &None).is_err());
        assert!(keys.seen(b"a", &value(2)).is_ok());
        keys.settled(&[]);
        keys.power_cut();
        assert!(keys.seen(b"a", &value(3)).is_err(), "what was there stays");
    }

    #[test]
    fn what_was_flushed_survives_and_what_told_nothing_stays_unknown() {
        let mut keys = Believed::default();
        keys.changed(b"a", &value(1), false);
        keys.flushed();
        keys.changed(b"a", &None, false);
        keys.power_cut();
        keys.settled(&[b"a".to_vec()]);
        let mut other = keys.clone();
        assert!(keys.seen(b"a", &value(1)).is_ok() && other.seen(b"a", &None).is_ok());
        assert!(keys.exists(b"a").is_ok() && other.exists(b"a").is_err());
        assert!(keys.listed(&[b"a".to_vec()]).is_ok() && keys.listed(&[]).is_err());
        assert!(other.listed(&[]).is_ok() && other.listed(&[b"b".to_vec()]).is_err());
    }
}
