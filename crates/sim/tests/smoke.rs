//! Tiny worlds end well, with many power cuts.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry::{self, Kind};

fn assert_ends_well(kind: &Kind, seed: u64) -> Tally {
    assert_ends_well_at(Size::Tiny, kind, seed)
}

fn assert_ends_well_at(size: Size, kind: &Kind, seed: u64) -> Tally {
    let done = run_seed(kind, size, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
    if let Ended::Failed(failure) = &done.ran.ended {
        panic!("seed {seed}: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
    }
    done.ran.tally
}

#[test]
fn tiny_worlds_keep_every_promise() {
    let kind = registry::find("pblk").expect("a kind");
    let mut tally = Tally::default();
    for seed in 0..30 {
        tally.merge(&assert_ends_well(kind, seed));
    }
    assert!(tally.of("cuts.in_flight") > 500, "{tally:?}");
    assert!(tally.of("cuts.in_mount") > 50, "{tally:?}");
}

/// Small instances that stood still or became read-only: lines that hold checkpoints were asked for twice.
#[test]
fn tight_instances_go_on() {
    let kind = registry::find("pblk").expect("a kind");
    for seed in [5370, 5401, 5603, 6694, 7498, 8004] {
        assert_ends_well(kind, seed);
    }
}

/// A line that was half reset when the power went was written on, in chunks a checkpoint knew the old content of.
#[test]
fn what_was_half_reset_is_not_written_on() {
    let kind = registry::find("pblk").expect("a kind");
    for seed in [3294, 7071] {
        assert_ends_well(kind, seed);
    }
}

/// Two lines from which a sector could not be read waited to be read again until the buffer was empty. Users had filled a buffer
/// unit in part, and were not let in to fill the rest before a line was free: changes ended with room for a third more.
#[test]
fn lines_are_read_again_beside_a_buffer_unit_that_nobody_fills() {
    assert_ends_well_at(Size::Any, registry::find("pblk").expect("a kind"), 1813);
}

/// Lines taken to be reset were missing among the free ones when everything was checked.
#[test]
fn a_check_finds_lines_that_wait_to_be_erased() {
    assert_ends_well(registry::find("pblk").expect("a kind"), 5340);
}

/// Of two versions of a block the older was the last to be programmed, in another stream and behind a checkpoint that had the
/// newer; and instances that stood still: discards waited for lines that waited for them, or their records filled the drive (467:
/// in one stream with what garbage collection moves), or a checkpoint was asked for again and again (601). 1198: a sector that was
/// lost at one mount was found by the tail of its chunk at the next. 2637: two reads of garbage collection went astray, and the
/// block was called lost. 3191: a line that lagged in wear waited for more free lines than there ever were. 3237: every line held
/// less garbage than the fill of a buffer unit may take, and users had no room. 8044, 8129 and 8651: all that a new instance had on
/// media was one head, and it was torn, died, or was written over. 9228: lines that were reported OFFLINE forgot how often they had
/// been reset. 10447: a checkpoint that told of a discard was lost, and the version before it had been harmed. 11418: pblk's
/// limiter left users no share of a small buffer, beside free chunks and with nothing to collect.
#[test]
fn odd_worlds_that_broke_a_promise_keep_it() {
    let kind = registry::find("pblk").expect("a kind");
    for seed in [
        467, 601, 756, 807, 1198, 1842, 2637, 3191, 3237, 4397, 5611, 6041, 7096, 7259, 8044, 8129, 8651,
        9228, 10_447, 11_418, 11_489, 11_773, 21_877,
    ] {
        assert_ends_well_at(Size::Any, kind, seed);
    }
}

/// A write that went astray took the place of another block; garbage collection moved it there with its old tag, and behind a
/// checkpoint the copy counted as newer than what the checkpoint named.
#[test]
fn a_write_astray_is_not_moved_as_the_newest_version_of_its_block() {
    let kind = registry::find("block_ssd").expect("a kind");
    assert_ends_well_at(Size::Any, kind, 1);
}

/// A version that a write astray had harmed was behind a flushed one, and forgotten; then what tells of the flushed one was lost,
/// too.
#[test]
fn a_harmed_version_that_is_found_again_is_excused() {
    let kind = registry::find("block_ssd").expect("a kind");
    assert_ends_well_at(Size::Any, kind, 154);
}

/// Every line had a failed write, and was emptied for it into the next.
#[test]
fn a_target_as_linux_makes_it_has_lines_without_failed_writes() {
    let kind = registry::find("linux-pblk").expect("a kind");
    assert_ends_well_at(Size::Any, kind, 199);
}

/// Checkpoints that one power cut after the other left incomplete kept a line each until the next was complete, and users' writes
/// found none.
#[test]
fn power_cuts_under_checkpoints_do_not_use_up_the_lines() {
    assert_ends_well(registry::find("block_ssd").expect("a kind"), 13_568);
}
