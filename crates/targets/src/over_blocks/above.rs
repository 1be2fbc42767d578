//! What is asked of a target that stands on extents.
//!
//! Deliberately not here: the targets (`kv_block`, `table_block`).

use ocssd_lightnvm::{BlockingDevice, Status, Tag, Target};

/// How a block target is cut into extents, unless a size is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Extents of it.
    pub extents: u64,
    /// Units of an extent at least: what the target needs of a chunk.
    pub units_min: u32,
    /// The smallest write is a block; else it is a unit, as is the largest.
    pub writes_blocks: bool,
    /// The target knows which extents hold content and how far: only pages are looked for at a mount.
    pub names_content: bool,
}

/// A target that takes extents for chunks of one parallel unit.
pub trait Above: Target + Sized {
    /// What it is asked to be.
    type Options;
    /// What it keeps, in words.
    const KEEPS: &'static str;
    /// How large its extents are.
    const CUT: Cut;

    /// Makes an instance, or mounts the one that is there; and says how that went, to whoever stated these options.
    ///
    /// # Errors
    /// A sentence, if the extents cannot carry one, it cannot be read, the drive fails or the power goes.
    fn mount(
        device: &mut dyn BlockingDevice,
        options: &Self::Options,
        stated: &[(String, String)],
    ) -> Result<(Self, Vec<String>), String>;

    /// The request's tag, if it asks the target to end.
    fn shutdown_of(request: &Self::Request) -> Option<Tag>;

    /// Whose reply it is, and how that ended.
    fn end_of(reply: &Self::Reply) -> (Tag, Status);

    /// The reply to a shutdown that ended so.
    fn shut_down(tag: Tag, status: Status) -> Self::Reply;
}
