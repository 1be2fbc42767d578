//! A job: one request to one target on behalf of a client, and its end.
//!
//! Deliberately not here: requests of clients. One of those may be many jobs, or none.

use crate::exports::ExportId;
use crate::pool::PoolPiece;
use crate::shares::ClientId;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{KvOp, KvReply};
use ocssd_lightnvm::interface::log_structured::{LogOp, LogReply};
use ocssd_lightnvm::interface::table::{TableOp, TableReply};
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneScope, ZoneState, ZonedAnswer};
use ocssd_lightnvm::interface::{Content, StageId, StageOp};
use ocssd_nvme::Cqe;

/// What a job does. Reads, writes and flushes are there for exports of blocks and of zones, flushes for all.
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
    /// Stores the piece at the write pointer of the zone that begins at the block.
    Append {
        /// Ends only when durable.
        fua: bool,
    },
    /// Does something to the zone that begins at the block, or to all.
    ManageZones {
        /// What.
        action: ZoneAction,
        /// To which.
        scope: ZoneScope,
    },
    /// Fills the piece with at most `count` descriptors, of the zone of the block and those behind it.
    ReportZones {
        /// Only zones in this state.
        only: Option<ZoneState>,
    },
    /// The same with their extensions behind them.
    ReportZonesExtended {
        /// Only zones in this state.
        only: Option<ZoneState>,
    },
    /// Sets the descriptor extension of the zone that begins at the block, to what the piece begins with.
    SetZoneExtension,
    /// Opens the zone that begins at the block, with a random write area.
    OpenZoneWithArea,
    /// Commits the area of a zone up to the block, with it.
    CommitZoneArea,
    /// Something on log-structured pages. What it names lies in the job's pieces.
    Log(LogOp),
    /// Something on tables. What it names lies in the job's pieces.
    Table(TableOp),
    /// Something on keys and values. What it names lies in the job's pieces.
    KeyValue(KvOp),
}

impl Work {
    /// Payload that it moves, in bytes, on an export with blocks of `block_bytes`; `count` is the job's.
    #[must_use]
    pub fn payload_bytes(&self, count: u32, block_bytes: u32) -> u64 {
        match self {
            Self::Read | Self::Write { .. } | Self::Append { .. } => {
                u64::from(count) * u64::from(block_bytes)
            }
            Self::KeyValue(KvOp::Store { content, .. } | KvOp::Retrieve { into: content, .. })
            | Self::KeyValue(KvOp::Stage(StageOp::Append { content, .. }))
            | Self::Log(LogOp::Flush { content, .. } | LogOp::Read { into: content, .. })
            | Self::Log(LogOp::Stage(StageOp::Append { content, .. }))
            | Self::Table(TableOp::Append { content, .. } | TableOp::Read { into: content, .. }) => {
                content.bytes().into()
            }
            _ => 0,
        }
    }

    /// What it does with a stage, if that is all.
    #[must_use]
    pub const fn stage_op(&self) -> Option<StageOp> {
        match self {
            Self::KeyValue(KvOp::Stage(op)) | Self::Log(LogOp::Stage(op)) => Some(*op),
            _ => None,
        }
    }

    /// The stage whose content it makes true.
    #[must_use]
    pub const fn staged(&self) -> Option<StageId> {
        match self {
            Self::KeyValue(KvOp::Store { content: Content::Staged { stage, .. }, .. })
            | Self::Log(LogOp::Flush { content: Content::Staged { stage, .. }, .. }) => Some(*stage),
            _ => None,
        }
    }

    /// Its piece is what it moves: there must be one.
    #[must_use]
    pub const fn needs_piece(&self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Write { .. }
                | Self::Append { .. }
                | Self::ReportZones { .. }
                | Self::ReportZonesExtended { .. }
                | Self::SetZoneExtension
        )
    }

    /// It may have a piece.
    #[must_use]
    pub const fn may_have_piece(&self) -> bool {
        self.needs_piece() || matches!(self, Self::Log(_) | Self::Table(_) | Self::KeyValue(_))
    }
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
    /// How many, or descriptors of zones; 0 for a flush.
    pub count: u32,
    /// The payload; `Some` for reads, writes and reports, raw commands that move data, and operations that name a buffer.
    pub piece: Option<PoolPiece>,
    /// More pieces that an operation names: they are the target's until the job ends.
    pub beside: Vec<PoolPiece>,
}

impl Job {
    /// A flush of an export that nobody owns yet: what jobs without blocks begin with.
    #[must_use]
    pub const fn flush(export: ExportId, piece: Option<PoolPiece>) -> Self {
        let owner = JobOwner { connection: 0, generation: 0, request: 0 };
        Self { owner, export, work: Work::Flush, block: 0, count: 0, piece, beside: Vec::new() }
    }
}

/// Blocks in a row that all hold something, or all do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many blocks.
    pub blocks: u32,
    /// They hold something.
    pub mapped: bool,
}

/// What a job brought beside its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// What a [`Work::Map`] found: the beginning of its range, at least one block.
    Extents(Vec<Extent>),
    /// What the raw drive answered to a [`Work::Raw`].
    Raw(Cqe),
    /// What a target of zones did.
    Zoned(ZonedAnswer),
    /// The reply of a target of log-structured pages.
    Log(LogReply),
    /// The reply of a target of tables.
    Table(TableReply),
    /// The reply of a target of keys and values.
    KeyValue(KvReply),
}

/// The end of a job.
#[derive(Debug)]
pub struct Done {
    /// The job, with its piece.
    pub job: Job,
    /// How it ended.
    pub status: Status,
    /// What it brought.
    pub answer: Answer,
    /// How long it took: from when it was given, or from when the raw drive took it.
    pub took: Nanos,
    /// When that time began.
    pub since: Nanos,
    /// Bytes of payload it moved.
    pub bytes: u64,
}

impl Done {
    /// The pieces of the job, which go back to the pool.
    pub fn into_pieces(self) -> impl Iterator<Item = PoolPiece> {
        self.job.piece.into_iter().chain(self.job.beside)
    }
}
