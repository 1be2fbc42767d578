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

Example:
  ocssd conform --zns 127.0.0.1:4420 --nqn nqn.2014-08.org.nvmexpress:uuid:... --serial 0123456789ABCDEF";

/// `ocssd conform`.
#[derive(Args, Debug)]
pub struct ConformArgs {
    /// Where a server of NVMe/TCP has the zoned namespace
    #[arg(long, value_name = "HOST:PORT")]
    pub zns: String,
    /// The subsystem's qualified name
    #[arg(long, value_name = "NQN")]
    pub nqn: String,
    /// The namespace
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nsid: u32,
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
