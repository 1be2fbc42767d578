//! How long `ox-block` takes to recover, in virtual time: figure 3 of CIDR 2020 in small. Without checkpoints it grows with the
//! log, with them it does not, and a bound on it is kept.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::{Buffers, Geometry, MediaTimes, PuId, Tag};
use ocssd_targets::ox_block::{MountReport, Options, OxBlock};

const UNITS: u32 = 4;
/// Points at which the controller dies, as many as the figure has.
const POINTS: usize = 6;
/// Transactions between two of them (chosen: some hundreds of pages of log).
const TRANSACTIONS: u32 = 120;

fn config() -> Config {
    let times = MediaTimes { read_typical: Nanos::from_micros(70), ..MediaTimes::default() };
    let geometry = Geometry { mw_cunits: 8, times, ..Geometry::example(2, 2, 200, 64, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.media.read = vec![Nanos::from_micros(70)];
    config.media.program = vec![Nanos::from_micros(300)];
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

fn options(pairs: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in [("over_provisioning_percent", "40"), ("seed", "5")].iter().chain(pairs) {
        options.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    options
}

fn mount(flash: Flash, now: Nanos, options: &Options) -> (Host<Flash, VirtualClock, OxBlock>, MountReport) {
    let mut clock = VirtualClock::default();
    clock.wait_until(now);
    let buffers = Buffers::new(flash.payload_format());
    let mut host = Host::new(flash, clock, buffers);
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let mounted = OxBlock::mount(&mut host.caller(), &units, options);
    let (target, report) = mounted.unwrap_or_else(|error| panic!("{error}"));
    host.add(Box::new(target));
    (host, report)
}

/// What recovery did when the controller died at each point of a closed loop of random writes of up to 64 KiB.
fn killed_at_points(pairs: &[(&str, &str)]) -> Vec<MountReport> {
    let (options, mut prng) = (options(pairs), Prng::new(3));
    let flash = Flash::format(config()).unwrap_or_else(|problems| panic!("{problems}"));
    let (mut host, report) = mount(flash, Nanos(0), &options);
    assert!(report.is_new);
    let buffer = host.buffers_mut().take(16);
    let mut reports = Vec::new();
    for point in 0..POINTS {
        for nth in 0..TRANSACTIONS {
            let count = u32::try_from(1 + prng.below(16)).expect("small");
            let (op, block) = (BlockOp::Write { fua: false }, prng.below(2_000));
            let request = BlockRequest { tag: Tag(nth), op, block, count, buffer: Some(buffer) };
            assert!(host.ask(request).status.is_success(), "point {point}, write {nth}");
        }
        let mut flash = host.device().fork().expect("a drive in memory");
        let now = host.clock().now();
        flash.power_cut(now, &mut Prng::new(1)).expect("memory does not fail");
        reports.push(mount(flash, now, &options).1);
    }
    reports
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

/// How well a line fits, and what it says at the first and the last point.
fn linear(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let (xy, xx, yy) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    xy * xy / (xx * yy)
}

#[test]
fn recovery_grows_with_the_log_and_checkpoints_bound_it() {
    let off = killed_at_points(&[("checkpoint_log_bytes", "12582912")]);
    let points: Vec<(f64, f64)> =
        off.iter().map(|report| (report.log_pages_read as f64, millis(report.phases.log))).collect();
    println!("off: {points:?}");
    let fit = linear(&points);
    assert!(fit >= 0.98, "the log is not read in linear time: R2 {fit}, {points:?}");
    assert!(points[5].1 > 4.0 * points[0].1, "six times the log: {points:?}");
    let read = off[5].sectors_read - off[0].sectors_read;
    let pages = off[5].log_pages_read - off[0].log_pages_read;
    assert!(read < 2 * pages, "{pages} pages of a transaction each take {read} sectors");
    for interval in ["1048576", "2097152"] {
        let on = killed_at_points(&[("checkpoint_log_bytes", interval)]);
        let times: Vec<f64> = on.iter().map(|report| millis(report.phases.log)).collect();
        println!("on, {interval} bytes: {times:?}");
        assert!(times[5] < points[5].1 * 0.8, "a checkpoint cuts the log: {times:?}");
    }
    let within = killed_at_points(&[("recovery", "10ms")]);
    let times: Vec<f64> = within.iter().map(|report| millis(report.phases.log)).collect();
    println!("within 10 ms: {times:?}");
    assert!(times.iter().all(|&time| time <= 10.0), "a bound of 10 ms: {times:?}");
    assert!(within.iter().all(|report| report.transactions > 0), "there is a log to replay");
    let unbounded = options(&[("recovery", "2s")]);
    let mut unknown = config();
    unknown.geometry.times = MediaTimes::default();
    let flash = Flash::format(unknown).unwrap_or_else(|problems| panic!("{problems}"));
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<Flash, VirtualClock, OxBlock> = Host::new(flash, VirtualClock::default(), buffers);
    let refused = OxBlock::mount(&mut host.caller(), &[PuId(0)], &unbounded).map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("how long a read takes")));
}

#[test]
fn phases_add_up_and_are_told() {
    let report = killed_at_points(&[])[0];
    let told = report.phases.to_string();
    for part in ["block metadata", "checkpoint and map read", "log replay", "new checkpoint"] {
        assert!(told.contains(part), "{told}");
    }
    let phases = report.phases;
    let all = [phases.blocks, phases.checkpoint, phases.log, phases.new_checkpoint];
    assert!(all.iter().all(|time| time.0 > 0), "{told}");
}

/// Commits gather for a page as long as nobody waits for them.
#[test]
fn pages_of_many_commits_are_read_to_their_end() {
    const WRITES: u32 = 2_000;
    let options = options(&[("checkpoint_log_bytes", "12582912"), ("durability", "flush")]);
    let flash = Flash::format(config()).unwrap_or_else(|problems| panic!("{problems}"));
    let (mut host, _) = mount(flash, Nanos(0), &options);
    let mut requests: Requests<OxBlock> = Requests::default();
    let buffer = host.buffers_mut().take(1);
    for nth in 0..WRITES {
        let (op, block) = (BlockOp::Write { fua: false }, 2 * u64::from(nth));
        requests.push(BlockRequest { tag: Tag(nth), op, block, count: 1, buffer: Some(buffer) });
    }
    assert_eq!(host.run(&mut requests, Nanos::MAX), RunEnd::Finished);
    assert!(requests.take_replies().iter().all(|reply| reply.status.is_success()));
    let flush = BlockRequest { tag: Tag(WRITES), op: BlockOp::Flush, block: 0, count: 0, buffer: None };
    assert!(host.ask(flush).status.is_success());
    let mut flash = host.device().fork().expect("a drive in memory");
    let now = host.clock().now();
    flash.power_cut(now, &mut Prng::new(1)).expect("memory does not fail");
    let report = mount(flash, now, &options).1;
    assert_eq!(report.transactions, u64::from(WRITES), "{report:?}");
    // An entry and a commit each, where a sector has 169.
    let entries = 2 * u64::from(WRITES) / report.log_pages;
    assert!(entries > 169, "{} pages have {entries} entries each", report.log_pages);
}
