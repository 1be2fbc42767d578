//! What is served: the exports, by name.
//!
//! Deliberately not here: the targets behind them, which the host has under the same numbers.

use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::key_value::KvLimits;
use ocssd_lightnvm::interface::log_structured::LogLimits;
use ocssd_lightnvm::interface::table::TableLimits;
use ocssd_lightnvm::interface::zoned::ZoneGeometry;
use ocssd_lightnvm::interface::{AnyTarget, Interface};
use ocssd_nvme::identify::Uuid;

/// The number of an export; its target has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExportId(pub u32);

impl ExportId {
    /// The target behind it.
    #[must_use]
    pub const fn target(self) -> TargetId {
        TargetId(self.0)
    }

    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.target().index()
    }
}

/// What an export is, with what its target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Blocks that can be written anywhere.
    Block,
    /// Zones.
    Zoned(ZoneGeometry),
    /// Log-structured pages.
    Log(LogLimits),
    /// Tables.
    Table(TableLimits),
    /// Keys and values.
    KeyValue(KvLimits),
}

/// A target as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients ask for; empty for the one that is meant when none is named.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// What it is.
    pub kind: ExportKind,
    /// Bytes of a block: every offset and length is a multiple. 1 of what has no blocks.
    pub block_bytes: u32,
    /// Bytes that are best read and written at once: a sector of the drive.
    pub preferred_bytes: u32,
    /// How many blocks; bytes that fit at least, of what has none.
    pub block_count: u64,
    /// Nothing may be changed.
    pub read_only: bool,
    /// The target knows which blocks hold something.
    pub has_map: bool,
    /// Blocks that one write stores as a whole or not at all; 1 if the target promises no more than a sector.
    pub atomic_blocks: u32,
    /// Zeroes are written without writing them.
    pub fast_zero: bool,
    /// Which device it is, of all; nil if nobody said so.
    pub uuid: Uuid,
}

impl Export {
    /// What clients are to see of a target on a drive with sectors of `sector_bytes`. Zeroes are taken to be fast if the
    /// target has a map, and it has no UUID; who knows better says so afterwards.
    ///
    /// # Errors
    /// A sentence, if the target is a raw window written zone by zone, or too large for 64 bits of bytes.
    pub fn of(
        name: &str,
        description: &str,
        target: &AnyTarget,
        sector_bytes: u32,
        read_only: bool,
    ) -> Result<Self, String> {
        let (kind, block_bytes, block_count) = match target {
            AnyTarget::Block(_) => {
                let target = target.block().expect("it has blocks");
                check_overwrites(name, description, target)?;
                (ExportKind::Block, target.block_bytes(), target.block_count())
            }
            AnyTarget::Zoned(_) => {
                let zones = target.zoned().expect("it has zones").zone_geometry();
                (ExportKind::Zoned(zones), zones.block_bytes, zones.block_count())
            }
            AnyTarget::Log(_) => {
                let limits = target.log().expect("it has pages").limits();
                (ExportKind::Log(limits), 1, limits.capacity_bytes)
            }
            AnyTarget::Table(_) => {
                let limits = target.table().expect("it has tables").limits();
                (ExportKind::Table(limits), 1, limits.capacity_bytes)
            }
            AnyTarget::KeyValue(_) => {
                let limits = target.key_value().expect("it has keys").limits();
                (ExportKind::KeyValue(limits), 1, limits.capacity_bytes)
            }
        };
        if block_count.checked_mul(u64::from(block_bytes)).is_none_or(|bytes| bytes > MAX_BYTES) {
            return Err(format!(
                "export \"{name}\": {block_count} blocks of {block_bytes} bytes are more than the 2^63 - 1 bytes a client \
                 can address; serve a smaller target"
            ));
        }
        let has_map = block_count > 0 && target.block().is_some_and(|target| target.is_mapped(0).is_some());
        Ok(Self {
            name: name.to_owned(),
            description: description.to_owned(),
            kind,
            block_bytes,
            preferred_bytes: sector_bytes.max(block_bytes).max(PREFERRED_MIN),
            block_count,
            read_only,
            has_map,
            atomic_blocks: target.block().map_or(1, BlockTarget::atomic_blocks),
            fast_zero: has_map,
            uuid: Uuid::default(),
        })
    }

    /// By which interface its target is asked.
    #[must_use]
    pub const fn interface(&self) -> Interface {
        match self.kind {
            ExportKind::Block => Interface::Block,
            ExportKind::Zoned(_) => Interface::Zoned,
            ExportKind::Log(_) => Interface::Log,
            ExportKind::Table(_) => Interface::Table,
            ExportKind::KeyValue(_) => Interface::KeyValue,
        }
    }

    /// It is a block device: what NBD, vhost-user-blk and files can be.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        matches!(self.kind, ExportKind::Block)
    }

    /// A hundred blocks of 512 bytes that may be written, for tests.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            kind: ExportKind::Block,
            block_bytes: 512,
            preferred_bytes: 4096,
            block_count: 100,
            read_only: false,
            has_map: true,
            atomic_blocks: 1,
            fast_zero: true,
            uuid: Uuid::of_seed(7),
        }
    }

    /// Bytes of the device.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.block_count * u64::from(self.block_bytes)
    }
}

/// A raw window says that it has blocks, and must be written zone by zone.
fn check_overwrites(name: &str, description: &str, target: &dyn BlockTarget) -> Result<(), String> {
    if target.zones().is_none() {
        return Ok(());
    }
    Err(format!(
        "export \"{name}\": {description} is a raw window written zone by zone, which block devices are not; serve a target \
         that can be written anywhere, as pblk, or one that speaks of zones, as zns"
    ))
}

/// NBD: sizes are signed 64 bits in many clients, and the protocol says so.
const MAX_BYTES: u64 = (1 << 63) - 1;

/// NBD, block size constraints: the preferred size is at least 512; sectors of drives begin there too.
const PREFERRED_MIN: u32 = 512;

/// All exports.
#[derive(Clone, Debug, Default)]
pub struct Exports(Vec<Export>);

impl Exports {
    /// These, in the order of their targets.
    ///
    /// # Errors
    /// A sentence, if two have one name.
    pub fn new(list: Vec<Export>) -> Result<Self, String> {
        for (place, export) in list.iter().enumerate() {
            if list[..place].iter().any(|other| other.name == export.name) {
                return Err(format!("two exports are called \"{}\"; give each its own name", export.name));
            }
        }
        Ok(Self(list))
    }

    /// The one of this name. The empty name also means the only one there is.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ExportId> {
        let alone = name.is_empty() && self.0.len() == 1;
        let place = self.0.iter().position(|export| export.name == name || alone)?;
        Some(ExportId(u32::try_from(place).expect("a host has at most 256 targets")))
    }

    /// The block device of this name, as [`Self::find`].
    #[must_use]
    pub fn find_block(&self, name: &str) -> Option<ExportId> {
        self.find(name).filter(|id| self.get(*id).is_block())
    }

    /// One of them.
    ///
    /// # Panics
    /// If there is no such export.
    #[must_use]
    pub fn get(&self, id: ExportId) -> &Export {
        &self.0[id.index()]
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Export> {
        self.0.iter()
    }

    /// All block devices, with their numbers, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (ExportId, &Export)> {
        (0..).map(ExportId).zip(self.iter()).filter(|(_, export)| export.is_block())
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str) -> Export {
        Export { name: name.to_owned(), ..Export::example() }
    }

    #[test]
    fn an_export_is_found_by_its_name_and_the_only_one_by_none() {
        let one = Exports::new(vec![export("a")]).unwrap();
        assert_eq!(
            [one.find("a"), one.find(""), one.find("b")],
            [Some(ExportId(0)), Some(ExportId(0)), None]
        );
        let two = Exports::new(vec![export("a"), export("b")]).unwrap();
        assert_eq!([two.find("b"), two.find("")], [Some(ExportId(1)), None]);
    }

    #[test]
    fn a_name_is_given_once() {
        let error = Exports::new(vec![export("a"), export("b"), export("a")]).err().unwrap();
        assert!(error.contains("\"a\""), "{error}");
    }
}
