//! Canaries: bugs that can be planted in targets are found within 200 seeds, and without one there is nothing to find.
//!
//! What each does is told at the `Canary` of each target, how soon it is found in `docs/simulate.md`. `cargo test -p
//! ocssd-sim --test canaries -- --nocapture` tells both again.

use ocssd_sim::campaign::{Campaign, Outcome, Stopped, search};
use ocssd_sim::journal::Keep;
use ocssd_sim::part::PlanPart;
use ocssd_sim::plan::WorldPlan;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::shrink::{Short, shrink};
use ocssd_sim::swarm::Size;
use ocssd_targets::registry::{self, Kind, TargetOptions};
use ocssd_targets::{eleos, kv, kv_block, lightlsm, linux_pblk, ox_block, pblk, small_blocks, zns};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

/// Seeds within which a bug must be found (chosen: what one command looks through in some seconds).
const SEEDS: Range<u64> = 0..200;

/// The same for what takes a failed write, a checkpoint and a power cut in a row, or a mount on a full disk (chosen: before
/// worlds were drawn for them, one was found after 11 000).
const SEEDS_OF_CHECKPOINTS: Range<u64> = 0..1500;

/// The same for what takes a half-done reset, a dead unit, a flush that the drive fails, or a write that goes astray in a certain
/// way: one of a hundred worlds has either.
const SEEDS_OF_HARM: Range<u64> = 0..800;

/// An option of a target, and its value.
type Held<'a> = &'a [(&'a str, &'a str)];

fn options(held: Held<'_>) -> TargetOptions {
    held.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn look(kind: &Kind, size: Size, held: Held<'_>, seeds: Range<u64>) -> Outcome {
    let (one, fixed) = (NonZeroUsize::MIN, options(held));
    let campaign = Campaign { kind, size, fixed: &fixed, seeds, jobs: one, time: None, failures: one };
    search(&campaign, &mut |_| {})
}

/// The last option plants the bug.
fn assert_found(target: &str, held: Held<'_>, size: Size, seeds: Range<u64>) {
    let kind = registry::find(target).expect("a kind");
    let (_, canary) = held.last().expect("a canary");
    let outcome = look(kind, size, held, seeds.clone());
    assert_eq!(outcome.stopped, Stopped::Failures, "{canary} was not found, {size:?}, seeds {seeds:?}");
    let found = &outcome.failures[0];
    write_row(target, canary, found.seed, outcome.cpu);
    println!(
        "{target} {canary}, {size:?}: seed {}, step {}, cpu {:?}: {}",
        found.seed, found.failure.step, outcome.cpu, found.failure.cause
    );
}

/// Where the table of what was measured is.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulate.md");

/// Puts the seeds needed and the processor time into a canary's row of the table, if the variable `OCSSD_WRITE_CANARIES` is set.
fn write_row(target: &str, canary: &str, seed: u64, cpu: Option<Duration>) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if std::env::var_os("OCSSD_WRITE_CANARIES").is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().expect("no test panics while it writes");
    let before = std::fs::read_to_string(TABLE).expect("the documentation is there");
    let of_pblk = |what: &str| !what.starts_with('`') && !what.starts_with("small blocks");
    let is_own = |cells: &[&str]| {
        let what = cells[2].trim();
        let is_of_target = match target {
            "pblk" => of_pblk(what) || what.starts_with("small blocks"),
            _ => what.starts_with(&format!("`{target}`")),
        };
        cells[1].trim() == format!("`{canary}`") && is_of_target
    };
    let seconds = cpu.map_or(0.0, |cpu| cpu.as_secs_f64());
    let needed = if seconds < 0.1 { format!("{seconds:.2}") } else { format!("{seconds:.1}") };
    let line = |line: &str| {
        let mut cells: Vec<&str> = line.split('|').collect();
        let measured = format!(" {} ({needed} s) ", seed + 1);
        if cells.len() == 7 && is_own(&cells) {
            cells[4] = &measured;
        }
        cells.join("|") + "\n"
    };
    let after: String = before.lines().map(line).collect();
    assert!(
        after.contains(&format!("| {} ({needed} s) |", seed + 1)),
        "{target} {canary} has no row in {TABLE}"
    );
    std::fs::write(TABLE, after).expect("the documentation can be written");
}

/// A test for each, and the list of all.
macro_rules! canaries {
    ($list:ident: $target:literal, $option:literal, $others:expr, $seeds:expr; $($test:ident: $name:literal, $size:ident;)*) => {
        const $list: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                let mut held: Vec<(&str, &str)> = $others.to_vec();
                held.push(($option, $name));
                assert_found($target, &held, Size::$size, $seeds);
            }
        )*
    };
}

/// Nothing but the bug is held.
const NONE: Held<'_> = &[];

canaries! {
    TESTED: "pblk", "canary", NONE, SEEDS;
    flush_too_early_is_found: "flush-too-early", Tiny;
    fua_ignored_is_found: "fua-ignored", Tiny;
    flushed_becomes_fill_is_found: "flushed-becomes-padding", Tiny;
    read_unchecked_is_found: "read-unchecked", Any;
    reset_without_barrier_is_found: "reset-without-barrier", Tiny;
    reset_before_discard_is_found: "reset-before-discard", Tiny;
    reset_under_reads_is_found: "reset-under-reads", Any;
    overwritten_too_early_is_found: "overwritten-too-early", Tiny;
    moved_too_early_is_found: "moved-too-early", Tiny;
    moves_stale_is_found: "moves-stale", Tiny;
    window_ignored_is_found: "window-ignored", Any;
    failed_write_commits_is_found: "failed-write-commits", Any;
    discard_unrecorded_is_found: "discard-unrecorded", Tiny;
    discard_not_replayed_is_found: "discard-not-replayed", Tiny;
    oldest_wins_is_found: "oldest-wins", Tiny;
    stale_generation_is_found: "stale-generation", Tiny;
    window_forgotten_is_found: "window-forgotten", Tiny;
    report_believed_is_found: "report-believed", Tiny;
    low_report_believed_is_found: "low-report-believed", Tiny;
    wear_ignored_is_found: "wear-ignored", Any;
    checkpoint_unchecked_is_found: "checkpoint-unchecked", Any;
    shard_misplaced_is_found: "shard-misplaced", Tiny;
    changed_shard_kept_is_found: "changed-shard-kept", Tiny;
    discards_overflow_is_found: "discards-overflow", Tiny;
    checkpoint_tears_discard_is_found: "checkpoint-tears-discard", Tiny;
    commands_overrun_is_found: "commands-overrun", Tiny;
    read_only_at_failed_write_is_found: "read-only-at-failed-write", Any;
    loss_spreads_is_found: "loss-spreads", Any;
    lost_becomes_zeroes_is_found: "lost-becomes-zeroes", Any;
    space_not_given_back_is_found: "space-not-given-back", Tiny;
    flush_answers_all_is_found: "flush-answers-all", Tiny;
    size_by_options_is_found: "size-by-options", Tiny;
    never_settles_is_found: "never-settles", Tiny;
    gc_not_due_is_found: "gc-not-due", Tiny;
    run_cut_short_is_found: "run-cut-short", Tiny;
    place_left_valid_is_found: "place-left-valid", Tiny;
    failed_command_is_of_chunk_is_found: "failed-command-is-of-chunk", Any;
    failed_read_is_loss_is_found: "failed-read-is-loss", Any;
}

canaries! {
    TESTED_OF_CHECKPOINTS: "pblk", "canary", NONE, SEEDS_OF_CHECKPOINTS;
    superseded_behind_checkpoint_is_found: "superseded-behind-checkpoint", Any;
    checkpoint_ahead_of_discard_is_found: "checkpoint-ahead-of-discard", Tiny;
    drive_error_is_early_close_is_found: "drive-error-is-early-close", Tiny;
    padding_unchecked_is_found: "padding-unchecked", Tiny;
    hidden_report_believed_is_found: "hidden-report-believed", Tiny;
}

canaries! {
    TESTED_OF_HARM: "pblk", "canary", NONE, SEEDS_OF_HARM;
    barrier_unchecked_is_found: "barrier-unchecked", Any;
    blank_is_zeroes_is_found: "blank-is-zeroes", Any;
    gone_is_unwritten_is_found: "gone-is-unwritten", Any;
}

canaries! {
    TESTED_OF_LINUX: "linux-pblk", "canary", NONE, SEEDS;
    linux_line_without_barrier_is_found: "line-without-barrier", Tiny;
    linux_end_too_early_is_found: "end-too-early", Tiny;
    linux_open_line_ignored_is_found: "open-line-ignored", Tiny;
    linux_oldest_wins_is_found: "oldest-wins", Tiny;
    linux_reset_without_barrier_is_found: "reset-without-barrier", Tiny;
}

canaries! {
    TESTED_OF_LINUX_HARM: "linux-pblk", "canary", NONE, SEEDS_OF_HARM;
    linux_failure_forgotten_is_found: "failure-forgotten", Any;
}

canaries! {
    TESTED_OF_OX: "ox-block", "canary", NONE, SEEDS;
    ox_answered_before_commit_is_found: "answered-before-commit", Tiny;
    ox_commit_by_part_is_found: "commit-by-part", Tiny;
    ox_moves_stale_is_found: "moves-stale", Tiny;
    ox_transaction_by_part_is_found: "transaction-by-part", Tiny;
    ox_truncated_too_early_is_found: "truncated-too-early", Tiny;
    ox_window_forgotten_is_found: "window-forgotten", Tiny;
    ox_window_ignored_is_found: "window-ignored", Tiny;
}

canaries! {
    TESTED_OF_OX_GIVING_WAY: "ox-block", "canary", NONE, SEEDS_OF_HARM;
    ox_gives_way_in_part_is_found: "gives-way-in-part", Any;
    ox_loss_unnoticed_is_found: "loss-unnoticed", Any;
}

canaries! {
    TESTED_OF_OX_PAIRS: "ox-block", "canary", NONE, SEEDS_OF_CHECKPOINTS;
    ox_copies_at_risk_is_found: "copies-at-risk", Tiny;
}

/// Hardly any of the map is in memory.
const MAP_IN_PAGES: Held<'_> = &[("map_page_bytes", "128"), ("map_cache_bytes", "512")];

canaries! {
    TESTED_OF_OX_PAGES: "ox-block", "canary", MAP_IN_PAGES, SEEDS;
    ox_page_left_out_is_found: "page-left-out", Tiny;
    ox_page_freed_early_is_found: "page-freed-early", Tiny;
    ox_lost_page_as_zeroes_is_found: "lost-page-as-zeroes", Any;
}

canaries! {
    TESTED_OF_VOLATILE_OX: "ox-block", "canary", [("durability", "flush")], SEEDS_OF_CHECKPOINTS;
    ox_reset_before_durable_is_found: "reset-before-durable", Tiny;
}

canaries! {
    TESTED_OF_LIGHTLSM: "lightlsm", "canary", NONE, SEEDS;
    lightlsm_published_before_programmed_is_found: "published-before-programmed", Tiny;
    lightlsm_answered_before_durable_is_found: "answered-before-durable", Tiny;
    lightlsm_edit_by_row_is_found: "edit-by-row", Tiny;
    lightlsm_tail_forgotten_is_found: "tail-forgotten", Tiny;
    lightlsm_reset_before_durable_is_found: "reset-before-durable", Tiny;
    lightlsm_attributes_forgotten_is_found: "attributes-forgotten", Tiny;
    lightlsm_sync_unlogged_is_found: "sync-unlogged", Tiny;
    lightlsm_truncated_too_early_is_found: "truncated-too-early", Tiny;
    lightlsm_window_forgotten_is_found: "window-forgotten", Tiny;
    lightlsm_log_not_replayed_is_found: "log-not-replayed", Tiny;
    lightlsm_copied_when_readable_is_found: "copied-when-readable", Tiny;
}

canaries! {
    TESTED_OF_ELEOS: "eleos", "canary", NONE, SEEDS;
    eleos_answered_before_commit_is_found: "answered-before-commit", Tiny;
    eleos_commit_by_part_is_found: "commit-by-part", Tiny;
    eleos_moves_stale_is_found: "moves-stale", Tiny;
    eleos_truncated_too_early_is_found: "truncated-too-early", Tiny;
    eleos_window_forgotten_is_found: "window-forgotten", Tiny;
    eleos_window_ignored_is_found: "window-ignored", Tiny;
}

canaries! {
    TESTED_OF_KV: "kv", "canary", NONE, SEEDS;
    kv_answered_before_durable_is_found: "answered-before-durable", Tiny;
    kv_flush_forgets_long_is_found: "flush-forgets-long", Tiny;
    kv_batch_torn_is_found: "batch-torn", Tiny;
    kv_long_without_pieces_is_found: "long-without-pieces", Tiny;
    kv_reset_before_durable_is_found: "reset-before-durable", Tiny;
    kv_replay_by_unit_is_found: "replay-by-unit", Tiny;
    kv_deletes_forgotten_is_found: "deletes-forgotten", Tiny;
    kv_checkpoint_too_late_is_found: "checkpoint-too-late", Tiny;
    kv_window_forgotten_is_found: "window-forgotten", Tiny;
    kv_stale_copies_is_found: "stale-copies", Tiny;
    kv_stage_forgotten_is_found: "stage-forgotten", Tiny;
    kv_reads_pass_own_key_is_found: "reads-pass-own-key", Tiny;
    kv_replayed_is_covered_is_found: "replayed-is-covered", Tiny;
}

canaries! {
    TESTED_OF_KV_BUFFER: "kv", "canary", [("batch_entries_max", "1"), ("write_buffer_units", "1")], SEEDS;
    kv_one_window_held_is_found: "one-window-held", Any;
}

canaries! {
    TESTED_OF_KV_PAGES: "kv", "canary", [("index_cache_bytes", "0"), ("index_page_bytes", "266")], SEEDS;
    kv_page_freed_early_is_found: "page-freed-early", Tiny;
    kv_checkpoint_before_pages_is_found: "checkpoint-before-pages", Tiny;
}

canaries! {
    TESTED_OF_KV_WEAR: "kv", "canary", [("wear_spread", "1"), ("index_cache_bytes", "0")], SEEDS;
    kv_levels_from_second_unit_is_found: "levels-from-second-unit", Tiny;
}

canaries! {
    TESTED_OF_KV_SPREAD: "kv", "canary", [("wear_spread", "1")], SEEDS;
    kv_wear_ignored_is_found: "wear-ignored", Any;
}

canaries! {
    TESTED_OF_KV_BLOCK: "kv-block", "block_canary", NONE, SEEDS;
    kv_block_fua_forgotten_is_found: "fua-forgotten", Tiny;
    kv_block_tail_forgotten_is_found: "tail-forgotten", Tiny;
    kv_block_discard_too_long_is_found: "discard-too-long", Tiny;
}

canaries! {
    TESTED_OF_TABLES_ON_BLOCKS: "table-block", "canary", NONE, SEEDS;
    content_guessed_is_found: "content-guessed", Tiny;
}

canaries! {
    TESTED_OF_TABLE_BLOCK: "table-block", "block_canary", NONE, SEEDS;
    table_block_fua_forgotten_is_found: "fua-forgotten", Tiny;
    table_block_discard_too_long_is_found: "discard-too-long", Tiny;
}

canaries! {
    TESTED_OF_ZNS: "zns", "canary", NONE, SEEDS;
    zns_flush_forgets_tail_is_found: "flush-forgets-tail", Tiny;
    zns_flush_forgets_log_is_found: "flush-forgets-log", Tiny;
    zns_reset_not_logged_is_found: "reset-not-logged", Tiny;
    zns_reset_before_durable_is_found: "reset-before-durable", Tiny;
    zns_finish_not_logged_is_found: "finish-not-logged", Tiny;
    zns_stale_tail_is_found: "stale-tail", Tiny;
    zns_window_forgotten_is_found: "window-forgotten", Tiny;
    zns_longest_column_is_found: "longest-column", Tiny;
    zns_truncated_too_early_is_found: "truncated-too-early", Tiny;
    zns_reset_all_skips_full_is_found: "reset-all-skips-full", Tiny;
    zns_extension_not_logged_is_found: "extension-not-logged", Tiny;
    zns_extension_not_in_checkpoint_is_found: "extension-not-in-checkpoint", Tiny;
    zns_hole_spreads_is_found: "hole-spreads", Tiny;
    zns_commit_too_early_is_found: "commit-too-early", Tiny;
    zns_tail_covers_overwrite_is_found: "tail-covers-overwrite", Tiny;
    zns_oldest_of_area_is_found: "oldest-of-area", Tiny;
    zns_area_kept_is_found: "area-kept", Tiny;
    zns_metadata_elsewhere_is_found: "metadata-elsewhere", Tiny;
}

/// Much waits for the one unit that is written at a time, and a checkpoint is always near: its header can pass what it names. Where
/// nothing is held three tiny worlds of 0..6000 show that, and another timing of mounts hides the first of them.
const ONE_UNIT: Held<'_> =
    &[("active_units", "1"), ("checkpoint_interval_bytes", "32768"), ("write_buffer_bytes", "524288")];

canaries! {
    TESTED_OF_ONE_UNIT: "pblk", "canary", ONE_UNIT, SEEDS;
    checkpoint_unordered_is_found: "checkpoint-unordered", Tiny;
}

/// Small zones, of which more are described.
const SMALL_ZONES: Held<'_> = &[("width", "1"), ("zone_chunks", "1")];

canaries! {
    TESTED_OF_EXTENSIONS: "zns", "canary", SMALL_ZONES, SEEDS;
    zns_tail_before_extension_is_found: "tail-before-extension", Tiny;
}

/// Chunks that lag by two resets are moved.
const LEVELLED: Held<'_> = &[("wear_spread", "1")];

canaries! {
    TESTED_OF_WEAR: "zns", "canary", LEVELLED, SEEDS;
    zns_moved_before_logged_is_found: "moved-before-logged", Tiny;
    zns_wear_ignored_is_found: "wear-ignored", Any;
    zns_wear_looks_at_half_is_found: "wear-looks-at-half", Any;
}

canaries! {
    TESTED_OF_SMALL_BLOCKS: "pblk", "small_blocks_canary", [("block_bytes", "512")], SEEDS;
    merge_loses_neighbour_is_found: "merge-loses-neighbour", Tiny;
    order_ignored_is_found: "order-ignored", Tiny;
}

#[test]
fn every_canary_is_looked_for() {
    let all = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
    let pblk: BTreeSet<&str> = pblk::Canary::ALL.iter().map(|&(_, name)| name).collect();
    // It takes a user's line younger than that of its copies, and its reset half done at a power cut: no world in 3 000 has that,
    // and pblk's own test `twins` makes it.
    let of_pblk = [TESTED, TESTED_OF_CHECKPOINTS, TESTED_OF_HARM, TESTED_OF_ONE_UNIT, &["twins-unread"]];
    assert_eq!(pblk, all(&of_pblk.concat()));
    let linux: BTreeSet<&str> = linux_pblk::Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(linux, all(&[TESTED_OF_LINUX, TESTED_OF_LINUX_HARM].concat()));
    let ox: BTreeSet<&str> = ox_block::Canary::ALL.iter().map(|&(_, name)| name).collect();
    let of_ox = [
        TESTED_OF_OX,
        TESTED_OF_OX_GIVING_WAY,
        TESTED_OF_OX_PAIRS,
        TESTED_OF_OX_PAGES,
        TESTED_OF_VOLATILE_OX,
    ];
    assert_eq!(ox, all(&of_ox.concat()));
    let tables: BTreeSet<&str> = lightlsm::Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(tables, all(&[TESTED_OF_LIGHTLSM, TESTED_OF_TABLES_ON_BLOCKS].concat()));
    let eleos: BTreeSet<&str> = eleos::Canary::ALL.iter().map(|&(_, name)| name).collect();
    // What a page store changes is durable before it changes: there is nothing to be reset too early. And it has no transaction
    // over several requests. Its worlds lose no sectors in months without power, so no page of its log.
    let not_of_pages = ["gives-way-in-part", "loss-unnoticed", "reset-before-durable", "transaction-by-part"];
    // Its map is in memory, and its contract knows of no content that is lost.
    let not_of_pages = [&not_of_pages[..], TESTED_OF_OX_PAGES, TESTED_OF_OX_PAIRS].concat();
    assert_eq!(eleos, all(&[TESTED_OF_ELEOS, &not_of_pages].concat()));
    let keys: BTreeSet<&str> = kv::Canary::ALL.iter().map(|&(_, name)| name).collect();
    // It takes a chunk that is full in the middle of a batch and is a victim at once: one world of several thousand shows it.
    assert_eq!(
        keys,
        all(&[
            TESTED_OF_KV,
            TESTED_OF_KV_BUFFER,
            TESTED_OF_KV_PAGES,
            TESTED_OF_KV_WEAR,
            TESTED_OF_KV_SPREAD,
            &["torn-copies"]
        ]
        .concat())
    );
    let on_blocks: BTreeSet<&str> = kv_block::Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(on_blocks, all(&[TESTED_OF_KV_BLOCK, TESTED_OF_TABLE_BLOCK].concat()));
    let zones: BTreeSet<&str> = zns::Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(zones, all(&[TESTED_OF_ZNS, TESTED_OF_EXTENSIONS, TESTED_OF_WEAR].concat()));
    let small: BTreeSet<&str> = small_blocks::Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(small, all(TESTED_OF_SMALL_BLOCKS));
}

/// Media faults have no part in a FUA that is ignored: of a world full of them nothing is left but the power cut.
#[test]
fn a_failure_is_told_without_the_faults_it_does_not_need() {
    let (kind, fixed) = (registry::find("pblk").expect("a kind"), options(&[("canary", "fua-ignored")]));
    let (jobs, failures) = (NonZeroUsize::MIN, NonZeroUsize::new(8).expect("not zero"));
    let campaign =
        Campaign { kind, size: Size::Any, fixed: &fixed, seeds: SEEDS, jobs, time: None, failures };
    let has =
        |plan: &WorldPlan| PlanPart::ALL.into_iter().filter(|&part| plan.without(part).is_some()).count();
    let all = search(&campaign, &mut |_| {}).failures;
    let found = all.iter().max_by_key(|found| has(&found.plan)).expect("it was found before");
    assert!(has(&found.plan) >= 3, "seed {} has too little to leave out: {}", found.seed, found.plan);
    let Short { plan, without, steps } = shrink(&found.plan, kind, &found.failure, 100);
    assert_eq!((has(&plan), without.len()), (0, has(&found.plan)), "seed {}: {without:?}", found.seed);
    let ended = run(&plan, kind, &|index| steps.contains(&index), Keep::Nothing).ended;
    let Ended::Failed(again) = ended else { panic!("seed {} does not fail any more: {ended:?}", found.seed) };
    assert!(again.cause.is_like(&found.failure.cause), "seed {}: it is {} now", found.seed, again.cause);
}

#[test]
fn without_a_canary_nothing_is_found() {
    let pblk = registry::find("pblk").expect("a kind");
    for (size, seeds) in [(Size::Tiny, 0..30), (Size::Any, 0..4)] {
        let outcome = look(pblk, size, NONE, seeds);
        assert_eq!(outcome.stopped, Stopped::Exhausted, "{size:?}: {:?}", outcome.failures);
    }
}
