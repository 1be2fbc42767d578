//! PCI slots of virtual machines: whether one is a drive's or has targets, and the sockets of those with targets.

use crate::args::ServeArgs;
use anyhow::{Context, bail};
use ocssd_export::ServedTarget;
use ocssd_export::reactor::{Endpoint, Server, Transport};
use ocssd_export::vfio_user::{ListenerThread, VfioUser};
use ocssd_lightnvm::Device;
use serde_json::{Value, json};

/// The socket at which a virtual machine finds the drive itself, if that is what is to be served: no target is named.
///
/// # Errors
/// Options that mean something for the other of the two only.
pub fn drive(args: &ServeArgs) -> anyhow::Result<Option<&Endpoint>> {
    let Some(endpoint) = args.slot.vfio_user.first() else { return Ok(None) };
    if args.target.is_some() || !args.export.is_empty() {
        if args.slot.pci_id.is_some() {
            bail!(
                "--pci-id says whose PCI function a drive is, and targets are nobody's; leave it out, or leave out the targets"
            );
        }
        return Ok(None);
    }
    let of_targets = [
        ("--nbd", !args.nbd.is_empty()),
        ("--nvme-tcp", !args.nvme_tcp.is_empty()),
        ("--vhost-user-blk", !args.vhost_user_blk.is_empty()),
        ("--fuse", args.fuse.is_some()),
        ("--resp", !args.redis.resp.is_empty()),
        ("--place", args.place.is_some()),
        ("--read-only", args.read_only),
        ("--metrics", args.metrics.is_some()),
        ("--live", args.live.is_some()),
        ("--allow", !args.allow.is_empty()),
        ("--beyond-loopback", args.beyond_loopback),
        ("--tls-certificate", args.tls_certificate.is_some()),
        ("a second --vfio-user", args.slot.vfio_user.len() > 1),
    ];
    if let Some((option, _)) = of_targets.iter().find(|(_, is_given)| *is_given) {
        bail!(
            "{option} cannot be used with --vfio-user alone, which serves the drive itself, without targets; name what is to be served by \
             --target or --export, or leave out {option}"
        );
    }
    Ok(Some(endpoint))
}

/// Lets virtual machines find the exports in a PCI slot, one at each socket.
///
/// # Errors
/// An endpoint that cannot be had.
pub fn listen<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    args: &ServeArgs,
) -> anyhow::Result<()> {
    for endpoint in &args.slot.vfio_user {
        let listener_thread =
            ListenerThread::open(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
        let make = Box::new(move |connection| {
            Box::new(VfioUser::new(listener_thread, connection)) as Box<dyn Transport>
        });
        server.host_transport(make).with_context(|| format!("{endpoint} cannot be served"))?;
    }
    Ok(())
}

/// The device that finds a socket, as QEMU is told of it.
pub fn qemu_device(endpoint: &Endpoint) -> Value {
    let Endpoint::Unix(path) = endpoint else { unreachable!("the listener thread is at a unix socket") };
    let socket = json!({ "type": "unix", "path": path.to_string_lossy() });
    json!({ "driver": "vfio-user-pci", "socket": socket })
}

/// How QEMU is started with it.
pub fn qemu_lines(endpoint: &Endpoint) -> [String; 2] {
    [
        "  qemu-system-x86_64 -object memory-backend-memfd,id=mem,size=1G,share=on -machine q35,memory-backend=mem \\".to_owned(),
        format!("    -m 1G -device '{}' ...", qemu_device(endpoint)),
    ]
}
