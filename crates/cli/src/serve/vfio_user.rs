//! The drive as a PCI function of a virtual machine: its controller's commands, without a target on it.

use super::assemble;
use super::pci_drive::PciDrive;
use super::{sandbox, slots};
use crate::args::{PciIdArg, ServeArgs};
use crate::drive_failure::not_kept;
use crate::table;
use anyhow::{Context, anyhow};
use ocssd_drive::OpenDrive;
use ocssd_export::pci_nvme::{Counters, PciId};
use ocssd_export::reactor::{Endpoint, Signals};
use ocssd_export::vfio_user::{ListenerThread, Served, Server};
use ocssd_flash::config::Revision;
use ocssd_flash::controller::Controller;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Serves the drive at a unix socket until a signal.
///
/// # Errors
/// A drive that cannot be opened, or a socket that cannot be had.
pub fn serve(args: &ServeArgs, endpoint: &Endpoint, as_json: bool) -> anyhow::Result<()> {
    let OpenDrive { flash, image, spec, uuid, .. } = assemble::open(args)?;
    let revision = if spec.config.revision == Revision::V12 { "1.2" } else { "2.0" };
    let bytes = table::bytes(spec.config.geometry.capacity_bytes());
    let controller =
        Controller::new(flash).map_err(|error| anyhow!("{}: {error}", args.drive))?.with_uuid(uuid);
    let signals = Signals::new().context("signals cannot be listened to")?;
    let listener_thread =
        ListenerThread::open(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
    // It serves on if nobody reads standard error.
    let log = Box::new(|sentence: &str| drop(writeln!(std::io::stderr(), "ocssd: {sentence}")));
    let id = match args.slot.pci_id {
        None | Some(PciIdArg::Qemu) => PciId::Qemu,
        Some(PciIdArg::Cnex) => PciId::Cnex,
    };
    let server = Server::new(PciDrive { controller }, id, listener_thread, signals, log)
        .context("serving cannot begin")?;
    let sandbox = sandbox::enter(&args.sandbox, std::iter::once(endpoint))?;
    if !as_json {
        sandbox.iter().for_each(|note| table::say(&format!("note: {note}")));
    }
    begin(&format!("open-channel drive {} (OCSSD {revision}), {bytes}", args.drive), endpoint, as_json);
    let served = server.run(&mut |counters| report(counters, as_json)).context("serving failed")?;
    let Served { drive: PciDrive { mut controller }, counters, guests } = served;
    // What the cache holds goes to media first, however long the drive would take.
    while let Some(at) = controller.deadline() {
        while controller.poll(at).is_some() {}
    }
    controller.flash_mut().close().map_err(|_| not_kept())?;
    drop(image);
    if guests == 0 && !as_json {
        table::say("No guest came.");
    } else {
        report(&counters, as_json);
    }
    Ok(())
}

/// Says that a guest may come.
fn begin(what: &str, endpoint: &Endpoint, as_json: bool) {
    if as_json {
        let device = slots::qemu_device(endpoint);
        let serving = json!({ "what": what, "endpoint": endpoint.to_string() });
        return table::say(&format!("{:#}", json!({ "vfio_user": serving, "qemu_device": device })));
    }
    table::say(&format!("serving {what}"));
    slots::qemu_lines(endpoint).iter().for_each(|line| table::say(line));
}

/// Says what was counted.
fn report(counters: &Counters, as_json: bool) {
    let rows = counters.rows();
    if as_json {
        let counted: Map<String, Value> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        return table::say(&format!("{:#}", json!({ "stats": counted })));
    }
    let shown = rows.into_iter().filter(|(_, value)| *value > 0);
    let rows: Vec<Vec<String>> =
        shown.map(|(name, value)| vec![name.to_owned(), value.to_string()]).collect();
    table::say(&table::text(&["counted", ""], &rows));
}
