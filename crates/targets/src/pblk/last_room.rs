//! Lines that are emptied though each gives less than the fill of a buffer unit may take: the last room there is.
//!
//! Where every line holds a little garbage, none is worth moving by itself: what is moved is filled up, and nothing gained. Taken
//! together they are: copies of several share a buffer unit. It is closed once the lines gave more than its fill takes. Each user's
//! write that this lets in is paid for by many that are moved, so it is done only where changes would end otherwise. Deliberately
//! not here: which line is emptied (`gc`), when nothing else goes on (`give_up`).

use crate::in_vain::InVain;

/// What lines that are emptied for the last room give.
#[derive(Clone, Debug)]
pub(super) struct LastRoom {
    /// Lines emptied with nothing written by users in between.
    tries: InVain,
    /// The next victim is one of these.
    is_wanted: bool,
    /// Sectors that lines gave whose copies are not closed yet.
    gained: u64,
}

impl LastRoom {
    /// Of `lines` lines, of which copies are filled up by less than `unit` sectors: so often one may be emptied for a sector of it.
    pub fn new(lines: u32, unit: u32) -> Self {
        Self { tries: InVain::new(lines * unit), is_wanted: false, gained: 0 }
    }

    /// Asks for a line, where users wrote so much in all. False if enough was moved for nothing.
    pub fn ask(&mut self, user_written: u64) -> bool {
        self.is_wanted = self.tries.once_more(user_written);
        self.is_wanted
    }

    /// A line is emptied that gives so many sectors, for whatever reason.
    pub fn begun(&mut self, gives: u64) {
        let is_wanted = std::mem::take(&mut self.is_wanted);
        assert!(gives > 0 || !is_wanted, "a line that gives nothing was asked for");
        self.gained += if is_wanted { gives } else { 0 };
    }

    /// True if buffer units of copies should not be closed yet, as that takes `fill` sectors.
    pub const fn is_short_of(&self, fill: u64) -> bool {
        self.gained > 0 && self.gained <= fill
    }

    /// Buffer units of copies were closed.
    pub fn closed(&mut self) {
        self.gained = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_emptied_until_they_give_more_than_the_fill() {
        let mut room = LastRoom::new(4, 8);
        room.begun(6);
        assert!(
            !room.is_short_of(7),
            "a victim like any other: its buffer unit is closed when nothing else goes on"
        );
        for (gives, is_short) in [(3, true), (4, true), (1, false)] {
            assert!(room.ask(0));
            room.begun(gives);
            assert_eq!(room.is_short_of(7), is_short, "{room:?}");
        }
        room.closed();
        assert!(!room.is_short_of(7), "nothing waits");
    }

    #[test]
    fn nothing_is_moved_for_ever_while_users_write_nothing() {
        let mut room = LastRoom::new(4, 8);
        let mut times = |written: u64| (0..100).take_while(|_| room.ask(written)).count();
        assert_eq!([times(0), times(0), times(1)], [32, 0, 32]);
    }
}
