//! The arguments of a drive in a PCI slot of a virtual machine.

use clap::{Args, ValueEnum};
use ocssd_export::reactor::Endpoint;

/// What has no meaning for a drive without targets that one virtual machine has.
const NOT_FOR_VFIO_USER: [&str; 13] = [
    "nbd",
    "nvme_tcp",
    "resp",
    "target",
    "place",
    "export",
    "read_only",
    "tls_certificate",
    "tls_key",
    "tls_clients",
    "beyond_loopback",
    "allow",
    "connections",
];

/// Whose PCI function a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PciIdArg {
    /// 1d1d:1f1f
    Qemu,
    /// 1d1d:2807
    Cnex,
}

/// The part of `ocssd serve` that has to do with a PCI slot.
#[derive(Args, Debug)]
pub struct SlotArgs {
    /// Put the drive itself, without a target, into a PCI slot of a virtual machine: unix:/path (mode 0600)
    #[arg(long, value_name = "unix:/PATH", conflicts_with_all = NOT_FOR_VFIO_USER)]
    pub vfio_user: Option<Endpoint>,
    /// Whose PCI function it is; Linux takes both for open-channel drives
    #[arg(
        long,
        value_enum,
        default_value = "qemu",
        requires = "vfio_user",
        // What is required and in conflict with something given is not required any more.
        conflicts_with_all = ["nbd", "nvme_tcp"]
    )]
    pub pci_id: PciIdArg,
}
