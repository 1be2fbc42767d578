//! What is below a store: a drive of this process, one that a server holds, or a server with the target too.
//!
//! Deliberately not here: how either is opened (`drive_of_options`, `served`).

use crate::shared_drive::REQUEST_BYTES_MAX;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::EarlyWake;
use ocssd_flash::store::StoreError as ImageError;
use ocssd_flash::{Flash, FlashCounters, PowerCutReport};
use ocssd_lightnvm::{
    Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, Payload, PayloadFormat,
    Rejected,
};
use ocssd_nvme_host::{Alarm, ServedDrive, TableLine};
use std::sync::Arc;

/// Why nothing is asked of a drive that is not here.
const NO_DRIVE: &str = "the target behind a server gives no commands here";

/// A drive.
pub enum StoreDrive {
    /// In this process, in memory or over an image.
    Own(Box<Flash>),
    /// Over NVMe/TCP.
    Served(Box<ServedDrive>),
    /// The target itself is a server's, and its drive cannot be seen from here.
    Behind(Box<BehindServer>),
}

/// A server that has drive and target.
pub struct BehindServer {
    line: TableLine,
    /// Nothing of a drive is known here; buffers have sectors of this one's size.
    geometry: Geometry,
}

impl From<TableLine> for StoreDrive {
    fn from(line: TableLine) -> Self {
        Self::Behind(Box::new(BehindServer { line, geometry: Geometry::example(1, 1, 1, 1, 1) }))
    }
}

impl From<Flash> for StoreDrive {
    fn from(flash: Flash) -> Self {
        Self::Own(Box::new(flash))
    }
}

impl From<ServedDrive> for StoreDrive {
    fn from(drive: ServedDrive) -> Self {
        Self::Served(Box::new(drive))
    }
}

impl StoreDrive {
    /// The payload that its buffers carry.
    pub fn payload_format(&self) -> PayloadFormat {
        match self {
            Self::Own(flash) => flash.payload_format(),
            Self::Served(drive) => drive.payload_format(),
            Self::Behind(server) => PayloadFormat::new(Payload::Bytes, &server.geometry),
        }
    }

    /// What ends a wait for it early.
    pub fn alarm(&self) -> Option<Arc<dyn EarlyWake>> {
        match self {
            Self::Own(_) => None,
            Self::Served(drive) => {
                let alarm: Arc<Alarm> = drive.alarm();
                Some(alarm)
            }
            Self::Behind(server) => {
                let alarm: Arc<Alarm> = Arc::clone(&server.line.alarm);
                Some(alarm)
            }
        }
    }

    /// It has something to send that its connection did not take yet.
    pub fn wants_room(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Served(drive) => drive.wants_room(),
            Self::Behind(server) => server.line.alarm.wants_room(),
        }
    }

    /// The target is this process's, whoever has the drive.
    pub const fn has_target_here(&self) -> bool {
        match self {
            Self::Own(_) | Self::Served(_) => true,
            Self::Behind(_) => false,
        }
    }

    /// Bytes of one request to the target at most.
    pub fn request_bytes_max(&self) -> usize {
        match self {
            Self::Own(_) | Self::Served(_) => REQUEST_BYTES_MAX,
            Self::Behind(server) => REQUEST_BYTES_MAX.min(server.line.bytes_max),
        }
    }

    /// Why it cannot keep what is written, in a sentence.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Own(flash) => flash.store_error().map(|error| error.sentence.clone()),
            Self::Served(drive) => drive.failure().map(str::to_owned),
            Self::Behind(server) => server.line.failure.get().cloned(),
        }
    }

    /// What the media did; a server keeps that to itself.
    pub fn counters(&self) -> Option<FlashCounters> {
        match self {
            Self::Own(flash) => Some(flash.counters()),
            Self::Served(_) | Self::Behind(_) => None,
        }
    }

    /// Bytes that went over the connections to a server.
    pub fn wire_bytes(&self) -> Option<u64> {
        match self {
            Self::Own(_) => None,
            Self::Served(drive) => Some(drive.wire_bytes()),
            Self::Behind(server) => Some(server.line.wire_bytes()),
        }
    }

    /// What is on media reaches the disk of an image. A server does that before it answers a write.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&mut self) -> Result<(), ImageError> {
        match self {
            Self::Own(flash) => flash.sync(),
            Self::Served(_) | Self::Behind(_) => Ok(()),
        }
    }

    /// As [`Self::sync`], for the last time.
    ///
    /// # Errors
    /// If the disk fails, or failed before.
    pub fn close(&mut self) -> Result<(), ImageError> {
        match self {
            Self::Own(flash) => flash.close(),
            Self::Served(_) | Self::Behind(_) => Ok(()),
        }
    }

    /// A second drive in this one's state; `None` if its content is elsewhere.
    pub fn fork(&self) -> Option<Flash> {
        match self {
            Self::Own(flash) => flash.fork(),
            Self::Served(_) | Self::Behind(_) => None,
        }
    }

    /// Its power goes.
    ///
    /// # Errors
    /// If the disk of an image fails.
    ///
    /// # Panics
    /// If the drive is elsewhere: whose power that is, options have refused.
    pub fn power_cut(&mut self, now: Nanos, prng: &mut Prng) -> Result<PowerCutReport, ImageError> {
        match self {
            Self::Own(flash) => flash.power_cut(now, prng),
            Self::Served(_) | Self::Behind(_) => panic!("the power of a served drive is the server's"),
        }
    }
}

impl Device for StoreDrive {
    fn geometry(&self) -> &Geometry {
        match self {
            Self::Own(flash) => flash.geometry(),
            Self::Served(drive) => drive.geometry(),
            Self::Behind(server) => &server.geometry,
        }
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        match self {
            Self::Own(flash) => flash.chunk(chunk),
            Self::Served(drive) => drive.chunk(chunk),
            Self::Behind(_) => unreachable!("{NO_DRIVE}"),
        }
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        match self {
            Self::Own(flash) => flash.submit(now, command, buffers),
            Self::Served(drive) => drive.submit(now, command, buffers),
            Self::Behind(_) => unreachable!("{NO_DRIVE}"),
        }
    }

    fn room(&self) -> u32 {
        match self {
            Self::Own(flash) => flash.room(),
            Self::Served(drive) => drive.room(),
            Self::Behind(_) => 0,
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        match self {
            Self::Own(flash) => flash.deadline(),
            Self::Served(drive) => drive.deadline(),
            Self::Behind(_) => None,
        }
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        match self {
            Self::Own(flash) => flash.poll_completion(now, buffers),
            Self::Served(drive) => drive.poll_completion(now, buffers),
            Self::Behind(_) => None,
        }
    }

    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        match self {
            Self::Own(flash) => flash.work_ahead(limit),
            Self::Served(drive) => drive.work_ahead(limit),
            Self::Behind(_) => None,
        }
    }
}
