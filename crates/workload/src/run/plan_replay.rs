//! What a plan makes of a job that replays a log: everything comes from the log, and must fit the target.
//!
//! Deliberately not here: carrying it out (`replay`).

use super::plan::{WorkerPlan, content_of};
use super::region::Region;
use super::sizes::{BLOCKS_MAX, Sizes};
use crate::job::{ByDirection, IologAction, IologOp, JobOptions};
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockTarget;
use std::sync::Arc;

/// The log of a clone: logs are given to clones in turn.
pub(super) fn log_of(options: &JobOptions, clone: u32) -> Option<Arc<[IologAction]>> {
    let count = u32::try_from(options.replay.logs.len()).unwrap_or(u32::MAX);
    let nth = clone.checked_rem(count)?;
    options.replay.logs.get(usize::try_from(nth).expect("an index")).cloned()
}

/// The plan of a worker (its job, clone and target) that replays a log.
///
/// # Errors
/// The first action that does not fit the target, with its line.
pub(super) fn replay(
    (job, clone, id): (usize, u32, TargetId),
    options: &JobOptions,
    log: Arc<[IologAction]>,
    target: &dyn BlockTarget,
) -> Result<WorkerPlan, String> {
    check_log(&log, target)?;
    let block = u64::from(target.block_bytes());
    let moved = log.iter().filter(|action| action.bytes > 0);
    let first = moved.clone().map(|action| action.offset / block).min().unwrap_or(0);
    let end = moved.map(|action| (action.offset + action.bytes) / block).max().unwrap_or(1);
    let [read, write, trim] = [IologOp::Read, IologOp::Write, IologOp::Trim].map(|op| {
        let largest = log.iter().filter(|action| action.op == op).map(|action| action.bytes / block).max()?;
        Some(Sizes::Fixed(u32::try_from(largest).expect("checked above")))
    });
    Ok(WorkerPlan {
        job,
        clone,
        target: id,
        block_bytes: target.block_bytes(),
        region: Region { first, end },
        skip_bytes: 0,
        sizes: ByDirection { read, write, trim },
        align: ByDirection::all(1),
        // The log ends it, and nothing else.
        budget: u64::MAX,
        content: content_of(options),
        strides: None,
        files: None,
        emulated: None,
        replay: Some(log),
        stage: 0,
        group: 0,
    })
}

/// Every action must lie on the target, and be one that it takes.
fn check_log(log: &[IologAction], target: &dyn BlockTarget) -> Result<(), String> {
    let block = u64::from(target.block_bytes());
    let size = target.block_count().saturating_mul(block);
    for action in log {
        let line = action.line;
        let end = action.offset.saturating_add(action.bytes);
        if !action.offset.is_multiple_of(block) || !action.bytes.is_multiple_of(block) {
            return Err(format!(
                "line {line} of its log is about byte {} and {} bytes, but its target's blocks have {block} bytes; \
                 offsets can be rounded by replay_align={block}",
                action.offset, action.bytes
            ));
        }
        if end > size || action.bytes > u64::from(BLOCKS_MAX) * block {
            return Err(format!(
                "line {line} of its log goes to byte {end} with {} bytes, but its target has {size} bytes and takes \
                 {} at once",
                action.bytes,
                u64::from(BLOCKS_MAX) * block
            ));
        }
        if target.zones().is_some() && matches!(action.op, IologOp::Write | IologOp::Trim) {
            return Err(format!(
                "line {line} of its log is a {}, but a raw window decides itself where a write goes and takes no trims; \
                 replay its reads alone with replay_skip=write,trim, or use a target with a map",
                action.op.word()
            ));
        }
    }
    Ok(())
}
