//! `ocssd inspect IMAGE zones`: the zones of `zns` as `blkzone report` shows them, with the chunks beneath.
//!
//! The instance is mounted as its user would mount it, so an image whose process was killed is put in order first, and one that a
//! process has open is refused. Where no instance is, none is made. Deliberately not here: what zones hold, and their management.

use crate::args::ZonesArgs;
use crate::drive_failure::with_cause;
use crate::lease::lease;
use crate::table;
use anyhow::{anyhow, bail, ensure};
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::interface::zoned::{WidthHint, ZoneState, ZonedOp, ZonedRequest, ZonedTarget};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Buffers, ChunkId, PuId, Tag, TargetId};
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry::MakeOf;
use serde_json::{Value, json};
use std::path::Path;

/// What to do about units that are another's.
const ADVICE: [&str; 2] = ["choose other units with --place", "the units are leased already"];

/// A zone, and what lies beneath it.
struct Row {
    number: u32,
    state: ZoneState,
    /// In blocks, as is all that follows.
    start: u64,
    /// From the zone's start, as `blkzone` shows it.
    write_pointer: Option<u64>,
    capacity: u64,
    size: u64,
    chunks: usize,
    units: Vec<PuId>,
    /// Resets of its chunks: the least and the most.
    cycles: Option<(u32, u32)>,
    has_extension: bool,
    /// What the extension hints at.
    hint: Option<WidthHint>,
}

/// Mounts the zones, shows them and leaves the image in order.
pub fn zones(drive: &str, args: &ZonesArgs, as_json: bool) -> anyhow::Result<()> {
    ensure!(
        Path::new(drive).is_file(),
        "{drive} is no image, and zones are kept by one; `ocssd format IMAGE` makes one, and `ocssd workload zbd` fills it"
    );
    let OpenDrive { mut flash, mut media_manager, image, spec, .. } =
        crate::open_drive::open_drive(&Source::named(drive)?, &OpenOptions::default())?;
    let text = args.target.clone().map_or_else(|| only_target(drive, &media_manager), Ok)?;
    let geometry = &spec.config.geometry;
    let mut named = NamedTarget::named(&text, &args.place, geometry, &media_manager, crate::kinds::find)?;
    let MakeOf::Zoned(make) = crate::kinds::find(&named.kind).map_err(anyhow::Error::msg)?.make_of() else {
        bail!("\"{text}\" is of kind {}, which has no zones; zns has", named.kind)
    };
    let kept: Vec<String> = media_manager.list().iter().map(|lease| lease.name.clone()).collect();
    lease(&named, &mut media_manager, "inspect", &kept, ADVICE)?;
    named.options.push(("create".to_owned(), "no".to_owned()));
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = make(&mut caller, &named.spec());
    let made = made.map_err(|sentence| with_cause(format!("target {text}: {sentence}"), &flash))?;
    let mut host: Host<Flash, VirtualClock, dyn ZonedTarget> = Host::new(flash, clock, buffers);
    host.add(made.target);
    let rows = rows(host.target(TargetId(0)), host.device());
    let last = ZonedRequest { tag: Tag(0), op: ZonedOp::Shutdown, block: 0, count: 0, buffer: None };
    let reply = host.ask(last);
    ensure!(reply.status.is_success(), "the zones were not left in order: {}", reply.status);
    host.into_device().sync().map_err(|error| anyhow!("the image could not be kept: {error}"))?;
    drop(image);
    show(&rows, args.all, as_json);
    Ok(())
}

/// The name of the image's target of zones, if there is one and no other.
fn only_target(drive: &str, manager: &MediaManager) -> anyhow::Result<String> {
    let names: Vec<&str> =
        manager.list().iter().filter(|lease| lease.kind == "zns").map(|lease| lease.name.as_str()).collect();
    match names[..] {
        [name] => Ok(name.to_owned()),
        [] => bail!(
            "{drive} has no target of kind zns of its own; if zones were written without one, name it as then: --target zns"
        ),
        _ => bail!(
            "{drive} has {} targets of kind zns; choose with --target: {}",
            names.len(),
            names.join(", ")
        ),
    }
}

fn rows(target: &dyn ZonedTarget, flash: &Flash) -> Vec<Row> {
    let (zones, geometry) = (target.zone_geometry(), &flash.config().geometry);
    let row = |number| {
        let (zone, chunks) = (target.zone(number), target.zone_chunks(number));
        let cycles = || chunks.iter().map(|&chunk: &ChunkId| flash.cycles(chunk));
        let mut units: Vec<PuId> = chunks.iter().map(|&chunk| geometry.pu_of(chunk)).collect();
        units.sort_unstable();
        units.dedup();
        Row {
            number,
            state: zone.state,
            start: zone.start,
            write_pointer: zone.write_pointer.map(|pointer| pointer - zone.start),
            capacity: zone.capacity,
            size: zones.zone_blocks,
            chunks: chunks.len(),
            units,
            cycles: cycles().min().zip(cycles().max()),
            has_extension: zone.has_extension,
            hint: target.extension(number).and_then(|extension| extension.width()),
        }
    };
    (0..zones.zone_count).map(row).collect()
}

/// A state as `blkzone` writes it.
const fn condition(state: ZoneState) -> &'static str {
    match state {
        ZoneState::Empty => "em",
        ZoneState::ImplicitlyOpened => "oi",
        ZoneState::ExplicitlyOpened => "oe",
        ZoneState::Closed => "cl",
        ZoneState::ReadOnly => "ro",
        ZoneState::Full => "fu",
        ZoneState::Offline => "ol",
    }
}

fn show(rows: &[Row], all: bool, as_json: bool) {
    let shown: Vec<&Row> = rows.iter().filter(|row| all || row.state != ZoneState::Empty).collect();
    if as_json {
        return table::print_json(&shown.iter().map(|row| to_json(row)).collect());
    }
    if shown.is_empty() {
        return table::line(&format!("Every one of {} zones is empty (--all lists them).", rows.len()));
    }
    let header = ["zone", "start", "len", "cap", "wptr", "state", "chunks", "units", "cycles", "hint"];
    table::print(&header, &shown.iter().map(|row| cells(row)).collect::<Vec<_>>());
}

fn cells(row: &Row) -> Vec<String> {
    let units = if row.units.is_empty() { "-".to_owned() } else { units_text(&row.units) };
    vec![
        row.number.to_string(),
        format!("{:#x}", row.start),
        format!("{:#x}", row.size),
        format!("{:#x}", row.capacity),
        row.write_pointer.map_or_else(|| "-".to_owned(), |pointer| format!("{pointer:#x}")),
        format!("{:?} ({})", row.state, condition(row.state)),
        row.chunks.to_string(),
        units,
        row.cycles.map_or_else(|| "-".to_owned(), |(least, most)| format!("{least} to {most}")),
        row.hint.map_or_else(|| "-".to_owned(), hint_text),
    ]
}

/// Units as `--place` takes them.
fn units_text(units: &[PuId]) -> String {
    UnitSelection::of(units).to_string()
}

/// A hint as the option `width=` writes widths.
fn hint_text(hint: WidthHint) -> String {
    match hint {
        WidthHint::All => "all".to_owned(),
        WidthHint::Group => "group".to_owned(),
        WidthHint::Units(units) => units.to_string(),
    }
}

fn to_json(row: &Row) -> Value {
    json!({ "zone": row.number, "start": row.start, "size": row.size, "capacity": row.capacity,
        "write_pointer": row.write_pointer, "state": format!("{:?}", row.state), "chunks": row.chunks,
        "units": row.units.iter().map(|unit| unit.0).collect::<Vec<_>>(),
        "cycles_least": row.cycles.map(|(least, _)| least), "cycles_most": row.cycles.map(|(_, most)| most),
        "has_extension": row.has_extension, "width_hint": row.hint.map(hint_text) })
}
