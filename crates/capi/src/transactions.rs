//! `ocssd_transaction_*`: transactions of a block target over several requests.
//!
//! Deliberately not here: transactions of one request, which every request to `ox-block` is.

use crate::ask::{Ask, Asked};
use crate::blocks::BlockAsk;
use crate::boundary::{Memory, call, put, shared};
use crate::failure::Failure;
use crate::reply::{Owner, RequestEnded};
use crate::request::{OCSSD_OP_WRITE, Request};
use crate::shape::TargetShape;
use crate::state::State;
use crate::status::errno_of;
use crate::target::TargetHandle;
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart, TransactionRefusal, Transactions};
use std::ffi::{c_int, c_void};

/// Of a transaction: makes it true. Offset and bytes are 0.
pub const OCSSD_OP_COMMIT: u32 = 14;
/// Of a transaction: gives it up. Offset and bytes are 0.
pub const OCSSD_OP_ABORT: u32 = 15;

/// How much of transactions a target takes. It never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionLimits {
    /// Bytes of one; a block that is written twice counts twice.
    pub bytes_max: u64,
    /// Transactions that are open at a time; fewer while chunks are short.
    pub open_max: u32,
    /// Zero.
    pub reserved: u32,
}

impl From<TransactionRefusal> for Failure {
    fn from(refusal: TransactionRefusal) -> Self {
        let errno = match refusal {
            TransactionRefusal::TooMany => libc::EMFILE,
            TransactionRefusal::NotOpen => libc::ENOENT,
            TransactionRefusal::TagInUse => {
                unreachable!("tags are places, and used for one request at a time")
            }
            TransactionRefusal::NoChanges(status) => errno_of(status),
        };
        Self::new(errno, refusal.to_string())
    }
}

impl State {
    /// The transactions of a target.
    ///
    /// # Errors
    /// EOPNOTSUPP if it has none.
    pub fn transactions(&mut self, lane: usize) -> Result<&mut dyn Transactions, Failure> {
        let found = self.target_mut(lane).block_mut().and_then(|target| target.transactions());
        found.ok_or_else(|| {
            Failure::new(
                libc::EOPNOTSUPP,
                "the target has no transactions over several requests; ox-block has, with blocks of a sector",
            )
        })
    }
}

/// A request that is part of a transaction.
fn parts(request: &Request, shape: &TargetShape, transaction: u64) -> Result<Vec<Asked>, Failure> {
    let end = match request.op {
        OCSSD_OP_WRITE if request.flags == 0 => {
            let written = Some((BlockTransaction(transaction), TransactionPart::Write));
            let parts = request.range(shape)?.parts().map(|asked| match asked.ask {
                Ask::Blocks(ask) => Asked { ask: Ask::Blocks(BlockAsk { part: written, ..ask }), ..asked },
                _ => unreachable!("a target with transactions speaks of blocks"),
            });
            return Ok(parts.collect());
        }
        OCSSD_OP_COMMIT => TransactionPart::Commit,
        OCSSD_OP_ABORT => TransactionPart::Abort,
        other => {
            return Err(Failure::invalid(format!(
                "op is {other}, flags {:#x}; parts of a transaction are OCSSD_OP_WRITE without flags, OCSSD_OP_COMMIT and \
                 OCSSD_OP_ABORT",
                request.flags
            )));
        }
    };
    if request.flags != 0 || request.offset != 0 || request.bytes != 0 || !request.data.is_null() {
        return Err(Failure::invalid(
            "the end of a transaction is of all of it: flags, offset and bytes are 0, data NULL",
        ));
    }
    let part = Some((BlockTransaction(transaction), end));
    let ask = BlockAsk { op: BlockOp::Flush, block: 0, count: 0, memory: Memory::NONE, part };
    Ok(vec![Asked { ask: Ask::Blocks(ask), owner: Owner::Waiting }])
}

/// Carries out part of a transaction and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn wait_for(target: *mut TargetHandle, transaction: u64, request: &Request) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    state.transactions(*lane)?;
    let asked = parts(request, &state.requests.lane(*lane).shape, transaction)?;
    state.ask(*lane, asked.into_iter()).map(|_| 0)
}

/// Gets how much of transactions a target takes.
///
/// Errors: -EOPNOTSUPP of a target that has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_info(
    target: *mut TargetHandle,
    limits: *mut TransactionLimits,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let mut state = core.enter()?;
        let found = state.transactions(*lane)?.limits();
        let (_, block_bytes) = state.requests.lane(*lane).shape.blocks()?;
        let bytes_max = u64::from(found.blocks) * u64::from(block_bytes);
        // SAFETY: the header asks for room for such a struct.
        unsafe {
            put(limits, "limits", TransactionLimits { bytes_max, open_max: found.at_once, reserved: 0 })?
        };
        Ok(0)
    })
}

/// Begins a transaction, and puts its name into `transaction`. Nobody sees what is written within it before its commit, its own
/// program included, and a power cut or a close of the target leaves nothing of it.
///
/// Errors: -EMFILE if as many are open as the target takes, or has room for; -EOPNOTSUPP of a target that has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_begin(target: *mut TargetHandle, transaction: *mut u64) -> c_int {
    call(|| {
        // SAFETY: the header asks for room for a number, and an open target.
        let TargetHandle { core, lane, .. } = unsafe {
            put(transaction, "transaction", u64::MAX)?;
            shared(target, "target")?
        };
        let BlockTransaction(begun) = core.enter()?.transactions(*lane)?.begin()?;
        // SAFETY: as above.
        unsafe { put(transaction, "transaction", begun)? };
        Ok(0)
    })
}

/// Writes `bytes` bytes from `offset` on within a transaction. A block that is written twice has its later content.
///
/// Errors: as `ocssd_target_write`; -ENOENT if the transaction is not open; -ENOSPC if it would have more than `bytes_max`: it goes
/// on without this then; -ECANCELED if the target gave it up because chunks went bad: begin it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_write(
    target: *mut TargetHandle,
    transaction: u64,
    data: *const c_void,
    bytes: u64,
    offset: u64,
) -> c_int {
    let request = Request { op: OCSSD_OP_WRITE, flags: 0, offset, bytes, data: data.cast_mut() };
    // SAFETY: the header asks for an open target and so many bytes, which are only read.
    call(|| unsafe { wait_for(target, transaction, &request) })
}

/// Makes a transaction true, all of it at once, durable as a write of the target is. Of two that wrote a block the later commit
/// decides. The transaction is over.
///
/// Errors: -ENOENT if it is not open, -ECANCELED if the target gave it up, -EIO if the media failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_commit(target: *mut TargetHandle, transaction: u64) -> c_int {
    let request = Request { op: OCSSD_OP_COMMIT, flags: 0, offset: 0, bytes: 0, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, transaction, &request) })
}

/// Gives a transaction up: it is as if it had never been begun.
///
/// Errors: -ENOENT if it is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_abort(target: *mut TargetHandle, transaction: u64) -> c_int {
    let request = Request { op: OCSSD_OP_ABORT, flags: 0, offset: 0, bytes: 0, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, transaction, &request) })
}

/// Submits part of a transaction: `OCSSD_OP_WRITE`, `OCSSD_OP_COMMIT` or `OCSSD_OP_ABORT`. Otherwise as `ocssd_target_submit`.
/// Parts take effect in the order in which they are submitted, so that a commit need not wait for the ends of its writes.
///
/// Errors: as `ocssd_target_submit`; -ENOENT if the transaction is not open, -EOPNOTSUPP of a target that has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_transaction_submit(
    target: *mut TargetHandle,
    transaction: u64,
    request: *const Request,
    ended: RequestEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and a request.
        let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
        let mut state = target.core.enter()?;
        state.transactions(target.lane)?;
        let asked = parts(request, &state.requests.lane(target.lane).shape, transaction)?;
        let [first] = asked[..] else {
            return Err(Failure::invalid(format!(
                "{} bytes are more than a request that is submitted can have; submit several",
                request.bytes
            )));
        };
        state.submit_to(target.lane, Asked { owner: Owner::Callback(ended, context), ..first })
    })
}
