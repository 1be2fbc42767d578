//! `ocssd_zoned_*`: what targets of zones have beyond reads, writes, flushes and resets.
//!
//! Deliberately not here: zones of `linear`, which are chunks of the drive and have no states.

use crate::boundary::{call, put, shared};
use crate::failure::Failure;
use crate::request::{
    OCSSD_OP_APPEND, OCSSD_OP_CLOSE_ZONE, OCSSD_OP_COMMIT_AREA, OCSSD_OP_FINISH_ZONE, OCSSD_OP_OFFLINE_ZONE,
    OCSSD_OP_OPEN_ZONE, OCSSD_OP_REPORT_ZONES, OCSSD_OP_RESET_ZONE, OCSSD_OP_SET_EXTENSION, Request,
};
use crate::target::TargetHandle;
use crate::target_io::wait_for;
use crate::zones::Zone;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::zoned::{EXTENSION_BYTES, UnwrittenRead, ZoneGeometry, ZoneState};
use std::ffi::{c_int, c_void};

/// Nothing is written.
pub const OCSSD_ZONE_EMPTY: u32 = 0x1;
/// A write opened it; the target may close it for another.
pub const OCSSD_ZONE_IMPLICITLY_OPENED: u32 = 0x2;
/// It was opened by a request.
pub const OCSSD_ZONE_EXPLICITLY_OPENED: u32 = 0x3;
/// It holds an active resource and is not open.
pub const OCSSD_ZONE_CLOSED: u32 = 0x4;
/// It can only be read, or taken offline.
pub const OCSSD_ZONE_READ_ONLY: u32 = 0xD;
/// It can only be read, until it is reset.
pub const OCSSD_ZONE_FULL: u32 = 0xE;
/// It can neither be written nor read.
pub const OCSSD_ZONE_OFFLINE: u32 = 0xF;

/// The numbers are those of the wire.
const _: () = assert!(
    OCSSD_ZONE_EMPTY == ZoneState::Empty as u32
        && OCSSD_ZONE_IMPLICITLY_OPENED == ZoneState::ImplicitlyOpened as u32
        && OCSSD_ZONE_EXPLICITLY_OPENED == ZoneState::ExplicitlyOpened as u32
        && OCSSD_ZONE_CLOSED == ZoneState::Closed as u32
        && OCSSD_ZONE_READ_ONLY == ZoneState::ReadOnly as u32
        && OCSSD_ZONE_FULL == ZoneState::Full as u32
        && OCSSD_ZONE_OFFLINE == ZoneState::Offline as u32
);

/// The zones of a target, and its limits. They never change.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Bytes from one zone's begin to the next.
    pub zone_bytes: u64,
    /// Bytes that a zone holds, from its begin.
    pub capacity_bytes: u64,
    /// Most bytes of an append.
    pub append_bytes_max: u64,
    /// Bytes of a random write area, from its zone's write pointer on; 0 if zones have none.
    pub area_bytes: u64,
    /// Bytes by which an area is committed.
    pub area_granularity_bytes: u64,
    /// How many zones.
    pub zone_count: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Most zones that are open at once; 0 for no limit.
    pub open_max: u32,
    /// Most zones that are open or closed at once; 0 for no limit.
    pub active_max: u32,
    /// Most zones that have an area at once.
    pub areas_max: u32,
    /// Bytes of a zone's extension; 0 if zones take none.
    pub extension_bytes: u32,
    /// 1 if reads behind a write pointer give zeroes, 0 if they fail.
    pub reads_zeroes: u32,
    /// Zero.
    pub reserved: u32,
}

impl Zones {
    fn of(geometry: &ZoneGeometry) -> Self {
        let bytes = |blocks: u64| blocks * u64::from(geometry.block_bytes);
        let area = geometry.area;
        Self {
            zone_bytes: bytes(geometry.zone_blocks),
            capacity_bytes: bytes(geometry.capacity_blocks),
            append_bytes_max: bytes(u64::from(geometry.append_blocks_max)),
            area_bytes: area.map_or(0, |area| bytes(u64::from(area.blocks))),
            area_granularity_bytes: area.map_or(0, |area| bytes(u64::from(area.granularity))),
            zone_count: geometry.zone_count,
            block_bytes: geometry.block_bytes,
            open_max: geometry.open_max.unwrap_or(0),
            active_max: geometry.active_max.unwrap_or(0),
            areas_max: area.map_or(0, |area| area.areas_max),
            extension_bytes: if geometry.takes_extensions {
                u32::try_from(EXTENSION_BYTES).expect("64 bytes")
            } else {
                0
            },
            reads_zeroes: u32::from(geometry.unwritten_read == UnwrittenRead::Zeroes),
            reserved: 0,
        }
    }
}

/// Gets the zones of a target and its limits.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of zones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_info(target: *mut TargetHandle, zones: *mut Zones) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let found = Zones::of(core.enter()?.requests.lane(*lane).shape.zones()?);
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(zones, "zones", found)? };
        Ok(0)
    })
}

/// Reports zones: puts the one that `offset` lies in and those behind it into `zones`, with room for `count`, of them only those in
/// `state`, or all with 0. Puts into `matching`, which may be NULL, how many there are, with and without room.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of zones, -EINVAL for an offset behind the last one or no state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_report(
    target: *mut TargetHandle,
    offset: u64,
    state: u32,
    zones: *mut Zone,
    count: u32,
    matching: *mut u32,
) -> c_int {
    call(|| {
        if !zones.is_null() && !zones.is_aligned() {
            return Err(Failure::invalid("zones is misaligned, so it points to no zones"));
        }
        let bytes = usize_of(count) * size_of::<Zone>();
        let request = Request {
            op: OCSSD_OP_REPORT_ZONES,
            flags: state,
            offset,
            bytes: u64::try_from(bytes).expect("fewer than 2^64"),
            data: zones.cast(),
        };
        // SAFETY: the header asks for an open target and room for so many zones.
        let reply = unsafe { wait_for(target, &request)? };
        if !matching.is_null() {
            let found = u32::try_from(reply.count).expect("fewer zones than 2^32");
            // SAFETY: the header asks for room for a number.
            unsafe { put(matching, "matching", found)? };
        }
        Ok(0)
    })
}

/// Stores `bytes` bytes at the write pointer of the zone that begins at `offset`, and puts where that was into `landed`. Flags are
/// `OCSSD_FUA` or 0.
///
/// Errors: -ENOSPC of a full zone, -EROFS of one that is read only, -EINVAL for what does not fit into the zone or is longer than
/// `append_bytes_max`, -EOVERFLOW if too many zones are active, -ETOOMANYREFS if too many are open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_append(
    target: *mut TargetHandle,
    data: *const c_void,
    bytes: u64,
    offset: u64,
    flags: u32,
    landed: *mut u64,
) -> c_int {
    let request = Request { op: OCSSD_OP_APPEND, flags, offset, bytes, data: data.cast_mut() };
    call(|| {
        // SAFETY: the header asks for an open target, so many bytes which are only read, and room for a number.
        unsafe {
            put(landed, "landed", u64::MAX)?;
            let reply = wait_for(target, &request)?;
            put(landed, "landed", reply.offset)?;
        }
        Ok(0)
    })
}

/// Changes the state of the zone that begins at `offset`: `op` is `OCSSD_OP_OPEN_ZONE`, `_CLOSE_ZONE`, `_FINISH_ZONE`,
/// `_RESET_ZONE` or `_OFFLINE_ZONE`. Flags are 0, `OCSSD_ALL_ZONES` (offset 0), or of an opening `OCSSD_WITH_AREA`. The change is
/// durable when this returns.
///
/// Errors: -EINVAL for a state from which there is no way, or an offset at which no zone begins; -EOVERFLOW and -ETOOMANYREFS as
/// `ocssd_zoned_append`; -EBUSY if no zone can have an area now, or its write pointer is not at a multiple of the granularity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_manage(
    target: *mut TargetHandle,
    op: u32,
    offset: u64,
    flags: u32,
) -> c_int {
    call(|| {
        let is_action = matches!(
            op,
            OCSSD_OP_OPEN_ZONE
                | OCSSD_OP_CLOSE_ZONE
                | OCSSD_OP_FINISH_ZONE
                | OCSSD_OP_RESET_ZONE
                | OCSSD_OP_OFFLINE_ZONE
        );
        if !is_action {
            return Err(Failure::invalid(format!("{op} is no action on a zone; OCSSD_OP_OPEN_ZONE is one")));
        }
        let request = Request { op, flags, offset, bytes: 0, data: std::ptr::null_mut() };
        // SAFETY: the header asks for an open target.
        unsafe { wait_for(target, &request).map(|_| 0) }
    })
}

/// Commits the random write area of a zone up to the block at `offset`, with it: the last one of a multiple of the granularity, or
/// of the zone. Durable when this returns.
///
/// Errors: -EINVAL if there is no area, or the block is none of it or no such end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_commit_area(target: *mut TargetHandle, offset: u64) -> c_int {
    let request =
        Request { op: OCSSD_OP_COMMIT_AREA, flags: 0, offset, bytes: 0, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Gives the empty zone that begins at `offset` an extension of `bytes` bytes, which must be
/// `OCSSD_EXTENSION_BYTES`. It is closed from then on, and
/// keeps the extension until it is reset. Durable when this returns.
///
/// Errors: -EINVAL for a zone in another state, -EOVERFLOW if too many zones are active.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_set_extension(
    target: *mut TargetHandle,
    offset: u64,
    extension: *const c_void,
    bytes: u64,
) -> c_int {
    let request = Request { op: OCSSD_OP_SET_EXTENSION, flags: 0, offset, bytes, data: extension.cast_mut() };
    // SAFETY: the header asks for an open target and so many bytes, which are only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Asks for a zone that changed by itself since this was asked last: it became read only or offline, because the media failed, or
/// was finished for another. Returns 1 and puts its begin into `offset`, or returns 0. Each zone is told once until it changes
/// again.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of zones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_zoned_changed(target: *mut TargetHandle, offset: *mut u64) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and room for a number.
        let TargetHandle { core, lane, .. } = unsafe {
            put(offset, "offset", u64::MAX)?;
            shared(target, "target")?
        };
        let mut state = core.enter()?;
        let geometry = *state.requests.lane(*lane).shape.zones()?;
        let zoned = state.target_mut(*lane).zoned_mut().expect("its shape says so");
        let Some(zone) = zoned.poll_changed_zone() else { return Ok(0) };
        let begin = geometry.start_of(zone) * u64::from(geometry.block_bytes);
        // SAFETY: as above.
        unsafe { put(offset, "offset", begin)? };
        Ok(1)
    })
}
