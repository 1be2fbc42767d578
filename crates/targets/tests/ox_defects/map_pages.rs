//! A map in pages of which memory holds a few: the same device as with all of it in memory, also after power cuts, and errors
//! instead of zeroes where the media lost pages.

use crate::rig::{Rig, config};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault};
use ocssd_lightnvm::block::{BlockOp, BlockTarget};
use ocssd_lightnvm::{Geometry, Payload, Ppa, Status, Target, TargetId};
use std::collections::BTreeMap;

/// Four pages of 32 blocks in memory, checkpoints as often as they may be.
const IN_PAGES: [(&str, &str); 4] = [
    ("over_provisioning_percent", "60"),
    ("checkpoint_log_bytes", "131072"),
    ("map_page_bytes", "128"),
    ("map_cache_bytes", "512"),
];

/// A device of some thousand blocks, and what each must hold.
struct Modelled {
    rig: Rig,
    holds: Vec<u64>,
}

impl Modelled {
    fn new(config: Config, options: &[(&'static str, &'static str)], label: &str) -> Self {
        let rig = Rig::new(config, options, Nanos(0), label);
        let blocks = rig.host.target(TargetId(0)).block_count();
        let holds = vec![0; usize::try_from(blocks).expect("small")];
        assert!(blocks > 32 * 20, "{blocks} blocks are few pages");
        Self { rig, holds }
    }

    /// So many writes and discards of up to 48 blocks, anywhere.
    fn change(&mut self, changes: u64, prng: &mut Prng) {
        for _ in 0..changes {
            let count = 1 + u32::try_from(prng.below(48)).expect("small");
            let end = u64::try_from(self.holds.len()).expect("small") - u64::from(count);
            let block = u32::try_from(prng.below(end)).expect("small");
            let is_discard = prng.below(6) == 0;
            let content = if is_discard { 0 } else { 1 + prng.below(1 << 40) };
            let request = match is_discard {
                true => self.rig.request(BlockOp::Discard, block, count, None),
                false => self.rig.write_of(block, count, content),
            };
            let status = self.rig.ask(request).status;
            assert_eq!(status, Status::SUCCESS, "{}", self.rig.label);
            self.holds[Rig::blocks(block, count)].fill(content);
        }
    }

    /// Blocks that cannot be read; all others hold what they must.
    fn lost(&mut self) -> Vec<u32> {
        let mut lost = Vec::new();
        for (block, &holds) in (0..).zip(&self.holds) {
            match self.rig.read(block) {
                Ok(found) => assert_eq!(found, holds, "{}: block {block}", self.rig.label),
                Err(status) => {
                    assert_eq!(status, Status::UNRECOVERED_READ, "{}: block {block}", self.rig.label);
                    lost.push(block);
                }
            }
        }
        lost
    }

    /// The drive after a power cut, without what stood at these places.
    fn without(&self, places: &[Ppa], seed: u64) -> Self {
        let mut flash: Flash = self.rig.host.device().fork().expect("a drive in memory");
        for at in places {
            let (chunk, sector, kind) = (at.chunk, Some(at.sector), FaultKind::UnrecoveredRead);
            flash.schedule_fault(ScheduledFault { kind, chunk, sector, times: u32::MAX });
        }
        flash.power_cut(self.rig.now(), &mut Prng::new(seed)).expect("memory does not fail");
        let label = format!("{}, cut, {} places lost", self.rig.label, places.len());
        Self { rig: Rig::mount(flash, &IN_PAGES, self.rig.now(), &label), holds: self.holds.clone() }
    }

    /// The drive after a power cut that flipped a bit beside each of these sectors: until it is programmed again, none is sound.
    fn with_flipped(&self, places: &[Ppa], seed: u64) -> Self {
        let mut flash: Flash = self.rig.host.device().fork().expect("a drive in memory");
        for &at in places {
            assert!(flash.flip_bit(at, true, 5), "{at:?} holds nothing");
        }
        flash.power_cut(self.rig.now(), &mut Prng::new(seed)).expect("memory does not fail");
        let label = format!("{}, cut, {} sectors harmed", self.rig.label, places.len());
        Self { rig: Rig::mount(flash, &IN_PAGES, self.rig.now(), &label), holds: self.holds.clone() }
    }

    /// A place in each chunk that holds a block: a number, and zeroes behind it.
    fn one_block_of_each_chunk(&mut self) -> Vec<Ppa> {
        let is_block = |bytes: &[u8]| bytes[..8] != [0; 8] && bytes[8..].iter().all(|&byte| byte == 0);
        let all = self.rig.media().into_iter().filter(|(_, bytes)| is_block(bytes));
        let by_chunk: BTreeMap<_, Ppa> = all.map(|(at, _)| (at.chunk, at)).collect();
        by_chunk.into_values().collect()
    }

    /// Places that hold a page of the map: behind its entries there are ones.
    fn pages(&mut self) -> Vec<Ppa> {
        let is_page = |bytes: &[u8]| bytes[128..].iter().all(|&byte| byte == 0xFF);
        self.rig.media().into_iter().filter(|(_, bytes)| is_page(bytes)).map(|(at, _)| at).collect()
    }
}

#[test]
fn a_device_with_few_pages_in_memory_holds_what_was_written_also_after_cuts() {
    for seed in 0..4 {
        let (mut world, mut prng) =
            (Modelled::new(config(60), &IN_PAGES, &format!("seed {seed}")), Prng::new(seed));
        for round in 0..6 {
            world.change(120, &mut prng);
            if round % 2 == 0 {
                world = world.without(&[], seed + round);
            }
            assert_eq!(world.lost(), [], "seed {seed}, round {round}");
            world.rig.host.target(TargetId(0)).check();
        }
        let count = |name| world.rig.counter(name);
        assert!(count("map_written_sectors") > 50, "seed {seed}: hardly a page left memory");
        assert!(count("map_cache_misses") > 50 && count("map_cache_hits") > 50, "seed {seed}");
        assert!(count("map_pages_cached") <= 4, "seed {seed}: {} pages stay", count("map_pages_cached"));
    }
}

/// Slots are kept free so that pages are read ahead, but not where none is left to be read.
#[test]
fn a_cache_as_large_as_the_map_reads_and_writes_no_page_once_all_are_in() {
    let label = "seed 11, all pages fit";
    let pages = Modelled::new(config(60), &IN_PAGES, label).holds.len().div_ceil(32);
    assert!(pages / 8 > 1, "of {pages} pages an eighth is none or one");
    let bytes: &'static str = (pages * 128).to_string().leak();
    let options = [IN_PAGES[0], IN_PAGES[1], IN_PAGES[2], ("map_cache_bytes", bytes)];
    let (mut world, mut prng) = (Modelled::new(config(60), &options, label), Prng::new(11));
    world.change(600, &mut prng);
    assert_eq!(world.lost(), [], "{label}");
    let counts = |world: &mut Modelled| {
        ["map_cache_misses", "map_read_sectors", "map_written_sectors"].map(|name| world.rig.counter(name))
    };
    let before = counts(&mut world);
    world.change(600, &mut prng);
    assert_eq!(world.lost(), [], "{label}");
    assert_eq!(counts(&mut world), before, "{label}: misses, sectors read, sectors written");
    assert!(world.rig.counter("map_cache_hits") > 1000, "{label}: hardly a page is looked up");
    world.rig.host.target(TargetId(0)).check();
}

/// A chunk that is emptied gives more write units than its pages take elsewhere, however few a chunk has and however few pages
/// memory holds: else one after the other would be emptied for ever, or until no chunk is left to empty the next into.
#[test]
fn chunks_of_few_write_units_are_emptied_for_good() {
    for (ws_opt, chunk) in [(8, 16), (16, 32)] {
        for seed in 0..3 {
            let mut config = config(60);
            let geometry = Geometry::example(1, 2, 4800 / chunk, chunk, 4);
            config.geometry = Geometry { mw_cunits: 8, ws_opt, ..geometry };
            let label = format!("write units of {ws_opt}, chunks of {chunk}, seed {seed}");
            let (mut world, mut prng) = (Modelled::new(config, &IN_PAGES, &label), Prng::new(seed));
            for _ in 0..4 {
                world.change(150, &mut prng);
                world.rig.host.target(TargetId(0)).check();
            }
            assert_eq!(world.lost(), [], "{label}");
            // Six hundred changes, of two pages each or three.
            let written = world.rig.counter("map_written_sectors");
            assert!(written < 4 * 600, "{label}: {written} pages were written for 600 changes");
        }
    }
}

#[test]
fn what_was_never_written_is_known_and_what_lies_on_a_page_elsewhere_is_not() {
    let mut world = Modelled::new(config(60), &IN_PAGES, "known");
    let blocks = u64::try_from(world.holds.len()).expect("small");
    let known = |world: &Modelled, block| world.rig.host.target(TargetId(0)).is_mapped(block);
    assert!((0..blocks).all(|block| known(&world, block) == Some(false)), "nothing is written yet");
    world.change(200, &mut Prng::new(7));
    let mut unknown = 0;
    for (block, &holds) in (0..).zip(&world.holds) {
        match known(&world, block) {
            Some(is_mapped) => assert_eq!(is_mapped, holds != 0, "block {block} holds {holds:X}h"),
            None => unknown += 1,
        }
    }
    assert!(unknown > blocks / 2, "of four pages in memory {unknown} blocks of {blocks} are not known");
}

#[test]
fn a_lost_page_costs_its_blocks_and_they_can_be_written_again() {
    for seed in 0..4 {
        let drive = Config { payload: Payload::Bytes, ..config(60) };
        let (mut world, mut prng) =
            (Modelled::new(drive, &IN_PAGES, &format!("seed {seed}")), Prng::new(seed));
        world.change(400, &mut prng);
        let pages = world.pages();
        assert!(pages.len() > 10, "seed {seed}: {} pages on media", pages.len());
        let mut world = world.without(&pages, seed);
        let lost = world.lost();
        assert!(
            !lost.is_empty() && world.rig.counter("programmed_sectors") > 0,
            "seed {seed}: nothing was lost"
        );
        let again = world.without(&pages, seed + 1).lost();
        assert_eq!(again, lost, "seed {seed}: others are lost after another mount");
        for &block in &lost {
            let content = 7_000 + u64::from(block);
            let request = world.rig.write_of(block, 1, content);
            assert_eq!(world.rig.ask(request).status, Status::SUCCESS, "seed {seed}, block {block}");
            world.holds[usize::try_from(block).expect("small")] = content;
        }
        // The places stay bad, every one that ever held a page, and some of what is written later lies there.
        let still = world.lost();
        assert!(
            still.len() * 2 < lost.len(),
            "seed {seed}: {} of {} are lost still",
            still.len(),
            lost.len()
        );
        world.change(300, &mut prng);
        world.lost();
        world.rig.host.target(TargetId(0)).check();
    }
}

/// One block in each chunk is lost and its page lies elsewhere: chunks are emptied all the same, so that changes go on (seed 772 of
/// the simulator), and what was lost is an error and nothing else.
#[test]
fn chunks_with_lost_blocks_of_pages_elsewhere_are_emptied() {
    // As few chunks are spare as may be.
    let full = [("over_provisioning_percent", "1"), IN_PAGES[1], IN_PAGES[2], IN_PAGES[3]];
    for seed in 0..4 {
        let (mut world, mut prng) =
            (Modelled::new(config(60), &full, &format!("seed {seed}")), Prng::new(seed));
        world.change(400, &mut prng);
        let data = world.one_block_of_each_chunk();
        assert!(data.len() > 60, "seed {seed}: blocks in {} chunks", data.len());
        let mut world = world.with_flipped(&data, seed);
        let mut lost = world.lost();
        assert!(lost.len() > 30, "seed {seed}: {} blocks are lost", lost.len());
        for round in 0..4 {
            world.change(25, &mut prng);
            world.rig.host.target(TargetId(0)).check();
            let still = world.lost();
            assert!(still.iter().all(|block| lost.contains(block)), "seed {seed}, round {round}: {still:?}");
            lost = still;
        }
        assert!(world.rig.counter("gc_written_sectors") > 100, "seed {seed}: hardly a chunk was emptied");
        assert!(!lost.is_empty() && world.rig.counter("read_only") == 0, "seed {seed}: {lost:?}");
        assert_eq!(world.without(&[], seed).lost(), lost, "seed {seed}: others are lost after a mount");
    }
}

#[test]
fn an_instance_made_whole_goes_on_in_pages_and_keeps_their_size() {
    let whole = [("over_provisioning_percent", "80"), ("checkpoint_log_bytes", "131072")];
    let (mut world, mut prng) = (Modelled::new(config(120), &whole, "whole"), Prng::new(3));
    world.change(200, &mut prng);
    let mut world = world.without(&[], 1);
    assert_eq!(world.lost(), []);
    world.change(200, &mut prng);
    assert_eq!(world.lost(), []);
    assert!(world.rig.counter("map_pages_cached") <= 4);
    let flash = |world: &Modelled| world.rig.host.device().fork().expect("a drive in memory");
    // Without the option all pages may be in memory.
    let rig = Rig::mount(flash(&world), &whole, world.rig.now(), "without the option");
    let mut all = Modelled { rig, holds: world.holds.clone() };
    assert_eq!(all.lost(), []);
    assert_eq!(all.rig.counter("map_pages_cached"), all.rig.counter("map_pages"));
    let other = [("map_page_bytes", "256"), ("map_cache_bytes", "4096")];
    let refused = Rig::try_mount(flash(&world), &other, world.rig.now(), "another size").map(drop);
    let sentence = refused.expect_err("pages have another size").to_string();
    assert!(sentence.contains("128 bytes, but map_page_bytes asks for 256"), "{sentence}");
}

#[test]
fn a_cache_or_a_page_that_cannot_be_is_refused_by_name() {
    for (options, says) in [
        (
            &[("map_cache_bytes", "511"), ("map_page_bytes", "128")][..],
            "map_cache_bytes should be at least 512",
        ),
        (&[("map_cache_bytes", "16383")], "map_cache_bytes should be at least 16384"),
        (
            &[("map_cache_bytes", "1048576"), ("map_page_bytes", "100")],
            "map_page_bytes should be a power of two",
        ),
        (&[("map_cache_bytes", "1048576"), ("map_page_bytes", "8192")], "from 128 to 4096"),
        (&[("map_page_bytes", "128")], "give map_cache_bytes too"),
    ] {
        let flash = Flash::format(config(60)).expect("a sound drive");
        let refused = Rig::try_mount(flash, options, Nanos(0), says).map(drop);
        let sentence = refused.expect_err(says).to_string();
        assert!(sentence.contains(says), "{sentence}");
    }
}
