//! A program that serves a target of its own, here over vhost-user-blk: a drive that takes no time, for measuring what serving
//! costs.
//!
//!     cargo run --release -p ocssd-export --example vhost_user_blk_serve -- SOCKET pblk|pblk-512|null
//!
//! It serves until SIGTERM, and prints what was counted. experiments/serve-vhost-user-blk uses it.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, VirtualClock, WallClock};
use ocssd_export::reactor::{Endpoint, Limits, Listener, Server, Signals};
use ocssd_export::vhost_user_blk::VhostUserBlk;
use ocssd_export::{Export, ExportId, Exports};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::error::Error;

/// More than any interface moves.
const AT_ONCE: u64 = 1_000_000_000_000;

/// 4 units of 256 chunks of 1 MiB whose media, channels and link take no time.
fn drive() -> Result<Flash, Box<dyn Error>> {
    let mut config = presets::find("tiny").ok_or("no such preset")?.config();
    config.geometry = Geometry { ws_min: 4, mw_cunits: 8, ..Geometry::example(2, 2, 256, 256, 8) };
    config.payload = Payload::Bytes;
    config.queue_depth = 1024;
    config.media.read = vec![Nanos::ZERO];
    config.media.program = vec![Nanos::ZERO];
    config.media.erase = Nanos::ZERO;
    config.channel.bytes_per_second = AT_ONCE;
    config.channel.command = Nanos::ZERO;
    config.link.read_bytes_per_second = AT_ONCE;
    config.link.write_bytes_per_second = AT_ONCE;
    config.link.command = Nanos::ZERO;
    Ok(Flash::format(config).map_err(|error| error.to_string())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, target] = &arguments[..] else { return Err("expected SOCKET pblk|pblk-512|null".into()) };
    let (kind, options) = match target.as_str() {
        "pblk" => ("pblk", vec![("block_bytes".to_owned(), "4096".to_owned())]),
        "pblk-512" => ("pblk", vec![("block_bytes".to_owned(), "512".to_owned())]),
        other => (other, Vec::new()),
    };
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let mut device = drive()?;
    let (mut buffers, mut clock) = (Buffers::new(device.payload_format()), VirtualClock::default());
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let made = registry::find(kind)?.make_any(&mut caller, &spec)?;
    let export = Export::of("", target, &made.target, 4096, false)?;
    let mut host = Host::new(device, WallClock::starting_at(clock.now()), buffers);
    let target = made.target.into_block().ok_or("no target of blocks")?;
    host.add(target);
    let log = Box::new(|sentence: &str| eprintln!("{sentence}"));
    let exports = Exports::new(vec![export.clone()])?;
    let mut server = Server::new(host, exports, Signals::new()?, Limits::default(), log)?;
    let listener = Listener::bind(&Endpoint::Unix(socket.into()))?;
    server.host_transport(Box::new(|owner| {
        Box::new(VhostUserBlk::new(listener, ExportId(0), export, owner))
    }))?;
    let stopped = server.run(&mut |_| {})?;
    for (name, value) in stopped.stats.rows().into_iter().filter(|(_, value)| *value > 0) {
        println!("{name} {value}");
    }
    Ok(())
}
