//! The raw drive: a drive of its own, whose controller's commands are served to NVMe hosts as they are.

use crate::args::ServeArgs;
use anyhow::{Context, anyhow, bail};
use ocssd_base::Nanos;
use ocssd_drive::{Image, OpenOptions, Source};
use ocssd_export::{RawBuffers, RawBusy, RawDrive, RawLane, RawShape};
use ocssd_flash::config::Revision;
use ocssd_flash::controller::{AdminOutcome, Controller, IoBuffers};
use ocssd_lightnvm::Payload;
use ocssd_nvme::identify::IdentifyNamespace;
use ocssd_nvme::{Cqe, Sqe};

/// The drive behind the raw namespace, and its image, which is locked as long as it is served.
pub struct Raw {
    /// The way to it.
    pub lane: RawLane,
    /// What is served, for people.
    pub description: String,
    /// The image.
    pub image: Option<Image>,
}

/// Opens the drive, if one is asked for.
///
/// # Errors
/// A drive that cannot be opened, or cannot be served as it is.
pub fn open(args: &ServeArgs) -> anyhow::Result<Option<Raw>> {
    let Some(name) = &args.raw else { return Ok(None) };
    let source = Source::named(name)?;
    let mut settings = args.raw_set.clone();
    if !matches!(source, Source::Image(_)) {
        settings.insert(0, "payload=bytes".to_owned());
    }
    let drive = crate::open_drive::open_drive(&source, &OpenOptions { settings, ..OpenOptions::default() })
        .with_context(|| format!("--raw {name}"))?;
    if drive.spec.config.payload != Payload::Bytes {
        bail!("--raw {name} keeps stamps of 16 bytes instead of what is written; make it with payload=bytes");
    }
    if drive.spec.config.revision != Revision::V20 {
        bail!(
            "--raw {name} speaks OCSSD 1.2, whose address lists no capsule can carry; set its revision to 2.0"
        );
    }
    let bytes = crate::table::bytes(drive.spec.config.geometry.capacity_bytes());
    let description = format!("open-channel drive {name}, {bytes}");
    let controller = Controller::new(drive.flash).map_err(|error| anyhow!("--raw {name}: {error}"))?;
    let controller = controller.with_uuid(drive.uuid);
    let served = Served { controller, listening: false };
    let lane = RawLane::new(Box::new(served), args.raw_runs);
    Ok(Some(Raw { lane, description, image: drive.image }))
}

/// A controller as the export crate sees it.
struct Served {
    controller: Controller,
    /// It holds an event request.
    listening: bool,
}

impl RawDrive for Served {
    fn identify_namespace(&self) -> IdentifyNamespace {
        self.controller.identify_namespace()
    }

    fn shape(&self) -> RawShape {
        let geometry = &self.controller.flash().config().geometry;
        RawShape {
            sector_bytes: geometry.sector_bytes,
            metadata_bytes: geometry.oob_bytes,
            chunk_stride: 1 << geometry.lba_format.sector_bits,
        }
    }

    fn admin(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Cqe {
        match self.controller.admin(now, &sqe.encode(), data) {
            AdminOutcome::Done(completion) => Cqe::decode(&completion),
            AdminOutcome::Held => unreachable!("event requests of hosts do not come here"),
        }
    }

    fn submit(&mut self, now: Nanos, sqe: &Sqe, buffers: RawBuffers<'_>) -> Result<(), RawBusy> {
        let RawBuffers { data, metadata, addresses } = buffers;
        let buffers = IoBuffers { data, metadata, lba_list: addresses, ..IoBuffers::default() };
        self.controller.submit(now, 1, &sqe.encode(), buffers).map_err(|_| RawBusy)
    }

    fn poll(&mut self, now: Nanos) -> Option<Cqe> {
        self.controller.poll(now).map(|(_, completion)| Cqe::decode(&completion))
    }

    fn poll_event(&mut self) -> Option<u32> {
        if !self.listening {
            let held = self.controller.admin(Nanos::ZERO, &Sqe::async_event_request().encode(), &mut []);
            self.listening = held == AdminOutcome::Held;
        }
        let completion = self.controller.poll_event()?;
        self.listening = false;
        Some(Cqe::decode(&completion).dw0)
    }

    fn deadline(&self) -> Option<Nanos> {
        self.controller.deadline()
    }

    fn failure(&self) -> Option<&str> {
        self.controller.flash().store_error().map(|error| error.sentence.as_str())
    }

    fn sync(&mut self) -> Result<(), String> {
        // What the cache holds goes to media first, however long the drive would take.
        while let Some(at) = self.controller.deadline() {
            while self.controller.poll(at).is_some() {}
        }
        self.controller.flash_mut().close().map_err(|error| error.to_string())
    }
}
