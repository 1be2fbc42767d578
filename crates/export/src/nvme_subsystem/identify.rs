//! Identify: what controllers and namespaces say about themselves.

use super::admin::EVENT_REQUESTS_MAX;
use super::association::{Bound, CHANGED_ZONES_BIT, ERRORS_MAX, KEEP_ALIVE_GRANULARITY, Purpose};
use super::key_value;
use super::pages::namespace as of_pages;
use super::subsystem::{Namespace, namespace};
use super::tables::namespace as of_tables;
use super::zoned;
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportKind};
use crate::pool::{PIECE_BYTES_MAX, WHOLE_BYTES_MAX};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::DISCOVERY_NQN;
use ocssd_nvme::identify::{
    AtomicSizes, Cns, DeallocatedRead, IdentifyController, IdentifyNamespace, IndependentNamespace,
    LbaDataFormat, NSFEAT_ATOMIC_SIZES, NSFEAT_PREFERRED_SIZES, NamespaceIds, NamespaceList, PreferredSizes,
    Text, VENDOR_OCSSD,
};
use ocssd_nvme::sqe::Identify;
use ocssd_nvme::{Sqe, kv, pages, tables, zns};

/// The NVM command set.
pub(super) const CSI_NVM: u8 = 0x00;
/// The raw drive's: the first number that is a vendor's (NVMe base 2.0 figure 274).
pub(super) const CSI_RAW: u8 = 0x30;

/// Bytes of every structure.
const STRUCTURE_BYTES: usize = 4096;
/// The smallest page, the unit of MDTS.
const PAGE_BYTES: usize = 4096;
/// ONCS: compare (0), dataset management (2), write zeroes (3), save and select of features (4).
const OPTIONAL_COMMANDS: u16 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4;
/// VWC: there is a cache (0), and Flush takes all namespaces (2:1).
const WRITE_CACHE: u8 = 0b111;
/// CTRATT: any command keeps the association alive (6).
const TRAFFIC_KEEPS_ALIVE: u32 = 1 << 6;
/// LPA: effects log (1), offsets in pages (2).
const LOG_PAGES: u8 = 0b110;

impl Bound {
    /// What Identify returns.
    pub(super) fn identify(&self, sqe: &Sqe, dispatcher: &Dispatcher) -> Result<Vec<u8>, Status> {
        let identify = Identify::of(sqe);
        if identify.cns == Cns::CONTROLLER {
            return Ok(self.controller(dispatcher)?.encode().into());
        }
        if self.purpose == Purpose::Discovery {
            return Err(Status::INVALID_FIELD);
        }
        let all = namespaces(dispatcher);
        let one = || {
            namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some())
                .ok_or(Status::INVALID_NAMESPACE)
        };
        match identify.cns {
            Cns::NAMESPACE => Ok(structure(one()?, dispatcher)?.encode().into()),
            Cns::ACTIVE_NAMESPACES if sqe.nsid >= u32::MAX - 1 => Err(Status::INVALID_NAMESPACE),
            Cns::ACTIVE_NAMESPACES => Ok(NamespaceList::greater_than(sqe.nsid, &all).encode().into()),
            Cns::NAMESPACE_IDS => Ok(ids(one()?, dispatcher).encode().into()),
            Cns::COMMAND_SET_NAMESPACE => of_command_set(one()?, identify.csi, dispatcher),
            Cns::COMMAND_SET_CONTROLLER if identify.csi == zns::CSI && is_known(zns::CSI, dispatcher) => {
                Ok(zoned::controller(dispatcher.exports.iter()).encode().into())
            }
            // VSL, then WZSL, which is of all namespaces.
            Cns::COMMAND_SET_CONTROLLER if identify.csi == 0 && is_known(zns::CSI, dispatcher) => {
                let mut limits = vec![0; STRUCTURE_BYTES];
                limits[1] = zoned::zeroes_limit();
                Ok(limits)
            }
            // Nothing says anything about a controller of other command sets here: no limits.
            Cns::COMMAND_SET_CONTROLLER if is_known(identify.csi, dispatcher) => Ok(vec![0; STRUCTURE_BYTES]),
            Cns::COMMAND_SET_ACTIVE_NAMESPACES if is_known(identify.csi, dispatcher) => {
                let of = |nsid: &u32| {
                    namespace(*nsid, &dispatcher.exports, true)
                        .is_some_and(|found| csi(found) == identify.csi)
                };
                let some: Vec<u32> = all.into_iter().filter(of).collect();
                Ok(NamespaceList::greater_than(sqe.nsid, &some).encode().into())
            }
            Cns::INDEPENDENT_NAMESPACE => Ok(independent(one()?, dispatcher).encode().into()),
            Cns::COMMAND_SETS => Ok(command_sets(dispatcher)),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn controller(&self, dispatcher: &Dispatcher) -> Result<IdentifyController, Status> {
        let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
        let association = subsystem.association(self.cntlid).ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        let transport = association.transport;
        let discovers = self.purpose == Purpose::Discovery;
        let kas = u16::try_from(KEEP_ALIVE_GRANULARITY.0 / Nanos::from_millis(100).0).expect("few");
        let (name, cntrltype) =
            if discovers { (DISCOVERY_NQN, 2) } else { (subsystem.config.nqn.as_str(), 1) };
        let nn = u32::try_from(namespaces(dispatcher).len()).expect("few");
        Ok(IdentifyController {
            vid: VENDOR_OCSSD,
            ssvid: VENDOR_OCSSD,
            sn: text(&subsystem.config.uuid.serial()),
            mn: text(transport.model),
            fr: text(env!("CARGO_PKG_VERSION")),
            mdts: u8::try_from((transfer_bytes_max(dispatcher) / PAGE_BYTES).ilog2()).expect("a logarithm"),
            cntlid: self.cntlid,
            ver: transport.version,
            ctratt: if transport.keeps_alive { TRAFFIC_KEEPS_ALIVE } else { 0 },
            cntrltype,
            oacs: transport.oacs,
            acl: 0,
            oaes: if is_known(zns::CSI, dispatcher) { 1 << CHANGED_ZONES_BIT } else { 0 },
            aerl: u8::try_from(EVENT_REQUESTS_MAX - 1).expect("few"),
            frmw: 0b11,
            lpa: LOG_PAGES,
            elpe: u8::try_from(ERRORS_MAX - 1).expect("few"),
            kas: if transport.keeps_alive { kas } else { 0 },
            sqes: 0x66,
            cqes: 0x44,
            maxcmd: transport.commands_max,
            nn: if discovers { 0 } else { nn },
            oncs: if discovers { 0 } else { OPTIONAL_COMMANDS },
            vwc: if discovers { 0 } else { WRITE_CACHE },
            awun: if discovers { 0 } else { atomic_in_all(dispatcher) },
            awupf: if discovers { 0 } else { atomic_in_all(dispatcher) },
            sgls: transport.sgls,
            subnqn: name.to_owned(),
            fabrics: transport.fabrics,
            ..IdentifyController::default()
        })
    }
}

/// What of a text fits the field.
fn text<const N: usize>(whole: &str) -> Text<N> {
    Text::new(&whole.chars().take(N).collect::<String>()).expect("printable and short enough")
}

/// Numbers of all namespaces.
pub(super) fn namespaces(dispatcher: &Dispatcher) -> Vec<u32> {
    let has_raw = dispatcher.raw.is_some();
    let all = (1..).take(dispatcher.exports.len() + usize::from(has_raw));
    all.filter(|nsid| namespace(*nsid, &dispatcher.exports, has_raw).is_some()).collect()
}

const fn csi(namespace: Namespace) -> u8 {
    match namespace {
        Namespace::Block(_) => CSI_NVM,
        Namespace::Zoned(_) => zns::CSI,
        Namespace::KeyValue(_) => kv::CSI,
        Namespace::Pages(_) => pages::CSI,
        Namespace::Tables(_) => tables::CSI,
        Namespace::Raw => CSI_RAW,
    }
}

/// There can be namespaces of this command set.
pub(super) fn is_known(csi: u8, dispatcher: &Dispatcher) -> bool {
    let has = |found: fn(&ExportKind) -> bool| dispatcher.exports.iter().any(|export| found(&export.kind));
    match csi {
        CSI_NVM => true,
        CSI_RAW => dispatcher.raw.is_some(),
        zns::CSI => has(|kind| matches!(kind, ExportKind::Zoned(_))),
        kv::CSI => has(|kind| matches!(kind, ExportKind::KeyValue(_))),
        pages::CSI => has(|kind| matches!(kind, ExportKind::Log(_))),
        tables::CSI => has(|kind| matches!(kind, ExportKind::Table(_))),
        _ => false,
    }
}

/// All names of a namespace that it has.
fn ids(namespace: Namespace, dispatcher: &Dispatcher) -> NamespaceIds {
    let (nguid, eui64) = match namespace {
        Namespace::Block(id)
        | Namespace::Zoned(id)
        | Namespace::KeyValue(id)
        | Namespace::Pages(id)
        | Namespace::Tables(id) => names(dispatcher.exports.get(id)),
        Namespace::Raw => {
            let raw = dispatcher.raw.as_ref().expect("it was found");
            let IdentifyNamespace { nguid, eui64, .. } = raw.drive.identify_namespace();
            (nguid, eui64)
        }
    };
    let nguid = Some(nguid).filter(|nguid| *nguid != [0; 16]);
    let eui64 = Some(eui64).filter(|eui64| *eui64 != [0; 8]);
    // The NGUID is the UUID.
    NamespaceIds { eui64, nguid, uuid: nguid, csi: Some(csi(namespace)) }
}

/// NGUID and EUI64 of an export; zeroes of one that has none.
fn names(export: &Export) -> ([u8; 16], [u8; 8]) {
    (export.uuid.0, if export.uuid.is_nil() { [0; 8] } else { export.uuid.eui64() })
}

/// What the namespace's own command set says of it, or another that it is based on.
fn of_command_set(namespace: Namespace, csi: u8, dispatcher: &Dispatcher) -> Result<Vec<u8>, Status> {
    let kind = |id| (dispatcher.exports.get(id), dispatcher.exports.get(id).kind);
    match (namespace, csi) {
        (Namespace::Zoned(id), zns::CSI) => match kind(id) {
            (_, ExportKind::Zoned(zones)) => Ok(zoned::namespace(&zones).encode().into()),
            _ => unreachable!("a namespace of zones is an export of zones"),
        },
        (Namespace::KeyValue(id), kv::CSI) => match kind(id) {
            (export, ExportKind::KeyValue(limits)) => {
                let used = dispatcher.used_bytes(id);
                Ok(key_value::namespace((export, used), &limits, PIECE_BYTES_MAX).encode().into())
            }
            _ => unreachable!("a namespace of keys is an export of keys"),
        },
        (Namespace::Pages(id), pages::CSI) => match kind(id) {
            (export, ExportKind::Log(limits)) => Ok(of_pages(export, &limits).encode().into()),
            _ => unreachable!("a namespace of pages is an export of pages"),
        },
        (Namespace::Tables(id), tables::CSI) => match kind(id) {
            (export, ExportKind::Table(limits)) => Ok(of_tables(export, &limits).encode().into()),
            _ => unreachable!("a namespace of tables is an export of tables"),
        },
        // It says nothing here: no limits, no protection.
        (Namespace::Block(_) | Namespace::Zoned(_), CSI_NVM) | (Namespace::Raw, CSI_RAW) => {
            Ok(vec![0; STRUCTURE_BYTES])
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// What is said of blocks; keys, pages and tables have none.
fn structure(namespace: Namespace, dispatcher: &Dispatcher) -> Result<IdentifyNamespace, Status> {
    Ok(match namespace {
        Namespace::Block(id) | Namespace::Zoned(id) => {
            block_structure(dispatcher.exports.get(id), transfer_bytes_max(dispatcher))
        }
        Namespace::KeyValue(_) | Namespace::Pages(_) | Namespace::Tables(_) => {
            return Err(Status::INVALID_FIELD);
        }
        Namespace::Raw => {
            let raw = dispatcher.raw.as_ref().expect("it was found");
            // Metadata cannot be reached through a capsule.
            let mut found = raw.drive.identify_namespace();
            found.mc = 0;
            found.lbaf.iter_mut().for_each(|format| format.ms_bytes = 0);
            found
        }
    })
}

/// What hosts are told of an export. A sector of the drive is written as one, whatever part of it a command names, and never
/// found half written: a write within one is atomic. What is no whole sector is read first, or not discarded.
fn block_structure(export: &Export, transfer_bytes: usize) -> IdentifyNamespace {
    let sector = sector_blocks(export);
    let (held, reads_zeroes) = match export.kind {
        ExportKind::Zoned(zones) => {
            (zones.capacity_blocks * u64::from(zones.zone_count), zoned::reads_zeroes(&zones))
        }
        _ => (export.block_count, export.has_map),
    };
    let (nguid, eui64) = names(export);
    IdentifyNamespace {
        nsze: export.block_count,
        ncap: held,
        nuse: held,
        nsfeat: NSFEAT_ATOMIC_SIZES | NSFEAT_PREFERRED_SIZES,
        lbaf: vec![LbaDataFormat {
            ms_bytes: 0,
            lbads: u8::try_from(export.block_bytes.ilog2()).expect("a logarithm"),
            rp: 0,
        }],
        format_index: 0,
        extended_lba: false,
        mc: 0,
        nmic: 0,
        nsattr: export.read_only.into(),
        dpc: 0,
        dps: 0,
        deallocated_read: if reads_zeroes { DeallocatedRead::Zeros } else { DeallocatedRead::NotReported },
        atomic: atomic_sizes(export, sector, transfer_bytes),
        preferred: PreferredSizes { npwg: sector, npwa: sector, npdg: sector, npda: sector, nows: sector },
        nvmcap_bytes: export.bytes().into(),
        nguid,
        eui64,
        lightnvm: false,
    }
}

/// The longest transfer (MDTS): where there are transactions longer than a usual piece, the longest of them, as long as all
/// namespaces are of blocks; zones, keys and the raw drive take no more than a usual piece in a command.
#[must_use]
pub fn transfer_bytes_max(dispatcher: &Dispatcher) -> usize {
    let is_of_blocks = |export: &Export| matches!(export.kind, ExportKind::Block);
    if dispatcher.raw.is_some() || !dispatcher.exports.iter().all(is_of_blocks) {
        return PIECE_BYTES_MAX;
    }
    let bytes = |export: &Export| u64::from(export.atomic_blocks) * u64::from(export.block_bytes);
    let longest = dispatcher.exports.iter().map(bytes).max().unwrap_or(0);
    let longest = usize::try_from(longest).unwrap_or(WHOLE_BYTES_MAX).clamp(PIECE_BYTES_MAX, WHOLE_BYTES_MAX);
    // MDTS is a power of two.
    1 << longest.ilog2()
}

/// AWUN and AWUPF, 0-based: what is written as one in every namespace, whatever its block is; a host that knows namespaces goes
/// by theirs.
fn atomic_in_all(dispatcher: &Dispatcher) -> u16 {
    let longest = transfer_bytes_max(dispatcher);
    let blocks = dispatcher.exports.iter().filter(|export| matches!(export.kind, ExportKind::Block));
    let sizes = blocks.map(|export| atomic_sizes(export, sector_blocks(export), longest));
    // These fields know no borders that a write must not cross.
    let anywhere = sizes.map(|sizes| if sizes.nabspf > 0 { 0 } else { sizes.nawupf });
    if dispatcher.raw.is_some() { 0 } else { anywhere.min().unwrap_or(0) }
}

/// Blocks of a sector, 0-based, as all sizes here.
fn sector_blocks(export: &Export) -> u16 {
    let blocks = export.preferred_bytes / export.block_bytes;
    assert!(blocks >= 1, "a block of {} bytes is larger than a sector", export.block_bytes);
    u16::try_from(blocks - 1).expect("a sector of 64 KiB has 128 blocks of 512 bytes")
}

/// What is written as one: a sector, or as many blocks as the target stores together, wherever they begin. A command is never
/// longer than `transfer_bytes`, and is one request.
fn atomic_sizes(export: &Export, sector: u16, transfer_bytes: usize) -> AtomicSizes {
    let piece = u32::try_from(transfer_bytes).expect("a transfer is short") / export.block_bytes;
    let together = u16::try_from(export.atomic_blocks.min(piece).saturating_sub(1)).unwrap_or(u16::MAX);
    if together <= sector {
        return AtomicSizes { nawun: sector, nawupf: sector, nabsn: sector, nabo: 0, nabspf: sector };
    }
    AtomicSizes { nawun: together, nawupf: together, nabsn: 0, nabo: 0, nabspf: 0 }
}

fn independent(namespace: Namespace, dispatcher: &Dispatcher) -> IndependentNamespace {
    let read_only = match namespace {
        Namespace::Block(id)
        | Namespace::Zoned(id)
        | Namespace::KeyValue(id)
        | Namespace::Pages(id)
        | Namespace::Tables(id) => dispatcher.exports.get(id).read_only,
        Namespace::Raw => false,
    };
    IndependentNamespace { nsattr: read_only.into(), nstat: 1, ..IndependentNamespace::default() }
}

/// CNS 1Ch: which command sets there are, a bit each; they are always all on.
fn command_sets(dispatcher: &Dispatcher) -> Vec<u8> {
    let known = [CSI_NVM, kv::CSI, zns::CSI, CSI_RAW, pages::CSI, tables::CSI]
        .into_iter()
        .filter(|csi| is_known(*csi, dispatcher));
    let sets = known.fold(0_u64, |sets, csi| sets | 1 << csi);
    let mut bytes = vec![0; STRUCTURE_BYTES];
    bytes[..8].copy_from_slice(&sets.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_transactions_says_how_much_is_written_as_one() {
        let whole = u16::try_from(WHOLE_BYTES_MAX / 4096).expect("small");
        for (atomic_blocks, block_bytes, expected) in [
            (1, 512, AtomicSizes { nawun: 7, nawupf: 7, nabsn: 7, nabo: 0, nabspf: 7 }),
            (1, 4096, AtomicSizes::default()),
            (64, 4096, AtomicSizes { nawun: 63, nawupf: 63, ..AtomicSizes::default() }),
            (256, 4096, AtomicSizes { nawun: 255, nawupf: 255, ..AtomicSizes::default() }),
            (u32::MAX, 4096, AtomicSizes { nawun: whole - 1, nawupf: whole - 1, ..AtomicSizes::default() }),
        ] {
            let export = Export { atomic_blocks, block_bytes, ..Export::example() };
            let found = block_structure(&export, WHOLE_BYTES_MAX).atomic;
            assert_eq!(found, expected, "{atomic_blocks} of {block_bytes} bytes");
        }
        let many = Export { atomic_blocks: 256, block_bytes: 4096, ..Export::example() };
        let cut = block_structure(&many, PIECE_BYTES_MAX).atomic;
        assert_eq!((cut.nawun, cut.nawupf), (63, 63), "no more than a command carries");
    }
}
