//! Jobs on a virtual drive, in virtual time: the same cells, the same report, no machine in between.

use super::device_under_test::{DeviceUnderTest, Done, GoOn, Look, TestError};
use super::schedule::Bounds;
use super::timeline::{DriveState, Timeline};
use crate::storage::{Attestation, Surroundings};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{Device, TargetId};
use ocssd_workload::job::Job;
use ocssd_workload::results::{ClockKind, Row};
use ocssd_workload::run::{JobPlan, PlannedJob, Runner, Tally, TargetShape};

/// Virtual time between two looks at `go_on` (chosen: milliseconds of real time on most drives).
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// The device under test.
pub struct HostUnderTest<D: Device> {
    host: Host<D, VirtualClock>,
    target: TargetId,
    bytes: u64,
    description: Vec<Row>,
    probe: Probe<D>,
    timeline: Timeline,
}

/// How to look into a device and the target on it.
pub type Probe<D> = fn(&D, &dyn BlockTarget) -> DriveState;

/// A job on a virtual drive under way.
struct HostLook<'a, D: Device> {
    host: &'a Host<D, VirtualClock>,
    target: TargetId,
    probe: Probe<D>,
    runner: &'a Runner,
}

impl<D: Device> Look for HostLook<'_, D> {
    fn now(&self) -> Nanos {
        self.host.clock().now()
    }

    fn tally(&self) -> Tally {
        self.runner.tally()
    }

    fn drive(&self) -> Option<DriveState> {
        Some((self.probe)(self.host.device(), self.host.target(self.target)))
    }
}

impl<D: Device> HostUnderTest<D> {
    /// Jobs on a block target of `host`, which must have no zones; `probe` looks into the drive.
    ///
    /// # Panics
    /// If the target has zones.
    #[must_use]
    pub fn new(
        host: Host<D, VirtualClock>,
        target: TargetId,
        description: Vec<Row>,
        probe: Probe<D>,
    ) -> Self {
        let shape = host.target(target);
        assert!(shape.zones().is_none(), "small random writes need a target without zones");
        let bytes = shape.block_count() * u64::from(shape.block_bytes());
        // The largest I/O fits everywhere.
        let bytes = bytes >> 22 << 22;
        Self { host, target, bytes, description, probe, timeline: Timeline::default() }
    }

    const fn look<'a>(&'a self, runner: &'a Runner) -> HostLook<'a, D> {
        HostLook { host: &self.host, target: self.target, probe: self.probe, runner }
    }

    /// Keeps how the drive is now, if the last time is long ago.
    fn note_moment(&mut self) {
        let now = self.host.clock().now();
        if self.timeline.is_due(now) {
            let state = (self.probe)(self.host.device(), self.host.target(self.target));
            self.timeline.keep(now, state);
        }
    }
}

impl<D: Device> DeviceUnderTest for HostUnderTest<D> {
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

    fn carry_out(&mut self, job: &Job, seed: u64, go_on: GoOn<'_>) -> Result<Done, TestError> {
        let mut buffers = self.host.take_buffers();
        let shapes: Vec<TargetShape<'_>> = vec![TargetShape(self.host.target(self.target))];
        // The plan's targets are numbered from 0; the host has only this one.
        assert_eq!(self.target, TargetId(0), "a profile is of one target");
        let planned = vec![PlannedJob { job: job.clone(), target: self.target }];
        let plan = JobPlan::new(planned, &shapes).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            TestError(lines.join("; "))
        })?;
        let start = self.host.clock().now();
        let mut runner = Runner::new(plan, &shapes, &mut buffers, seed, start);
        drop(shapes);
        self.host.return_buffers(buffers);
        let mut stopped = false;
        loop {
            self.note_moment();
            let now = self.host.clock().now();
            let stop_at = now + LOOK_EVERY.min(self.timeline.interval());
            match self.host.run(&mut runner, stop_at) {
                RunEnd::Finished => break,
                RunEnd::Stuck => {
                    let sentence =
                        "the job waits for requests that nobody has; this is a bug, please report it";
                    return Err(TestError(sentence.to_owned()));
                }
                RunEnd::Stopped if !stopped && !go_on(&self.look(&runner)) => {
                    stopped = true;
                    runner.stop();
                }
                RunEnd::Stopped => {}
            }
        }
        let failed = runner.failures().next().map(|(name, direction, reply)| {
            format!("a {} of {name} failed: {}", direction.name(), reply.status)
        });
        let mut clones = runner.into_results(self.host.buffers_mut());
        let result = clones.remove(0);
        // What one cell left in caches is not the next one's to wait for.
        self.host.settle();
        self.note_moment();
        let done = Done { result, clones, cpu_ns_per_io: None, stopped };
        failed.map_or(Ok(done), |sentence| Err(TestError(sentence)))
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

    fn surroundings(&self) -> Option<Surroundings> {
        None
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(&self.timeline)
    }

    fn sector_bytes(&self) -> Option<u32> {
        Some(self.host.device().geometry().sector_bytes)
    }

    fn link_bytes_per_second(&self) -> Option<u64> {
        None
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
