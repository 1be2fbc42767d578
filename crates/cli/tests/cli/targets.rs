//! Targets that a job is run on by name: small blocks, a black box, and the host's processors before them.

use crate::program::Program;
use serde_json::Value;

/// 60 lines of 256 MiB, which take pblk with a fifth spare.
const SPARE: &str = "over_provisioning_percent=20";

fn counter(result: &Value, name: &str) -> u64 {
    let counters = &result["ocssd"]["counters"]["targets"][0]["counters"];
    counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {counters}"))
}

#[test]
fn jobs_of_512_bytes_run_and_verify_and_their_image_is_read_again() {
    let program = Program::new();
    program.good("format a.img --drive qemu");
    let target = format!("--drive a.img --target pblk:block_bytes=512,{SPARE}");
    let job = "--name=a --bs=512 --iodepth=8 --size=256k";
    let written = program.json(&format!(
        "run --quiet --json {target} {job} --rw=randwrite --verify=crc32c --io_size=512k --end_fsync=1"
    ));
    assert_eq!(written["ocssd"]["verdict"]["outcome"], "pass", "{}", written["ocssd"]["verdict"]);
    assert!(counter(&written, "rmw_requests") >= 1000, "every write is a part of a sector");
    let read = program.json(&format!(
        "run --quiet --json {target} --name=r --rw=randread --bssplit=512/50:4k/30:9k/20 --size=256k --io_size=8m --norandommap"
    ));
    assert_eq!(read["ocssd"]["verdict"]["outcome"], "pass", "{}", read["ocssd"]["verdict"]);
    assert_eq!(counter(&read, "read_empty_sectors"), 0, "what was written is there");
}

#[test]
fn the_smallest_preset_has_room_for_every_kind_of_blocks_and_zones() {
    let pblks = ["pblk", "pblk:mode=faithful", "block_ssd", "linux-pblk:create=yes"];
    for target in pblks.into_iter().chain(["linear", "ox-block", "zns"]) {
        // More than the drive holds, so that what is stale is collected.
        let job = "--name=a --rw=randwrite --bs=16k --io_size=16m --end_fsync=1";
        let said = Program::new().good(&format!("run --quiet --drive tiny --target {target} {job}"));
        assert!(said.starts_with("verdict: pass\n"), "{target}: {said}");
    }
}

#[test]
fn a_black_box_does_what_pblk_over_all_units_does() {
    let program = Program::new();
    let hash = |target: &str| {
        program.good(&format!(
            "run --quiet --print hash --host-cpu none --drive qemu --target {target}{SPARE} --name=a --rw=randrw --bs=4k --iodepth=8 \
             --size=8m"
        ))
    };
    // Of so few lines both make one stream, and two are something else.
    assert_eq!(hash("block_ssd:"), hash("pblk:"));
    assert_ne!(hash("block_ssd:"), hash("pblk:classification=user-gc,victim=cost-benefit,"));
}

#[test]
fn the_hosts_processors_cost_time_and_are_counted() {
    let program = Program::new();
    let job = "--name=a --rw=randwrite --bs=4k --iodepth=16 --size=8m";
    let run = |host: &str| {
        let target = format!("--target pblk:mode=faithful,{SPARE}");
        program.json(&format!("run --quiet --json --drive qemu {target} {host} {job}"))
    };
    let rate = |result: &Value| result["jobs"][0]["write"]["iops"].as_f64().expect("a number");
    let (free, slow) = (run("--host-cpu none"), run("--host-cpu e7-8870v3-x4:cores=2"));
    assert!(rate(&slow) < rate(&free), "{} with the host, {} without", rate(&slow), rate(&free));
    // Unasked a run has the host of FAST'17: a buffered write takes 2.9 us. (More at once than cores wait for each other.)
    let unasked = program.json(&format!(
        "run --quiet --json --drive qemu --target pblk:{SPARE} --name=a --rw=randwrite --bs=4k --size=1m"
    ));
    let write = &unasked["jobs"][0]["write"]["clat_ns"];
    assert_eq!((write["min"].as_u64(), write["max"].as_u64()), (Some(2_900), Some(2_900)));
    assert_eq!(counter(&slow, "host_requests"), 2048);
    assert!(counter(&slow, "host_lock_wait_ns") > 0 && counter(&slow, "host_lock_holds") >= 4096);
    let again =
        slow["ocssd"]["rerun_command"].as_str().map(str::to_owned).unwrap_or(slow["ocssd"].to_string());
    assert!(again.contains("--host-cpu e7-8870v3-x4:cores=2"), "{again}");
    // A job's own word goes before the command line's.
    let none = run("--host-cpu e7-8870v3-x4:cores=2 --ocssd=host_cpu=none");
    assert_eq!(rate(&none), rate(&free));
}

#[test]
fn small_blocks_lie_above_the_hosts_processors() {
    let program = Program::new();
    let result = program.json(&format!(
        "run --quiet --json --drive qemu --set payload=bytes --target pblk:block_bytes=512,{SPARE} --host-cpu free \
         --name=a --rw=randwrite --bs=512 --size=64k --verify=crc32c"
    ));
    let merges = counter(&result, "rmw_requests");
    assert_eq!(counter(&result, "rmw_read_sectors"), merges);
    assert!(counter(&result, "host_requests") >= 2 * merges, "a merge is a read and a write");
}

#[test]
fn jobs_on_one_target_agree_about_the_host() {
    let program = Program::new();
    program.write(
        "two.fio",
        b"[a]\nrw=read\nsize=1m\n;ocssd: target=pblk:over_provisioning_percent=20 host_cpu=free\n\
          [b]\nrw=read\nsize=1m\n;ocssd: target=pblk:over_provisioning_percent=20\n",
    );
    let answer = program.run("run --quiet --drive qemu two.fio");
    assert_eq!((answer.code, answer.err.contains("in different ways")), (2, true), "{}", answer.err);
}

#[test]
fn a_small_drive_gets_the_spare_that_fits_and_an_image_keeps_its_size() {
    let program = Program::new();
    let job = "--name=a --rw=randwrite --bs=4k --size=8m --end_fsync=1";
    let small = program.good(&format!("run --quiet --drive qemu --target pblk {job}"));
    assert!(small.contains("note: over-provisioning is 14 %, not the usual 11 %"), "{small}");
    let stated =
        program.run(&format!("run --quiet --drive qemu --target pblk:over_provisioning_percent=11 {job}"));
    assert!(stated.code == 2 && stated.err.contains("must be at least"), "{}", stated.err);
    program.good("format a.img --drive qemu");
    let quiet =
        program.good(&format!("run --quiet --drive a.img --target pblk:over_provisioning_percent=40 {job}"));
    assert!(!quiet.contains("over_provisioning_percent=40 changes"), "{quiet}");
    let ignored =
        program.good(&format!("run --quiet --drive a.img --target pblk:over_provisioning_percent=20 {job}"));
    assert!(ignored.contains("note: over_provisioning_percent=20 changes nothing"), "{ignored}");
    let black_box = program.good(&format!("run --quiet --drive qemu --target block_ssd {job}"));
    assert!(black_box.contains("note: over-provisioning is"), "{black_box}");
}

#[test]
fn the_first_random_write_is_answered_with_a_target_that_takes_it() {
    let program = Program::new();
    let job = "--name=a --rw=randwrite --bs=4k --size=1g --number_ios=1000";
    let refused = program.run(&format!("run --quiet {job}"));
    assert_eq!(refused.code, 2, "{}", refused.out);
    assert!(refused.err.contains("use --target pblk, a block device"), "{}", refused.err);
    assert!(program.good(&format!("run --quiet --target pblk {job}")).starts_with("verdict: pass"));
}

#[test]
fn every_kind_is_listed_with_the_options_it_takes() {
    let program = Program::new();
    let kinds = program.json("--json targets");
    let names: Vec<&str> =
        kinds.as_array().expect("a list").iter().filter_map(|kind| kind["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "linear",
            "pblk",
            "block_ssd",
            "linux-pblk",
            "ox-block",
            "eleos",
            "kv",
            "kv-block",
            "lightlsm",
            "table-block",
            "zns",
            "null"
        ]
    );
    let text = program.good("targets");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for kind in kinds.as_array().expect("a list") {
        let name = kind["name"].as_str().expect("kinds have names");
        // What a target says of an option it does not have lists those it has.
        let (verb, ask) = match name {
            "eleos" => ("workload page-store", ""),
            "kv" | "kv-block" => ("workload ycsb", ""),
            "lightlsm" | "table-block" => ("workload db_bench", ""),
            "zns" => ("workload zbd", ""),
            _ => ("run", "--name=a --rw=write --bs=64k --size=1m"),
        };
        let said = program.run(&format!("{verb} --quiet --drive qemu --target {name}:zzz=1 {ask}"));
        let listed: Vec<&str> = kind["options"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|option| option["name"].as_str())
            .collect();
        let own = said.err.rsplit_once("its option").map_or("", |(_, own)| own);
        let own = own.trim_start_matches("s are ").trim_start_matches(" is ");
        let own: Vec<&str> =
            own.split([',', ' ', '\n']).filter(|word| !word.is_empty() && *word != "and").collect();
        let has_none = said.err.contains("it has no options");
        assert!(
            own == listed || has_none && listed.is_empty(),
            "{name}: listed {listed:?}, but it said: {}",
            said.err
        );
    }
}
