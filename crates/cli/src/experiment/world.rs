//! A drive with targets in virtual time, and fio jobs run on them one text after the other.
//!
//! The drive keeps its data from job to job. Deliberately not here: what the jobs are.

use crate::interrupt::{self, Interrupted};
use crate::shut_down::{last_request, shut_down};
use anyhow::{Context, anyhow, bail, ensure};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, FlashCounters};
use ocssd_lightnvm::block::{BlockTarget, CounterValue};
use ocssd_lightnvm::{Buffers, PuId, TargetId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry;
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, StatsHandle};
use ocssd_workload::job::parse_job_file;
use ocssd_workload::results::JobResult;
use ocssd_workload::run::{JobPlan, LayOut, PlannedJob, Runner, TargetShape};
use std::ops::Range;

/// Virtual time between two looks at a run.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// A target to be made.
pub struct Instance {
    /// The kind of target.
    pub kind: &'static str,
    /// Its parallel units.
    pub units: Vec<PuId>,
    /// Its options.
    pub options: Vec<(String, String)>,
    /// The host's CPUs before it; none cost nothing.
    pub host: Option<HostCpuConfig>,
}

impl Instance {
    /// A target over these units, numbered through all groups.
    pub fn new(kind: &'static str, units: Range<u32>) -> Self {
        Self { kind, units: units.map(PuId).collect(), options: Vec::new(), host: None }
    }

    /// Behind the host of FAST'17, which runs pblk: 2.32 us for a read, 2.9 us for a write. What is measured through `linear`
    /// stands for pblk as well, whose reads it makes.
    pub fn on_fast17_host(mut self) -> Self {
        let host = HostCpuConfig::e5_2620v3();
        self.host = Some(if self.kind == "block_ssd" { host.without_ftl() } else { host });
        self
    }

    /// With an option.
    #[expect(clippy::needless_pass_by_value, reason = "numbers and names alike, as they stand at the call")]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.options.push((name.to_owned(), value.to_string()));
        self
    }
}

/// A target, made or mounted, and what its host counts.
type Made = (Box<dyn BlockTarget>, Option<StatsHandle>);

/// Makes a target where none is, and mounts it where it was made.
fn make(caller: &mut Caller<'_, Flash, VirtualClock>, want: &Instance) -> anyhow::Result<Made> {
    let spec = registry::TargetSpec { units: &want.units, layout: Layout::Striped, options: &want.options };
    let kind = crate::kinds::find(want.kind).map_err(anyhow::Error::msg)?;
    let mut cpu = None;
    let on_host = |target: Box<dyn BlockTarget>| -> Result<Box<dyn BlockTarget>, String> {
        let Some(host) = &want.host else { return Ok(target) };
        let wrapped = HostCpu::new(target, host.clone()).map_err(|problems| problems.to_string())?;
        cpu = Some(wrapped.stats());
        Ok(Box::new(wrapped))
    };
    let made = kind.make_within(caller, &spec, on_host).map_err(anyhow::Error::msg)?;
    Ok((made.target, cpu))
}

/// Everything of one point.
pub struct World {
    host: Host<Flash, VirtualClock>,
    targets: Vec<TargetId>,
    cpus: Vec<Option<StatsHandle>>,
}

impl World {
    /// Formats the drive and makes the targets.
    ///
    /// # Errors
    /// A sentence, if drive or targets do not fit.
    pub fn new(config: Config, instance: &[Instance]) -> anyhow::Result<Self> {
        let mut flash = Flash::format(config).map_err(|problems| anyhow!("{problems}"))?;
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut made: Vec<Box<dyn BlockTarget>> = Vec::new();
        let mut cpus = Vec::new();
        for want in instance {
            let mut caller =
                Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
            let (target, cpu) = make(&mut caller, want)?;
            made.push(target);
            cpus.push(cpu);
        }
        let mut host = Host::new(flash, clock, buffers);
        let targets = made.into_iter().map(|target| host.add(target)).collect();
        Ok(Self { host, targets, cpus })
    }

    /// Shuts a target down and mounts it again, with other options perhaps. What it was asked must have ended.
    ///
    /// # Errors
    /// A sentence, if the options do not fit what is there.
    pub fn mount_again(&mut self, target: usize, want: &Instance) -> anyhow::Result<()> {
        let id = self.targets[target];
        let last = last_request(self.host.target(id)).map(|request| (id, request));
        shut_down(&mut self.host, last.into_iter().collect())?;
        let (made, cpu) = make(&mut self.host.caller(), want)?;
        drop(self.host.replace(id, made));
        self.cpus[target] = cpu;
        Ok(())
    }

    /// Runs the jobs of a fio text, the first on target `on[0]`, and so on; what they read is laid out before.
    ///
    /// # Errors
    /// A sentence, if a job is wrong, does not fit its target, or an I/O of it fails.
    pub fn run(&mut self, text: &str, on: &[usize], seed: u64) -> anyhow::Result<Vec<JobResult>> {
        self.watch(text, on, seed, &mut |_| {})
    }

    /// The same, with a look at the world now and then while it runs.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn watch(
        &mut self,
        text: &str,
        on: &[usize],
        seed: u64,
        look: &mut dyn FnMut(&Self),
    ) -> anyhow::Result<Vec<JobResult>> {
        let plan = self.plan(text, on)?;
        self.lay_out(&plan)?;
        let mut buffers = self.host.take_buffers();
        let now = self.host.clock().now();
        let mut runner = Runner::new(plan, &self.shapes(), &mut buffers, seed, now);
        self.host.return_buffers(buffers);
        loop {
            match self.host.run(&mut runner, self.host.clock().now() + LOOK_EVERY) {
                RunEnd::Finished => break,
                RunEnd::Stuck => bail!("the run waits for requests that nobody has: {text}"),
                RunEnd::Stopped if interrupt::is_heard() => return Err(Interrupted.into()),
                RunEnd::Stopped => look(self),
            }
        }
        if let Some((job, direction, reply)) = runner.failures().next() {
            bail!("a {} of job \"{job}\" failed: {}", direction.name(), reply.status.name());
        }
        Ok(runner.into_results(self.host.buffers_mut()))
    }

    fn plan(&self, text: &str, on: &[usize]) -> anyhow::Result<JobPlan> {
        let parsed = parse_job_file(text, "experiment", &|_| None, &|_| Err("no file".to_owned()))
            .with_context(|| format!("the job of this experiment: {text}"))?;
        ensure!(parsed.jobs.len() == on.len(), "{} jobs for {} targets", parsed.jobs.len(), on.len());
        let jobs = parsed.jobs.into_iter().zip(on);
        let jobs = jobs.map(|(job, &on)| PlannedJob { job, target: self.targets[on] }).collect();
        JobPlan::new(jobs, &self.shapes()).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow!(lines.join("\n"))
        })
    }

    fn lay_out(&mut self, plan: &JobPlan) -> anyhow::Result<()> {
        let mut buffers = self.host.take_buffers();
        let mut source = LayOut::new(plan, &self.shapes(), &mut buffers);
        self.host.return_buffers(buffers);
        ensure!(
            self.host.run(&mut source, Nanos::MAX) == RunEnd::Finished,
            "the layout waits for requests that nobody has"
        );
        if let Some(reply) = source.failed() {
            bail!("what the jobs read could not be laid out: {}", reply.status.name());
        }
        source.release(self.host.buffers_mut());
        Ok(())
    }

    fn shapes(&self) -> Vec<TargetShape<'_>> {
        self.targets.iter().map(|&id| TargetShape(self.host.target(id))).collect()
    }

    /// Lets what goes on behind the replies end: buffers drain.
    pub fn settle(&mut self) {
        self.host.settle();
    }

    /// A counter or gauge of a target; `None` if it has none of this name.
    pub fn counter(&self, target: usize, name: &str) -> Option<u64> {
        let counters = self.host.target(self.targets[target]).counters();
        let found = counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
        found.and_then(|value| match value {
            CounterValue::Count(value) | CounterValue::Gauge(value) => Some(value),
            CounterValue::Ratio(_) => None,
        })
    }

    /// Blocks of a target.
    pub fn blocks(&self, target: usize) -> u64 {
        self.host.target(self.targets[target]).block_count()
    }

    /// What the host's CPUs before a target counted, if it has any.
    pub fn cpu(&self, target: usize) -> Option<&StatsHandle> {
        self.cpus[target].as_ref()
    }

    /// What the drive counted.
    pub fn flash(&self) -> FlashCounters {
        self.host.device().counters()
    }
}
