//! Jobs on a block target with workloads of other interfaces beside them, on one drive by the real loop.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::wrap::Trace;
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, TargetId};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use ocssd_workload::beside::{Asker, Askers, Joined, OnTarget};
use ocssd_workload::generator::closed_loop::ClosedLoop;
use ocssd_workload::generator::mooncake::synthetic::synthetic;
use ocssd_workload::generator::mooncake::{Mooncake, MooncakeOptions};
use ocssd_workload::generator::ycsb::{Ycsb, YcsbOptions};
use ocssd_workload::job::parse_job_file;
use ocssd_workload::run::{JobPlan, PlannedJob, Runner, TargetShape};

/// A host with targets of any interfaces.
type AnyHost = Host<Trace<Flash>, VirtualClock, AnyTarget>;

/// A drive of 2 x 2 units of 64 small chunks, and a host without targets.
fn host() -> AnyHost {
    let tiny = presets::find("tiny").expect("a preset").config();
    let mut geometry = Geometry { chunks_per_pu: 64, ..tiny.geometry };
    geometry.lba_format.chunk_bits = 6;
    let flash = Flash::format(Config { geometry, payload: Payload::Bytes, ..tiny }).expect("a sound drive");
    let buffers = Buffers::new(flash.payload_format());
    Host::new(Trace::new(flash, 0), VirtualClock::default(), buffers)
}

fn add(host: &mut AnyHost, kind: &str, unit: u32, options: &[(&str, &str)]) -> TargetId {
    let options: Vec<(String, String)> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let spec = TargetSpec { units: &[PuId(unit)], layout: Layout::Striped, options: &options };
    let mut caller = host.caller();
    let made = registry::find(kind).expect("a kind").make_any(&mut caller, &spec);
    let made = made.unwrap_or_else(|sentence| panic!("{kind} on unit {unit}: {sentence}"));
    host.add(Box::new(made.target))
}

fn keys(host: &AnyHost, target: TargetId, seed: u64) -> [Box<dyn Asker>; 2] {
    let prng = Prng::new(seed);
    let ycsb =
        YcsbOptions::parse("workload=a,recordcount=60,operationcount=100k,fieldlength=300").expect("sound");
    let ycsb = ClosedLoop::new(Ycsb::new(ycsb, &prng), 8);
    let second = TargetId(target.0 + 1);
    let limits = host.target(second).key_value().expect("a target of keys").limits();
    let options = "requests=40,speed=5000,bytespertoken=1,cachebytes=200k";
    let options = MooncakeOptions::parse(options, &limits).expect("sound");
    let trace = synthetic(options.drawn(), &prng);
    let mooncake = ClosedLoop::new(Mooncake::new(options, trace), 3);
    [
        Box::new(OnTarget::<Ycsb, dyn KvTarget>::new(ycsb, target)),
        Box::new(OnTarget::<Mooncake, dyn KvTarget>::new(mooncake, second)),
    ]
}

/// What a run came to: a hash of all that happened, when it ended, and how many requests each was answered.
type Ended = (u64, Nanos, Vec<u64>, u64);

/// Runs jobs with two workloads of keys beside them, stopped for a look after each `slice`.
fn run(text: &str, seed: u64, slice: Nanos) -> Ended {
    let mut host = host();
    let blocks = add(&mut host, "pblk", 0, &[("requests_max", "4")]);
    let first = add(&mut host, "kv", 1, &[]);
    add(&mut host, "kv", 2, &[]);
    let mut askers = Askers::new(keys(&host, first, seed).into());
    askers.load_only(true);
    while host.run(&mut Joined::alone(&mut askers), host.clock().now() + slice) != RunEnd::Finished {}
    askers.load_only(false);
    host.settle();
    let parsed =
        parse_job_file(text, "test", &|_| None, &|_| Err("there is none".to_owned())).expect("sound jobs");
    let jobs = parsed.jobs.into_iter().map(|job| PlannedJob { job, target: blocks }).collect();
    let mut buffers = host.take_buffers();
    let shapes = [TargetShape(host.target(blocks).block().expect("a target of blocks"))];
    let plan = JobPlan::new(jobs, &shapes).expect("a plan");
    let mut runner = Runner::new(plan, &shapes, &mut buffers, seed, host.clock().now());
    host.return_buffers(buffers);
    let mut looks = 0;
    while host.run(&mut Joined::new(&mut runner, &mut askers), host.clock().now() + slice) != RunEnd::Finished
    {
        looks += 1;
    }
    let ios = runner.progress(host.clock().now()).ios;
    assert_eq!(host.run(&mut Joined::alone(&mut askers), Nanos::MAX), RunEnd::Finished, "seed {seed}");
    askers.iter().for_each(|asker| assert_eq!(asker.failure(), None, "seed {seed}, {looks} looks"));
    let answered = askers.iter().map(|asker| asker.progress().1).collect();
    (host.device().hash(), host.clock().now(), answered, ios)
}

/// Jobs that find no room in their target, that wait for times of their own, and that do both.
const JOBS: [&str; 3] = [
    "[w]\nrw=randwrite\nbs=16k\niodepth=64\nsize=2m\nio_size=6m\n",
    "[r]\nrw=randrw\nbs=4k\nsize=1m\nrate_iops=30k\nnumber_ios=900\nnorandommap\n",
    "[w]\nrw=write\nbs=32k\niodepth=32\nsize=1m\nloops=3\n[r]\nrw=randrw\nbs=4k\nsize=1m\nthinktime=90us\nnumber_ios=400\n\
     norandommap\n",
];

#[test]
fn where_the_loop_is_stopped_for_a_look_changes_nothing() {
    for (text, seed) in JOBS.into_iter().zip(1..) {
        let at_once = run(text, seed, Nanos::from_secs(1_000));
        let (_, _, answered, ios) = &at_once;
        assert!(answered.iter().all(|count| *count > 60) && *ios > 100, "seed {seed}: {at_once:?}");
        for slice in [1_003, 7_919, 49_999, 1_000_003] {
            assert_eq!(
                run(text, seed, Nanos(slice)),
                at_once,
                "seed {seed}, a look every {slice} ns\n{text}"
            );
        }
    }
}

#[test]
fn another_seed_is_another_run() {
    let [one, other] = [1, 2].map(|seed| run(JOBS[1], seed, Nanos::from_secs(1_000)));
    assert_ne!(one.0, other.0);
}
