//! What protocols share: exports, pieces, and the jobs on their way to targets and back.
//!
//! It is also the [`Source`] the host takes requests from. Jobs of a client on an export go to its target in order, clients in
//! turn; a target that has no room holds up its own jobs only. Deliberately not here: connections.

use crate::exports::{Export, ExportId, ExportKind, Exports};
use crate::fair_queue::FairQueue;
use crate::job::{Answer, Done, Job, Work};
use crate::nvme_subsystem::Subsystem;
use crate::pool::Pool;
use crate::raw_lane::RawLane;
use crate::served_target::ServedTarget;
use crate::shares::{ClientId, Shares, Supply, Want};
use crate::stages::Stages;
use crate::stats::Stats;
use crate::survey::Survey;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::interface::key_value::KvOp;
use ocssd_lightnvm::interface::zoned::ZoneGeometry;
use ocssd_lightnvm::{Buffers, Source, Status, Tag, TargetId};
use ocssd_nvme::Lba;
use std::collections::VecDeque;

/// Jobs at once (chosen: half of what pblk takes). A client alone may have 768 of them; 64 clients have eight whatever others do.
const JOBS: Supply = Supply { count: 2048, reserve: 512, guarantee: 8 };

/// Jobs that a target has at once (chosen: four for each unit of the largest preset). Others wait here, where clients take turns;
/// what a target has it ends in its own order.
const LANE_JOBS_MAX: u32 = 512;

/// What a client's turn is worth, in bytes: the largest job, or 64 small ones.
const TURN_BYTES: u64 = 256 << 10;

/// What targets are given between two looks at sockets, in bytes (chosen: four large jobs, or 256 small ones; some hundred
/// microseconds of copying, so that a request of 32 MiB is given in 32 rounds and others come in between).
const ROUND_BYTES: u64 = 1 << 20;

/// What a job costs at least, in bytes: a sector, as flash has it (chosen).
const JOB_BYTES_MIN: u64 = 4096;

/// The same of a job on keys (chosen: it takes the processor as long as four of blocks do). A list of keys is worth two turns: some
/// hundred microseconds, and with four of them in a round a walk kept others waiting for 1.5 ms.
const KEY_JOB_BYTES_MIN: u64 = 4 * JOB_BYTES_MIN;

/// Blocks looked up between two looks at sockets (chosen: tens of microseconds, as some reads take), and in a client's turn.
const LOOK_UPS_MAX: u32 = 2048;
const LOOK_UPS_TURN: u32 = 512;

/// A job that has not ended.
#[derive(Debug)]
struct OpenJob {
    job: Job,
    /// When it was given.
    since: Nanos,
    /// How far it is, if it is a question.
    survey: Option<Survey>,
}

/// The way to one target.
#[derive(Debug)]
struct Lane {
    waiting: FairQueue<SlabKey>,
    /// Jobs the target has.
    out: u32,
    /// The target had no room, and has not replied since.
    full: bool,
}

impl Lane {
    fn new() -> Self {
        Self { waiting: FairQueue::new(TURN_BYTES), out: 0, full: false }
    }

    /// The target may take a job that waits.
    fn is_ready(&self) -> bool {
        !self.full && self.out < LANE_JOBS_MAX && !self.waiting.is_empty()
    }
}

/// What protocols share.
#[derive(Debug)]
pub struct Dispatcher {
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
    /// Who has which stage of a target.
    pub stages: Stages,
    jobs: Slab<OpenJob>,
    /// Who has how many of them.
    job_shares: Shares,
    lanes: Vec<Lane>,
    /// Bytes of keys and values that each export of those has; 0 of others.
    used_bytes: Vec<u64>,
    /// The lane that is asked first next time.
    next: usize,
    /// Questions about what holds data.
    maps: FairQueue<SlabKey>,
    done: VecDeque<Done>,
    /// A job has ended since [`Self::take_room_made`] was asked.
    ended: bool,
    /// Bytes that targets may be given in this round.
    round_left: u64,
    /// Rounds that have begun.
    rounds: u64,
    /// Connections that another called.
    called: VecDeque<(u32, u32)>,
}

impl Dispatcher {
    /// A dispatcher for these exports, whose payload lies in `buffers`.
    #[must_use]
    pub fn new(exports: Exports, pool: Pool, buffers: Buffers) -> Self {
        let lanes: Vec<Lane> = (0..exports.len()).map(|_| Lane::new()).collect();
        Self {
            used_bytes: vec![0; lanes.len()],
            exports,
            pool,
            buffers,
            stats: Stats::default(),
            now: Nanos::ZERO,
            subsystem: None,
            raw: None,
            stages: Stages::default(),
            jobs: Slab::new(JOBS.count),
            job_shares: Shares::new(JOBS),
            lanes,
            next: 0,
            maps: FairQueue::new(LOOK_UPS_TURN.into()),
            done: VecDeque::new(),
            ended: false,
            round_left: ROUND_BYTES,
            rounds: 0,
            called: VecDeque::new(),
        }
    }

    /// A client can give a job.
    #[must_use]
    pub fn has_room(&self, client: ClientId) -> bool {
        self.job_shares.room(client, Want::Share) > 0
    }

    /// How many jobs a client can give.
    #[must_use]
    pub fn room(&self, client: ClientId) -> u32 {
        self.job_shares.room(client, Want::Share)
    }

    /// Whether a job has ended or a piece has come back since this was asked last: those who wait may find room.
    pub fn take_room_made(&mut self) -> bool {
        std::mem::replace(&mut self.ended, false) | self.pool.take_returned()
    }

    /// The same, without forgetting it.
    #[must_use]
    pub const fn is_room_made(&self) -> bool {
        self.ended || self.pool.has_returned()
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
        let has_piece = job.piece.is_some();
        assert!(has_piece || !job.work.needs_piece(), "{:?} has no piece", job.work);
        assert!(!has_piece || job.work.may_have_piece(), "{:?} has a piece", job.work);
        let (client, export, cost) = (job.owner.client(), job.export, self.cost(&job));
        let survey = match job.work {
            Work::Map { extents_max } => Some(Survey::new(job.count, extents_max)),
            _ => None,
        };
        let is_map = survey.is_some();
        self.stages.on_given(export, &job.work);
        let open = OpenJob { job, since: self.now, survey };
        let key = self.jobs.insert(open).unwrap_or_else(|_| panic!("a job was given without room"));
        self.job_shares.take(client);
        if is_map {
            self.maps.push(client, LOOK_UPS_TURN.into(), key);
        } else {
            self.lanes[export.index()].waiting.push(client, cost, key);
        }
    }

    /// What a job takes of its client's turn, in bytes.
    fn cost(&self, job: &Job) -> u64 {
        let least = match job.work {
            Work::KeyValue(KvOp::List { .. }) => 2 * TURN_BYTES,
            Work::KeyValue(_) => KEY_JOB_BYTES_MIN,
            _ => JOB_BYTES_MIN,
        };
        if job.piece.is_none() {
            return least;
        }
        let block_bytes = self.exports.get(job.export).block_bytes;
        least.max(job.work.payload_bytes(job.count, block_bytes))
    }

    /// A job has ended: its place is free.
    fn remove(&mut self, key: SlabKey) -> OpenJob {
        let open = self.jobs.remove(key);
        self.stages.on_ended(open.job.export, &open.job.work);
        self.job_shares.give_back(open.job.owner.client());
        self.ended = true;
        open
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

    /// Exports of zones.
    pub fn zoned(&self) -> impl Iterator<Item = (ExportId, ZoneGeometry)> {
        (0..).map(ExportId).zip(self.exports.iter()).filter_map(|(id, export)| match export.kind {
            ExportKind::Zoned(zones) => Some((id, zones)),
            _ => None,
        })
    }

    /// A zone of an export changed by itself: hosts that want to know are told.
    pub fn note_changed_zone(&mut self, id: ExportId, block: u64) {
        let Some(subsystem) = &mut self.subsystem else { return };
        let admins = subsystem.note_changed_zone(id.0 + 1, Lba(block));
        admins.into_iter().for_each(|(connection, generation)| self.call(connection, generation));
    }

    /// Exports of keys and values.
    pub fn keyed(&self) -> impl Iterator<Item = ExportId> {
        let is_keyed = |export: &Export| matches!(export.kind, ExportKind::KeyValue(_));
        (0..)
            .map(ExportId)
            .zip(self.exports.iter())
            .filter_map(move |(id, export)| is_keyed(export).then_some(id))
    }

    /// The target of an export has so many bytes of keys and values now.
    pub fn note_used_bytes(&mut self, id: ExportId, bytes: u64) {
        self.used_bytes[id.index()] = bytes;
    }

    /// Bytes of keys and values of an export, as it was noted last.
    #[must_use]
    pub fn used_bytes(&self, id: ExportId) -> u64 {
        self.used_bytes[id.index()]
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
        self.raw.as_ref().is_some_and(RawLane::has_requests) || self.lanes.iter().any(Lane::is_ready)
    }

    /// Sockets have been looked at: targets may be given more.
    pub const fn begin_round(&mut self) {
        self.round_left = ROUND_BYTES;
        self.rounds += 1;
    }

    /// Rounds that have begun, for who gives no more than so much in one.
    #[must_use]
    pub const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Somebody else did work for clients that took as long as to give a target so many bytes.
    pub const fn charge(&mut self, bytes: u64) {
        self.round_left = self.round_left.saturating_sub(bytes);
    }

    /// Targets have been given as much as they are in a round.
    #[must_use]
    pub const fn is_round_over(&self) -> bool {
        self.round_left == 0
    }

    /// Questions about what holds data wait.
    #[must_use]
    pub fn has_questions(&self) -> bool {
        !self.maps.is_empty()
    }

    /// Goes on with questions about what holds data, for a while; `is_mapped` asks a target about a block.
    pub fn look_up(&mut self, is_mapped: impl Fn(TargetId, u64) -> Option<bool>) {
        let mut left = LOOK_UPS_MAX;
        while left > 0 {
            let Some((client, key)) = self.maps.pop() else { return };
            let OpenJob { job, survey, .. } = self.jobs.get_mut(key);
            let (target, first) = (job.export.target(), job.block);
            let survey = survey.as_mut().expect("questions have one");
            // A target without a map holds something everywhere.
            let looked = survey.go_on(left.min(LOOK_UPS_TURN), |offset| {
                is_mapped(target, first + u64::from(offset)).unwrap_or(true)
            });
            left -= looked;
            let Some(extents) = survey.poll_answer() else {
                self.maps.put_back(client, LOOK_UPS_TURN.into(), key);
                continue;
            };
            let OpenJob { job, since, .. } = self.remove(key);
            let took = self.now.saturating_since(since);
            let (status, answer) = (Status::SUCCESS, Answer::Extents(extents));
            self.done.push_back(Done { job, status, answer, took, since, bytes: 0 });
        }
    }

    /// All connections are closed: what they asked and no target has taken ends without it, as if it had not been asked. Guests
    /// and kernels, at transports, ask for it again or hear the end of it.
    pub fn give_up_waiting(&mut self) {
        let lanes = self.lanes.iter_mut().map(|lane| &mut lane.waiting);
        let given_up: Vec<SlabKey> =
            lanes.chain([&mut self.maps]).flat_map(FairQueue::take_of_connections).collect();
        for key in given_up {
            let OpenJob { job, since, .. } = self.remove(key);
            let (status, answer) = (Status::NAMESPACE_NOT_READY, Answer::Nothing);
            self.done.push_back(Done { job, status, answer, took: Nanos::ZERO, since, bytes: 0 });
        }
    }

    fn request<T: ServedTarget + ?Sized>(&self, key: SlabKey) -> T::Request {
        let job = &self.jobs.get(key).job;
        T::request_of(job, self.exports.get(job.export).interface(), Tag(key.0))
    }
}

impl<T: ServedTarget + ?Sized> Source<T> for Dispatcher {
    /// Requests come from sockets, not from the passing of time.
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        for step in 0..if self.is_round_over() { 0 } else { self.lanes.len() } {
            let place = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[place];
            if !lane.is_ready() {
                continue;
            }
            if let Some((_, key)) = lane.waiting.pop() {
                lane.out += 1;
                self.next = place + 1;
                let job = &self.jobs.get(key).job;
                let (export, cost) = (job.export, self.cost(job));
                self.round_left = self.round_left.saturating_sub(cost);
                return Some((export.target(), self.request::<T>(key)));
            }
        }
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: T::Request) {
        let key = SlabKey(T::tag_of(&request).0);
        let job = &self.jobs.get(key).job;
        let (client, cost) = (job.owner.client(), self.cost(job));
        let lane = &mut self.lanes[target.index()];
        lane.full = true;
        lane.out -= 1;
        lane.waiting.put_back(client, cost, key);
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: T::Reply, _buffers: &mut Buffers) {
        let lane = &mut self.lanes[target.index()];
        lane.full = false;
        lane.out -= 1;
        let (tag, status, answer) = T::answer_of(reply);
        let OpenJob { job, since, .. } = self.remove(SlabKey(tag.0));
        assert_eq!(job.export, ExportId(target.0), "a target replied to another's request");
        let bytes = job.work.payload_bytes(job.count, self.exports.get(job.export).block_bytes);
        let took = now.saturating_since(since);
        self.done.push_back(Done { job, status, answer, took, since, bytes });
    }

    fn is_finished(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobOwner;
    use crate::nbd::testing::{buffers, dispatcher};
    use ocssd_lightnvm::block::{BlockReply, BlockRequest, BlockTarget};

    fn poll(dispatcher: &mut Dispatcher) -> Option<(TargetId, BlockRequest)> {
        Source::<dyn BlockTarget>::poll_request(dispatcher, Nanos::ZERO, &mut buffers())
    }

    fn end(dispatcher: &mut Dispatcher, target: TargetId, tag: Tag) {
        let reply = BlockReply { tag, status: Status::SUCCESS, violation: None };
        Source::<dyn BlockTarget>::on_reply(dispatcher, Nanos::ZERO, target, reply, &mut buffers());
    }

    fn flush(export: u32, request: u32) -> Job {
        let owner = JobOwner { connection: 0, generation: 0, request };
        Job {
            owner,
            export: ExportId(export),
            work: Work::Flush,
            block: 0,
            count: 0,
            piece: None,
            beside: Vec::new(),
        }
    }

    #[test]
    fn a_full_target_holds_up_its_own_jobs_only_and_they_keep_their_order() {
        let mut dispatcher = dispatcher(&[("a", 8), ("b", 8)]);
        for (export, request) in [(0, 1), (0, 2), (1, 3)] {
            dispatcher.give(flush(export, request));
        }
        let (target, first) = poll(&mut dispatcher).unwrap();
        assert_eq!(target, TargetId(0));
        Source::<dyn BlockTarget>::on_refused(&mut dispatcher, Nanos::ZERO, target, first);
        let (other, reply_to) = poll(&mut dispatcher).unwrap();
        assert_eq!(other, TargetId(1));
        assert!(poll(&mut dispatcher).is_none() && !dispatcher.has_requests());
        end(&mut dispatcher, other, reply_to.tag);
        assert!(!dispatcher.has_requests(), "the reply of another target makes no room");
        assert_eq!(dispatcher.poll_done().unwrap().job.owner.request, 3);
        dispatcher.lanes[0].full = false;
        let requests: Vec<_> = std::iter::from_fn(|| poll(&mut dispatcher)).collect();
        let owner = |request: &BlockRequest| dispatcher.jobs.get(SlabKey(request.tag.0)).job.owner.request;
        let order: Vec<u32> = requests.iter().map(|(_, request)| owner(request)).collect();
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn a_client_that_asks_for_one_thing_waits_for_a_turn_of_the_others() {
        let mut dispatcher = dispatcher(&[("a", 8)]);
        let of = |connection: u32, request: u32| {
            let job = flush(0, request);
            Job { owner: JobOwner { connection, ..job.owner }, ..job }
        };
        let mut given = 0;
        while dispatcher.has_room(ClientId(0)) {
            dispatcher.give(of(0, given));
            given += 1;
        }
        assert!(given > LANE_JOBS_MAX && dispatcher.has_room(ClientId(1)), "{given} jobs of one client");
        dispatcher.give(of(1, 0));
        let mut taken: Vec<BlockRequest> = Vec::new();
        for round in 1..=3 {
            dispatcher.begin_round();
            taken.extend(std::iter::from_fn(|| poll(&mut dispatcher)).map(|(_, one)| one));
            assert_eq!(taken.len(), 512.min(256 * round), "so much a round, and no more at once");
        }
        let owner = |request: &BlockRequest| dispatcher.jobs.get(SlabKey(request.tag.0)).job.owner.connection;
        let place = taken.iter().position(|request| owner(request) == 1);
        assert_eq!(place, Some(64), "a turn is 64 small jobs");
        assert!(!dispatcher.take_room_made() && !dispatcher.has_requests());
        end(&mut dispatcher, TargetId(0), taken[0].tag);
        assert!(dispatcher.take_room_made() && dispatcher.has_requests());
    }

    #[test]
    fn what_connections_wait_for_can_be_given_up_and_what_edges_wait_for_stays() {
        let mut dispatcher = dispatcher(&[("a", 8)]);
        let of = |connection: u32, work: Work| {
            let job = flush(0, 1);
            Job { owner: JobOwner { connection, ..job.owner }, work, count: 1, ..job }
        };
        let questions = Work::Map { extents_max: 1 };
        for (connection, work) in [(0, Work::Flush), (ClientId::FIRST_TRANSPORT, Work::Flush), (5, questions)]
        {
            dispatcher.give(of(connection, work));
        }
        dispatcher.give_up_waiting();
        let ended: Vec<u32> =
            std::iter::from_fn(|| dispatcher.poll_done()).map(|done| done.job.owner.connection).collect();
        assert_eq!((ended, dispatcher.open_jobs(), dispatcher.has_questions()), (vec![0, 5], 1, false));
        assert!(dispatcher.has_requests());
    }

    #[test]
    fn questions_are_answered_a_few_blocks_at_a_time_and_clients_take_turns() {
        let mut dispatcher = dispatcher(&[("a", 1 << 16)]);
        let ask = |connection: u32, count: u32| {
            let owner = JobOwner { connection, generation: 0, request: 0 };
            let work = Work::Map { extents_max: 1024 };
            Job { owner, export: ExportId(0), work, block: 0, count, piece: None, beside: Vec::new() }
        };
        (0..100).for_each(|_| dispatcher.give(ask(0, u32::MAX)));
        dispatcher.give(ask(1, 8));
        let looked = std::cell::Cell::new(0);
        let count = |_: TargetId, _: u64| {
            looked.set(looked.get() + 1);
            Some(true)
        };
        dispatcher.look_up(count);
        assert_eq!(looked.get(), 2048, "whatever was asked");
        let done = dispatcher.poll_done().expect("the small question is answered at once");
        let Answer::Extents(extents) = done.answer else { panic!("a question is answered with extents") };
        assert_eq!((done.job.owner.connection, extents[0].blocks), (1, 8));
        assert!(!dispatcher.has_done() && dispatcher.has_questions());
        while dispatcher.has_questions() {
            dispatcher.look_up(count);
        }
        assert_eq!(std::iter::from_fn(|| dispatcher.poll_done()).count(), 100);
    }
}
