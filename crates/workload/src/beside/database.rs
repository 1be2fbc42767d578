//! A database in virtual time, an LSM tree, as one who asks beside jobs.
//!
//! It loads nothing before the jobs: its benchmarks begin with them, and those that fill are such, too. Deliberately not here: the
//! tree (`lsm`).

use super::asker::{Asker, Report};
use crate::lsm::Lsm;
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, OfInterface};
use ocssd_lightnvm::{Buffers, Source, TargetId};

/// The tables of one interface among those of any.
type Tables = dyn TableTarget;

/// A database on a target of tables.
pub struct Database {
    lsm: Lsm,
    target: TargetId,
    /// Others load, or are to.
    is_held: bool,
    is_stopped: bool,
}

impl Database {
    /// This tree is on this target.
    #[must_use]
    pub const fn new(lsm: Lsm, target: TargetId) -> Self {
        Self { lsm, target, is_held: false, is_stopped: false }
    }
}

impl Source<AnyTarget> for Database {
    fn next_arrival(&self) -> Option<Nanos> {
        if self.is_held { None } else { Source::<Tables>::next_arrival(&self.lsm) }
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
        if self.is_held {
            return None;
        }
        let (_, request) = Source::<Tables>::poll_request(&mut self.lsm, now, buffers)?;
        Some((self.target, Tables::ask(request)))
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: AnyRequest) {
        let request = Tables::request(&request).expect("what it asked is of tables");
        Source::<Tables>::on_refused(&mut self.lsm, now, target, *request);
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: AnyReply, buffers: &mut Buffers) {
        let reply = Tables::reply(&reply).expect("its target answers of tables");
        Source::<Tables>::on_reply(&mut self.lsm, now, target, *reply, buffers);
    }

    fn is_finished(&self) -> bool {
        self.is_held || Source::<Tables>::is_finished(&self.lsm)
    }
}

impl Asker for Database {
    fn target(&self) -> TargetId {
        self.target
    }

    /// # Panics
    /// If it has begun.
    fn load_only(&mut self, loads_only: bool) {
        assert!(self.lsm.phases().is_empty(), "a database that runs cannot be held");
        self.is_held = loads_only;
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.lsm.stop();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn report(&self) -> Report<'_> {
        Report::Database(&self.lsm)
    }

    fn failure(&self) -> Option<&str> {
        self.lsm.failure()
    }

    fn bytes_stored(&self) -> u64 {
        let works = self.lsm.phases().iter().map(|phase| &phase.work);
        works.map(|work| work.flushed_bytes + work.compaction_written_bytes).sum()
    }

    fn progress(&self) -> (u64, u64) {
        let (done, all) = self.lsm.progress();
        (done.saturating_mul(1_000).checked_div(all).unwrap_or(0).min(1_000), done)
    }
}
