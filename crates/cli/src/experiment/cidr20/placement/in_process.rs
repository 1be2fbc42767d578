//! The same target in the user's own process: what is left of the cost without a network.
//!
//! Time is virtual, so nothing but the processor is measured. Deliberately not here: the controller.

use super::super::super::kv::Spent;
use super::super::super::wrapped::Wrapped;
use super::controller::DRIVE;
use super::page_host::{PAGE_BYTES, PAGES, PAGES_OF_COMMAND};
use anyhow::{Context, anyhow, bail, ensure};
use ocssd_base::usize_of;
use ocssd_drive::{OpenOptions, Source};
use ocssd_engine::{Caller, Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::interface::log_structured::{
    LogOp, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{BufId, Buffers, PuId, Tag, TargetId};
use ocssd_measure::storage::process_cpu;
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{MakeOf, TargetSpec};
use std::time::Instant;

const SESSION: SessionId = SessionId(1);

/// What a byte cost.
pub struct Cost {
    /// Processor time for each MiB, us.
    pub total: f64,
    /// Of it, in the target's code.
    pub target: f64,
    /// Bytes that media were given for each byte.
    pub media: f64,
    /// Bytes copied into memory of the target's own for each byte.
    pub kept: f64,
}

/// A drive with the target.
struct Rig {
    host: Host<Flash, VirtualClock, dyn LogTarget>,
    spent: Spent,
    wsn: Wsn,
    pieces: (BufId, BufId),
}

impl Rig {
    fn new() -> anyhow::Result<Self> {
        let mut settings = vec!["payload=bytes".to_owned()];
        settings.extend(DRIVE.map(|(name, value)| format!("{name}={value}")));
        let source = Source::named("tiny")?;
        let drive =
            crate::open_drive::open_drive(&source, &OpenOptions { settings, ..OpenOptions::default() })?;
        let mut flash = drive.flash;
        let (mut clock, mut buffers) = (VirtualClock::default(), Buffers::new(flash.payload_format()));
        let geometry = &flash.config().geometry;
        let units: Vec<PuId> = (0..geometry.groups * geometry.pus_per_group).map(PuId).collect();
        let mut caller =
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &[] };
        let MakeOf::Log(make) = crate::kinds::find("eleos").map_err(anyhow::Error::msg)?.make_of() else {
            bail!("eleos has no pages")
        };
        let made = make(&mut caller, &spec).map_err(|error| anyhow!(error))?;
        let spent = Spent::default();
        let target = Wrapped::new(made.target, spent.clone());
        let pieces = (buffers.take_whole(1), buffers.take_whole(PAGES_OF_COMMAND));
        let mut host: Host<_, _, dyn LogTarget> = Host::new(flash, clock, buffers);
        host.add(Box::new(target));
        let mut rig = Self { host, spent, wsn: Wsn(0), pieces };
        rig.ask(LogOp::OpenSession { session: SESSION })?;
        Ok(rig)
    }

    fn ask(&mut self, op: LogOp) -> anyhow::Result<LogReply> {
        let reply = self.host.ask(LogRequest { tag: Tag(0), op });
        ensure!(reply.status.is_success(), "{op:?} ended with {}", reply.status);
        Ok(reply)
    }

    /// Flushes as many pages as a command carries.
    fn flush(&mut self) -> anyhow::Result<()> {
        let (table, buffer) = self.pieces;
        let first =
            u32::try_from(self.wsn.0 * u64::from(PAGES_OF_COMMAND) % u64::from(PAGES)).context("a page")?;
        self.wsn = self.wsn.next();
        let bytes =
            self.host.buffers_mut().bytes_mut(table, 0, usize_of(PAGES_OF_COMMAND) * PageEntry::BYTES);
        for (row, place) in (0..).zip(bytes.chunks_exact_mut(PageEntry::BYTES)) {
            let page = PageId(u64::from((first + row) % PAGES));
            PageEntry { page, offset: row * PAGE_BYTES, bytes: PAGE_BYTES }.encode(place);
        }
        let content = Content::Piece(Piece { buffer, first_byte: 0, bytes: PAGES_OF_COMMAND * PAGE_BYTES });
        let pages = List::new(table, PAGES_OF_COMMAND);
        let (session, wsn, durability) = (SESSION, self.wsn, Durability::AtReply);
        self.ask(LogOp::Flush { session, wsn, content, pages, durability }).map(drop)
    }

    fn count(&self, name: &str) -> f64 {
        let counters = self.host.target(TargetId(0)).counters();
        let found = counters.into_iter().find(|counter| counter.name == name);
        match found.map(|counter| counter.value) {
            Some(ocssd_lightnvm::counter::CounterValue::Count(count)) => count as f64,
            _ => f64::NAN,
        }
    }
}

/// Flushes so many times, after the drive was written over once.
///
/// # Errors
/// What the target does not do.
pub fn run(flushes: u32) -> anyhow::Result<Cost> {
    let mut rig = Rig::new()?;
    for _ in 0..flushes {
        rig.flush()?;
    }
    let counts = |rig: &Rig| (rig.count("programmed_sectors"), rig.count("content_copied_bytes"));
    let (before, spent, began) = (counts(&rig), rig.spent.get(), Instant::now());
    let cpu = process_cpu().context("the system does not say what processors spent")?;
    for _ in 0..flushes {
        rig.flush()?;
    }
    let wall = began.elapsed().as_secs_f64();
    let of_target = (rig.spent.get() - spent).as_secs_f64() / wall;
    let now = process_cpu().context("the system does not say what processors spent")?;
    let bytes = f64::from(flushes) * f64::from(PAGES_OF_COMMAND * PAGE_BYTES);
    let total = (now.0 - cpu.0) as f64 / 1e3 / (bytes / f64::from(1 << 20));
    let after = counts(&rig);
    Ok(Cost {
        total,
        target: total * of_target,
        media: (after.0 - before.0) * 4096.0 / bytes,
        kept: (after.1 - before.1) / bytes,
    })
}
