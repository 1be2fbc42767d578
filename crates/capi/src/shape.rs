//! What a target speaks of, and the bounds of that, as requests are judged before they go to it.
//!
//! Deliberately not here: what the target alone can judge, such as the states of zones.

use crate::failure::Failure;
use ocssd_lightnvm::interface::zoned::ZoneGeometry;
use ocssd_lightnvm::interface::{AnyTarget, Interface};

/// A target's interface and its bounds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Blocks.
    Blocks {
        /// Bytes of a block.
        block_bytes: u32,
        /// How many.
        block_count: u64,
    },
    /// Zones.
    Zones(ZoneGeometry),
}

impl Default for Shape {
    fn default() -> Self {
        Self::Blocks { block_bytes: 0, block_count: 0 }
    }
}

/// Whether this library has calls for targets of an interface.
///
/// # Errors
/// EOPNOTSUPP if it has not.
pub fn check_interface(interface: Interface) -> Result<(), Failure> {
    match interface {
        Interface::Block | Interface::Zoned => Ok(()),
        Interface::Log | Interface::Table | Interface::KeyValue => Err(Failure::new(
            libc::EOPNOTSUPP,
            format!(
                "the target speaks of {interface}, for which ocssd.h has no calls; open one of blocks or of zones"
            ),
        )),
    }
}

impl Shape {
    /// That of a target.
    ///
    /// # Panics
    /// If this library has no calls for it ([`check_interface`]).
    pub fn of(target: &AnyTarget) -> Self {
        if let Some(blocks) = target.block() {
            return Self::Blocks { block_bytes: blocks.block_bytes(), block_count: blocks.block_count() };
        }
        let zoned = target.zoned().expect("targets of other interfaces are not opened");
        Self::Zones(zoned.zone_geometry())
    }

    /// The interface.
    pub const fn interface(&self) -> Interface {
        match self {
            Self::Blocks { .. } => Interface::Block,
            Self::Zones(_) => Interface::Zoned,
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
        }
    }

    /// The zones.
    ///
    /// # Errors
    /// EOPNOTSUPP if it is no target of zones.
    pub fn zones(&self) -> Result<&ZoneGeometry, Failure> {
        if let Self::Zones(zones) = self { Ok(zones) } else { Err(self.is_not(Interface::Zoned)) }
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
