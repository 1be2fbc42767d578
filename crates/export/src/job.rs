//! A job: one request to one target on behalf of a client, and its end.
//!
//! Deliberately not here: requests of clients. One of those may be many jobs, or none.

use crate::exports::ExportId;
use crate::pool::Piece;
use crate::shares::ClientId;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::Cqe;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Fills the piece.
    Read,
    /// Stores the piece.
    Write {
        /// Ends only when durable.
        fua: bool,
    },
    /// Everything that ended before is durable.
    Flush,
    /// The range is not needed any more.
    Discard,
    /// The range reads as zeroes.
    WriteZeroes,
    /// Says which blocks hold something.
    Map {
        /// Runs of such blocks, and of others, that the answer has at most.
        extents_max: u32,
    },
    /// A command of the raw drive.
    Raw,
}

/// Who is told of a job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOwner {
    /// Which connection.
    pub connection: u32,
    /// Which of those that had this number.
    pub generation: u32,
    /// Which of its requests.
    pub request: u32,
}

impl JobOwner {
    /// Whose share the job counts towards.
    #[must_use]
    pub const fn client(&self) -> ClientId {
        ClientId(self.connection)
    }
}

/// A job.
#[derive(Debug)]
pub struct Job {
    /// Who is told.
    pub owner: JobOwner,
    /// On which export; means nothing for a raw command.
    pub export: ExportId,
    /// What.
    pub work: Work,
    /// First block.
    pub block: u64,
    /// How many; 0 for a flush.
    pub count: u32,
    /// The payload; `Some` for reads and writes, and raw commands that move data.
    pub piece: Option<Piece>,
}

/// Blocks in a row that all hold something, or all do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many blocks.
    pub blocks: u32,
    /// They hold something.
    pub mapped: bool,
}

/// The end of a job.
#[derive(Debug)]
pub struct Done {
    /// The job, with its piece.
    pub job: Job,
    /// How it ended.
    pub status: Status,
    /// What a [`Work::Map`] found: the beginning of its range, at least one block.
    pub extents: Vec<Extent>,
    /// What the raw drive answered to a [`Work::Raw`].
    pub completion: Option<Cqe>,
    /// How long it took: from when it was given, or from when the raw drive took it.
    pub took: Nanos,
    /// Bytes of payload it moved.
    pub bytes: u64,
}
