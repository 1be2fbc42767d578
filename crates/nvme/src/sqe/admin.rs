//! Admin commands: geometry, log pages, features, identify, abort and event requests.
//!
//! Source: NVMe base 1.4 section 5; OCSSD 2.0 sections 3.1 to 3.4.

use super::Sqe;
use crate::feature::{FeatureId, Select};
use crate::identify::Cns;
use crate::log_page::LogPageId;
use crate::wire::{bit, byte, flag, high_half, join, low_half, split};

/// Get Log Page.
///
/// ```text
/// CDW10  LID 7:0, LSP 11:8, RAE 15, NUMDL 31:16     CDW11  NUMDU 15:0     CDW12-13  byte offset     CDW14  CSI 31:24
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// LID: which page.
    pub lid: LogPageId,
    /// LSP: a field of the page's own, 4 bits.
    pub lsp: u8,
    /// RAE: keep the event; without it reading the page clears the event that announced it.
    pub retain_event: bool,
    /// NUMD + 1: how many dwords to return, 1 to 2^32.
    pub dword_count: u64,
    /// LPO: byte offset in the page. Bits 1:0 must be 0; the controller refuses others with Invalid Field.
    pub offset_bytes: u64,
    /// CSI, CDW14 bits 31:24: which command set, for the pages that have one (NVMe base 2.0 figure 201).
    pub csi: u8,
}

impl GetLogPage {
    /// The view of a Get Log Page entry.
    pub fn of(sqe: &Sqe) -> Self {
        let numd = u32::from(low_half(sqe.cdw11)) << 16 | u32::from(high_half(sqe.cdw10));
        Self {
            lid: LogPageId(byte(sqe.cdw10, 0)),
            lsp: byte(sqe.cdw10, 1) & 0xF,
            retain_event: bit(sqe.cdw10, 15),
            dword_count: u64::from(numd) + 1,
            offset_bytes: join(sqe.cdw12, sqe.cdw13),
            csi: byte(sqe.cdw14, 3),
        }
    }

    /// How many bytes to return.
    pub fn byte_count(&self) -> u64 {
        self.dword_count * 4
    }
}

/// Set Features. Only CDW11 carries the value: no feature of these drives has a data buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFeatures {
    /// FID, CDW10 bits 7:0.
    pub fid: FeatureId,
    /// SV, CDW10 bit 31: keep the value across power cycles.
    pub save: bool,
    /// CDW11: the value.
    pub value: u32,
}

impl SetFeatures {
    /// The view of a Set Features entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { fid: FeatureId(byte(sqe.cdw10, 0)), save: bit(sqe.cdw10, 31), value: sqe.cdw11 }
    }
}

/// Get Features. The value comes back in the completion's DW0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetFeatures {
    /// FID, CDW10 bits 7:0.
    pub fid: FeatureId,
    /// SEL, CDW10 bits 10:8: which of the feature's values.
    pub select: Select,
    /// CDW11: which instance, for features that have several.
    pub selector: u32,
}

impl GetFeatures {
    /// The view of a Get Features entry.
    pub fn of(sqe: &Sqe) -> Self {
        let select = Select::from_bits(byte(sqe.cdw10, 1));
        Self { fid: FeatureId(byte(sqe.cdw10, 0)), select, selector: sqe.cdw11 }
    }
}

/// Identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identify {
    /// CNS, CDW10 bits 7:0: which structure.
    pub cns: Cns,
    /// CNTID, CDW10 bits 31:16: which controller, for the structures that need one.
    pub cntid: u16,
    /// CSI, CDW11 bits 31:24: which command set, for the structures that have one (NVMe base 2.0 figure 273).
    pub csi: u8,
}

impl Identify {
    /// The view of an Identify entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { cns: Cns(byte(sqe.cdw10, 0)), cntid: high_half(sqe.cdw10), csi: byte(sqe.cdw11, 3) }
    }
}

/// Abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    /// SQID, CDW10 bits 15:0: the queue of the command to end.
    pub sqid: u16,
    /// CID, CDW10 bits 31:16: the identifier of the command to end.
    pub cid: u16,
}

impl Abort {
    /// The view of an Abort entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { sqid: low_half(sqe.cdw10), cid: high_half(sqe.cdw10) }
    }
}

impl Sqe {
    /// Geometry (E2h) of OCSSD 2.0, which is Identify on a 1.2 drive.
    pub fn geometry(nsid: u32) -> Self {
        Self::admin(crate::AdminOpcode::GEOMETRY, nsid)
    }

    /// Get Log Page (02h).
    ///
    /// # Panics
    /// If the dword count is not 1 to 2^32, LSP needs more than 4 bits, or the offset is not a multiple of 4.
    pub fn get_log_page(nsid: u32, get: GetLogPage) -> Self {
        let count = get.dword_count;
        assert!((1..=1 << 32).contains(&count), "1 to 2^32 dwords, not {count}");
        assert!(get.lsp < 16, "LSP is 4 bits, {} is too large", get.lsp);
        assert!(get.offset_bytes.is_multiple_of(4), "offset {} is not a multiple of 4", get.offset_bytes);
        let (numd, _) = split(count - 1);
        let mut sqe = Self::admin(crate::AdminOpcode::GET_LOG_PAGE, nsid);
        sqe.cdw10 = u32::from(low_half(numd)) << 16
            | flag(get.retain_event, 15)
            | u32::from(get.lsp) << 8
            | u32::from(get.lid.0);
        sqe.cdw11 = u32::from(high_half(numd));
        (sqe.cdw12, sqe.cdw13) = split(get.offset_bytes);
        sqe.cdw14 = u32::from(get.csi) << 24;
        sqe
    }

    /// Set Features (09h).
    pub fn set_features(nsid: u32, set: SetFeatures) -> Self {
        let mut sqe = Self::admin(crate::AdminOpcode::SET_FEATURES, nsid);
        sqe.cdw10 = u32::from(set.fid.0) | flag(set.save, 31);
        sqe.cdw11 = set.value;
        sqe
    }

    /// Get Features (0Ah).
    pub fn get_features(nsid: u32, get: GetFeatures) -> Self {
        let mut sqe = Self::admin(crate::AdminOpcode::GET_FEATURES, nsid);
        sqe.cdw10 = u32::from(get.fid.0) | u32::from(get.select.to_bits()) << 8;
        sqe.cdw11 = get.selector;
        sqe
    }

    /// Identify (06h).
    pub fn identify(nsid: u32, identify: Identify) -> Self {
        let mut sqe = Self::admin(crate::AdminOpcode::IDENTIFY, nsid);
        sqe.cdw10 = u32::from(identify.cns.0) | u32::from(identify.cntid) << 16;
        sqe.cdw11 = u32::from(identify.csi) << 24;
        sqe
    }

    /// Abort (08h).
    pub fn abort(abort: Abort) -> Self {
        let mut sqe = Self::admin(crate::AdminOpcode::ABORT, 0);
        sqe.cdw10 = u32::from(abort.sqid) | u32::from(abort.cid) << 16;
        sqe
    }

    /// Asynchronous Event Request (0Ch).
    pub fn async_event_request() -> Self {
        Self::admin(crate::AdminOpcode::ASYNC_EVENT_REQUEST, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_log_page_spreads_its_count_over_two_dwords() {
        let get = GetLogPage {
            lid: LogPageId::CHUNK_INFORMATION,
            lsp: 0x5,
            retain_event: true,
            dword_count: 0x1234_5679,
            offset_bytes: 0x1_0000_0020,
            csi: 2,
        };
        let bytes = Sqe::get_log_page(1, get).encode();
        assert_eq!(bytes[0], 0x02);
        assert_eq!(bytes[40..44], [0xCA, 0x85, 0x78, 0x56]);
        assert_eq!(bytes[44..48], [0x34, 0x12, 0, 0]);
        assert_eq!(bytes[48..56], [0x20, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(GetLogPage::of(&Sqe::decode(&bytes)), get);
        assert_eq!(get.byte_count(), 0x1234_5679 * 4);
    }

    #[test]
    fn the_largest_log_page_does_not_overflow() {
        let sqe = Sqe { cdw10: 0xFFFF_0000, cdw11: 0xFFFF, ..Sqe::default() };
        assert_eq!(GetLogPage::of(&sqe).byte_count(), 1 << 34);
        assert_eq!(GetLogPage::of(&Sqe::get_log_page(1, GetLogPage::of(&sqe))), GetLogPage::of(&sqe));
    }

    #[test]
    fn features_have_their_identifier_save_bit_and_value() {
        let set = SetFeatures { fid: FeatureId::MEDIA_FEEDBACK, save: true, value: 3 };
        let sqe = Sqe::set_features(1, set);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw11), (0x09, 0x8000_00CA, 3));
        assert_eq!(SetFeatures::of(&sqe), set);
        let get = GetFeatures { fid: FeatureId::ERROR_RECOVERY, select: Select::Saved, selector: 0 };
        let sqe = Sqe::get_features(1, get);
        assert_eq!((sqe.opcode, sqe.cdw10), (0x0A, 0x0205));
        assert_eq!(GetFeatures::of(&sqe), get);
    }

    #[test]
    fn identify_abort_geometry_and_event_requests_are_placed() {
        let identify = Identify { cns: Cns::ACTIVE_NAMESPACES, cntid: 0x1234, csi: 2 };
        let sqe = Sqe::identify(0, identify);
        assert_eq!((sqe.opcode, sqe.cdw10, Identify::of(&sqe)), (0x06, 0x1234_0002, identify));
        let abort = Abort { sqid: 3, cid: 0xABCD };
        let sqe = Sqe::abort(abort);
        assert_eq!((sqe.opcode, sqe.cdw10, Abort::of(&sqe)), (0x08, 0xABCD_0003, abort));
        assert_eq!(Sqe::geometry(1).encode()[..8], [0xE2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(Sqe::async_event_request().opcode, 0x0C);
    }
}
