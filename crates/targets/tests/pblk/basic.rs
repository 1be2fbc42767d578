//! Reading back what was written, however it was written, until the drive is full and far beyond.

use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::{Mode, Options};

pub fn geometry() -> Geometry {
    Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 24, 64, 4) }
}

pub fn options(mode: Mode) -> Options {
    Options { mode, over_provisioning_percent: 45, ..Options::default() }
}

pub const MIX: Mix =
    Mix { requests: 2000, depth: 6, span: u64::MAX, longest: 12, reads: 30, flushes: 4, discards: 6, fua: 5 };

#[test]
fn what_was_written_is_read_in_both_modes() {
    for mode in [Mode::Improved, Mode::Faithful] {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        for block in 0..20 {
            world.send(BlockOp::Write { fua: false }, block * 3, 3);
            assert!(world.drain());
        }
        world.check();
        world.read_all(false);
        assert!(world.send(BlockOp::Flush, 0, 0));
        assert!(world.drain());
        world.read_all(false);
        world.check();
        assert!(world.failures.is_empty());
    }
}

#[test]
fn a_full_drive_is_overwritten_many_times_and_stays_right() {
    for (mode, seed) in [(Mode::Improved, 1), (Mode::Improved, 2), (Mode::Faithful, 3), (Mode::Faithful, 4)] {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}, seed {seed}"));
        let mut prng = Prng::new(seed);
        for _ in 0..6 {
            assert!(world.run(&MIX, &mut prng));
            world.check();
        }
        world.read_all(false);
        assert!(world.failures.is_empty(), "{:?}", world.failures);
        let stats = world.pblk().stats();
        assert!(stats.victims > 10, "garbage was collected: {stats:?}");
        assert!(stats.user_written > 2 * world.blocks(), "seed {seed}");
    }
}
