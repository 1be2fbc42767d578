//! The standard Identify structures (admin 06h), as far as an open-channel controller and its host need them.
//!
//! Source: NVMe base 1.4 section 5.15; CNS 05h to 08h are of NVMe base 2.0 section 5.17.

mod controller;
mod independent;
mod namespace;
mod namespace_ids;
mod namespace_list;
mod namespace_sizes;
mod text;
mod uuid;

pub use controller::{ControllerError, FabricsLimits, IdentifyController, VENDOR_OCSSD};
pub use independent::IndependentNamespace;
pub use namespace::{DeallocatedRead, IdentifyNamespace, LbaDataFormat, NamespaceError};
pub use namespace_ids::{NamespaceIds, NamespaceIdsError};
pub use namespace_list::{NamespaceList, NamespaceListError};
pub use namespace_sizes::{AtomicSizes, NSFEAT_ATOMIC_SIZES, NSFEAT_PREFERRED_SIZES, PreferredSizes};
pub use text::{Text, TextError};
pub use uuid::Uuid;

/// Controller or Namespace Structure: which structure Identify returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cns(pub u8);

impl Cns {
    /// 00h: [`IdentifyNamespace`].
    pub const NAMESPACE: Self = Self(0x00);
    /// 01h: [`IdentifyController`].
    pub const CONTROLLER: Self = Self(0x01);
    /// 02h: [`NamespaceList`].
    pub const ACTIVE_NAMESPACES: Self = Self(0x02);
    /// 03h: [`NamespaceIds`].
    pub const NAMESPACE_IDS: Self = Self(0x03);
    /// 05h: what a command set says about a namespace; its layout is the command set's own.
    pub const COMMAND_SET_NAMESPACE: Self = Self(0x05);
    /// 06h: what a command set says about a controller; its layout is the command set's own.
    pub const COMMAND_SET_CONTROLLER: Self = Self(0x06);
    /// 07h: [`NamespaceList`] of one command set.
    pub const COMMAND_SET_ACTIVE_NAMESPACES: Self = Self(0x07);
    /// 08h: [`IndependentNamespace`].
    pub const INDEPENDENT_NAMESPACE: Self = Self(0x08);
    /// 1Ch: combinations of command sets, each 64 bits, a bit per command set.
    pub const COMMAND_SETS: Self = Self(0x1C);
}
