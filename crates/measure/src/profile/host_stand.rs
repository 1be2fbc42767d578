//! Jobs on a virtual drive, in virtual time: the same cells, the same report, no machine in between.

use super::schedule::Bounds;
use super::stand::{Done, Stand, StandError};
use crate::storage::Attestation;
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_lightnvm::{Device, TargetId};
use ocssd_workload::job::Job;
use ocssd_workload::results::{ClockKind, Row};
use ocssd_workload::run::{Plan, PlannedJob, Runner, TargetShape};

/// Virtual time between two looks at `go_on` (chosen: milliseconds of real time on most drives).
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// The stand.
pub struct HostStand<D: Device> {
    host: Host<D, VirtualClock>,
    target: TargetId,
    bytes: u64,
    description: Vec<Row>,
}

impl<D: Device> HostStand<D> {
    /// Jobs on a block target of `host`, which must have no zones.
    ///
    /// # Panics
    /// If the target has zones.
    #[must_use]
    pub fn new(host: Host<D, VirtualClock>, target: TargetId, description: Vec<Row>) -> Self {
        let shape = host.target(target);
        assert!(shape.zones().is_none(), "small random writes need a target without zones");
        let bytes = shape.block_count() * u64::from(shape.block_bytes());
        // The largest I/O fits everywhere.
        let bytes = bytes >> 22 << 22;
        Self { host, target, bytes, description }
    }
}

impl<D: Device> Stand for HostStand<D> {
    fn bounds(&self) -> Bounds {
        let unit = self.host.target(self.target).block_bytes();
        Bounds { unit, bytes: self.bytes, writable: true }
    }

    fn shrink_to(&mut self, bytes: u64) {
        self.bytes = self.bytes.min(bytes >> 22 << 22);
    }

    fn now(&self) -> Nanos {
        self.host.clock().now()
    }

    fn clock(&self) -> ClockKind {
        ClockKind::Virtual
    }

    fn engine(&self, _depth: u32) -> &'static str {
        "io_uring"
    }

    fn direct(&self) -> bool {
        true
    }

    fn filename(&self) -> String {
        "FILE".to_owned()
    }

    fn carry_out(
        &mut self,
        job: &Job,
        seed: u64,
        go_on: &mut dyn FnMut(Nanos) -> bool,
    ) -> Result<Done, StandError> {
        let mut buffers = self.host.take_buffers();
        let shapes: Vec<TargetShape<'_>> = vec![TargetShape(self.host.target(self.target))];
        // The plan's targets are numbered from 0; the host has only this one.
        assert_eq!(self.target, TargetId(0), "a profile is of one target");
        let planned = vec![PlannedJob { job: job.clone(), target: self.target }];
        let plan = Plan::new(planned, &shapes).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            StandError(lines.join("; "))
        })?;
        let start = self.host.clock().now();
        let mut runner = Runner::new(plan, &shapes, &mut buffers, seed, start);
        drop(shapes);
        self.host.return_buffers(buffers);
        let mut stopped = false;
        loop {
            let stop_at = self.host.clock().now() + LOOK_EVERY;
            match self.host.run(&mut runner, stop_at) {
                RunEnd::Finished => break,
                RunEnd::Stuck => {
                    let sentence =
                        "the job waits for requests that nobody has; this is a bug, please report it";
                    return Err(StandError(sentence.to_owned()));
                }
                RunEnd::Stopped if !stopped && !go_on(self.host.clock().now()) => {
                    stopped = true;
                    runner.stop();
                }
                RunEnd::Stopped => {}
            }
        }
        let failed = runner.failures().next().map(|(name, direction, reply)| {
            format!("a {} of {name} failed: {}", direction.name(), reply.status)
        });
        let result = runner.into_results(self.host.buffers_mut()).remove(0);
        // What one cell left in caches is not the next one's to wait for.
        self.host.settle();
        failed.map_or(Ok(Done { result, stopped }), |sentence| Err(StandError(sentence)))
    }

    fn ceiling(&mut self) -> Option<f64> {
        None
    }

    fn set_written(&mut self) {}

    fn description(&self) -> Vec<Row> {
        self.description.clone()
    }

    fn environment(&self) -> Vec<Row> {
        Vec::new()
    }

    fn attestation(&self) -> Option<Attestation> {
        None
    }

    fn link_bytes_per_second(&self) -> Option<u64> {
        None
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
