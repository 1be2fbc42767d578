//! `ocssd workload`: targets of keys, tables, pages and zones, asked in the words of known tools.
//!
//! The drive is opened, a target made of its units, a generator asked for requests until it has no more, and what was measured
//! is shown. Deliberately not here: jobs on blocks (`run`), and whether content is right (`simulate`).

pub mod execute;
pub mod lsm;
pub mod present;
pub mod tool;

use crate::Outcome;
use crate::args::{ClockArg, ToolArg, WorkloadArgs};
use crate::drive_failure::with_cause;
use crate::lease::lease;
use crate::run::{Processors, behind, processors};
use anyhow::ensure;
use execute::{Assembled, WorkloadDevice};
use ocssd_base::Prng;
use ocssd_drive::{Image, OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_lightnvm::wrap::Trace;
use ocssd_lightnvm::{Buffers, TargetId};
use ocssd_targets::named_target::NamedTarget;
use ocssd_workload::generator::closed_loop::ClosedLoop;
use ocssd_workload::host_cpu::Hosted;
use ocssd_workload::results::ClockKind;
use std::num::NonZeroUsize;
use tool::{DbBenchTool, MooncakeTool, PageStoreTool, Speaks, Tool, YcsbTool, ZbdTool};

/// Does what was asked for.
pub fn workload(args: &WorkloadArgs, as_json: bool) -> anyhow::Result<Outcome> {
    match args.ask.tool {
        ToolArg::Ycsb => on_a_target::<YcsbTool>(args, as_json),
        ToolArg::Mooncake => on_a_target::<MooncakeTool>(args, as_json),
        ToolArg::DbBench => on_a_target::<DbBenchTool>(args, as_json),
        ToolArg::Lsm => lsm::lsm(args, as_json),
        ToolArg::PageStore => on_a_target::<PageStoreTool>(args, as_json),
        ToolArg::Zbd => on_a_target::<ZbdTool>(args, as_json),
    }
}

/// What to do about units that are another's.
const ADVICE: [&str; 2] = [
    "work on it with --target NAME, choose other units with --place, or end the lease with `ocssd target remove`",
    "the units are leased already",
];

/// Requests outstanding at most, if nobody says (chosen: what a drive of a few groups is busy with).
pub const DEPTH: usize = 16;

/// A host with the target of the tool's interface, and the image it lies on.
type Made<T> = (Host<WorkloadDevice, VirtualClock, <T as Speaks>::Target>, Vec<String>, Option<Image>);

fn on_a_target<T: Tool>(args: &WorkloadArgs, as_json: bool) -> anyhow::Result<Outcome>
where
    T::Target: Hosted,
{
    let (host, notes, image) = make::<T>(args)?;
    let generator = T::generator(&args.ask.options, host.target(TargetId(0)), &Prng::new(args.seed))?;
    let source = ClosedLoop::new(generator, args.ask.iodepth.map_or(DEPTH, NonZeroUsize::get));
    let finished = execute::execute(args, Assembled { host, source, image, notes })?;
    present::present(args, &finished, as_json)
}

/// The processors that stand between who asks and the target: none, unless they are asked for.
fn host_of(args: &WorkloadArgs) -> anyhow::Result<Option<Processors>> {
    let Some(text) = &args.host_cpu else { return Ok(None) };
    ensure!(
        args.ask.tool != ToolArg::Lsm,
        "--host-cpu {text}: a tree of lsm has processors of its own, and asks its target without others in between; leave it out"
    );
    let clock = match args.clock {
        ClockArg::Virtual => ClockKind::Virtual,
        ClockArg::Wall => ClockKind::Wall,
    };
    processors(Some(text), clock).map_err(anyhow::Error::msg)
}

/// Opens the drive, and makes the target or mounts the one that lies there.
fn make<T: Speaks>(args: &WorkloadArgs) -> anyhow::Result<Made<T>>
where
    T::Target: Hosted,
{
    let processors = host_of(args)?;
    let source = Source::named(&args.drive)?;
    let is_image = matches!(source, Source::Image(_));
    let mut settings = args.set.clone();
    if T::HAS_BYTES && !is_image {
        // Keys and pages have any length: stamps of sectors could not hold them.
        settings.insert(0, "payload=bytes".to_owned());
    }
    let options = OpenOptions { settings, ..OpenOptions::default() };
    let OpenDrive { mut flash, mut media_manager, image, spec, .. } =
        crate::open_drive::open_drive(&source, &options)?;
    let text = args.ask.target.as_deref().unwrap_or(T::KIND);
    let geometry = &spec.config.geometry;
    let named = NamedTarget::named(text, &args.ask.place, geometry, &media_manager, crate::kinds::find)?;
    let kept: Vec<String> = media_manager.list().iter().map(|lease| lease.name.clone()).collect();
    lease(&named, &mut media_manager, "workload", &kept, ADVICE)?;
    let kind = crate::kinds::find(&named.kind).map_err(anyhow::Error::msg)?;
    let make = T::make(kind).map_err(anyhow::Error::msg)?;
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = make(&mut caller, &named.spec());
    let made = made.map_err(|sentence| with_cause(format!("target {}: {sentence}", kind.name), &flash))?;
    let host_cpu = processors.as_ref().map_or_else(String::new, |(host, _)| format!(", host_cpu {host}"));
    let mut notes = vec![format!("{}{host_cpu}", named.describe())];
    notes.extend(made.notes);
    let target = behind(made.target, geometry.sector_bytes, processors.as_ref(), kind.runs_on_host());
    let target = target.map_err(anyhow::Error::msg)?;
    let mut host = Host::new(Trace::new(flash, 0), clock, buffers);
    host.add(target);
    Ok((host, notes, image))
}
