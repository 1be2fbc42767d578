//! What NVMe hosts see: the subsystem's name, who may come, and its namespaces.

use crate::args::ServeArgs;
use ocssd_export::Exports;
use ocssd_export::nvme_subsystem::{Subsystem, SubsystemConfig};
use ocssd_nvme::identify::Uuid;
use serde_json::{Value, json};

/// What is said about the subsystem when serving begins.
pub struct NvmeView {
    /// Its name.
    pub nqn: String,
    /// Its namespaces: number, and what it is.
    pub namespaces: Vec<(usize, String)>,
}

/// The subsystem of a drive with this UUID.
///
/// # Errors
/// A name that is none.
pub fn subsystem(args: &ServeArgs, uuid: Uuid) -> anyhow::Result<Subsystem> {
    let config = SubsystemConfig {
        nqn: args.nqn.clone().unwrap_or_else(|| uuid.nqn()),
        uuid,
        hosts: args.host.clone(),
        advertised: args.advertise,
    };
    Subsystem::new(config).map_err(anyhow::Error::msg)
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
