//! What every kind of target does in some worlds is what it did at the commit that wrote `traces.txt`: each command with its
//! addresses, its content and its time, each answer, and every counter.
//!
//! A difference is no bug by itself. It says that a target *behaves differently*, and a commit that changes this file says why.
//! Worlds of a kind are hashed some at a time, so that what differs says where to look; a promise that is broken is told as such.
//!
//! Hashes are the same on every machine and in every profile of the compiler: below `engine` there are no clocks, no unordered
//! collections and no floats that decide anything (`cargo xtask tidy`), and what is hashed are numbers of fixed widths, texts, and
//! bytes of formats that are little-endian everywhere ([`ocssd_sim::trace`]). Lengths are hashed as 64 bits. Drawing, models and
//! drives are hashed along, as targets see them: a change of these is a change of the traces, too.

use ocssd_base::TraceHash;
use ocssd_sim::campaign::{Simulated, run_asked};
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::{Asked, Size};
use ocssd_targets::registry::{self, TargetOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The hashes.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces.txt");

/// Writes them anew, if set.
const WRITE: &str = "OCSSD_WRITE_TRACES";

/// What stands above them.
const HEADER: &str = "\
# What targets did in worlds of these seeds: target, options, size, seeds, hash. tests/traces.rs says what is hashed; written by
# OCSSD_WRITE_TRACES=1 cargo test -p ocssd-sim --test traces
# A commit that changes a hash says why the target behaves differently.
";

/// Worlds that are hashed together.
const WORLDS_OF_ROW: u64 = 4;

/// Worlds of one kind of target.
#[derive(Clone, Copy)]
struct Worlds {
    target: &'static str,
    /// Options that are held, as users write them; all others are drawn.
    held: &'static str,
    size: Size,
    seeds: u64,
}

impl Worlds {
    fn options(self) -> TargetOptions {
        let pairs = self.held.split(',').filter_map(|option| option.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// What stands before the seeds in a row.
    fn name(self) -> String {
        let (held, size) = (if self.held.is_empty() { "-" } else { self.held }, size_in_words(self.size));
        format!("{} {held} {size}", self.target)
    }

    /// The seeds of each row.
    fn rows(self) -> impl Iterator<Item = Range<u64>> {
        let of_row = usize::try_from(WORLDS_OF_ROW).expect("few");
        (0..self.seeds).step_by(of_row).map(move |first| first..self.seeds.min(first + WORLDS_OF_ROW))
    }

    /// The hash of the worlds of these seeds.
    fn hash(self, seeds: Range<u64>) -> u64 {
        let kind = registry::find(self.target).expect("a kind");
        let options = self.options();
        let asked = Asked::of(kind, self.size, &options);
        let mut hash = TraceHash::default();
        for seed in seeds {
            let done = run_asked(kind, &asked, seed, &|_| true, Keep::Hash, &Arc::default());
            let Simulated { attempt, plan, ran } = done.expect("one of the drives fits");
            if let Ended::Failed(failure) = &ran.ended {
                let name = self.name();
                panic!(
                    "{name}, seed {seed} broke a promise: {plan}\nstep {}: {}",
                    failure.step, failure.cause
                );
            }
            hash.word(u64::from(attempt));
            let mut trace = ran.journal.trace();
            ran.tally.iter().for_each(|(name, count)| trace.count(name, count));
            hash.word(trace.value());
        }
        hash.value()
    }
}

const fn size_in_words(size: Size) -> &'static str {
    match size {
        Size::Tiny => "tiny",
        Size::Any => "any",
    }
}

/// A row's name and its hash.
fn row(line: &str) -> Option<(&str, &str)> {
    line.rsplit_once(' ').filter(|(name, _)| !name.starts_with('#'))
}

fn rows() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    text.lines().filter_map(row).map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect()
}

/// Puts the rows of these worlds into the file, in the place of those that were there.
fn write(worlds: Worlds, new: BTreeMap<String, String>) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().expect("no test panics while it writes");
    let mut rows = rows();
    let of_these = format!("{} ", worlds.name());
    rows.retain(|name, _| !name.starts_with(&of_these) && is_known(name));
    rows.extend(new);
    let mut text = HEADER.to_owned();
    for (name, hash) in rows {
        writeln!(text, "{name} {hash}").expect("a string takes all");
    }
    std::fs::write(FILE, text).expect("the traces can be written");
}

/// True if a row is of worlds that are hashed.
fn is_known(name: &str) -> bool {
    ALL.iter().any(|worlds| name.starts_with(&format!("{} ", worlds.name())))
}

/// Fails if worlds of `target` with these options are not what they were.
fn assert_unchanged(target: &str, held: &str, size: Size) {
    let of_these = |worlds: &&Worlds| (worlds.target, worlds.held, worlds.size) == (target, held, size);
    let worlds = *ALL.iter().find(of_these).expect("worlds of a test");
    let name = |seeds: &Range<u64>| format!("{} {:03}..{:03}", worlds.name(), seeds.start, seeds.end);
    let hashes: BTreeMap<String, String> =
        worlds.rows().map(|seeds| (name(&seeds), format!("{:016x}", worlds.hash(seeds)))).collect();
    if std::env::var_os(WRITE).is_some() {
        return write(worlds, hashes);
    }
    let written = rows();
    let changed = hashes.iter().filter(|&(name, hash)| written.get(name) != Some(hash));
    let changed: Vec<String> = changed
        .map(|(name, hash)| {
            let was = written.get(name).map_or("not written", String::as_str);
            format!("{name}: expected {was}, found {hash}")
        })
        .collect();
    assert!(
        changed.is_empty(),
        "{} of {} rows of {FILE} changed:\n{}\nThe target behaves differently from what the last commit that wrote that file \
         said: it sends other commands, writes other content, does so at other times, answers otherwise or counts otherwise; or \
         worlds are drawn otherwise, or the drive is another. If it is not meant to, the change has a bug. If it is, write the \
         file anew, and say in the commit why these rows changed:\n{WRITE}=1 cargo test -p ocssd-sim --test traces",
        changed.len(),
        hashes.len(),
        changed.join("\n"),
    );
}

/// A test for each, and the list of all.
macro_rules! traces {
    ($($test:ident: $target:literal, $held:literal, $size:ident, $seeds:literal;)*) => {
        const ALL: &[Worlds] =
            &[$(Worlds { target: $target, held: $held, size: Size::$size, seeds: $seeds }),*];
        $(
            #[test]
            fn $test() {
                assert_unchanged($target, $held, Size::$size);
            }
        )*
    };
}

// How many of each: chosen so that all take some seconds.
traces! {
    pblk_tiny: "pblk", "", Tiny, 40;
    pblk_any: "pblk", "", Any, 12;
    pblk_faithful_tiny: "pblk", "mode=faithful", Tiny, 16;
    pblk_faithful_any: "pblk", "mode=faithful", Any, 4;
    small_blocks_tiny: "pblk", "block_bytes=512", Tiny, 8;
    block_ssd_tiny: "block_ssd", "", Tiny, 16;
    block_ssd_any: "block_ssd", "", Any, 4;
    linux_pblk_tiny: "linux-pblk", "", Tiny, 24;
    linux_pblk_any: "linux-pblk", "", Any, 4;
    ox_block_tiny: "ox-block", "", Tiny, 32;
    ox_block_any: "ox-block", "", Any, 12;
    ox_block_map_in_pages_tiny: "ox-block", "map_page_bytes=128,map_cache_bytes=512", Tiny, 12;
    eleos_tiny: "eleos", "", Tiny, 16;
    eleos_any: "eleos", "", Any, 16;
    lightlsm_tiny: "lightlsm", "", Tiny, 24;
    lightlsm_any: "lightlsm", "", Any, 16;
    table_block_tiny: "table-block", "", Tiny, 8;
    table_block_any: "table-block", "", Any, 4;
    kv_tiny: "kv", "", Tiny, 32;
    kv_any: "kv", "", Any, 12;
    kv_index_in_pages_tiny: "kv", "index_cache_bytes=0,index_page_bytes=266", Tiny, 12;
    kv_block_tiny: "kv-block", "", Tiny, 8;
    kv_block_any: "kv-block", "", Any, 4;
    zns_tiny: "zns", "", Tiny, 16;
    zns_any: "zns", "", Any, 12;
    zns_levelled_tiny: "zns", "wear_spread=1", Tiny, 8;
}

#[test]
fn every_kind_that_is_simulated_has_rows_and_every_row_has_a_test() {
    // Written in order, and keeping nothing: there is no contract for either.
    for kind in registry::ALL.iter().filter(|kind| !matches!(kind.name, "linear" | "null")) {
        for size in [Size::Tiny, Size::Any] {
            let has = ALL.iter().any(|worlds| worlds.target == kind.name && worlds.size == size);
            assert!(has, "{} has no {} worlds here", kind.name, size_in_words(size));
        }
    }
    let unknown: Vec<String> = rows().into_keys().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty() || std::env::var_os(WRITE).is_some(), "no test hashes {unknown:?} of {FILE}");
}

#[test]
fn the_same_worlds_have_the_same_hash_and_others_another() {
    let hash = |seeds: Range<u64>| ALL[0].hash(seeds);
    assert_eq!(hash(0..2), hash(0..2));
    assert_ne!(hash(0..2), hash(1..3));
}
