//! Where each key's value is: keys in the order of their bytes, packed into pages, with the first key of each page above them.
//!
//! A page has up to [`PAGE_BYTES`] of entries, each a key with 11 bytes: so a key of 16 bytes takes 30 to 40 bytes of memory,
//! a look-up is a walk through the tree of pages and a binary search, and a listing by prefix reads entries that lie side by
//! side. Deliberately not here: media. The index lies in memory as a whole; checkpoints and replay bring it back.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Bytes of a page before it is divided (chosen: a binary search touches few cache lines, and the tree above stays a
/// hundredth of the keys).
const PAGE_BYTES: usize = 4096;
/// Bytes of an entry beside its key: its length 1, address 6, bytes of the value 4.
pub const ENTRY_BYTES: usize = 11;
/// Set in an address that is no place but the number of a long value.
const LONG: u64 = 1 << 47;
/// The address of a value that the media lost.
const LOST: u64 = LONG - 1;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a record that begins at this byte of the instance.
    Record(u64),
    /// In pieces, under this number.
    Long(u64),
    /// Nowhere: the media lost it.
    Lost,
}

/// What the index says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub location: Location,
    /// Bytes of the value.
    pub bytes: u32,
}

impl Found {
    fn encode(self, out: &mut [u8]) {
        let address = match self.location {
            Location::Record(at) => at,
            Location::Long(value) => value | LONG,
            Location::Lost => LOST,
        };
        assert!(address < 1 << 48, "{self:?} does not fit 6 bytes");
        out[..6].copy_from_slice(&address.to_le_bytes()[..6]);
        out[6..10].copy_from_slice(&self.bytes.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), ENTRY_BYTES - 1, "an entry of another length");
        let mut address = [0; 8];
        address[..6].copy_from_slice(&bytes[..6]);
        let address = u64::from_le_bytes(address);
        let location = match address {
            LOST => Location::Lost,
            long if long & LONG != 0 => Location::Long(long & !LONG),
            at => Location::Record(at),
        };
        Self { location, bytes: u32::from_le_bytes(bytes[6..10].try_into().expect("four bytes")) }
    }
}

/// Entries in order: where each begins, and their bytes.
#[derive(Clone, Debug, Default)]
struct Page {
    begins: Vec<u16>,
    bytes: Vec<u8>,
}

impl Page {
    fn key(&self, entry: usize) -> &[u8] {
        let at = usize::from(self.begins[entry]);
        &self.bytes[at + ENTRY_BYTES..at + ENTRY_BYTES + usize::from(self.bytes[at])]
    }

    fn found(&self, entry: usize) -> Found {
        let at = usize::from(self.begins[entry]);
        Found::decode(&self.bytes[at + 1..at + ENTRY_BYTES])
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.begins.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn put(&mut self, entry: usize, found: Found) {
        let at = usize::from(self.begins[entry]);
        found.encode(&mut self.bytes[at + 1..at + ENTRY_BYTES]);
    }

    fn insert(&mut self, entry: usize, key: &[u8], found: Found) {
        assert!(entry <= self.begins.len(), "entry {entry} behind {} is inserted", self.begins.len());
        assert!((1..=255).contains(&key.len()), "a key of {} bytes", key.len());
        let at = self.bytes.len();
        self.bytes.push(u8::try_from(key.len()).expect("a key has at most 255 bytes"));
        self.bytes.resize(at + ENTRY_BYTES, 0);
        self.bytes.extend_from_slice(key);
        self.begins.insert(entry, u16::try_from(at).expect("a page is divided before"));
        self.put(entry, found);
    }

    fn remove(&mut self, entry: usize) {
        assert!(entry < self.begins.len(), "entry {entry} of {} is removed", self.begins.len());
        let at = self.begins.remove(entry);
        let length = ENTRY_BYTES + usize::from(self.bytes[usize::from(at)]);
        self.bytes.drain(usize::from(at)..usize::from(at) + length);
        let length = u16::try_from(length).expect("an entry is short");
        self.begins.iter_mut().filter(|begin| **begin > at).for_each(|begin| *begin -= length);
    }

    /// The upper half, which leaves.
    fn divide(&mut self) -> Self {
        assert!(self.begins.len() > 1, "a page of {} entries is divided", self.begins.len());
        let (mut lower, mut upper) = (Self::default(), Self::default());
        let middle = self.begins.len() / 2;
        for entry in 0..self.begins.len() {
            let half = if entry < middle { &mut lower } else { &mut upper };
            half.insert(half.begins.len(), self.key(entry), self.found(entry));
        }
        assert_eq!(lower.bytes.len() + upper.bytes.len(), self.bytes.len(), "entries were lost");
        lower.bytes.shrink_to_fit();
        *self = lower;
        upper
    }
}

/// All keys.
#[derive(Clone, Debug)]
pub struct Index {
    /// By a key that is not above any of the page, and above all of the page before; the first one is empty.
    pages: BTreeMap<Box<[u8]>, Page>,
    keys: u64,
    key_bytes: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self { pages: BTreeMap::from([(Box::from(&[][..]), Page::default())]), keys: 0, key_bytes: 0 }
    }
}

impl Index {
    /// Keys.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of all entries, as a checkpoint has them.
    pub fn entry_bytes(&self) -> u64 {
        self.key_bytes + self.keys * u64::try_from(ENTRY_BYTES).expect("small")
    }

    /// Bytes of memory, those of the tree of pages estimated.
    pub fn memory_bytes(&self) -> u64 {
        let page = |(key, page): (&[u8], &Page)| {
            key.len() + page.bytes.capacity() + 2 * page.begins.capacity() + 16 + size_of::<Page>() + 8
        };
        u64::try_from(self.pages.iter().map(|(key, of)| page((key, of))).sum::<usize>())
            .expect("memory fits 64 bits")
    }

    fn page(&self, key: &[u8]) -> &Page {
        let range = self.pages.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        range.last_page()
    }

    /// What is known of a key.
    pub fn get(&self, key: &[u8]) -> Option<Found> {
        let page = self.page(key);
        page.search(key).ok().map(|entry| page.found(entry))
    }

    /// A key is there from now on; what was known of it before.
    pub fn set(&mut self, key: &[u8], found: Found) -> Option<Found> {
        let range = self.pages.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        let page = range.last_page();
        let entry = match page.search(key) {
            Ok(entry) => {
                let before = page.found(entry);
                page.put(entry, found);
                return Some(before);
            }
            Err(entry) => entry,
        };
        page.insert(entry, key, found);
        if page.bytes.len() > PAGE_BYTES {
            let upper = page.divide();
            assert!(!upper.begins.is_empty(), "a page of one entry was divided");
            let first = Box::from(upper.key(0));
            self.pages.insert(first, upper);
        }
        self.keys += 1;
        self.key_bytes += u64::try_from(key.len()).expect("short");
        None
    }

    /// A key is not there any more; what was known of it.
    pub fn remove(&mut self, key: &[u8]) -> Option<Found> {
        let mut range = self.pages.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        let (first, page) = range.next_back().expect("the first page has no lower bound");
        let entry = page.search(key).ok()?;
        let before = page.found(entry);
        page.remove(entry);
        if page.begins.is_empty() && !first.is_empty() {
            let first = first.clone();
            self.pages.remove(&first);
        }
        assert!(self.keys > 0, "a key was removed from an index of none");
        assert!(
            self.key_bytes >= u64::try_from(key.len()).expect("short"),
            "bytes of keys are counted wrong"
        );
        self.keys -= 1;
        self.key_bytes -= u64::try_from(key.len()).expect("short");
        Some(before)
    }

    /// All keys from one on, in order.
    pub fn from<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = (&'a [u8], Found)> {
        let mut before = self.pages.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        let (first, _) = before.next_back().expect("the first page has no lower bound");
        let pages = self.pages.range::<[u8], _>((Bound::Included(&first[..]), Bound::Unbounded));
        pages.flat_map(move |(_, page)| {
            let begin = page.search(key).unwrap_or_else(|entry| entry);
            (begin..page.begins.len()).map(move |entry| (page.key(entry), page.found(entry)))
        })
    }

    /// Every key, in order, as a checkpoint has them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(usize::try_from(self.entry_bytes()).expect("the index fits memory"));
        for page in self.pages.values() {
            for &begin in &page.begins {
                let at = usize::from(begin);
                out.extend_from_slice(&page.bytes[at..at + ENTRY_BYTES + usize::from(page.bytes[at])]);
            }
        }
        assert_eq!(u64::try_from(out.len()), Ok(self.entry_bytes()), "entries are counted wrong");
        out
    }

    /// The index in these bytes; `None` if they are none.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut index = Self::default();
        let (mut page, mut first) = (Page::default(), Box::from(&[][..]));
        let mut last: Option<&[u8]> = None;
        while !bytes.is_empty() {
            let length = ENTRY_BYTES + usize::from(bytes[0]);
            let (entry, rest) = bytes.split_at_checked(length)?;
            let key = &entry[ENTRY_BYTES..];
            if key.is_empty() || last.is_some_and(|last| last >= key) {
                return None;
            }
            // Pages a quarter empty, so that the next keys divide few.
            if page.bytes.len() + length > PAGE_BYTES / 4 * 3 {
                page.bytes.shrink_to_fit();
                index.pages.insert(std::mem::replace(&mut first, Box::from(key)), std::mem::take(&mut page));
            }
            page.insert(page.begins.len(), key, Found::decode(&entry[1..ENTRY_BYTES]));
            index.keys += 1;
            index.key_bytes += u64::try_from(key.len()).expect("short");
            (last, bytes) = (Some(key), rest);
        }
        index.pages.insert(first, page);
        Some(index)
    }

    /// Asserts that keys are in order and counted.
    pub fn check(&self) {
        let keys: Vec<&[u8]> = self.from(&[]).map(|(key, _)| key).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys are out of order");
        assert_eq!(u64::try_from(keys.len()), Ok(self.keys), "keys are counted wrong");
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        assert_eq!(u64::try_from(bytes), Ok(self.key_bytes), "bytes of keys are counted wrong");
        for (first, page) in &self.pages {
            assert!(page.begins.is_empty() || page.key(0) >= &first[..], "a key is on the wrong page");
        }
    }
}

/// The page at the end of a range of pages.
trait LastPage<P> {
    fn last_page(self) -> P;
}

impl<K, P, I: DoubleEndedIterator<Item = (K, P)>> LastPage<P> for I {
    fn last_page(mut self) -> P {
        self.next_back().expect("the first page has no lower bound").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    fn found(prng: &mut Prng) -> Found {
        let location = match prng.below(4) {
            0 => Location::Long(prng.below(1 << 40)),
            1 => Location::Lost,
            _ => Location::Record(prng.below(1 << 46)),
        };
        Found { location, bytes: u32::try_from(prng.below(1 << 32)).expect("32 bits") }
    }

    #[test]
    fn it_is_a_map_in_the_order_of_bytes() {
        let seed = 5;
        let mut prng = Prng::new(seed);
        let (mut index, mut model) = (Index::default(), BTreeMap::new());
        for round in 0..20_000 {
            let length = 1 + usize::try_from(prng.below(prng.clone().below(255) + 1)).expect("short");
            let key: Vec<u8> =
                (0..length).map(|_| u8::try_from(prng.below(3) + 97).expect("a letter")).collect();
            if prng.below(3) == 0 {
                assert_eq!(index.remove(&key), model.remove(&key), "seed {seed}, round {round}");
            } else {
                let found = found(&mut prng);
                assert_eq!(index.set(&key, found), model.insert(key.clone(), found), "seed {seed}");
            }
            let from = &key[..key.len() / 2 + 1];
            let listed: Vec<_> = index.from(from).take(5).map(|(key, found)| (key.to_vec(), found)).collect();
            let expected: Vec<_> =
                model.range(from.to_vec()..).take(5).map(|(key, &found)| (key.clone(), found)).collect();
            assert_eq!(listed, expected, "seed {seed}, round {round}");
        }
        index.check();
        let again = Index::decode(&index.encode()).expect("it was encoded");
        again.check();
        let all =
            |index: &Index| index.from(&[]).map(|(key, found)| (key.to_vec(), found)).collect::<Vec<_>>();
        assert_eq!(all(&again), model.into_iter().collect::<Vec<_>>());
        assert_eq!(again.entry_bytes(), index.entry_bytes());
    }

    #[test]
    fn bytes_that_are_no_index_are_told() {
        let mut index = Index::default();
        for key in [&b"a"[..], b"b", b"cc"] {
            index.set(key, Found { location: Location::Record(5), bytes: 1 });
        }
        let bytes = index.encode();
        assert!(Index::decode(&bytes[..bytes.len() - 1]).is_none(), "cut short");
        assert!(Index::decode(&[&bytes[..], &bytes[..]].concat()).is_none(), "keys that are not in order");
        assert_eq!(Index::decode(&[]).map(|index| index.keys()), Some(0));
    }

    #[test]
    fn a_key_of_sixteen_bytes_takes_less_than_forty_five_bytes() {
        let mut index = Index::default();
        let mut prng = Prng::new(1);
        for _ in 0..50_000 {
            let key = [prng.next_u64().to_be_bytes(), prng.next_u64().to_be_bytes()].concat();
            index.set(&key, Found { location: Location::Record(1), bytes: 1000 });
        }
        let (grown, loaded) =
            (index.memory_bytes(), Index::decode(&index.encode()).expect("sound").memory_bytes());
        assert!(grown / index.keys() < 60 && loaded / index.keys() < 45, "{grown} and {loaded} bytes");
    }
}
