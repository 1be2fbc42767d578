//! The Zoned Namespace Command Set: what identify says of zones, the commands on them, and what reports and logs hold.
//!
//! Source: ZNS command set 1.1. A zone's own descriptor is [`ocssd_lightnvm::interface::zoned::ZoneDescriptor`], which is encoded
//! as the specification has it. Deliberately not here: zone random write areas, and zone descriptor extensions.

mod changed_zones;
mod command;
mod identify;
mod report;

pub use changed_zones::ChangedZoneList;
pub use command::{ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction};
pub use identify::{LbaFormatExtension, OZCS_AREAS, ZnsController, ZnsNamespace};
pub use report::ReportHeader;

/// The command set's identifier, CSI (NVMe base 2.0 figure 274).
pub const CSI: u8 = 0x02;
