//! What a mount of `zns` costs, and the memory of its zone table.
//!
//! The Westlake's 2 TB have 136 576 chunks of 4 096 sectors on 128 units, more than memory holds even in stamps. Chunks of 256
//! sectors are looked at by a mount as those are, so the drive is filled with as many of these: zones one chunk of every unit wide,
//! and then zones of one unit. Processor time of the whole mount, the drive's part of it included, least of five. Deliberately not
//! here: reads and writes, which are jobs (`main`).

use crate::cpu;
use crate::report;
use crate::world::runner;
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget, CounterValue};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{Buffers, Tag, TargetId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry;

/// Name of this benchmark.
pub const NAME: &str = "zns_mount_full_2tb";
/// Sectors of a chunk, in place of the preset's 4 096.
const SECTORS: u32 = 256;
/// Mounts of the same drive, of which the least is taken: the machine has other work too.
const ROUNDS: u64 = 5;
/// Writes all zones.
const FILL: &str = "[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=100%\n";
/// Zones of all units, and of one.
const WIDTHS: [&str; 2] = ["all", "1"];

type ZoneHost = Host<Flash, VirtualClock>;

/// Mounts; returns the host, what that took, and sectors read.
fn mounted(mut flash: Flash, width: &str) -> (ZoneHost, Nanos) {
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let options = [("width".to_owned(), width.to_owned()), ("create".to_owned(), "yes".to_owned())];
    let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let (mut clock, mut buffers) = (VirtualClock::default(), Buffers::new(flash.payload_format()));
    let before = cpu::thread_time();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = registry::find("zns").and_then(|kind| kind.make(&mut caller, &spec)).expect("zones fit");
    let spent = cpu::thread_time() - before;
    let mut host: ZoneHost = Host::new(flash, clock, buffers);
    host.add(made.target);
    (host, spent)
}

fn gauge(target: &dyn BlockTarget, name: &str) -> u64 {
    let counters = target.counters();
    let found = counters.iter().find(|counter| counter.name == name).expect("the target counts it");
    let (CounterValue::Count(value) | CounterValue::Gauge(value)) = found.value else {
        unreachable!("{name} is a number")
    };
    value
}

/// Prints what mounts take, the least of as many as asked for, and bytes of the zone table for each chunk of the drive.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure(rounds: Option<u64>) {
    let rounds = rounds.unwrap_or(ROUNDS);
    for width in WIDTHS {
        let mut config = presets::find("westlake").expect("a preset").config();
        config.geometry.sectors_per_chunk = SECTORS;
        let chunks = config.geometry.chunk_count();
        let (mut host, _) = mounted(Flash::format(config).expect("a sound preset"), width);
        let mut filling = runner(&mut host, TargetId(0), FILL);
        assert_eq!(host.run(&mut filling, Nanos::MAX), RunEnd::Finished, "zones are filled");
        drop(filling.into_results(host.buffers_mut()));
        let mut least = Nanos::MAX;
        for _ in 0..rounds {
            let end = BlockRequest { tag: Tag(0), op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
            assert!(host.ask(end).status.is_success(), "a shutdown ends well");
            let (again, spent) = mounted(host.into_device(), width);
            (host, least) = (again, least.min(spent));
        }
        let table = gauge(host.target(TargetId(0)), "table_bytes") as f64;
        report(NAME, &format!("mount_width_{width}"), least.0 as f64 / 1e6, "ms");
        report(NAME, &format!("table_width_{width}"), table / f64::from(chunks), "B/chunk");
    }
}
