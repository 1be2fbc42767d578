//! Structures of the Open-Channel SSD specification 2.0 (2018-01-29).
//!
//! Deliberately not here: the rules for reading, writing and resetting. They belong to the virtual drive;
//! `docs/ppa.md` tells them.

mod chunk_descriptor;
mod claim;
mod dsm_range;
mod error_recovery;
mod geometry;
mod media_feedback;
mod notification;

pub use chunk_descriptor::{
    ChunkDescriptor, ChunkDescriptorError, ChunkKind, ChunkState, ChunkType, descriptor_offset,
};
pub use claim::Claim;
pub use dsm_range::DsmRange;
pub use error_recovery::ErrorRecovery;
pub use geometry::{Geometry, GeometryError, Mccap};
pub use media_feedback::MediaFeedback;
pub use notification::{ChunkNotification, NotificationMask, NotificationState};
pub use ocssd_lightnvm::{LbaFormat, LbaFormatError};
