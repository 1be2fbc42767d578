//! A load for a device of vhost-user-blk, by libblkio's driver: random or sequential requests of 4 KiB at a fixed depth.
//!
//!     cargo run --release -p ocssd-export --example vhost_user_blk_load -- SOCKET read|write|fill DEPTH SECONDS MIB [poll]
//!
//! It prints one line: requests, seconds, p50, p99 and p99.9 in microseconds. `fill` writes all MIB once, in order. With
//! `poll` it looks at the ring all the time, without it sleeps until it is told. experiments/serve-vhost-user-blk uses it.

use blkio::{Blkio, Blkioq, Completion, ReqFlags};
use ocssd_base::Prng;
use std::error::Error;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Bytes of a request.
const BYTES: usize = 4096;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Fill,
}

/// A load that runs.
struct Load {
    queue: Blkioq,
    buffers: usize,
    kind: Kind,
    blocks: u64,
    next: u64,
    prng: Prng,
    begun: Vec<Instant>,
}

impl Load {
    /// One more request, by this place. False if there is none left.
    fn ask(&mut self, place: usize) -> bool {
        let block = match self.kind {
            Kind::Fill => self.next,
            Kind::Read | Kind::Write => self.prng.below(self.blocks),
        };
        if block >= self.blocks {
            return false;
        }
        self.next += 1;
        self.begun[place] = Instant::now();
        let start = block * u64::try_from(BYTES).expect("small");
        let buffer = std::ptr::with_exposed_provenance_mut(self.buffers + place * BYTES);
        match self.kind {
            Kind::Read => self.queue.read(start, buffer, BYTES, place, ReqFlags::empty()),
            Kind::Write | Kind::Fill => self.queue.write(start, buffer, BYTES, place, ReqFlags::empty()),
        }
        true
    }

    /// The places of requests that have ended, at least one.
    #[allow(unsafe_code, reason = "the library fills completions without saying so in their type")]
    fn wait(
        &mut self,
        places: &mut [MaybeUninit<Completion>],
        ended: &mut Vec<usize>,
    ) -> Result<(), Box<dyn Error>> {
        let found = self.queue.do_io(places, 1, None, None)?;
        ended.clear();
        for place in &places[..found] {
            // SAFETY: `do_io` has returned `found`, and says that it filled that many from the front.
            let completion = unsafe { place.assume_init_ref() };
            if completion.ret != 0 {
                return Err(format!("a request ended with {}", completion.ret).into());
            }
            ended.push(completion.user_data);
        }
        Ok(())
    }
}

/// A device at a socket, with a queue and shared buffers.
fn open(
    socket: &str,
    kind: Kind,
    depth: usize,
    mib: u64,
    polls: bool,
) -> Result<(Blkio, Load), Box<dyn Error>> {
    let mut blkio = Blkio::new("virtio-blk-vhost-user")?;
    blkio.set_str("path", socket)?;
    blkio.connect()?;
    blkio.set_i32("num-queues", i32::from(!polls))?;
    blkio.set_i32("num-poll-queues", i32::from(polls))?;
    let mut started = blkio.start()?;
    let region = blkio.alloc_mem_region(depth * BYTES)?;
    blkio.map_mem_region(&region)?;
    let queue = started.queues.pop().or(started.poll_queues.pop()).ok_or("no queue")?;
    let blocks = (mib << 20) / u64::try_from(BYTES)?;
    let begun = vec![Instant::now(); depth];
    let load = Load { queue, buffers: region.addr, kind, blocks, next: 0, prng: Prng::new(1), begun };
    Ok((blkio, load))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, kind, depth, seconds, mib, rest @ ..] = &arguments[..] else {
        return Err("expected SOCKET read|write|fill DEPTH SECONDS MIB [poll]".into());
    };
    let kind = match kind.as_str() {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "fill" => Kind::Fill,
        other => return Err(format!("expected read, write or fill, found {other}").into()),
    };
    let (depth, limit) = (depth.parse()?, Duration::from_secs_f64(seconds.parse()?));
    let (_blkio, mut load) = open(socket, kind, depth, mib.parse()?, rest.iter().any(|word| word == "poll"))?;
    let mut places: Vec<MaybeUninit<Completion>> = (0..depth).map(|_| MaybeUninit::uninit()).collect();
    let (mut ended, mut open, mut count) = (Vec::with_capacity(depth), 0_usize, 0_u64);
    let mut micros: Vec<u64> = vec![0; 100_000];
    let begun = Instant::now();
    open += (0..depth).filter(|place| load.ask(*place)).count();
    while open > 0 {
        load.wait(&mut places, &mut ended)?;
        let now = Instant::now();
        let goes_on = kind == Kind::Fill || now - begun < limit;
        for place in ended.drain(..) {
            (open, count) = (open - 1, count + 1);
            let tenths = (now - load.begun[place]).as_nanos() / 100;
            micros[usize::try_from(tenths)?.min(99_999)] += 1;
            open += usize::from(goes_on && load.ask(place));
        }
    }
    let at = |part: f64| {
        let mut left = part;
        let found = micros.iter().position(|bin| {
            left -= *bin as f64 / count as f64;
            left <= 0.0
        });
        found.unwrap_or(0) as f64 / 10.0
    };
    println!("{count} {:.3} {:.1} {:.1} {:.1}", begun.elapsed().as_secs_f64(), at(0.5), at(0.99), at(0.999));
    Ok(())
}
