//! What there is to say about a mount.

use super::mount::MountReport;
use super::state::LinuxPblk;

impl LinuxPblk {
    /// The state in words, for whoever looks for a bug.
    pub(super) fn in_words(&self) -> String {
        assert!(self.lines.free_count() <= self.lines.count(), "more lines are free than there are");
        let mut text = format!(
            "{} free lines, of which users leave {}; open {:?}, condemned {:?}, {:?}; {} buffer units wait\n",
            self.lines.free_count(),
            self.lines_kept,
            self.open.as_ref().map(|open| open.line()),
            self.condemned,
            self.gc,
            self.ready.len(),
        );
        for (id, line) in self.lines.iter() {
            text.push_str(&format!("line {}: valid {}, {line:?}\n", id.0, self.valid.count(id)));
        }
        text + &format!("{:?}", self.stats)
    }

    /// What there is to say about a mount.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        let what = match (report.is_fresh, self.is_read_only) {
            (true, _) => "a new Linux pblk",
            (false, true) => "a Linux pblk, to be read only,",
            (false, false) => "a Linux pblk",
        };
        let mut text = format!(
            "{what} of {} blocks, {} of them somewhere: {} full lines by their lists, {} by their sectors; {} sectors were read",
            self.l2p.sectors(),
            report.mapped,
            report.by_list,
            report.by_sectors,
            report.sectors_read
        );
        for (count, about) in [
            (u64::from(report.foreign), "lines are another instance's"),
            (u64::from(report.lost_starts), "lines have a start that cannot be read, and are taken for free"),
            (u64::from(report.miscounted), "lists do not name as many blocks as they say"),
            (
                report.beyond,
                "addresses are beyond the instance: is over_provisioning_percent as Linux was told?",
            ),
            (report.lost, "sectors were lost by the media, and whose they were"),
            (report.sectors_written, "sectors were written to end lines that a power cut left open"),
            (
                self.condemned.len().try_into().unwrap_or(u64::MAX),
                "lines have no list: they are emptied first",
            ),
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
