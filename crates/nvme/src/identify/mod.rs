//! The standard Identify structures (admin 06h), as far as an open-channel controller and its host need them.
//!
//! Source: NVMe base 1.4 section 5.15.

mod controller;
mod namespace;
mod namespace_ids;
mod namespace_list;
mod text;

pub use controller::{ControllerError, FabricsLimits, IdentifyController, VENDOR_OCSSD};
pub use namespace::{DeallocatedRead, IdentifyNamespace, LbaDataFormat, NamespaceError};
pub use namespace_ids::{NamespaceIds, NamespaceIdsError};
pub use namespace_list::{NamespaceList, NamespaceListError};
pub use text::{Text, TextError};

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
}
