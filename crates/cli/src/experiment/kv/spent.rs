//! The processor time that a target's own code takes: what a host, or the drive's controller, would spend.
//!
//! Every call is timed by the clock on the wall; the share of a run's wall time that the calls took, times the processor time of
//! the process, is what the target took. So other programs on the same processors make no difference but noise. Deliberately not
//! here: the drive's model and the workload, which the same thread runs.

use super::super::wrapped::Around;
use ocssd_lightnvm::Out;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Wall time of all calls so far; clones are the same.
#[derive(Clone, Default)]
pub struct Spent(Rc<Cell<Duration>>);

impl Spent {
    /// Since the target was made.
    pub fn get(&self) -> Duration {
        self.0.get()
    }
}

impl Around for Spent {
    fn around<R, T>(&mut self, out: &mut Out<R>, call: impl FnOnce(&mut Out<R>) -> T) -> T {
        let began = Instant::now();
        let result = call(out);
        self.0.set(self.0.get() + began.elapsed());
        result
    }
}
