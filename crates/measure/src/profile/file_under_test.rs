//! Jobs on a real file or device, in wall time.

use super::device_under_test::{DeviceUnderTest, Done, GoOn, Look, TestError, thread_cpu};
use super::record::as_f64;
use super::schedule::Bounds;
use super::timeline::{DriveState, Timeline};
use crate::storage::{
    Attestation, Engine, FileCounts, FileShape, FileTarget, IoAccounting, LoopEnd, Subject, Surroundings,
    SystemRoot, description, environment, make_backend, process_cpu, run, stamp_format,
};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, WallClock};
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_workload::job::{Job, parse_command_line};
use ocssd_workload::results::{ClockKind, CpuUse, JobResult, Row, VerifyStats};
use ocssd_workload::run::{JobPlan, PlannedJob, Runner, Tally, TargetShape};

/// Blocks that jobs see where I/Os are not smaller: what file systems and drives deal in.
const BLOCK_BYTES: u32 = 4096;

/// The device under test.
pub struct FileUnderTest {
    subject: Subject,
    system: SystemRoot,
    engine: Engine,
    /// What really does I/O, at depths above 1.
    engine_word: &'static str,
    clock: WallClock,
    accounting: IoAccounting,
    counts: FileCounts,
    written: bool,
    notes: Vec<String>,
}

impl FileUnderTest {
    /// Jobs on `subject` by `engine`.
    ///
    /// # Errors
    /// If that engine is refused.
    pub fn new(subject: Subject, system: SystemRoot, engine: Engine) -> Result<Self, TestError> {
        let accounting = IoAccounting::new(system.clone(), subject.device);
        let (backend, note) = make_backend(engine, &subject.file, 2, 4096).map_err(|error| {
            TestError(format!("io_uring is refused: {error}; leave --engine out to use threads then"))
        })?;
        // Two slots are threads that work at the same time, which fio calls posixaio.
        let engine_word = if backend.engine() == "psync" { "posixaio" } else { backend.engine() };
        let mut notes = subject.notes.clone();
        notes.extend(note);
        Ok(Self {
            subject,
            system,
            engine,
            engine_word,
            clock: WallClock::default(),
            accounting,
            counts: FileCounts::default(),
            written: false,
            notes,
        })
    }

    /// What is measured.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    fn note(&mut self, note: Option<String>) {
        if let Some(note) = note.filter(|note| !self.notes.contains(note)) {
            self.notes.push(note);
        }
    }

    fn run_on(
        &mut self,
        engine: Engine,
        job: &Job,
        seed: u64,
        go_on: GoOn<'_>,
    ) -> Result<(Done, FileCounts), TestError> {
        let (depth, largest) = (job.options.iodepth, largest(job));
        let bytes = usize::try_from(largest).map_err(|error| TestError(error.to_string()))?;
        let (backend, note) = make_backend(engine, &self.subject.file, depth, bytes)
            .map_err(|error| TestError(format!("{depth} I/Os at a time cannot be set up: {error}")))?;
        self.note(note);
        let block_bytes = if largest < u64::from(BLOCK_BYTES) { self.subject.unit } else { BLOCK_BYTES };
        let blocks = self.subject.bytes / u64::from(block_bytes);
        let shape = FileShape { block_bytes, blocks, is_stamped: self.written };
        let mut target = FileTarget::new(backend, depth, shape, seed);
        let mut buffers = Buffers::new(stamp_format());
        let shapes = [TargetShape(&target)];
        let planned = vec![PlannedJob { job: job.clone(), target: TargetId(0) }];
        let plan = JobPlan::new(planned, &shapes).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            TestError(lines.join("; "))
        })?;
        let start = self.clock.now();
        let mut runner = Runner::new(plan, &shapes, &mut buffers, seed, start);
        let (cpu, spent_before) = (thread_cpu(), process_cpu());
        let mut asked = |now: Nanos, runner: &Runner| go_on(&FileLook { now, runner });
        let mut end = run(&mut target, &mut runner, &mut buffers, &mut self.clock, &mut asked);
        let stopped = matches!(end, Ok(LoopEnd::Stopped));
        if stopped {
            runner.stop();
            end = run(&mut target, &mut runner, &mut buffers, &mut self.clock, &mut |_, _| true);
        }
        let counts = target.counts();
        end.map_err(|error| TestError(error.to_string()))?;
        let spent_after = process_cpu();
        let mut clones = runner.into_results(&mut buffers);
        let mut result = clones.remove(0);
        result.cpu = spent(cpu, thread_cpu());
        result.verify =
            (counts.checked > 0).then_some(VerifyStats { checked: counts.checked, failed: counts.foreign });
        if let Some(error) = target.first_error() {
            return Err(TestError(failure(&result, error)));
        }
        let spent_ns = spent_before.zip(spent_after).map(|(before, after)| after.saturating_since(before).0);
        let cpu_ns_per_io = spent_ns
            .filter(|_| counts.transfers > 0)
            .map(|spent_ns| as_f64(spent_ns) / as_f64(counts.transfers));
        Ok((Done { result, clones, cpu_ns_per_io, stopped }, counts))
    }
}

/// A job on a file under way.
struct FileLook<'a> {
    now: Nanos,
    runner: &'a Runner,
}

impl Look for FileLook<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn tally(&self) -> Tally {
        self.runner.tally()
    }

    fn drive(&self) -> Option<DriveState> {
        None
    }
}

/// Bytes of the largest I/O of a job whose I/Os have one size.
fn largest(job: &Job) -> u64 {
    let sizes = job.given.iter().rev().find(|(name, _)| name == "bs");
    sizes.and_then(|(_, text)| text.parse().ok()).unwrap_or(u64::from(BLOCK_BYTES))
}

fn spent(before: CpuUse, after: CpuUse) -> CpuUse {
    let user = after.user.saturating_since(before.user);
    let system = after.system.saturating_since(before.system);
    CpuUse { user, system, ..CpuUse::default() }
}

/// What to do about an I/O that failed.
fn failure(result: &JobResult, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::StorageFull => "the disk is full: lower --size, or name another directory",
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            "it may not be written: name something else, or measure reads only"
        }
        std::io::ErrorKind::FileTooLarge => "a file may not be that large (ulimit -f): lower --size",
        std::io::ErrorKind::WriteZero => {
            "the disk is full, or a file may not be that large (ulimit -f): lower --size, or name another directory"
        }
        std::io::ErrorKind::UnexpectedEof => "it became shorter while it was measured",
        _ => "see what the kernel says of the device (dmesg)",
    };
    format!("an I/O of {} failed: {error}; {advice}", result.name)
}

impl DeviceUnderTest for FileUnderTest {
    fn bounds(&self) -> Bounds {
        Bounds { unit: self.subject.unit, bytes: self.subject.bytes, writable: self.subject.writable }
    }

    fn shrink_to(&mut self, bytes: u64) {
        self.subject.shrink_to(bytes);
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn clock(&self) -> ClockKind {
        ClockKind::Wall
    }

    fn engine(&self, depth: u32) -> &'static str {
        if self.engine_word == "posixaio" && depth == 1 { "psync" } else { self.engine_word }
    }

    fn direct(&self) -> bool {
        self.subject.direct
    }

    fn filename(&self) -> String {
        match self.subject.kind {
            crate::storage::SubjectKind::Temporary => self.subject.path.join("FILE").display().to_string(),
            _ => self.subject.path.display().to_string(),
        }
    }

    fn carry_out(&mut self, job: &Job, seed: u64, go_on: GoOn<'_>) -> Result<Done, TestError> {
        let (done, counts) = self.run_on(self.engine, job, seed, go_on)?;
        self.counts.read_bytes += counts.read_bytes;
        self.counts.written_bytes += counts.written_bytes;
        self.counts.checked += counts.checked;
        self.counts.foreign += counts.foreign;
        self.counts.transfers += counts.transfers;
        Ok(done)
    }

    fn ceiling(&mut self) -> Option<f64> {
        let text = "--name=ceiling --ioengine=null --rw=randread --bs=4096 --iodepth=32 --size=16m --norandommap \
                    --time_based --runtime=100ms --ramp_time=20ms";
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let parsed = parse_command_line(&words, &|_| None, &|_| Err(String::new())).ok()?;
        let job = parsed.jobs.first()?;
        // The best of three: what else runs on the machine can only take from it.
        let runs = (0..3).filter_map(|_| self.run_on(Engine::Null, job, 1, &mut |_| true).ok());
        runs.map(|(done, _)| iops(&done.result)).reduce(f64::max)
    }

    fn set_written(&mut self) {
        self.written = true;
    }

    fn description(&self) -> Vec<Row> {
        description(&self.subject)
    }

    fn environment(&self) -> Vec<Row> {
        environment(&self.system, &self.subject)
    }

    fn attestation(&self) -> Option<Attestation> {
        Some(self.accounting.attest(&self.subject, self.counts))
    }

    fn surroundings(&self) -> Option<Surroundings> {
        Some(Surroundings::read(&self.system, self.subject.device))
    }

    fn timeline(&self) -> Option<&Timeline> {
        None
    }

    fn sector_bytes(&self) -> Option<u32> {
        None
    }

    fn link_bytes_per_second(&self) -> Option<u64> {
        self.subject.disk.as_ref()?.link_bytes_per_second
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// I/Os per second of all directions, over the time the job was measured.
#[expect(clippy::cast_precision_loss, reason = "counts of I/Os are far below 2^53")]
pub(super) fn iops(result: &JobResult) -> f64 {
    let ios: u64 = result.directions().iter().map(|side| side.total_ios).sum();
    let seconds = result.run_time.as_secs_f64();
    if seconds > 0.0 { ios as f64 / seconds } else { 0.0 }
}
