//! Every option of class *implemented* changes what is done or what is reported: none is accepted and ignored.

use crate::world::{Outcome, World, preset, try_jobs};
use ocssd_workload::job::{Class, option_table};
use ocssd_workload::results::json::{Format, to_value};
use ocssd_workload::results::logs::requested_logs;
use ocssd_workload::results::{ClockKind, RunResult, Verdict, series};
use serde_json::Value;

/// What a job runs on.
#[derive(Clone, Copy, Debug)]
enum On {
    Plain,
    Zoned,
    Null,
    /// A plain device that lies about a block.
    Liar,
    /// A plain device whose tenth request fails.
    Faulty,
}

/// An option; what it runs on; the job without it; what is added to give it.
type Row = (&'static str, On, &'static str, &'static str);

const SEARCH: &str = "[j]\nrw=randread\nioengine=libaio\niodepth=16\nloops=5\nlatency_window=5ms";
const SEARCHING: &str =
    "[j]\nrw=randread\nioengine=libaio\niodepth=16\nloops=5\nlatency_window=5ms\nlatency_target=250us";
const STEADY: &str = "[j]\nrw=randread\ntime_based\nruntime=3s\nsteadystate_duration=1s\n\
    steadystate_check_interval=200ms\nsteadystate=iops:0";
const STEADY_SOON: &str = "[j]\nrw=randread\ntime_based\nruntime=3s\nsteadystate_duration=1s\n\
    steadystate_check_interval=200ms\nsteadystate=iops:5%";
const REPLAY: &str = "[j]\nread_iolog=replay.log";
const ZBD: &str = "[j]\nrw=randrw\nzonemode=zbd\nzonesize=128k";
const STRIDED: &str = "[j]\nrw=read\nzonemode=strided\nzonesize=128k";
const PRIORITIES: &str = "[j]\nrw=read\ncmdprio_percentage=30";
const ROUND: &str = "[a]\nrw=read\nsize=400k\n[b]\nrw=read\nsize=800k\n";

const ROWS: &[Row] = &[
    ("name", On::Plain, "[j]\nrw=read", "name=other"),
    ("description", On::Plain, "[j]\nrw=read", "description=why"),
    ("rw", On::Plain, "[j]\nbs=4k", "rw=randwrite"),
    ("bs", On::Plain, "[j]\nrw=read", "bs=8k"),
    ("bsrange", On::Plain, "[j]\nrw=read", "bsrange=4k-16k"),
    ("bssplit", On::Plain, "[j]\nrw=read", "bssplit=4k/50:8k/50"),
    ("ba", On::Plain, "[j]\nrw=randread", "ba=8k"),
    ("iodepth", On::Plain, "[j]\nrw=read", "iodepth=3"),
    ("numjobs", On::Plain, "[j]\nrw=read", "numjobs=2"),
    ("ioengine", On::Plain, "[j]\nrw=read\niodepth=4", "ioengine=psync"),
    ("filename", On::Plain, "[j]\nrw=read\nwrite_iolog=x", "filename=/dev/x"),
    ("directory", On::Plain, "[j]\nrw=read\nwrite_iolog=x", "directory=/d"),
    ("filename_format", On::Plain, "[j]\nrw=read\nwrite_iolog=x", "filename_format=f.$jobnum"),
    ("size", On::Plain, "[j]\nrw=read", "size=40k"),
    ("io_size", On::Plain, "[j]\nrw=read", "io_size=40k"),
    ("offset", On::Plain, "[j]\nrw=read\nsize=40k", "offset=40k"),
    ("offset_increment", On::Plain, "[j]\nrw=read\nsize=40k\nnumjobs=2", "offset_increment=40k"),
    ("number_ios", On::Plain, "[j]\nrw=read", "number_ios=7"),
    ("loops", On::Plain, "[j]\nrw=read", "loops=2"),
    ("runtime", On::Plain, "[j]\nrw=read", "runtime=10ms"),
    ("time_based", On::Plain, "[j]\nrw=read\nruntime=150ms", "time_based"),
    ("ramp_time", On::Plain, "[j]\nrw=read", "ramp_time=10ms"),
    ("startdelay", On::Plain, "[j]\nrw=read", "startdelay=10ms"),
    ("stonewall", On::Plain, ROUND, "stonewall"),
    ("wait_for", On::Plain, ROUND, "wait_for=a"),
    ("exitall", On::Plain, "[a]\nrw=read\n[b]\nrw=read\nsize=40k", "exitall"),
    ("exit_what", On::Plain, "[b]\nrw=read\n[a]\nnew_group\nrw=read\nsize=40k\nexitall", "exit_what=all"),
    ("io_submit_mode", On::Plain, "[j]\nrw=read\nioengine=psync\niodepth=4", "io_submit_mode=offload"),
    ("nrfiles", On::Plain, "[j]\nrw=read", "nrfiles=4"),
    ("openfiles", On::Plain, "[j]\nrw=read\nnrfiles=4", "openfiles=2"),
    ("file_service_type", On::Plain, "[j]\nrw=read\nnrfiles=4", "file_service_type=roundrobin:3"),
    ("prioclass", On::Plain, PRIORITIES, "prioclass=3"),
    ("prio", On::Plain, PRIORITIES, "prio=3"),
    ("cmdprio_class", On::Plain, PRIORITIES, "cmdprio_class=2"),
    ("cmdprio", On::Plain, PRIORITIES, "cmdprio=4"),
    ("cmdprio_percentage", On::Plain, "[j]\nrw=read", "cmdprio_percentage=30"),
    ("cmdprio_bssplit", On::Plain, "[j]\nrw=read", "cmdprio_bssplit=4k/30/1/2"),
    ("log_prio", On::Plain, "[j]\nrw=read\nwrite_lat_log=x\nprioclass=2", "log_prio=1"),
    ("group_reporting", On::Plain, "[j]\nrw=read\nnumjobs=2", "group_reporting"),
    ("new_group", On::Plain, ROUND, "new_group"),
    ("rate", On::Plain, "[j]\nrw=read", "rate=1m"),
    ("rate_iops", On::Plain, "[j]\nrw=read", "rate_iops=500"),
    ("rate_process", On::Plain, "[j]\nrw=read\nrate_iops=500", "rate_process=poisson"),
    ("rate_min", On::Plain, "[j]\nrw=read\ntime_based\nruntime=3s\nrate_iops=100", "rate_min=1m"),
    ("rate_iops_min", On::Plain, "[j]\nrw=read\ntime_based\nruntime=3s\nrate=400k", "rate_iops_min=200"),
    (
        "rate_cycle",
        On::Plain,
        "[j]\nrw=read\ntime_based\nruntime=4s\nrate_iops=100\nrate_min=1m",
        "rate_cycle=500",
    ),
    ("latency_target", On::Plain, SEARCH, "latency_target=250us"),
    ("latency_window", On::Plain, SEARCHING, "latency_window=3ms"),
    ("latency_percentile", On::Plain, SEARCHING, "latency_percentile=20"),
    ("latency_run", On::Plain, SEARCHING, "latency_run=1"),
    ("steadystate", On::Plain, STEADY, "steadystate=iops:100%"),
    ("steadystate_duration", On::Plain, "[j]\nrw=read\ntime_based\nruntime=3s", "steadystate_duration=2s"),
    ("steadystate_ramp_time", On::Plain, STEADY_SOON, "steadystate_ramp_time=500ms"),
    ("steadystate_check_interval", On::Plain, STEADY, "steadystate_check_interval=100ms"),
    ("flow", On::Plain, "[a]\nrw=read\nflow=1\n[b]\nrw=read", "flow=3"),
    ("flow_id", On::Plain, "[a]\nrw=read\nflow=1\n[b]\nrw=read\nflow=3", "flow_id=1"),
    ("flow_sleep", On::Plain, "[a]\nrw=read\nflow=2\n[b]\nrw=read\nflow=1", "flow_sleep=900"),
    ("read_iolog", On::Plain, "[j]\nrw=read", "read_iolog=replay.log"),
    ("replay_no_stall", On::Plain, REPLAY, "replay_no_stall=1"),
    ("replay_redirect", On::Plain, "[j]\nread_iolog=two.log", "replay_redirect=/dev/x"),
    ("replay_scale", On::Plain, "[j]\nread_iolog=replay.log\nreplay_align=4k", "replay_scale=2"),
    ("replay_align", On::Plain, REPLAY, "replay_align=8k"),
    ("replay_time_scale", On::Plain, REPLAY, "replay_time_scale=50"),
    ("replay_skip", On::Plain, REPLAY, "replay_skip=write,sync"),
    ("write_iolog", On::Plain, "[j]\nrw=read", "write_iolog=x"),
    ("thinktime", On::Plain, "[j]\nrw=read", "thinktime=50"),
    ("thinktime_blocks", On::Plain, "[j]\nrw=read\nthinktime=50", "thinktime_blocks=3"),
    ("rwmixread", On::Plain, "[j]\nrw=rw", "rwmixread=80"),
    ("rwmixwrite", On::Plain, "[j]\nrw=rw", "rwmixwrite=80"),
    ("random_distribution", On::Plain, "[j]\nrw=randread", "random_distribution=zipf:1.1"),
    ("percentage_random", On::Plain, "[j]\nrw=randread", "percentage_random=50"),
    ("norandommap", On::Plain, "[j]\nrw=randread", "norandommap"),
    ("randseed", On::Plain, "[j]\nrw=randread", "randseed=77"),
    ("randrepeat", On::Plain, "[j]\nrw=randread", "randrepeat=0"),
    ("allrandrepeat", On::Plain, "[j]\nrw=randread\nrandrepeat=0", "allrandrepeat=1"),
    ("fsync", On::Plain, "[j]\nrw=write", "fsync=5"),
    ("fdatasync", On::Plain, "[j]\nrw=write", "fdatasync=5"),
    ("end_fsync", On::Plain, "[j]\nrw=write", "end_fsync=1"),
    ("sync", On::Plain, "[j]\nrw=write", "sync=1"),
    ("verify", On::Plain, "[j]\nrw=write", "verify=crc32c"),
    ("do_verify", On::Plain, "[j]\nrw=write\nverify=crc32c", "do_verify=0"),
    (
        "verify_pattern",
        On::Plain,
        "[j]\nrw=write\nverify=pattern\nverify_pattern=0x12",
        "verify_pattern=0x34",
    ),
    ("verify_fatal", On::Liar, "[j]\nrw=write\nverify=crc32c\ncontinue_on_error=verify", "verify_fatal=1"),
    ("verify_backlog", On::Plain, "[j]\nrw=write\nverify=crc32c", "verify_backlog=8"),
    ("buffer_pattern", On::Plain, "[j]\nrw=write", "buffer_pattern=\"abc\""),
    ("zero_buffers", On::Plain, "[j]\nrw=write", "zero_buffers"),
    ("refill_buffers", On::Plain, "[j]\nrw=write", "refill_buffers"),
    ("continue_on_error", On::Faulty, "[j]\nrw=read", "continue_on_error=all"),
    ("buffer_compress_percentage", On::Plain, "[j]\nrw=write", "buffer_compress_percentage=50"),
    (
        "buffer_compress_chunk",
        On::Plain,
        "[j]\nrw=write\nbuffer_compress_percentage=50",
        "buffer_compress_chunk=1k",
    ),
    ("zonemode", On::Zoned, "[j]\nrw=write\nbs=16k", "zonemode=zbd"),
    ("zonesize", On::Zoned, "[j]\nrw=write\nbs=16k", "zonesize=1m"),
    ("zonecapacity", On::Plain, ZBD, "zonecapacity=64k"),
    ("zonerange", On::Plain, STRIDED, "zonerange=256k"),
    ("zoneskip", On::Plain, STRIDED, "zoneskip=64k"),
    ("job_max_open_zones", On::Zoned, "[j]\nrw=randwrite\nbs=16k\nzonemode=zbd", "job_max_open_zones=3"),
    ("read_beyond_wp", On::Plain, "[j]\nrw=randrw\nzonemode=zbd\nzonesize=128k", "read_beyond_wp=1"),
    (
        "zone_reset_threshold",
        On::Plain,
        "[j]\nrw=randrw\nzonemode=zbd\nzonesize=64k\nzone_reset_frequency=0.2",
        "zone_reset_threshold=0.3",
    ),
    (
        "zone_reset_frequency",
        On::Plain,
        "[j]\nrw=randrw\nzonemode=zbd\nzonesize=64k",
        "zone_reset_frequency=0.2",
    ),
    ("max_open_zones", On::Zoned, "[j]\nrw=randwrite\nbs=16k\nzonemode=zbd", "max_open_zones=3"),
    ("write_bw_log", On::Plain, "[j]\nrw=read", "write_bw_log=x"),
    ("write_iops_log", On::Plain, "[j]\nrw=read", "write_iops_log=x"),
    ("write_lat_log", On::Plain, "[j]\nrw=read", "write_lat_log=x"),
    ("write_hist_log", On::Plain, "[j]\nrw=read\nlog_hist_msec=20", "write_hist_log=x"),
    ("log_hist_msec", On::Plain, "[j]\nrw=read\nwrite_hist_log=x", "log_hist_msec=20"),
    (
        "log_hist_coarseness",
        On::Plain,
        "[j]\nrw=read\nwrite_hist_log=x\nlog_hist_msec=20",
        "log_hist_coarseness=3",
    ),
    ("per_job_logs", On::Plain, "[j]\nrw=read\nnumjobs=2\nwrite_bw_log=x", "per_job_logs=0"),
    ("log_avg_msec", On::Plain, "[j]\nrw=read\nwrite_lat_log=x", "log_avg_msec=10"),
    ("percentile_list", On::Plain, "[j]\nrw=read", "percentile_list=25:75"),
    ("clat_percentiles", On::Plain, "[j]\nrw=read", "clat_percentiles=0"),
    ("lat_percentiles", On::Plain, "[j]\nrw=read", "lat_percentiles=1"),
    ("slat_percentiles", On::Plain, "[j]\nrw=read", "slat_percentiles=1"),
    ("kb_base", On::Plain, "[j]\nrw=read\nsize=512k", "kb_base=1000"),
];

/// The result as it is printed, without the options it was made with.
fn report(outcome: &Outcome) -> Value {
    let mut jobs = outcome.results.clone();
    for job in &mut jobs {
        job.options.clear();
        job.fio_command.clear();
    }
    let run = RunResult {
        version: "0".into(),
        started_unix_secs: None,
        clock: ClockKind::Virtual,
        seed: 1,
        rerun_command: String::new(),
        environment: Vec::new(),
        drive: Vec::new(),
        notes: outcome.notes.clone(),
        global_options: Vec::new(),
        jobs,
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        limits: Vec::new(),
        tails: Vec::new(),
        verdict: Verdict::Pass,
    };
    to_value(&run, Format::JsonPlus)
}

/// Everything an observer of a run sees.
fn observed(on: On, text: &str) -> String {
    let mut world = match on {
        On::Zoned => World::linear(preset("tiny")),
        On::Null => World::null(),
        On::Plain | On::Liar | On::Faulty => World::memory(),
    };
    match on {
        On::Liar => world.memory.borrow_mut().lie = Some(40),
        On::Faulty => world.memory.borrow_mut().fail = vec![10],
        On::Plain | On::Zoned | On::Null => {}
    }
    // A parse error or a refusal is seen as well, but only where the row is about one.
    if matches!(on, On::Zoned) && text.contains("zonesize=1m") {
        return world.refusal(text);
    }
    if let Err(errors) = try_jobs(text) {
        return errors.to_string();
    }
    let outcome = world.run(text);
    let logs: Vec<_> = outcome.results.iter().map(|job| series::log_files(job, "log", 1)).collect();
    let asked = requested_logs(&outcome.results);
    let memory = world.memory.borrow();
    format!(
        "{:?}\n{:?}\n{}\n{logs:?}\n{asked:?}\n{:x}\n{:?}",
        memory.seen,
        memory.content,
        report(&outcome),
        outcome.hash,
        outcome.took
    )
}

#[test]
fn every_implemented_option_changes_what_is_done_or_reported() {
    for row in option_table().iter().filter(|row| row.class == Class::Implemented) {
        let found = ROWS.iter().find(|(name, ..)| row.name == *name);
        let Some(&(name, on, base, given)) = found else { panic!("no test gives the option {}", row.name) };
        let changed = if name == "kb_base" {
            base.replace("[j]\n", &format!("[j]\n{given}\n"))
        } else {
            format!("{base}\n{given}")
        };
        assert!(try_jobs(&changed).is_ok(), "{name}: {:?}", try_jobs(&changed).err());
        let (before, after) = (observed(on, base), observed(on, &changed));
        assert!(before != after, "{name} changed nothing");
    }
}

#[test]
fn the_observer_sees_no_difference_where_there_is_none() {
    for (name, on, base, _) in ROWS.iter().filter(|(name, ..)| *name != "zonesize") {
        assert!(observed(*on, base) == observed(*on, base), "{name}");
    }
    let noted = "[j]\nrw=randread\nrandrepeat=0\nallrandrepeat=1\nthread\nrandom_generator=lfsr\nper_job_logs=1\ndirectory=/d";
    assert!(
        observed(On::Plain, "[j]\nrw=randread") == observed(On::Plain, noted),
        "noted options change nothing"
    );
    let null = observed(On::Null, "[j]\nrw=read\nnumber_ios=9");
    assert!(null == observed(On::Null, "[j]\nrw=read\nnumber_ios=9\ndirect=1"), "neither does direct");
}

#[test]
fn groups_and_percentiles_are_reported_as_asked() {
    let jobs = |text: &str| report(&World::memory().run(text))["jobs"].as_array().expect("a list").clone();
    let grouped =
        jobs("[global]\nrw=read\ngroup_reporting\n[a]\nnumjobs=2\n[b]\n[c]\nnew_group\n[d]\nstonewall");
    let found: Vec<_> =
        grouped.iter().map(|job| (job["groupid"].as_u64(), job["read"]["total_ios"].as_u64())).collect();
    assert_eq!(found, [(Some(0), Some(3000)), (Some(1), Some(1000)), (Some(2), Some(1000))]);
    assert_eq!(jobs("[a]\nrw=read\nnumjobs=3").len(), 3);
    let only =
        &jobs("[a]\nrw=read\npercentile_list=25:75\nlat_percentiles=1\nclat_percentiles=0\ndescription=why")
            [0];
    let listed = only["read"]["lat_ns"]["percentile"].as_object().expect("percentiles of the total latency");
    assert!(listed.keys().eq(&["25.000000", "75.000000"]), "{listed:?}");
    assert!(only["read"]["clat_ns"].get("percentile").is_none() && only["desc"] == "why");
}

#[test]
fn logs_have_a_line_per_interval() {
    let log = |settings: &str, kind: &str| {
        let outcome = World::memory().run(&format!("[j]\nrw=read\n{settings}"));
        let files = series::log_files(outcome.only(), "p", 1);
        let file = files
            .into_iter()
            .find(|file| file.name == format!("p_{kind}.1.log"))
            .expect("a log of each kind");
        file.content.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // 1000 reads of 100 us: 100 in each of ten intervals.
    let lines = log("write_iops_log=p\nlog_avg_msec=10", "iops");
    assert_eq!(lines.len(), 10);
    assert_eq!((lines[0].as_str(), lines[9].as_str()), ("10, 9900, 0, 0, 0", "100, 10000, 0, 0, 0"));
    assert_eq!(
        log("write_lat_log=p\nlog_avg_msec=50", "clat"),
        ["50, 100000, 0, 0, 0", "100, 100000, 0, 0, 0"]
    );
    assert_eq!(log("write_bw_log=p", "bw"), ["100, 40000, 0, 0, 0"]);
}

/// A share of the I/Os has a priority of its own; the drive treats all alike, and the I/O is the same with and without.
#[test]
fn each_priority_is_reported_and_logged_by_itself() {
    let text =
        "[j]\nrw=randrw\nwrite_lat_log=x\nlog_avg_msec=10\nlog_prio=1\nprioclass=3\nprio=2\nrandseed=4\n";
    let with = format!("{text}cmdprio_percentage=20,40\ncmdprio_class=1\n");
    let (mut plain, mut drawn) = (World::memory(), World::memory());
    let outcome = plain.run(text);
    let job = report(&outcome)["jobs"][0].clone();
    assert!(job["read"].get("prios").is_none(), "one priority is no news");
    let outcome_drawn = drawn.run(&with);
    assert_eq!(plain.memory.borrow().seen, drawn.memory.borrow().seen, "seed 4: the I/O is another");
    let job = report(&outcome_drawn)["jobs"][0].clone();
    for (direction, percent) in [("read", 20), ("write", 40)] {
        let prios = job[direction]["prios"].as_array().expect("a list").clone();
        let found: Vec<_> = prios
            .iter()
            .map(|each| (each["prioclass"].as_u64(), each["prio"].as_u64(), each["clat_ns"]["N"].as_u64()))
            .collect();
        let ios = job[direction]["total_ios"].as_u64().expect("a count");
        let [(Some(1), Some(0), Some(own)), (Some(3), Some(2), Some(rest))] = found[..] else {
            panic!("{direction}: {found:?}")
        };
        assert_eq!(own + rest, ios, "{direction}");
        assert!((own * 100).abs_diff(ios * percent) < ios * 8, "seed 4, {direction}: {own} of {ios}");
    }
    let lines = |outcome: &Outcome| requested_logs(&outcome.results)[0].content.clone();
    assert!(lines(&outcome).lines().all(|line| line.ends_with(", 0, 0x6002")), "{}", lines(&outcome));
    for (direction, priority) in [(0, "0x2000"), (0, "0x6002"), (1, "0x2000"), (1, "0x6002")] {
        let end = format!(", {direction}, 0, {priority}");
        assert!(lines(&outcome_drawn).lines().any(|line| line.ends_with(&end)), "no line ends with {end}");
    }
}
