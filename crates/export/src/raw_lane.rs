//! The way to the raw drive: commands that wait for it, those it has, and its completions.
//!
//! Deliberately not here: what the commands mean.

use crate::exports::ExportId;
use crate::job::{Answer, Done, Job, JobOwner, Work};
use crate::pool::PoolPiece;
use crate::raw_drive::{RawBuffers, RawBusy, RawDrive};
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::Buffers;
use ocssd_nvme::{Cqe, Sqe};
use std::collections::VecDeque;
use std::fmt;

/// Commands at once (chosen: as many as pieces of 4 KiB); each needs an identifier of 16 bits.
const JOBS_MAX: u32 = 1024;

/// A command on its way.
#[derive(Debug)]
pub struct RawJob {
    /// Who is told.
    pub owner: JobOwner,
    /// What, in the drive's own words: its namespace is 1.
    pub sqe: Sqe,
    /// The addresses, if they are more than one.
    pub addresses: Vec<u64>,
    /// The data.
    pub piece: Option<PoolPiece>,
    /// Bytes of it.
    pub bytes: usize,
    /// How many of these, the last, are metadata.
    pub metadata_bytes: usize,
}

/// The raw drive, and what it has to do.
pub struct RawLane {
    /// The drive.
    pub drive: Box<dyn RawDrive>,
    /// Commands may name more than one address, by a convention of this server's own.
    pub runs_of_addresses: bool,
    /// Each with when the drive took it.
    jobs: Slab<(RawJob, Nanos)>,
    waiting: VecDeque<SlabKey>,
    /// It took no more, and has ended nothing since.
    full: bool,
}

impl fmt::Debug for RawLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawLane")
            .field("jobs", &self.jobs.len())
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}

impl RawLane {
    /// The way to this drive.
    #[must_use]
    pub fn new(drive: Box<dyn RawDrive>, runs_of_addresses: bool) -> Self {
        Self { drive, runs_of_addresses, jobs: Slab::new(JOBS_MAX), waiting: VecDeque::new(), full: false }
    }

    /// A command can be given.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.jobs.is_full()
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn open_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Commands wait that the drive may take now.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.full && !self.waiting.is_empty()
    }

    /// When the drive has something to say.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.drive.deadline()
    }

    /// Gives a command to the drive.
    ///
    /// # Panics
    /// If there is no room.
    pub fn put(&mut self, job: RawJob) {
        let key = self
            .jobs
            .insert((job, Nanos::ZERO))
            .unwrap_or_else(|_| panic!("a raw command was given without room"));
        self.waiting.push_back(key);
    }

    /// The drive takes what it can.
    pub(crate) fn give(&mut self, now: Nanos, buffers: &mut Buffers) {
        while !self.full {
            let Some(&key) = self.waiting.front() else { return };
            let (job, since) = self.jobs.get_mut(key);
            let cid = u16::try_from(key.0).expect("fewer commands than identifiers");
            let sqe = Sqe { nsid: 1, ..job.sqe }.with_cid(cid);
            let moved = match &job.piece {
                Some(piece) => buffers.bytes_mut(piece.buffer, 0, job.bytes),
                None => &mut [],
            };
            let (data, metadata) = moved.split_at_mut(job.bytes - job.metadata_bytes);
            match self.drive.submit(now, &sqe, RawBuffers { data, metadata, addresses: &job.addresses }) {
                Ok(()) => {
                    *since = now;
                    self.waiting.pop_front();
                }
                Err(RawBusy) => self.full = true,
            }
        }
    }

    /// The next command that has ended.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Done> {
        let completion: Cqe = self.drive.poll(now)?;
        self.full = false;
        let key = SlabKey(completion.cid.into());
        let (RawJob { owner, piece, bytes, .. }, since) = self.jobs.remove(key);
        let took = now.saturating_since(since);
        let bytes = u64::try_from(bytes).expect("a piece of memory fits 64 bits");
        let job = Job {
            owner,
            export: ExportId(0),
            work: Work::Raw,
            block: 0,
            count: 0,
            piece,
            beside: Vec::new(),
        };
        let status = completion.status.status;
        Some(Done { job, status, answer: Answer::Raw(completion), took, since, bytes })
    }

    pub(crate) fn poll_event(&mut self) -> Option<u32> {
        self.drive.poll_event()
    }
}
