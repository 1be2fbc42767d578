//! Jobs with workloads of other interfaces beside them.

use crate::program::Program;
use serde_json::Value;

/// A drive that is large enough for two targets.
const DRIVE: &str = "--drive tiny --set chunks_per_pu=64";
/// A job on one of its groups.
const JOB: &str = "[mix]\nrw=randrw\nbs=4k\niodepth=8\nioengine=libaio\nsize=1m\nio_size=20m\nnumber_ios=3000\nnorandommap\n\
                   ;ocssd: target=pblk place=group:0\n";

fn program() -> Program {
    let program = Program::new();
    program.write("mix.fio", JOB.as_bytes());
    program
}

/// Arguments with one that has blanks.
fn run(program: &Program, before: &str, workloads: &[&str]) -> crate::program::Answer {
    let mut command = program.command(&format!("{before} {DRIVE} --quiet mix.fio"));
    for workload in workloads {
        command.args(["--beside", workload]);
    }
    crate::program::Answer::of(&command.output().expect("the program was built for this test"))
}

fn json(program: &Program, workloads: &[&str]) -> Value {
    let said = run(program, "--json run", workloads);
    assert_eq!(said.code, 0, "{workloads:?}: {}{}", said.out, said.err);
    serde_json::from_str(&said.out).expect("JSON")
}

const YCSB: &str =
    "ycsb workload=a,recordcount=100,operationcount=100k,durable=reply --target kv --place pu:2 --iodepth 4";

#[test]
fn a_job_and_a_workload_share_a_drive_and_both_are_in_the_result() {
    let program = program();
    let result =
        json(&program, &[YCSB, "zbd rw=randwrite,bs=16k,io_size=100m,max_open_zones=2 --place pu:3"]);
    let job = &result["jobs"][0];
    let ios = [&job["read"], &job["write"]].map(|side| side["total_ios"].as_u64().expect("a count"));
    assert_eq!(ios[0] + ios[1], 3_000, "{job}");
    let [ycsb, zbd] = result["ocssd"]["beside"].as_array().expect("a list").as_slice() else {
        panic!("{result}")
    };
    let target = "kv on pu:2, host_cpu e5-2620v3";
    assert_eq!((&ycsb["workload"], &ycsb["target"]), (&YCSB.into(), &target.into()));
    for (one, phases) in [(ycsb, &["load", "run"][..]), (zbd, &["run"])] {
        assert_eq!(one["verdict"], "pass", "{one}");
        let named: Vec<&str> = one["phases"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["phase"].as_str())
            .collect();
        assert_eq!(named, phases);
        let last = &one["phases"][phases.len() - 1];
        let operations = last["operations"].as_u64().expect("a count");
        assert!((20..100_000).contains(&operations), "it is stopped with the jobs: {one}");
        assert!(
            one["media"]["written_bytes"].as_u64() > Some(0)
                && last["requests"][0]["count"].as_u64() > Some(0)
        );
    }
    let again = json(&program, &[YCSB, "zbd rw=randwrite,bs=16k,io_size=100m,max_open_zones=2 --place pu:3"]);
    assert!(result["ocssd"]["trace_hash"].is_string());
    assert_eq!(result["ocssd"]["trace_hash"], again["ocssd"]["trace_hash"]);
    assert_eq!(result["ocssd"]["beside"], again["ocssd"]["beside"]);
}

/// Goal: who shares a channel is felt. Method: reads with the same writer beside them on their channel, and on another.
#[test]
fn a_workload_on_units_of_the_same_channel_is_felt_by_the_job() {
    let program = program();
    let reads = JOB.replace("place=group:0", "place=pu:0").replace("randrw", "randread");
    program.write("mix.fio", reads.replace("iodepth=8", "iodepth=4").as_bytes());
    let mean = |unit: &str| {
        let pages = "page-store requests=1m,pages=200,page_bytes_max=8k,buffer=64k,sessions=4 --place";
        let result = json(&program, &[&format!("{pages} {unit}")]);
        result["jobs"][0]["read"]["clat_ns"]["mean"].as_f64().expect("a time")
    };
    let (near, far) = (mean("pu:1"), mean("pu:2"));
    assert!(
        near > 1.01 * far,
        "reads take {near} ns with a writer on the channel, {far} ns with one on another"
    );
}

#[test]
fn text_has_both_within_eighty_columns_and_how_to_run_it_again() {
    let said =
        run(&program(), "run", &[YCSB, "ycsb recordcount=9,operationcount=200,durable=reply --place pu:3"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    for words in [
        "verdict: ",
        " mix ",
        "beside the jobs: ycsb",
        "retrieve",
        "durable=reply",
        "had no more to ask after",
    ] {
        let unfolded = said.out.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(unfolded.contains(words.trim()), "no {words:?} in\n{}", said.out);
    }
    let command = said.out.split("run again: ").nth(1).expect("the command").replace(" \\\n ", "");
    assert!(command.contains(&format!("--beside '{YCSB}'")), "{command}");
    let wide = said
        .out
        .lines()
        .find(|line| line.chars().count() > 80 && !line.contains("--beside") && !line.contains(YCSB));
    assert_eq!(wide, None);
}

/// Goal: what asks beside jobs pays for processors. Method: puts that a buffer answers, with the default ones and without.
#[test]
fn what_asks_beside_jobs_takes_time_of_the_hosts_processors() {
    let program = program();
    let asked = |host: &str| {
        let puts = "ycsb workload=a,readproportion=0,updateproportion=1,recordcount=100,operationcount=100k --place pu:2";
        let said = run(&program, &format!("--json run {host}"), &[puts]);
        assert_eq!(said.code, 0, "{host}: {}{}", said.out, said.err);
        let result: Value = serde_json::from_str(&said.out).expect("JSON");
        let one = result["ocssd"]["beside"][0].clone();
        let least = one["phases"][1]["requests"][0]["lat_ns"]["min"].as_u64().expect("a time");
        let requests = one["counters"]["host_requests"].as_u64();
        (least, requests, one["target"].to_string())
    };
    let (least, requests, target) = asked("");
    assert!(least >= 2_900, "FAST'17's write takes 2.9 us, this one {least} ns");
    assert!(requests > Some(100) && target.contains("host_cpu e5-2620v3"), "{requests:?}, {target}");
    let (least, requests, target) = asked("--host-cpu none");
    assert!(
        least < 2_900 && requests.is_none() && !target.contains("host_cpu"),
        "{least}, {requests:?}, {target}"
    );
}

/// Goal: a database runs beside jobs and is stopped with them. Method: one that does more than the jobs, and one that does less.
#[test]
fn a_database_runs_beside_jobs_and_shows_its_own_report() {
    let program = program();
    let lsm = "lsm benchmarks=fillseq,readrandom threads=2 num=5k reads=1m value_size=100 write_buffer_size=256k \
               target_file_size_base=256k --target lightlsm --place pu:2-3";
    let result = json(&program, &[lsm]);
    let one = &result["ocssd"]["beside"][0];
    assert_eq!((&one["verdict"], &one["target"]), (&"pass".into(), &"lightlsm on pu:2-3".into()), "{one}");
    let phases = one["phases"].as_array().expect("a list");
    let (puts, gets) = (phases[0]["puts"].as_u64(), phases[1]["gets"].as_u64());
    assert_eq!((phases.len(), puts), (2, Some(2 * 5 * 1_024)), "{one}");
    assert!(gets > Some(0) && gets < Some(1 << 20), "it is stopped with the jobs: {one}");
    let took: u64 = phases.iter().filter_map(|phase| phase["took_ns"].as_u64()).sum();
    let runtime = result["jobs"][0]["job_runtime"].as_u64().expect("a time") * 1_000_000;
    assert!(took.abs_diff(runtime) <= runtime / 20, "{took} ns, where the jobs took {runtime}");
    assert!(one["media_written_bytes"].as_u64() > Some(0), "tables are written: {one}");
    let again = json(&program, &[lsm]);
    assert_eq!(result["ocssd"]["trace_hash"], again["ocssd"]["trace_hash"]);
    assert_eq!(*one, again["ocssd"]["beside"][0]);
    let little = lsm.replace("num=5k", "num=10").replace("fillseq,readrandom", "fillseq");
    let said = run(&program, "run", &[&little]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    for words in ["fillseq: 20 operations", "had no more to ask", "media: "] {
        assert!(said.out.contains(words), "{words:?} is not in\n{}", said.out);
    }
}

#[test]
fn a_workload_that_fails_fails_the_run() {
    let said = run(
        &program(),
        "run",
        &[
            "ycsb workload=d,recordcount=10,operationcount=10m,insertproportion=1,readproportion=0 --place pu:2",
        ],
    );
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    let verdict = said.verdict();
    assert!(
        verdict.starts_with("verdict: fail: ycsb beside the jobs (kv on pu:2, host_cpu e5-2620v3): store: "),
        "{verdict}"
    );
}

#[test]
fn what_cannot_be_asked_beside_jobs_is_refused_with_a_sentence() {
    let program = program();
    let own = "needs units of its own: give it a --place";
    for (workloads, words) in [
        (&["ycsb workload=a"][..], own),
        (&["zbd --place pu:1"], "parallel unit 1 belongs to target \"run0\""),
        (&["ycsb --place pu:2", "zbd --place pu:2-3"], own),
        (&["ycsb --target pblk --place pu:2"], "speaks of blocks, but ycsb asks for keys and values"),
        (&["ycsb workloud=a --place pu:2"], "did you mean `workload`?"),
        (&["ycsb workload=a,recordcount=1m --place pu:2"], "could not load what it asks for: store: "),
        (&["ycsb --place pu:9"], "but unit 9 was named"),
        (&["yscb workload=a"], "a similar value exists: 'ycsb'"),
        (&["ycsb --drive tiny"], "unexpected argument '--drive' found"),
        (&["lsm num=10 --place pu:2 --iodepth 4"], "leave --iodepth out, and give threads=N"),
        (&[""], "Its words are those of `ocssd workload`"),
    ] {
        let said = run(&program, "run", workloads);
        assert_eq!(said.code, 2, "{workloads:?} said:\n{}{}", said.out, said.err);
        assert!(said.err.contains(words), "{workloads:?} does not say {words:?}:\n{}", said.err);
        assert_eq!(said.out, "", "{workloads:?} printed a result");
    }
}

#[test]
fn two_workloads_do_not_ask_one_target_of_an_image_and_its_content_stays() {
    let program = program();
    program.good("format drive.img --drive tiny --set chunks_per_pu=64 --set payload=bytes");
    program.good("target create drive.img store --kind kv --units pu:2");
    let image = |workloads: &[&str]| {
        let mut command = program.command("run --drive drive.img --quiet mix.fio");
        for workload in workloads {
            command.args(["--beside", workload]);
        }
        crate::program::Answer::of(&command.output().expect("the program was built for this test"))
    };
    let ask = "ycsb workload=a,recordcount=50,operationcount=100k,durable=reply --target store";
    let twice = image(&[ask, ask]);
    assert_eq!(twice.code, 2, "{}", twice.out);
    assert!(twice.err.contains("another asks the same target of the image"), "{}", twice.err);
    let once = image(&[ask]);
    assert_eq!(once.code, 0, "{}{}", once.out, once.err);
    let again = image(&[ask]);
    assert_eq!(again.code, 0, "{}{}", again.out, again.err);
    assert!(
        again.out.contains("mounted") || again.out.contains("after a shutdown"),
        "it lies there:\n{}",
        again.out
    );
}
