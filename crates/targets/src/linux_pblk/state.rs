//! The state of an instance: its parts, and what is under way.

use super::read::ReadPurpose;
use super::requests::Requests;
use super::stats::LinuxPblkStats;
use crate::flight::Flight;
use ocssd_base::Divisor;
use ocssd_ftl::{L2p, LineId, Lines, Shape, ValidMap};
use ocssd_lightnvm::{Geometry, Ppa};

/// The target.
#[derive(Clone, Debug)]
pub struct LinuxPblk {
    pub(super) shape: Shape,
    pub(super) block_bytes: u32,
    /// What lies beside sectors is in the last of each unit, and not looked at when one is read.
    pub(super) packed: bool,
    pub(super) l2p: L2p,
    pub(super) valid: ValidMap,
    pub(super) lines: Lines,
    pub(super) requests: Requests,
    pub(super) flight: Flight<ReadPurpose>,
    /// Nothing is taken any more.
    pub(super) is_shut_down: bool,
    pub(super) stats: LinuxPblkStats,
    /// To find the line of a chunk.
    by_lines: Divisor,
}

impl LinuxPblk {
    /// An instance whose map is known.
    pub(super) fn new(
        geometry: &Geometry,
        shape: Shape,
        packed: bool,
        (l2p, valid, lines): (L2p, ValidMap, Lines),
        stats: LinuxPblkStats,
    ) -> Self {
        assert_eq!(l2p.count_mapped(), valid.total(), "the map and what is valid disagree");
        Self {
            by_lines: Divisor::new(u64::from(shape.lines())),
            shape,
            block_bytes: geometry.sector_bytes,
            packed,
            l2p,
            valid,
            lines,
            requests: Requests::default(),
            flight: Flight::new(),
            is_shut_down: false,
            stats,
        }
    }

    /// The line a sector of this instance is in.
    pub(super) fn line_of(&self, ppa: Ppa) -> LineId {
        LineId(self.by_lines.div_rem_u32(ppa.chunk.0).1)
    }

    /// What there is to say about a mount.
    #[must_use]
    pub fn describe(&self, report: &super::MountReport) -> String {
        let mut text = format!(
            "a Linux pblk of {} blocks, {} of them somewhere, to be read only: {} full lines by their lists, {} by their sectors; \
             {} sectors were read",
            self.l2p.sectors(),
            report.mapped,
            report.by_list,
            report.by_sectors,
            report.sectors_read
        );
        for (count, about) in [
            (u64::from(report.foreign), "lines are another instance's"),
            (u64::from(report.miscounted), "lists do not name as many blocks as they say"),
            (
                report.beyond,
                "addresses are beyond the instance: is over_provisioning_percent as Linux was told?",
            ),
            (report.lost, "sectors were lost by the media, and whose they were"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {count} {about}"));
            }
        }
        if let Some(crc) = report.map_crc {
            text.push_str(&format!("; L2P CRC: {crc:x}"));
        }
        text
    }
}
