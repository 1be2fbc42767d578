//! Ctrl-C, and what else asks a program to end: the first ends in order what is measured, and what was measured is kept; a
//! second ends the program at once.
//!
//! Signals come to the process, so what was heard is known in all of it: [`is_heard`]. Deliberately not here: ending. Whoever
//! runs something looks between two steps of it.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit status of a program that was asked to end: 128 and the number of SIGINT, as shells have it; of every signal here.
pub const EXIT_STATUS: u8 = 130;

/// The signals, with the number each leaves behind.
const SIGNALS: [(i32, usize, &str); 3] =
    [(SIGINT, 1, "Ctrl-C"), (SIGTERM, 2, "SIGTERM"), (SIGHUP, 3, "SIGHUP")];

/// Who listens, once somebody does.
static LISTENER: OnceLock<Interrupt> = OnceLock::new();

/// Whether a signal asked to end: for what runs far below whoever listens.
pub fn is_heard() -> bool {
    LISTENER.get().is_some_and(|interrupt| interrupt.heard().is_some())
}

/// Something could not go on because it was interrupted.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Hears them.
#[derive(Clone)]
pub struct Interrupt {
    /// The number of the last that came; 0 before.
    last: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Hears them from now on.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> anyhow::Result<Self> {
        if let Some(listener) = LISTENER.get() {
            return Ok(listener.clone());
        }
        let (came, last) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for (signal, number, _) in SIGNALS {
            // Asked first, so that it finds what an earlier signal has left, and not what this one leaves.
            signal_hook::flag::register_conditional_shutdown(signal, EXIT_STATUS.into(), Arc::clone(&came))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&came)))
                .and_then(|_| signal_hook::flag::register_usize(signal, Arc::clone(&last), number))
                .context("signals cannot be heard")?;
        }
        Ok(LISTENER.get_or_init(|| Self { last }).clone())
    }

    /// Who asked to end, if anybody did.
    pub fn heard(&self) -> Option<&'static str> {
        let last = self.last.load(Ordering::Relaxed);
        SIGNALS.iter().find(|(_, number, _)| *number == last).map(|(.., name)| *name)
    }

    /// Tells whoever waits that it was heard.
    pub fn say(&self, quiet: bool) {
        if let Some(name) = self.heard().filter(|_| !quiet) {
            eprintln!("{name}: ending, and keeping what there is; a second one ends at once");
        }
    }
}
