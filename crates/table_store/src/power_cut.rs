//! A drive that loses its power: after so many requests, in the middle of one, for tests of what is left.
//!
//! Deliberately not here: what a cut leaves on the media (`ocssd_flash`), and who looks at it.

use crate::error::{ErrorKind, StoreError};
use crate::questions::Questions;
use crate::store_drive::StoreDrive;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, DriveClock, Host};
use ocssd_lightnvm::interface::table::TableTarget;

/// Most turns of the loop between the last request and the cut (chosen: an edit with its log and some units takes about as many).
const TURNS_MAX: u64 = 8;

/// What becomes of whoever uses the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCut {
    /// The machine has lost its power too: the process ends by SIGABRT.
    EndProcess,
    /// Every call is refused from then on. What is left is at [`crate::SharedDrive::fork`].
    Refuse,
}

/// When the power goes.
#[derive(Debug)]
pub struct PowerCut {
    /// Requests until then.
    left: u64,
    then: AfterCut,
}

impl PowerCut {
    /// In the middle of request number `requests`, counted from 1.
    pub const fn after(requests: u64, then: AfterCut) -> Self {
        assert!(requests > 0, "the power goes in the middle of a request");
        Self { left: requests, then }
    }

    /// True if the request that was asked just now is the last.
    pub const fn is_due(&mut self) -> bool {
        assert!(self.left > 0, "the power goes once");
        self.left -= 1;
        self.left == 0
    }

    /// Lets the drive go on for a while that is drawn from `seed` and the drive's time, and cuts its power.
    pub fn happen(
        &self,
        host: &mut Host<StoreDrive, DriveClock, dyn TableTarget>,
        questions: &mut Questions,
    ) {
        // Where in the request is drawn from what is on the way.
        let mut prng = Prng::new(host.clock().now().0);
        for _ in 0..prng.below(TURNS_MAX) {
            while host.step(questions) {}
            let Some(at) = host.next_deadline() else { break };
            let ahead = at.saturating_since(host.clock().now()).0;
            let until = host.clock().now() + Nanos(prng.below(2 * ahead + 1));
            host.clock_mut().wait_until(until.min(at));
        }
        let now = host.clock().now();
        let cut = host.device_mut().power_cut(now, &mut prng);
        host.drop_targets();
        if self.then == AfterCut::EndProcess {
            eprintln!("ocssd: the power was cut after {now}: {cut:?}");
            std::process::abort();
        }
        assert!(cut.is_ok(), "what a cut left could not be kept: {cut:?}");
    }
}

/// What is said of a drive that is off.
pub fn power_is_off() -> StoreError {
    StoreError::new(ErrorKind::Io, "the drive lost its power; open it again")
}
