//! The map against a naive one: a vector of [`Mapped`].

use super::*;
use ocssd_base::Prng;

/// Logical sectors of the random tests: two shards and a cut one.
const SECTORS: u64 = 2 * (1 << 16) + 777;

/// A map of each width with 100 slots, and its places; one in small shards besides.
fn both_widths() -> [(L2p, u64); 3] {
    let small = ShardSize::new(64).expect("a shard of that size");
    [(1_000_000, ShardSize::default()), (1 << 33, ShardSize::default()), (1_000_000, small)]
        .map(|(places, shard)| (L2p::with_shards(SECTORS, places, 100, shard), places))
}

fn random_mapped(prng: &mut Prng, places: u64) -> Mapped {
    match prng.below(4) {
        0 => Mapped::Nowhere,
        1 => Mapped::Buffer(Slot(u32::try_from(prng.below(100)).unwrap())),
        _ => Mapped::Media(PhysicalAddress(prng.below(places))),
    }
}

/// Where a buffered sector goes in these tests: odd slots have no place yet.
fn resolve(lba: u64, slot: Slot) -> Option<PhysicalAddress> {
    slot.0.is_multiple_of(2).then_some(PhysicalAddress(lba + u64::from(slot.0)))
}

fn as_on_media(lba: u64, mapped: Mapped) -> Mapped {
    match mapped {
        Mapped::Buffer(slot) => resolve(lba, slot).map_or(Mapped::Nowhere, Mapped::Media),
        mapped => mapped,
    }
}

/// A map of random entries, and the same as a plain vector.
fn random_map(map: &mut L2p, places: u64, seed: u64) -> Vec<Mapped> {
    let mut prng = Prng::new(seed);
    let mut naive = vec![Mapped::Nowhere; usize::try_from(SECTORS).unwrap()];
    for _ in 0..100_000 {
        let lba = prng.below(SECTORS);
        let to = random_mapped(&mut prng, places);
        let old = std::mem::replace(&mut naive[usize::try_from(lba).unwrap()], to);
        assert_eq!(map.set(lba, to), old, "seed {seed}, sector {lba}");
    }
    naive
}

#[test]
fn the_map_is_a_vector_of_where_sectors_are() {
    for (seed, (mut map, places)) in (1..).zip(both_widths()) {
        assert_eq!((map.sectors(), map.places(), map.slots()), (SECTORS, places, 100));
        let naive = random_map(&mut map, places, seed);
        assert!((0..SECTORS).zip(&naive).all(|(lba, &mapped)| map.get(lba) == mapped), "seed {seed}");
        let somewhere = naive.iter().filter(|&&mapped| mapped != Mapped::Nowhere).count();
        assert_eq!(map.count_mapped(), u64::try_from(somewhere).unwrap(), "seed {seed}");
        map.check();
    }
}

/// Sectors of the largest map of these tests, each with its shard, as [`L2p::shard_sectors`] says.
fn shard_of(map: &L2p, lba: u64) -> usize {
    (0..map.shard_count()).find(|&shard| map.shard_sectors(shard).contains(&lba)).unwrap()
}

#[test]
fn a_shard_is_changed_once_an_entry_of_it_may_be_another_than_media_have() {
    for (seed, (mut map, places)) in (61..).zip(both_widths()) {
        let mut prng = Prng::new(seed);
        random_map(&mut map, places, seed);
        let mut naive = vec![true; map.shard_count()];
        for round in 0..3_000 {
            if prng.below(20) == 0 {
                map.mark_all_unchanged();
                naive.fill(false);
            }
            let lba = prng.below(SECTORS);
            let (shard, at) = (shard_of(&map, lba), map.get(lba));
            let media = Mapped::Media(PhysicalAddress(prng.below(places)));
            match (prng.below(5), at) {
                (0, _) => {
                    let to = random_mapped(&mut prng, places);
                    map.set(lba, to);
                    naive[shard] = true;
                }
                (1, Mapped::Media(_) | Mapped::Buffer(_)) => naive[shard] |= map.move_if(lba, at, media),
                (2, Mapped::Media(place)) => {
                    naive[shard] |= map.move_run(&[lba], place, PhysicalAddress(prng.below(places))) == 1;
                }
                (3, _) => {
                    // Sought where it is not: nothing changes.
                    let elsewhere = Mapped::Buffer(Slot(99));
                    assert!(at == elsewhere || !map.move_if(lba, elsewhere, media), "seed {seed}");
                }
                (4, _) => {
                    map.mark_changed(lba);
                    naive[shard] = true;
                }
                _ => {}
            }
            assert_eq!(map.shard_is_changed(shard), naive[shard], "seed {seed}, round {round}");
        }
        let found: Vec<bool> = (0..map.shard_count()).map(|shard| map.shard_is_changed(shard)).collect();
        assert_eq!(found, naive, "seed {seed}");
        map.mark_all_unchanged();
        let lost = (0..SECTORS).find_map(|lba| match map.get(lba) {
            Mapped::Media(place) => Some((lba, place)),
            _ => None,
        });
        let (lba, lost) = lost.expect("something is on media");
        map.retain_media(|place| place != lost);
        assert!(map.shard_is_changed(shard_of(&map, lba)), "seed {seed}: an entry was taken away");
        let bytes = map.entry_bytes() as usize;
        let mut back = map.emptied();
        back.decode(0, &vec![0; bytes]).unwrap();
        assert!(!back.shard_is_changed(0), "what was decoded is as media have it");
    }
}

#[test]
fn passes_over_the_map_meet_what_is_on_media_and_nothing_else() {
    for (seed, (mut map, places)) in (31..).zip(both_widths()) {
        let naive = random_map(&mut map, places, seed);
        let mut met = Vec::new();
        map.for_each_media(|lba, place| met.push((lba, Mapped::Media(place))));
        let is_media = |mapped: &Mapped| matches!(mapped, Mapped::Media(_));
        let expected = (0..SECTORS).zip(naive.iter().copied()).filter(|(_, mapped)| is_media(mapped));
        assert!(expected.eq(met), "seed {seed}");
        map.retain_media(|place| place.0.is_multiple_of(3));
        let kept = |mapped: Mapped| match mapped {
            Mapped::Media(place) if !place.0.is_multiple_of(3) => Mapped::Nowhere,
            mapped => mapped,
        };
        assert!((0..SECTORS).zip(&naive).all(|(lba, &mapped)| map.get(lba) == kept(mapped)), "seed {seed}");
        map.check();
    }
}

#[test]
fn a_move_takes_only_a_sector_that_is_still_there() {
    for (mut map, _) in both_widths() {
        let [old, new, other] =
            [Mapped::Buffer(Slot(3)), Mapped::Media(PhysicalAddress(70)), Mapped::Media(PhysicalAddress(5))];
        assert!(!map.move_if(9, old, new), "a shard without entries holds nothing");
        map.set(9, old);
        map.fetch([9, SECTORS, u64::MAX].into_iter());
        // The last shard is cut, and there.
        map.set(SECTORS - 1, Mapped::Media(PhysicalAddress(4)));
        map.fetch([SECTORS - 1, SECTORS, SECTORS + 500].into_iter());
        map.set(SECTORS - 1, Mapped::Nowhere);
        assert!(!map.move_if(9, other, new));
        assert_eq!(map.get(9), old);
        assert!(map.move_if(9, old, new));
        assert_eq!((map.get(9), map.count_mapped()), (new, 1));
        map.check();
    }
}

#[test]
fn neighbours_move_as_one_by_one_up_to_the_first_that_is_elsewhere() {
    for (seed, (mut map, places)) in (41..).zip(both_widths()) {
        let mut prng = Prng::new(seed);
        for round in 0..200 {
            let count = 1 + prng.below(64);
            let (from, to) = (prng.below(places - count + 1), prng.below(places - count + 1));
            let lbas: Vec<u64> = (0..count).map(|_| prng.below(SECTORS)).collect();
            for (&lba, place) in lbas.iter().zip(from..) {
                let is_there = prng.below(30) > 0;
                let at = if is_there {
                    Mapped::Media(PhysicalAddress(place))
                } else {
                    random_mapped(&mut prng, places)
                };
                map.set(lba, at);
            }
            let mut naive = map.clone();
            let moves = |(lba, from, to)| {
                naive.move_if(lba, Mapped::Media(PhysicalAddress(from)), Mapped::Media(PhysicalAddress(to)))
            };
            let each = lbas.iter().zip(from..).zip(to..).map(|((&lba, from), to)| (lba, from, to));
            let moved = each.map(moves).take_while(|&is_moved| is_moved).count();
            let found = map.move_run(&lbas, PhysicalAddress(from), PhysicalAddress(to));
            assert_eq!(found, moved, "seed {seed}, round {round}");
            assert!((0..SECTORS).all(|lba| map.get(lba) == naive.get(lba)), "seed {seed}, round {round}");
        }
        map.check();
    }
}

#[test]
fn entries_written_and_read_back_in_odd_pieces_are_the_same_map() {
    for (seed, (mut map, places)) in (11..).zip(both_widths()) {
        let naive = random_map(&mut map, places, seed);
        let size = usize::try_from(map.entry_bytes()).unwrap();
        let (mut prng, mut back) = (Prng::new(seed + 100), map.emptied());
        // What was there before is forgotten, and its count with it.
        back.set(SECTORS - 1, Mapped::Media(PhysicalAddress(1)));
        let mut lba = 0;
        while lba < SECTORS {
            let piece = if prng.below(4) == 0 { 1 << 16 } else { 1 + prng.below(50_000) };
            let count = piece.min(SECTORS - lba);
            let mut bytes = vec![0; usize::try_from(count).unwrap() * size];
            map.encode(lba, &mut bytes, resolve);
            assert_eq!(back.decode(lba, &bytes), Ok(()), "seed {seed}, sector {lba}");
            lba += count;
        }
        let same = |(lba, &mapped): (u64, &Mapped)| back.get(lba) == as_on_media(lba, mapped);
        assert!((0..SECTORS).zip(&naive).all(same), "seed {seed}");
        back.check();
    }
}

#[test]
fn whole_shards_written_and_read_back_are_the_same_map() {
    for (seed, (mut map, places)) in (21..).zip(both_widths()) {
        let naive = random_map(&mut map, places, seed);
        let mut back = map.emptied();
        for shard in 0..map.shard_count() {
            let sectors = map.shard_sectors(shard);
            let count = usize::try_from(sectors.end - sectors.start).unwrap();
            let mut bytes = vec![0; count * usize::try_from(map.entry_bytes()).unwrap()];
            map.encode(sectors.start, &mut bytes, resolve);
            assert_eq!(back.decode(sectors.start, &bytes), Ok(()), "seed {seed}, shard {shard}");
        }
        let same = |(lba, &mapped): (u64, &Mapped)| back.get(lba) == as_on_media(lba, mapped);
        assert!((0..SECTORS).zip(&naive).all(same), "seed {seed}");
        back.check();
    }
}

#[test]
fn entries_are_narrow_as_long_as_places_slots_and_nowhere_fit() {
    let limit = 1 << 32;
    for (places, slots, bytes) in
        [(10, 0, 4), (limit - 101, 100, 4), (limit - 100, 100, 8), (0, u32::MAX, 4), (1, u32::MAX, 8)]
    {
        let mut map = L2p::new(5, places, slots);
        assert_eq!(map.entry_bytes(), bytes, "{places} places, {slots} slots");
        let ends = [places.checked_sub(1).map(|place| Mapped::Media(PhysicalAddress(place)))]
            .into_iter()
            .chain([slots.checked_sub(1).map(|slot| Mapped::Buffer(Slot(slot)))])
            .flatten();
        for end in ends {
            assert_eq!(map.set(4, end), Mapped::Nowhere);
            assert_eq!(map.get(4), end, "the highest of {places} places and {slots} slots");
            assert_eq!(map.set(4, Mapped::Nowhere), end);
        }
    }
}

#[test]
fn an_empty_instance_takes_no_shards() {
    // 2 TB in 4 KiB sectors.
    let mut map = L2p::new(488_281_250, 559_000_000, 16_384);
    // A pointer, a length, a count, and whether it changed for each shard.
    let empty = 21 * u64::try_from(map.shard_count()).unwrap();
    assert_eq!((map.resident_bytes(), map.shard_count()), (empty, 7_451));
    map.set(488_281_249, Mapped::Nowhere);
    assert_eq!(map.decode(1_000_000, &vec![0xFF; 400_000]), Ok(()));
    assert_eq!(map.decode(0, &vec![0xFF; 4 << 16]), Ok(()));
    assert_eq!(map.resident_bytes(), empty);
    assert!((0..map.shard_count()).all(|shard| map.shard_is_empty(shard)));
    map.set(488_281_249, Mapped::Media(PhysicalAddress(7)));
    let cut = map.resident_bytes();
    assert_eq!(cut - empty, 4 * (488_281_250 % (1 << 16)), "the last shard ends with the map");
    let mut whole = map.clone();
    whole.set(1_000_000, Mapped::Media(PhysicalAddress(8)));
    assert_eq!(whole.resident_bytes() - cut, 4 << 16);
    let last = map.shard_count() - 1;
    assert_eq!((map.shard_is_empty(last), map.shard_is_empty(0), map.count_mapped()), (false, true, 1));
    assert_eq!(map.shard_sectors(last), (u64::try_from(last).unwrap() << 16)..488_281_250);
    map.set(488_281_249, Mapped::Nowhere);
    assert!(map.shard_is_empty(last));
}

#[test]
fn entries_that_are_not_the_instances_are_refused_and_change_nothing() {
    let map_with = |lba, place| {
        let mut map = L2p::new(10, 100, 5);
        map.set(lba, Mapped::Media(PhysicalAddress(place)));
        map
    };
    let entries = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let cases: [(u64, Vec<u8>, L2pError, &str); 5] = [
        (0, vec![1, 2, 3], L2pError::Torn { bytes: 3, entry_bytes: 4 }, "3 bytes were found"),
        (8, entries(&[1, 2, 3]), L2pError::TooMany { end: 11, sectors: 10 }, "has 10: open it"),
        (u64::MAX, entries(&[1, 2]), L2pError::TooMany { end: u64::MAX, sectors: 10 }, "was created with"),
        (2, entries(&[1, 100, 3]), L2pError::Beyond { lba: 3, place: 100, places: 100 }, "is place 100, but"),
        // The number of a slot never comes from media.
        (
            2,
            entries(&[u32::MAX - 1]),
            L2pError::Beyond { lba: 2, place: u64::from(u32::MAX - 1), places: 100 },
            "sector 2 is place 4294967294",
        ),
    ];
    for (first, bytes, error, part) in cases {
        let mut map = map_with(2, 50);
        assert_eq!(map.decode(first, &bytes), Err(error));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(
            (map.get(2), map.get(3), map.count_mapped()),
            (Mapped::Media(PhysicalAddress(50)), Mapped::Nowhere, 1)
        );
        map.check();
    }
}

#[test]
fn a_sector_is_found_by_its_place() {
    for (seed, (mut map, places)) in (51..).zip(both_widths()) {
        assert_eq!((map.sectors(), map.slots()), (SECTORS, 100));
        let lbas = [0, 1, 70_000, SECTORS - 1];
        for (lba, place) in lbas.into_iter().zip([places - 1, 0, 1, 2]) {
            map.set(lba, Mapped::Media(PhysicalAddress(place)));
        }
        map.set(5, Mapped::Buffer(Slot(3)));
        let found = [places - 1, 0, 1, 2, 3].map(|place| map.find(PhysicalAddress(place)));
        assert_eq!(found, [Some(0), Some(1), Some(70_000), Some(SECTORS - 1), None], "width {seed}");
    }
}

#[test]
fn neighbours_move_between_the_ends_of_the_instance() {
    for (mut map, places) in both_widths() {
        let (lbas, last) = ([9, 70_000, 3], places - 3);
        for (lba, place) in lbas.into_iter().zip(0..) {
            map.set(lba, Mapped::Media(PhysicalAddress(place)));
        }
        assert_eq!(map.move_run(&lbas, PhysicalAddress(0), PhysicalAddress(last)), 3);
        assert_eq!(
            lbas.map(|lba| map.get(lba)),
            [0, 1, 2].map(|at| Mapped::Media(PhysicalAddress(last + at)))
        );
        assert_eq!(map.move_run(&lbas, PhysicalAddress(last), PhysicalAddress(0)), 3);
        assert_eq!(lbas.map(|lba| map.get(lba)), [0, 1, 2].map(|at| Mapped::Media(PhysicalAddress(at))));
    }
}

#[test]
fn a_pass_knows_the_highest_slot_from_the_highest_place() {
    // All numbers of 32 bits are taken: the place after the last would be a slot.
    let places = (1 << 32) - 101;
    let mut map = L2p::new(5, places, 100);
    let (slot, place) = (Mapped::Buffer(Slot(99)), PhysicalAddress(places - 1));
    map.set(1, slot);
    map.set(2, Mapped::Media(place));
    let mut met = Vec::new();
    map.for_each_media(|lba, place| met.push((lba, place)));
    assert_eq!((map.entry_bytes(), met), (4, vec![(2, place)]));
    map.retain_media(|_| false);
    assert_eq!([1, 2].map(|lba| map.get(lba)), [slot, Mapped::Nowhere]);
    map.check();
}

#[test]
fn a_buffered_sector_is_written_as_its_place_also_alone() {
    for (mut map, _) in both_widths() {
        map.set(40, Mapped::Buffer(Slot(4)));
        map.set(41, Mapped::Buffer(Slot(5)));
        let size = usize::try_from(map.entry_bytes()).unwrap();
        let mut bytes = vec![0; 2 * size];
        map.encode(40, &mut bytes[..size], resolve);
        map.encode(41, &mut bytes[size..], resolve);
        let mut back = L2p::new(SECTORS, map.places, 100);
        assert_eq!(back.decode(40, &bytes), Ok(()));
        // Odd slots have no place yet.
        assert_eq!([40, 41].map(|lba| back.get(lba)), [Mapped::Media(PhysicalAddress(44)), Mapped::Nowhere]);
    }
}

#[test]
fn entries_read_replace_what_is_there_in_shards_and_in_parts() {
    // None of these entries has a byte of ones, as nowhere has.
    let bytes: Vec<u8> = [3, 1, 4, 1, 5].iter().flat_map(|place: &u32| place.to_le_bytes()).collect();
    let media = [3, 1, 4, 1, 5].map(|place| Mapped::Media(PhysicalAddress(place)));
    for sectors in [5, 9, 70_000] {
        let mut map = L2p::new(sectors, 100, 0);
        for round in 0..2 {
            assert_eq!(map.decode(0, &bytes), Ok(()), "{sectors} sectors, round {round}");
            assert_eq!([0, 1, 2, 3, 4].map(|lba| map.get(lba)), media, "{sectors} sectors, round {round}");
            map.check();
        }
        assert_eq!(map.decode(0, &[0xFF; 20]), Ok(()));
        assert_eq!((map.count_mapped(), map.get(2)), (0, Mapped::Nowhere), "{sectors} sectors");
    }
}
