//! A drive's controller as a PCI function of the export crate. That crate knows drives by a trait alone, so its tests of
//! sockets and guests take this file in as well.

use ocssd_base::Nanos;
use ocssd_export::pci_nvme::{DriveFull, OpenChannelDrive, Pointed, Units};
use ocssd_flash::config::Revision;
use ocssd_flash::controller::{AdminOutcome, Controller, IoBuffers};
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::ocssd12::BadBlockTable;
use ocssd_nvme::{Cqe, Sqe};

/// A controller as the export crate sees it.
pub struct PciDrive {
    /// Carries out what the guest asks for.
    pub controller: Controller,
}

impl OpenChannelDrive for PciDrive {
    fn identify_controller(&self) -> IdentifyController {
        self.controller.identify_controller()
    }

    fn units(&self) -> Units {
        let config = self.controller.flash().config();
        let geometry = &config.geometry;
        let blocks = u64::from(geometry.chunks_per_pu) * u64::from(config.media.planes);
        Units {
            sector_bytes: geometry.sector_bytes,
            oob_bytes: geometry.oob_bytes,
            is_v12: config.revision == Revision::V12,
            bad_block_table_bytes: u64::try_from(BadBlockTable::HEADER_BYTES).expect("64") + blocks,
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

    fn failure(&self) -> Option<&str> {
        self.controller.flash().store_error().map(|error| error.sentence.as_str())
    }

    fn reset(&mut self, now: Nanos) {
        self.controller.reset(now);
    }
}
