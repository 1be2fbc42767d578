//! The PPA interface and its subsystem: what an open-channel drive is to the code above it.
//!
//! Geometry and addresses, chunks, commands and statuses; the [`Device`] and [`Target`] traits with the [`Buffers`] both
//! sides see; the media manager that leases parallel units to targets; and wrappers that are devices themselves.
//!
//! Deliberately not here: the drive (`flash`), the wire (`nvme`), any loop, clock, thread or file.

pub mod address;
pub mod block;
mod blocking;
mod buffers;
pub mod chunk;
pub mod command;
pub mod counter;
mod device;
pub mod geometry;
pub mod interface;
pub mod media_manager;
mod out;
mod rule;
mod source;
pub mod status;
mod target;
pub mod transaction;
pub mod wrap;

pub use address::{ChunkId, GenericAddress, GroupId, Lba, LbaFormat, LbaFormatError, Ppa, PuId};
pub use blocking::{BlockingDevice, PowerCut};
pub use buffers::{BufId, Buffers, PartsMut, Payload, PayloadFormat, STAMP_BYTES};
pub use chunk::{ChunkDescriptor, ChunkState};
pub use command::{Addresses, Command, Completion, Op, PlaneMode, Rejected, Tag, VECTOR_MAX};
pub use device::Device;
pub use geometry::{Capabilities, Geometry, MediaTimes};
pub use out::Out;
pub use rule::{Rule, Violation};
pub use source::{Source, TargetId};
pub use status::Status;
pub use target::{Admission, TARGET_TAG_BITS, Target};
