//! Whose turn it is when users and garbage collection both want the next buffer unit that gets free: each in turn.
//!
//! Garbage collection reads ahead, looks first, and leaves nothing for itself free: it would take every buffer unit as long as it
//! has something to move, and users would wait for as long as that takes. Deliberately not here: how many sectors users may
//! write (`limit`), and the buffer units that are kept for garbage collection (`state`).

use super::Pblk;
use super::waits::WaitCause;

/// Who took the last buffer unit, and whether users wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferTurn {
    users_wait: bool,
    gc_took: bool,
}

impl BufferTurn {
    /// The oldest write waits, for this.
    pub const fn users_wait_for(&mut self, cause: WaitCause) {
        self.users_wait = matches!(cause, WaitCause::Buffer);
    }

    /// A buffer unit was taken.
    pub const fn taken(&mut self, for_gc: bool) {
        self.gc_took = for_gc;
        self.users_wait &= for_gc;
    }

    /// The next one is users'.
    pub const fn is_users(self) -> bool {
        self.users_wait && self.gc_took
    }
}

impl Pblk {
    /// True if garbage collection leaves the next buffer unit to users: it has what is kept for it, they wait for one, and one that
    /// is being written will be free.
    pub(super) fn leaves_buffer_to_users(&self) -> bool {
        let shares_stream = self.streams_count() == u32::from(self.user_streams);
        let has_its_own = shares_stream || self.buffer_units_kept() == 0;
        let leaves = self.turn.is_users() && has_its_own && self.requests.next_change().is_some();
        leaves && !self.is_all_programmed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_who_wait_for_a_buffer_unit_have_every_second_one() {
        let mut turn = BufferTurn::default();
        turn.taken(true);
        assert!(!turn.is_users(), "nobody waits");
        turn.users_wait_for(WaitCause::Buffer);
        assert!(turn.is_users());
        turn.taken(false);
        assert!(!turn.is_users(), "they had theirs");
        turn.users_wait_for(WaitCause::Buffer);
        assert!(!turn.is_users(), "it is garbage collection's turn");
        turn.taken(true);
        assert!(turn.is_users());
    }

    /// Whoever waits for space waits for garbage collection, which must not wait for them.
    #[test]
    fn users_who_wait_for_something_else_have_no_turn() {
        for cause in [WaitCause::Limiter, WaitCause::Line, WaitCause::Wear, WaitCause::Checkpoint] {
            let mut turn = BufferTurn::default();
            turn.users_wait_for(WaitCause::Buffer);
            turn.taken(true);
            turn.users_wait_for(cause);
            assert!(!turn.is_users(), "{cause:?}");
        }
    }
}
