//! What NVMe hosts see: the subsystem's name, who may come, and its namespaces.

use crate::args::ServeArgs;
use ocssd_export::Exports;
use ocssd_export::nvme_tcp::{Subsystem, SubsystemConfig};
use serde_json::{Value, json};

/// What is said about the subsystem when serving begins.
pub struct NvmeView {
    /// Its name.
    pub nqn: String,
    /// Its namespaces: number, and what it is.
    pub namespaces: Vec<(usize, String)>,
}

/// The subsystem of a drive with this seed.
///
/// # Errors
/// A name that is none.
pub fn subsystem(args: &ServeArgs, seed: u64) -> anyhow::Result<Subsystem> {
    let config = SubsystemConfig {
        nqn: args.nqn.clone().unwrap_or_else(|| nqn_of(seed)),
        serial: seed,
        hosts: args.host.clone(),
        advertised: args.advertise,
    };
    Subsystem::new(config).map_err(anyhow::Error::msg)
}

/// A name made of the drive's seed, as its serial number is: a UUID of version 8 (made by a rule of its own, RFC 9562).
fn nqn_of(seed: u64) -> String {
    let (high, low) = (seed >> 48, seed & 0xFFFF_FFFF_FFFF);
    format!("nqn.2014-08.org.nvmexpress:uuid:00000000-{high:04x}-8000-8000-{low:012x}")
}

impl NvmeView {
    /// Of this subsystem.
    pub fn new(subsystem: &Subsystem, exports: &Exports, raw: Option<&str>) -> Self {
        let blocks = exports.iter().map(|export| format!("\"{}\", {}", export.name, export.description));
        let names = blocks.chain(raw.map(str::to_owned));
        Self { nqn: subsystem.config.nqn.clone(), namespaces: (1..).zip(names).collect() }
    }

    /// For programs.
    pub fn json(&self, addresses: &[String]) -> Value {
        let namespaces = self.namespaces.iter().map(|(nsid, what)| json!({ "nsid": nsid, "what": what }));
        json!({ "nqn": self.nqn, "addresses": addresses, "namespaces": namespaces.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_a_name() {
        assert_eq!(
            nqn_of(0x0123_4567_89AB_CDEF),
            "nqn.2014-08.org.nvmexpress:uuid:00000000-0123-8000-8000-456789abcdef"
        );
    }
}
