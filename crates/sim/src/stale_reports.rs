//! Chunk reports that are not true: after a power cycle the drive shows of some chunks something else, until it looks again.
//!
//! A controller answers Get Log Page from a copy of its chunk table, and may begin with one that is too old. The table itself is
//! right: commands are judged by it, and whoever writes or resets a chunk makes the drive look it up, so that the report of that
//! chunk is true from then on; the next power cycle begins anew. Reports are untrue in one of four ways ([`Untrue`]). A chunk of
//! which MW_CUNITS hides all is shown as FREE or OFFLINE only where another report of the same unit is untrue in a way that a mount
//! finds out: of one alone a host would have to write to every such chunk (docs/simulate.md). Deliberately not here: when that is
//! (`run`), and how often (`swarm`).

use ocssd_base::Prng;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Geometry};
use std::collections::{BTreeMap, BTreeSet};

/// How reports are not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrue {
    /// A chunk is shown as it was, of which no content is hidden: an older wear index, a chunk before it was reset or went bad, the
    /// end of an earlier life.
    Stale,
    /// A chunk is shown as it was, and content lies behind the pointer that is shown: of one that is shown as OPEN all of it may be
    /// hidden by MW_CUNITS, else some of it can be read.
    Low,
    /// OPEN chunks are shown as OPEN with a pointer that is too low, and beside such a one, on the same unit, others as FREE or
    /// OFFLINE though something is written to them, all of which is hidden by MW_CUNITS.
    Hidden,
    /// What is shown is true of no chunk; or a chunk is shown as OFFLINE though content of it can be read, or though it is FREE.
    Garbled,
}

/// The copy of the table that is shown from the next power cycle on.
#[derive(Clone, Debug)]
struct Kept {
    how: Untrue,
    /// As it was when the copy was made.
    table: Vec<ChunkDescriptor>,
    /// How likely each entry is shown, in 2^32.
    chance: u64,
    prng: Prng,
}

/// The drive's copy of its chunk table.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaleReports {
    kept: Option<Kept>,
    /// What is shown of chunks in place of what they are.
    shown: BTreeMap<ChunkId, ChunkDescriptor>,
    /// Chunks among them of which all is hidden.
    hidden: u32,
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

/// Sectors of a chunk that can be read, where the last `window` of an OPEN one cannot.
fn readable(report: &ChunkDescriptor, window: u32) -> u32 {
    let is_open = report.state == ChunkState::Open;
    if is_open { written(report).saturating_sub(window) } else { written(report) }
}

/// True if `shown` has a write pointer that is too low, in a way that a host can find out without a write to each FREE chunk.
fn is_low(shown: &ChunkDescriptor, now: &ChunkDescriptor, window: u32) -> bool {
    let is_in_doubt = shown.state == ChunkState::Open || readable(now, window) > written(shown);
    written(now) > written(shown) && is_in_doubt
}

/// True if no read finds what lies in a chunk that is shown as one without content.
fn is_hidden(shown: &ChunkDescriptor, now: &ChunkDescriptor, window: u32) -> bool {
    written(now) > 0 && readable(now, window) == 0 && written(shown) == 0 && shown.state != ChunkState::Open
}

/// What is shown of an OPEN chunk in place of what it is `now`: as it was after an earlier write of its life, or, of one of which
/// all is hidden, before the first or as OFFLINE.
fn earlier_in_life(now: &ChunkDescriptor, geometry: &Geometry, prng: &mut Prng) -> Option<ChunkDescriptor> {
    if now.state != ChunkState::Open {
        return None;
    }
    let (state, write_pointer) = match prng.below(4) {
        0 | 1 if readable(now, geometry.mw_cunits) == 0 => (ChunkState::Free, Some(0)),
        2 if readable(now, geometry.mw_cunits) == 0 => (ChunkState::Offline, None),
        _ => {
            let writes = u64::from(written(now) / geometry.ws_min);
            let earlier =
                u32::try_from(1 + prng.below(writes.checked_sub(1).filter(|&more| more > 0)?)).ok()?;
            (ChunkState::Open, Some(earlier * geometry.ws_min))
        }
    };
    Some(ChunkDescriptor { state, write_pointer, ..*now })
}

/// Something that a drive cannot report of a chunk that is `now`, or may not; nothing if the draw fits it not.
fn garbled(now: &ChunkDescriptor, window: u32, prng: &mut Prng) -> Option<ChunkDescriptor> {
    let all = now.sectors;
    let some = Some(1 + prng.below(u64::from(all) - 1)).and_then(|at| u32::try_from(at).ok());
    let (state, write_pointer) = match prng.below(7) {
        0 => (ChunkState::Free, some),
        1 => (ChunkState::Open, Some(0)),
        2 => (ChunkState::Open, Some(all)),
        3 => (ChunkState::Closed, Some(all + 1)),
        4 => (ChunkState::Open, None),
        5 => return Some(ChunkDescriptor { sectors: all / 2, ..*now }),
        // What MW_CUNITS hides of a chunk that is OFFLINE could not be found.
        _ if written(now) > 0 && readable(now, window) == 0 => return None,
        _ => (ChunkState::Offline, None),
    };
    Some(ChunkDescriptor { state, write_pointer, ..*now })
}

impl StaleReports {
    /// The copy is made of `table`; after the next power cycle each entry is shown with a chance of `chance` in 2^32.
    pub(crate) fn keep(&mut self, how: Untrue, table: Vec<ChunkDescriptor>, chance: u64, prng: Prng) {
        assert!(chance <= 1 << 32, "a chance of {chance} in 2^32");
        self.kept = Some(Kept { how, table, chance, prng });
    }

    /// True if a copy is there for the next power cycle.
    pub(crate) const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The power comes back, and the chunks of a drive of this `geometry` are `now`; nobody looks at them if no copy was kept.
    pub(crate) fn power_cycled(&mut self, now: &[ChunkDescriptor], geometry: &Geometry) {
        let window = geometry.mw_cunits;
        self.shown.clear();
        self.hidden = 0;
        let Some(Kept { how, table, chance, mut prng }) = self.kept.take() else { return };
        assert_eq!(table.len(), now.len(), "a drive has as many chunks as it had");
        let is_of_now = matches!(how, Untrue::Hidden | Untrue::Garbled);
        for ((chunk, now), was) in (0..).map(ChunkId).zip(now).zip(table) {
            let is_drawn = (is_of_now || was != *now) && prng.chance(chance);
            let shown = match how {
                _ if !is_drawn => None,
                Untrue::Stale => Some(was).filter(|was| !hides(was, now)),
                Untrue::Low => Some(was).filter(|was| is_low(was, now, window)),
                Untrue::Hidden => earlier_in_life(now, geometry, &mut prng),
                Untrue::Garbled => garbled(now, window, &mut prng),
            };
            if let Some(shown) = shown {
                self.shown.insert(chunk, shown);
            }
        }
        if how == Untrue::Hidden {
            self.show_what_can_be_doubted(now, geometry);
        }
    }

    /// Of a unit none of whose reports a mount finds to be untrue, none hides all of a chunk.
    fn show_what_can_be_doubted(&mut self, now: &[ChunkDescriptor], geometry: &Geometry) {
        let window = geometry.mw_cunits;
        let is_hidden =
            |(&chunk, shown): (&ChunkId, &ChunkDescriptor)| is_hidden(shown, &now[chunk.index()], window);
        let unit_of = |chunk: ChunkId| chunk.0 / geometry.chunks_per_pu;
        let found: BTreeSet<u32> =
            self.shown.iter().filter(|&entry| !is_hidden(entry)).map(|(&chunk, _)| unit_of(chunk)).collect();
        self.shown.retain(|chunk, shown| found.contains(&unit_of(*chunk)) || !is_hidden((chunk, shown)));
        let hidden = self.shown.iter().filter(|&entry| is_hidden(entry)).count();
        self.hidden = u32::try_from(hidden).expect("fewer chunks than 2^32");
    }

    /// A write or reset names the chunk: the drive looks it up.
    pub(crate) fn looked_up(&mut self, chunk: ChunkId) {
        self.shown.remove(&chunk);
    }

    /// Chunks of which something else is shown than what they are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.shown.len()).expect("fewer chunks than 2^32")
    }

    /// Chunks of which all was hidden when the power came back.
    pub(crate) const fn hidden(&self) -> u32 {
        self.hidden
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

    fn geometry() -> Geometry {
        Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 2, 32, 4) }
    }

    /// What is shown of a chunk that is `now` and was `was` when the copy was made.
    fn shown(was: ChunkDescriptor, now: ChunkDescriptor) -> Option<ChunkDescriptor> {
        let mut reports = StaleReports::default();
        reports.keep(Untrue::Stale, vec![was], 1 << 32, Prng::new(1));
        reports.power_cycled(&[now], &geometry());
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
    fn a_report_that_is_too_low_hides_what_can_be_read_or_shows_an_open_chunk() {
        let low = |was, now| {
            let mut reports = StaleReports::default();
            reports.keep(Untrue::Low, vec![was], 1 << 32, Prng::new(1));
            reports.power_cycled(&[now], &geometry());
            reports.of(ChunkId(0))
        };
        let free = report(ChunkState::Free, 0, 1);
        let open = |written| report(ChunkState::Open, written, 1);
        assert_eq!(low(free, open(12)), Some(free));
        assert_eq!(low(free, open(8)), None, "all of it is in the window");
        assert_eq!(low(open(4), open(16)), Some(open(4)));
        assert_eq!(low(open(12), open(16)), Some(open(12)), "what is more is in the window");
        assert_eq!(low(open(4), open(8)), Some(open(4)), "all of it is in the window");
        assert_eq!(low(open(16), open(12)), None, "that is too high");
        assert_eq!(low(open(12), report(ChunkState::Closed, 32, 1)), Some(open(12)));
        assert_eq!(low(open(12), free), None, "that is a stale one");
    }

    /// Two chunks on each of two units: of the first unit one is shown too low, of the second none.
    #[test]
    fn a_report_hides_all_of_a_chunk_only_beside_one_that_a_mount_finds_to_be_untrue() {
        let open = |written| report(ChunkState::Open, written, 1);
        let (free, offline) = (report(ChunkState::Free, 0, 1), report(ChunkState::Offline, 0, 1));
        let mut seen = BTreeSet::new();
        for seed in 0..100 {
            let mut reports = StaleReports::default();
            let now = [open(12), open(8), report(ChunkState::Closed, 32, 1), open(4)];
            reports.keep(Untrue::Hidden, now.to_vec(), 1 << 32, Prng::new(seed));
            reports.power_cycled(&now, &geometry());
            let low = reports.of(ChunkId(0)).expect("it is shown in another way");
            assert!(low == open(4) || low == open(8), "seed {seed}: {low:?}");
            let hidden = reports.of(ChunkId(1)).expect("it is shown in another way");
            assert!([free, offline, open(4)].contains(&hidden), "seed {seed}: {hidden:?}");
            seen.insert(hidden.state);
            assert_eq!(reports.of(ChunkId(2)), None, "seed {seed}: it is not OPEN");
            assert_eq!(reports.of(ChunkId(3)), None, "seed {seed}: nobody would look for it");
        }
        assert_eq!(seen.len(), 3, "only {seen:?} was shown");
    }

    #[test]
    fn a_garbled_report_is_another_and_hides_no_chunk_that_cannot_be_read() {
        let mut free_shown_offline = 0;
        for (seed, now) in (0..200).flat_map(|seed| {
            let states = [
                report(ChunkState::Free, 0, 1),
                report(ChunkState::Open, 8, 1),
                report(ChunkState::Closed, 32, 1),
            ];
            states.map(|now| (seed, now))
        }) {
            let mut reports = StaleReports::default();
            reports.keep(Untrue::Garbled, vec![now], 1 << 32, Prng::new(seed));
            reports.power_cycled(&[now], &geometry());
            let Some(shown) = reports.of(ChunkId(0)) else { continue };
            assert_ne!(shown, now, "seed {seed}");
            let is_offline = shown.state == ChunkState::Offline;
            assert!(!is_offline || now.state != ChunkState::Open, "seed {seed}: {shown:?}");
            free_shown_offline += u32::from(is_offline && now.state == ChunkState::Free);
        }
        assert!(free_shown_offline > 0, "no empty chunk was shown as OFFLINE");
    }

    #[test]
    fn a_report_is_true_once_the_chunk_is_written_or_the_power_goes_again() {
        let (was, now) = (report(ChunkState::Closed, 32, 1), report(ChunkState::Free, 0, 2));
        let mut reports = StaleReports::default();
        reports.keep(Untrue::Stale, vec![was; 2], 1 << 32, Prng::new(1));
        reports.power_cycled(&[now; 2], &geometry());
        assert_eq!(reports.count(), 2);
        reports.looked_up(ChunkId(0));
        assert_eq!((reports.of(ChunkId(0)), reports.of(ChunkId(1))), (None, Some(was)));
        reports.power_cycled(&[now; 2], &geometry());
        assert_eq!(reports.count(), 0);
    }
}
