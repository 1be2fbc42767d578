//! A drive, a target and a job, laid out and ready to be measured.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, Lateness, RunEnd, VirtualClock, WallClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::wrap::{Stats, Trace};
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry;
use ocssd_workload::job::{IoEngine, parse_job_file};
use ocssd_workload::results::JobResult;
use ocssd_workload::run::{LayOut, Plan, PlannedJob, Runner, TargetShape};

type Device = Trace<Stats<Flash>>;

/// Everything of one benchmark.
pub struct World<C> {
    host: Host<Device, C>,
    runner: Runner,
}

impl World<VirtualClock> {
    /// One job on one target over all units of a preset.
    ///
    /// # Panics
    /// If the job or the preset is not sound: both are constants of this program.
    pub fn new(preset: &str, job: &str) -> Self {
        let config = presets::find(preset).expect("a preset").config();
        let flash = Flash::format(config).expect("a sound preset");
        let geometry = flash.config().geometry.clone();
        let parsed =
            parse_job_file(job, "bench", &|_| None, &|_| Err("none".to_owned())).expect("a sound job");
        let job = parsed.jobs[0].clone();
        let kind = if job.options.ioengine == IoEngine::Null { "null" } else { "linear" };
        let units = UnitSelection::All.resolve(&geometry).expect("every unit");
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut device = Trace::new(Stats::new(flash), 0);
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let wish = registry::Wish { units: &units, layout: Layout::Striped, options: &[] };
        let target =
            registry::find(kind).and_then(|kind| kind.make(&mut caller, &wish)).expect("a target").target;
        let jobs = vec![PlannedJob { job, target: TargetId(0) }];
        let plan = Plan::new(jobs, &[TargetShape(target.as_ref())]).expect("a job that fits");
        let mut host = Host::new(device, clock, buffers);
        let id = host.add(target);
        let mut buffers = host.take_buffers();
        let mut lay_out = LayOut::new(&plan, &[TargetShape(host.target(id))], &mut buffers);
        host.return_buffers(buffers);
        assert_eq!(host.run(&mut lay_out, Nanos::MAX), RunEnd::Finished);
        lay_out.release(host.buffers_mut());
        host.settle();
        let mut buffers = host.take_buffers();
        let now = host.clock().now();
        let runner = Runner::new(plan, &[TargetShape(host.target(id))], &mut buffers, 1, now);
        host.return_buffers(buffers);
        Self { host, runner }
    }

    /// The same world, which goes on in real time.
    pub fn on_wall_clock(self) -> World<WallClock> {
        let clock = WallClock::starting_at(self.host.clock().now());
        World { host: self.host.with_clock(clock), runner: self.runner }
    }
}

impl<C: Clock> World<C> {
    /// Runs the job; returns its I/Os.
    ///
    /// # Panics
    /// If the run does not finish, or anything in it failed.
    pub fn measure(&mut self) -> u64 {
        assert_eq!(self.host.run(&mut self.runner, Nanos::MAX), RunEnd::Finished);
        assert_eq!(self.runner.failures().count(), 0, "an I/O of a benchmark failed");
        self.runner.progress(self.host.clock().now()).ios
    }

    /// What happened.
    pub fn hash(&self) -> u64 {
        self.host.device().hash()
    }

    /// The job's result, and how late the clock was.
    pub fn into_result(mut self) -> (JobResult, Option<Lateness>) {
        let lateness = self.host.clock().lateness();
        let mut results = self.runner.into_results(self.host.buffers_mut());
        (results.remove(0), lateness)
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.host.clock().now()
    }
}
