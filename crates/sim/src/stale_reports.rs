//! Chunk reports that are behind: after a power cycle the drive shows of some chunks what they were before, until it looks again.
//!
//! A controller answers Get Log Page from a copy of its chunk table, and may begin with one that is too old. The table itself is
//! right: commands are judged by it, and whoever writes or resets a chunk makes the drive look it up, so that the report of that
//! chunk is true from then on; the next power cycle begins anew. A report never hides what was written: with a write pointer that
//! is too low, nothing that a host may ask for tells content from the end of the chunk, unless every chunk is read behind its end
//! at every mount. So what is shown is an older wear index, a chunk as it was before it was reset or went bad, or the end of an
//! earlier life. Deliberately not here: when that is (`run`), and how often (`swarm`).

use ocssd_base::Prng;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState};
use std::collections::BTreeMap;

/// The drive's copy of its chunk table.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaleReports {
    /// The table as it was when the copy was made, how likely each entry is shown, and what decides; for the next power cycle.
    kept: Option<(Vec<ChunkDescriptor>, u64, Prng)>,
    /// What is shown of chunks in place of what they are.
    shown: BTreeMap<ChunkId, ChunkDescriptor>,
}

/// Sectors a chunk has by its report.
fn written(report: &ChunkDescriptor) -> u32 {
    match report.state {
        ChunkState::Free | ChunkState::Offline => 0,
        ChunkState::Open | ChunkState::Closed => report.write_pointer.unwrap_or(0),
    }
}

/// True if a host that believes `shown` cannot find all that lies in the chunk: sectors behind the write pointer, and those of an
/// open chunk that can be read only when more follows.
fn hides(shown: &ChunkDescriptor, now: &ChunkDescriptor) -> bool {
    let is_open = |report: &ChunkDescriptor| report.state == ChunkState::Open;
    written(now) > written(shown) || (is_open(now) && !is_open(shown))
}

impl StaleReports {
    /// The copy is made of `table`; after the next power cycle each entry is shown with a chance of `chance` in 2^32.
    pub(crate) fn keep(&mut self, table: Vec<ChunkDescriptor>, chance: u64, prng: Prng) {
        assert!(chance <= 1 << 32, "a chance of {chance} in 2^32");
        self.kept = Some((table, chance, prng));
    }

    /// True if a copy is there for the next power cycle.
    pub(crate) const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The power comes back, and the chunks are `now`; nobody looks at them if no copy was kept.
    pub(crate) fn power_cycled(&mut self, now: &[ChunkDescriptor]) {
        self.shown.clear();
        let Some((table, chance, mut prng)) = self.kept.take() else { return };
        assert_eq!(table.len(), now.len(), "a drive has as many chunks as it had");
        for ((chunk, now), was) in (0..).map(ChunkId).zip(now).zip(table) {
            if was != *now && prng.chance(chance) && !hides(&was, now) {
                self.shown.insert(chunk, was);
            }
        }
    }

    /// A write or reset names the chunk: the drive looks it up.
    pub(crate) fn looked_up(&mut self, chunk: ChunkId) {
        self.shown.remove(&chunk);
    }

    /// Chunks of which something else is shown than what they are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.shown.len()).expect("fewer chunks than 2^32")
    }

    /// What is shown of a chunk, if it is not what it is.
    pub(crate) fn of(&self, chunk: ChunkId) -> Option<ChunkDescriptor> {
        self.shown.get(&chunk).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Lba;

    fn report(state: ChunkState, written: u32, wear_index: u8) -> ChunkDescriptor {
        let write_pointer = (state != ChunkState::Offline).then_some(written);
        ChunkDescriptor { state, wear_index, first: Lba(0), sectors: 32, write_pointer }
    }

    /// What is shown of a chunk that is `now` and was `was` when the copy was made.
    fn shown(was: ChunkDescriptor, now: ChunkDescriptor) -> Option<ChunkDescriptor> {
        let mut reports = StaleReports::default();
        reports.keep(vec![was], 1 << 32, Prng::new(1));
        reports.power_cycled(&[now]);
        reports.of(ChunkId(0))
    }

    #[test]
    fn a_chunk_is_shown_as_it_was_before_a_reset_or_its_end() {
        let (closed, open) = (report(ChunkState::Closed, 32, 1), report(ChunkState::Open, 8, 1));
        for now in [report(ChunkState::Free, 0, 2), report(ChunkState::Offline, 0, 2)] {
            assert_eq!(shown(closed, now), Some(closed));
            assert_eq!(shown(open, now), Some(open));
        }
        assert_eq!(shown(open, report(ChunkState::Open, 4, 2)), Some(open), "an earlier life's end");
    }

    #[test]
    fn no_report_hides_what_was_written() {
        let free = report(ChunkState::Free, 0, 1);
        let (open, closed) = (report(ChunkState::Open, 8, 1), report(ChunkState::Closed, 32, 1));
        assert_eq!(shown(free, open), None);
        assert_eq!(shown(open, closed), None);
        assert_eq!(shown(closed, report(ChunkState::Open, 8, 2)), None, "its window could not be opened");
        assert_eq!(shown(open, open), None, "true reports are not stale");
    }

    #[test]
    fn a_report_is_true_once_the_chunk_is_written_or_the_power_goes_again() {
        let (was, now) = (report(ChunkState::Closed, 32, 1), report(ChunkState::Free, 0, 2));
        let mut reports = StaleReports::default();
        reports.keep(vec![was; 2], 1 << 32, Prng::new(1));
        reports.power_cycled(&[now; 2]);
        assert_eq!(reports.count(), 2);
        reports.looked_up(ChunkId(0));
        assert_eq!((reports.of(ChunkId(0)), reports.of(ChunkId(1))), (None, Some(was)));
        reports.power_cycled(&[now; 2]);
        assert_eq!(reports.count(), 0);
    }
}
