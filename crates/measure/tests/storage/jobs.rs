//! fio jobs on a file, by both back ends.

use ocssd_base::Nanos;
use ocssd_engine::WallClock;
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_measure::storage::{
    Engine, FileCounts, FileShape, FileTarget, IoAccounting, LoopEnd, Subject, SubjectOptions, SystemRoot,
    make_backend, run, stamp_format,
};
use ocssd_workload::job::{Job, parse_command_line};
use ocssd_workload::results::JobResult;
use ocssd_workload::run::{JobPlan, PlannedJob, Runner, TargetShape};

const FILE_BYTES: u64 = 16 << 20;

pub fn temporary() -> Subject {
    let options = SubjectOptions {
        path: std::env::temp_dir(),
        bytes: Some(FILE_BYTES),
        overwrite: false,
        serial: None,
        direct: true,
    };
    Subject::open(&options, &SystemRoot::default()).expect("the temporary directory takes a file of 16 MiB")
}

fn job(arguments: &str) -> Job {
    let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let parsed = parse_command_line(&words, &|_| None, &|_| Err("no files".to_owned())).expect(arguments);
    parsed.jobs.into_iter().next().expect("one job")
}

/// Runs one job; `stops_at` asks it to stop then.
pub fn carry_out(
    subject: &Subject,
    engine: Engine,
    text: &str,
    block_bytes: u32,
    stamped: bool,
) -> (JobResult, FileCounts) {
    let job = job(text);
    let depth = job.options.iodepth;
    let (backend, _) = make_backend(engine, &subject.file, depth, 1 << 20).expect("a back end");
    let shape =
        FileShape { block_bytes, blocks: subject.bytes / u64::from(block_bytes), is_stamped: stamped };
    let mut target = FileTarget::new(backend, depth, shape, 7);
    let mut buffers = Buffers::new(stamp_format());
    let planned = vec![PlannedJob { job, target: TargetId(0) }];
    let shapes = [TargetShape(&target)];
    let plan = JobPlan::new(planned, &shapes).expect("the job fits");
    let mut runner = Runner::new(plan, &shapes, &mut buffers, 7, Nanos::ZERO);
    let mut clock = WallClock::default();
    let end =
        run(&mut target, &mut runner, &mut buffers, &mut clock, &mut |_, _| true).expect("the file answers");
    assert_eq!(end, LoopEnd::Finished);
    let counts = target.counts();
    (runner.into_results(&mut buffers).remove(0), counts)
}

pub const LAY_OUT: &str = "--name=w --rw=write --bs=1m --iodepth=4 --size=16m";

#[test]
fn what_is_written_is_read_back_by_either_way() {
    for engine in [Engine::Best, Engine::Threads] {
        let subject = temporary();
        let (written, counts) = carry_out(&subject, engine, LAY_OUT, 4096, false);
        assert_eq!((written.write.total_ios, counts.written_bytes), (16, FILE_BYTES), "{engine:?}");
        let text = "--name=r --rw=randread --bs=4k --iodepth=8 --size=16m --number_ios=2000 --norandommap";
        let (read, counts) = carry_out(&subject, engine, text, 4096, true);
        assert_eq!((read.read.total_ios, read.error), (2000, 0), "{engine:?}");
        assert_eq!((counts.checked, counts.foreign), (2000, 0), "{engine:?}");
        assert_eq!(read.read.lat.count(), 2000);
    }
}

#[test]
fn a_verifying_job_finds_its_own_writes() {
    for engine in [Engine::Best, Engine::Threads] {
        let subject = temporary();
        let text = "--name=v --rw=randwrite --bs=16k --iodepth=4 --size=8m --verify=crc32c";
        let (result, _) = carry_out(&subject, engine, text, 4096, false);
        let verify = result.verify.expect("the job verifies");
        assert_eq!((verify.checked, verify.failed, result.error), (2048, 0, 0), "{engine:?}");
    }
}

#[test]
fn reads_of_what_nobody_wrote_are_noticed() {
    let subject = temporary();
    let text = "--name=r --rw=randread --bs=4k --iodepth=1 --size=16m --number_ios=50";
    let (_, counts) = carry_out(&subject, Engine::Best, text, 4096, true);
    assert_eq!((counts.checked, counts.foreign), (50, 50));
}

#[test]
fn a_failed_transfer_fails_its_job() {
    let subject = temporary();
    subject.file.set_len(0).expect("a file can be made shorter");
    let text = "--name=r --rw=randread --bs=4k --iodepth=2 --size=16m --number_ios=50";
    for engine in [Engine::Best, Engine::Threads] {
        let (result, _) = carry_out(&subject, engine, text, 4096, false);
        assert_eq!((result.error, result.read.total_ios), (5, 0), "{engine:?}");
    }
}

#[test]
fn the_program_alone_is_faster_than_any_file() {
    let subject = temporary();
    let text = "--name=n --rw=randread --bs=4k --iodepth=32 --size=16m --io_size=80000k --norandommap";
    let (result, counts) = carry_out(&subject, Engine::Null, text, 4096, false);
    assert_eq!((result.read.total_ios, counts.read_bytes), (20_000, 20_000 * 4096));
}

#[test]
fn the_system_attests_direct_io_where_the_file_was_opened_for_it() {
    let subject = temporary();
    let accounting = IoAccounting::new(SystemRoot::default(), subject.device);
    let (_, counts) = carry_out(&subject, Engine::Best, LAY_OUT, 4096, false);
    let attested = accounting.attest(&subject, counts);
    assert_eq!(attested.asked_written, FILE_BYTES);
    let is_memory = subject.file_system == "tmpfs";
    let (_, written) = attested.process.expect("Linux counts for every process");
    // Other tests of this program write at the same time, so only too little would be wrong.
    assert_eq!(written >= FILE_BYTES, !is_memory, "{attested:?} on {}", subject.file_system);
    if subject.direct && !is_memory {
        assert_eq!(attested.resident, Some(0.0), "{attested:?}");
    }
}

#[test]
fn temporary_files_made_at_once_are_different_ones() {
    let made: Vec<Subject> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(temporary)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a file of its own")).collect()
    });
    let inodes: std::collections::BTreeSet<u64> = made
        .iter()
        .map(|subject| std::os::unix::fs::MetadataExt::ino(&subject.file.metadata().expect("an open file")))
        .collect();
    assert_eq!(inodes.len(), made.len(), "two threads have one file");
}
