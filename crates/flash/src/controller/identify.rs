//! Identify (06h): what controller and namespace say about themselves.

use super::admin::put_reply;
use super::completion::{INVALID_FIELD, Refused};
use super::events::REQUESTS_MAX;
use super::features::has_volatile_cache;
use super::front_end::{Controller, NSID};
use super::health::ERRORS_MAX;
use crate::config::Revision;
use ocssd_lightnvm::{ChunkId, Status};
use ocssd_nvme::Sqe;
use ocssd_nvme::identify::{
    AtomicSizes, Cns, DeallocatedRead, IdentifyController, IdentifyNamespace, LbaDataFormat, NamespaceIds,
    NamespaceList, PreferredSizes, Text, VENDOR_OCSSD,
};
use ocssd_nvme::sqe::Identify;

/// The smallest page of the controller (CAP.MPSMIN), the unit of MDTS: 4096 bytes.
const PAGE_BYTES: u64 = 4096;
/// NVMe 1.4.0, the revision of the base specification whose tables are used here.
const VERSION: u32 = 0x0001_0400;
/// ONCS: Dataset Management (bit 2), and Save and Select of features (bit 4).
const OPTIONAL_COMMANDS: u16 = 1 << 2 | 1 << 4;
/// VWC bits 2:1: Flush takes the broadcast namespace. Bit 0: a volatile cache is present.
const FLUSH_BROADCAST: u8 = 0b110;

/// A whole number as the 0-based byte of the wire.
fn zero_based(count: usize) -> u8 {
    u8::try_from(count - 1).expect("the limits of the controller are small")
}

/// What of a text fits the field: printable ASCII, cut to its length.
fn text<const N: usize>(whole: &str) -> Text<N> {
    let printable = whole.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ');
    Text::new(&printable.take(N).collect::<String>()).expect("printable and short enough")
}

impl Controller {
    pub(super) fn identify(&self, sqe: &Sqe, data: &mut [u8]) -> Result<(), Refused> {
        let invalid_namespace = Err(Refused(Status::INVALID_NAMESPACE));
        match Identify::of(sqe).cns {
            Cns::CONTROLLER => put_reply(data, &self.identify_controller().encode()),
            Cns::NAMESPACE | Cns::NAMESPACE_IDS if sqe.nsid != NSID => invalid_namespace,
            Cns::NAMESPACE => put_reply(data, &self.identify_namespace().encode()),
            Cns::NAMESPACE_IDS => put_reply(data, &self.namespace_ids().encode()),
            Cns::ACTIVE_NAMESPACES if sqe.nsid >= u32::MAX - 1 => invalid_namespace,
            Cns::ACTIVE_NAMESPACES => {
                put_reply(data, &NamespaceList::greater_than(sqe.nsid, &[NSID]).encode())
            }
            _ => Err(INVALID_FIELD),
        }
    }

    /// Identify Controller. A transport may change what is its own: controller identifier, SGLs, fabrics, keep alive.
    #[must_use]
    pub fn identify_controller(&self) -> IdentifyController {
        let config = self.config();
        let mdts = (self.transfer_bytes_max() / PAGE_BYTES).ilog2();
        assert_eq!(PAGE_BYTES << mdts, self.transfer_bytes_max(), "MDTS is a power of two of pages");
        let model = if config.model.is_empty() { "ocssd" } else { &config.model };
        IdentifyController {
            vid: VENDOR_OCSSD,
            ssvid: VENDOR_OCSSD,
            sn: text(&self.uuid.serial()),
            mn: text(model),
            fr: text(env!("CARGO_PKG_VERSION")),
            mdts: u8::try_from(mdts).expect("a logarithm of 64 bits"),
            cntlid: 1,
            ver: VERSION,
            cntrltype: 1,
            acl: 0,
            aerl: zero_based(REQUESTS_MAX),
            frmw: 0b11, // one slot (bits 3:1), read only (bit 0)
            lpa: 1 << 2,
            elpe: zero_based(ERRORS_MAX),
            sqes: 0x66,
            cqes: 0x44,
            nn: NSID,
            oncs: if config.revision == Revision::V20 {
                OPTIONAL_COMMANDS
            } else {
                OPTIONAL_COMMANDS & !(1 << 2)
            },
            vwc: FLUSH_BROADCAST | u8::from(has_volatile_cache(config)),
            subnqn: self.uuid.nqn(),
            ..IdentifyController::default()
        }
    }

    /// Identify Namespace. NSZE is the whole address space, holes included; NCAP the sectors that exist; NUSE those
    /// that are written. Cost: O(chunks).
    #[must_use]
    pub fn identify_namespace(&self) -> IdentifyNamespace {
        let geometry = self.geometry();
        let written = (0..geometry.chunk_count()).map(|chunk| {
            let descriptor = self.flash.chunk(ChunkId(chunk));
            u64::from(descriptor.write_pointer.unwrap_or(0))
        });
        assert!(geometry.sector_count() <= geometry.lba_format.span(), "every sector has an address");
        IdentifyNamespace {
            nsze: self.v12.as_ref().map_or(geometry.lba_format.span(), |v12| v12.address_count()),
            ncap: geometry.sector_count(),
            nuse: written.sum(),
            nsfeat: if self.v12.is_none() { 1 << 2 } else { 0 },
            lbaf: vec![LbaDataFormat {
                ms_bytes: u16::try_from(geometry.oob_bytes).expect("at most 64"),
                lbads: u8::try_from(geometry.sector_bytes.ilog2()).expect("at most 16"),
                rp: 0,
            }],
            format_index: 0,
            extended_lba: false,
            mc: if geometry.oob_bytes > 0 { 1 << 1 } else { 0 },
            nmic: 0,
            nsattr: 0,
            dpc: 0,
            dps: 0,
            deallocated_read: DeallocatedRead::Zeros,
            atomic: AtomicSizes::default(),
            preferred: PreferredSizes::default(),
            nvmcap_bytes: geometry.capacity_bytes().into(),
            nguid: self.uuid.0,
            eui64: self.uuid.eui64(),
            lightnvm: true,
        }
    }

    fn namespace_ids(&self) -> NamespaceIds {
        let namespace = self.identify_namespace();
        let (eui64, nguid, uuid) = (Some(namespace.eui64), Some(namespace.nguid), Some(self.uuid.0));
        NamespaceIds { eui64, nguid, uuid, csi: None }
    }
}

const _: () = assert!(super::scalar::PREDEFINED == 0x00, "DLFEAT says that unwritten sectors read as zeros");
