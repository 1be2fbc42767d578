//! A server in a thread.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, VirtualClock, WallClock};
use ocssd_export::nbd::{Session, TlsPolicy};
use ocssd_export::nvme_subsystem::{Subsystem, SubsystemConfig};
use ocssd_export::nvme_tcp;
use ocssd_export::reactor::{
    Arrival, Endpoint, Limits, Listener, MakeProtocol, ServedHost, Server, Signals, TlsConfig, Transport,
};
use ocssd_export::vhost_user_blk::VhostUserBlk;
use ocssd_export::{Export, ExportId, Exports, Protocol, ServedTarget, Stats};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId};
use ocssd_nvme::identify::Uuid;
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes that happens at all, on a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// The subsystem of the tests.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:served";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A path for a socket or file of one test.
pub fn scratch(name: &str) -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()))
}

/// A server in a thread.
pub struct World {
    pub endpoint: Endpoint,
    /// Bytes of the export.
    pub bytes: u64,
    stop: UnixStream,
    report: UnixStream,
    reported: Receiver<Stats>,
    thread: Option<JoinHandle<(Stats, bool)>>,
}

/// What a test's server is to be.
pub struct ServerOptions {
    pub endpoint: Endpoint,
    /// NBD is spoken here too.
    pub beside: Option<Endpoint>,
    pub limits: Limits,
    pub read_only: bool,
    pub tls: Option<Arc<TlsConfig>>,
    /// NVMe/TCP is spoken instead of NBD.
    pub nvme: bool,
    /// It is a device of vhost-user-blk instead of NBD.
    pub vhost_user_blk: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let endpoint = Endpoint::Unix(scratch("socket"));
        Self {
            endpoint,
            beside: None,
            limits: Limits::default(),
            read_only: false,
            tls: None,
            nvme: false,
            vhost_user_blk: false,
        }
    }
}

/// A drive with its target.
struct Made {
    device: Flash,
    now: Nanos,
    buffers: Buffers,
    target: AnyTarget,
    export: Export,
}

/// 4 units of 64 chunks of 256 KiB, whose media is faster than a socket.
fn made() -> Made {
    let mut config = presets::find("tiny").expect("a test has sockets, pipes and threads").config();
    config.geometry = Geometry { ws_min: 4, mw_cunits: 8, ..Geometry::example(2, 2, 64, 64, 8) };
    config.payload = Payload::Bytes;
    config.media.read = vec![Nanos::from_micros(1)];
    config.media.program = vec![Nanos::from_micros(2)];
    config.media.erase = Nanos::from_micros(5);
    let flash = Flash::format(config).expect("a sound drive");
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let options = [("over_provisioning_percent", "25"), ("block_bytes", "512")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let mut buffers = Buffers::new(flash.payload_format());
    let (mut device, mut clock) = (flash, VirtualClock::default());
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = registry::find("pblk")
        .expect("a test has sockets, pipes and threads")
        .make_any(&mut caller, &spec)
        .expect("it fits");
    let export = Export::of("a", "pblk in a test", &made.target, 4096, false)
        .expect("a test has sockets, pipes and threads");
    Made { device, now: clock.now(), buffers, target: made.target, export }
}

/// What a thread serves with.
struct Serving {
    listener: Listener,
    beside: Option<Listener>,
    signals: Signals,
    limits: Limits,
    tls: Option<Arc<TlsConfig>>,
    nvme: bool,
    vhost_user_blk: bool,
    send: Sender<Stats>,
}

impl Serving {
    /// Serves until it is told to stop, and looks at what is left.
    fn serve<T: ServedTarget + ?Sized>(self, host: ServedHost<Flash, T>, export: Export) -> (Stats, bool) {
        let Self { listener, beside, signals, limits, tls, nvme, vhost_user_blk, send } = self;
        let device = export.clone();
        let exports = Exports::new(vec![export]).expect("a test has sockets, pipes and threads");
        let mut server = Server::new(host, exports, signals, limits, Box::new(|_| {}))
            .expect("a test has sockets, pipes and threads");
        let policy = if tls.is_some() { TlsPolicy::Required } else { TlsPolicy::None };
        if let Some(tls) = tls {
            server.use_tls(tls);
        }
        let make: MakeProtocol = if nvme {
            let config =
                SubsystemConfig { nqn: NQN.to_owned(), uuid: Uuid::of_seed(1), ..SubsystemConfig::default() };
            server.use_nvme(Subsystem::new(config).expect("a sound name"), None);
            Box::new(|Arrival { connection, generation, local }| {
                Box::new(nvme_tcp::Session::new(connection, generation, local))
            })
        } else {
            Box::new(move |arrival: Arrival| {
                Box::new(Session::new(policy, arrival.connection, arrival.generation))
            })
        };
        if vhost_user_blk {
            let transport = Box::new(|owner| {
                Box::new(VhostUserBlk::new(listener, ExportId(0), device, owner)) as Box<dyn Transport>
            });
            server.host_transport(transport).expect("a test has sockets, pipes and threads");
        } else {
            server.listen(listener, make).expect("a test has sockets, pipes and threads");
        }
        if let Some(beside) = beside {
            let make = move |arrival: Arrival| {
                Box::new(Session::new(policy, arrival.connection, arrival.generation)) as Box<dyn Protocol>
            };
            server.listen(beside, Box::new(make)).expect("a test has sockets, pipes and threads");
        }
        let stopped = server
            .run(&mut |stats| send.send(stats.clone()).expect("a test has sockets, pipes and threads"))
            .expect("a test has sockets, pipes and threads");
        let mut host = stopped.host;
        // Whatever clients did, nothing is open and every invariant holds.
        host.settle();
        host.target(ocssd_lightnvm::TargetId(0)).check();
        (stopped.stats, true)
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(ServerOptions::default())
    }

    pub fn with(options: ServerOptions) -> Self {
        let ServerOptions { endpoint, beside, limits, read_only, tls, nvme, vhost_user_blk } = options;
        let listener = Listener::bind(&endpoint).expect("the build directory takes sockets");
        let endpoint = listener.endpoint().clone();
        let beside = beside.map(|beside| Listener::bind(&beside).expect("the build directory takes sockets"));
        let (stop, stop_end) = UnixStream::pair().expect("a test has sockets, pipes and threads");
        let (report, report_end) = UnixStream::pair().expect("a test has sockets, pipes and threads");
        let (send, reported) = channel();
        let (ready, is_ready) = channel();
        let thread = std::thread::spawn(move || {
            let Made { device, now, buffers, target, export } = made();
            let export = Export { read_only, ..export };
            ready.send(export.bytes()).expect("a test has sockets, pipes and threads");
            let signals = Signals::of(stop_end, report_end).expect("a test has sockets, pipes and threads");
            let serving = Serving { listener, beside, signals, limits, tls, nvme, vhost_user_blk, send };
            let clock = WallClock::starting_at(now);
            if nvme {
                let mut host = Host::new(device, clock, buffers);
                host.add(Box::new(target));
                serving.serve(host, export)
            } else {
                let mut host = Host::new(device, clock, buffers);
                host.add(target.into_block().expect("it has blocks"));
                serving.serve(host, export)
            }
        });
        let bytes = is_ready.recv().expect("the server begins");
        Self { endpoint, bytes, stop, report, reported, thread: Some(thread) }
    }

    /// What was counted until now.
    pub fn stats(&mut self) -> Stats {
        self.report.write_all(b"?").expect("a test has sockets, pipes and threads");
        self.reported.recv().expect("the server lives")
    }

    /// Waits until the counters say what they should; fails after a while.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Stats) -> bool) -> Stats {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let stats = self.stats();
            if is_so(&stats) {
                return stats;
            }
            std::thread::yield_now();
        }
        panic!("{what} never became so: {:?}", self.stats())
    }

    /// Stops the server, which must have lived until then.
    pub fn end(mut self) -> Stats {
        self.stop.write_all(b"!").expect("a test has sockets, pipes and threads");
        let (stats, whole) = self
            .thread
            .take()
            .expect("a test has sockets, pipes and threads")
            .join()
            .expect("the server did not panic");
        assert!(whole);
        stats
    }
}
