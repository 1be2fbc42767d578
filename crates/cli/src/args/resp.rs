//! The arguments of Redis' protocol.

use clap::{Args, ValueEnum};
use ocssd_export::reactor::Endpoint;

/// When a change is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    /// When it is answered
    Reply,
    /// A second later, or at SAVE
    Flush,
}

/// The part of `ocssd serve` that has to do with Redis' protocol.
#[derive(Args, Debug)]
pub struct RespArgs {
    /// Listen for clients of Redis, on a key-value target: unix:/path (mode 0600) or tcp:ADDRESS:PORT; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    pub resp: Vec<Endpoint>,
    /// The export they are served [default: the first that is of keys and values]
    #[arg(long, value_name = "NAME", requires = "resp")]
    pub resp_export: Option<String>,
    /// When what they change is durable
    #[arg(long, value_enum, default_value = "reply", requires = "resp")]
    pub resp_durability: DurabilityArg,
    /// Memory for their requests and answers, beyond 64 KiB of each
    #[arg(long, value_name = "SIZE", default_value = "256MiB", requires = "resp")]
    #[arg(value_parser = crate::drive_facts::parse_bytes)]
    pub resp_memory: u64,
}
