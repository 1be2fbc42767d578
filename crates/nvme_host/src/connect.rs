//! How a host begins: association, controller, the open-channel drive among its namespaces, and the claim of that drive.
//!
//! Linear code: one command after the other. Deliberately not here: what happens then (`drive`).

use crate::chunk_report::ChunkReport;
use crate::endpoint::Endpoint;
use crate::error::{HostError, HostErrorKind};
use crate::link::Link;
use ocssd_base::{Nanos, Problems, usize_of};
use ocssd_lightnvm::interface::table::TableLimits;
use ocssd_lightnvm::{Capabilities, Geometry, MediaTimes};
use ocssd_nvme::fabrics::{
    Configuration, Connect, ConnectData, ControllerStatus, DISCOVERY_NQN, DYNAMIC_CNTLID, DiscoveryEntry,
    DiscoveryHeader, PropertyGet, PropertySet, offset,
};
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController, IdentifyNamespace, NamespaceIds, NamespaceList, Uuid};
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::ocssd20::{self, ChunkDescriptor, Claim, ErrorRecovery, MediaFeedback};
use ocssd_nvme::sqe::{GetLogPage, Identify, SetFeatures};
use ocssd_nvme::tables::{self, TableNamespace};
use ocssd_nvme::{Cqe, Sqe, Status};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

/// The command set of an open-channel drive: a vendor's.
const OPEN_CHANNEL: u8 = 0x30;
/// Bits of CC that ask for all command sets (CC.CSS 110b, bits 6:4).
const ALL_COMMAND_SETS: u32 = 0b110 << 4;
/// Entries of the I/O queue (chosen: as many as a server of this project takes; one stays free).
pub const QUEUE_ENTRIES: u16 = 128;
/// Bytes of a page in which MDTS counts (CAP.MPSMIN is 0 on fabrics).
const PAGE_BYTES: usize = 4096;
/// Bytes of a log page that are asked for at once.
const LOG_BYTES: usize = 64 << 10;
/// How long a drive may be somebody else's before that is told: until a server has seen that a host before is gone (chosen).
const CLAIM_MAX: Duration = Duration::from_secs(2);
/// Time between two tries (chosen).
const CLAIM_AGAIN: Duration = Duration::from_millis(10);

/// A host's association with a server.
#[derive(Debug)]
pub(crate) struct Begun {
    pub admin: Link,
    pub io: Link,
    /// Data of one packet to the server at most.
    pub data_max: usize,
    /// Data of a command in its capsule at most.
    pub capsule_max: usize,
    /// Bytes that one command moves at most.
    pub transfer_max: u64,
}

/// An association, and the target of tables that was claimed there.
#[derive(Debug)]
pub struct TableAssociation {
    pub(crate) begun: Begun,
    pub(crate) nsid: u32,
    pub(crate) limits: TableLimits,
    /// Bytes that a request moves at most.
    pub(crate) bytes_max: usize,
    /// The target's name among all.
    pub uuid: Uuid,
}

/// An association, and the drive that was claimed there.
#[derive(Debug)]
pub struct Association {
    pub(crate) begun: Begun,
    /// The drive's namespace.
    pub(crate) nsid: u32,
    pub(crate) geometry: Geometry,
    /// Sectors that one command reads or writes at most.
    pub(crate) sectors_max: u32,
    pub(crate) report: ChunkReport,
    /// The drive's name among all.
    pub uuid: Uuid,
}

/// Who comes.
struct Visitor {
    hostid: [u8; 16],
    hostnqn: String,
}

impl Visitor {
    fn new(name: Option<&str>) -> Self {
        // Another each time: a server tells the hosts of one machine apart.
        let uuid = Uuid::of_seed(RandomState::new().build_hasher().finish());
        let hostnqn = name.map_or_else(|| format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"), str::to_owned);
        Self { hostid: uuid.0, hostnqn }
    }

    /// Makes a queue of a connection that has just been opened. Returns DW0.
    fn connect(&self, link: &mut Link, qid: u16, cntlid: u16, subnqn: &str) -> Result<u32, HostError> {
        let connect =
            Connect { recfmt: 0, qid, sqsize: QUEUE_ENTRIES - 1, no_flow_control: true, kato_ms: 0 };
        let data = ConnectData {
            hostid: self.hostid,
            cntlid,
            subnqn: subnqn.to_owned(),
            hostnqn: self.hostnqn.clone(),
        };
        let cqe = link.connect(connect, &data)?;
        let address = link.address();
        let why = match (cqe.status.status.to_bits(), cqe.dw0) {
            (0, dw0) => return Ok(dw0),
            (0x182, 0x1_0100) => format!("there is no subsystem {subnqn} at {address}"),
            (0x184, _) => format!(
                "the server at {address} does not serve this host, {}; name one that it serves behind ?host=",
                self.hostnqn
            ),
            (0x181, _) => format!("the server at {address} has as many hosts as it takes"),
            (status, _) => format!("the server at {address} refuses to connect: status {status:03X}h"),
        };
        Err(HostError::new(HostErrorKind::Invalid, why))
    }

    /// An admin queue whose controller is ready, and the controller's number.
    fn controller(&self, address: &str, subnqn: &str) -> Result<(Link, u16), HostError> {
        let mut admin = Link::open(address)?;
        admin.greet()?;
        let dw0 = self.connect(&mut admin, 0, DYNAMIC_CNTLID, subnqn)?;
        let enable = Configuration { enable: true, shutdown: 0 }.to_bits() | ALL_COMMAND_SETS;
        let set = PropertySet { is_long: false, offset: offset::CC, value: enable.into() };
        succeeded("enable the controller", admin.ask(Sqe::property_set(set), &mut [])?)?;
        let until = Instant::now() + CLAIM_MAX;
        loop {
            let get = PropertyGet { is_long: false, offset: offset::CSTS };
            let status = succeeded("ask for its state", admin.ask(Sqe::property_get(get), &mut [])?)?.dw0;
            if ControllerStatus::from_bits(status).ready {
                let [low, high, ..] = dw0.to_le_bytes();
                return Ok((admin, u16::from_le_bytes([low, high])));
            }
            if Instant::now() > until {
                return Err(HostError::broken(format!("the controller at {address} does not become ready")));
            }
            std::thread::sleep(CLAIM_AGAIN);
        }
    }

    /// The only subsystem with namespaces at an address.
    fn discover(&self, address: &str) -> Result<String, HostError> {
        let (mut admin, _) = self.controller(address, DISCOVERY_NQN)?;
        let mut page = vec![0; LOG_BYTES];
        log_page(&mut admin, 0, LogPageId::DISCOVERY, 0, &mut page)?;
        let damaged = |error| HostError::broken(format!("the discovery log at {address}: {error}"));
        let header = DiscoveryHeader::decode(&page).map_err(damaged)?;
        let count = usize::try_from(header.count).unwrap_or(usize::MAX);
        let entries = page[DiscoveryHeader::BYTES..].chunks_exact(DiscoveryEntry::BYTES).take(count);
        let found: Result<Vec<DiscoveryEntry>, _> = entries.map(DiscoveryEntry::decode).collect();
        let found =
            found.map_err(damaged)?.into_iter().filter(|one| one.subtype == DiscoveryEntry::NVM_SUBSYSTEM);
        let names: Vec<String> = found.map(|one| one.subnqn.text()).collect();
        match &names[..] {
            [name] => Ok(name.clone()),
            _ => {
                let sentence = format!(
                    "there are {} subsystems at {address} ({}); name one, as in nvme-tcp://{address}/NQN",
                    names.len(),
                    names.join(", ")
                );
                Err(HostError::new(HostErrorKind::NotFound, sentence))
            }
        }
    }
}

fn succeeded(doing: &str, cqe: Cqe) -> Result<Cqe, HostError> {
    let status = cqe.status.status;
    if status.is_success() {
        Ok(cqe)
    } else {
        Err(HostError::broken(format!("{doing}: the server answers with {status}")))
    }
}

fn log_page(admin: &mut Link, nsid: u32, lid: LogPageId, at: u64, into: &mut [u8]) -> Result<(), HostError> {
    let dword_count = u64::try_from(into.len() / 4).expect("a length");
    let get = GetLogPage { lid, lsp: 0, retain_event: true, dword_count, offset_bytes: at, csi: 0 };
    succeeded("read a log page", admin.ask(Sqe::get_log_page(nsid, get), into)?).map(|_| ())
}

fn identify(admin: &mut Link, nsid: u32, cns: Cns) -> Result<Vec<u8>, HostError> {
    let mut page = vec![0; PAGE_BYTES];
    succeeded("identify", admin.ask(Sqe::identify(nsid, Identify { cns, cntid: 0, csi: 0 }), &mut page)?)?;
    Ok(page)
}

/// The first namespace of a command set, or the one of this number if it is of that set; `what` says what that is.
fn find(
    admin: &mut Link,
    csi: u8,
    number: Option<u32>,
    what: &str,
) -> Result<(u32, NamespaceIds), HostError> {
    let list = NamespaceList::decode(&identify(admin, 0, Cns::ACTIVE_NAMESPACES)?);
    for &nsid in list.map_err(|error| damaged(&error))?.nsids() {
        let ids = NamespaceIds::decode(&identify(admin, nsid, Cns::NAMESPACE_IDS)?);
        let ids = ids.map_err(|error| damaged(&error))?;
        if ids.csi == Some(csi) && number.is_none_or(|number| number == nsid) {
            return Ok((nsid, ids));
        }
    }
    let place = number.map_or_else(String::new, |number| format!(" as namespace {number}"));
    let sentence = format!("the server at {} serves no {what}{place} beside --nvme-tcp", admin.address());
    Err(HostError::new(HostErrorKind::NotFound, sentence))
}

/// The drive's shape, of which metadata have `oob_bytes` bytes.
fn shape(wire: &ocssd20::Geometry, sector_bytes: u32, oob_bytes: u32) -> Result<Geometry, HostError> {
    let time = |ns: u32| Nanos(ns.into());
    let geometry = Geometry {
        groups: wire.num_grp.into(),
        pus_per_group: wire.num_pu.into(),
        chunks_per_pu: wire.num_chk,
        sectors_per_chunk: wire.clba,
        sector_bytes,
        oob_bytes,
        ws_min: wire.ws_min,
        ws_opt: wire.ws_opt,
        mw_cunits: wire.mw_cunits,
        max_open_chunks: wire.maxoc,
        max_open_chunks_per_pu: wire.maxocpu,
        wear_index_threshold: wire.wit,
        lba_format: wire.lbaf,
        // A copy names two lists, and a capsule carries none.
        capabilities: Capabilities {
            vector_copy: false,
            multiple_resets: wire.mccap.multiple_resets,
            early_reset: wire.mccap.early_reset,
        },
        times: MediaTimes {
            read_typical: time(wire.trdt_ns),
            read_max: time(wire.trdm_ns),
            write_typical: time(wire.twrt_ns),
            write_max: time(wire.twrm_ns),
            reset_typical: time(wire.tcrst_ns),
            reset_max: time(wire.tcrsm_ns),
        },
    };
    let mut problems = Problems::default();
    geometry.check(&mut problems);
    let sound = problems.into_result().map(|()| geometry);
    sound.map_err(|problems| {
        HostError::broken(format!("the server says that its drive has a shape no drive can have: {problems}"))
    })
}

/// Takes the drive for this host; returns bytes of metadata beside a sector.
fn claim(io: &mut Link, nsid: u32) -> Result<u32, HostError> {
    let until = Instant::now() + CLAIM_MAX;
    loop {
        let cqe = io.ask(Sqe::claim_drive(nsid, Claim::Take), &mut [])?;
        let address = io.address();
        match cqe.status.status {
            Status::SUCCESS => return Ok(cqe.dw0),
            Status::RESERVATION_CONFLICT | Status::NAMESPACE_NOT_READY if Instant::now() < until => {
                std::thread::sleep(CLAIM_AGAIN);
            }
            Status::RESERVATION_CONFLICT | Status::NAMESPACE_NOT_READY => {
                let sentence =
                    format!("another host has what {address} serves as namespace {nsid}; end that one first");
                return Err(HostError::new(HostErrorKind::Busy, sentence));
            }
            status => {
                let sentence = format!(
                    "the server at {address} does not let a host have a namespace alone ({status}); it must be `ocssd serve` of this \
                     version"
                );
                return Err(HostError::new(HostErrorKind::Invalid, sentence));
            }
        }
    }
}

/// The drive is to say what targets want to know: that a sector was never written, and that one is weak.
fn tell_all(admin: &mut Link, nsid: u32) -> Result<(), HostError> {
    let recovery = ErrorRecovery { tler_100ms: 0, dulbe: true }.to_dword();
    let feedback = MediaFeedback { hecc: true, vhecc: true }.to_dword();
    for (fid, value) in [(FeatureId::ERROR_RECOVERY, recovery), (FeatureId::MEDIA_FEEDBACK, feedback)] {
        let set = SetFeatures { fid, save: false, value };
        succeeded("set what reads report", admin.ask(Sqe::set_features(nsid, set), &mut [])?)?;
    }
    Ok(())
}

/// What the drive reports of its chunks.
fn chunk_report(admin: &mut Link, nsid: u32, geometry: &Geometry) -> Result<ChunkReport, HostError> {
    let mut page = vec![0; usize_of(geometry.chunk_count()) * ChunkDescriptor::BYTES];
    for (number, part) in (0..).zip(page.chunks_mut(LOG_BYTES)) {
        let at: u64 = number * u64::try_from(LOG_BYTES).expect("64 KiB");
        log_page(admin, nsid, LogPageId::CHUNK_INFORMATION, at, part)?;
    }
    ChunkReport::of_page(&page, geometry)
}

impl Begun {
    /// Connects to a server: an admin queue and an I/O queue.
    fn open(endpoint: &Endpoint) -> Result<Self, HostError> {
        let visitor = Visitor::new(endpoint.host.as_deref());
        let address = &endpoint.address;
        let subnqn = match &endpoint.subsystem {
            Some(name) => name.clone(),
            None => visitor.discover(address)?,
        };
        let (mut admin, cntlid) = visitor.controller(address, &subnqn)?;
        let queues = SetFeatures { fid: FeatureId::NUMBER_OF_QUEUES, save: false, value: 0 };
        succeeded("ask for a queue", admin.ask(Sqe::set_features(0, queues), &mut [])?)?;
        let mut io = Link::open(address)?;
        let data_max = io.greet()?;
        visitor.connect(&mut io, 1, cntlid, &subnqn)?;
        let controller = IdentifyController::decode(&identify(&mut admin, 0, Cns::CONTROLLER)?);
        let controller = controller.map_err(|error| damaged(&error))?;
        let capsule_bytes = usize_of(controller.fabrics.ioccsz).saturating_mul(16);
        let capsule_max = capsule_bytes.saturating_sub(Sqe::BYTES);
        let transfer_max =
            if controller.mdts == 0 { u32::MAX.into() } else { 4096_u64 << controller.mdts.min(20) };
        Ok(Self { admin, io, data_max, capsule_max, transfer_max })
    }
}

fn damaged(error: &dyn std::fmt::Display) -> HostError {
    HostError::broken(format!("what the server says of itself: {error}"))
}

fn uuid_of(ids: &NamespaceIds) -> Uuid {
    Uuid(ids.uuid.or(ids.nguid).unwrap_or_default())
}

impl Association {
    /// Connects to a server, and claims the open-channel drive that it serves.
    ///
    /// # Errors
    /// If there is none, another host has it, or it is none that capsules can carry.
    pub fn open(endpoint: &Endpoint) -> Result<Self, HostError> {
        let mut begun = Begun::open(endpoint)?;
        let what = "open-channel drive; start it with --raw DRIVE";
        let (nsid, ids) = find(&mut begun.admin, OPEN_CHANNEL, None, what)?;
        let oob_bytes = claim(&mut begun.io, nsid)?;
        tell_all(&mut begun.admin, nsid)?;
        let (geometry, sectors_max) = sizes(&mut begun, nsid, oob_bytes)?;
        let report = chunk_report(&mut begun.admin, nsid, &geometry)?;
        Ok(Self { begun, nsid, geometry, sectors_max, report, uuid: uuid_of(&ids) })
    }
}

impl TableAssociation {
    /// Connects to a server, and claims a target of tables that it serves: the one that is namespace `number`, or the first.
    ///
    /// # Errors
    /// If there is none, or another host has it.
    pub fn open(endpoint: &Endpoint, number: Option<u32>) -> Result<Self, HostError> {
        let mut begun = Begun::open(endpoint)?;
        let what = "target of tables; start it with --export tables=lightlsm";
        let (nsid, ids) = find(&mut begun.admin, tables::CSI, number, what)?;
        claim(&mut begun.io, nsid)?;
        let mut page = vec![0; PAGE_BYTES];
        let ask = Identify { cns: Cns::COMMAND_SET_NAMESPACE, cntid: 0, csi: tables::CSI };
        succeeded("identify tables", begun.admin.ask(Sqe::identify(nsid, ask), &mut page)?)?;
        let found = TableNamespace::decode(&page).map_err(|error| damaged(&error))?;
        let limits = TableLimits {
            tables_max: found.tables_max,
            table_bytes_max: found.table_bytes_max,
            attributes_bytes_max: found.attributes_bytes_max,
            edits_max: found.edits_max,
            capacity_bytes: found.nsze,
        };
        let bytes_max = usize::try_from(begun.transfer_max).unwrap_or(usize::MAX);
        Ok(Self { begun, nsid, limits, bytes_max, uuid: uuid_of(&ids) })
    }
}

/// The drive's shape, and how many sectors a command moves at most.
fn sizes(begun: &mut Begun, nsid: u32, oob_bytes: u32) -> Result<(Geometry, u32), HostError> {
    let (admin, transfer) = (&mut begun.admin, begun.transfer_max);
    let namespace = IdentifyNamespace::decode(&identify(admin, nsid, Cns::NAMESPACE)?);
    let namespace = namespace.map_err(|error| damaged(&error))?;
    let sector_bytes = namespace.format().block_bytes().and_then(|bytes| u32::try_from(bytes).ok());
    let sector_bytes = sector_bytes.ok_or_else(|| damaged(&"its drive has no sectors"))?;
    let mut page = vec![0; PAGE_BYTES];
    succeeded("ask for the geometry", admin.ask(Sqe::geometry(nsid), &mut page)?)?;
    let wire = ocssd20::Geometry::decode(&page).map_err(|error| damaged(&error))?;
    let geometry = shape(&wire, sector_bytes, oob_bytes)?;
    let sectors = transfer / u64::from(sector_bytes + oob_bytes);
    // 64 is what the bitmap of a vector command has.
    let sectors = u32::try_from(sectors.min(ocssd_lightnvm::VECTOR_MAX.into())).expect("at most 64");
    if sectors < geometry.ws_min {
        let sentence = format!(
            "the drive is written in {} sectors of {sector_bytes} bytes and {oob_bytes} of metadata, which is more than the \
             {transfer} bytes that the server moves at once; serve a drive with a smaller ws_min",
            geometry.ws_min
        );
        return Err(HostError::new(HostErrorKind::Invalid, sentence));
    }
    Ok((geometry, sectors))
}
