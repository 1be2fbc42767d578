//! What a target speaks of, and the bounds of that, as requests are judged before they go to it.
//!
//! Deliberately not here: what the target alone can judge, such as the states of zones.

use crate::failure::Failure;
use ocssd_lightnvm::interface::key_value::KvLimits;
use ocssd_lightnvm::interface::log_structured::LogLimits;
use ocssd_lightnvm::interface::table::TableLimits;
use ocssd_lightnvm::interface::zoned::ZoneGeometry;
use ocssd_lightnvm::interface::{AnyTarget, Interface};

/// A target's interface and its bounds.
#[derive(Clone, Copy, Debug)]
pub enum TargetShape {
    /// Blocks.
    Blocks {
        /// Bytes of a block.
        block_bytes: u32,
        /// How many.
        block_count: u64,
    },
    /// Zones.
    Zones(ZoneGeometry),
    /// Pages.
    Pages(LogLimits),
    /// Keys and values.
    Keys(KvLimits),
    /// Tables and logs.
    Tables(TableLimits),
}

impl Default for TargetShape {
    fn default() -> Self {
        Self::Blocks { block_bytes: 0, block_count: 0 }
    }
}

impl TargetShape {
    /// That of a target.
    pub fn of(target: &AnyTarget) -> Self {
        if let Some(blocks) = target.block() {
            return Self::Blocks { block_bytes: blocks.block_bytes(), block_count: blocks.block_count() };
        }
        if let Some(zoned) = target.zoned() {
            return Self::Zones(zoned.zone_geometry());
        }
        if let Some(pages) = target.log() {
            return Self::Pages(pages.limits());
        }
        if let Some(keys) = target.key_value() {
            return Self::Keys(keys.limits());
        }
        Self::Tables(target.table().expect("a target speaks of one of five interfaces").limits())
    }

    /// The interface.
    pub const fn interface(&self) -> Interface {
        match self {
            Self::Blocks { .. } => Interface::Block,
            Self::Zones(_) => Interface::Zoned,
            Self::Pages(_) => Interface::Log,
            Self::Keys(_) => Interface::KeyValue,
            Self::Tables(_) => Interface::Table,
        }
    }

    /// Blocks of the target and the bytes of one, if it speaks of blocks, in zones or not.
    ///
    /// # Errors
    /// EOPNOTSUPP if it does not.
    pub fn blocks(&self) -> Result<(u64, u32), Failure> {
        match self {
            Self::Blocks { block_bytes, block_count } => Ok((*block_count, *block_bytes)),
            Self::Zones(zones) => Ok((zones.block_count(), zones.block_bytes)),
            Self::Pages(_) | Self::Keys(_) | Self::Tables(_) => Err(self.is_not(Interface::Block)),
        }
    }

    /// The zones.
    ///
    /// # Errors
    /// EOPNOTSUPP if it is no target of zones.
    pub fn zones(&self) -> Result<&ZoneGeometry, Failure> {
        if let Self::Zones(zones) = self { Ok(zones) } else { Err(self.is_not(Interface::Zoned)) }
    }

    /// What a target of pages takes.
    ///
    /// # Errors
    /// EOPNOTSUPP if it is none.
    pub fn pages(&self) -> Result<&LogLimits, Failure> {
        if let Self::Pages(limits) = self { Ok(limits) } else { Err(self.is_not(Interface::Log)) }
    }

    /// What a target of keys and values takes.
    ///
    /// # Errors
    /// EOPNOTSUPP if it is none.
    pub fn keys(&self) -> Result<&KvLimits, Failure> {
        if let Self::Keys(limits) = self { Ok(limits) } else { Err(self.is_not(Interface::KeyValue)) }
    }

    /// What a target of tables takes.
    ///
    /// # Errors
    /// EOPNOTSUPP if it is none.
    pub fn tables(&self) -> Result<&TableLimits, Failure> {
        if let Self::Tables(limits) = self { Ok(limits) } else { Err(self.is_not(Interface::Table)) }
    }

    fn is_not(&self, asked: Interface) -> Failure {
        Failure::new(
            libc::EOPNOTSUPP,
            format!(
                "the target speaks of {}, and this call of {asked}; open a target that does",
                self.interface()
            ),
        )
    }
}
