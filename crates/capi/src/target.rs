//! `ocssd_target_*`: targets on a drive's parallel units, their making and their shape.

use crate::ask::{Ask, Asked};
use crate::boundary::{call, put, shared, text};
use crate::core::Core;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::queue::Polling;
use crate::reply::Owner;
use crate::requests::{REQUEST_BYTES_MAX, TARGET_DEPTH};
use crate::shape::TargetShape;
use crate::state::State;
use ocssd_engine::{Caller, Clock, VirtualClock};
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_targets::Null;
use ocssd_targets::named_target::{NameError, NamedTarget};
use ocssd_targets::registry::{self, Kind};
use std::ffi::{c_char, c_int};

/// A target on a drive.
pub struct TargetHandle {
    pub(crate) core: Core,
    /// Its place among those of the drive.
    pub(crate) lane: usize,
    pub(crate) polling: Polling,
}

/// The target speaks of blocks: `pblk`, `linear`, `block_ssd`, `ox-block`.
pub const OCSSD_INTERFACE_BLOCKS: u32 = 0;
/// The target speaks of zones: `zns`.
pub const OCSSD_INTERFACE_ZONES: u32 = 1;
/// The target speaks of pages: `eleos`.
pub const OCSSD_INTERFACE_PAGES: u32 = 2;
/// The target speaks of keys and values: `kv`, `kv-block`.
pub const OCSSD_INTERFACE_KEYS: u32 = 3;
/// The target speaks of tables and logs: `lightlsm`, `table-block`.
pub const OCSSD_INTERFACE_TABLES: u32 = 4;

/// What a target is like. Of targets that do not speak of blocks, everything about these is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetInfo {
    /// Blocks.
    pub block_count: u64,
    /// Blocks of a zone, if it must be written zone by zone (`linear`, `zns`); 0 else.
    pub zone_blocks: u64,
    /// Zones; 0 without.
    pub zone_count: u64,
    /// Newest blocks of a zone that cannot be read until more are written; 0 without.
    pub unreadable_tail: u64,
    /// Most bytes of a request that is submitted. Those that are waited for have no limit.
    pub request_bytes_max: u64,
    /// Bytes of a block: offsets and lengths are multiples of it.
    pub block_bytes: u32,
    /// Blocks that writes are best a multiple of, and must be on a target with zones.
    pub write_unit: u32,
    /// Most requests that were submitted and not told yet.
    pub depth: u32,
    /// `OCSSD_INTERFACE_BLOCKS` and so on: what it speaks of, and so which calls it takes.
    pub interface: u32,
}

/// Most targets of a drive: tags of the host's have eight bits for them, of which raw entries take one.
const TARGETS_MAX: usize = 127;

fn id_of(lane: usize) -> TargetId {
    TargetId(u32::try_from(lane).expect("few targets"))
}

/// Parallel units as a text names them; all without one.
fn selection(place: Option<&str>) -> Result<UnitSelection, Failure> {
    place.map_or(Ok(UnitSelection::All), |text| text.parse().map_err(Failure::invalid))
}

impl State {
    /// A target of the drive.
    pub fn target(&self, lane: usize) -> &AnyTarget {
        self.host.target(id_of(lane))
    }

    /// A target of the drive, to change between requests.
    pub fn target_mut(&mut self, lane: usize) -> &mut AnyTarget {
        self.host.target_mut(id_of(lane))
    }

    fn info(&mut self, lane: usize) -> TargetInfo {
        let info = TargetInfo {
            request_bytes_max: u64::try_from(REQUEST_BYTES_MAX).expect("1 MiB"),
            depth: u32::try_from(TARGET_DEPTH).expect("1024"),
            ..TargetInfo::default()
        };
        match self.requests.lane(lane).shape {
            TargetShape::Blocks { block_bytes, block_count } => {
                let target = self.target(lane).block().expect("its shape says so");
                let zones = target.zones();
                TargetInfo {
                    block_bytes,
                    block_count,
                    zone_blocks: zones.map_or(0, |zones| zones.blocks),
                    zone_count: zones.map_or(0, |zones| zones.count),
                    unreadable_tail: target.unreadable_tail(),
                    write_unit: target.write_unit(),
                    interface: OCSSD_INTERFACE_BLOCKS,
                    ..info
                }
            }
            TargetShape::Zones(zones) => TargetInfo {
                block_bytes: zones.block_bytes,
                block_count: zones.block_count(),
                zone_blocks: zones.zone_blocks,
                zone_count: u64::from(zones.zone_count),
                write_unit: 1,
                interface: OCSSD_INTERFACE_ZONES,
                ..info
            },
            TargetShape::Pages(_) => TargetInfo { interface: OCSSD_INTERFACE_PAGES, ..info },
            TargetShape::Keys(_) => TargetInfo { interface: OCSSD_INTERFACE_KEYS, ..info },
            TargetShape::Tables(_) => TargetInfo { interface: OCSSD_INTERFACE_TABLES, ..info },
        }
    }

    /// Leases the units, and makes the target or mounts the one that lies there.
    fn open_target(&mut self, what: &str, place: Option<&str>) -> Result<usize, Failure> {
        let named = NamedTarget::named(
            what,
            &selection(place)?,
            &self.config().geometry,
            &self.manager,
            registry::find,
        );
        let named_target = named.map_err(|error| match error {
            NameError::NoSuchKind(sentence) => Failure::new(libc::ENOENT, sentence),
            NameError::Wrong(sentence) => Failure::invalid(sentence),
        })?;
        let kind = registry::find(&named_target.kind).map_err(Failure::invalid)?;
        let lane = self.requests.free_lane();
        if lane >= TARGETS_MAX {
            return Err(Failure::new(
                libc::EMFILE,
                format!("a drive has at most {TARGETS_MAX} targets open"),
            ));
        }
        let is_temporary = named_target.lease.is_none();
        // Names of leases are unique on the drive, and so are numbers of lanes.
        let lease = named_target.lease.clone().unwrap_or_else(|| format!("open-{lane}"));
        if is_temporary {
            let leased = self.manager.create(&lease, &named_target.kind, &named_target.units);
            leased.map_err(|error| Failure::new(libc::EBUSY, error.to_string()))?;
        } else if self.requests.has_lease(&lease) {
            return Err(Failure::new(libc::EBUSY, format!("target \"{lease}\" is open already")));
        }
        let target = self.mount(kind, &named_target).map_err(|sentence| {
            if is_temporary {
                drop(self.manager.remove(&lease));
            }
            Failure::invalid(sentence)
        })?;
        let is_new = lane == self.requests.lane_count();
        self.requests.begin(lane, TargetShape::of(&target), lease, is_temporary);
        if is_new {
            let id = self.host.add(Box::new(target));
            assert_eq!(id, id_of(lane), "lanes and targets are counted alike");
        } else {
            drop(self.host.replace(id_of(lane), Box::new(target)));
        }
        Ok(lane)
    }

    /// Makes the target while nothing else goes on. What the drive needs for it passes in its own time.
    fn mount(&mut self, kind: &Kind, named_target: &NamedTarget) -> Result<AnyTarget, String> {
        self.settle();
        let mut clock = VirtualClock::default();
        clock.wait_until(self.now());
        let mut buffers = self.host.take_buffers();
        let mut caller =
            Caller { device: self.host.device_mut(), clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let made = kind.make_any(&mut caller, &named_target.spec());
        self.host.return_buffers(buffers);
        self.host.clock_mut().jump_to(clock.now());
        let flash = self.host.device_mut().flash_mut();
        // The drive's own failure says what to do.
        let cause = flash.store_error().map_or_else(String::new, |error| format!("{error}; "));
        Ok(made.map_err(|sentence| format!("{cause}{sentence}"))?.target)
    }

    /// Lets the target put away what it keeps, and leaves it.
    fn close_target(&mut self, lane: usize) -> Result<(), Failure> {
        let outstanding = self.requests.lane(lane).in_progress + self.requests.lane(lane).ended.len();
        if outstanding > 0 {
            let text = format!("{outstanding} requests of the target were not told yet; poll until all are");
            return Err(Failure::new(libc::EBUSY, text));
        }
        // A raw window with zones keeps nothing about itself.
        let keeps_nothing = self.target(lane).block().is_some_and(|target| target.zones().is_some());
        let ended = if keeps_nothing {
            Ok(())
        } else {
            let ask = Ask::Shutdown(self.target(lane).interface());
            self.ask(lane, std::iter::once(Asked { ask, owner: Owner::Waiting })).map(|_| ())
        };
        self.settle();
        let nothing: Box<dyn BlockTarget> = Box::new(Null::default());
        drop(self.host.replace(id_of(lane), Box::new(AnyTarget::from(nothing))));
        let left = self.requests.end(lane);
        let lease = left.lease.expect("an open target has a lease");
        if left.is_temporary {
            drop(self.manager.remove(&lease).expect("the lease of an open target stands"));
        }
        ended
    }

    /// The leases that outlast this process.
    fn kept_leases(&mut self) -> MediaManager {
        let mut kept = self.manager.clone();
        for number in 0..self.requests.lane_count() {
            let lane = self.requests.lane(number);
            if let Some(lease) = lane.lease.as_ref().filter(|_| lane.is_temporary) {
                drop(kept.remove(lease).expect("the lease of an open target stands"));
            }
        }
        kept
    }

    /// Keeps the table of targets in the image, if there is one.
    fn save_leases(&mut self) -> Result<(), Failure> {
        let kept = self.kept_leases();
        self.image.as_mut().map_or(Ok(()), |image| Ok(image.save_leases(&kept)?))
    }
}

/// Opens a target: `what` is a kind with options as on the command line ("pblk", "pblk:block_bytes=512", "linear",
/// "block_ssd:dram_cache_bytes=1048576", "zns:width=group") on the parallel units `place` ("all", "pu:0-3", "group:1"; NULL
/// for all), or the name of a target that `ocssd_target_create` or the command line made, with NULL for its place. An instance
/// that lies on the units is mounted, else a new one is made. Whatever is in progress on the drive ends first.
///
/// Errors: -ENOENT if there is no such kind or name, -EBUSY if the units are another's or the target is open, -EINVAL for
/// options or units that do not fit; `*target` is then NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_open(
    drive: *mut Drive,
    what: *const c_char,
    place: *const c_char,
    target: *mut *mut TargetHandle,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for room for a handle, an open drive, and texts or NULL.
        let (drive, what, place) = unsafe {
            put(target, "target", std::ptr::null_mut())?;
            let place = if place.is_null() { None } else { Some(text(place, "place")?) };
            (shared(drive, "drive")?, text(what, "what")?, place)
        };
        let lane = drive.core.enter()?.open_target(what, place)?;
        let handle = TargetHandle { core: drive.core.clone(), lane, polling: Polling::default() };
        // SAFETY: as above.
        unsafe { put(target, "target", Box::into_raw(Box::new(handle)))? };
        Ok(0)
    })
}

/// Closes a target whose requests were all told, and sets `*target` to NULL. What it holds is durable afterwards, and the next
/// mount is quick. Whatever is in progress on the drive ends first.
///
/// Errors: -EBUSY if requests were not told yet, or from a callback of the target; -EINVAL if the target is NULL (closed
/// already). Nothing is changed then. -EIO if the target could not put away what it keeps, -ENOTRECOVERABLE after a bug: the
/// target is closed all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_close(target: *mut *mut TargetHandle) -> c_int {
    call(|| {
        // SAFETY: the header asks for a pointer to a handle.
        let handle = unsafe { *shared(target, "target")? };
        // SAFETY: as above.
        let TargetHandle { core, lane, polling } = unsafe { shared(handle, "*target")? };
        polling.check_none()?;
        let closed = match core.enter() {
            Ok(mut state) => {
                let closed = state.close_target(*lane);
                if matches!(&closed, Err(failure) if failure.errno == libc::EBUSY) {
                    return closed.map(|()| 0);
                }
                closed
            }
            Err(poisoned) if core.is_poisoned() => Err(poisoned),
            Err(busy) => return Err(busy),
        };
        // SAFETY: the handle was made by `ocssd_target_open`, and the caller's copy of it is taken away.
        unsafe {
            put(target, "target", std::ptr::null_mut())?;
            drop(Box::from_raw(handle));
        }
        closed.map(|()| 0)
    })
}

/// Leases parallel units to a target with a name, which an image keeps: `ocssd target create` on the command line. It is not
/// opened. `place` as in `ocssd_target_open`.
///
/// Errors: -ENOENT if there is no such kind, -EINVAL for a bad name or units that are another's, -EROFS if the image is only
/// looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_create(
    drive: *mut Drive,
    name: *const c_char,
    kind: *const c_char,
    place: *const c_char,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive, and texts or NULL.
        let (drive, name, kind, place) = unsafe {
            let place = if place.is_null() { None } else { Some(text(place, "place")?) };
            (shared(drive, "drive")?, text(name, "name")?, text(kind, "kind")?, place)
        };
        registry::find(kind).map_err(|sentence| Failure::new(libc::ENOENT, sentence))?;
        let mut state = drive.core.enter()?;
        let units = selection(place)?.resolve(&state.config().geometry);
        let units = units.map_err(|error| Failure::invalid(error.to_string()))?;
        let leased = state.manager.create(name, kind, &units).map(|_| ());
        leased.map_err(|error| Failure::invalid(error.to_string()))?;
        let saved = state.save_leases();
        if saved.is_err() {
            drop(state.manager.remove(name));
        }
        saved.map(|()| 0)
    })
}

/// Ends the lease of a target that is not open. What lies on its units stays until they are written again.
///
/// Errors: -ENOENT if no target has this name, -EBUSY if it is open, -EROFS if the image is only looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_remove(drive: *mut Drive, name: *const c_char) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive and a text.
        let (drive, name) = unsafe { (shared(drive, "drive")?, text(name, "name")?) };
        let mut state = drive.core.enter()?;
        if state.requests.has_lease(name) {
            return Err(Failure::new(libc::EBUSY, format!("target \"{name}\" is open; close it first")));
        }
        let before = state.manager.clone();
        let removed = state.manager.remove(name).map(|_| ());
        removed.map_err(|error| Failure::new(libc::ENOENT, error.to_string()))?;
        let saved = state.save_leases();
        if saved.is_err() {
            state.manager = before;
        }
        saved.map(|()| 0)
    })
}

/// Gets what a target is like.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_info(target: *mut TargetHandle, info: *mut TargetInfo) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let mut state = core.enter()?;
        let found = state.info(*lane);
        drop(state);
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(info, "info", found)? };
        Ok(0)
    })
}
