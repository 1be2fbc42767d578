//! What protocols share: exports, pieces, and the jobs on their way to targets and back.
//!
//! It is also the [`Source`] the host takes requests from. Jobs of an export go to its target in order; a target that has
//! no room holds up its own jobs only. Deliberately not here: connections.

use crate::exports::{ExportId, Exports};
use crate::job::{Done, Extent, Job, Work};
use crate::nvme_tcp::Subsystem;
use crate::pool::Pool;
use crate::raw_lane::RawLane;
use crate::stats::Stats;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Buffers, Source, Status, Tag, TargetId};
use std::collections::VecDeque;

/// Jobs at once (chosen: half of what pblk takes, and more than there are pieces).
const JOBS_MAX: u32 = 2048;

/// Blocks looked up for one job, so that a question about a whole drive holds up nobody: a look-up is some nanoseconds
/// (chosen).
const LOOK_UPS_MAX: u32 = 16 << 10;

/// A job that has not ended.
#[derive(Debug)]
struct OpenJob {
    job: Job,
    /// When it was given.
    since: Nanos,
}

/// The way to one target.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<SlabKey>,
    /// The target had no room, and has not replied since.
    full: bool,
}

/// What protocols share.
#[derive(Debug)]
pub struct Desk {
    /// What is served.
    pub exports: Exports,
    /// Memory for payload.
    pub pool: Pool,
    /// Where pieces lie. Empty while the host has them.
    pub buffers: Buffers,
    /// What was counted.
    pub stats: Stats,
    /// The loop's time when it last looked.
    pub now: Nanos,
    /// The NVMe subsystem, with its associations, if one is served.
    pub subsystem: Option<Subsystem>,
    /// The drive that is served as it is, if one is.
    pub raw: Option<RawLane>,
    jobs: Slab<OpenJob>,
    lanes: Vec<Lane>,
    /// The lane that is asked first next time.
    next: usize,
    maps: VecDeque<SlabKey>,
    done: VecDeque<Done>,
    /// The connection that is gathering a reply of many pieces.
    gathering: Option<(u32, u32)>,
    /// Connections that another called.
    called: VecDeque<(u32, u32)>,
}

impl Desk {
    /// A desk for these exports, whose payload lies in `buffers`.
    #[must_use]
    pub fn new(exports: Exports, pool: Pool, buffers: Buffers) -> Self {
        let lanes = (0..exports.len()).map(|_| Lane::default()).collect();
        Self {
            exports,
            pool,
            buffers,
            stats: Stats::default(),
            now: Nanos::ZERO,
            subsystem: None,
            raw: None,
            jobs: Slab::new(JOBS_MAX),
            lanes,
            next: 0,
            maps: VecDeque::new(),
            done: VecDeque::new(),
            gathering: None,
            called: VecDeque::new(),
        }
    }

    /// A job can be given.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.jobs.is_full()
    }

    /// Jobs that have not ended.
    #[must_use]
    pub fn open_jobs(&self) -> usize {
        self.jobs.len() + self.raw.as_ref().map_or(0, RawLane::open_jobs)
    }

    /// Gives a job to its target.
    ///
    /// # Panics
    /// If there is no room, or reads and writes have no piece.
    pub fn give(&mut self, job: Job) {
        let needs_piece = matches!(job.work, Work::Read | Work::Write { .. });
        assert_eq!(job.piece.is_some(), needs_piece, "{:?} and its piece", job.work);
        let (export, is_map) = (job.export, job.work == Work::Map);
        let open = OpenJob { job, since: self.now };
        let key = self.jobs.insert(open).unwrap_or_else(|_| panic!("a job was given without room"));
        if is_map {
            self.maps.push_back(key);
        } else {
            self.lanes[export.index()].waiting.push_back(key);
        }
    }

    /// Has another connection look beyond itself ([`Protocol::judge`](crate::Protocol::judge)) soon.
    pub fn call(&mut self, connection: u32, generation: u32) {
        // One call is as good as two; a bound on them is the number of connections.
        if !self.called.contains(&(connection, generation)) {
            self.called.push_back((connection, generation));
        }
    }

    /// Connections were called that have not looked yet.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        !self.called.is_empty()
    }

    /// The next connection that was called.
    pub fn poll_call(&mut self) -> Option<(u32, u32)> {
        self.called.pop_front()
    }

    /// Gives the raw drive what it takes, and takes what it has ended. True if something ended.
    pub fn raw_turn(&mut self) -> bool {
        let Some(raw) = &mut self.raw else { return false };
        raw.give(self.now, &mut self.buffers);
        let mut any = false;
        while let Some(done) = raw.poll(self.now) {
            self.done.push_back(done);
            any = true;
        }
        if let (Some(event), Some(subsystem)) = (raw.poll_event(), &mut self.subsystem) {
            let admins: Vec<(u32, u32)> = subsystem.announce(event).collect();
            admins.into_iter().for_each(|(connection, generation)| self.call(connection, generation));
        }
        any
    }

    /// The next job that has ended.
    pub fn poll_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// True if a job has ended and nobody took it yet.
    #[must_use]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Jobs wait that their target may take now.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        self.raw.as_ref().is_some_and(RawLane::has_requests)
            || self.lanes.iter().any(|lane| !lane.full && !lane.waiting.is_empty())
    }

    /// The right to gather many pieces before any is sent: one connection has it at a time, so that two never wait for each
    /// other's pieces. Asking again while one has it is free.
    pub fn begin_gathering(&mut self, connection: u32, generation: u32) -> bool {
        *self.gathering.get_or_insert((connection, generation)) == (connection, generation)
    }

    /// The right goes back, if this connection has it.
    pub fn end_gathering(&mut self, connection: u32, generation: u32) {
        self.gathering = self.gathering.filter(|&holder| holder != (connection, generation));
    }

    /// Carries out the questions about what holds data; `is_mapped` asks a target about a block.
    pub fn look_up(&mut self, is_mapped: impl Fn(TargetId, u64) -> Option<bool>) {
        while let Some(key) = self.maps.pop_front() {
            let OpenJob { job, since } = self.jobs.remove(key);
            let target = job.export.target();
            let extents = extents(job.block, job.count, |block| is_mapped(target, block));
            let took = self.now.saturating_since(since);
            self.done.push_back(Done {
                job,
                status: Status::SUCCESS,
                extents,
                completion: None,
                took,
                bytes: 0,
            });
        }
    }

    fn request(&self, key: SlabKey) -> BlockRequest {
        let job = &self.jobs.get(key).job;
        let op = match job.work {
            Work::Read => BlockOp::Read,
            Work::Write { fua } => BlockOp::Write { fua },
            Work::Flush => BlockOp::Flush,
            Work::Discard => BlockOp::Discard,
            Work::WriteZeroes => BlockOp::WriteZeroes,
            Work::Map => unreachable!("questions about the map do not go to targets as requests"),
            Work::Raw => unreachable!("raw commands go to the raw drive"),
        };
        let buffer = job.piece.as_ref().map(|piece| piece.buffer);
        BlockRequest { tag: Tag(key.0), op, block: job.block, count: job.count, buffer }
    }
}

/// What a target says of `count` blocks from `block` on; not all of them, if there are many.
fn extents(block: u64, count: u32, is_mapped: impl Fn(u64) -> Option<bool>) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for offset in 0..count.min(LOOK_UPS_MAX) {
        // A target without a map holds something everywhere.
        let mapped = is_mapped(block + u64::from(offset)).unwrap_or(true);
        match extents.last_mut() {
            Some(last) if last.mapped == mapped => last.blocks += 1,
            _ => extents.push(Extent { blocks: 1, mapped }),
        }
    }
    extents
}

impl Source for Desk {
    /// Requests come from sockets, not from the passing of time.
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        for step in 0..self.lanes.len() {
            let place = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[place];
            if lane.full {
                continue;
            }
            if let Some(key) = lane.waiting.pop_front() {
                self.next = place + 1;
                let export = self.jobs.get(key).job.export;
                return Some((export.target(), self.request(key)));
            }
        }
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        let lane = &mut self.lanes[target.index()];
        lane.full = true;
        lane.waiting.push_front(SlabKey(request.tag.0));
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        self.lanes[target.index()].full = false;
        let OpenJob { job, since } = self.jobs.remove(SlabKey(reply.tag.0));
        assert_eq!(job.export, ExportId(target.0), "a target replied to another's request");
        let moves = matches!(job.work, Work::Read | Work::Write { .. });
        let block_bytes = self.exports.get(job.export).block_bytes;
        let bytes = if moves { u64::from(job.count) * u64::from(block_bytes) } else { 0 };
        let took = now.saturating_since(since);
        let (extents, status) = (Vec::new(), reply.status);
        self.done.push_back(Done { job, status, extents, completion: None, took, bytes });
    }

    fn is_finished(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobOwner;
    use crate::nbd::testing::{buffers, desk};

    fn flush(export: u32, request: u32) -> Job {
        let owner = JobOwner { connection: 0, generation: 0, request };
        Job { owner, export: ExportId(export), work: Work::Flush, block: 0, count: 0, piece: None }
    }

    #[test]
    fn a_full_target_holds_up_its_own_jobs_only_and_they_keep_their_order() {
        let mut desk = desk(&[("a", 8), ("b", 8)]);
        let mut none = buffers();
        for (export, request) in [(0, 1), (0, 2), (1, 3)] {
            desk.give(flush(export, request));
        }
        let (target, first) = desk.poll_request(Nanos::ZERO, &mut none).unwrap();
        assert_eq!(target, TargetId(0));
        desk.on_refused(Nanos::ZERO, target, first);
        let (other, reply_to) = desk.poll_request(Nanos::ZERO, &mut none).unwrap();
        assert_eq!(other, TargetId(1));
        assert!(desk.poll_request(Nanos::ZERO, &mut none).is_none() && !desk.has_requests());
        let reply = |tag| BlockReply { tag, status: Status::SUCCESS, violation: None };
        desk.on_reply(Nanos::ZERO, other, reply(reply_to.tag), &mut none);
        assert!(!desk.has_requests(), "the reply of another target makes no room");
        assert_eq!(desk.poll_done().unwrap().job.owner.request, 3);
        desk.lanes[0].full = false;
        let requests: Vec<_> = std::iter::from_fn(|| desk.poll_request(Nanos::ZERO, &mut none)).collect();
        let owner = |request: &BlockRequest| desk.jobs.get(SlabKey(request.tag.0)).job.owner.request;
        let order: Vec<u32> = requests.iter().map(|(_, request)| owner(request)).collect();
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn one_connection_gathers_at_a_time() {
        let mut desk = desk(&[("a", 8)]);
        assert!(desk.begin_gathering(1, 0) && desk.begin_gathering(1, 0) && !desk.begin_gathering(2, 0));
        desk.end_gathering(2, 0);
        assert!(!desk.begin_gathering(2, 0), "only who has the right gives it back");
        desk.end_gathering(1, 0);
        assert!(desk.begin_gathering(2, 0));
    }
}
