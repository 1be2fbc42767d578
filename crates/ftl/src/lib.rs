//! Parts that flash translation layers are assembled from: maps, buffers, lines, metadata. No policy of its own.
//!
//! Each part is plain data with a contract and is tested against a naive model. Who owns what: a target owns its parts,
//! and no part knows another except through the values passed to it. Deliberately not here: commands in flight, requests
//! of hosts, the order of procedures (`targets`).

mod append_point;
pub mod checkpoint;
mod chunk_pool;
mod chunk_slots;
mod classify;
mod commit;
mod flush_queue;
mod head;
mod instance_geometry;
mod l2p;
mod last_writes;
mod lines;
pub mod log;
mod open_chunk;
mod open_line;
mod position_set;
mod rate_limiter;
mod reclaimer;
mod relocator;
mod short_checksum;
mod stream;
mod stripe_order;
mod tag;
pub mod tail;
mod valid_map;
mod victim;
mod victim_index;
mod wear;
mod write_buffer;

pub use append_point::{Append, AppendConfig, AppendEvent, AppendPoint, ProgramOutcome};
pub use chunk_pool::{ChunkPool, ChunkUse};
pub use classify::{Classification, ClassificationError, Classifier};
pub use commit::{Committed, Versions, is_newest_at};
pub use flush_queue::{BarrierEnd, FlushQueue};
pub use head::{HEAD_BYTES, Head, InstanceId};
pub use instance_geometry::{ChunkIndex, InstanceGeometry, LineId, PhysicalAddress, UnitIndex};
pub use l2p::{L2p, L2pError, Mapped, ShardSize, Slot};
pub use last_writes::{LAST_WRITES_SHIFT_MAX, LastWrites};
pub use lines::{Line, LineSequence, LineState, Lines};
pub use open_chunk::OpenChunk;
pub use open_line::{ChunkLayout, LineContent, OpenLine, Turns, Write};
pub use rate_limiter::{
    Admission, ContinuousGauges, ContinuousLimiter, ContinuousLimits, PblkGauges, PblkLimiter, PblkLimits,
    PblkState, RateLimiter, Situation,
};
pub use reclaimer::{EmptyLine, Reclaimer, ResetCommand, ResetOrder};
pub use relocator::{RelocationRead, Relocator, Victim};
pub use short_checksum::checksum_of_short;
pub use stream::Stream;
pub use stripe_order::{ReadPosition, StripeOrder, StripePiece};
pub use tag::{BLOCK_MAX, Corrupt, Kind, SEQUENCE_MAX, SectorTag, Sequence, TAG_BYTES, checksum};
pub use valid_map::{ValidMap, ValidMapError};
pub use victim::{Candidate, D_MAX, VictimPolicy, VictimPolicyError};
pub use victim_index::VictimIndex;
pub use wear::{WEAR_SPREAD_MIN, WearLeveller};
pub use write_buffer::{BufferUnitId, BufferUnitState, Entry, Occupancy, Release, WriteBuffer};
