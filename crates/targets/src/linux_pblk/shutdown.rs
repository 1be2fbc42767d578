//! Shutdown: everything is left as Linux leaves what it removes, and as it expects to find it.
//!
//! The buffer is written; lines that Linux could not use are emptied; lines that hold nothing are reset, so that it finds
//! some that are free; the open line is padded to its end and gets its end metadata. An instance that was only read is left
//! alone. Deliberately not here: the procedures themselves.

use super::flight::Purpose;
use super::state::LinuxPblk;
use ocssd_base::SlabKey;
use ocssd_lightnvm::{Addresses, Op, Status};

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// Nobody asked for one.
    #[default]
    None,
    /// What was taken is carried out, and lines are tidied up.
    Tidying,
    /// The open line is padded.
    Filling,
    /// The last barrier is in flight.
    LastBarrier,
    /// It was replied to.
    Over,
}

/// A shutdown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shutdown {
    step: Step,
    request: Option<SlabKey>,
}

impl Shutdown {
    /// A host asks for it.
    pub fn begin(&mut self, key: SlabKey) {
        assert_eq!(self.step, Step::None, "an instance is shut down twice");
        (self.step, self.request) = (Step::Tidying, Some(key));
    }

    /// True once a host asked for it: nothing else is taken.
    pub fn is_begun(&self) -> bool {
        self.step != Step::None
    }

    /// True while the open line is padded.
    pub fn is_filling(&self) -> bool {
        self.step == Step::Filling
    }

    /// True while the host waits for the end.
    pub const fn is_waiting(&self) -> bool {
        self.request.is_some()
    }

    /// True if the barrier in flight is the last one.
    pub fn is_last_barrier(&self) -> bool {
        self.step == Step::LastBarrier
    }
}

impl LinuxPblk {
    /// Goes on with a shutdown. True if anything was done.
    pub(super) fn shut_down(&mut self) -> bool {
        if !self.shutdown.is_waiting() || self.requests.next_change().is_some() {
            return false;
        }
        if !self.has_written || self.is_read_only {
            // Reads are carried out first.
            let is_over = self.flight.len() == 0 && self.requests.next_read().is_none();
            let status = if self.write_buffer.in_use() == 0 { Status::SUCCESS } else { Status::WRITE_FAULT };
            return is_over && self.end_shutdown(status);
        }
        match self.shutdown.step {
            Step::Tidying => {
                let is_open = self.close_filling();
                let is_quiet =
                    self.ready.is_empty() && self.write_buffer.in_use() == 0 && self.flushes.is_idle();
                if is_open || !is_quiet || !self.is_tidy() || !self.reclaimer.is_idle() {
                    return is_open;
                }
                self.shutdown.step = Step::Filling;
                true
            }
            Step::Filling if self.open.is_none() && self.flight.len() == 0 => {
                let is_all = self.write_buffer.in_use() == 0 && self.is_tidy() && self.reclaimer.is_idle();
                if !is_all {
                    // The line failed, or held nothing: it is dealt with like any other.
                    self.shutdown.step = Step::Tidying;
                    return true;
                }
                self.shutdown.step = Step::LastBarrier;
                self.flight.send(Purpose::Barrier, Op::Flush, Addresses::None, None, 0);
                true
            }
            Step::None | Step::Filling | Step::LastBarrier | Step::Over => false,
        }
    }

    /// Replies to the shutdown. True, because something was done.
    pub(super) fn end_shutdown(&mut self, status: Status) -> bool {
        let key = self.shutdown.request.take().expect("a host waits for it");
        self.shutdown.step = Step::Over;
        if !status.is_success() {
            self.requests.fail(key, if status.is_drive_failure() { status } else { Status::WRITE_FAULT });
        }
        self.requests.end(key);
        true
    }
}
