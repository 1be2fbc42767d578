//! The drive below a store: one of this process, or one that a server holds.
//!
//! Deliberately not here: how either is opened (`drive_of_options`, `served`).

use ocssd_base::{Nanos, Prng};
use ocssd_engine::EarlyWake;
use ocssd_flash::store::StoreError as ImageError;
use ocssd_flash::{Flash, FlashCounters, PowerCutReport};
use ocssd_lightnvm::{
    Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, PayloadFormat, Rejected,
};
use ocssd_nvme_host::{Alarm, ServedDrive};
use std::sync::Arc;

/// A drive.
pub enum StoreDrive {
    /// In this process, in memory or over an image.
    Own(Box<Flash>),
    /// Over NVMe/TCP.
    Served(Box<ServedDrive>),
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
        }
    }

    /// It has something to send that its connection did not take yet.
    pub fn wants_room(&self) -> bool {
        matches!(self, Self::Served(drive) if drive.wants_room())
    }

    /// Why it cannot keep what is written, in a sentence.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Own(flash) => flash.store_error().map(|error| error.sentence.clone()),
            Self::Served(drive) => drive.failure().map(str::to_owned),
        }
    }

    /// What the media did; a server keeps that to itself.
    pub fn counters(&self) -> Option<FlashCounters> {
        match self {
            Self::Own(flash) => Some(flash.counters()),
            Self::Served(_) => None,
        }
    }

    /// Bytes that went over the connections to a server.
    pub fn wire_bytes(&self) -> Option<u64> {
        match self {
            Self::Own(_) => None,
            Self::Served(drive) => Some(drive.wire_bytes()),
        }
    }

    /// What is on media reaches the disk of an image. A server does that before it answers a write.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&mut self) -> Result<(), ImageError> {
        match self {
            Self::Own(flash) => flash.sync(),
            Self::Served(_) => Ok(()),
        }
    }

    /// As [`Self::sync`], for the last time.
    ///
    /// # Errors
    /// If the disk fails, or failed before.
    pub fn close(&mut self) -> Result<(), ImageError> {
        match self {
            Self::Own(flash) => flash.close(),
            Self::Served(_) => Ok(()),
        }
    }

    /// A second drive in this one's state; `None` if its content is elsewhere.
    pub fn fork(&self) -> Option<Flash> {
        match self {
            Self::Own(flash) => flash.fork(),
            Self::Served(_) => None,
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
            Self::Served(_) => panic!("the power of a served drive is the server's"),
        }
    }
}

impl Device for StoreDrive {
    fn geometry(&self) -> &Geometry {
        match self {
            Self::Own(flash) => flash.geometry(),
            Self::Served(drive) => drive.geometry(),
        }
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        match self {
            Self::Own(flash) => flash.chunk(chunk),
            Self::Served(drive) => drive.chunk(chunk),
        }
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        match self {
            Self::Own(flash) => flash.submit(now, command, buffers),
            Self::Served(drive) => drive.submit(now, command, buffers),
        }
    }

    fn room(&self) -> u32 {
        match self {
            Self::Own(flash) => flash.room(),
            Self::Served(drive) => drive.room(),
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        match self {
            Self::Own(flash) => flash.deadline(),
            Self::Served(drive) => drive.deadline(),
        }
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        match self {
            Self::Own(flash) => flash.poll_completion(now, buffers),
            Self::Served(drive) => drive.poll_completion(now, buffers),
        }
    }

    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        match self {
            Self::Own(flash) => flash.work_ahead(limit),
            Self::Served(drive) => drive.work_ahead(limit),
        }
    }
}
