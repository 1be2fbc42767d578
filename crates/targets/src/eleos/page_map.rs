//! Where pages lie: from their names to their parts, in 8 bytes a page where names are neighbours.
//!
//! A page of one part, as most are, is one number; of one with more the parts are in a list of their own. Deliberately not here:
//! numbers by names (`leaves`), what of it is durable, whose each chunk is (`live`).

use super::extent::{Extent, PART_BYTES_MAX, SPOT_MAX, Spot, grains};
use super::leaves::{Leaves, NOTHING};
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::log_structured::PageId;

/// The parts of a page.
#[derive(Clone, Copy, Debug)]
enum Parts<'a> {
    None,
    One(Extent),
    Many(&'a [Extent]),
}

/// The map.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    numbers: Leaves,
    /// Parts of pages that have more than one.
    many: Vec<Vec<Extent>>,
    /// Free places of that list.
    spare: Vec<u32>,
    pages: u64,
    bytes: u64,
}

fn pack(extent: Extent) -> u64 {
    assert!((1..=PART_BYTES_MAX).contains(&extent.bytes), "{extent:?} is no part");
    assert!(extent.spot.0 < SPOT_MAX, "{extent:?} is beyond any instance");
    extent.spot.0 << 24 | u64::from(extent.bytes)
}

fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(PART_BYTES_MAX)).expect("24 bits")
}

impl PageMap {
    fn number(&self, page: PageId) -> u64 {
        self.numbers.get(page.0)
    }

    fn set_number(&mut self, page: PageId, number: u64) {
        self.numbers.set(page.0, number);
    }

    fn parts_of(&self, number: u64) -> Parts<'_> {
        if number == NOTHING {
            return Parts::None;
        }
        let spot = number >> 24;
        match low(number) {
            0 => Parts::Many(&self.many[usize::try_from(spot).expect("an index")]),
            bytes => Parts::One(Extent { spot: Spot(spot), bytes }),
        }
    }

    /// The parts of a page, in order; none of one that is not there. Cost: two cache misses for a page of one part.
    pub fn parts(&self, page: PageId) -> impl Iterator<Item = Extent> + Clone + '_ {
        self.parts_at(self.number(page))
    }

    fn parts_at(&self, number: u64) -> impl Iterator<Item = Extent> + Clone + '_ {
        let (one, many) = match self.parts_of(number) {
            Parts::None => (None, &[][..]),
            Parts::One(extent) => (Some(extent), &[][..]),
            Parts::Many(parts) => (None, parts),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// The bytes of a page, if it is there.
    pub fn bytes(&self, page: PageId) -> Option<u32> {
        let number = self.number(page);
        (number != NOTHING).then(|| self.parts_at(number).map(|part| part.bytes).sum())
    }

    /// A page is not there any more; `old` is told each of its parts.
    pub fn remove(&mut self, page: PageId, old: &mut dyn FnMut(Extent)) {
        let number = self.number(page);
        if number == NOTHING {
            return;
        }
        assert!(self.pages > 0, "page {} is removed from no pages", page.0);
        self.forget_parts(number, old);
        self.pages -= 1;
        self.set_number(page, NOTHING);
    }

    /// The parts that a number stands for are not needed any more; `old` is told each.
    fn forget_parts(&mut self, number: u64, old: &mut dyn FnMut(Extent)) {
        let mut bytes = 0;
        for part in self.parts_at(number) {
            bytes += u64::from(part.bytes);
            old(part);
        }
        assert!(bytes > 0 && bytes <= self.bytes, "a page of {bytes} bytes, of {} in all", self.bytes);
        self.bytes -= bytes;
        self.give_up_list(number);
    }

    /// A page begins anew with this part; `old` is told each of those it had.
    pub fn begin(&mut self, page: PageId, part: Extent, old: &mut dyn FnMut(Extent)) {
        let number = self.number(page);
        if number == NOTHING {
            self.pages += 1;
        } else {
            self.forget_parts(number, old);
        }
        self.bytes += u64::from(part.bytes);
        assert!(self.bytes >= u64::from(part.bytes), "bytes of pages wrap");
        self.set_number(page, pack(part));
    }

    /// A page goes on with this part. False if there is no such page.
    pub fn append(&mut self, page: PageId, part: Extent) -> bool {
        let number = self.number(page);
        if number == NOTHING {
            return false;
        }
        let mut parts: Vec<Extent> = self.parts(page).collect();
        assert!(parts.iter().all(|&other| other != part), "page {} has {part:?} twice", page.0);
        parts.push(part);
        self.bytes += u64::from(part.bytes);
        self.set_parts(page, number, parts);
        true
    }

    fn give_up_list(&mut self, number: u64) {
        if low(number) == 0 {
            let at = number >> 24;
            self.many[usize::try_from(at).expect("an index")] = Vec::new();
            self.spare.push(u32::try_from(at).expect("fewer lists than 2^32"));
        }
    }

    fn set_parts(&mut self, page: PageId, before: u64, parts: Vec<Extent>) {
        self.give_up_list(before);
        if let [one] = parts[..] {
            return self.set_number(page, pack(one));
        }
        assert!(!parts.is_empty(), "page {} has no part", page.0);
        let at = self.spare.pop().unwrap_or_else(|| {
            self.many.push(Vec::new());
            u32::try_from(self.many.len() - 1).expect("fewer lists than 2^32")
        });
        self.many[usize_of(at)] = parts;
        self.set_number(page, u64::from(at) << 24);
    }

    /// What lay at an extent lies at a spot, if the page still has it: whether it has.
    pub fn relocate(&mut self, page: PageId, from: Extent, to: Spot) -> bool {
        let number = self.number(page);
        let has = |part: &Extent| part.spot <= from.spot && from.end() <= part.end() && reaches(part, from);
        let Some(at) = self.parts(page).position(|part| has(&part)) else { return false };
        let mut parts: Vec<Extent> = Vec::new();
        for (nth, part) in self.parts(page).enumerate() {
            if nth != at {
                parts.push(part);
                continue;
            }
            let before = grain_bytes(from.spot.0 - part.spot.0);
            let behind = part.bytes - before - from.bytes;
            let pieces = [(part.spot, before), (to, from.bytes), (from.end(), behind)];
            parts.extend(
                pieces.iter().filter(|piece| piece.1 > 0).map(|&(spot, bytes)| Extent { spot, bytes }),
            );
        }
        let bytes = |parts: &[Extent]| parts.iter().map(|part| part.bytes).sum::<u32>();
        assert_eq!(Some(bytes(&parts)), self.bytes(page), "page {} changes its length by a move", page.0);
        assert!(parts.len() <= 2 + self.parts(page).count(), "a move cuts page {} more than twice", page.0);
        self.set_parts(page, number, parts);
        true
    }

    /// Tells of every page and its parts, in the order of names.
    pub fn for_each(&self, mut each: impl FnMut(PageId, &[Extent])) {
        self.numbers.for_each(|page, number| match self.parts_of(number) {
            Parts::None => unreachable!("page {page} is listed, and is not there"),
            Parts::One(extent) => each(PageId(page), &[extent]),
            Parts::Many(parts) => each(PageId(page), parts),
        });
    }

    /// Pages there are.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes of all of them.
    pub const fn live_bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> u64 {
        let lists: usize = self.many.iter().map(|parts| parts.capacity() * size_of::<Extent>()).sum();
        let lists = lists + self.many.capacity() * size_of::<Vec<Extent>>();
        u64::try_from(self.numbers.memory_bytes() + lists).expect("an index")
    }

    /// Asserts that counts agree. Cost: all pages.
    pub fn check(&self) {
        let (mut pages, mut bytes) = (0, 0);
        self.for_each(|page, parts| {
            assert!(!parts.is_empty(), "page {} has no part", page.0);
            pages += 1;
            bytes += parts.iter().map(|part| u64::from(part.bytes)).sum::<u64>();
        });
        assert_eq!((pages, bytes), (self.pages, self.bytes), "pages and their bytes are counted wrong");
    }
}

/// True if a part has all bytes of an extent that lies within its grains: only its last grain may be filled in part.
fn reaches(part: &Extent, from: Extent) -> bool {
    grain_bytes(from.spot.0 - part.spot.0) + from.bytes <= part.bytes
}

fn grain_bytes(count: u64) -> u32 {
    u32::try_from(count).expect("grains of a part") * super::extent::GRAIN_BYTES
}

const _: () = assert!(grains(PART_BYTES_MAX) as u64 * 64 > PART_BYTES_MAX as u64, "a part fits its grains");

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    fn extent(spot: u64, bytes: u32) -> Extent {
        Extent { spot: Spot(spot), bytes }
    }

    fn draw(prng: &mut Prng) -> Extent {
        extent(prng.below(1 << 30), u32::try_from(1 + prng.below(5_000)).expect("small"))
    }

    /// Random changes against a plain tree of lists.
    #[test]
    fn the_map_is_as_a_tree_of_lists() {
        for seed in 0..40 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let (mut map, mut model) = (PageMap::default(), BTreeMap::<PageId, Vec<Extent>>::new());
            let spread = if seed % 2 == 0 { 400 } else { u64::MAX };
            let names: Vec<PageId> = (0..300).map(|_| PageId(prng.below(spread))).collect();
            for _ in 0..2_000 {
                let page = names[usize::try_from(prng.below(300)).expect("small")];
                let (part, mut old) = (draw(&mut prng), Vec::new());
                match prng.below(5) {
                    0 => {
                        map.remove(page, &mut |part| old.push(part));
                        assert_eq!(old, model.remove(&page).unwrap_or_default());
                    }
                    1 => {
                        let is_there = map.append(page, part);
                        assert_eq!(is_there, model.contains_key(&page));
                        model.entry(page).and_modify(|parts| parts.push(part));
                    }
                    _ => {
                        map.begin(page, part, &mut |part| old.push(part));
                        assert_eq!(old, model.insert(page, vec![part]).unwrap_or_default());
                    }
                }
                assert!(map.parts(page).eq(model.get(&page).into_iter().flatten().copied()));
            }
            map.check();
            let mut all = BTreeMap::new();
            map.for_each(|page, parts| drop(all.insert(page, parts.to_vec())));
            assert_eq!(all, model);
        }
    }

    #[test]
    fn a_part_moves_as_a_whole_or_in_pieces_and_only_if_it_is_still_there() {
        let (mut map, page) = (PageMap::default(), PageId(7));
        map.begin(page, extent(100, 1_000), &mut |_| {});
        assert!(!map.relocate(page, extent(101, 1_000), Spot(500)), "it ends before that");
        assert!(map.relocate(page, extent(102, 128), Spot(500)));
        assert_eq!(
            map.parts(page).collect::<Vec<_>>(),
            [extent(100, 128), extent(500, 128), extent(104, 744)]
        );
        assert!(!map.relocate(page, extent(102, 128), Spot(700)), "it was moved");
        assert!(map.relocate(page, extent(104, 744), Spot(900)));
        assert_eq!(map.bytes(page), Some(1_000));
        map.begin(page, extent(50, 10), &mut |_| {});
        assert!(!map.relocate(page, extent(900, 744), Spot(1_000)), "it was written anew");
        map.check();
    }

    #[test]
    fn lists_of_parts_take_what_they_hold_and_are_used_again() {
        let (mut map, page) = (PageMap::default(), PageId(7));
        map.begin(page, extent(100, 64), &mut |_| {});
        let plain = map.memory_bytes();
        for round in 0..1_000 {
            map.begin(page, extent(100 + round, 64), &mut |_| {});
            assert!(map.append(page, extent(5_000 + round, 64)));
            let list = map.memory_bytes() - plain;
            assert!((32..1_000).contains(&list), "round {round}: {list} bytes of a list of two parts");
        }
        map.check();
    }

    #[test]
    fn a_page_of_a_dense_table_takes_less_than_ten_bytes() {
        let mut map = PageMap::default();
        for page in 0..100_000 {
            map.begin(PageId(page), extent(page, 4_096), &mut |_| {});
        }
        let each = map.memory_bytes() / map.pages();
        assert!(each < 10, "{each} bytes a page");
        assert_eq!(map.live_bytes(), 100_000 * 4_096);
    }
}
