//! Endpoints, and what must be so before anything listens on them.

use crate::args::ServeArgs;
use anyhow::{Context, anyhow, bail};
use ocssd_export::ServedTarget;
use ocssd_export::nbd::{self, TlsPolicy};
use ocssd_export::nvme_tcp;
use ocssd_export::reactor::{Arrival, Endpoint, Listener, Server, TlsConfig, load_tls};
use ocssd_export::{MetricsPage, Page};
use ocssd_lightnvm::Device;
use std::sync::Arc;

/// How clients are kept out.
pub struct Security {
    /// Encryption, if there is any.
    pub tls: Option<Arc<TlsConfig>>,
}

/// Checks what was asked for, and reads certificates.
///
/// # Errors
/// An endpoint that other machines reach, without leave or without protection.
pub fn security(args: &ServeArgs) -> anyhow::Result<Security> {
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(load_tls(certificate, key, args.tls_clients.as_deref()).map_err(|error| anyhow!(error))?)
        }
        _ => None,
    };
    let mut endpoints = args.nbd.iter().chain(&args.nvme_tcp).chain(&args.redis.resp).chain(&args.metrics);
    let Some(exposed) = endpoints.find(|endpoint| !endpoint.is_local()) else {
        return Ok(Security { tls });
    };
    if !args.beyond_loopback {
        bail!(
            "{exposed} can be reached by other machines; listen on a unix socket or 127.0.0.1, or say --beyond-loopback \
             with --tls-certificate and --tls-key, or with --allow ADDRESSES"
        );
    }
    if tls.is_none() && args.allow.is_empty() {
        bail!(
            "{exposed} can be reached by other machines without protection; add --tls-certificate and --tls-key, or --allow \
             ADDRESSES to serve those machines without encryption"
        );
    }
    if let Some(exposed) =
        args.metrics.as_ref().filter(|endpoint| !endpoint.is_local() && args.allow.is_empty())
    {
        bail!("the metrics at {exposed} would be read by any machine, without TLS; add --allow ADDRESSES");
    }
    let nvme = args.nvme_tcp.iter().find(|endpoint| !endpoint.is_local());
    if let (Some(exposed), true) = (nvme, args.allow.is_empty()) {
        bail!(
            "{exposed} would be reached by any machine: NVMe/TCP is served without TLS (its TLS needs keys agreed on before), \
             so add --allow ADDRESSES; --host NQN alone is no protection, since hosts name themselves"
        );
    }
    let resp = args.redis.resp.iter().find(|endpoint| !endpoint.is_local());
    if let (Some(exposed), true) = (resp, args.allow.is_empty()) {
        bail!(
            "{exposed} would be reached by any machine: Redis' protocol is served without TLS and without passwords, so add \
             --allow ADDRESSES"
        );
    }
    Ok(Security { tls })
}

/// Everywhere that is listened.
pub fn endpoints(args: &ServeArgs) -> impl Iterator<Item = &Endpoint> {
    let devices = args.vhost_user_blk.iter().map(|device| &device.endpoint);
    let slots = &args.slot.vfio_user;
    args.nbd
        .iter()
        .chain(&args.nvme_tcp)
        .chain(&args.redis.resp)
        .chain(&args.metrics)
        .chain(devices)
        .chain(slots)
}

/// Listens; returns where, with the ports that were found.
///
/// # Errors
/// An endpoint that cannot be had.
pub fn listen<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    args: &ServeArgs,
    security: &Security,
) -> anyhow::Result<Vec<Endpoint>> {
    let policy = if security.tls.is_some() { TlsPolicy::Required } else { TlsPolicy::None };
    if let Some(config) = &security.tls {
        server.use_tls(Arc::clone(config));
    }
    let mut endpoints = Vec::new();
    for endpoint in &args.nbd {
        let listener =
            Listener::bind(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
        endpoints.push(listener.endpoint().clone());
        let make = Box::new(move |arrival: Arrival| {
            Box::new(nbd::Session::new(policy, arrival.connection, arrival.generation)) as _
        });
        server.listen(listener, make).with_context(|| format!("{endpoint} cannot be served"))?;
    }
    Ok(endpoints)
}

/// Listens for NVMe hosts; returns where, with the ports that were found.
///
/// # Errors
/// An endpoint that cannot be had.
pub fn listen_nvme<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    args: &ServeArgs,
) -> anyhow::Result<Vec<Endpoint>> {
    let mut endpoints = Vec::new();
    for endpoint in &args.nvme_tcp {
        let listener =
            Listener::bind(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
        endpoints.push(listener.endpoint().clone());
        let copies = args.copies.unwrap_or_default();
        let make = Box::new(move |Arrival { connection, generation, local }| {
            Box::new(nvme_tcp::Session::new(connection, generation, local).with_copies(copies)) as _
        });
        server.listen(listener, make).with_context(|| format!("{endpoint} cannot be served"))?;
    }
    Ok(endpoints)
}

/// Listens for Prometheus, if that was asked for; returns where.
///
/// # Errors
/// An endpoint that cannot be had.
pub fn listen_metrics<D: Device, T: ServedTarget + ?Sized>(
    server: &mut Server<D, T>,
    args: &ServeArgs,
    page: &Page,
) -> anyhow::Result<Option<Endpoint>> {
    let Some(endpoint) = &args.metrics else { return Ok(None) };
    let listener = Listener::bind(endpoint).with_context(|| format!("{endpoint} cannot be listened on"))?;
    let found = listener.endpoint().clone();
    let page = Page::clone(page);
    let make = Box::new(move |_: Arrival| Box::new(MetricsPage::new(Page::clone(&page))) as _);
    server.listen(listener, make).with_context(|| format!("{endpoint} cannot be served"))?;
    Ok(Some(found))
}
