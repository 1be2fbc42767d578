//! SQLite's databases after power cuts of the drive: whole, with everything that was answered. Bugs that are put in are found.
//!
//! `OCSSD_SQLITE_CUTS` says how many cuts each way gets; 20 without.

use crate::bank::{RECOVERIES_CUT, Way, cut};
use ocssd_sqlite::Planted;
use std::sync::atomic::Ordering;

const OX_BLOCK: &str = "drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50";

fn cuts() -> u64 {
    std::env::var("OCSSD_SQLITE_CUTS")
        .map_or(20, |count| count.parse().expect("OCSSD_SQLITE_CUTS is a number"))
}

fn way(options: &'static str, journal_mode: &'static str) -> Way {
    Way { options, journal_mode, planted: Planted::Nothing, recoveries_cut: 0, transfer_bytes: 1_500 }
}

fn nothing_is_lost(way: Way) {
    let wrong = cut(way, cuts(), 30, 1);
    assert!(wrong.is_empty(), "{} of {} cuts: {wrong:#?}", wrong.len(), cuts());
}

#[test]
fn batches_are_whole_and_durable() {
    nothing_is_lost(way(OX_BLOCK, "delete"));
}

#[test]
fn batches_are_whole_where_only_flushes_make_durable() {
    nothing_is_lost(way(
        "drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50,durability=flush",
        "delete",
    ));
}

#[test]
fn journals_do_their_work_on_ox_block_and_on_pblk() {
    nothing_is_lost(way(
        "drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50,commit=plain",
        "delete",
    ));
    nothing_is_lost(way("drive=tiny,set.chunks_per_pu=64,target=pblk", "delete"));
    nothing_is_lost(way("drive=tiny,set.chunks_per_pu=64,target=pblk", "truncate"));
    nothing_is_lost(way("drive=tiny,set.chunks_per_pu=64,target=pblk", "persist"));
}

#[test]
fn write_ahead_logs_do_their_work_on_ox_block_and_on_pblk() {
    nothing_is_lost(way("drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50,commit=plain", "wal"));
    nothing_is_lost(way("drive=tiny,set.chunks_per_pu=64,target=pblk", "wal"));
}

#[test]
fn recoveries_are_begun_again_after_cuts() {
    let before = RECOVERIES_CUT.load(Ordering::Relaxed);
    nothing_is_lost(Way { recoveries_cut: 3, ..way(OX_BLOCK, "delete") });
    nothing_is_lost(Way {
        recoveries_cut: 3,
        ..way("drive=tiny,set.chunks_per_pu=64,target=pblk", "delete")
    });
    let cut = RECOVERIES_CUT.load(Ordering::Relaxed) - before;
    println!("{cut} recoveries were cut");
    assert!(cut > 0, "no cut came during a recovery");
}

#[test]
fn commits_that_are_too_long_for_a_batch_are_whole_by_their_journal() {
    let long = Way { transfer_bytes: 1_100_000, ..way(OX_BLOCK, "delete") };
    let wrong = cut(long, cuts(), 4, 1);
    assert!(wrong.is_empty(), "{} of {} cuts: {wrong:#?}", wrong.len(), cuts());
}

#[test]
fn a_batch_that_is_split_is_found_torn() {
    let planted = Way { planted: Planted::SplitBatch, ..way(OX_BLOCK, "delete") };
    let wrong = cut(planted, 20, 30, 1);
    println!("{} of 20 cuts: {:?}", wrong.len(), wrong.first());
    assert!(wrong.len() >= 5, "a split batch was torn by {} of 20 cuts only: {wrong:#?}", wrong.len());
}

#[test]
fn a_record_that_comes_after_its_batch_is_found() {
    let planted = Way { planted: Planted::RecordApart, ..way(OX_BLOCK, "delete") };
    let wrong = cut(planted, 60, 30, 1);
    println!("{} of 60 cuts: {:?}", wrong.len(), wrong.first());
    assert!(!wrong.is_empty(), "no cut fell between a batch and its record");
}

#[test]
fn a_journal_that_is_not_synced_after_a_failed_batch_is_found() {
    let planted =
        Way { planted: Planted::JournalUnsynced, transfer_bytes: 1_100_000, ..way(OX_BLOCK, "delete") };
    let wrong = cut(planted, 20, 4, 1);
    println!("{} of 20 cuts: {:?}", wrong.len(), wrong.first());
    assert!(!wrong.is_empty(), "no cut fell between pages and the journal that must undo them");
}
