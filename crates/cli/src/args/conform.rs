//! The arguments of `ocssd conform`.

use clap::Args;

pub const CONFORM_HELP: &str = "\
All zones of the namespace are reset first, so nothing is done before the controller's serial
number was typed; without it the program says which it is. Then requests that a host may ask and
others that it may not are drawn, asked one at a time, and every status and byte is compared with
the simulator's model. The first difference that leaves device and model apart ends the run; two
refusals with different statuses do not: which of several broken rules is told is not specified.

Exit status: 0 no difference but such refusals; 1 the device did something else; 2 the input
cannot be used.

A device of this machine is asked through Linux's own driver, as nvme io-passthru does, and is
never touched while it has partitions, is mounted, or is held by another device.

Examples:
  ocssd conform --zns 127.0.0.1:4420 --nqn nqn.2014-08.org.nvmexpress:uuid:... --serial 0123456789ABCDEF
  ocssd conform --zns /dev/ng0n1 --serial 0123456789ABCDEF";

/// `ocssd conform`.
#[derive(Args, Debug)]
pub struct ConformArgs {
    /// Where a server of NVMe/TCP has the zoned namespace, or its device (/dev/ngXnY or /dev/nvmeXnY)
    #[arg(long, value_name = "HOST:PORT|DEVICE")]
    pub zns: String,
    /// The server's subsystem by its qualified name
    #[arg(long, value_name = "NQN")]
    pub nqn: Option<String>,
    /// The server's namespace [default: 1]
    #[arg(long, value_name = "N")]
    pub nsid: Option<u32>,
    /// Write the controller with this serial number: what is in the namespace's zones is lost
    #[arg(long, value_name = "NUMBER")]
    pub serial: Option<String>,
    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub requests: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
