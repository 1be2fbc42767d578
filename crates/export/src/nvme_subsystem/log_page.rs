//! Get Log Page: errors, health, firmware, effects, and where subsystems are.
//!
//! Deliberately not here: the raw drive's own pages, which it answers itself.

use super::association::{Association, Bound, ERRORS_MAX, Purpose};
use super::identify::{CSI_RAW, is_known};
use super::subsystem::{Namespace, QUEUE_ENTRIES_MAX, namespace};
use crate::dispatcher::Dispatcher;
use crate::stats::Stats;
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::{
    AddressFamily, DISCOVERY_NQN, DYNAMIC_CNTLID, DiscoveryEntry, DiscoveryHeader, TextField,
};
use ocssd_nvme::identify::Text;
use ocssd_nvme::kv::{self, KvOpcode};
use ocssd_nvme::log_page::{CommandEffects, EffectsLog, ErrorLogEntry, FirmwareSlots, LogPageId, SmartLog};
use ocssd_nvme::pages::{self, PageOpcode};
use ocssd_nvme::sqe::GetLogPage;
use ocssd_nvme::tables::{self, TableOpcode};
use ocssd_nvme::{AdminOpcode, IoOpcode, Sqe, zns};
use std::net::SocketAddr;

/// Bytes of a data unit of the health page.
const DATA_UNIT_BYTES: u64 = 512 * 1000;

/// Spare that is never used up, because nothing here is measured; and where a drive would warn (percent).
const SPARE: (u8, u8) = (100, 10);

impl Bound {
    /// What a slice of a page holds; `room` is what the host has for it.
    pub(super) fn log_page(
        &self,
        sqe: &Sqe,
        room: usize,
        dispatcher: &mut Dispatcher,
    ) -> Result<Vec<u8>, Status> {
        let get = GetLogPage::of(sqe);
        let bytes = usize::try_from(get.byte_count()).ok().filter(|bytes| *bytes <= room);
        let bytes = bytes.ok_or(Status::INVALID_SGL_LENGTH)?;
        let page = self.page(sqe.nsid, &get, dispatcher)?;
        let offset = usize::try_from(get.offset_bytes)
            .ok()
            .filter(|offset| offset.is_multiple_of(4) && (*offset < page.len() || *offset == 0));
        let offset = offset.ok_or(Status::INVALID_FIELD)?;
        let mut slice: Vec<u8> = page.into_iter().skip(offset).take(bytes).collect();
        slice.resize(bytes, 0);
        Ok(slice)
    }

    fn page(&self, nsid: u32, get: &GetLogPage, dispatcher: &mut Dispatcher) -> Result<Vec<u8>, Status> {
        match get.lid {
            LogPageId::CHANGED_ZONES if !self.is_discovery() => self.changed_zones(nsid, get, dispatcher),
            LogPageId::DISCOVERY if self.is_discovery() => Ok(self.discovery(dispatcher)),
            LogPageId::ERROR_INFORMATION => Ok(self.errors(dispatcher)),
            LogPageId::SMART if !self.is_discovery() => Ok(self.health(dispatcher).encode().into()),
            LogPageId::FIRMWARE_SLOT if !self.is_discovery() => Ok(firmware().encode().into()),
            LogPageId::COMMAND_EFFECTS if !self.is_discovery() && is_known(get.csi, dispatcher) => {
                Ok(self.effects(get.csi, dispatcher).encode().into())
            }
            _ => Err(Status::INVALID_LOG_PAGE),
        }
    }

    /// Zones of a namespace that changed by themselves.
    fn changed_zones(
        &self,
        nsid: u32,
        get: &GetLogPage,
        dispatcher: &mut Dispatcher,
    ) -> Result<Vec<u8>, Status> {
        match namespace(nsid, &dispatcher.exports, dispatcher.raw.is_some()) {
            Some(Namespace::Zoned(_)) => {}
            Some(_) => return Err(Status::INVALID_LOG_PAGE),
            None => return Err(Status::INVALID_NAMESPACE),
        }
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let association = subsystem.association_mut(self.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        Ok(association.changed_zones(nsid, get.retain_event).encode().into())
    }

    fn errors(&self, dispatcher: &Dispatcher) -> Vec<u8> {
        let association = self.association(dispatcher);
        let entries = association.into_iter().flat_map(|one| &one.errors);
        let mut page: Vec<u8> = entries.flat_map(ErrorLogEntry::encode).collect();
        page.resize(ERRORS_MAX * ErrorLogEntry::BYTES, 0);
        page
    }

    /// What the server counted since it started; what nothing measures is zero.
    fn health(&self, dispatcher: &Dispatcher) -> SmartLog {
        let association = self.association(dispatcher);
        let Stats { reads, writes, received_bytes, sent_bytes, .. } = dispatcher.stats;
        SmartLog {
            available_spare: SPARE.0,
            available_spare_threshold: SPARE.1,
            data_units_read: sent_bytes.div_ceil(DATA_UNIT_BYTES).into(),
            data_units_written: received_bytes.div_ceil(DATA_UNIT_BYTES).into(),
            host_read_commands: reads.into(),
            host_write_commands: writes.into(),
            power_cycles: 1,
            error_log_entries: association.map_or(0, |one| one.error_count).into(),
            ..SmartLog::default()
        }
    }

    /// Commands of a command set, and what they do.
    fn effects(&self, csi: u8, dispatcher: &Dispatcher) -> EffectsLog {
        let mut log = EffectsLog::default();
        let admin = [
            AdminOpcode::GET_LOG_PAGE,
            AdminOpcode::IDENTIFY,
            AdminOpcode::ABORT,
            AdminOpcode::SET_FEATURES,
            AdminOpcode::GET_FEATURES,
            AdminOpcode::ASYNC_EVENT_REQUEST,
        ];
        let raw = dispatcher.raw.as_ref().map(|_| AdminOpcode::GEOMETRY);
        let transport = self.association(dispatcher).map(|association| association.transport);
        let own = transport.iter().flat_map(|transport| transport.admin).copied();
        let keep_alive =
            transport.is_some_and(|transport| transport.keeps_alive).then_some(AdminOpcode::KEEP_ALIVE);
        for opcode in admin.into_iter().chain(raw).chain(own).chain(keep_alive) {
            log.admin[usize::from(opcode.0)] = CommandEffects::SUPPORTED;
        }
        let (quiet, changes) = io_commands(csi);
        for opcode in quiet {
            log.io[usize::from(*opcode)] = CommandEffects::SUPPORTED;
        }
        for opcode in changes {
            log.io[usize::from(*opcode)] = CommandEffects::CHANGES;
        }
        log
    }

    fn association<'a>(&self, dispatcher: &'a Dispatcher) -> Option<&'a Association> {
        let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
        subsystem.association(self.cntlid)
    }

    fn is_discovery(&self) -> bool {
        self.purpose == Purpose::Discovery
    }

    /// The subsystem, at the address the host came to or the one that was given.
    fn discovery(&self, dispatcher: &Dispatcher) -> Vec<u8> {
        let local = self.association(dispatcher).and_then(|association| association.local);
        let config = &dispatcher.subsystem.as_ref().expect("an association lies in a subsystem").config;
        let mut page = DiscoveryHeader { generation: 1, count: 0, recfmt: 0 };
        let Some(address) = config.advertised.or(local) else { return page.encode().into() };
        page.count = 1;
        let adrfam = match address {
            SocketAddr::V4(_) => AddressFamily::IPV4,
            SocketAddr::V6(_) => AddressFamily::IPV6,
        };
        let entry = DiscoveryEntry {
            trtype: DiscoveryEntry::TCP,
            adrfam,
            subtype: DiscoveryEntry::NVM_SUBSYSTEM,
            treq: 0,
            portid: 1,
            cntlid: DYNAMIC_CNTLID,
            asqsz: QUEUE_ENTRIES_MAX,
            trsvcid: TextField::new(&address.port().to_string()),
            subnqn: TextField::new(&config.nqn),
            traddr: TextField::new(&address.ip().to_canonical().to_string()),
        };
        assert!(config.nqn != DISCOVERY_NQN, "discovery does not lead to itself");
        [&page.encode()[..], &entry.encode()[..]].concat()
    }
}

fn firmware() -> FirmwareSlots {
    let version: String = env!("CARGO_PKG_VERSION").chars().take(8).collect();
    let mut revisions = [None; 7];
    revisions[0] = Some(Text::new(&version).expect("printable and short enough"));
    FirmwareSlots { active_slot: 1, next_slot: 0, revisions }
}

/// Opcodes of a command set that change nothing, and those that change content.
const fn io_commands(csi: u8) -> (&'static [u8], &'static [u8]) {
    const FLUSH: u8 = IoOpcode::FLUSH.0;
    const READ: u8 = IoOpcode::READ.0;
    const COMPARE: u8 = IoOpcode::COMPARE.0;
    const WRITE: u8 = IoOpcode::WRITE.0;
    const RANGES: u8 = IoOpcode::DATASET_MANAGEMENT.0;
    match csi {
        CSI_RAW => (
            &[FLUSH, READ, IoOpcode::VECTOR_READ.0, IoOpcode::CLAIM_DRIVE.0],
            &[WRITE, RANGES, IoOpcode::VECTOR_RESET.0, IoOpcode::VECTOR_WRITE.0, IoOpcode::VECTOR_COPY.0],
        ),
        // Linux serves a namespace that has no Zone Append here for reading only.
        zns::CSI => (
            &[FLUSH, READ, COMPARE, RANGES, IoOpcode::ZONE_MANAGEMENT_RECEIVE.0],
            &[WRITE, IoOpcode::WRITE_ZEROES.0, IoOpcode::ZONE_APPEND.0, IoOpcode::ZONE_MANAGEMENT_SEND.0],
        ),
        kv::CSI => (
            &[
                KvOpcode::FLUSH.0,
                KvOpcode::RETRIEVE.0,
                KvOpcode::EXIST.0,
                KvOpcode::LIST.0,
                KvOpcode::STAGE_OPEN.0,
                KvOpcode::STAGE_APPEND.0,
                KvOpcode::STAGE_ABORT.0,
                KvOpcode::RETRIEVE_PART.0,
            ],
            &[KvOpcode::STORE.0, KvOpcode::DELETE.0, KvOpcode::STORE_STAGED.0],
        ),
        pages::CSI => (
            &[
                PageOpcode::FLUSH.0,
                PageOpcode::STAT.0,
                PageOpcode::READ_PAGE.0,
                PageOpcode::OPEN_SESSION.0,
                PageOpcode::CLOSE_SESSION.0,
                PageOpcode::STAGE_OPEN.0,
                PageOpcode::STAGE_APPEND.0,
                PageOpcode::STAGE_ABORT.0,
            ],
            &[PageOpcode::FLUSH_PAGES.0],
        ),
        tables::CSI => (
            &[
                TableOpcode::FLUSH.0,
                TableOpcode::READ.0,
                TableOpcode::ATTRIBUTES.0,
                TableOpcode::LIST.0,
                TableOpcode::SYNC.0,
                IoOpcode::CLAIM_DRIVE.0,
            ],
            &[TableOpcode::CREATE.0, TableOpcode::APPEND.0, TableOpcode::EDIT.0],
        ),
        _ => (&[FLUSH, READ, COMPARE], &[WRITE, RANGES, IoOpcode::WRITE_ZEROES.0]),
    }
}
