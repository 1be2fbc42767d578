//! Targets of every interface on virtual CPUs, asked by their generators under the real loop.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::interface::log_structured::LogTarget;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::interface::zoned::ZonedTarget;
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId};
use ocssd_targets::Layout;
use ocssd_targets::registry::{self, Make, MakeOf, TargetSpec};
use ocssd_workload::generator::Generator;
use ocssd_workload::generator::closed_loop::{ClosedLoop, Phase};
use ocssd_workload::generator::db_bench::{DbBench, DbBenchOptions};
use ocssd_workload::generator::page_store::{PageStore, PageStoreOptions};
use ocssd_workload::generator::ycsb::{Ycsb, YcsbOptions};
use ocssd_workload::generator::zoned::{Zoned, ZonedOptions};
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, HostCpuStats, Hosted, Waiting};

/// CPU of a request that reads, of one that writes, and of any other.
const READ: Nanos = Nanos(10_000);
const WRITE: Nanos = Nanos(20_000);
const OTHER: Nanos = Nanos(5_000);

/// What a run came to.
struct Ran {
    phases: Vec<Phase>,
    answered: u64,
    ended: Nanos,
    stats: Option<HostCpuStats>,
}

/// Runs a generator on a new target over all units of a small drive, on these CPUs if there are any.
fn run<T, G>(make: Make<T>, cpus: Option<HostCpuConfig>, generator: &dyn Fn(&T) -> G) -> Ran
where
    T: Hosted + ?Sized + 'static,
    G: Generator<Request = T::Request, Reply = T::Reply>,
{
    let tiny = presets::find("tiny").expect("a preset").config();
    let mut geometry = Geometry { chunks_per_pu: 64, ..tiny.geometry };
    geometry.lba_format.chunk_bits = 6;
    let sector_bytes = geometry.sector_bytes;
    let config = Config { geometry, payload: Payload::Bytes, ..tiny };
    let mut flash = Flash::format(config).expect("a sound drive");
    let (mut buffers, mut clock) = (Buffers::new(flash.payload_format()), VirtualClock::default());
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &[] };
    let target = make(&mut caller, &spec).expect("it fits").target;
    let mut source = ClosedLoop::new(generator(&target), 16);
    let (target, stats) = match cpus {
        Some(cpus) => {
            let on_cpus = HostCpu::on_sectors(target, sector_bytes, cpus).expect("sound parameters");
            let stats = on_cpus.stats();
            (T::boxed(on_cpus), Some(stats))
        }
        None => (target, None),
    };
    let mut host: Host<Flash, VirtualClock, T> = Host::new(flash, clock, buffers);
    let id = host.add(target);
    loop {
        let until = host.clock().now() + Nanos::from_millis(3);
        let end = host.run(&mut source, until);
        host.target(id).check();
        match end {
            RunEnd::Finished => break,
            RunEnd::Stopped => {}
            RunEnd::Stuck => panic!("the loop waits for nobody"),
        }
    }
    assert_eq!(source.failure(), None, "a request failed");
    let (phases, answered) = (source.phases().to_vec(), source.answered());
    Ran { phases, answered, ended: host.clock().now(), stats: stats.map(|stats| stats.read()) }
}

/// Asserts that CPUs without costs change next to nothing, and that every request pays for others.
fn check<T, G>(make: Make<T>, generator: &dyn Fn(&T) -> G) -> HostCpuStats
where
    T: Hosted + ?Sized + 'static,
    G: Generator<Request = T::Request, Reply = T::Reply>,
{
    let bare = run(make, None, generator);
    assert!(bare.answered > 100, "{} requests", bare.answered);
    for waiting in [Waiting::Fair, Waiting::BusyRetry] {
        let free = run(make, Some(HostCpuConfig { waiting, ..HostCpuConfig::free() }), generator);
        // Commands of one time may change places, for writers have a queue of their own.
        let apart = free.ended.0.abs_diff(bare.ended.0);
        assert_eq!(free.answered, bare.answered, "{waiting:?}, without costs");
        assert!(
            apart <= bare.ended.0 / 50,
            "{waiting:?}: {} without CPUs, {} on free ones",
            bare.ended,
            free.ended
        );
    }
    let costs = HostCpuConfig {
        cores: 16,
        cores_per_socket: 16,
        read_submit_ns: READ,
        write_submit_ns: WRITE,
        other_submit_ns: OTHER,
        ..HostCpuConfig::free()
    };
    let charged = run(make, Some(costs), generator);
    let stats = charged.stats.expect("it ran on CPUs");
    assert_eq!(stats.requests, charged.answered, "every request is one of a thread");
    assert!(stats.cpu_ns >= OTHER * stats.requests, "{} for {} requests", stats.cpu_ns, stats.requests);
    for measured in charged.phases.iter().flat_map(|phase| &phase.measured) {
        let least = measured.latency.min().expect("it was asked");
        let cost = if measured.is_stored { WRITE } else { OTHER };
        assert!(least >= cost, "a {} took {least}, and its CPU {cost}", measured.name);
    }
    check_copies(make, generator);
    stats
}

/// Asserts that the pages of all that is stored are copied, and not twice as many.
fn check_copies<T, G>(make: Make<T>, generator: &dyn Fn(&T) -> G)
where
    T: Hosted + ?Sized + 'static,
    G: Generator<Request = T::Request, Reply = T::Reply>,
{
    let copies = HostCpuConfig { copy_page_ns: Nanos(1_000), ..HostCpuConfig::free() };
    let copied = run(make, Some(copies), generator);
    let all: Vec<_> = copied.phases.iter().flat_map(|phase| &phase.measured).collect();
    let stored: u64 = all.iter().filter(|one| one.is_stored).map(|one| one.bytes).sum();
    let (bytes, requests): (u64, u64) =
        all.iter().fold((0, 0), |(bytes, count), one| (bytes + one.bytes, count + one.latency.count()));
    let pages = copied.stats.expect("it ran on CPUs").cpu_ns.0 / 1_000;
    assert!(pages >= stored / 4_096, "{pages} pages copied of {stored} bytes that were stored");
    assert!(pages <= bytes / 4_096 + 2 * requests, "{pages} pages copied for {bytes} bytes of {requests}");
}

fn make_of(kind: &str) -> MakeOf {
    registry::find(kind).expect("a kind").make_of()
}

fn keys(options: &'static str) -> impl Fn(&(dyn KvTarget + 'static)) -> Ycsb {
    move |_: &(dyn KvTarget + 'static)| Ycsb::new(YcsbOptions::parse(options).expect("sound"), &Prng::new(3))
}

#[test]
fn keys_and_values_pay_for_processors() {
    let MakeOf::KeyValue(make) = make_of("kv") else { panic!("kv speaks of keys") };
    let mixed = "workload=a,recordcount=200,operationcount=600,fieldlength=40,batchproportion=0.2,readproportion=0.4,\
                 updateproportion=0.3,deleteproportion=0.1,durable=reply";
    check(make, &keys(mixed));
}

#[test]
fn what_users_read_is_not_prepared_by_the_garbage_collector() {
    let MakeOf::KeyValue(make) = make_of("kv") else { panic!("kv speaks of keys") };
    let stats = check(make, &keys("workload=c,recordcount=400,operationcount=600,fieldlength=300"));
    assert_eq!(stats.gc.commands, 0, "nothing is collected, and the keys are read: {stats:?}");
}

#[test]
fn tables_pay_for_processors() {
    let MakeOf::Table(make) = make_of("lightlsm") else { panic!("lightlsm speaks of tables") };
    let options = "benchmarks=fillrandom,readrandom num=3000 reads=300 write_buffer_size=65536 \
                   target_file_size_base=65536 value_size=100";
    check(make, &|target: &(dyn TableTarget + 'static)| {
        DbBench::new(DbBenchOptions::parse(options).expect("sound"), target.limits(), &Prng::new(3))
    });
}

#[test]
fn pages_pay_for_processors_and_flushes_keep_their_order() {
    let MakeOf::Log(make) = make_of("eleos") else { panic!("eleos speaks of pages") };
    let options =
        "sessions=2,pages=60,buffer=32k,page_bytes_min=500,page_bytes_max=3000,requests=400,rwmixread=50";
    check(make, &|target: &(dyn LogTarget + 'static)| {
        let limits = target.limits();
        let options = PageStoreOptions::parse(options, &limits).expect("sound");
        PageStore::new(options, limits, &Prng::new(3))
    });
}

#[test]
fn zones_pay_for_processors_and_are_written_in_order() {
    let MakeOf::Zoned(make) = make_of("zns") else { panic!("zns speaks of zones") };
    for options in [
        "rw=write,bs=16k,io_size=4m",
        "rw=randrw,bs=16k,io_size=4m,max_open_zones=2",
        "rw=write,bs=16k,io_size=4m,zone_append=1",
    ] {
        check(make, &|target: &(dyn ZonedTarget + 'static)| {
            let zones = target.zone_geometry();
            Zoned::new(ZonedOptions::parse(options, &zones).expect("sound"), zones, &Prng::new(3))
        });
    }
}
