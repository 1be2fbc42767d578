//! Resets that the power ends half way: a line's tails name what was in it, and nothing of that can be read.

use super::basic::MIX;
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::Config;
use ocssd_ftl::Classification;
use ocssd_lightnvm::Geometry;
use ocssd_targets::pblk::Options;

/// A drive all of whose resets stay half done if the power goes during one.
fn drive() -> Config {
    let mut config = config(Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 24, 64, 4) });
    config.faults.half_reset = 1_000_000_000;
    config
}

/// All that was ever written is found by tails and tags, for no checkpoint is taken.
fn options() -> Options {
    Options {
        over_provisioning_percent: 50,
        classification: Some(Classification::UserGc),
        checkpoint_interval_bytes: Some(0),
        ..Options::default()
    }
}

/// Cuts the power again and again; how many blocks could not be read. Nothing that is needed is ever lost here. Users write so
/// few blocks that their lines are emptied and reset while the older line is open that garbage collection writes to.
fn blocks_lost(options: Options) -> usize {
    let mut world = World::new(drive(), options, "seed 0");
    world.media_fail = true;
    let (mut cuts, mut lost) = (0, 0);
    let mix = Mix { requests: 1500, discards: 0, reads: 0, flushes: 2, span: 400, ..MIX };
    world.run_with(&mix, &mut Prng::new(0), |world| {
        if world.commands % 5 == 0 && world.pblk().stats().lines_reset > 0 {
            cuts += 1;
            let mut branch = world.branch(&format!("seed 0, cut {}", world.commands));
            branch.cut(&mut Prng::new(world.commands));
            branch.mount();
            lost += branch.read_all(true).len();
        }
    });
    assert!(cuts > 500, "{cuts} power cuts");
    lost
}

#[test]
fn a_copy_in_an_older_line_is_read_beside_a_half_reset_one() {
    assert_eq!(blocks_lost(options()), 0);
}

/// The test before finds what it is for.
#[cfg(feature = "canaries")]
#[test]
fn a_mount_that_reads_no_twins_is_found() {
    let planted = "twins-unread".parse().expect("a canary");
    assert!(blocks_lost(Options { canary: Some(planted), ..options() }) > 0);
}
