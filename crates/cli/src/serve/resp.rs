//! Redis' protocol on a key-value export.

use crate::args::{DurabilityArg, ServeArgs};
use anyhow::{Context, anyhow, bail};
use ocssd_base::Nanos;
use ocssd_export::ServedTarget;
use ocssd_export::reactor::{Arrival, Endpoint, Listener, Server};
use ocssd_export::resp::{Lane, Session, Setup};
use ocssd_export::{ExportId, ExportKind, Exports};
use ocssd_lightnvm::Device;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::key_value::KvLimits;
use std::time::{SystemTime, UNIX_EPOCH};

/// The export that clients of Redis get, and what its target takes.
fn find(args: &ServeArgs, exports: &Exports) -> anyhow::Result<(ExportId, KvLimits)> {
    let wanted = args.redis.resp_export.as_deref();
    for (number, export) in (0..).zip(exports.iter()) {
        match export.kind {
            ExportKind::KeyValue(limits) if wanted.is_none_or(|name| name == export.name) => {
                return Ok((ExportId(number), limits));
            }
            _ if wanted == Some(export.name.as_str()) => bail!(
                "--resp-export: \"{}\" speaks of {}, and Redis' protocol of keys and values; name an export of a target as kv",
                export.name,
                export.interface()
            ),
            _ => {}
        }
    }
    match wanted {
        Some(name) => bail!("--resp-export: there is no export \"{name}\""),
        None => bail!("--resp needs a target of keys and values; say --target kv, or --export NAME=kv"),
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)
}

/// Listens for clients of Redis, if that was asked for; returns where, with the ports that were found. The pair is one time, by the
/// server's clock and in milliseconds since 1970: a server is not made in an instant.
///
/// # Errors
/// No export that can be served, or an endpoint that cannot be had.
pub fn listen<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    args: &ServeArgs,
    exports: &Exports,
    (at, epoch_ms): (Nanos, i64),
) -> anyhow::Result<Vec<Endpoint>> {
    if args.redis.resp.is_empty() {
        return Ok(Vec::new());
    }
    let (export, limits) = find(args, exports)?;
    let setup = Setup {
        export,
        limits,
        is_read_only: args.read_only,
        durability: match args.redis.resp_durability {
            DurabilityArg::Reply => Durability::AtReply,
            DurabilityArg::Flush => Durability::AtFlush,
        },
        memory_bytes: args.redis.resp_memory,
        epoch_ms,
        at,
    };
    let database = setup.database().map_err(|sentence| anyhow!("--resp: {sentence}"))?;
    let of_lane = database.clone();
    let make = Box::new(move |connection| Box::new(Lane::new(of_lane, setup, connection)) as _);
    server.host_transport(make).context("Redis' protocol cannot be served")?;
    let mut found = Vec::new();
    for endpoint in &args.redis.resp {
        let listener =
            Listener::bind(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
        found.push(listener.endpoint().clone());
        let database = database.clone();
        let make = Box::new(move |arrival: Arrival| {
            Box::new(Session::new(database.clone(), arrival.connection, arrival.generation)) as _
        });
        server.listen(listener, make).with_context(|| format!("{endpoint} cannot be served"))?;
    }
    Ok(found)
}
