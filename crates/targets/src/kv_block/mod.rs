//! `kv-block`: the key-value target of [`kv`](crate::kv) on a block device: the first kind of KV-SSD, whose FTL stands on another.
//!
//! It is an assembly: `kv` as it is, on extents of a block target (`over_blocks`). Deliberately not here: keys, values, garbage
//! collection of records (`kv`).

mod options;

use crate::kv::Kv;
use crate::over_blocks::{Above, Cut, OverBlocks};
use ocssd_lightnvm::interface::key_value::{KvAnswer, KvLimits, KvOp, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::{BlockingDevice, PuId, Status, Tag};

#[cfg(feature = "canaries")]
pub use crate::over_blocks::Canary;
pub use options::Options;

/// Keys and values on a block device.
pub type KvOverBlock = OverBlocks<Kv>;

impl Above for Kv {
    type Options = crate::kv::Options;
    const KEEPS: &'static str = "keys and values";
    /// Chosen: one extent more or less is a fifth of a percent of the room.
    const CUT: Cut = Cut { extents: 512, units_min: 4, writes_blocks: false, names_content: false };

    fn mount(
        device: &mut dyn BlockingDevice,
        options: &Self::Options,
        stated: &[(String, String)],
    ) -> Result<(Self, Vec<String>), String> {
        let (kv, report) =
            Self::mount_as_reported(device, &[PuId(0)], options).map_err(|error| error.to_string())?;
        let notes = kv.notes(&report, device.geometry(), stated);
        Ok((kv, notes))
    }

    fn shutdown_of(request: &KvRequest) -> Option<Tag> {
        (request.op == KvOp::Shutdown).then_some(request.tag)
    }

    fn end_of(reply: &KvReply) -> (Tag, Status) {
        (reply.tag, reply.status)
    }

    fn shut_down(tag: Tag, status: Status) -> KvReply {
        KvReply { status, ..KvReply::success(tag, KvAnswer::Done) }
    }
}

impl KvTarget for KvOverBlock {
    fn limits(&self) -> KvLimits {
        self.above().limits()
    }

    fn used_bytes(&self) -> u64 {
        self.above().used_bytes()
    }
}
