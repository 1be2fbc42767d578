//! What a server says: where it serves what, and what it counted. It serves on if nobody listens.

use super::devices::DeviceAt;
use super::nvme::NvmeView;
use super::observe::{KINDS, Kind, Served};
use super::slots::{qemu_device, qemu_lines};
use crate::run::metrics;
use crate::table;
use ocssd_export::fuse::file_name;
use ocssd_export::reactor::Endpoint;
use ocssd_export::{Export, ExportKind, Exports, Stats};
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_workload::results::Tail;
use ocssd_workload::results::fold::fold;
use ocssd_workload::results::table::latency_cells;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where an export is, as clients write it.
fn uri(endpoint: &Endpoint, export: &Export, tls: bool) -> String {
    let scheme = if tls { "nbds" } else { "nbd" };
    let name = percent(&export.name);
    match endpoint {
        Endpoint::Unix(path) => {
            format!("{scheme}+unix:///{name}?socket={}", percent(&path.to_string_lossy()))
        }
        Endpoint::Tcp(address) => format!("{scheme}://{address}/{name}"),
    }
}

/// Text as a URI carries it: what is no letter, digit or plain mark becomes its bytes (RFC 3986 section 2).
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// What is served, and where.
pub struct Serving<'a> {
    /// Block devices.
    pub exports: &'a Exports,
    /// Where NBD is spoken.
    pub endpoints: &'a [Endpoint],
    /// What the user should know.
    pub notes: &'a [String],
    /// NBD is spoken within TLS.
    pub tls: bool,
    /// Block devices of vhost-user, and where.
    pub devices: &'a [DeviceAt],
    /// Where exports are files.
    pub directory: Option<&'a Path>,
    /// Where Prometheus reads.
    pub metrics: Option<&'a Endpoint>,
    /// Where Redis' protocol is spoken.
    pub resp: &'a [Endpoint],
    /// What NVMe hosts see, and where over TCP.
    pub nvme: Option<(&'a NvmeView, &'a [Endpoint])>,
    /// Where virtual machines find it in a PCI slot.
    pub slots: &'a [Endpoint],
}

/// The path of a socket.
fn socket(endpoint: &Endpoint) -> String {
    if let Endpoint::Unix(path) = endpoint { path.display().to_string() } else { endpoint.to_string() }
}

/// Address and port of an endpoint of the network.
fn address(endpoint: &Endpoint) -> Option<SocketAddr> {
    if let Endpoint::Tcp(address) = endpoint { Some(*address) } else { None }
}

/// Where the page for Prometheus is.
fn metrics_url(endpoint: &Endpoint) -> Option<String> {
    address(endpoint).map(|address| format!("http://{address}/metrics"))
}

/// Size and shape of an export, in words.
fn shape(export: &Export) -> String {
    let (size, block) = (table::bytes(export.bytes()), export.block_bytes);
    match export.kind {
        ExportKind::Block => format!("{size} in blocks of {block} B"),
        ExportKind::Zoned(zones) => {
            let bytes = |blocks: u64| table::bytes(blocks * u64::from(zones.block_bytes));
            let (zone, capacity) = (bytes(zones.zone_blocks), bytes(zones.capacity_blocks));
            format!(
                "{} zones of {zone}, {capacity} of each can be written, in blocks of {block} B",
                zones.zone_count
            )
        }
        ExportKind::KeyValue(limits) => {
            let (key, value) = (limits.key_bytes_max, table::bytes(limits.value_bytes_max.into()));
            format!("{size} of keys up to {key} B and values up to {value}")
        }
        ExportKind::Log(limits) => {
            let (page, flush) =
                (table::bytes(limits.page_bytes_max.into()), table::bytes(limits.flush_bytes_max.into()));
            format!("{size} of pages up to {page}, in flushes up to {flush}")
        }
        ExportKind::Table(limits) => {
            let (count, bytes) = (limits.tables_max, table::bytes(limits.table_bytes_max));
            format!("{size} of tables and logs, at most {count}, of up to {bytes} each")
        }
    }
}

/// Says that clients may come.
pub fn begin(serving: &Serving<'_>, as_json: bool) {
    let &Serving { exports, endpoints, notes, tls, devices, directory, metrics, resp, nvme, slots } = serving;
    let addresses: Vec<SocketAddr> =
        nvme.into_iter().flat_map(|(_, endpoints)| endpoints).filter_map(address).collect();
    let uris = |export: &Export| -> Vec<String> {
        let nbd = endpoints.iter().filter(|_| export.is_block());
        nbd.map(|endpoint| uri(endpoint, export, tls)).collect()
    };
    let file = |export: &Export| -> Option<PathBuf> {
        let directory = directory.filter(|_| export.is_block())?;
        Some(directory.join(file_name(export).expect("it was mounted under this name")))
    };
    if as_json {
        let serving = exports.iter().map(|export| {
            json!({
                "name": export.name, "description": export.description, "bytes": export.bytes(),
                "block_bytes": export.block_bytes, "interface": export.interface().words(), "read_only": export.read_only, "uris": uris(export),
                "file": file(export),
            })
        });
        let mut document = json!({ "serving": serving.collect::<Vec<_>>(), "notes": notes });
        if !devices.is_empty() {
            let sockets = devices.iter().map(|DeviceAt { export, endpoint, .. }| {
                json!({ "export": export.name, "socket": socket(endpoint) })
            });
            document["vhost_user_blk"] = sockets.collect();
        }
        if !resp.is_empty() {
            document["resp"] = resp.iter().map(|endpoint| json!(endpoint.to_string())).collect();
        }
        if let Some(url) = metrics.and_then(metrics_url) {
            document["metrics"] = json!(url);
        }
        if let Some((view, _)) = nvme {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            document["nvme"] = view.json(&addresses);
        }
        if !slots.is_empty() {
            let slot = |endpoint: &Endpoint| json!({ "endpoint": endpoint.to_string(), "qemu_device": qemu_device(endpoint) });
            document["vfio_user"] = slots.iter().map(slot).collect();
        }
        return table::say(&format!("{document:#}"));
    }
    for note in notes {
        table::say(&format!("note: {note}"));
    }
    for export in exports.iter() {
        let what = if export.read_only { "serving, read only," } else { "serving" };
        table::say(&format!("{what} \"{}\": {}, {}", export.name, shape(export), export.description));
        uris(export).iter().for_each(|uri| table::say(&format!("  {uri}")));
        let own = devices.iter().filter(|device| device.export.name == export.name);
        own.for_each(|device| table::say(&format!("  vhost-user-blk at {}", socket(&device.endpoint))));
        file(export).iter().for_each(|file| table::say(&format!("  {}", file.display())));
    }
    metrics.and_then(metrics_url).iter().for_each(|url| table::say(&format!("metrics at {url}")));
    resp.iter().for_each(|endpoint| table::say(&format!("Redis' protocol at {endpoint}")));
    let Some((view, _)) = nvme else { return };
    for (nsid, what) in &view.namespaces {
        table::say(&format!("NVMe namespace {nsid}: {what}"));
    }
    for address in addresses {
        let (ip, port, nqn) = (address.ip(), address.port(), &view.nqn);
        table::say(&format!("  nvme connect -t tcp -a {ip} -s {port} -n {nqn}"));
    }
    slots.iter().flat_map(qemu_lines).for_each(|line| table::say(&line));
}

/// How it is said.
#[derive(Clone, Copy)]
pub struct Form {
    /// For programs.
    pub as_json: bool,
    /// With everything that was counted.
    pub is_verbose: bool,
}

/// Says what was served and counted.
pub fn stats(stats: &Stats, served: &Served, form: Form) {
    let (written, read) = stats.copies_per_byte();
    if form.as_json {
        let counters: Map<String, Value> =
            stats.rows().into_iter().map(|(name, value)| (name, json!(value))).collect();
        let copies = json!({ "write": written, "read": read });
        let document = json!({
            "stats": counters,
            "copies_per_byte": copies,
            "latency_ns": latencies(served),
            "tails": served.tails.iter().map(Tail::to_json).collect::<Vec<_>>(),
            "targets": metrics::to_json(&served.targets),
        });
        return table::say(&format!("{document:#}"));
    }
    if stats.connections == 0 && stats.receives == 0 {
        return table::say("No client came.");
    }
    table::say(&summary(served));
    if !form.is_verbose {
        return table::say("More with --verbose.");
    }
    let shown = stats.rows().into_iter().filter(|(_, value)| *value > 0);
    let mut rows: Vec<Vec<String>> = shown.map(|(name, value)| vec![name, value.to_string()]).collect();
    for (path, copies) in [("write", written), ("read", read)] {
        if let Some(copies) = copies {
            rows.push(vec![
                format!("copies per byte between the kernel and buffer, {path}"),
                format!("{copies:.3}"),
            ]);
        }
    }
    table::say(&table::text(&["counted", ""], &rows));
    metrics::print(&served.targets);
}

/// Latency by kind of request, for programs.
fn latencies(served: &Served) -> Value {
    let kinds = KINDS.iter().zip(&served.kinds).filter(|(_, kind)| kind.latency.count() > 0);
    let kinds = kinds.map(|(name, kind)| {
        let histogram = kind.latency.histogram();
        let percentile = |percent| histogram.percentile(percent).map(|time| time.0);
        let value = json!({
            "ios": kind.latency.count(), "bytes": kind.bytes, "mean": kind.latency.mean_ns(), "p50": percentile(50.0),
            "p99": percentile(99.0), "p99.9": percentile(99.9), "max": kind.latency.max().map(|time| time.0),
        });
        ((*name).to_owned(), value)
    });
    Value::Object(kinds.collect())
}

/// What clients got of the drive, and what its targets did for it, for people.
fn summary(served: &Served) -> String {
    let kinds = KINDS.iter().zip(&served.kinds).filter(|(_, kind)| kind.latency.count() > 0);
    let row = |(name, kind): (&&str, &Kind)| {
        let mut row = vec![(*name).to_owned(), kind.latency.count().to_string(), table::bytes(kind.bytes)];
        row.extend(latency_cells(&kind.latency));
        row
    };
    let rows: Vec<Vec<String>> = kinds.map(row).collect();
    let mut text = table::text(&["served", "I/Os", "payload", "mean", "p50", "p99", "p99.9", "max"], &rows);
    for tail in &served.tails {
        text += &format!("\n{}", fold(&tail.sentence()));
    }
    for (name, counters) in &served.targets {
        if let Some(sentence) = collection(counters) {
            text += &format!("\n{}", fold(&format!("{name}: {sentence}")));
        }
    }
    text
}

/// What a target wrote besides what users did; nothing if it does not say so, or nobody wrote.
fn collection(counters: &[Counter]) -> Option<String> {
    let find = |name: &str| counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
    let count = |name: &str| match find(name) {
        Some(CounterValue::Count(count) | CounterValue::Gauge(count)) => Some(count),
        _ => None,
    };
    let Some(CounterValue::Ratio(Some(amplification))) = find("write_amplification") else { return None };
    let (moved, victims, free) = (count("gc_written_sectors")?, count("gc_victims")?, count("lines_free")?);
    Some(format!(
        "write amplification {amplification:.2}; GC moved {moved} sectors of {victims} lines; {free} lines free"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_carries_any_name() {
        assert_eq!(percent("a b/ü%"), "a%20b/%C3%BC%25");
    }
}
