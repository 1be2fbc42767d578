//! What a target promises, as code: requests are drawn by it, and every answer is held against it.
//!
//! A block target's contract is `block`; transactional ones (a log, a table, a key-value store) bring their own, and get
//! the world, the power cuts, the faults, shrinking and the command line with it. Deliberately not here: when requests
//! are sent and when the power goes (`plan`, `run`).

use crate::watched::Harmed;
use crate::wear::Promise;
use ocssd_base::Nanos;
use ocssd_flash::FailedOp;
use ocssd_lightnvm::{Buffers, ChunkId, Ppa, Status, Target};
use std::cmp::Ordering;
use std::fmt;

/// A promise was broken: what was promised, and what came instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the promise, without block or time: two that broke the same rule are taken for the same failure.
    pub rule: &'static str,
    /// What had to be.
    pub promised: String,
    /// What was.
    pub found: String,
}

impl Broken {
    /// The rule and both sentences.
    pub fn new(rule: &'static str, promised: impl Into<String>, found: impl Into<String>) -> Self {
        Self { rule, promised: promised.into(), found: found.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promised: {}; found: {}", self.promised, self.found)
    }
}

impl std::error::Error for Broken {}

/// How much a drive has left, and how much the target says it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Chunks of the target's units that are not offline, by the drive's own report.
    pub good_chunks: u32,
    /// Good chunks below which the target may refuse changes (a gauge `chunks_needed`); of one that does not say, as many as
    /// there were at its first mount.
    pub chunks_needed: u32,
    /// Sectors of a chunk.
    pub chunk_sectors: u32,
    /// The drive itself failed, because the file below it did, or by not carrying out a change as often as targets send one:
    /// changes end with its status, and so may reads.
    pub drive_failed: bool,
}

impl Room {
    /// Changes may be refused.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.good_chunks < self.chunks_needed
    }

    /// Sectors of good chunks beyond those that are needed.
    #[must_use]
    pub fn sectors_beyond(&self) -> u64 {
        u64::from(self.good_chunks.saturating_sub(self.chunks_needed)) * u64::from(self.chunk_sectors)
    }
}

/// What lies on the media, for whoever judges what a harmed place costs.
pub trait Media {
    /// True if a place that was harmed still is: its chunk was not reset since.
    fn is_still_harmed(&self, at: Ppa) -> bool;

    /// The payload of every written sector of these chunks, as it was written.
    fn contents(&mut self, chunks: &[ChunkId]) -> Vec<Vec<u8>>;

    /// The line of a chunk: the chunks of that number of all units of the target.
    fn line_of(&self, chunk: ChunkId) -> Vec<ChunkId>;
}

/// Someone who answers requests one by one, each before the next is asked: a target at its next mount.
pub trait Answerer<Q, R> {
    /// Where payload lies.
    fn buffers(&mut self) -> &mut Buffers;

    /// Answers.
    ///
    /// # Errors
    /// If no answer comes, or one that is not what was promised.
    fn ask(&mut self, request: Q) -> Result<R, Broken>;
}

/// A contract between a host and one kind of target.
pub trait Contract {
    /// The target.
    type Target: Target + ?Sized;

    /// It says what is excused of a target whose drive did not carry out a change in any try ([`Room::drive_failed`]). In worlds
    /// of other contracts no drive does that.
    const KNOWS_DEAD_DRIVES: bool;

    /// A target was made on fresh media, or mounted again: its size must be what it was. Buffers for requests are taken
    /// here; those of the last target are gone. `chunks`: whether as many are good as
    /// at the mount before, `Less` or `Greater`.
    ///
    /// # Errors
    /// If it is not what it was.
    fn mounted(
        &mut self,
        target: &Self::Target,
        buffers: &mut Buffers,
        chunks: Ordering,
    ) -> Result<(), Broken>;

    /// Draws a request, all of it from `draw`, and notes that it is sent. `None` if no more may be outstanding. What goes with
    /// a request beside it is said to the target here.
    fn draw(
        &mut self,
        draw: u64,
        now: Nanos,
        buffers: &mut Buffers,
        target: &mut Self::Target,
    ) -> Option<<Self::Target as Target>::Request>;

    /// The request that ends an instance in good order.
    fn shutdown(&mut self, now: Nanos, buffers: &Buffers) -> <Self::Target as Target>::Request;

    /// Starts over with reading everything.
    fn begin_audit(&mut self);

    /// The next request of an audit; `None` once everything was asked for, or no more may be outstanding.
    fn audit(&mut self, now: Nanos) -> Option<<Self::Target as Target>::Request>;

    /// Judges a reply; gives the request's name among the counts, as `requests.reads`. Its buffers are free again. `room` says
    /// what the drive has left.
    ///
    /// # Errors
    /// If it is not what was promised.
    fn replied(
        &mut self,
        reply: &<Self::Target as Target>::Reply,
        buffers: &mut Buffers,
        room: &dyn Fn() -> Room,
    ) -> Result<&'static str, Broken>;

    /// An audit came to its end with nothing outstanding: everything was answered.
    ///
    /// # Errors
    /// If something is missing.
    fn end_audit(&mut self) -> Result<(), Broken>;

    /// Looks at everything a target shows, one request after the other, at the end of an audit. Contracts that read all by
    /// [`Self::audit`] have nothing to ask here.
    ///
    /// # Errors
    /// If it is not what was promised.
    fn observe(
        &mut self,
        target: &mut dyn Answerer<<Self::Target as Target>::Request, <Self::Target as Target>::Reply>,
    ) -> Result<(), Broken> {
        let _ = target;
        Ok(())
    }

    /// Requests without an answer.
    fn outstanding(&self) -> u32;

    /// When the oldest of them was sent.
    fn oldest(&self) -> Option<Nanos>;

    /// The power went, or was turned off after a shutdown: nothing outstanding will be answered, and the next mount finds what
    /// lies on `media`.
    fn power_cut(&mut self, media: &mut dyn Media);

    /// The media harmed a sector: what it held may be lost to the target from now on, and nothing else.
    fn harmed(&mut self, harmed: &Harmed, media: &mut dyn Media);

    /// The drive failed a command as such, and changed nothing. A target asks again, and nobody shall hear of it, except that
    /// after a read's status by which the drive says that it does not work all changes may be refused until the next mount.
    fn command_failed(&mut self, op: FailedOp, status: Status);

    /// What a harmed sector held, in words.
    fn content_in_words(&self, content: &[u8]) -> String;

    /// A request's number, and the request in words.
    fn request_in_words(request: &<Self::Target as Target>::Request) -> (u32, String);

    /// The number of the request a reply answers, and the reply in words.
    fn reply_in_words(reply: &<Self::Target as Target>::Reply) -> (u32, String);

    /// Numbers of the contract's own, name and count, for the summary.
    fn counts(&self) -> Vec<(&'static str, u64)>;

    /// The state of a target in words, for whoever looks for a bug.
    fn target_summary(&self, target: &Self::Target) -> String;

    /// Good chunks below which a target may refuse changes; `None` if it does not say.
    fn chunks_needed(target: &Self::Target) -> Option<u32>;

    /// How far a target lets wear differ; `None` if it does not say, or takes no writes any more.
    fn wear_promise(&self, target: &Self::Target) -> Option<Promise>;

    /// Numbers of a target, name and count, for the summary.
    fn target_counts(&self, target: &Self::Target) -> Vec<(&'static str, u64)>;
}
