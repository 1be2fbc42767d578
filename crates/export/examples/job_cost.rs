//! What one job costs a server, without sockets: a piece from the pool, the dispatcher, a turn of the host, the reply.
//!
//!     cargo build --release -p ocssd-export --example job_cost
//!     valgrind --tool=callgrind target/release/examples/job_cost null|pblk blocks|any JOBS
//!
//! Random reads of 4 KiB, 32 at once, on a drive that takes no time, by a host of block targets or by one of targets of any
//! interface. The instructions of two runs, one of more jobs, differ by what those jobs cost. It prints how many turns the host
//! gave, and a checksum of what was read, which is the same for both hosts. experiments/bench uses it.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, VirtualClock};
use ocssd_export::{
    ClientId, Dispatcher, Export, ExportId, Exports, Job, JobOwner, Pool, ServedTarget, Want, Work,
};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::error::Error;

/// More than any interface moves.
const AT_ONCE: u64 = 1_000_000_000_000;
/// Jobs in flight.
const DEPTH: u32 = 32;
/// Blocks that are read: 16 MiB, all written before.
const BLOCKS: u64 = 4096;
/// Bytes of a block.
const BLOCK_BYTES: usize = 4096;

/// 4 units of 32 chunks of 1 MiB whose media, channels and link take no time.
fn drive() -> Result<Flash, Box<dyn Error>> {
    let mut config = presets::find("tiny").ok_or("no such preset")?.config();
    config.geometry = Geometry { ws_min: 4, mw_cunits: 8, ..Geometry::example(2, 2, 32, 256, 8) };
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

/// A dispatcher with its host, in virtual time.
struct World<T: ServedTarget + ?Sized> {
    host: Host<Flash, VirtualClock, T>,
    dispatcher: Dispatcher,
    checksum: u64,
}

impl<T: ServedTarget + ?Sized> World<T> {
    fn new(device: Flash, clock: VirtualClock, mut buffers: Buffers, export: Export, target: Box<T>) -> Self {
        let pool = Pool::new(&mut buffers);
        let exports = Exports::new(vec![export]).expect("it is one");
        let mut host = Host::new(device, clock, Buffers::new(buffers.format()));
        host.add(target);
        Self { host, dispatcher: Dispatcher::new(exports, pool, buffers), checksum: 0 }
    }

    fn give(&mut self, request: u32, work: Work, block: u64) {
        let owner = JobOwner { connection: 0, generation: 0, request };
        let piece = self.dispatcher.pool.take(ClientId(0), BLOCK_BYTES, Want::Share).expect("few are lent");
        if matches!(work, Work::Write { .. }) {
            let fill = u8::try_from(block % 251).expect("less than 251");
            self.dispatcher.buffers.bytes_mut(piece.buffer, 0, BLOCK_BYTES).fill(fill);
        }
        let (piece, beside) = (Some(piece), Vec::new());
        self.dispatcher.give(Job { owner, export: ExportId(0), work, block, count: 1, piece, beside });
    }

    /// So many jobs, to blocks that `next` names.
    fn run(&mut self, jobs: u32, work: Work, mut next: impl FnMut(u32) -> u64) {
        let (mut given, mut ended) = (0, 0);
        while ended < jobs {
            while given < jobs && given - ended < DEPTH {
                self.give(given, work, next(given));
                given += 1;
            }
            self.dispatcher.now = self.host.clock().now();
            self.dispatcher.begin_round();
            let empty = self.host.take_buffers();
            self.host.return_buffers(std::mem::replace(&mut self.dispatcher.buffers, empty));
            let busy = self.host.step(&mut self.dispatcher);
            self.dispatcher.buffers = self.host.take_buffers();
            let mut any = busy;
            while let Some(done) = self.dispatcher.poll_done() {
                assert!(done.status.is_success(), "{done:?}");
                let piece = done.job.piece.as_ref().expect("every job has one");
                let first = self.dispatcher.buffers.bytes(piece.buffer, 0, BLOCK_BYTES)[0];
                self.checksum = self.checksum.rotate_left(5) ^ u64::from(first);
                done.into_pieces().for_each(|piece| self.dispatcher.pool.give_back(piece));
                ended += 1;
                any = true;
            }
            if !any && let Some(at) = self.host.next_deadline() {
                self.host.clock_mut().wait_until(at);
            }
        }
    }

    fn measure(mut self, jobs: u32) {
        let in_order = |number: u32| u64::from(number);
        self.run(u32::try_from(BLOCKS).expect("few"), Work::Write { fua: false }, in_order);
        let mut prng = Prng::new(7);
        self.run(jobs, Work::Read, |_| prng.below(BLOCKS));
        println!("{jobs} jobs, {} turns, checksum {:016x}", self.host.turns(), self.checksum);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, host, jobs] = &arguments[..] else {
        return Err("expected null|pblk blocks|any JOBS".into());
    };
    let jobs: u32 = jobs.parse().map_err(|error| format!("JOBS is a whole number, but {jobs}: {error}"))?;
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let mut device = drive()?;
    let (mut buffers, mut clock) = (Buffers::new(device.payload_format()), VirtualClock::default());
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &[] };
    let made = registry::find(target)?.make_any(&mut caller, &spec)?;
    let export = Export::of("", target, &made.target, 4096, false)?;
    match host.as_str() {
        "blocks" => {
            let target = made.target.into_block().ok_or("it is no target of blocks")?;
            World::new(device, clock, buffers, export, target).measure(jobs);
        }
        "any" => World::new(device, clock, buffers, export, Box::new(made.target)).measure(jobs),
        other => return Err(format!("the host is blocks or any, but {other} was given").into()),
    }
    Ok(())
}
