//! What a mount costs: after a clean shutdown, and after a power cut.
//!
//! Processor time of the whole mount, the drive's part of it included. A full 2 TB drive takes 18 GB even in stamps, so
//! drives of two fractions of it are mounted, with as many chunks as the full one has, in shorter chunks: looking at chunks
//! costs what it costs there, and the rest grows with the map. The line through both says what the full one would take.

use crate::cpu;
use crate::report;
use crate::world::runner;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{Buffers, Source, Tag, TargetId};
use ocssd_targets::pblk::{MountReport, Options, Pblk};

/// Name of this benchmark.
pub const NAME: &str = "pblk_mount_full_2tb";
/// What is mounted: a drive with one part of so many of the sectors in each chunk, and the data between two snapshots when
/// its power is cut, in words and bytes. The larger drive fits 4 GB.
const CASES: [(u32, &str, &str); 3] =
    [(16, "256m", "268435456"), (16, "1g", "1073741824"), (8, "256m", "268435456")];
/// Writes the whole instance.
const FILL: &str = "[w]\nioengine=libaio\nrw=write\nbs=256k\niodepth=64\nsize=100%\n";
/// Writes after which the power is cut: 2.5 GiB, so that snapshots were taken meanwhile and there is something after them.
const OVERWRITE: &str =
    "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=256\nsize=100%\nio_size=2560m\nnorandommap\n";

type DriveHost = Host<Flash, VirtualClock>;

/// Asks a target to shut down.
struct ShutDown {
    target: TargetId,
    asked: bool,
    done: bool,
}

impl Source for ShutDown {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        let request = BlockRequest { tag: Tag(0), op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
        (!std::mem::replace(&mut self.asked, true)).then_some((self.target, request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, _request: BlockRequest) {
        unreachable!("a target that owes no reply takes a request");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "the shutdown failed: {:?}", reply.status);
        self.done = true;
    }

    fn is_finished(&self) -> bool {
        self.done
    }
}

/// One mount, and what it cost.
struct Mounted {
    target: Pblk,
    found: MountReport,
    spent: Nanos,
    blocks: u64,
}

/// Mounts what lies on all units of the drive.
fn mount(mut host: DriveHost, interval: Option<&str>) -> (DriveHost, Mounted) {
    let mut options = Options::default();
    if let Some(bytes) = interval {
        options.set("snapshot_interval_bytes", bytes).expect("a number");
    }
    let units = UnitSelection::All.resolve(&host.device().config().geometry).expect("every unit");
    let mut buffers = host.take_buffers();
    let mut clock = VirtualClock::default();
    clock.wait_until(host.clock().now());
    let device = host.device_mut();
    let mut caller = Caller { device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let before = cpu::thread_time();
    let (target, found) = Pblk::mount(&mut caller, &units, &options).expect("an instance");
    let spent = cpu::thread_time() - before;
    let blocks = target.block_count();
    host.return_buffers(buffers);
    (host.with_clock(clock), Mounted { target, found, spent, blocks })
}

/// Runs a job on a target and leaves it as the job's end finds it.
fn run(host: &mut DriveHost, target: TargetId, job: &str) {
    let mut runner = runner(host, target, job);
    assert_eq!(host.run(&mut runner, Nanos::MAX), RunEnd::Finished);
    assert_eq!(runner.failures().count(), 0, "an I/O before a mount failed");
    drop(runner.into_results(host.buffers_mut()));
}

/// A full instance, shut down, on a drive with one part of `part` of the sectors in each chunk.
fn full_drive(part: u32) -> DriveHost {
    let mut config = presets::find("westlake").expect("a preset").config();
    config.geometry.sectors_per_chunk /= part;
    let flash = Flash::format(config).expect("a sound preset");
    let buffers = Buffers::new(flash.payload_format());
    let host = Host::new(flash, VirtualClock::default(), buffers);
    let (mut host, made) = mount(host, None);
    assert!(made.found.fresh, "the drive was empty");
    let target = host.add(Box::new(made.target));
    run(&mut host, target, FILL);
    let mut shut_down = ShutDown { target, asked: false, done: false };
    assert_eq!(host.run(&mut shut_down, Nanos::MAX), RunEnd::Finished);
    host.settle();
    host
}

/// Goes on with an instance, cuts the power under writes, and mounts it again.
fn after_cut(host: DriveHost, interval: &str) -> Mounted {
    let (mut host, mounted) = mount(host, Some(interval));
    let target = host.add(Box::new(mounted.target));
    run(&mut host, target, OVERWRITE);
    let now = host.clock().now();
    let mut prng = Prng::new(1);
    host.device_mut().power_cut(now, &mut prng).expect("memory does not fail");
    // The target from before the cut is never asked again.
    mount(host, Some(interval)).1
}

/// Prints what each mount took, and what follows for the full drive.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure() {
    let mut points = Vec::new();
    for (part, interval, bytes) in CASES {
        let (host, clean) = mount(full_drive(part), None);
        assert!(clean.found.clean, "it was shut down");
        points.push((part, clean.blocks as f64, clean.spent.as_secs_f64()));
        let name = |what: &str| format!("part_{part}_{interval}_{what}");
        report(NAME, &name("entries"), clean.blocks as f64, "map entries");
        report(NAME, &name("heads"), clean.found.heads_read as f64, "sectors");
        report(NAME, &name("clean"), clean.spent.as_secs_f64(), "cpu-s");
        report(NAME, &name("clean_model"), clean.found.phases[3].as_secs_f64(), "s of the drive");
        drop(clean);
        let cut = after_cut(host, bytes);
        assert!(!cut.found.clean, "its power was cut");
        report(NAME, &name("cut_newer"), cut.found.records as f64, "versions after the snapshot");
        report(NAME, &name("cut"), cut.spent.as_secs_f64(), "cpu-s");
        report(NAME, &name("cut_model"), cut.found.phases[3].as_secs_f64(), "s of the drive");
    }
    let [_, (_, fewer, less), (part, more, longer)] = points[..] else { unreachable!("as many as cases") };
    let per_entry = (longer - less) / (more - fewer);
    let full = more * f64::from(part);
    report(NAME, "clean_per_entry", per_entry * 1e9, "ns");
    report(NAME, "clean_full_extrapolated", longer + (full - more) * per_entry, "cpu-s");
}
