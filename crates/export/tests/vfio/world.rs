//! A server in a thread.

use crate::drive;
use ocssd_export::pci_nvme::{Counters, PciId};
use ocssd_export::reactor::{Endpoint, Signals};
use ocssd_export::vfio_user::{ListenerThread, Server};
use ocssd_flash::config::Revision;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes that happens at all, on a loaded machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A server in a thread.
pub struct World {
    pub path: PathBuf,
    stop: UnixStream,
    thread: JoinHandle<(Counters, u64)>,
}

impl World {
    pub fn new() -> Self {
        Self::of(Revision::V20)
    }

    pub fn of(revision: Revision) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}-vfio", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let listener_thread =
            ListenerThread::open(&Endpoint::Unix(path.clone())).expect("the build directory takes sockets");
        let (stop, stop_end) = UnixStream::pair().expect("a test has sockets and threads");
        let (_, report_end) = UnixStream::pair().expect("a test has sockets and threads");
        let thread = std::thread::spawn(move || {
            let signals = Signals::of(stop_end, report_end).expect("a test has sockets and threads");
            let drive = drive::tiny(revision);
            let server = Server::new(drive, PciId::Qemu, listener_thread, signals, Box::new(|_| {}));
            let served = server.and_then(|server| server.run(&mut |_| {})).expect("it serves");
            (served.counters, served.guests)
        });
        Self { path, stop, thread }
    }

    /// Stops it; what it counted, and how many guests came.
    pub fn stop(mut self) -> (Counters, u64) {
        self.stop.write_all(b"x").expect("it is there");
        self.thread.join().expect("the server did not panic")
    }
}
