//! The 1.2 identify structure (E2h), made from the drive's configuration.

use super::Compat12;
use crate::config::{CellType, Config};
use crate::controller::geometry::nanoseconds;
use ocssd_nvme::ocssd12::{
    Capabilities, DeviceModel, FlashKind, GroupDescriptor, Identify, Mccap, MediaTable, PlaneOperations,
    PlaneSupport,
};

fn byte(count: u32) -> u8 {
    u8::try_from(count).expect("the shape was checked against the fields")
}

fn half(count: u32) -> u16 {
    u16::try_from(count).expect("the shape was checked against the fields")
}

impl Compat12 {
    /// One configuration group that holds the whole drive, as Linux wants it.
    pub(in crate::controller) fn identify(&self, config: &Config) -> Identify {
        Identify {
            vnvmt: 0,
            cap: Capabilities { bbt: true, hybrid: false },
            dom: DeviceModel::default(),
            ppaf: self.shape.format,
            groups: vec![self.group(config)],
        }
    }

    fn group(&self, config: &Config) -> GroupDescriptor {
        let sectors = self.shape.pages * self.shape.row_sectors();
        assert_eq!(
            sectors, config.geometry.sectors_per_chunk,
            "the pages of a block are the sectors of its chunk"
        );
        let (geometry, times) = (&config.geometry, &config.geometry.times);
        GroupDescriptor {
            mtype: 0,
            fmtype: match config.media.cell {
                CellType::Slc => FlashKind::Slc,
                CellType::Mlc => FlashKind::Mlc,
                // The shape refused four bits a cell.
                CellType::Tlc | CellType::Qlc => FlashKind::Tlc,
            },
            num_ch: byte(geometry.groups),
            num_lun: byte(geometry.pus_per_group),
            num_pln: byte(self.shape.planes),
            num_blk: half(geometry.chunks_per_pu),
            num_pg: half(self.shape.pages),
            fpg_sz_bytes: half(self.shape.sectors_per_page * geometry.sector_bytes),
            csecs_bytes: half(geometry.sector_bytes),
            sos_bytes: half(geometry.oob_bytes),
            trdt_ns: nanoseconds(times.read_typical),
            trdm_ns: nanoseconds(times.read_max),
            tprt_ns: nanoseconds(times.write_typical),
            tprm_ns: nanoseconds(times.write_max),
            tbet_ns: nanoseconds(times.reset_typical),
            tbem_ns: nanoseconds(times.reset_max),
            mpos: self.plane_support(config),
            mccap: Mccap::default(),
            cpar: half(geometry.pus_per_group),
            media_table: MediaTable::default(),
        }
    }

    /// Any page can be read and any block erased by itself; a page of one plane can be written alone only if WS_MIN
    /// is no larger. All planes together always work.
    fn plane_support(&self, config: &Config) -> PlaneSupport {
        let together =
            |single| PlaneOperations { single, dual: self.shape.planes == 2, quad: self.shape.planes == 4 };
        let page_alone = config.geometry.ws_min <= self.shape.sectors_per_page || self.shape.planes == 1;
        PlaneSupport { read: together(true), program: together(page_alone), erase: together(true) }
    }
}
