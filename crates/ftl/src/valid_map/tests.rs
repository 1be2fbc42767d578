//! The map against a plain set of places.

use super::*;
use ocssd_base::Prng;
use ocssd_lightnvm::{Geometry, PuId};
use std::collections::BTreeMap;

/// Three units of 5 chunks; `chunk_sectors` a chunk.
fn shape(chunk_sectors: u32) -> InstanceGeometry {
    InstanceGeometry::new(&Geometry::example(3, 1, 5, chunk_sectors, 1), &[PuId(0), PuId(1), PuId(2)])
}

/// The naive model: the valid places in order, and when each line last lost one.
#[derive(Default)]
struct Naive {
    valid: std::collections::BTreeSet<PhysicalAddress>,
    last: BTreeMap<LineId, u64>,
}

fn check_same(map: &ValidMap, naive: &Naive, shape: &InstanceGeometry, context: &str) {
    map.check();
    assert_eq!(map.total(), u64::try_from(naive.valid.len()).unwrap(), "{context}");
    for line in (0..shape.lines()).map(LineId) {
        let start = PhysicalAddress(u64::from(line.0) * shape.sectors_per_line());
        let end = PhysicalAddress(start.0 + shape.sectors_per_line());
        let expected: Vec<_> = naive.valid.range(start..end).copied().collect();
        assert_eq!(map.iter_line(line, start).collect::<Vec<_>>(), expected, "{context}, {line:?}");
        assert_eq!(map.count(line), u64::try_from(expected.len()).unwrap(), "{context}, {line:?}");
        assert_eq!(map.next_valid(line, end), None, "{context}, {line:?}");
        assert_eq!(runs(map, line, start), expected, "{context}, {line:?}");
        for count in [1, 7, 24, 64] {
            assert_eq!(by_bits(map, (start, end), count), expected, "{context}, {line:?}, by {count}");
        }
        let last = naive.last.get(&line).copied().unwrap_or(0);
        assert_eq!(map.last_invalidated(line), last, "{context}, {line:?}");
    }
}

/// The valid places of a line, by runs of at most 70: some run through a whole word.
fn runs(map: &ValidMap, line: LineId, start: PhysicalAddress) -> Vec<PhysicalAddress> {
    let (mut places, mut from) = (Vec::new(), start);
    while let Some((first, count)) = map.next_run(line, from, 70) {
        assert!((1..=70).contains(&count), "{count} places from {first:?}");
        assert!(map.is_valid_run(first, count), "{count} places from {first:?}");
        let is_end = first.0 + count == start.0 + map.per_line.value();
        assert!(is_end || count == 70 || !map.is_valid_run(first, count + 1), "{count} from {first:?}");
        places.extend((first.0..first.0 + count).map(PhysicalAddress));
        from = PhysicalAddress(first.0 + count);
    }
    places
}

/// The valid places of a line, by words of `count` places each.
fn by_bits(
    map: &ValidMap,
    (start, end): (PhysicalAddress, PhysicalAddress),
    count: u32,
) -> Vec<PhysicalAddress> {
    let firsts = (start.0..end.0).step_by(usize::try_from(count).unwrap());
    let of_word = |first: u64| {
        let count = u32::try_from((end.0 - first).min(u64::from(count))).unwrap();
        let bits = map.bits(PhysicalAddress(first), count);
        assert!(count == 64 || bits >> count == 0, "bits of {count} places: {bits:b}");
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| PhysicalAddress(first + bit))
    };
    firsts.flat_map(of_word).collect()
}

#[test]
fn the_map_is_a_set_of_places() {
    // Rows of less than a word, of whole words, and of words and a part.
    for (seed, chunk_sectors) in [(1, 7), (2, 64), (3, 100)] {
        let shape = shape(chunk_sectors);
        let (mut map, mut naive, mut prng) = (ValidMap::new(&shape), Naive::default(), Prng::new(seed));
        for now in 1..=6_000 {
            let place = PhysicalAddress(prng.below(shape.places()));
            let line = shape.line_of(place);
            assert_eq!(map.is_valid(place), naive.valid.contains(&place), "seed {seed}, step {now}");
            if prng.below(1_000) == 0 {
                map.clear_line(line);
                naive.valid.retain(|&place| shape.line_of(place) != line);
                naive.last.remove(&line);
            } else if naive.valid.remove(&place) {
                assert_eq!(map.clear(place, now), line, "seed {seed}, step {now}");
                naive.last.insert(line, now);
            } else {
                map.set(place);
                naive.valid.insert(place);
            }
        }
        check_same(&map, &naive, &shape, &format!("seed {seed}"));
    }
}

#[test]
fn a_run_is_its_places() {
    let shape = shape(100);
    let mut prng = Prng::new(4);
    for round in 0..300 {
        let (mut map, mut naive) = (ValidMap::new(&shape), Naive::default());
        let id = LineId(u32::try_from(prng.below(5)).expect("small"));
        let line = u64::from(id.0) * 300;
        let mut sector = prng.below(100);
        while sector < 300 {
            let count = 1 + prng.below(300 - sector);
            map.set_run(PhysicalAddress(line + sector), count);
            naive.valid.extend((0..count).map(|at| PhysicalAddress(line + sector + at)));
            // Part of it goes again, as neighbours that were moved do.
            let skip = prng.below(count);
            let gone = 1 + prng.below(count - skip);
            let first = line + sector + skip;
            assert_eq!(map.clear_run(PhysicalAddress(first), gone, sector), id, "seed 4, round {round}");
            naive.valid.retain(|place| !(first..first + gone).contains(&place.0));
            naive.last.insert(id, sector);
            sector += count + prng.below(70);
        }
        check_same(&map, &naive, &shape, &format!("seed 4, round {round}"));
    }
}

#[test]
fn bits_may_be_fetched_ahead_in_any_number() {
    let shape = shape(100);
    let map = ValidMap::new(&shape);
    for count in [0, 1, 31, 32, 33, 64, 100] {
        map.fetch((0..count).map(|at| PhysicalAddress(at * 15 % shape.places())));
    }
    map.check();
}

#[test]
fn a_run_is_forgotten_whatever_of_it_is_valid() {
    let (shape, seed) = (shape(100), 6);
    let (mut map, mut prng) = (ValidMap::new(&shape), Prng::new(seed));
    let mut naive = Naive::default();
    for round in 0..300 {
        for place in (0..20).map(|_| PhysicalAddress(prng.below(shape.places()))) {
            if naive.valid.insert(place) {
                map.set(place);
            }
        }
        let line = prng.below(u64::from(shape.lines()));
        let sector = prng.below(shape.sectors_per_line());
        let count = prng.below(shape.sectors_per_line() - sector + 1);
        let first = PhysicalAddress(line * shape.sectors_per_line() + sector);
        map.forget_run(first, count);
        naive.valid.retain(|place| !(first.0..first.0 + count).contains(&place.0));
        check_same(&map, &naive, &shape, &format!("seed {seed}, round {round}"));
    }
}

#[test]
fn the_bits_of_a_line_come_back_from_media() {
    let shape = shape(30);
    let (mut map, mut prng) = (ValidMap::new(&shape), Prng::new(5));
    let places: std::collections::BTreeSet<_> =
        (0..200).map(|_| PhysicalAddress(prng.below(shape.places()))).collect();
    places.iter().for_each(|&place| map.set(place));
    let mut back = ValidMap::new(&shape);
    back.set(PhysicalAddress(0));
    let mut naive = Naive { valid: places, ..Naive::default() };
    for line in (0..shape.lines()).map(LineId) {
        let mut bytes = vec![0xAA; map.line_bytes()];
        let (head, tail) = bytes.split_at_mut(8);
        map.encode_part(line, 0, head);
        map.encode_part(line, 8, tail);
        assert_eq!(back.decode_line(line, &bytes, u64::from(line.0) * 10), Ok(()), "seed 5");
        naive.last.insert(line, u64::from(line.0) * 10);
    }
    check_same(&back, &naive, &shape, "seed 5");
}

#[test]
fn bits_that_are_not_a_lines_are_refused_and_change_nothing() {
    // 90 sectors a line: two words, the second with 26 bits in use.
    let (line, mut map) = (LineId(1), ValidMap::new(&shape(30)));
    map.set(PhysicalAddress(95));
    let mut beyond = vec![0; 16];
    beyond[11] = 1 << 2;
    let mut last = vec![0; 16];
    last[11] = 1 << 1;
    let length = |found| ValidMapError::Length { line, found, expected: 16 };
    let cases = [
        (vec![0; 15], length(15), "take 16 bytes, but 15 were found"),
        (vec![0; 24], length(24), "but 24 were found"),
        (beyond, ValidMapError::Beyond { line, sectors: 90 }, "line 1 name a sector beyond its 90"),
    ];
    for (bytes, error, part) in cases {
        assert_eq!(map.decode_line(line, &bytes, 7), Err(error));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!((map.count(line), map.last_invalidated(line)), (1, 0));
        map.check();
    }
    assert_eq!(map.decode_line(line, &last, 7), Ok(()));
    assert_eq!(map.next_valid(line, PhysicalAddress(90)), Some(PhysicalAddress(179)));
}
