//! When what was written leaves the buffer: at once, or in spells.
//!
//! Linux' pblk writes a unit as soon as it is full. A drive that answers writes from its DRAM may collect first, and then write
//! to all units at once until nothing is left: the units are busy for as long in all, but between two spells reads meet no
//! program, and within one, where each read takes long, a reader makes few. Who waits for what is in the buffer begins a
//! spell. Deliberately not here: buffer units and streams (`writer`), how much is readable where it lies (`Capacity`).

use super::Pblk;
use ocssd_ftl::Stream;

/// Whether it is time to write out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Destage {
    /// Full buffer units at which a spell begins; 0 writes at once.
    begins_at: usize,
    is_spell: bool,
}

impl Destage {
    /// Spells begin when so many of the buffer's units are full and wait, in percent; 0 writes at once.
    pub(super) fn new(buffer_units: u32, percent: u32) -> Self {
        assert!(percent <= 100, "{percent} % of a buffer");
        let begins_at = u64::from(buffer_units) * u64::from(percent) / 100;
        let least = u64::from(percent > 0);
        Self {
            begins_at: usize::try_from(begins_at.max(least)).expect("a buffer's units fit memory"),
            is_spell: false,
        }
    }

    /// True if so many full buffer units go out now. Nothing may be held back that somebody waits for.
    pub(super) fn goes_on(&mut self, ready: usize, is_awaited: bool) -> bool {
        if self.begins_at == 0 {
            return true;
        }
        self.is_spell = is_awaited || ready >= self.begins_at || self.is_spell && ready > 0;
        assert!(self.is_spell || ready < self.begins_at, "a full buffer is held back");
        assert!(self.is_spell || !is_awaited, "something is held back that somebody waits for");
        self.is_spell
    }
}

impl Pblk {
    /// True if what waits in a stream goes out now.
    pub(super) fn destages(&mut self, stream: Stream) -> bool {
        if self.options.destage_percent == 0 {
            return true;
        }
        let is_awaited = self.requests.next_change().is_some()
            || self.requests.next_read().is_some()
            || !self.flushes.is_idle()
            || !self.gc.is_idle()
            || !self.checkpoints.is_idle()
            || !self.reclaimer.is_idle()
            || self.pad_units_left > 0
            || self.shutdown.is_begun()
            || self.is_read_only();
        let state = &mut self.streams[stream.index()];
        state.destage.goes_on(state.ready.len(), is_awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_begins_at_the_mark_and_ends_when_nothing_is_left() {
        let mut destage = Destage::new(8, 50);
        let steps = [(0, false), (3, false), (4, true), (2, true), (1, true), (0, false), (3, false)];
        for (ready, goes_on) in steps {
            assert_eq!(destage.goes_on(ready, false), goes_on, "{ready} are ready");
        }
        assert!(destage.goes_on(1, true), "somebody waits");
        assert!(destage.goes_on(1, false), "the spell goes on until nothing is left");
        assert!(!destage.goes_on(0, false));
    }

    #[test]
    fn at_no_percent_everything_goes_out_at_once_and_at_any_other_the_first_may_wait() {
        assert!(Destage::new(8, 0).goes_on(1, false));
        let mut small = Destage::new(3, 1);
        assert!(!small.goes_on(0, false));
        assert!(small.goes_on(1, false), "a buffer of few units begins at the first");
    }
}
