//! The index against a naive map, with pages that come and go.

use super::*;
use ocssd_base::Prng;
use std::collections::BTreeMap;

fn found(prng: &mut Prng) -> Found {
    let location = match prng.below(4) {
        0 => Location::Long(prng.below(1 << 40)),
        1 => Location::Lost,
        _ => Location::Record(prng.below(1 << 46)),
    };
    Found { location, bytes: u32::try_from(prng.below(1 << 32)).expect("32 bits") }
}

type Model = BTreeMap<Vec<u8>, Found>;

/// Pages on media: what was written where.
#[derive(Default)]
struct Media {
    pages: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Media {
    /// Pages leave, some of them.
    fn evict(&mut self, index: &mut Index, most: usize) {
        for _ in 0..most {
            match index.next_leaving(true) {
                None => return,
                Some(Leaving::Gone) => {}
                Some(Leaving::ToWrite(lower)) => {
                    let page = index.encode_page(&lower);
                    let bytes = u32::try_from(page.len()).expect("short");
                    self.next += 1;
                    self.pages.insert(self.next, page);
                    index.left(&lower, PagePlace { at: self.next, bytes, image: 0 });
                }
            }
        }
    }

    fn bring(&self, index: &mut Index, key: &[u8]) {
        if let Some(place) = index.want(key, Need::Request) {
            assert!(index.arrived(place, &self.pages[&place.at], true), "it was written");
            assert_eq!(index.want(key, Need::Request), None, "it is there");
        }
    }

    fn bring_all(&self, index: &mut Index) {
        loop {
            let missing = index.want_listed(&[], &[], usize::MAX, 3);
            if missing.is_empty() {
                return;
            }
            for place in missing {
                assert!(index.arrived(place, &self.pages[&place.at], true), "it was written");
            }
        }
    }
}

fn drawn_key(prng: &mut Prng) -> Vec<u8> {
    let length = 1 + usize::try_from(prng.below(prng.clone().below(255) + 1)).expect("short");
    (0..length).map(|_| u8::try_from(prng.below(3) + 97).expect("a letter")).collect()
}

fn all(index: &Index) -> Vec<(Vec<u8>, Found)> {
    index.from(&[]).map(|(key, found)| (key.to_vec(), found)).collect()
}

fn is_a_map(page_bytes: u32, evicts: bool) {
    let seed = 5;
    let mut prng = Prng::new(seed);
    let (mut index, mut model, mut media) = (Index::new(page_bytes), Model::new(), Media::default());
    for round in 0..20_000 {
        let key = drawn_key(&mut prng);
        media.bring(&mut index, &key);
        if prng.below(3) == 0 {
            assert_eq!(index.remove(&key), model.remove(&key), "seed {seed}, round {round}");
        } else {
            let found = found(&mut prng);
            assert_eq!(index.set(&key, found), model.insert(key.clone(), found), "seed {seed}");
        }
        assert_eq!(index.get(&key), model.get(&key).copied(), "seed {seed}, round {round}");
        index.take_released();
        index.needs_no_more(Need::Request);
        if evicts && prng.below(4) == 0 {
            media.evict(&mut index, 5);
        }
        if round % 1000 == 0 {
            index.check();
            let from = &key[..key.len() / 2 + 1];
            let prefix = &from[..1];
            while let Some(&place) = index.want_listed(from, prefix, 500, 1).first() {
                assert!(index.arrived(place, &media.pages[&place.at], false), "it was written");
            }
            let listed: Vec<&[u8]> = index.listed(from, prefix).take(2).collect();
            let expected = model.range(from.to_vec()..).map(|(key, _)| &key[..]);
            let expected: Vec<&[u8]> = expected.take_while(|key| key.starts_with(prefix)).take(2).collect();
            assert_eq!(listed, expected, "seed {seed}, round {round}");
            index.needs_no_more(Need::Request);
        }
    }
    assert_eq!(index.pages().1 > 0, evicts, "pages that are on media: {:?}", index.pages());
    let (entries, references) = index.encode();
    let mut again = Index::decode(&entries, Some(&references), page_bytes).expect("it was encoded");
    assert_eq!((again.keys(), again.entry_bytes()), (index.keys(), index.entry_bytes()));
    media.bring_all(&mut again);
    again.check();
    assert_eq!(all(&again), model.into_iter().collect::<Vec<_>>(), "seed {seed}");
}

#[test]
fn it_is_a_map_in_the_order_of_bytes() {
    is_a_map(PAGE_BYTES, false);
}

#[test]
fn it_is_the_same_map_while_pages_come_and_go() {
    is_a_map(300, true);
    is_a_map(PAGE_BYTES_BOUNDED, true);
}

#[test]
fn a_page_that_somebody_needs_stays() {
    let (mut index, mut media) = (Index::new(266), Media::default());
    for key in 0..200_u8 {
        index.set(&[1, key], Found { location: Location::Record(5), bytes: 1 });
    }
    let key = [1, 150];
    assert_eq!(index.want(&key, Need::Copy), None);
    (0..20).for_each(|_| media.evict(&mut index, 50));
    assert_eq!(index.want(&key, Need::Request), None, "it was needed");
    index.needs_no_more(Need::Request);
    index.needs_no_more(Need::Copy);
    (0..20).for_each(|_| media.evict(&mut index, 50));
    assert!(index.want(&key, Need::Request).is_some(), "nobody needs it");
    index.check();
}

#[test]
fn bytes_that_are_no_index_are_told() {
    let mut index = Index::new(PAGE_BYTES);
    for key in [&b"a"[..], b"b", b"cc"] {
        index.set(key, Found { location: Location::Record(5), bytes: 1 });
    }
    let (bytes, references) = index.encode();
    let decode = |bytes: &[u8]| Index::decode(bytes, None, PAGE_BYTES);
    assert!(decode(&bytes[..bytes.len() - 1]).is_none(), "cut short");
    assert!(decode(&[&bytes[..], &bytes[..]].concat()).is_none(), "keys that are not in order");
    assert_eq!(decode(&[]).map(|index| index.keys()), Some(0));
    assert!(Index::decode(&bytes, Some(&references[1..]), PAGE_BYTES).is_none(), "counts cut short");
    assert!(Index::decode(&bytes[..12], Some(&references), PAGE_BYTES).is_none(), "another count");
}

#[test]
fn a_key_of_sixteen_bytes_takes_less_than_forty_five_bytes() {
    let mut index = Index::new(PAGE_BYTES);
    let mut prng = Prng::new(1);
    for _ in 0..50_000 {
        let key = [prng.next_u64().to_be_bytes(), prng.next_u64().to_be_bytes()].concat();
        index.set(&key, Found { location: Location::Record(1), bytes: 1000 });
    }
    let loaded = Index::decode(&index.encode().0, None, PAGE_BYTES).expect("sound").memory_bytes();
    for bytes in [index.memory_bytes(), loaded] {
        assert!((27 * 50_000..45 * 50_000).contains(&bytes), "{bytes} bytes");
    }
}

#[test]
fn a_key_whose_page_is_on_media_takes_few_bytes() {
    for (page_bytes, most) in [(PAGE_BYTES, 2), (PAGE_BYTES_BOUNDED, 6)] {
        let (mut index, mut media) = (Index::new(page_bytes), Media::default());
        let mut prng = Prng::new(1);
        for _ in 0..50_000 {
            let key = [prng.next_u64().to_be_bytes(), prng.next_u64().to_be_bytes()].concat();
            index.set(&key, Found { location: Location::Record(1), bytes: 1000 });
        }
        (0..100).for_each(|_| media.evict(&mut index, 1000));
        assert_eq!(index.pages().0 - 1, index.pages().1, "all but the first page left");
        let bytes = index.memory_bytes();
        assert!(bytes < most * 50_000 && bytes > 10_000, "{bytes} bytes with pages of {page_bytes}");
    }
}
