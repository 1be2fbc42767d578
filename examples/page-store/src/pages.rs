//! A client of ELEOS: a drive with the target in this process, and one session of flushes.
//!
//! What a client keeps is the number of its next flush, and nothing else: no map of media, no log, no garbage collection.
//! Deliberately not here: what pages mean (`tree`).

use ocssd_base::{Nanos, Prng};
use ocssd_drive::{OpenOptions, Source};
use ocssd_engine::{Caller, Clock, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogOp, LogRefusal, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{BufId, Buffers, PuId, Tag};
use ocssd_targets::registry::{self, MakeOf, TargetSpec};

/// The session of this program; any number that no other program on the drive has.
const SESSION: SessionId = SessionId(1);

/// The loop around a drive and its target.
type LogHost = Host<Flash, VirtualClock, dyn LogTarget>;

/// Pages of a drive.
pub struct Pages {
    host: Option<LogHost>,
    units: Vec<PuId>,
    /// The last flush that was answered, and therefore is durable.
    flushed: Wsn,
    /// The power goes then.
    cut_at: Option<Nanos>,
}

impl Pages {
    /// Opens a fresh drive: a preset or a drive file, with settings on top.
    ///
    /// # Errors
    /// A sentence about what cannot be.
    pub fn open(drive: &str, settings: &[&str]) -> Result<Self, String> {
        let settings = ["payload=bytes"].iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        let source = Source::named(drive).map_err(|error| error.to_string())?;
        let options = OpenOptions { settings, ..OpenOptions::default() };
        let open = ocssd_drive::open_with(&source, &options).map_err(|error| error.to_string())?;
        let units =
            UnitSelection::All.resolve(&open.flash.config().geometry).map_err(|error| error.to_string())?;
        let (host, flushed) = mount(open.flash, VirtualClock::default(), &units)?;
        Ok(Self { host: Some(host), units, flushed, cut_at: None })
    }

    /// How many flushes of the session are there. After a power cut it may be one more than were answered.
    pub const fn flushed(&self) -> Wsn {
        self.flushed
    }

    /// The drive's time.
    pub fn now(&self) -> Nanos {
        self.host.as_ref().expect("the drive is on").clock().now()
    }

    fn host(&mut self) -> &mut LogHost {
        self.host.as_mut().expect("the drive is on")
    }

    /// The power goes at `at`, in the middle of whatever is on its way.
    pub const fn cut_power_at(&mut self, at: Nanos) {
        self.cut_at = Some(at);
    }

    /// The power is there again: the target is mounted from what the media hold, and the session resumed.
    ///
    /// # Errors
    /// A sentence, if it cannot be mounted.
    pub fn restart(&mut self, seed: u64) -> Result<(), String> {
        let host = self.host.take().expect("the drive is on");
        let clock = host.clock().clone();
        let mut flash = host.into_device();
        // `seed` draws which pages survive of those that were being programmed.
        flash.power_cut(clock.now(), &mut Prng::new(seed)).map_err(|error| error.to_string())?;
        let (host, flushed) = mount(flash, clock, &self.units)?;
        (self.host, self.flushed, self.cut_at) = (Some(host), flushed, None);
        Ok(())
    }

    /// Stores pages and deletes others (`None`), all of them or none. Durable when it returns.
    ///
    /// # Errors
    /// A sentence; then nothing of it is there, unless the power went.
    pub fn flush(&mut self, pages: &[(PageId, Option<Vec<u8>>)]) -> Result<(), String> {
        let (mut content, mut rows) = (Vec::new(), Vec::new());
        for (page, bytes) in pages {
            let number = |count: usize| u32::try_from(count).expect("a flush is short");
            let length = bytes.as_ref().map_or(0, |bytes| number(bytes.len()));
            let offset = if length == 0 { 0 } else { number(content.len()) };
            rows.push(PageEntry { page: *page, offset, bytes: length });
            content.extend_from_slice(bytes.as_deref().unwrap_or_default());
        }
        let wsn = self.flushed.next();
        let buffers = self.host().buffers_mut();
        let (buffer, content) = staged(buffers, &content);
        let sectors = List::<PageEntry>::sectors(u32::try_from(rows.len()).expect("few"), buffers);
        let table = buffers.take_whole(sectors.max(1));
        let rows = List::write(buffers, table, &rows);
        let durability = Durability::AtReply;
        let flush = LogOp::Flush { session: SESSION, wsn, content, pages: rows, durability };
        let reply = self.ask(flush)?;
        self.host().buffers_mut().give_back(buffer);
        self.host().buffers_mut().give_back(table);
        success(&reply)?;
        self.flushed = wsn;
        Ok(())
    }

    /// A page; `None` if it was never stored, or was deleted.
    ///
    /// # Errors
    /// A sentence.
    pub fn read(&mut self, page: PageId, bytes_max: usize) -> Result<Option<Vec<u8>>, String> {
        let (buffer, into) = staged(self.host().buffers_mut(), &vec![0; bytes_max]);
        let reply = self.ask(LogOp::Read { page, offset: 0, into })?;
        let buffers = self.host().buffers_mut();
        let found = match (reply.refusal, reply.answer) {
            (Some(LogRefusal::NoSuchPage), _) => Ok(None),
            (None, LogAnswer::Page { bytes }) if reply.status.is_success() => {
                let bytes = ocssd_base::usize_of(bytes);
                assert!(bytes <= bytes_max, "page {page:?} has {bytes} bytes, more than {bytes_max}");
                let sectors = buffers.sectors(buffer);
                Ok(Some(buffers.whole(buffer, 0, sectors)[..bytes].to_vec()))
            }
            _ => Err(format!("page {}: {}", page.0, reply.status)),
        };
        buffers.give_back(buffer);
        found
    }

    fn ask(&mut self, op: LogOp) -> Result<LogReply, String> {
        let mut requests = Requests::default();
        requests.push(LogRequest { tag: Tag(0), op });
        let stop_at = self.cut_at.unwrap_or(Nanos::MAX);
        match self.host().run(&mut requests, stop_at) {
            RunEnd::Finished => Ok(requests.take_replies().pop().expect("one request has one reply")),
            RunEnd::Stopped => Err(format!("the power was cut at {stop_at}")),
            RunEnd::Stuck => panic!("a request that was taken is answered"),
        }
    }
}

/// A buffer with a copy of `bytes`, and the place of them.
fn staged(buffers: &mut Buffers, bytes: &[u8]) -> (BufId, Content) {
    let sectors = bytes.len().div_ceil(buffers.format().sector_bytes).max(1);
    let buffer = buffers.take_whole(u32::try_from(sectors).expect("a flush is short"));
    let count = buffers.sectors(buffer);
    buffers.whole_mut(buffer, 0, count)[..bytes.len()].copy_from_slice(bytes);
    let bytes = u32::try_from(bytes.len()).expect("a flush is short");
    let content =
        if bytes == 0 { Content::Empty } else { Content::Piece(Piece { buffer, first_byte: 0, bytes }) };
    (buffer, content)
}

fn success(reply: &LogReply) -> Result<(), String> {
    match reply.refusal {
        Some(refusal) => Err(refusal.to_string()),
        None if reply.status.is_success() => Ok(()),
        None => Err(reply.status.to_string()),
    }
}

/// Mounts the target and resumes the session, which says how far it came: what a client must send next.
fn mount(mut flash: Flash, mut clock: VirtualClock, units: &[PuId]) -> Result<(LogHost, Wsn), String> {
    let MakeOf::Log(make) = registry::find("eleos")?.make_of() else { unreachable!("eleos keeps pages") };
    let mut buffers = Buffers::new(flash.payload_format());
    let spec = TargetSpec { units, layout: ocssd_targets::Layout::default(), options: &[] };
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = make(&mut caller, &spec)?;
    let mut host = Host::new(flash, clock, buffers);
    host.add(made.target);
    let reply = host.ask(LogRequest { tag: Tag(0), op: LogOp::OpenSession { session: SESSION } });
    success(&reply)?;
    let LogAnswer::Progress { applied, .. } = reply.answer else {
        unreachable!("an opened session says how far it is")
    };
    Ok((host, applied))
}
