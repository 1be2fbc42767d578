//! Keys that clients watch: EXEC is not carried out if one changed since.

use super::super::stored::Expiry;
use std::collections::HashMap;

/// Keys that one client watches (chosen: far more than transactions have).
const KEYS_MAX: usize = 4096;

/// What a client watches.
#[derive(Debug, Default)]
struct Watched {
    keys: Vec<(Vec<u8>, Option<Expiry>)>,
    /// One of them changed.
    is_dirty: bool,
}

/// What clients watch.
#[derive(Debug, Default)]
pub(super) struct Watches {
    // Neither is walked over but by `touch_all`, in which order does not matter.
    by_key: HashMap<Vec<u8>, Vec<u64>>,
    by_client: HashMap<u64, Watched>,
}

impl Watches {
    /// A client watches keys, which end as said if they exist. False if those are too many.
    pub(super) fn watch<'a>(
        &mut self,
        client: u64,
        keys: impl Iterator<Item = (&'a [u8], Option<Expiry>)>,
    ) -> bool {
        let watched = self.by_client.entry(client).or_default();
        for (key, expiry) in keys {
            if watched.keys.len() >= KEYS_MAX {
                return false;
            }
            let clients = self.by_key.entry(key.to_vec()).or_default();
            if !clients.contains(&client) {
                clients.push(client);
                watched.keys.push((key.to_vec(), expiry));
            }
        }
        true
    }

    /// A key changes.
    pub(super) fn touch(&mut self, key: &[u8]) {
        if self.by_key.is_empty() {
            return;
        }
        for client in self.by_key.get(key).into_iter().flatten() {
            if let Some(watched) = self.by_client.get_mut(client) {
                watched.is_dirty = true;
            }
        }
    }

    /// All keys are deleted: those that existed change.
    pub(super) fn touch_all(&mut self) {
        for watched in self.by_client.values_mut() {
            watched.is_dirty |= watched.keys.iter().any(|(_, expiry)| expiry.is_some());
        }
    }

    /// A key that the client watches changed, or is over.
    pub(super) fn is_dirty(&self, client: u64, now_ms: i64) -> bool {
        self.by_client.get(&client).is_some_and(|watched| {
            watched.is_dirty || watched.keys.iter().any(|(_, end)| end.is_some_and(|end| end.is_over(now_ms)))
        })
    }

    /// A client watches nothing any more.
    pub(super) fn forget(&mut self, client: u64) {
        for (key, _) in self.by_client.remove(&client).unwrap_or_default().keys {
            if let Some(clients) = self.by_key.get_mut(&key) {
                clients.retain(|other| *other != client);
                if clients.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_watches_a_key_is_told_of_its_change_until_it_forgets() {
        let mut watches = Watches::default();
        assert!(watches.watch(1, [(&b"a"[..], None), (b"b", Some(Expiry::At(9)))].into_iter()));
        assert!(watches.watch(2, [(&b"a"[..], None)].into_iter()));
        watches.touch(b"c");
        assert!(!watches.is_dirty(1, 8) && watches.is_dirty(1, 9), "b is over");
        watches.touch_all();
        assert!(watches.is_dirty(1, 0) && !watches.is_dirty(2, 0), "a did not exist");
        watches.touch(b"a");
        assert!(watches.is_dirty(2, 0));
        [1, 2].into_iter().for_each(|client| watches.forget(client));
        assert!(!watches.is_dirty(1, 99) && watches.by_key.is_empty() && watches.by_client.is_empty());
    }

    #[test]
    fn a_client_watches_a_bounded_number_of_keys() {
        let keys: Vec<[u8; 4]> = (0..5000_u32).map(u32::to_le_bytes).collect();
        let mut watches = Watches::default();
        assert!(!watches.watch(1, keys.iter().map(|key| (&key[..], None))));
        watches.forget(1);
        assert!(watches.by_key.is_empty());
    }
}
