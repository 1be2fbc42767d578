//! A page of the log that the media lose after it was durable: the mount says so, instead of forgetting what was answered
//! behind it.

use crate::rig::{Rig, config};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault};
use ocssd_ftl::log::{LogEntry, LogPage, Lsn};
use ocssd_lightnvm::{Payload, Ppa, Status};
use ocssd_targets::MountError;

/// One page of the log each, and none cut off but by checkpoints.
const OPTIONS: [(&str, &str); 3] =
    [("over_provisioning_percent", "70"), ("checkpoint_log_bytes", "1048576"), ("log_copies", "1")];
const WRITES: u64 = 60;
/// Writes whose pages come before every page that is lost: each has one at least.
const SURE_WRITES: usize = 3;

/// A drive that keeps bytes: pages of the log are found by them.
fn drive() -> Config {
    Config { payload: Payload::Bytes, ..config(120) }
}

/// Where each page of the log lies.
fn log_pages(rig: &mut Rig) -> Vec<(Lsn, Ppa)> {
    let pages = rig.media().into_iter();
    let mut pages: Vec<(Lsn, Ppa)> =
        pages.filter_map(|(at, bytes)| Some((LogPage::<LogEntry>::decode(&bytes).ok()?.lsn, at))).collect();
    pages.sort_unstable();
    pages
}

/// A drive that was written, and what it held after each write.
fn written(seed: u64) -> (Rig, Vec<Vec<u64>>) {
    let mut rig = Rig::new(drive(), &OPTIONS, Nanos(0), &format!("seed {seed}"));
    let mut prng = Prng::new(seed);
    let mut states = vec![rig.content.clone()];
    for _ in 0..WRITES {
        rig.write_at_random(1, &mut prng);
        states.push(rig.content.clone());
    }
    (rig, states)
}

/// The drive after a power cut, without what stood at these places.
fn without(rig: &Rig, places: &[Ppa], seed: u64) -> Flash {
    let mut flash = rig.host.device().fork().expect("a drive in memory");
    for at in places {
        let (chunk, sector) = (at.chunk, Some(at.sector));
        let kind = FaultKind::UnrecoveredRead;
        flash.schedule_fault(ScheduledFault { kind, chunk, sector, times: u32::MAX });
    }
    flash.power_cut(rig.now(), &mut Prng::new(seed)).expect("memory does not fail");
    flash
}

#[test]
fn a_lost_page_of_the_log_is_noticed_and_may_be_accepted() {
    let mut errors = 0;
    for seed in 0..12 {
        let (mut rig, states) = written(seed);
        let pages = log_pages(&mut rig);
        assert!(pages.len() > 20, "seed {seed}: {} pages", pages.len());
        let lost = pages[usize::try_from(5 + Prng::new(seed).below(10)).expect("small")];
        let label = format!("seed {seed}, page {} lost", lost.0.0);
        let flash = without(&rig, &[lost.1], seed);
        let again = flash.fork().expect("a drive in memory");
        match Rig::try_mount(flash, &OPTIONS, rig.now(), &label) {
            Err(MountError::LogLost { first, last, can_drop: true }) => {
                assert!(first == lost.0.0 && last >= first, "{label}: pages {first} to {last}");
            }
            Err(other) => panic!("{label}: {other}"),
            Ok(_) => panic!("{label}: nobody missed it"),
        }
        let accepting = [&OPTIONS[..], &[("lost_log", "drop")]].concat();
        let mut rig = Rig::mount(again, &accepting, rig.now(), &label);
        let read: Vec<_> =
            (0..).zip(&states[SURE_WRITES]).map(|(block, &sure)| (rig.read(block), sure)).collect();
        // Each block is as it was after some write, or an error where its place was reset since: no zeroes, once it held something.
        for (block, &(found, sure)) in read.iter().enumerate() {
            match found {
                Ok(holds) => {
                    let is_old = states.iter().any(|state| state[block] == holds) && (holds > 0 || sure == 0);
                    assert!(is_old, "{label}: block {block} holds {holds}");
                }
                Err(status) => {
                    assert_eq!(status, Status::UNRECOVERED_READ, "{label}: block {block}");
                    let block = u32::try_from(block).expect("small");
                    rig.write(block, 1, 77);
                    errors += 1;
                }
            }
        }
        let found = rig.found();
        assert!(states.last() != Some(&found) && states[0] != found, "{label}: all or nothing was lost");
        rig.content = found;
        rig.write_at_random(30, &mut Prng::new(seed));
        // What was accepted once is settled: the next mount need not be told.
        let after = without(&rig, &[lost.1], seed);
        let mut next = Rig::mount(after, &OPTIONS, rig.now(), &label);
        next.content.clone_from(&rig.content);
        next.verify();
    }
    assert!(errors > 0, "no block lay where something was reset since");
}

/// With two copies it takes both.
#[test]
fn one_lost_copy_of_two_costs_nothing() {
    let options = [&OPTIONS[..2], &[("log_copies", "2")]].concat();
    let mut rig = Rig::new(drive(), &options, Nanos(0), "two copies");
    rig.write_at_random(WRITES, &mut Prng::new(3));
    let pages = log_pages(&mut rig);
    let of = pages[12].0;
    let copies: Vec<Ppa> = pages.iter().filter(|page| page.0 == of).map(|page| page.1).collect();
    assert_eq!(copies.len(), 2);
    let mut mounted = Rig::mount(without(&rig, &copies[..1], 1), &options, rig.now(), "one copy lost");
    mounted.content.clone_from(&rig.content);
    mounted.verify();
    let refused = Rig::try_mount(without(&rig, &copies, 1), &options, rig.now(), "both lost");
    assert!(matches!(refused, Err(MountError::LogLost { first, .. }) if first == of.0));
}
