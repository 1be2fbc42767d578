//! `ocssd serve`: targets of a drive for programs that know nothing of them.
//!
//! The drive is opened, targets are mounted (`assemble`), endpoints are listened on (`listen`), what serving does not take is
//! given up (`sandbox`), and the reactor of `export` serves until it is told to stop; then targets write out what they hold.
//! `observe` looks on, and shows it meanwhile; `report` says what was served. Targets are in PCI slots
//! of virtual machines too (`slots`); the drive itself in one (`vfio_user`) has no targets and a loop of its own.

mod assemble;
mod devices;
mod fuse;
mod listen;
mod nvme;
mod observe;
mod pci_drive;
mod raw;
mod report;
mod resp;
mod sandbox;
mod scraped;
mod slots;
mod vfio_user;

use crate::args::ServeArgs;
use crate::drive_failure::not_kept;
use crate::shut_down::shut_down;
use anyhow::Context;
use assemble::Assembled;
pub use devices::DeviceSocket;
use observe::{Counted, View};
use ocssd_engine::Clock;
use ocssd_export::reactor::{Limits, Server, Signals, Stopped};
use ocssd_export::{Export, Exports, Page, ServedTarget, Stats};
use ocssd_flash::Flash;
use ocssd_lightnvm::TargetId;

/// Carries out the verb.
pub fn serve(args: &ServeArgs, as_json: bool) -> anyhow::Result<()> {
    if let Some(endpoint) = slots::drive(args)? {
        return vfio_user::serve(args, endpoint, as_json);
    }
    let security = listen::security(args)?;
    let mounted = assemble::assemble(args)?;
    if mounted.has_blocks_alone() {
        serve_targets(args, &security, mounted.with_blocks(), as_json)
    } else {
        serve_targets(args, &security, mounted.with_any(), as_json)
    }
}

fn serve_targets<T: ServedTarget + ?Sized>(
    args: &ServeArgs,
    security: &listen::Security,
    assembled: Assembled<T>,
    as_json: bool,
) -> anyhow::Result<()> {
    let Assembled { host, targets, exports, mut notes, image, uuid } = assembled;
    let devices = devices::find(args, &exports)?;
    let raw = raw::open(args)?;
    let subsystem = nvme::subsystem(args, uuid)?;
    let signals = Signals::new().context("signals cannot be listened to")?;
    let mount = fuse::mount(args, &exports, &signals)?;
    notes.extend(mount.as_ref().and_then(|mount| mount.note()).map(str::to_owned));
    let limits =
        Limits { connections: args.connections.get(), allowed: args.allow.clone(), ..Limits::default() };
    let page = Page::default();
    let view = View::new(args.live, args.metrics.is_some().then(|| Page::clone(&page)));
    let spoken = view.clone();
    let log = Box::new(move |sentence: &str| spoken.say(sentence));
    let started = (host.clock().now(), resp::now_ms());
    let mut server =
        Server::new(host, exports.clone(), signals, limits, log).context("serving cannot begin")?;
    server.tell_failures(|flash| flash.store_error().map(|error| error.sentence.as_str()));
    let endpoints = listen::listen(&mut server, args, security)?;
    let nvme_endpoints = listen::listen_nvme(&mut server, args)?;
    let resp_endpoints = resp::listen(&mut server, args, &exports, started)?;
    let metrics = listen::listen_metrics(&mut server, args, &page)?;
    devices::listen(&mut server, &devices)?;
    slots::listen(&mut server, args)?;
    let directory = mount.as_ref().map(|mount| mount.directory().to_owned());
    if let Some(mount) = mount {
        let make = Box::new(move |connection| mount.transport(connection));
        server.host_transport(make).context("the mount cannot be served")?;
    }
    let (lane, description, raw_image) = match raw {
        Some(raw) => (Some(raw.lane), Some(raw.description), raw.image),
        None => (None, None, None),
    };
    notes.extend(sandbox::enter(&args.sandbox, listen::endpoints(args))?);
    let nvme_view = nvme::NvmeView::new(&subsystem, &exports, description.as_deref());
    server.use_nvme(subsystem, lane);
    let serving = report::Serving {
        exports: &exports,
        endpoints: &endpoints,
        notes: &notes,
        tls: security.tls.is_some(),
        devices: &devices,
        directory: directory.as_deref(),
        metrics: metrics.as_ref(),
        resp: &resp_endpoints,
        nvme: (!nvme_endpoints.is_empty() || !args.slot.vfio_user.is_empty())
            .then_some((&nvme_view, nvme_endpoints.as_slice())),
        slots: &args.slot.vfio_user,
    };
    report::begin(&serving, as_json);
    let names = names(&exports);
    server.show_to(view.observer(names.iter().cloned().zip(targets.iter().copied()).collect()));
    let form = report::Form { as_json, is_verbose: args.sandbox.verbose };
    let mut on_signal = |stats: &Stats| {
        view.clear();
        report::stats(stats, &view.served(), form);
    };
    let stopped = server.run(&mut on_signal).context("serving failed")?;
    view.clear();
    let (stats, targets) = put_away(stopped, names.into_iter().zip(targets).collect())?;
    drop((image, raw_image));
    report::stats(&stats, &view.served_in_the_end(targets), form);
    Ok(())
}

/// What exports are called in reports. One of no name is the only one.
fn names(exports: &Exports) -> Vec<String> {
    let name = |export: &Export| if export.name.is_empty() { "target" } else { &export.name }.to_owned();
    exports.iter().map(name).collect()
}

/// Targets write out what they hold, and drives are closed; gives what the server and the targets counted in the end.
fn put_away<T: ServedTarget + ?Sized>(
    stopped: Stopped<Flash, T>,
    targets: Vec<(String, TargetId)>,
) -> anyhow::Result<(Stats, Counted)> {
    let Stopped { mut host, stats, raw } = stopped;
    let last = targets.iter().map(|(_, id)| (*id, host.target(*id).last_request())).collect();
    shut_down(&mut host, last)?;
    let counted = targets.into_iter().map(|(name, id)| (name, host.target(id).counters())).collect();
    host.settle();
    let mut flash = host.into_device();
    flash.close().map_err(|_| not_kept())?;
    if let Some(mut lane) = raw {
        lane.drive.sync().map_err(|_| not_kept())?;
    }
    Ok((stats, counted))
}
