//! The rules of the specification in words, so that a refused command says which one it broke and where.
//!
//! Deliberately not here: enforcing them (`flash::rules`).

use crate::address::Ppa;
use crate::chunk::ChunkState;
use crate::geometry::Geometry;
use crate::status::Status;

/// A rule a command can break (OCSSD 2.0 sections 2.2 to 2.4; decisions in `docs/ppa.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A command names 1 to 64 sectors.
    VectorLength,
    /// A write or a reset names chunks that exist.
    AddressExists,
    /// A write stays in its chunk.
    WithinChunk,
    /// A write is a multiple of WS_MIN per chunk.
    WriteUnit,
    /// A write starts at the chunk's write pointer.
    WritePointer,
    /// Only FREE and OPEN chunks are written.
    Writable,
    /// No more chunks are open than MAXOC allows.
    MaxOpenChunks,
    /// No more chunks of a parallel unit are open than MAXOCPU allows.
    MaxOpenChunksPerPu,
    /// A reset names the first sector of a chunk.
    ResetAddress,
    /// Only CLOSED chunks are reset (FREE and OPEN ones if the drive says so).
    Resettable,
    /// Only sectors below the readable limit hold data.
    Readable,
    /// The drive has to support the command.
    Supported,
    /// Source and destination of a copy have the same length.
    CopyLength,
    /// The buffer covers every sector of the command.
    BufferLength,
}

impl Rule {
    /// The rule as one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::VectorLength => "a command names 1 to 64 sectors",
            Self::AddressExists => "writes and resets need an address inside the geometry",
            Self::WithinChunk => "a write stays inside its chunk",
            Self::WriteUnit => "a write to a chunk is a multiple of WS_MIN",
            Self::WritePointer => "a write starts at the chunk's write pointer",
            Self::Writable => "only FREE and OPEN chunks can be written",
            Self::MaxOpenChunks => "no more chunks may be open than MAXOC",
            Self::MaxOpenChunksPerPu => "no more chunks of one parallel unit may be open than MAXOCPU",
            Self::ResetAddress => "a reset names the first sector of a chunk",
            Self::Resettable => "this chunk's state does not allow a reset",
            Self::Readable => "data is readable only below the write pointer, in OPEN chunks less MW_CUNITS",
            Self::Supported => "the drive does not announce this command in its capabilities",
            Self::CopyLength => "a copy names as many destinations as sources",
            Self::BufferLength => "the buffer must cover every sector of the command",
        }
    }
}

/// Which rule was broken, where, and what the chunk looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The first address that broke it.
    pub at: Ppa,
    /// The chunk's state and write pointer then; `None` if there is no such chunk.
    pub chunk: Option<(ChunkState, u32)>,
}

impl Violation {
    /// The sentence a person reads: status, address, rule, state.
    #[must_use]
    pub fn explain(&self, geometry: &Geometry, status: Status) -> String {
        let place = if self.at.chunk.0 < geometry.chunk_count() {
            geometry.generic(self.at).to_string()
        } else {
            "an address outside the geometry".to_owned()
        };
        let state = self.chunk.map_or_else(String::new, |(state, pointer)| {
            format!(" (chunk is {state}, write pointer {pointer})")
        });
        format!("status {:03X}h at {place}: {}{state}", status.0, self.rule.sentence())
    }
}
