//! Entries of the index side by side: a page, and what an entry says.
//!
//! In memory entries lie in the order in which they came, with a list of where each begins, in the order of keys; on media they
//! lie in the order of keys. Who looks for one key touches a byte of each and the entry itself, and no list: entries of one length
//! are counted. Deliberately not here: which keys a page is for (`mod`).

use ocssd_base::usize_of;

/// Bytes of an entry beside its key: its length 1, address 6, bytes of the value 4.
pub const ENTRY_BYTES: usize = 11;
/// Bytes of a page in memory beside its entries: its four lists, when it was used, and who needs it (the fields of `Resident`, and
/// what an allocation costs).
const PAGE_COST: usize = 152;
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

/// An entry: the byte of its page it begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAt(usize);

/// Entries, and their order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Where each entry begins, in the order of keys.
    begins: Vec<u16>,
    bytes: Vec<u8>,
    /// A byte that tells of each key, in the order in which entries lie: who looks for a key touches few entries.
    tags: Vec<u8>,
    /// Where each entry begins, in the order in which they lie; none while all are as long as the first.
    starts: Vec<u16>,
}

/// A place on a page, as lists have it.
fn begin_of(at: usize) -> u16 {
    u16::try_from(at).expect("a page is divided before")
}

/// A byte that differs between most keys.
fn tag(key: &[u8]) -> u8 {
    // Odd and without a pattern (the golden ratio): the upper bits of a product depend on all bits of the factor.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut all = FACTOR;
    let mut words = key.chunks_exact(8);
    for word in words.by_ref() {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        all = (all ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }
    for &byte in words.remainder() {
        all = (all ^ u64::from(byte)).wrapping_mul(FACTOR).rotate_left(29);
    }
    all.wrapping_mul(FACTOR).to_be_bytes()[0]
}

impl Page {
    pub fn key(&self, entry: usize) -> &[u8] {
        let at = usize::from(self.begins[entry]);
        &self.bytes[at + ENTRY_BYTES..at + ENTRY_BYTES + usize::from(self.bytes[at])]
    }

    pub fn found(&self, entry: usize) -> Found {
        let at = usize::from(self.begins[entry]);
        Found::decode(&self.bytes[at + 1..at + ENTRY_BYTES])
    }

    /// What an entry says that was looked for.
    pub fn found_at(&self, EntryAt(at): EntryAt) -> Found {
        Found::decode(&self.bytes[at + 1..at + ENTRY_BYTES])
    }

    /// Where the entry begins that lies at this place from the first.
    fn start(&self, nth: usize) -> usize {
        match self.starts.get(nth) {
            Some(&start) => usize::from(start),
            None => nth * (ENTRY_BYTES + usize::from(self.bytes[0])),
        }
    }

    /// True if the entry at this place has this key.
    fn is_of(&self, EntryAt(at): EntryAt, key: &[u8]) -> bool {
        self.bytes[at..]
            .split_at_checked(ENTRY_BYTES)
            .is_some_and(|(head, rest)| usize::from(head[0]) == key.len() && rest.starts_with(key))
    }

    /// Where a key is, if it is there: eight tags are looked at in a word.
    pub fn find(&self, key: &[u8]) -> Option<EntryAt> {
        const LOW: u64 = u64::from_le_bytes([1; 8]);
        const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
        let tag = tag(key);
        let words = self.tags.chunks_exact(8);
        let behind = self.tags.len() - words.remainder().len();
        for (nth, word) in words.enumerate() {
            // The highest bit of a byte is set where the tags are equal, and now and then above such a byte.
            let differs = u64::from_le_bytes(word.try_into().expect("eight bytes")) ^ (LOW * u64::from(tag));
            let mut equal = differs.wrapping_sub(LOW) & !differs & HIGH;
            while equal != 0 {
                let entry = EntryAt(self.start(8 * nth + usize_of(equal.trailing_zeros() / 8)));
                if self.is_of(entry, key) {
                    return Some(entry);
                }
                equal &= equal - 1;
            }
        }
        let equal = (behind..self.tags.len()).filter(|&nth| self.tags[nth] == tag);
        equal.map(|nth| EntryAt(self.start(nth))).find(|&entry| self.is_of(entry, key))
    }

    /// Loads the bytes that tell of keys: one of each line of the cache.
    pub fn touch(&self) -> usize {
        self.tags.iter().step_by(64).fold(0, |all, &tag| all ^ usize::from(tag))
    }

    /// Which of the entries in their order has a key; if none has, where it would be.
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
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

    pub fn put(&mut self, EntryAt(at): EntryAt, found: Found) {
        found.encode(&mut self.bytes[at + 1..at + ENTRY_BYTES]);
    }

    pub fn insert(&mut self, entry: usize, key: &[u8], found: Found) {
        assert!(entry <= self.begins.len(), "entry {entry} behind {} is inserted", self.begins.len());
        assert!((1..=255).contains(&key.len()), "a key of {} bytes", key.len());
        let at = self.bytes.len();
        // An eighth more each time: lists that double would leave a quarter of the index empty.
        let length = ENTRY_BYTES + key.len();
        if at + length > self.bytes.capacity() {
            self.bytes.reserve_exact(length.max(at / 8));
        }
        if self.begins.len() == self.begins.capacity() {
            self.begins.reserve_exact(1 + self.begins.len() / 8);
            self.tags.reserve_exact(1 + self.begins.len() / 8);
        }
        if !self.starts.is_empty() || at > 0 && length != ENTRY_BYTES + usize::from(self.bytes[0]) {
            self.note_start(at);
        }
        self.bytes.push(u8::try_from(key.len()).expect("a key has at most 255 bytes"));
        self.bytes.resize(at + ENTRY_BYTES, 0);
        self.bytes.extend_from_slice(key);
        self.begins.insert(entry, begin_of(at));
        self.tags.push(tag(key));
        assert_eq!(self.tags.len(), self.begins.len(), "a key has no tag");
        self.put(EntryAt(at), found);
    }

    /// The next entry begins at this byte, and not all are of one length.
    fn note_start(&mut self, at: usize) {
        if self.starts.is_empty() {
            self.starts = (0..self.tags.len()).map(|nth| begin_of(self.start(nth))).collect();
        }
        assert_eq!(self.starts.len(), self.tags.len(), "entries begin that have no tag");
        self.starts.push(begin_of(at));
    }

    pub fn remove(&mut self, EntryAt(at): EntryAt) {
        let begin = begin_of(at);
        let entry = self.begins.iter().position(|&other| other == begin).expect("an entry begins there");
        let length = ENTRY_BYTES + usize::from(self.bytes[at]);
        let nth = if self.starts.is_empty() {
            at / length
        } else {
            let nth = self.starts.binary_search(&begin).expect("an entry begins there");
            self.starts.remove(nth);
            nth
        };
        self.begins.remove(entry);
        self.tags.remove(nth);
        self.bytes.drain(at..at + length);
        let length = begin_of(length);
        let behind = self.begins.iter_mut().chain(&mut self.starts).filter(|other| **other > begin);
        behind.for_each(|other| *other -= length);
        assert_eq!(self.tags.len(), self.begins.len(), "a tag was left behind");
    }

    /// Entries.
    pub const fn len(&self) -> usize {
        self.begins.len()
    }

    /// Bytes of entries.
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory.
    pub const fn cost(&self) -> usize {
        let lists = 2 * (self.begins.capacity() + self.starts.capacity()) + self.tags.capacity();
        self.bytes.capacity() + lists + PAGE_COST
    }

    /// What is above half of a page of `most` bytes leaves, as pages that are no longer than that.
    pub fn divide(&mut self, most: usize) -> Vec<Self> {
        assert!(self.len() > 1, "a page of {} entries is divided", self.len());
        let (half, total) = (self.bytes.len() / 2, self.bytes.len());
        let mut pages = vec![Self::default()];
        for entry in 0..self.len() {
            let (key, found) = (self.key(entry), self.found(entry));
            let last = pages.last().expect("there is one");
            let is_full = last.bytes() >= half || last.bytes() + ENTRY_BYTES + key.len() > most;
            if is_full && last.len() > 0 {
                pages.push(Self::default());
            }
            let last = pages.last_mut().expect("there is one");
            last.insert(last.len(), key, found);
        }
        assert_eq!(pages.iter().map(Self::bytes).sum::<usize>(), total, "entries were lost");
        assert!(pages.len() > 1, "a page of {total} bytes was not divided");
        pages.iter_mut().for_each(Self::shrink);
        *self = pages.remove(0);
        pages
    }

    /// Gives back memory that holds nothing.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.begins.shrink_to_fit();
        self.tags.shrink_to_fit();
        self.starts.shrink_to_fit();
    }

    /// The entries in the order of their keys, as media have them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for &begin in &self.begins {
            let at = usize::from(begin);
            out.extend_from_slice(&self.bytes[at..at + ENTRY_BYTES + usize::from(self.bytes[at])]);
        }
    }

    /// The page in these bytes; `None` if they are none, or hold no entry.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut rest, mut last) = (bytes, None);
        while !rest.is_empty() {
            let (key, behind) = next_entry(rest)?;
            if last.is_some_and(|last| last >= key) {
                return None;
            }
            (rest, last) = (behind, Some(key));
        }
        (!bytes.is_empty()).then(|| Self::of_sorted(bytes))
    }

    /// The page of entries that are known to be sound, and in the order of their keys: no list is longer than it has to be.
    pub fn of_sorted(entries: &[u8]) -> Self {
        assert!(!entries.is_empty(), "a page of no entries");
        let first_bytes = ENTRY_BYTES + usize::from(entries[0]);
        // As many as there are if all are as long as the first.
        let likely = entries.len().div_ceil(first_bytes);
        let (mut begins, mut tags) = (Vec::with_capacity(likely), Vec::with_capacity(likely));
        let (mut at, mut are_alike) = (0, true);
        while at < entries.len() {
            let end = at + ENTRY_BYTES + usize::from(entries[at]);
            are_alike &= end - at == first_bytes;
            begins.push(begin_of(at));
            tags.push(tag(&entries[at + ENTRY_BYTES..end]));
            at = end;
        }
        assert_eq!(at, entries.len(), "the last entry is cut short");
        let starts = if are_alike { Vec::new() } else { begins.clone() };
        let mut page = Self { begins, bytes: entries.to_vec(), tags, starts };
        page.shrink();
        page
    }
}

/// The key of the first entry of some, and those behind it; `None` if it is none.
pub fn next_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = ENTRY_BYTES + usize::from(*bytes.first()?);
    let (entry, rest) = bytes.split_at_checked(length)?;
    let key = &entry[ENTRY_BYTES..];
    (!key.is_empty()).then_some((key, rest))
}
