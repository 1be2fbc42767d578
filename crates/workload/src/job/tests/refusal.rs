//! Malformed input: each gives its sentence, with its place.

use super::{command, read};

/// Goal: a wrong file says where, which option, which value and what is valid. Method: one job, one wrong line.
#[test]
fn a_wrong_option_gives_its_whole_sentence() {
    let cases = [
        (
            "bs=4q",
            "t.fio:2: [j] bs=4q: expected a number with suffix k, m, g, t or p (or ki, mi, gi, ti, pi), but found the suffix `q`",
        ),
        ("bs=0", "t.fio:2: [j] bs=0: expected a number from 1 to 4294967295, but it is 0"),
        ("bs=", "t.fio:2: [j] bs: expected a value after ="),
        ("bs", "t.fio:2: [j] bs: expected a value, as bs=.."),
        (
            "bs=1k,2k,3k,4k",
            "t.fio:2: [j] bs=1k,2k,3k,4k: expected at most three values (read,write,trim), but found 4",
        ),
        ("bsrange=4k", "t.fio:2: [j] bsrange=4k: expected a range such as 1k-4k, but found `4k`"),
        ("bsrange=0-4k", "t.fio:2: [j] bsrange=0-4k: expected block sizes from 1 to 4294967295 bytes"),
        (
            "bssplit=4k/50:8k/60",
            "t.fio:2: [j] bssplit=4k/50:8k/60: expected shares that add up to 100, but they add up to 110",
        ),
        (
            "rw=radnread",
            "t.fio:2: [j] rw=radnread: expected one of read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite, randtrimwrite; did you mean `randread`?",
        ),
        ("iodepth=abc", "t.fio:2: [j] iodepth=abc: expected a whole number, but found `abc`"),
        ("iodepth=0", "t.fio:2: [j] iodepth=0: expected a number from 1 to 65536, but it is 0"),
        ("numjobs=5000", "t.fio:2: [j] numjobs=5000: expected a number from 1 to 4096, but it is 5000"),
        (
            "runtime=10x",
            "t.fio:2: [j] runtime=10x: expected a time with suffix us, ms, s, m, h or d, but found the suffix `x`",
        ),
        (
            "runtime=1:30",
            "t.fio:2: [j] runtime=1:30: expected a time with suffix us, ms, s, m, h or d, but found the suffix `:30`",
        ),
        (
            "startdelay=1-5",
            "t.fio:2: [j] startdelay=1-5: a range of delays is not implemented yet; give one time",
        ),
        ("size=1.5g", "t.fio:2: [j] size=1.5g: expected a whole number, but found `1.5g`"),
        ("size=150%", "t.fio:2: [j] size=150%: expected a percentage from 0% to 100%"),
        ("size=4z", "t.fio:1: [j] size=4z: counts zones, so it needs zonemode=zbd or a zonesize"),
        ("size=1k", "t.fio:1: [j] size=1k: is less than one block of 4096 bytes; raise size or lower bs"),
        ("size=(2*4", "t.fio:2: [j] size=(2*4: expected a closing parenthesis"),
        (
            "size=8*$mb_memory",
            "t.fio:2: [j] size=8*$mb_memory: $mb_memory depends on the machine, so the job would; write the number",
        ),
        (
            "numjobs=$ncpus",
            "t.fio:2: [j] numjobs=$ncpus: $ncpus depends on the machine, so the job would; write the number",
        ),
        ("size=${SIZE", "t.fio:2: [j] size=${SIZE: expected a closing brace after ${"),
        ("filename=a::b", "t.fio:2: [j] filename=a::b: expected file names separated by single colons"),
        (
            "filename=f.$jobnum",
            "t.fio:2: [j] filename=f.$jobnum: fio replaces $jobnum in filename_format only; leave it out",
        ),
        ("time_based=yes", "t.fio:2: [j] time_based=yes: expected 0 or 1"),
        ("time_based", "t.fio:1: [j] time_based: needs a runtime above 0, as runtime=60s"),
        ("direct=2", "t.fio:2: [j] direct=2: expected 0 or 1"),
        ("rwmixread=101", "t.fio:2: [j] rwmixread=101: expected a number from 0 to 100, but it is 101"),
        (
            "random_distribution=zipf:1",
            "t.fio:2: [j] random_distribution=zipf:1: expected a theta above 0 other than 1",
        ),
        (
            "random_distribution=zoned:50/5",
            "t.fio:2: [j] random_distribution=zoned:50/5: expected shares of access that add up to 100 %, but they add up to 50",
        ),
        (
            "percentile_list=101",
            "t.fio:2: [j] percentile_list=101: expected percentiles above 0 and at most 100, but found `101`",
        ),
        (
            "verify=crc33",
            "t.fio:2: [j] verify=crc33: expected one of 0, md5, crc64, crc32, crc32c-intel, crc32c, crc16, crc7, sha1, sha256, sha512, sha3-224, sha3-256, sha3-384, sha3-512, xxhash, meta, pattern; did you mean `crc32`?",
        ),
        (
            "verify=pattern",
            "t.fio:1: [j] verify=pattern: needs a verify_pattern, as verify_pattern=0xdeadface",
        ),
        (
            "buffer_pattern=zz",
            "t.fio:2: [j] buffer_pattern=zz: expected 0x.., a decimal number or \"text\", but found `zz`",
        ),
        ("zonemode=strided", "t.fio:1: [j] zonemode=strided: needs a zonesize, as zonesize=1m"),
        (
            "zonemode=stirded",
            "t.fio:2: [j] zonemode=stirded: expected one of none, zbd, strided; did you mean `strided`?",
        ),
        (
            "zone_reset_threshold=1.5",
            "t.fio:2: [j] zone_reset_threshold=1.5: expected a number from 0 to 1, but it is 1.5",
        ),
        (
            "steadystate=iops",
            "t.fio:2: [j] steadystate=iops: expected a criterion and a limit, as iops_slope:0.3%",
        ),
        (
            "ss_dur=1",
            "t.fio:1: [j] steadystate_duration=1: must be a multiple of the check interval of 1.000 s, and more than one",
        ),
        (
            "latency_target=1ms",
            "t.fio:1: [j] latency_target=1ms: needs a latency_window above 0, as latency_window=100ms",
        ),
        (
            "latency_percentile=0",
            "t.fio:2: [j] latency_percentile=0: expected a percentage above 0 and at most 100, but it is 0",
        ),
        ("replay_align=3", "t.fio:2: [j] replay_align=3: expected a power of two, as fio does"),
        (
            "read_iolog=missing.log",
            "missing.log: [j] read_iolog=missing.log: cannot read the log: there is no such file",
        ),
        (
            "read_iolog=wrong.fio",
            "wrong.fio:1: [j] read_iolog=wrong.fio: expected the first line `fio version 2 iolog` or \
             `fio version 3 iolog`; blktrace's binary format is not read",
        ),
        ("flow=1001", "t.fio:2: [j] flow=1001: expected a number from 0 to 1000, but it is 1001"),
        (
            "ioengine=net",
            "t.fio:2: [j] ioengine=net: this engine needs a network peer, which a drive is not; use libaio, io_uring, psync or null",
        ),
        ("ioengine=libaoi", "t.fio:2: [j] ioengine=libaoi: expected a fio engine; did you mean `libaio`?"),
        ("iodpeth=4", "t.fio:2: [j] iodpeth=4: fio has no option `iodpeth`; did you mean `iodepth`?"),
        ("DIRECT=1", "t.fio:2: [j] DIRECT=1: fio has no option `DIRECT`; did you mean `direct`?"),
        ("quite_unknown=1", "t.fio:2: [j] quite_unknown=1: fio has no option `quite_unknown`"),
        (
            "verify_interval=4k",
            "t.fio:2: [j] verify_interval=4k: is refused: not implemented yet; use a smaller bs",
        ),
        (
            "exec_prerun=ls",
            "t.fio:2: [j] exec_prerun=ls: is refused: job files run no commands here; run it before this tool",
        ),
        (
            "md_per_io_size=8",
            "t.fio:2: [j] md_per_io_size=8: only md_per_io_size=0 is possible; anything else is not implemented yet",
        ),
        ("wait_for=k", "t.fio:1: [j] wait_for=k: expected the name of a job above this one"),
        ("kb_base=si", "t.fio:2: [j] kb_base=si: expected one of 1024, 1000"),
        ("include nowhere.fio", "t.fio:2: [j] cannot include `nowhere.fio`: there is no such file"),
        ("include section.fio", "section.fio:1: an included file may have options only, no [sections]"),
        (
            "include wrong.fio",
            "wrong.fio:2: [j] bs=8x: expected a number with suffix k, m, g, t or p (or ki, mi, gi, ti, pi), but found the suffix `x`",
        ),
        (
            "include endless.fio",
            "endless.fio:1: [j] expected at most 16 includes nested 4 deep; does `endless.fio` include itself?",
        ),
        ("[", "t.fio:2: expected a section such as [job1], but found `[`"),
        ("[]", "t.fio:2: expected a section such as [job1], but found `[]`"),
        ("[k] x", "t.fio:2: expected a section such as [job1], but found `[k] x`"),
        (
            ";ocssd: plaice=all",
            "t.fio:2: [j] ocssd: plaice=all: expected one of the extension's keys place, layout, target, host_cpu, response, steady, drive, clock; did you mean `place`?",
        ),
        (
            ";ocssd: clock=wall",
            "t.fio:2: [j] ocssd: clock=wall: clock is for the whole run; write it before the first section",
        ),
        (
            ";ocssd: response=intended",
            "t.fio:1: [j] ocssd: response: intended starts exist only with rate or rate_iops; set one, or response=issued",
        ),
    ];
    for (line, expected) in cases {
        let errors = read(&format!("[j]\n{line}\n")).expect_err(line);
        let sentences: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(sentences, [expected], "{line}");
    }
}

/// Goal: what contradicts itself is said. Method: two settings that fio refuses together too, and what ours name.
#[test]
fn settings_that_contradict_each_other_are_refused() {
    let cases = [
        ("rate_min=1m\nrate_iops_min=5", "contradicts rate_iops_min"),
        ("rate=1m\nrate_min=2m", "above the cap"),
        ("rate_iops=5\nrate_iops_min=,6", "above the cap"),
        ("zonemode=none\nzonesize=1m", "contradicts zonemode=none"),
        ("zonemode=zbd\nzoneskip=4k", "must be 0"),
        ("zonemode=zbd\nzonesize=1m\nzonerange=2m", "must be the zonesize"),
        ("zonemode=zbd\nzonesize=1m\nzonecapacity=2m", "more than the zonesize"),
        ("cmdprio_percentage=5\ncmdprio_bssplit=4k/5", "contradicts cmdprio_percentage"),
        ("nrfiles=2\nzonesize=1m", "divides the region"),
        ("nrfiles=2\nfilesize=1m", "they share size evenly"),
        ("ss_dur=10\nss_interval=3", "a multiple of the check interval"),
        ("ss_dur=10d\nss_interval=1ms", "86400 samples"),
    ];
    for (lines, expected) in cases {
        let errors = read(&format!("[j]\n{lines}\n")).expect_err(lines).to_string();
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{lines}: {errors}");
    }
}

#[test]
fn a_file_without_a_job_or_with_loose_options_says_so() {
    let cases = [
        (
            "",
            "t.fio: no job is defined; write a section such as [job1] with rw=randread, or --name=job1 --rw=randread",
        ),
        (
            "[global]\nbs=4k\n",
            "t.fio: no job is defined; write a section such as [job1] with rw=randread, or --name=job1 --rw=randread",
        ),
        ("bs=4k\n[j]\n", "t.fio:1: `bs=4k` stands before the first section; write [global] above it"),
        ("include x\n[j]\n", "t.fio:1: `include` stands before the first section; write [global] above it"),
        (
            "[global]\nsize=4k\n[j]\nkb_base=1000\n",
            "t.fio:4: [j] kb_base=1000: [global] above was read with the other base; set kb_base once, in the first [global]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).expect_err(text).to_string(), expected, "{text}");
    }
}

#[test]
fn a_wrong_command_line_names_the_argument() {
    let cases = [
        (
            "fio",
            "command line: no job is defined; write a section such as [job1] with rw=randread, or --name=job1 --rw=randread",
        ),
        ("--name", "command line:1: --name: expected the job's name, as --name=job1"),
        ("--name=j --bz=4k", "command line:2: --bz=4k: fio has no option `--bz`; did you mean `bs`?"),
        (
            "--name=j --bs=4q",
            "command line:2: [j] bs=4q: expected a number with suffix k, m, g, t or p (or ki, mi, gi, ti, pi), but found the suffix `q`",
        ),
        ("--name=j --bs", "command line:2: [j] bs: expected a value, as bs=.."),
        ("--name=j --output", "command line:2: --output: expected a value, as --output=.."),
        (
            "--name=j --output-format=xml",
            "command line:2: --output-format=xml: expected one of normal, json, json+",
        ),
        ("--name=j --section", "command line:2: --section: expected a value, as --section=.."),
        (
            "--name=j --client=h",
            "command line:2: --client=h: is refused: fio's client and server are not implemented; run this tool on each machine",
        ),
        (
            "--name=j --minimal",
            "command line:2: --minimal: is refused: the terse form is not implemented; use --output-format=json",
        ),
        ("--name=j --ocssd", "command line:2: --ocssd: expected settings, as --ocssd='place=pu:0-3'"),
        (
            "--name=j --ocssd=place=lun:1",
            "command line:2: [j] ocssd: place=lun:1: expected place=all, place=pu:0-3,8 or place=group:1",
        ),
        ("missing.fio", "command line:1: cannot read the job file `missing.fio`: there is no such file"),
        ("a.fio --section=a3", "command line: no job file has a section `a3`; did you mean `a1`?"),
        ("--readonly a.fio", "command line: [a2] --readonly is given, but this job does rw=write"),
    ];
    for (line, expected) in cases {
        let errors = command(line).expect_err(line);
        assert_eq!(errors.0[0].to_string(), expected, "{line}");
    }
}

#[test]
fn all_errors_come_together_and_a_global_one_comes_once() {
    let text = "[global]\nbs=4q\niodpeth=1\n[a]\nrw=raed\n[b]\niodepth=0\n";
    let places: Vec<String> =
        read(text).expect_err("four errors").0.iter().map(|e| e.place.to_string()).collect();
    assert_eq!(places, ["t.fio:3", "t.fio:2", "t.fio:5", "t.fio:7"]);
}
