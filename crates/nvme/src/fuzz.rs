//! The entry for fuzzers and for seeded random tests: any bytes, through every decoder.
//!
//! `fuzz/fuzz_targets/nvme_decode.rs` and `tests/decode_random.rs` both call [`decode_everything`]. It asserts what
//! every decoder promises: no panic on any input, and what decodes also encodes to bytes that decode to the same
//! value.

use crate::address::{Lba, decode_list, encode_list};
use crate::fabrics::{
    Capabilities, Configuration, Connect, ConnectData, ControllerStatus, DiscoveryEntry, DiscoveryHeader,
    PropertyGet, PropertySet,
};
use crate::identify::{
    IdentifyController, IdentifyNamespace, IndependentNamespace, NamespaceIds, NamespaceList,
};
use crate::log_page::{AsyncEvent, EffectsLog, ErrorLogEntry, FirmwareSlots, SmartLog};
use crate::sgl::SglDescriptor;
use crate::sqe::{
    Abort, DatasetManagement, GetBbt, GetFeatures, GetLogPage, Identify, PpaIo, ReadWrite, SetBbt,
    SetFeatures, Vector, VectorCopy,
};
use crate::{Cqe, Sqe, StatusField, kv, ocssd12, ocssd20, zns};
use std::fmt::{Debug, Display};

/// Runs `data` through every decoder. Returns how many accepted it, so that a test can tell that some did.
///
/// # Panics
/// If a decoder breaks its promise.
pub fn decode_everything(data: &[u8]) -> usize {
    fixed_size(data)
        + identify_and_logs(data)
        + fabrics_structures(data)
        + ocssd20_structures(data)
        + ocssd12_structures(data)
        + zns_and_kv_structures(data)
}

/// `decode`, `encode`, `decode` again: the two values must be equal. An error must have a sentence.
fn round_trip<T, E, B>(data: &[u8], decode: impl Fn(&[u8]) -> Result<T, E>, encode: impl Fn(&T) -> B) -> usize
where
    T: PartialEq + Debug,
    E: Display,
    B: AsRef<[u8]>,
{
    let first = match decode(data) {
        Ok(value) => value,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error says what is wrong");
            return 0;
        }
    };
    match decode(encode(&first).as_ref()) {
        Ok(second) => assert_eq!(first, second, "encode and decode must agree"),
        Err(error) => panic!("what was encoded from {first:?} does not decode: {error}"),
    }
    1
}

fn fixed_size(data: &[u8]) -> usize {
    let mut accepted = 0;
    if let Some(bytes) = data.first_chunk::<{ Sqe::BYTES }>() {
        let sqe = Sqe::decode(bytes);
        assert_eq!(sqe, Sqe::decode(&sqe.encode()));
        command_views(&sqe);
        accepted += 1;
    }
    if let Some(bytes) = data.first_chunk::<{ Cqe::BYTES }>() {
        let cqe = Cqe::decode(bytes);
        assert_eq!(cqe, Cqe::decode(&cqe.encode()));
        assert_eq!(cqe.with_failed_entries(cqe.failed_entries()), cqe);
        assert!(!cqe.status.status.meaning().is_empty() && !cqe.status.to_string().is_empty());
        let sgl = SglDescriptor::decode(bytes);
        assert_eq!(sgl, SglDescriptor::decode(&sgl.encode()));
        accepted += 2;
    }
    if let Some(bytes) = data.first_chunk::<4>() {
        let dword = u32::from_le_bytes(*bytes);
        dword_fields(dword);
        accepted += 1;
    }
    accepted
}

/// Every view of an entry, put back into an entry by its builder, must read the same.
fn command_views(sqe: &Sqe) {
    let io = ReadWrite::of(sqe);
    assert_eq!(ReadWrite::of(&Sqe::read(1, io)), io);
    assert_eq!(ReadWrite::of(&Sqe::write(1, io)), io);
    let dsm = DatasetManagement::of(sqe);
    assert_eq!(DatasetManagement::of(&Sqe::dataset_management(1, dsm)), dsm);
    let vector = Vector::of(sqe);
    assert_eq!(Vector::of(&Sqe::vector_write(1, vector)), vector);
    assert_eq!(Vector::of(&Sqe::vector_read(1, vector)), vector);
    assert_eq!(Vector::of(&Sqe::vector_reset(1, vector.lbas, Some(sqe.mptr))).lbas, vector.lbas);
    let copy = VectorCopy::of(sqe);
    assert_eq!(VectorCopy::of(&Sqe::vector_copy(1, copy)), copy);
    let log = GetLogPage::of(sqe);
    if log.offset_bytes.is_multiple_of(4) {
        assert_eq!(GetLogPage::of(&Sqe::get_log_page(1, log)), log);
    }
    let (set, get) = (SetFeatures::of(sqe), GetFeatures::of(sqe));
    assert_eq!(SetFeatures::of(&Sqe::set_features(1, set)), set);
    assert_eq!(GetFeatures::of(&Sqe::get_features(1, get)), get);
    assert_eq!(Identify::of(&Sqe::identify(1, Identify::of(sqe))), Identify::of(sqe));
    assert_eq!(Abort::of(&Sqe::abort(Abort::of(sqe))), Abort::of(sqe));
    assert_eq!(GetBbt::of(&Sqe::get_bbt(1, GetBbt::of(sqe))), GetBbt::of(sqe));
    assert_eq!(Connect::of(&Sqe::connect(Connect::of(sqe))), Connect::of(sqe));
    assert_eq!(PropertyGet::of(&Sqe::property_get(PropertyGet::of(sqe))), PropertyGet::of(sqe));
    assert_eq!(PropertySet::of(&Sqe::property_set(PropertySet::of(sqe))), PropertySet::of(sqe));
    let send = zns::ZoneManagementSend::of(sqe);
    assert_eq!(zns::ZoneManagementSend::of(&Sqe::zone_management_send(1, send)), send);
    let receive = zns::ZoneManagementReceive::of(sqe);
    assert_eq!(zns::ZoneManagementReceive::of(&Sqe::zone_management_receive(1, receive)), receive);
    assert_eq!(receive.only().is_ok(), receive.filter < 8);
    let append = zns::ZoneAppend::of(sqe);
    assert_eq!(zns::ZoneAppend::of(&Sqe::zone_append(1, append)), append);
    let pair = kv::KeyValueCommand::of(sqe);
    assert_eq!(kv::KeyValueCommand::of(&Sqe::key_value(kv::KvOpcode::STORE, 1, pair)), pair);
    assert_eq!(pair.name().is_some(), usize::from(pair.key_bytes) <= kv::KEY_BYTES_MAX);
    if let Ok(set) = SetBbt::of(sqe) {
        assert_eq!(SetBbt::of(&Sqe::set_bbt(1, set)), Ok(set));
    }
    if let Ok(io) = PpaIo::of(sqe) {
        assert_eq!(PpaIo::of(&Sqe::ppa_write(1, io)), Ok(io));
    }
    if let Some(sgl) = sqe.sgl() {
        assert_eq!(sqe.with_sgl(&sgl).sgl(), Some(sgl));
    }
}

fn dword_fields(dword: u32) {
    let event = AsyncEvent::from_dword(dword);
    assert_eq!(AsyncEvent::from_dword(event.to_dword()), event);
    let recovery = ocssd20::ErrorRecovery::from_dword(dword);
    assert_eq!(ocssd20::ErrorRecovery::from_dword(recovery.to_dword()), recovery);
    let feedback = ocssd20::MediaFeedback::from_dword(dword);
    assert_eq!(ocssd20::MediaFeedback::from_dword(feedback.to_dword()), feedback);
    let configuration = Configuration::from_bits(dword);
    assert_eq!(Configuration::from_bits(configuration.to_bits()), configuration);
    let state = ControllerStatus::from_bits(dword);
    assert_eq!(ControllerStatus::from_bits(state.to_bits()), state);
    let capabilities = Capabilities::from_bits(u64::from(dword) << 16 | u64::from(dword));
    assert_eq!(Capabilities::from_bits(capabilities.to_bits()), capabilities);
    let status = StatusField::from_bits(crate::wire::low_half(dword));
    assert_eq!(StatusField::from_bits(status.to_bits()), status);
}

fn identify_and_logs(data: &[u8]) -> usize {
    round_trip(data, IdentifyController::decode, IdentifyController::encode)
        + round_trip(data, IdentifyNamespace::decode, IdentifyNamespace::encode)
        + round_trip(data, NamespaceIds::decode, NamespaceIds::encode)
        + round_trip(data, NamespaceList::decode, NamespaceList::encode)
        + round_trip(data, ErrorLogEntry::decode, ErrorLogEntry::encode)
        + round_trip(data, SmartLog::decode, SmartLog::encode)
        + round_trip(data, FirmwareSlots::decode, FirmwareSlots::encode)
        + round_trip(data, EffectsLog::decode, EffectsLog::encode)
        + round_trip(data, IndependentNamespace::decode, IndependentNamespace::encode)
}

fn fabrics_structures(data: &[u8]) -> usize {
    round_trip(data, ConnectData::decode, ConnectData::encode)
        + round_trip(data, DiscoveryHeader::decode, DiscoveryHeader::encode)
        + round_trip(data, DiscoveryEntry::decode, DiscoveryEntry::encode)
}

fn zns_and_kv_structures(data: &[u8]) -> usize {
    round_trip(data, zns::ZnsNamespace::decode, zns::ZnsNamespace::encode)
        + round_trip(data, zns::ZnsController::decode, zns::ZnsController::encode)
        + round_trip(data, zns::ReportHeader::decode, zns::ReportHeader::encode)
        + round_trip(data, zns::ChangedZoneList::decode, zns::ChangedZoneList::encode)
        + round_trip(data, kv::KvNamespace::decode, kv::KvNamespace::encode)
}

fn ocssd20_structures(data: &[u8]) -> usize {
    let list = |bytes: &[u8]| decode_list::<Lba>(bytes, 64);
    addresses_of_geometry(data);
    round_trip(data, ocssd20::Geometry::decode, ocssd20::Geometry::encode)
        + round_trip(data, ocssd20::ChunkDescriptor::decode, ocssd20::ChunkDescriptor::encode)
        + round_trip(data, ocssd20::ChunkNotification::decode, ocssd20::ChunkNotification::encode)
        + round_trip(data, ocssd20::DsmRange::decode, ocssd20::DsmRange::encode)
        + round_trip(data, list, |lbas| encode_list(lbas))
}

/// Any address under a decoded 2.0 format comes apart and goes together again, bit for bit.
fn addresses_of_geometry(data: &[u8]) {
    let Some((lengths, rest)) = data.split_first_chunk::<4>() else { return };
    let Some(lba) = rest.first_chunk::<8>() else { return };
    let [group_bits, pu_bits, chunk_bits, sector_bits] = *lengths;
    let Ok(format) = (ocssd20::LbaFormat { group_bits, pu_bits, chunk_bits, sector_bits }).checked() else {
        return;
    };
    let lba = Lba(u64::from_le_bytes(*lba));
    // The group is not masked: an address beyond the format comes apart with a group that does not fit it.
    match format.unpack(lba) {
        Some(address) if lba.0 < format.span() => assert_eq!(format.pack(address), lba),
        Some(address) => assert!(u64::from(address.group) >> group_bits != 0, "{lba} aliases {address}"),
        None => assert!(lba.0 >= format.span(), "{lba} is inside {format:?}"),
    }
}

fn ocssd12_structures(data: &[u8]) -> usize {
    addresses_of_ppa_format(data);
    round_trip(data, ocssd12::Identify::decode, ocssd12::Identify::encode)
        + round_trip(data, ocssd12::BadBlockTable::decode, ocssd12::BadBlockTable::encode)
}

/// Any address under a decoded 1.2 format either has stray bits or comes apart and goes together again.
fn addresses_of_ppa_format(data: &[u8]) {
    let Some((format, rest)) = data.split_first_chunk::<16>() else { return };
    let Ok(format) = ocssd12::PpaFormat::decode(format) else { return };
    let Some(ppa) = rest.first_chunk::<8>() else { return };
    let ppa = ocssd12::Ppa(u64::from_le_bytes(*ppa));
    if let Ok(address) = format.address(ppa) {
        assert_eq!(format.ppa(address), Ok(ppa));
    }
}
