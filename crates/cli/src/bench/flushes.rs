//! Flushes of 8 MiB to `eleos`, of 2048 pages each: of a new store in order, and of one 60 % full at random.
//!
//! Processor time of host, target and drive under virtual time, on a drive of stamps. A stamp stands for a sector there, but the
//! bytes of pages are kept all the same (`docs/eleos.md`): each is copied to the write buffer, covered by a checksum and copied to
//! the media. What a flush writes is in its buffer from the start. Deliberately not here: reads, pages of other lengths.

use crate::cpu;
use crate::report;
use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_engine::{Caller, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::log_structured::{
    LogOp, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, TargetId};
use ocssd_targets::eleos::{Eleos, Options};

/// Name of this benchmark.
pub const NAME: &str = "eleos_flush_8m";
/// Bytes of a flush (CIDR 2020, section 3.3: LLAMA's buffers).
const FLUSH_BYTES: u32 = 8 << 20;
/// Bytes of a page: a sector.
const PAGE_BYTES: u32 = 4 << 10;
/// Pages of a flush.
const PAGES: u32 = FLUSH_BYTES / PAGE_BYTES;
/// Flushes outstanding (chosen: one is filled while others are programmed).
const DEPTH: u32 = 4;
/// What is stored, in percent of what pages may take.
const FULL_PERCENT: u64 = 60;
/// Flushes that are measured, unless asked for otherwise: 8 GiB (chosen: some seconds).
const FLUSHES: u64 = 1024;
const SESSION: SessionId = SessionId(1);

type PageHost = Host<Flash, VirtualClock, dyn LogTarget>;

/// Three GiB of the Westlake's media on all its units, in chunks of 1 MiB: the bytes of pages fit memory.
fn fresh(options: &[(String, String)]) -> PageHost {
    let mut config = presets::find("westlake").expect("a preset").config();
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = (24, 256);
    let mut flash = Flash::format(config).expect("a sound preset");
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut chosen = Options::default();
    for (name, value) in options {
        chosen.set(name, value).expect("an option of eleos");
    }
    let (target, _) = Eleos::mount(&mut caller, &units, &chosen).expect("the drive is large enough");
    let mut host: PageHost = Host::new(flash, clock, buffers);
    host.add(Box::new(target));
    let opened = host.ask(LogRequest { tag: Tag(DEPTH), op: LogOp::OpenSession { session: SESSION } });
    assert!(opened.status.is_success(), "{opened:?}");
    host
}

/// So many flushes of one session, a few outstanding, of pages in order or drawn.
struct Load {
    left: u64,
    pages: u64,
    next_page: u64,
    /// Pages are drawn; else in order.
    prng: Option<Prng>,
    /// By page: the last flush that has it, so that none has a page twice.
    last: Vec<u64>,
    wsn: Wsn,
    /// A flush's content and table each.
    places: Vec<(BufId, BufId)>,
    free: Vec<u32>,
    refused: Option<LogRequest>,
    rows: Vec<PageEntry>,
}

impl Load {
    fn new((pages, flushes): (u64, u64), wsn: Wsn, prng: Option<Prng>, buffers: &mut Buffers) -> Self {
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let mut place = || {
            let content = buffers.take_whole(FLUSH_BYTES / sector);
            buffers.whole_mut(content, 0, FLUSH_BYTES / sector).fill(0x5A);
            let sectors = List::<PageEntry>::sectors(PAGES, buffers);
            (content, buffers.take_whole(sectors))
        };
        let places = (0..DEPTH).map(|_| place()).collect();
        let last = vec![0; usize::try_from(pages).expect("few")];
        let (next_page, free, rows) = (0, (0..DEPTH).collect(), Vec::with_capacity(usize_of(PAGES)));
        Self { left: flushes, pages, next_page, prng, last, wsn, places, free, refused: None, rows }
    }

    /// A page that the flush of this number has not yet.
    fn draw(&mut self, wsn: Wsn) -> PageId {
        loop {
            let number = self.prng.as_mut().map_or(self.next_page, |prng| prng.below(self.pages));
            self.next_page = (self.next_page + 1) % self.pages;
            let last = &mut self.last[usize::try_from(number).expect("it is one of the pages")];
            if std::mem::replace(last, wsn.0) != wsn.0 {
                return PageId(number);
            }
        }
    }

    fn give_back(self, buffers: &mut Buffers) -> Wsn {
        for (content, table) in self.places {
            buffers.give_back(content);
            buffers.give_back(table);
        }
        self.wsn
    }
}

impl Source<dyn LogTarget> for Load {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, LogRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        if self.left == 0 {
            return None;
        }
        let tag = self.free.pop()?;
        self.left -= 1;
        self.wsn = self.wsn.next();
        let (wsn, (content, table)) = (self.wsn, self.places[usize_of(tag)]);
        self.rows.clear();
        for row in 0..PAGES {
            let page = self.draw(wsn);
            self.rows.push(PageEntry { page, offset: row * PAGE_BYTES, bytes: PAGE_BYTES });
        }
        let op = LogOp::Flush {
            session: SESSION,
            wsn,
            content: Content::Piece(Piece { buffer: content, first_byte: 0, bytes: FLUSH_BYTES }),
            pages: List::write(buffers, table, &self.rows),
            durability: Durability::AtReply,
        };
        Some((TargetId(0), LogRequest { tag: Tag(tag), op }))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: LogRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: LogReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        self.free.push(reply.tag.0);
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.refused.is_none() && self.free.len() == self.places.len()
    }
}

fn count(host: &PageHost, name: &str) -> u64 {
    let counters = host.target(TargetId(0)).counters();
    match counters.iter().find(|counter| counter.name == name).expect("the target counts it").value {
        CounterValue::Count(value) | CounterValue::Gauge(value) => value,
        CounterValue::Ratio(_) => unreachable!("{name} is a number"),
    }
}

/// Prints what flushes take of a processor, and the map of memory.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure(flushes: Option<u64>, options: &[(String, String)]) {
    let mut host = fresh(options);
    let limits = host.target(TargetId(0)).limits();
    let pages = limits.capacity_bytes * FULL_PERCENT / 100 / u64::from(FLUSH_BYTES) * u64::from(PAGES);
    assert!(pages > u64::from(8 * PAGES), "{pages} pages are few flushes");
    let (prng, mut wsn) = (Prng::new(1), Wsn::default());
    let mut run = |host: &mut PageHost, flushes: u64, prng: Option<Prng>| {
        let mut load = Load::new((pages, flushes), wsn, prng, host.buffers_mut());
        let before = cpu::thread_time();
        assert_eq!(host.run(&mut load, Nanos::MAX), RunEnd::Finished, "flushes are lost");
        let spent = cpu::thread_time() - before;
        wsn = load.give_back(host.buffers_mut());
        (flushes * u64::from(FLUSH_BYTES)) as f64 / f64::from(1 << 30) / spent.as_secs_f64()
    };
    let filling = pages / u64::from(PAGES);
    run(&mut host, filling, None);
    // In order once more: the media's memory is there, and every chunk that is left is empty.
    report(NAME, "in_order", run(&mut host, filling, None), "GiB/cpu-s");
    report(NAME, "map", count(&host, "map_bytes") as f64 / count(&host, "pages") as f64, "B/page");
    // All of them once at random, so that garbage collection is in its steady state.
    run(&mut host, filling, Some(prng.split("age")));
    let moved = count(&host, "gc_written_sectors");
    let flushes = flushes.unwrap_or(FLUSHES);
    report(NAME, "at_random", run(&mut host, flushes, Some(prng.split("measure"))), "GiB/cpu-s");
    let moved = count(&host, "gc_written_sectors") - moved;
    report(NAME, "moved_per_written", moved as f64 / (flushes * u64::from(PAGES)) as f64, "sectors");
    host.target(TargetId(0)).check();
}
