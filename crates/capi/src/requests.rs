//! Requests to targets: the source the host takes them from, and where their ends wait to be told.
//!
//! Requests of one target go to it in order, and one that has no room holds up its own only. Deliberately not here: what a
//! request is made of and its reply brings (`ask`), time, and calling back.

use crate::ask::Asked;
use crate::failure::Failure;
use crate::payload::{Loan, Payload, Pieces};
use crate::reply::{End, Owner, Reply, Told};
use crate::shape::TargetShape;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget};
use ocssd_lightnvm::{Buffers, Source, Status, Tag, TargetId};
use std::collections::VecDeque;

/// Most requests of a target that were submitted and not told (chosen: the depth at which pblk stops gaining).
pub const TARGET_DEPTH: usize = 1024;
/// Most requests of all targets of a drive at once.
const REQUESTS_MAX: u32 = 16_384;
/// Most bytes of one request; what is waited for is cut into such pieces (chosen: 1 MiB, as Linux's largest).
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// A request that did not end.
struct Open {
    lane: usize,
    asked: Asked,
    request: AnyRequest,
    pieces: Pieces,
}

/// The way to one target.
#[derive(Default)]
pub struct Lane {
    waiting: VecDeque<SlabKey>,
    /// The target had no room, and has not replied since.
    full: bool,
    /// Requests that did not end.
    pub in_progress: usize,
    /// Ends to tell.
    pub ended: VecDeque<Told>,
    /// The target's lease; `None` while no target is there.
    pub lease: Option<String>,
    /// The lease goes when the target is closed.
    pub is_temporary: bool,
    /// What the target speaks of.
    pub shape: TargetShape,
}

/// How the requests of a waiting call ended.
#[derive(Debug)]
pub struct Waited {
    /// How many did not.
    pub left: usize,
    /// The first failure, or the last end.
    pub end: End,
}

impl Waited {
    /// Nothing is waited for.
    pub const fn new() -> Self {
        Self { left: 0, end: End { reply: Reply::of(Status::SUCCESS), words: None } }
    }

    /// One of them ended.
    fn ended(&mut self, end: End) {
        self.left -= 1;
        if self.end.words.is_none() {
            self.end = end;
        }
    }
}

/// All requests of a drive.
pub struct Requests {
    open: Slab<Open>,
    lanes: Vec<Lane>,
    /// The lane that is asked first next time.
    next: usize,
    payload: Payload,
    /// Of the call that waits.
    pub waited: Waited,
}

impl Requests {
    /// None, and no target.
    pub fn new() -> Self {
        Self {
            open: Slab::new(REQUESTS_MAX),
            lanes: Vec::new(),
            next: 0,
            payload: Payload::default(),
            waited: Waited::new(),
        }
    }

    /// The number of a lane without a target: an old one, or the next.
    pub fn free_lane(&self) -> usize {
        self.lanes.iter().position(|lane| lane.lease.is_none()).unwrap_or(self.lanes.len())
    }

    /// How many lanes there are, with and without targets.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// A target was mounted at this lane.
    pub fn begin(&mut self, number: usize, shape: TargetShape, lease: String, is_temporary: bool) {
        let lane = Lane { lease: Some(lease), is_temporary, shape, ..Lane::default() };
        if number == self.lanes.len() {
            self.lanes.push(lane);
        } else {
            self.lanes[number] = lane;
        }
    }

    /// The target of this lane was left.
    pub fn end(&mut self, number: usize) -> Lane {
        std::mem::take(&mut self.lanes[number])
    }

    /// A lane.
    pub fn lane(&mut self, number: usize) -> &mut Lane {
        &mut self.lanes[number]
    }

    /// Whether a target of this lease is open.
    pub fn has_lease(&self, name: &str) -> bool {
        self.lanes.iter().any(|lane| lane.lease.as_deref() == Some(name))
    }

    /// Targets that are open.
    pub fn target_count(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.lease.is_some()).count()
    }

    /// Requests that did not end.
    pub fn in_progress(&self) -> usize {
        self.open.len()
    }

    /// Ends that wait to be told.
    pub fn ended(&self) -> usize {
        self.lanes.iter().map(|lane| lane.ended.len()).sum()
    }

    /// Takes a request, which gets a tag.
    ///
    /// # Errors
    /// EAGAIN if there is no room or no memory for its payload; nothing was changed.
    pub fn take(&mut self, number: usize, asked: Asked, buffers: &mut Buffers) -> Result<Tag, Failure> {
        let lane = &self.lanes[number];
        let held = lane.in_progress + lane.ended.len();
        let waits = matches!(asked.owner, Owner::Waiting);
        if !waits && held >= TARGET_DEPTH || self.open.is_full() {
            return Err(Failure::new(
                libc::EAGAIN,
                format!("{held} requests of the target were not told yet; poll, and submit again"),
            ));
        }
        let mut loan = Loan::new(&mut self.payload, buffers);
        // Its tag is its place, which it has in a moment.
        let request = match asked.ask.request(Tag(0), &mut loan) {
            Ok(request) => request,
            Err(failure) => {
                loan.give_back();
                return Err(failure);
            }
        };
        let pieces = loan.keep();
        let key = self.open.insert(Open { lane: number, asked, request, pieces });
        let key = key.unwrap_or_else(|_| unreachable!("there is room"));
        self.open.get_mut(key).request.set_tag(Tag(key.0));
        let lane = &mut self.lanes[number];
        lane.in_progress += 1;
        lane.waiting.push_back(key);
        self.waited.left += usize::from(waits);
        Ok(Tag(key.0))
    }
}

impl Requests {
    /// Takes back the request that was taken last, which nobody has seen.
    ///
    /// # Panics
    /// If it is another.
    pub fn take_back(&mut self, number: usize, tag: Tag, buffers: &Buffers) {
        let lane = &mut self.lanes[number];
        assert_eq!(lane.waiting.pop_back(), Some(SlabKey(tag.0)), "the last request is another");
        lane.in_progress -= 1;
        let Open { asked, pieces, .. } = self.open.remove(SlabKey(tag.0));
        self.payload.give_all_back(pieces, buffers);
        self.waited.left -= usize::from(matches!(asked.owner, Owner::Waiting));
    }
}

impl Source<AnyTarget> for Requests {
    /// Requests come from calls, not from the passing of time.
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
        for step in 0..self.lanes.len() {
            let number = (self.next + step) % self.lanes.len();
            let lane = &mut self.lanes[number];
            if lane.full {
                continue;
            }
            if let Some(key) = lane.waiting.pop_front() {
                self.next = number + 1;
                let id = TargetId(u32::try_from(number).expect("few targets"));
                return Some((id, self.open.get(key).request));
            }
        }
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: AnyRequest) {
        let lane = &mut self.lanes[target.index()];
        lane.full = true;
        lane.waiting.push_front(SlabKey(request.tag().0));
    }

    fn on_reply(&mut self, _now: Nanos, target: TargetId, reply: AnyReply, buffers: &mut Buffers) {
        let Open { lane, asked, pieces, .. } = self.open.remove(SlabKey(reply.tag().0));
        assert_eq!(lane, target.index(), "a target replied to another's request");
        let end = asked.ask.end(&reply, pieces.first(), buffers);
        self.payload.give_all_back(pieces, buffers);
        let lane = &mut self.lanes[lane];
        lane.full = false;
        lane.in_progress -= 1;
        match asked.owner {
            Owner::Waiting => self.waited.ended(end),
            owner => lane.ended.push_back(Told { owner, end }),
        }
    }

    fn is_finished(&self) -> bool {
        self.open.is_empty()
    }
}
