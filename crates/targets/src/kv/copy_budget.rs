//! How much of long values is copied in a turn of the host: between two turns it looks at what others ask.
//!
//! A value of megabytes takes a processor milliseconds to copy and to sum. Deliberately not here: what is copied (`stage`), and
//! that the target asks for the next turn at once (`target`).

/// Bytes of a turn (chosen: some ten microseconds).
const BYTES_OF_TURN: u32 = 64 << 10;

/// What may be copied in this turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyBudget {
    left: u32,
    /// Something waits for the next turn.
    is_waited_for: bool,
}

impl CopyBudget {
    /// That of a turn.
    pub const fn new() -> Self {
        Self { left: BYTES_OF_TURN, is_waited_for: false }
    }

    /// The next turn begins. True if something waited for it.
    pub const fn renew(&mut self) -> bool {
        let is_waited_for = self.is_waited_for;
        *self = Self::new();
        is_waited_for
    }

    /// Takes so many bytes, of which the last may be beyond what is left. False if nothing is left: then they wait.
    pub fn take(&mut self, bytes: u32) -> bool {
        assert!(bytes > 0, "nothing is copied");
        if self.left == 0 {
            self.is_waited_for = true;
            return false;
        }
        self.left = self.left.saturating_sub(bytes);
        true
    }

    /// Something waits for the next turn.
    pub const fn is_waited_for(self) -> bool {
        self.is_waited_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_copies_so_much_and_the_rest_waits_for_the_next() {
        let mut budget = CopyBudget::new();
        assert!(budget.take(BYTES_OF_TURN - 1) && budget.take(9_000) && !budget.is_waited_for());
        assert!(!budget.take(1) && budget.is_waited_for());
        assert!(budget.renew() && !budget.is_waited_for() && budget.take(1));
        assert!(!budget.renew(), "nothing waited");
    }
}
