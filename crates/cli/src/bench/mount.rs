//! What a mount costs: after a clean shutdown, and after a power cut.
//!
//! Processor time of the whole mount, the drive's part of it included. A full 2 TB drive takes 18 GB even in stamps, so
//! drives of two fractions of it are mounted, with as many chunks as the full one has, in shorter chunks: looking at chunks
//! costs what it costs there, and the rest grows with the map. The line through both says what the full one would take.
//! After a power cut the same was written since the last checkpoint, on a drive and on one of a quarter of its capacity: what
//! differs is what capacity costs.

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
/// Name of the other one.
pub const NAME_CUT: &str = "pblk_mount_after_cut";
/// What is mounted after a shutdown: drives with one part of so many of the sectors in each chunk. The larger one fits 4 GB.
const PARTS: [u32; 2] = [16, 8];
/// Mounts of the same drive, of which the least is taken: the machine has other work too.
const ROUNDS: usize = 5;
/// What is mounted after a power cut: drives with chunks of a sixteenth, and so many of them in a unit.
const CHUNKS: [u32; 2] = [238, 952];
/// Data written since the checkpoint when the power is cut.
const WRITTEN_MIB: u32 = 256;
/// Writes the whole instance.
const FILL: &str = "[w]\nioengine=libaio\nrw=write\nbs=256k\niodepth=64\nsize=100%\n";

/// Writes anywhere, until so much was written as is added.
const OVERWRITE: &str = "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=256\nsize=100%\nnorandommap\n";

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
        options.set("checkpoint_interval_bytes", bytes).expect("a number");
    }
    let units = UnitSelection::All.resolve(&host.device().config().geometry).expect("every unit");
    let mut buffers = host.take_buffers();
    // Whoever mounted before is gone.
    buffers.reclaim();
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
fn full_drive(part: u32, chunks_per_pu: Option<u32>) -> DriveHost {
    let mut config = presets::find("westlake").expect("a preset").config();
    config.geometry.sectors_per_chunk /= part;
    config.geometry.chunks_per_pu = chunks_per_pu.unwrap_or(config.geometry.chunks_per_pu);
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

/// The mount that took the least, of several of a drive that was shut down. The target before each is gone when the next
/// begins, and its memory given back.
fn clean(mut host: DriveHost) -> (DriveHost, Mounted) {
    let mut least: Option<Mounted> = None;
    for _ in 0..ROUNDS {
        let spent = least.take().map(|mounted| mounted.spent);
        let (same, mut mounted) = mount(host, None);
        host = same;
        assert!(mounted.found.clean, "it was shut down");
        mounted.spent = spent.map_or(mounted.spent, |spent| spent.min(mounted.spent));
        least = Some(mounted);
    }
    (host, least.expect("several were mounted"))
}

/// Goes on with an instance that was shut down, cuts the power under writes, and mounts it again.
fn after_cut(host: DriveHost) -> Mounted {
    let (mut host, mounted) = mount(host, Some("0"));
    let target = host.add(Box::new(mounted.target));
    run(&mut host, target, &format!("{OVERWRITE}io_size={WRITTEN_MIB}m\n"));
    let now = host.clock().now();
    let mut prng = Prng::new(1);
    host.device_mut().power_cut(now, &mut prng).expect("memory does not fail");
    // The target from before the cut is never asked again.
    mount(host, Some("0")).1
}

/// Prints what each mount took, and what follows for the full drive.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure() {
    let mut points = Vec::new();
    for part in PARTS {
        let (_, mounted) = clean(full_drive(part, None));
        points.push((part, mounted.blocks as f64, mounted.spent.as_secs_f64()));
        let name = |what: &str| format!("part_{part}_{what}");
        report(NAME, &name("entries"), mounted.blocks as f64, "map entries");
        report(NAME, &name("heads"), mounted.found.heads_read as f64, "sectors");
        report(NAME, &name("clean"), mounted.spent.as_secs_f64(), "cpu-s");
        report(NAME, &name("clean_model"), mounted.found.phases[3].as_secs_f64(), "s of the drive");
    }
    let [(_, fewer, less), (part, more, longer)] = points[..] else { unreachable!("as many as parts") };
    let per_entry = (longer - less) / (more - fewer);
    let full = more * f64::from(part);
    report(NAME, "clean_per_entry", per_entry * 1e9, "ns");
    report(NAME, "clean_full_extrapolated", longer + (full - more) * per_entry, "cpu-s");
}

/// Prints what a mount after a power cut took on two capacities, beside one after a shutdown of the same drive.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure_cut() {
    for chunks in CHUNKS {
        let (host, clean) = clean(full_drive(PARTS[0], Some(chunks)));
        let name = |what: &str| format!("chunks_{chunks}_{what}");
        report(NAME_CUT, &name("entries"), clean.blocks as f64, "map entries");
        report(NAME_CUT, &name("clean"), clean.spent.as_secs_f64(), "cpu-s");
        report(NAME_CUT, &name("clean_read"), clean.found.sectors_read as f64, "sectors");
        let before = (clean.spent, clean.found.sectors_read);
        drop(clean);
        let cut = after_cut(host);
        assert!(!cut.found.clean, "its power was cut");
        let more = cut.spent.as_secs_f64() - before.0.as_secs_f64();
        report(NAME_CUT, &name("cut_versions"), cut.found.records as f64, "after the checkpoint");
        report(NAME_CUT, &name("cut"), cut.spent.as_secs_f64(), "cpu-s");
        report(NAME_CUT, &name("cut_more"), more, "cpu-s beyond clean");
        report(NAME_CUT, &name("cut_heads"), cut.found.heads_read as f64, "sectors");
        report(NAME_CUT, &name("cut_more_read"), cut.found.sectors_read as f64 - before.1 as f64, "sectors");
        report(
            NAME_CUT,
            &name("cut_passed_over"),
            f64::from(u8::from(cut.found.passed_over)),
            "times the map",
        );
        report(NAME_CUT, &name("cut_model"), cut.found.phases[3].as_secs_f64(), "s of the drive");
    }
}
