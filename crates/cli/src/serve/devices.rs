//! Exports as block devices of vhost-user, each at a socket of its own.

use crate::args::ServeArgs;
use anyhow::{Context, anyhow};
use ocssd_export::ServedTarget;
use ocssd_export::reactor::{Endpoint, Listener, Server, Transport};
use ocssd_export::vhost_user_blk::VhostUserBlk;
use ocssd_export::{Export, ExportId, Exports};
use ocssd_lightnvm::Device;
use std::str::FromStr;

/// A socket of a block device, and the export it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSocket {
    /// The name of the export; empty for the only one.
    pub export: String,
    /// The socket.
    pub endpoint: Endpoint,
}

impl FromStr for DeviceSocket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (export, path) =
            text.split_once("=unix:").unwrap_or(("", text.strip_prefix("unix:").unwrap_or("")));
        if path.is_empty() {
            return Err(format!(
                "expected unix:/path, or NAME=unix:/path with an export's name, found \"{text}\""
            ));
        }
        Ok(Self { export: export.to_owned(), endpoint: Endpoint::Unix(path.into()) })
    }
}

/// An export, and the socket it is a block device at.
pub struct DeviceAt {
    /// Which export.
    pub id: ExportId,
    /// What is known of it.
    pub export: Export,
    /// The socket.
    pub endpoint: Endpoint,
}

/// The exports that are to be block devices of vhost-user, with their sockets.
///
/// # Errors
/// A name of no export, and none where there are several.
pub fn find(args: &ServeArgs, exports: &Exports) -> anyhow::Result<Vec<DeviceAt>> {
    let one = |asked: &DeviceSocket| {
        let id = exports.find_block(&asked.export).ok_or_else(|| {
            let names: Vec<&str> = exports.blocks().map(|(_, export)| export.name.as_str()).collect();
            let (name, endpoint) = (&asked.export, &asked.endpoint);
            anyhow!(
                "--vhost-user-blk {name}={endpoint}: a socket serves one block device, and there is none called \"{name}\"; name one \
                 of: {}",
                names.join(", ")
            )
        })?;
        Ok(DeviceAt { id, export: exports.get(id).clone(), endpoint: asked.endpoint.clone() })
    };
    args.vhost_user_blk.iter().map(one).collect()
}

/// Listens for frontends of vhost-user-blk.
///
/// # Errors
/// An endpoint that cannot be had.
pub fn listen<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    devices: &[DeviceAt],
) -> anyhow::Result<()> {
    for DeviceAt { id, export, endpoint } in devices {
        let listener =
            Listener::bind(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
        let (id, export) = (*id, export.clone());
        let make = Box::new(move |owner| {
            Box::new(VhostUserBlk::new(listener, id, export, owner)) as Box<dyn Transport>
        });
        server.host_transport(make).with_context(|| format!("{endpoint} cannot be served"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_written_with_or_without_an_export() {
        let parse = |text: &str| {
            text.parse::<DeviceSocket>().map(|socket| (socket.export, socket.endpoint.to_string()))
        };
        assert_eq!(parse("unix:/run/x"), Ok((String::new(), "unix:/run/x".to_owned())));
        assert_eq!(parse("log=unix:x=unix:y"), Ok(("log".to_owned(), "unix:x=unix:y".to_owned())));
        for text in ["", "unix:", "log=unix:", "log=", "/run/x", "tcp:127.0.0.1:1"] {
            assert!(parse(text).is_err_and(|error| error.contains("expected unix:/path")), "{text}");
        }
    }
}
