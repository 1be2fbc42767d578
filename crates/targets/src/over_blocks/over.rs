//! Which block targets there are to stand on, and the whole made of one.
//!
//! Any of the registry that can be overwritten sector by sector and keeps a discard that was flushed. Deliberately not here: how a
//! block target is made (`registry`).

use super::options::BlockOptions;
use crate::registry::{self, BlocksMade, TargetSpec};
use ocssd_lightnvm::{BlockingDevice, Payload};

/// Kinds that can be stood on. Others have no map (`linear`), nothing on media (`null`), or the format of Linux' pblk, in which a
/// discard leaves no trace.
const KINDS: &[&str] = &["pblk", "block_ssd", "ox-block"];

/// Makes the block target, or mounts it.
///
/// # Errors
/// A sentence, if there is no such kind, it cannot carry what is kept, or the units cannot carry it.
pub fn make(
    device: &mut dyn BlockingDevice,
    spec: &TargetSpec<'_>,
    options: &BlockOptions,
    keeps: &str,
) -> Result<BlocksMade, String> {
    let over = options.over.as_str();
    if !KINDS.contains(&over) {
        return Err(format!("over must be one of {}, but is \"{over}\"", KINDS.join(", ")));
    }
    let format = device.buffers().format();
    if format.payload == Payload::Stamp {
        return Err(format!(
            "{keeps} over blocks need real bytes, because a stamp stands for a whole block of {} bytes: run with \
             --set payload=bytes",
            format.sector_bytes
        ));
    }
    for (name, value) in &options.below {
        if (name.as_str(), value.as_str()) == ("mode", "faithful") {
            return Err(
                "pblk's faithful mode forgets discards in a power cut, and extents that came back would be taken for new ones; \
                 leave over.mode out"
                    .to_owned(),
            );
        }
        if name == "block_bytes" {
            return Err(format!(
                "{keeps} are written in blocks as large as sectors; leave over.block_bytes out"
            ));
        }
    }
    registry::find(over)?.make_blocks(device, &TargetSpec { options: &options.below, ..*spec })
}
