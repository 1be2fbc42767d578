//! The verdict of a run: numbers that mean nothing are not passed.

use crate::program::Program;

/// The run fails, and its verdict says each of `words`.
fn fails(arguments: &str, words: &[&str]) {
    let answer = Program::new().run(arguments);
    assert_eq!(answer.code, 1, "`ocssd {arguments}` said:\n{}{}", answer.out, answer.err);
    let verdict = answer.verdict();
    assert!(verdict.starts_with("verdict: fail: "), "{verdict}");
    for word in words {
        assert!(verdict.contains(word), "`ocssd {arguments}` does not say {word:?}: {verdict}");
    }
}

#[test]
fn a_job_that_took_no_time_has_no_rate() {
    let job = "run --quiet --host-cpu none --drive qemu --target pblk:over_provisioning_percent=20 --name=w --rw=randwrite --bs=4k";
    fails(&format!("{job} --size=1m"), &["took no time", "all 256 writes", "end_fsync=1"]);
    let table = Program::new().run(&format!("{job} --size=1m")).out;
    let row = table.lines().find(|line| line.starts_with(" w ")).expect("a row of the job");
    assert!(row.contains("0 ns") && !row.contains("B/s"), "a rate over no time: {row}");
    fails(
        "run --quiet --ioengine=null --name=n --rw=randread --bs=4k --size=1m",
        &["took no time", "--clock wall"],
    );
    // A target that keeps nothing has no buffer either.
    fails(
        "run --quiet --drive tiny --target null --name=n --rw=write --bs=4k --size=1m --host-cpu none",
        &["took no time", "its target answered all at once"],
    );
    // What the remedy says is one: the flush takes time.
    let flushed = Program::new().good(&format!("{job} --size=8m --end_fsync=1"));
    assert!(flushed.starts_with("verdict: pass\n"), "{flushed}");
}

/// Goal: a rate of memory is not passed as one of media. Method: each kind of target with a write buffer, and a drive with a cache,
/// get a job that fits, the same with a flush, and one that does not fit.
#[test]
fn a_job_that_memory_took_says_so() {
    for target in [
        "pblk --bs=4k",
        "pblk:mode=faithful --bs=4k",
        "block_ssd --bs=4k",
        "linux-pblk:create=yes --bs=4k",
        "zns --bs=4k",
        "linear --set cache.sectors=8192 --bs=16k",
    ] {
        let verdict = |options: &str| {
            let job = format!("--name=w --rw=write --iodepth=16 --ioengine=libaio {options}");
            let answer = Program::new().run(&format!("run --quiet --drive qemu --target {target} {job}"));
            assert_eq!(answer.code, 0, "{target} {options}: {}{}", answer.out, answer.err);
            answer.verdict()
        };
        let caution = "of the 2.10 MB that were written to its target meanwhile: the rate of its writes is that of memory";
        let said = verdict("--size=2m");
        assert!(said.contains(caution), "{target}: {said}");
        for options in ["--size=2m --end_fsync=1", "--size=64m"] {
            let said = verdict(options);
            assert!(!said.contains("that of memory"), "{target} {options}: {said}");
        }
    }
}

/// Goal: a job that memory took is told apart from one that it did not. Method: a long job, a pause in which the buffer runs empty,
/// then a short one; and the same on a target of its own beside a long one.
#[test]
fn jobs_that_memory_took_are_named() {
    let common = "run --quiet --drive qemu --target pblk --bs=4k --rw=write --iodepth=16 --ioengine=libaio";
    let verdict = |jobs: &str| {
        let answer = Program::new().run(&format!("{common} {jobs}"));
        assert_eq!(answer.code, 0, "{jobs}: {}{}", answer.out, answer.err);
        answer.verdict()
    };
    for (jobs, written) in [
        ("--name=long --size=64m --name=short --stonewall --startdelay=1 --size=2m", "2.10 MB"),
        (
            "--name=long --size=64m --ocssd=place=pu:0-1 --name=short --ocssd=place=pu:2-3 --size=512k",
            "524.29 kB",
        ),
    ] {
        let said = verdict(jobs);
        assert!(said.contains("when job \"short\" ended, media had "), "{jobs}: {said}");
        let meanwhile = format!(" of the {written} that were written to its target meanwhile");
        assert!(said.contains(&meanwhile), "{jobs}: {said}");
        assert!(!said.contains("\"long\""), "{jobs}: {said}");
    }
    let said = verdict("--name=short --size=256k --numjobs=3");
    assert!(said.contains("\"short\" (the first of 3 alike) ended"), "{said}");
}

/// The largest share of the time in a text.
fn most_busy(text: &str) -> u32 {
    let percents = text.split(" %").filter_map(|before| before.rsplit([' ', '(']).next()?.parse().ok());
    percents.max().expect("it says how busy that was")
}

/// Goal: nothing is called busy for longer than the jobs took. Method: a job whose writes the buffer takes, on a drive where an
/// earlier instance left chunks open, so that the channels have more to do than there was time (179 % was said).
#[test]
fn nothing_is_busy_for_longer_than_the_jobs_took() {
    let program = Program::new();
    program.good("format a.img --drive tiny --set chunks_per_pu=64");
    let job = "--name=a --rw=write --size=64k --bs=4k";
    let faithful = "pblk:mode=faithful,write_buffer_bytes=1000000";
    for target in ["pblk:over_provisioning_percent=50", faithful, faithful] {
        let said = program.good(&format!("run --quiet --drive a.img --target {target} {job}"));
        let limited = said.lines().find(|line| line.starts_with("limited by")).expect("it says what limited");
        assert_eq!(most_busy(limited), 100, "{limited}");
        assert!(limited.starts_with("limited by host threads"), "{limited}");
    }
    // Sixteen I/Os in flight are sixteen threads of the host; "595 % busy" and "link 143 %" was said.
    let job = "--name=a --rw=write --bs=4k --iodepth=16 --ioengine=libaio --size=2m";
    let said = program.good(&format!("run --quiet --drive qemu --target pblk {job}"));
    assert!(most_busy(&said) <= 100, "{said}");
}

#[test]
fn a_verification_that_compared_nothing_is_none() {
    let jobs = "--name=w --rw=write --bs=16k --size=256k --verify=crc32c \
                --name=x --rw=write --bs=16k --size=256k --offset=256k --number_ios=1 --exitall";
    fails(
        &format!("run --quiet --drive tiny --ocssd=layout=chunk {jobs}"),
        &["\"w\" was to verify, but compared no block"],
    );
}

#[test]
fn options_without_a_job_do_not_run_another_one() {
    let program = Program::new();
    for (options, named) in [
        ("--rw=randread --bs=4k", "--rw=randread"),
        ("--ocssd=place=pu:0", "--ocssd=place=pu:0"),
        ("--rw randread", "--rw=randread"),
    ] {
        let answer = program.run(&format!("run --quiet --drive tiny {options}"));
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{options}: {}", answer.err);
        assert!(
            answer.err.contains(named) && answer.err.contains("put --name=job1 before it"),
            "{}",
            answer.err
        );
    }
    // What is told to the program itself is no option of a job.
    let quickstart = program.good("run --quiet --output there --parse-only");
    assert_eq!(quickstart, "jobs: 2, nothing wrong with them\n");
}

#[test]
fn a_layout_that_does_not_fit_into_memory_is_refused_and_names_the_job() {
    let program = Program::new();
    let answer = program.run("run --quiet --set payload=bytes --name=all --rw=randread --bs=4k");
    assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
    for word in ["2.29 TB", "of memory, but", "job \"all\" has no size"] {
        assert!(answer.err.contains(word), "{word:?}: {}", answer.err);
    }
}
