//! The targets of a run's host: blocks alone, or those of any interfaces once a workload asks beside the jobs.
//!
//! Jobs alone keep a host that knows blocks only: nothing is told apart on their way. Deliberately not here: what is asked.

use super::assemble::RunDevice;
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd};
use ocssd_lightnvm::block::{BlockRequest, BlockTarget};
use ocssd_lightnvm::interface::{AnyRequest, AnyTarget};
use ocssd_lightnvm::{Tag, Target};
use ocssd_workload::beside::{Askers, Jobs, Joined};

/// What jobs run on.
pub trait HostTarget: Target {
    /// The target as jobs see it.
    ///
    /// # Panics
    /// If it is not one of blocks.
    fn blocks(&self) -> &dyn BlockTarget;

    /// The last request; `None` to one that keeps nothing about itself.
    fn last_request(&self) -> Option<Self::Request>;

    /// Runs jobs with those who ask beside them, until the jobs say that they are finished or `stop`.
    fn run<S: Jobs, C: Clock>(
        host: &mut Host<RunDevice, C, Self>,
        jobs: &mut S,
        askers: &mut Askers,
        stop: Nanos,
    ) -> RunEnd;

    /// Runs those who ask beside jobs alone.
    fn run_askers<C: Clock>(host: &mut Host<RunDevice, C, Self>, askers: &mut Askers, stop: Nanos) -> RunEnd;
}

impl HostTarget for dyn BlockTarget {
    fn blocks(&self) -> &dyn BlockTarget {
        self
    }

    fn last_request(&self) -> Option<BlockRequest> {
        crate::shut_down::last_request(self)
    }

    fn run<S: Jobs, C: Clock>(
        host: &mut Host<RunDevice, C, Self>,
        jobs: &mut S,
        askers: &mut Askers,
        stop: Nanos,
    ) -> RunEnd {
        assert_eq!(askers.iter().len(), 0, "a host of blocks has no other targets to ask");
        host.run(jobs, stop)
    }

    fn run_askers<C: Clock>(_: &mut Host<RunDevice, C, Self>, askers: &mut Askers, _: Nanos) -> RunEnd {
        assert_eq!(askers.iter().len(), 0, "a host of blocks has no other targets to ask");
        RunEnd::Finished
    }
}

impl HostTarget for AnyTarget {
    fn blocks(&self) -> &dyn BlockTarget {
        self.block().expect("jobs run on targets of blocks")
    }

    fn last_request(&self) -> Option<AnyRequest> {
        match self.block() {
            Some(blocks) => crate::shut_down::last_request(blocks).map(AnyRequest::Block),
            None => Some(AnyRequest::shutdown(self.interface(), Tag(0))),
        }
    }

    fn run<S: Jobs, C: Clock>(
        host: &mut Host<RunDevice, C, Self>,
        jobs: &mut S,
        askers: &mut Askers,
        stop: Nanos,
    ) -> RunEnd {
        host.run(&mut Joined::new(jobs, askers), stop)
    }

    fn run_askers<C: Clock>(host: &mut Host<RunDevice, C, Self>, askers: &mut Askers, stop: Nanos) -> RunEnd {
        host.run(&mut Joined::alone(askers), stop)
    }
}
