//! Geometry (E2h) of OCSSD 2.0; on a 1.2 drive the same opcode is Identify (`v12`).

use super::admin::put_reply;
use super::completion::Refused;
use super::front_end::{Controller, NSID};
use ocssd_base::Nanos;
use ocssd_lightnvm::{Geometry, Status};
use ocssd_nvme::Sqe;
use ocssd_nvme::ocssd20::{self, Mccap};

/// A time as the 32-bit field of the wire; longer than 4.2 s stays there.
pub(super) fn nanoseconds(time: Nanos) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}

impl Controller {
    pub(super) fn geometry_page(&self, sqe: &Sqe, data: &mut [u8]) -> Result<(), Refused> {
        if sqe.nsid != NSID {
            return Err(Refused(Status::INVALID_NAMESPACE));
        }
        match &self.v12 {
            None => put_reply(data, &wire_geometry(self.geometry()).encode()),
            Some(v12) => put_reply(data, &v12.identify(self.config()).encode()),
        }
    }
}

/// The geometry in the wire's types.
fn wire_geometry(geometry: &Geometry) -> ocssd20::Geometry {
    let half = |count: u32| u16::try_from(count).expect("the drive was checked to have at most 65535");
    assert!(geometry.ws_opt.is_multiple_of(geometry.ws_min), "a checked drive has a WS_OPT of whole WS_MINs");
    assert!(geometry.lba_format.checked().is_ok(), "a checked drive has a format of at most 63 bits");
    let (times, capabilities) = (&geometry.times, geometry.capabilities);
    ocssd20::Geometry {
        mjr: 2,
        mnr: 0,
        lbaf: geometry.lba_format,
        mccap: Mccap {
            vector_copy: capabilities.vector_copy,
            multiple_resets: capabilities.multiple_resets,
            early_reset: capabilities.early_reset,
        },
        wit: geometry.wear_index_threshold,
        num_grp: half(geometry.groups),
        num_pu: half(geometry.pus_per_group),
        num_chk: geometry.chunks_per_pu,
        clba: geometry.sectors_per_chunk,
        ws_min: geometry.ws_min,
        ws_opt: geometry.ws_opt,
        mw_cunits: geometry.mw_cunits,
        maxoc: geometry.max_open_chunks,
        maxocpu: geometry.max_open_chunks_per_pu,
        trdt_ns: nanoseconds(times.read_typical),
        trdm_ns: nanoseconds(times.read_max),
        twrt_ns: nanoseconds(times.write_typical),
        twrm_ns: nanoseconds(times.write_max),
        tcrst_ns: nanoseconds(times.reset_typical),
        tcrsm_ns: nanoseconds(times.reset_max),
    }
}
