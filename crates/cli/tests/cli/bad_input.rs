//! What cannot be used ends with exit code 2 and a sentence that says what to change; nothing is made or changed.

use crate::program::Program;

/// The command ends with code 2, says each of `words`, says them once, and prints no result.
fn check(program: &Program, arguments: &str, words: &[&str]) {
    let answer = program.run(arguments);
    assert_eq!(answer.code, 2, "`ocssd {arguments}` said:\n{}{}", answer.out, answer.err);
    assert_eq!(answer.out, "", "`ocssd {arguments}` printed a result");
    for word in words {
        let times = answer.err.matches(word).count();
        assert_eq!(times, 1, "`ocssd {arguments}` says {word:?} {times} times, not once:\n{}", answer.err);
    }
    assert!(!answer.err.contains("panicked"), "`ocssd {arguments}` panicked:\n{}", answer.err);
}

const JOB: &str = "run --drive tiny --quiet --name=a --rw=randread --bs=4k --number_ios=9";

#[test]
fn wrong_jobs_are_refused() {
    let program = Program::new();
    program.write("empty.fio", b"");
    program.write("bytes.fio", &[0xFF, 0xFE, 0, 1, 2]);
    program.write("wrong.fio", b"[a]\nrw=randread\nblah=3\niodepth=q\n");
    program.write("early.fio", b"rw=read\n");
    for (arguments, words) in [
        ("run missing.fio", &["missing.fio", "No such file"][..]),
        ("run empty.fio", &["no job is defined"]),
        ("run .", &["Is a directory"]),
        ("run bytes.fio", &["UTF-8"]),
        ("run wrong.fio", &["wrong.fio:3: [a] blah=3", "wrong.fio:4: [a] iodepth=q"]),
        ("run early.fio", &["before the first section"]),
    ] {
        check(&program, arguments, words);
    }
}

#[test]
fn wrong_options_are_refused() {
    let program = Program::new();
    for (options, words) in [
        ("--bogus=3", &["`--bogus`"][..]),
        ("--bs=512", &["512 bytes", "4096", "pblk:block_bytes=512"]),
        ("--rw=write", &["16 KiB", "ws_min", "--target pblk"]),
        ("--rw=randwrite", &["16 KiB", "ws_min", "--target pblk"]),
        ("--size=1t", &["1099511627776"]),
        ("--clock=sun", &["possible values: virtual, wall"]),
        ("--set media.erase=5", &["media.erase is 5", "45.5us"]),
        ("--set bogus=5", &["no such setting"]),
        ("--set bogus", &["key=value"]),
        ("--ocssd=place=pu:0-9", &["parallel units 0 to 3"]),
        ("--ocssd=place=pu:x", &["expected numbers and ranges"]),
        ("--results /proc/none", &["choose a directory with --results"]),
        ("--output none/there", &["name another file"]),
        ("--ocssd=target=ftl", &["the targets are: linear, pblk, "]),
        ("--target pblk:block_bytes=512", &["--set payload=bytes", "4096"]),
        ("--set payload=bytes --target pblk:block_bytes=1000", &["power of two", "1000"]),
        ("--target pblk:block_bytes=half", &["block_bytes should be a whole number"]),
        ("--target linear:block_bytes=512", &["has no option \"block_bytes\"", "plane_reads"]),
        ("--target block_ssd --ocssd=place=pu:0-2", &["no parallel units", "all 4", "but 3"]),
        ("--target block_ssd:mode=faithful", &["black box", "dram_cache_bytes"]),
        ("--host-cpu xeon", &["e7-8870v3-x4, free or none"]),
        ("--ocssd=host_cpu=free:cores=0", &["1 to 1024"]),
        ("--host-cpu free --clock wall", &["only virtual time", "--clock virtual"]),
    ] {
        check(&program, &format!("{JOB} {options}"), words);
    }
}

#[test]
fn a_black_box_is_refused_in_its_own_words() {
    let job = "run --drive qemu --quiet --name=a --size=1m --target block_ssd:over_provisioning_percent=20";
    for (options, words) in [
        ("dram_cache_bytes=1", &["dram_cache_bytes is 1,", "make it larger"][..]),
        ("dram_cache_bytes=much", &["dram_cache_bytes should be a whole number"]),
        ("seed=2,victim=greedy", &["no option \"victim\"", "black box"]),
    ] {
        check(&Program::new(), &format!("{job},{options}"), words);
    }
}

#[test]
fn wrong_drives_are_refused() {
    let program = Program::new();
    program.write("short.img", b"not an image");
    program.write("foreign.img", &[7; 8192]);
    program.write("bad.toml", b"groups = 0\nws_min = 5\n");
    program.write("odd.toml", b"colour = 3\n");
    for (drive, words) in [
        ("nope", &["no preset and no file", "westlake"][..]),
        ("short.img", &["12 bytes"]),
        ("foreign.img", &["not usable"]),
        ("bad.toml", &["groups is 0", "ws_min is 5"]),
        ("odd.toml", &["odd.toml:1:1", "no such setting"]),
        (".", &["Is a directory"]),
    ] {
        check(&program, &format!("run --quiet --drive {drive} --name=a --size=1m"), words);
    }
    for verb in ["geometry", "chunks", "wear", "targets", "toml"] {
        check(&program, &format!("inspect foreign.img {verb}"), &["not usable"]);
    }
    check(&program, "inspect tiny chunk g9/p0/c0", &["groups 0 to 1"]);
}

#[test]
fn jobs_that_share_units_in_two_ways_are_refused() {
    let jobs = "--name=b --rw=randread --bs=4k --ocssd=place=pu:0-1 --name=c --rw=randread --bs=4k --ocssd=place=pu:1-2";
    check(&Program::new(), &format!("run --quiet --drive tiny {jobs}"), &["disjoint places"]);
}

#[test]
fn a_flag_does_not_swallow_what_follows_it() {
    let program = Program::new();
    let command = program.good("run --drive tiny --showcmd --name=a --rw=randread --quiet --number_ios=9");
    assert!(command.contains("--number_ios=9"), "printed {command}");
}
