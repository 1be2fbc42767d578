//! How much data an I/O command moves by its own fields, for transports whose pointers have no length (PRPs).
//!
//! Deliberately not here: whether it may, which is judged with the command.

use super::pages;
use super::raw;
use super::subsystem::{Namespace, namespace};
use super::tables;
use crate::dispatcher::Dispatcher;
use crate::exports::Export;
use ocssd_lightnvm::interface::zoned::EXTENSION_BYTES;
use ocssd_nvme::kv::KeyValueCommand;
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::opcode::DataDirection;
use ocssd_nvme::sqe::{DatasetManagement, ReadWrite};
use ocssd_nvme::zns::{ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneSendAction};
use ocssd_nvme::{IoOpcode, Sqe};

/// Bytes that an I/O command moves; 0 of one that moves none, or is not known.
#[must_use]
pub fn data_bytes(sqe: &Sqe, dispatcher: &Dispatcher) -> u64 {
    match namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) {
        Some(Namespace::Block(id)) => of_blocks(sqe, dispatcher.exports.get(id)),
        Some(Namespace::Zoned(id)) => of_zones(sqe, dispatcher.exports.get(id)),
        // What moves data is seen at the opcode; what does not may still say how long a value is.
        Some(Namespace::KeyValue(_)) if DataDirection::of(sqe.opcode) != DataDirection::None => {
            KeyValueCommand::of(sqe).bytes.into()
        }
        Some(Namespace::Pages(_)) => pages::data_bytes(sqe),
        Some(Namespace::Tables(_)) => tables::data_bytes(sqe),
        Some(Namespace::Raw) => {
            let shape = dispatcher.raw.as_ref().expect("it was found").drive.shape();
            raw::data_bytes(sqe, shape)
        }
        Some(Namespace::KeyValue(_)) | None => 0,
    }
}

fn of_blocks(sqe: &Sqe, export: &Export) -> u64 {
    match sqe.io_opcode() {
        IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE => {
            blocks(ReadWrite::of(sqe).block_count, export)
        }
        IoOpcode::DATASET_MANAGEMENT => {
            u64::from(DatasetManagement::of(sqe).range_count) * bytes(DsmRange::BYTES)
        }
        _ => 0,
    }
}

fn of_zones(sqe: &Sqe, export: &Export) -> u64 {
    match sqe.io_opcode() {
        IoOpcode::ZONE_APPEND => blocks(ZoneAppend::of(sqe).block_count, export),
        IoOpcode::ZONE_MANAGEMENT_SEND => match ZoneManagementSend::of(sqe).action {
            ZoneSendAction::SetExtension => bytes(EXTENSION_BYTES),
            _ => 0,
        },
        IoOpcode::ZONE_MANAGEMENT_RECEIVE => ZoneManagementReceive::of(sqe).dword_count * 4,
        _ => of_blocks(sqe, export),
    }
}

fn blocks(count: u32, export: &Export) -> u64 {
    u64::from(count) * u64::from(export.block_bytes)
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).expect("a size of the specification")
}
