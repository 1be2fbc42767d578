//! What the tests of the runner run on: a virtual drive, targets on it, jobs from text, and everything that was seen.

mod memory;

pub use memory::{Memory, Seen, Shape, State};

use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, ScheduledFault, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::wrap::{Fault, FaultRule, Stats, Trace, UnitCounts};
use ocssd_lightnvm::{
    BufId, Buffers, ChunkDescriptor, ChunkId, Device, Payload, PuId, Source, Tag, TargetId,
};
use ocssd_targets::registry::Parts;
use ocssd_targets::{Layout, Linear, Null, PlaneReads};
use ocssd_workload::job::{Job, JobErrors, parse_job_file};
use ocssd_workload::results::{Direction, JobResult};
use ocssd_workload::run::{JobPlan, LayOut, PlanError, PlannedJob, Runner, TargetShape};
use std::cell::RefCell;
use std::rc::Rc;

/// A drive that is watched, and whose commands can be made to fail.
pub type Watched = Trace<Stats<Fault<Flash>>>;

/// No test runs longer: a run that does not end by itself ends here, and fails.
const LIMIT: Nanos = Nanos::from_secs(10_000);
/// Events a trace keeps.
const EVENTS: usize = 1 << 14;

/// The log that `read_iolog=replay.log` replays: 12 I/Os in 1.5 ms.
pub const REPLAY_LOG: &str = "fio version 3 iolog\n1 /f add\n1 /f open\n1 /f read 0 4096\n101 /f read 40960 8192\n\
    201 /f write 0 4096\n301 /f read 4096 4096\n401 /f sync 0 0\n501 /f trim 8192 4096\n601 /f read 12288 4096\n\
    701 /f write 16384 16384\n801 /f read 0 4096\n901 /f read 81920 4096\n1201 /f read 90112 4096\n\
    1501 /f read 0 4096\n1501 /f close\n";

/// What `randrepeat=0` draws.
pub const FRESH_SEED: u64 = 0xDEAD_BEEF_0000;

/// The jobs of a job file without includes.
pub fn jobs(text: &str) -> Vec<Job> {
    try_jobs(text).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// As [`jobs`], or what is wrong with the text.
pub fn try_jobs(text: &str) -> Result<Vec<Job>, JobErrors> {
    let include = |name: &str| match name {
        "replay.log" => Ok(REPLAY_LOG.to_owned()),
        "odd.log" => Ok(REPLAY_LOG.replace("40960", "40970")),
        "two.log" => Ok(REPLAY_LOG.replace("101 /f", "101 /g")),
        "reads.log" => Ok("fio version 2 iolog\n/f read 8192 4096\n/f wait 2 0\n/f read 0 8192\n".to_owned()),
        _ => Err(format!("{name} is not there")),
    };
    let mut parsed = parse_job_file(text, "test", &|_| None, &include)?;
    parsed.draw_seeds(|| FRESH_SEED);
    Ok(parsed.jobs)
}

/// A small drive of the presets; `tiny` with eight chunks a unit, so that jobs come to the end of its zones.
pub fn preset(name: &str) -> Config {
    let mut config = presets::find(name).expect("a preset").config();
    if name == "tiny" {
        config.geometry.chunks_per_pu = 8;
        config.geometry.lba_format.chunk_bits = 3;
    }
    config
}

/// What a run left.
pub struct Outcome {
    pub results: Vec<JobResult>,
    /// First failures: job, direction, reply.
    pub failures: Vec<(String, Direction, BlockReply)>,
    pub unread: u64,
    pub notes: Vec<String>,
    pub hash: u64,
    /// From the start of the run to its end.
    pub took: Nanos,
    pub start: Nanos,
}

impl Outcome {
    /// The only job's result.
    pub fn only(&self) -> &JobResult {
        assert_eq!(self.results.len(), 1, "one worker was expected");
        &self.results[0]
    }
}

/// A drive, its targets and the loop.
pub struct World {
    pub host: Host<Watched, VirtualClock>,
    pub targets: Vec<TargetId>,
    /// What the memory device saw, if there is one.
    pub memory: Rc<RefCell<State>>,
    /// The chunks of the new drive.
    chunks: Vec<ChunkDescriptor>,
    /// No worker takes a shorter way than it must.
    pub goes_the_long_way: bool,
    /// The run is stopped from outside so long after its start.
    pub stopped_after: Option<Nanos>,
}

impl World {
    /// A drive without targets, which fails by these rules.
    pub fn drive(config: Config, faults: Vec<FaultRule>, scheduled: &[ScheduledFault]) -> Self {
        let mut flash = Flash::format(config).expect("a sound drive");
        scheduled.iter().for_each(|&fault| flash.schedule_fault(fault));
        let chunks =
            (0..flash.config().geometry.chunk_count()).map(|chunk| flash.chunk(ChunkId(chunk))).collect();
        let buffers = Buffers::new(flash.payload_format());
        let device = Trace::new(Stats::new(Fault::new(flash, faults)), EVENTS);
        let host = Host::new(device, VirtualClock::default(), buffers);
        Self {
            host,
            targets: Vec::new(),
            memory: Rc::default(),
            chunks,
            goes_the_long_way: false,
            stopped_after: None,
        }
    }

    /// A drive with one linear target on all its units.
    pub fn linear(config: Config) -> Self {
        let mut world = Self::drive(config, Vec::new(), &[]);
        let units = world.host.device().geometry().pu_count();
        world.add_linear(0..units, Layout::Striped);
        world
    }

    /// One memory device of 1000 blocks, 4 at a time, 100 us each; real bytes.
    pub fn memory() -> Self {
        Self::memory_of(Shape { blocks: 1000, service: Nanos::from_micros(100), servers: 4 })
    }

    /// One memory device of this shape; real bytes.
    pub fn memory_of(shape: Shape) -> Self {
        let mut world = Self::drive(Config { payload: Payload::Bytes, ..preset("tiny") }, Vec::new(), &[]);
        let target = Box::new(Memory::new(shape, Rc::clone(&world.memory)));
        world.add(target);
        world
    }

    /// A drive with a null target.
    pub fn null() -> Self {
        let mut world = Self::drive(preset("tiny"), Vec::new(), &[]);
        world.add(Box::new(Null::default()));
        world
    }

    pub fn add(&mut self, target: Box<dyn BlockTarget>) {
        let id = self.host.add(target);
        self.targets.push(id);
    }

    /// A linear target on these units of a drive nothing was written to yet.
    pub fn add_linear(&mut self, units: std::ops::Range<u32>, layout: Layout) {
        let units: Vec<PuId> = units.map(PuId).collect();
        let report = |chunk: ChunkId| self.chunks[usize::try_from(chunk.0).expect("an index")];
        let parts = Parts {
            geometry: self.host.device().geometry(),
            units: &units,
            report: &report,
            layout,
            plane_reads: PlaneReads::Aligned,
        };
        let target = Linear::new(&parts).expect("a usable window");
        self.add(Box::new(target));
    }

    /// Runs all jobs of a text on the first target, with seed 1.
    pub fn run(&mut self, text: &str) -> Outcome {
        self.run_on(text, &[], 1)
    }

    /// Runs the jobs of a text, each on the target of the same place (the first, where none is given).
    pub fn run_on(&mut self, text: &str, places: &[usize], seed: u64) -> Outcome {
        self.try_run(jobs(text), places, seed).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
    }

    /// Runs these jobs on the first target.
    pub fn run_jobs(&mut self, jobs: Vec<Job>) -> Outcome {
        self.try_run(jobs, &[], 1).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// The plan's complaint about a text.
    pub fn refusal(&mut self, text: &str) -> String {
        let errors =
            self.try_run(jobs(text), &[], 1).err().unwrap_or_else(|| panic!("was not refused: {text}"));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn try_run(&mut self, jobs: Vec<Job>, places: &[usize], seed: u64) -> Result<Outcome, Vec<PlanError>> {
        let place = |job: usize| self.targets[places.get(job).copied().unwrap_or(0)];
        let planned =
            jobs.into_iter().enumerate().map(|(number, job)| PlannedJob { job, target: place(number) });
        let planned = planned.collect();
        let mut buffers = self.host.take_buffers();
        let plan = JobPlan::new(planned, &self.shapes());
        let plan = match plan {
            Ok(plan) => plan,
            Err(errors) => {
                self.host.return_buffers(buffers);
                return Err(errors);
            }
        };
        let notes = plan.notes().to_vec();
        let mut lay_out = LayOut::new(&plan, &self.shapes(), &mut buffers);
        self.host.return_buffers(buffers);
        assert_eq!(self.host.run(&mut lay_out, LIMIT), RunEnd::Finished, "the layout, seed {seed}");
        assert_eq!(lay_out.failed(), None, "the layout, seed {seed}");
        lay_out.release(self.host.buffers_mut());
        self.host.settle();
        self.host.device_mut().inner_mut().clear();
        let start = self.host.clock().now();
        let mut buffers = self.host.take_buffers();
        let mut runner = Runner::new(plan, &self.shapes(), &mut buffers, seed, start);
        if self.goes_the_long_way {
            runner.go_the_long_way();
        }
        self.host.return_buffers(buffers);
        if let Some(after) = self.stopped_after {
            assert_eq!(
                self.host.run(&mut runner, start + after),
                RunEnd::Stopped,
                "it ends too soon to be stopped"
            );
            runner.stop();
        }
        let end = self.host.run(&mut runner, LIMIT);
        assert_eq!(end, RunEnd::Finished, "seed {seed}: {:?}", runner.progress(self.host.clock().now()));
        self.targets.iter().for_each(|&id| self.host.target(id).check());
        let failures = runner.failures().map(|(name, direction, reply)| (name.to_owned(), direction, *reply));
        let failures = failures.collect();
        let (unread, hash) = (runner.unread(), self.host.device().hash());
        let took = self.host.clock().now() - start;
        let results = runner.into_results(self.host.buffers_mut());
        Ok(Outcome { results, failures, unread, notes, hash, took, start })
    }

    fn shapes(&self) -> Vec<TargetShape<'_>> {
        self.targets.iter().map(|&id| TargetShape(self.host.target(id))).collect()
    }

    /// What the drive was asked to do since the measured run began, all units together.
    pub fn counts(&self) -> UnitCounts {
        let mut sum = UnitCounts::default();
        for unit in self.host.device().inner().units() {
            for (sum, more) in
                [(&mut sum.read, unit.read), (&mut sum.write, unit.write), (&mut sum.reset, unit.reset)]
            {
                sum.commands += more.commands;
                sum.sectors += more.sectors;
            }
        }
        sum
    }

    /// What the memory device saw.
    pub fn seen(&self) -> Vec<Seen> {
        self.memory.borrow().seen.clone()
    }

    /// What blocks of the first target hold; `None` if they cannot be read.
    pub fn read(&mut self, block: u64, count: u32) -> Option<Vec<u8>> {
        let buffer = self.host.buffers_mut().take(count);
        let mut source =
            OneRead { target: self.targets[0], block, count, buffer, asked: false, found: None, done: false };
        assert_eq!(self.host.run(&mut source, Nanos::MAX), RunEnd::Finished);
        self.host.buffers_mut().give_back(buffer);
        source.found
    }
}

/// A source that reads once.
struct OneRead {
    target: TargetId,
    block: u64,
    count: u32,
    buffer: BufId,
    asked: bool,
    found: Option<Vec<u8>>,
    done: bool,
}

impl Source for OneRead {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let Self { target, block, count, buffer, .. } = *self;
        Some((target, BlockRequest { tag: Tag(0), op: BlockOp::Read, block, count, buffer: Some(buffer) }))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: BlockRequest) {
        panic!("an idle target refused {request:?}");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        self.done = true;
        self.found = reply.status.has_data().then(|| buffers.data(self.buffer, 0, self.count).to_vec());
    }

    fn is_finished(&self) -> bool {
        self.done
    }
}
