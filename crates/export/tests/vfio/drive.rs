//! A drive's controller as the server sees it.

use ocssd_base::Nanos;
use ocssd_export::pci_nvme::{DriveFull, OpenChannelDrive, Pointed, Units};
use ocssd_flash::config::Revision;
use ocssd_flash::controller::{AdminOutcome, Controller, IoBuffers};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::Payload;
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::{Cqe, Sqe};

pub struct TestDrive {
    controller: Controller,
}

impl TestDrive {
    /// The preset for tests, whose media is faster than a socket.
    pub fn new(revision: Revision) -> Self {
        let mut config = presets::find("tiny").expect("a preset").config();
        config.revision = revision;
        config.geometry.capabilities.multiple_resets = revision == Revision::V12;
        config.geometry.capabilities.early_reset = revision == Revision::V12;
        config.payload = Payload::Bytes;
        config.media.read = vec![Nanos::from_micros(1)];
        config.media.program = vec![Nanos::from_micros(2)];
        config.media.erase = Nanos::from_micros(5);
        let flash = Flash::format(config).expect("a sound drive");
        Self { controller: Controller::new(flash).expect("a drive of bytes") }
    }
}

impl OpenChannelDrive for TestDrive {
    fn identify_controller(&self) -> IdentifyController {
        self.controller.identify_controller()
    }

    fn units(&self) -> Units {
        let config = self.controller.flash().config();
        let blocks = u64::from(config.geometry.chunks_per_pu) * u64::from(config.media.planes);
        Units {
            sector_bytes: config.geometry.sector_bytes,
            oob_bytes: config.geometry.oob_bytes,
            is_v12: config.revision == Revision::V12,
            bad_block_table_bytes: 64 + blocks,
            transfer_bytes_max: self.controller.transfer_bytes_max(),
        }
    }

    fn admin(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Option<Cqe> {
        match self.controller.admin(now, &sqe.encode(), data) {
            AdminOutcome::Done(completion) => Some(Cqe::decode(&completion)),
            AdminOutcome::Held => None,
        }
    }

    fn submit(&mut self, now: Nanos, queue: u16, sqe: &Sqe, pointed: Pointed<'_>) -> Result<(), DriveFull> {
        let Pointed { data, metadata, addresses, destinations } = pointed;
        let buffers = IoBuffers { data, metadata, lba_list: addresses, destination_list: destinations };
        self.controller.submit(now, queue, &sqe.encode(), buffers).map_err(|_| DriveFull)
    }

    fn poll(&mut self, now: Nanos) -> Option<(u16, Cqe)> {
        self.controller.poll(now).map(|(queue, completion)| (queue, Cqe::decode(&completion)))
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.controller.poll_event().map(|completion| Cqe::decode(&completion).dw0)
    }

    fn deadline(&self) -> Option<Nanos> {
        self.controller.deadline()
    }

    fn reset(&mut self, now: Nanos) {
        self.controller.reset(now);
    }
}
