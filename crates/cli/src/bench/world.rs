//! A drive, a target and a job, laid out and ready to be measured.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, Lateness, RunEnd, VirtualClock, WallClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::CounterValue;
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::wrap::{Stats, Trace};
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry;
use ocssd_workload::job::parse_job_file;
use ocssd_workload::results::JobResult;
use ocssd_workload::run::{JobPlan, LayOut, PlannedJob, Runner, TargetShape};

type Device = Trace<Stats<Flash>>;

/// Everything of one benchmark.
pub struct World<C> {
    host: Host<Device, C>,
    runner: Runner,
    target: TargetId,
}

/// What a job sees of a host's targets, up to the last.
fn shapes<D: ocssd_lightnvm::Device>(host: &Host<D, VirtualClock>, last: TargetId) -> Vec<TargetShape<'_>> {
    (0..=last.0).map(|number| TargetShape(host.target(TargetId(number)))).collect()
}

/// A job's runner, with what it reads laid out.
pub fn runner<D: ocssd_lightnvm::Device>(
    host: &mut Host<D, VirtualClock>,
    id: TargetId,
    job: &str,
) -> Runner {
    let parsed = parse_job_file(job, "bench", &|_| None, &|_| Err("none".to_owned())).expect("a sound job");
    let jobs = vec![PlannedJob { job: parsed.jobs[0].clone(), target: id }];
    let mut buffers = host.take_buffers();
    let plan = JobPlan::new(jobs, &shapes(host, id)).expect("a job that fits");
    let mut lay_out = LayOut::new(&plan, &shapes(host, id), &mut buffers);
    host.return_buffers(buffers);
    assert_eq!(host.run(&mut lay_out, Nanos::MAX), RunEnd::Finished);
    lay_out.release(host.buffers_mut());
    host.settle();
    let mut buffers = host.take_buffers();
    let now = host.clock().now();
    let runner = Runner::new(plan, &shapes(host, id), &mut buffers, 1, now);
    host.return_buffers(buffers);
    runner
}

/// What a benchmark runs on.
#[derive(Clone, Copy)]
pub struct Setting {
    /// A preset.
    pub preset: &'static str,
    /// Another number of sectors in a chunk: a drive with as many lines, that fits memory.
    pub sectors_per_chunk: Option<u32>,
    /// Another number of chunks in a unit.
    pub chunks_per_pu: Option<u32>,
    /// A target by its name.
    pub target: &'static str,
    /// Jobs that are run first, one after the other, and not measured.
    pub before: &'static [&'static str],
}

impl World<VirtualClock> {
    /// One job on one target over all units, with these options of the target's.
    ///
    /// # Panics
    /// If the job or the preset is not sound: both are constants of this program. If the target refuses the options.
    pub fn new(setting: &Setting, options: &[(String, String)], job: &str) -> Self {
        let mut config = presets::find(setting.preset).expect("a preset").config();
        config.geometry.sectors_per_chunk =
            setting.sectors_per_chunk.unwrap_or(config.geometry.sectors_per_chunk);
        config.geometry.chunks_per_pu = setting.chunks_per_pu.unwrap_or(config.geometry.chunks_per_pu);
        let flash = Flash::format(config).expect("a sound preset");
        let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut device = Trace::new(Stats::new(flash), 0);
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options };
        let target = registry::find(setting.target).and_then(|kind| kind.make(&mut caller, &spec));
        let mut host = Host::new(device, clock, buffers);
        let id = host.add(target.expect("a target").target);
        for job in setting.before {
            let mut before = runner(&mut host, id, job);
            assert_eq!(host.run(&mut before, Nanos::MAX), RunEnd::Finished);
            let failed = before.failures().next();
            assert!(failed.is_none(), "an I/O before a benchmark failed: {failed:?}");
            drop(before.into_results(host.buffers_mut()));
        }
        let runner = runner(&mut host, id, job);
        Self { host, runner, target: id }
    }

    /// The same world, which goes on in real time.
    pub fn on_wall_clock(self) -> World<WallClock> {
        let clock = WallClock::starting_at(self.host.clock().now());
        World { host: self.host.with_clock(clock), runner: self.runner, target: self.target }
    }
}

impl<C: Clock> World<C> {
    /// Runs the job; returns its I/Os.
    ///
    /// # Panics
    /// If the run does not finish, or anything in it failed.
    pub fn measure(&mut self) -> u64 {
        assert_eq!(self.host.run(&mut self.runner, Nanos::MAX), RunEnd::Finished);
        let failed = self.runner.failures().next();
        assert!(failed.is_none(), "an I/O of a benchmark failed: {failed:?}");
        self.runner.progress(self.host.clock().now()).ios
    }

    /// A counter of the target, if it has one of this name.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let counters = self.host.target(self.target).counters();
        counters.into_iter().find(|counter| counter.name == name).and_then(|counter| match counter.value {
            CounterValue::Count(value) | CounterValue::Gauge(value) => Some(value),
            CounterValue::Ratio(_) => None,
        })
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
