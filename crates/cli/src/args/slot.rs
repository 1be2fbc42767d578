//! The arguments of PCI slots of virtual machines.

use clap::{Args, ValueEnum};
use ocssd_export::reactor::Endpoint;

/// Whose PCI function a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PciIdArg {
    /// 1d1d:1f1f
    Qemu,
    /// 1d1d:2807
    Cnex,
}

/// The part of `ocssd serve` that has to do with PCI slots.
#[derive(Args, Debug)]
pub struct SlotArgs {
    /// Put an NVMe controller into a PCI slot of a virtual machine: unix:/path (mode 0600). With --target or --export its
    /// namespaces are those, and it may be repeated; without either it is the drive itself, and nothing is served beside it
    #[arg(long, value_name = "unix:/PATH")]
    pub vfio_user: Vec<Endpoint>,
    /// Whose PCI function the drive is; Linux takes both for open-channel drives [default: qemu]
    #[arg(long, value_enum, requires = "vfio_user")]
    pub pci_id: Option<PciIdArg>,
}
