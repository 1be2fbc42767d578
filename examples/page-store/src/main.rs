//! A B-tree on a log-structured page store (ELEOS), restarted after a power cut. docs/eleos.md says what the target promises.
//!
//! `cargo run -p page-store -- [DRIVE]`, a preset or a drive file; `qemu` without.

mod pages;
mod tree;

use ocssd_base::{Nanos, Prng};
use pages::Pages;
use tree::Tree;

/// Commits until the power goes, and what each sets.
const COMMITS: u64 = 200;
const KEYS: u64 = 50;

fn main() -> Result<(), String> {
    let drive = std::env::args().nth(1).unwrap_or_else(|| "qemu".to_owned());
    let mut tree = Tree::open(Pages::open(&drive, &[])?)?;
    let mut prng = Prng::new(1);
    let cut_at = tree.pages.now() + Nanos::from_millis(500);
    tree.pages.cut_power_at(cut_at);
    let stopped = (0..COMMITS).find_map(|commit| {
        let keys = (0..KEYS).map(|_| prng.below(100_000)).collect::<Vec<u64>>();
        let set = keys.into_iter().try_for_each(|key| tree.set(key, Some(commit.to_le_bytes().to_vec())));
        set.and_then(|()| tree.commit()).err()
    });
    println!("{} commits were answered by {}", tree.pages.flushed().0, tree.pages.now());
    let Some(sentence) = stopped else { return Ok(()) };
    println!("{sentence}; the drive is mounted again");
    tree.pages.restart(1)?;
    let commits = tree.pages.flushed().0;
    let mut tree = Tree::open(tree.pages)?;
    let mut found = 0;
    for key in 0..100_000 {
        found += u64::from(tree.get(key)?.is_some());
    }
    println!("{commits} commits are there, with {found} keys; the next is number {}", commits + 1);
    Ok(())
}
