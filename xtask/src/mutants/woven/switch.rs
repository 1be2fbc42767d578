//! Which of the mutants woven into this build is the one shown (`cargo xtask mutants` puts this file into the copy it builds).
//!
//! `OCSSD_MUTANT` is its number; without it all code is as it was written. With `OCSSD_MUTANTS_REACHED` the numbers of all mutants
//! that are come by are written to that file, each once, a line each.

use std::{
    env,
    fs::File,
    io::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// Nobody looked at the variables yet.
const UNKNOWN: u32 = u32::MAX;
/// None is shown; those reached are written.
const RECORDED: u32 = u32::MAX - 1;
/// None is shown.
const NONE: u32 = u32::MAX - 2;

static SHOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: Mutex<Option<File>> = Mutex::new(None);
/// Numbers that are in the file already; a loop comes by the same one millions of times.
static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];

/// Whether mutant `number` is the one shown.
#[inline]
pub fn is_shown(number: u32) -> bool {
    let shown = SHOWN.load(Ordering::Relaxed);
    if shown < RECORDED {
        return shown == number;
    }
    if shown == RECORDED && SEEN[number as usize].load(Ordering::Relaxed) {
        return false;
    }
    look(number)
}

#[cold]
fn look(number: u32) -> bool {
    if SHOWN.load(Ordering::Relaxed) == UNKNOWN {
        start();
        return is_shown(number);
    }
    // A test that panics while it holds the lock was not asked to.
    let mut reached = REACHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(file) = reached.as_mut()
        && !SEEN[number as usize].swap(true, Ordering::Relaxed)
    {
        writeln!(file, "{number}").expect("the file of those reached can be written");
    }
    false
}

fn start() {
    let mut reached = REACHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if SHOWN.load(Ordering::Relaxed) != UNKNOWN {
        return;
    }
    let shown = if let Ok(path) = env::var("OCSSD_MUTANTS_REACHED") {
        let file = File::create(&path).unwrap_or_else(|error| panic!("{path} could not be made: {error}"));
        *reached = Some(file);
        RECORDED
    } else {
        env::var("OCSSD_MUTANT").map_or(NONE, |number| number.parse().expect("OCSSD_MUTANT is a number"))
    };
    SHOWN.store(shown, Ordering::Relaxed);
}
