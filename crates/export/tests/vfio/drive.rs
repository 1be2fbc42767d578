//! The drives of these tests.

use crate::pci_drive::PciDrive;
use ocssd_base::Nanos;
use ocssd_flash::config::Revision;
use ocssd_flash::controller::Controller;
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::Payload;

/// The preset for tests, whose media is faster than a socket.
pub fn tiny(revision: Revision) -> PciDrive {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry.chunks_per_pu = 8;
    config.geometry.lba_format.chunk_bits = 3;
    config.revision = revision;
    config.geometry.capabilities.multiple_resets = revision == Revision::V12;
    config.geometry.capabilities.early_reset = revision == Revision::V12;
    config.payload = Payload::Bytes;
    config.media.read = vec![Nanos::from_micros(1)];
    config.media.program = vec![Nanos::from_micros(2)];
    config.media.erase = Nanos::from_micros(5);
    let flash = Flash::format(config).expect("a sound drive");
    PciDrive { controller: Controller::new(flash).expect("a drive of bytes") }
}
