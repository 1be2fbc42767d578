//! `ocssd conform`: whether a zoned NVMe device does what the specification says, by the model that judges `zns`.
//!
//! Nothing is written unless the controller's serial number was typed. Deliberately not here: power cuts.

mod judged;
#[cfg(target_os = "linux")]
mod kernel;
mod namespace;
mod tcp;
mod transport;

use crate::Outcome;
use crate::args::ConformArgs;
use crate::table;
use anyhow::{Context, ensure};
use judged::{Compared, Stream, compare};
use namespace::Namespace;
use ocssd_lightnvm::interface::zoned::{UnwrittenRead, ZoneGeometry, ZoneState};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat};
#[cfg(target_os = "linux")]
use ocssd_measure::storage::{NvmeDevice, SystemRoot};
use ocssd_nvme::identify::{Cns, IdentifyController, IdentifyNamespace};
use ocssd_nvme::zns::{ZnsController, ZnsNamespace};
use ocssd_sim::zoned::ZonedModel;
use serde_json::json;
#[cfg(target_os = "linux")]
use std::path::Path;
use tcp::TcpController;

/// CSI of zones.
const ZONED: u8 = 2;
/// Bytes of the smallest page a controller may have, in which MDTS and ZASL count.
const PAGE_BYTES: u64 = 4096;
/// Most bytes of a command here (chosen: the longest request that is drawn is shorter).
const BYTES_MAX: u64 = 1 << 20;
/// Bytes of a report of zones (chosen: 127 zones).
const REPORT_BYTES: usize = 8192;

/// Carries out the verb; `Failed` if the device did something else than the model.
pub fn conform(args: &ConformArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let mut namespace = connect(args)?;
    let controller = IdentifyController::decode(&namespace.identify(Cns::CONTROLLER, 0)?)?;
    let (serial, model) = (controller.sn.to_string(), controller.mn.to_string());
    let (serial, model) = (serial.trim(), model.trim());
    ensure!(
        args.serial.as_deref() == Some(serial),
        "{model} has the serial number {serial}, but {}: all zones of its namespace {} would be reset, and what is in them lost; \
         type --serial {serial} if that may be",
        args.serial.as_ref().map_or("none was typed".to_owned(), |typed| format!("{typed} was typed")),
        namespace.nsid()
    );
    let transfer =
        if controller.mdts == 0 { BYTES_MAX } else { BYTES_MAX.min(PAGE_BYTES << controller.mdts) };
    let geometry = geometry(&mut namespace, transfer)?;
    let block = geometry.block_bytes;
    let sectors = Geometry { sector_bytes: block, ..Geometry::example(1, 1, 4, 24, 24) };
    namespace.set_buffers(Buffers::new(PayloadFormat::new(Payload::Bytes, &sectors)));
    let mut model_of = ZonedModel::new(geometry);
    empty(&mut namespace, &mut model_of)?;
    let blocks_max = u32::try_from(transfer / u64::from(block)).expect("a mebibyte");
    let stream = Stream { seed: args.seed, requests: args.requests, blocks_max };
    let compared = compare(&mut namespace, model_of, stream).map_err(anyhow::Error::msg)?;
    if as_json {
        print_json(args, &geometry, &compared);
    } else {
        print(args, &geometry, &compared);
    }
    Ok(if compared.is_broken() { Outcome::Failed } else { Outcome::Good })
}

/// The namespace that was named: of a server of NVMe/TCP, or of the kernel's own driver.
fn connect(args: &ConformArgs) -> anyhow::Result<Namespace> {
    if args.zns.starts_with('/') {
        ensure!(
            args.nqn.is_none(),
            "--nqn names the subsystem of a server, and {} is a device of this machine: leave it out",
            args.zns
        );
        return device(args);
    }
    let nqn = args.nqn.as_deref();
    let nqn = nqn
        .with_context(|| format!("{} is a server's address, and needs its subsystem: --nqn NQN", args.zns))?;
    Ok(Namespace::new(Box::new(TcpController::connect(&args.zns, nqn)?), args.nsid.unwrap_or(1)))
}

/// A namespace that the kernel has a device of.
#[cfg(target_os = "linux")]
fn device(args: &ConformArgs) -> anyhow::Result<Namespace> {
    let device = NvmeDevice::open(Path::new(&args.zns))
        .with_context(|| format!("{}: expected a namespace of NVMe, such as /dev/ng0n1", args.zns))?;
    let nsid = device.nsid();
    if let Some(typed) = args.nsid {
        ensure!(
            typed == nsid,
            "{} is namespace {nsid}, but --nsid {typed} was given: leave it out",
            args.zns
        );
    }
    device.may_write(&SystemRoot::default(), args.serial.as_deref())?;
    Ok(Namespace::new(Box::new(device), nsid))
}

/// Devices are those of Linux.
#[cfg(not(target_os = "linux"))]
fn device(args: &ConformArgs) -> anyhow::Result<Namespace> {
    anyhow::bail!("{}: commands pass to devices on Linux alone; give a server's HOST:PORT", args.zns)
}

/// The zones and limits that the namespace says it has.
fn geometry(namespace: &mut Namespace, transfer: u64) -> anyhow::Result<ZoneGeometry> {
    let plain = IdentifyNamespace::decode(&namespace.identify(Cns::NAMESPACE, 0)?)?;
    let zoned = ZnsNamespace::decode(&namespace.identify(Cns::COMMAND_SET_NAMESPACE, ZONED)?)?;
    let limits = ZnsController::decode(&namespace.identify(Cns::COMMAND_SET_CONTROLLER, ZONED)?)?;
    let format =
        plain.lbaf.get(usize::from(plain.format_index)).context("the namespace has no LBA format")?;
    let zones = zoned.formats[usize::from(plain.format_index)];
    ensure!(zones.zone_size > 0, "the namespace has zones of no blocks: choose a zoned one (--nsid)");
    ensure!(
        zoned.zoc == 0,
        "capacities of its zones change by themselves (ZOC), which the model does not have"
    );
    let block_bytes = 1_u32 << format.lbads;
    let first = namespace.zones(0, REPORT_BYTES)?;
    let capacity_blocks = first.first().context("the namespace has no zone")?.capacity;
    let append = if limits.zasl == 0 { transfer } else { transfer.min(PAGE_BYTES << limits.zasl) };
    let geometry = ZoneGeometry {
        block_bytes,
        zone_blocks: zones.zone_size,
        capacity_blocks,
        zone_count: u32::try_from(plain.nsze / zones.zone_size).context("fewer zones than 2^32")?,
        active_max: zoned.active_max,
        open_max: zoned.open_max,
        append_blocks_max: u32::try_from(append / u64::from(block_bytes)).expect("a mebibyte"),
        // An error only where a host asked for it (DULBE), and this one does not.
        unwritten_read: UnwrittenRead::Zeroes,
        takes_extensions: zones.extension_units == 1,
        area: zoned.area,
    };
    Ok(geometry.checked()?)
}

/// Resets all zones; those that cannot be written are so in the model, too.
fn empty(namespace: &mut Namespace, model: &mut ZonedModel) -> anyhow::Result<()> {
    namespace.reset_all()?;
    let geometry = *model.geometry();
    let mut next = 0;
    while next < geometry.zone_count {
        let zones = namespace.zones(geometry.start_of(next), REPORT_BYTES)?;
        ensure!(!zones.is_empty(), "a report from zone {next} on is empty");
        for zone in zones {
            ensure!(
                zone.start == geometry.start_of(next) && zone.capacity == geometry.capacity_blocks,
                "zone {next} is {zone:?}, but all should have {} blocks: the model has zones of one capacity",
                geometry.capacity_blocks
            );
            match zone.state {
                ZoneState::Empty => {}
                ZoneState::ReadOnly | ZoneState::Offline => model.gave_up(next, zone.state),
                other => anyhow::bail!("zone {next} is {other:?} after a reset of all zones"),
            }
            next += 1;
        }
    }
    Ok(())
}

fn print(args: &ConformArgs, geometry: &ZoneGeometry, compared: &Compared) {
    table::line(&format!(
        "{} zones of {} blocks of {} bytes, random write areas: {}",
        geometry.zone_count,
        geometry.capacity_blocks,
        geometry.block_bytes,
        if geometry.area.is_some() { "yes" } else { "none" }
    ));
    for (kind, (succeeded, refused)) in &compared.asked {
        let kind = kind.trim_start_matches("requests.");
        table::line(&format!("  {kind:16} {succeeded:6} succeeded {refused:6} refused"));
    }
    for one in &compared.differences {
        table::line(&format!(
            "request {}: {}\n  model:  {}\n  device: {}\n  ({})",
            one.number, one.request, one.expected, one.found, one.section
        ));
    }
    let verdict = if compared.is_broken() { "fail" } else { "pass" };
    table::line(&format!("verdict: {verdict}, {} differences", compared.differences.len()));
    let (serial, requests, seed) = (args.serial.as_deref().unwrap_or_default(), args.requests, args.seed);
    table::line(&format!(
        "run again: ocssd conform --zns {}{} --serial {serial} --requests {requests} --seed {seed}",
        args.zns,
        of_server(args)
    ));
}

/// What names a namespace of a server, beside its address.
fn of_server(args: &ConformArgs) -> String {
    let nqn = args.nqn.as_ref();
    nqn.map_or_else(String::new, |nqn| format!(" --nqn {nqn} --nsid {}", args.nsid.unwrap_or(1)))
}

fn print_json(args: &ConformArgs, geometry: &ZoneGeometry, compared: &Compared) {
    let asked = compared.asked.iter().map(|(kind, (succeeded, refused))| {
        json!({ "kind": kind.trim_start_matches("requests."), "succeeded": succeeded, "refused": refused })
    });
    let differences = compared.differences.iter().map(|one| {
        json!({
            "number": one.number, "request": one.request, "model": one.expected, "device": one.found,
            "section": one.section, "refused_by_both": one.is_refused_by_both,
        })
    });
    table::print_json(&json!({
        "seed": args.seed,
        "zones": geometry.zone_count,
        "capacity_blocks": geometry.capacity_blocks,
        "asked": asked.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
        "is_broken": compared.is_broken(),
    }));
}
