//! Who looks on while a drive is served: for what the server says at its end, and for `--live`.
//!
//! The server tells of every job that ends, and shows the host now and then. What is told goes into `Served`, which the report
//! reads; with `--live` it is shown meanwhile, on standard error. What the server says besides goes through the view, so that
//! neither overwrites the other. Deliberately not here: drawing (`live`), and the words of the report.

use super::scraped;
use crate::live::{Every, Inside, Live, Sample};
use crate::run::tail::tails;
use ocssd_base::Nanos;
use ocssd_engine::Clock;
use ocssd_export::reactor::{Observer, ServedHost};
use ocssd_export::{Done, Page, ServedTarget, Stats, Work};
use ocssd_flash::Flash;
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::Counter;
use ocssd_lightnvm::interface::key_value::KvOp;
use ocssd_lightnvm::interface::log_structured::LogOp;
use ocssd_lightnvm::interface::table::TableOp;
use ocssd_workload::results::{Direction, LatencyStats, Tail};
use ocssd_workload::run::{SlowIo, Slowest, Tally};
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// Time between two looks when nobody is shown anything: a server that rests is not woken for it (chosen).
const RARELY: Nanos = Nanos::from_secs(3_600);

/// What a kind of request came to.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// Bytes of payload.
    pub bytes: u64,
    /// From when its target was given it until it answered.
    pub latency: LatencyStats,
}

/// What targets counted, each with its name.
pub type Counted = Vec<(String, Vec<Counter>)>;

/// What was served until now.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Reads, writes, flushes, and discards with zeroing, in this order.
    pub kinds: [Kind; 4],
    /// What each target counted when it was looked at last, with its name.
    pub targets: Counted,
    /// The slowest reads and writes of blocks.
    slowest: Slowest,
    /// What these waited for, as of the last look.
    pub tails: Vec<Tail>,
}

/// What the kinds of [`Served`] are called.
pub const KINDS: [&str; 4] = ["read", "write", "flush", "discard"];

impl Served {
    fn note(&mut self, done: &Done) {
        let place = match done.job.work {
            Work::Read => 0,
            Work::Write { .. } => 1,
            Work::Flush => 2,
            Work::Discard | Work::WriteZeroes => 3,
            Work::Append { .. } => 1,
            Work::KeyValue(KvOp::Retrieve { .. }) | Work::Log(LogOp::Read { .. }) => 0,
            Work::Table(TableOp::Read { .. }) => 0,
            Work::KeyValue(KvOp::Store { .. } | KvOp::Batch { .. } | KvOp::Stage(_)) => 1,
            Work::Log(LogOp::Flush { .. } | LogOp::Stage(_)) | Work::Table(TableOp::Append { .. }) => 1,
            Work::Table(TableOp::Sync { .. }) => 2,
            Work::KeyValue(KvOp::Delete { .. }) | Work::Table(TableOp::Delete { .. }) => 3,
            Work::Map { .. } | Work::Raw | Work::ManageZones { .. } | Work::SetZoneExtension => return,
            Work::OpenZoneWithArea | Work::CommitZoneArea => return,
            Work::ReportZones { .. } | Work::ReportZonesExtended { .. } => return,
            Work::Log(_) | Work::Table(_) | Work::KeyValue(_) => return,
        };
        let kind = &mut self.kinds[place];
        kind.bytes += done.bytes;
        kind.latency.record(done.took);
        let direction = match done.job.work {
            Work::Read => Direction::Read,
            Work::Write { .. } => Direction::Write,
            _ => return,
        };
        if let Some(piece) = &done.job.piece {
            let io = SlowIo { latency: done.took, issued: done.since, buffer: piece.buffer };
            self.slowest.offer(direction, io);
        }
    }

    /// Asks the drive what the slowest waited for.
    fn explain(&mut self, flash: &Flash) {
        let Self { kinds, slowest, .. } = self;
        let ios = |direction: Direction| match direction {
            Direction::Read => kinds[0].latency.count(),
            Direction::Write => kinds[1].latency.count(),
            Direction::Trim => 0,
        };
        let slow = |direction| slowest.of(direction);
        self.tails = tails(slow, flash.slowest_commands(), ios, &flash.config().geometry);
    }
}

/// Time between two pages for Prometheus (chosen: a fifteenth of the time between two scrapes that it has by default).
const PAGE_EVERY: Nanos = Nanos::from_secs(1);

/// What is shared by who looks on and who speaks.
#[derive(Clone)]
pub struct View {
    page: Option<Page>,
    live: Option<Rc<RefCell<Live>>>,
    served: Rc<RefCell<Served>>,
}

impl View {
    /// A view; it draws, and keeps a page for Prometheus, only if that was asked for.
    pub fn new(every: Option<Every>, page: Option<Page>) -> Self {
        let live = every.map(|every| Rc::new(RefCell::new(Live::new(every))));
        Self { page, live, served: Rc::default() }
    }

    /// Says a sentence. It serves on if nobody reads standard error.
    pub fn say(&self, sentence: &str) {
        self.clear();
        drop(writeln!(std::io::stderr(), "ocssd: {sentence}"));
    }

    /// Takes the picture away until the next one.
    pub fn clear(&self) {
        if let Some(live) = &self.live {
            live.borrow_mut().clear();
        }
    }

    /// What was served until the last look.
    pub fn served(&self) -> Served {
        self.served.borrow().clone()
    }

    /// The same, with what targets counted after they were shut down.
    pub fn served_in_the_end(&self, targets: Counted) -> Served {
        let mut served = self.served();
        served.targets = targets;
        served
    }

    /// Who looks on for it: at these targets, by name.
    pub fn observer<T: ServedTarget + ?Sized>(
        &self,
        targets: Vec<(String, TargetId)>,
    ) -> Box<dyn Observer<Flash, T>> {
        let (live, served, page) = (self.live.clone(), Rc::clone(&self.served), self.page.clone());
        Box::new(Watcher { page, live, served, targets, tally: Tally::default(), began: None })
    }
}

struct Watcher {
    page: Option<Page>,
    live: Option<Rc<RefCell<Live>>>,
    served: Rc<RefCell<Served>>,
    targets: Vec<(String, TargetId)>,
    tally: Tally,
    began: Option<Nanos>,
}

impl Watcher {
    fn show<T: ServedTarget + ?Sized>(&mut self, host: &ServedHost<Flash, T>, streams: usize) {
        let is_due = |live: &&Rc<RefCell<Live>>| self.page.is_none() || live.borrow().is_due();
        let Some(live) = self.live.as_ref().filter(is_due) else { return };
        let now = host.clock().now();
        let gone = now.saturating_since(*self.began.get_or_insert(now));
        let flash = host.device();
        let inside = Inside {
            groups: flash.config().geometry.groups,
            unit_busy: flash.counters().unit_busy,
            targets: self.served.borrow().targets.clone(),
        };
        let mut live = live.borrow_mut();
        let word = if streams == 1 { "connection" } else { "connections" };
        live.head(&format!("serving, {streams} {word}"), &format!("{} s gone", gone.0 / 1_000_000_000));
        live.show(Sample { now, tally: self.tally.clone(), inside: Some(inside) });
    }
}

impl<T: ServedTarget + ?Sized> Observer<Flash, T> for Watcher {
    fn on_done(&mut self, done: &Done) {
        self.served.borrow_mut().note(done);
        if self.live.is_some() {
            self.tally.ios += 1;
            self.tally.bytes += done.bytes;
            self.tally.latency.record(done.took);
        }
    }

    fn every(&self) -> Nanos {
        let page = if self.page.is_some() { PAGE_EVERY } else { RARELY };
        self.live.as_ref().map_or(page, |live| live.borrow().every().min(page))
    }

    fn look(&mut self, host: &ServedHost<Flash, T>, stats: &Stats, streams: usize) {
        let counted = self.targets.iter().map(|(name, id)| (name.clone(), host.target(*id).counters()));
        let mut served = self.served.borrow_mut();
        served.targets = counted.collect();
        served.explain(host.device());
        drop(served);
        if let Some(page) = &self.page {
            *page.borrow_mut() = scraped::page(&self.served.borrow(), stats, host.device());
        }
        self.show(host, streams);
    }
}
