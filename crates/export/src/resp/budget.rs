//! How much memory clients' requests and answers may take together, beyond the little that each always has.
//!
//! Deliberately not here: what is done when there is none left (a command is refused, in Redis' words `OOM`).

use std::cell::Cell;
use std::rc::Rc;

/// What a request or an answer takes without asking (chosen: most are shorter, and a thousand clients are 64 MiB).
pub const FREE_BYTES: usize = 64 << 10;

/// Memory is reserved in such steps (chosen: a few system calls' worth of payload).
const STEP_BYTES: u64 = 64 << 10;

#[derive(Debug)]
struct Account {
    limit: u64,
    used: Cell<u64>,
}

/// The memory all clients share.
#[derive(Clone, Debug)]
pub struct Budget(Rc<Account>);

impl Budget {
    /// So many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Rc::new(Account { limit, used: Cell::new(0) }))
    }

    /// Bytes that are reserved.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.used.get()
    }

    /// Bytes there are.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// A reservation of nothing.
    #[must_use]
    pub fn nothing(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }
}

/// Bytes of the budget; they come back when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

impl Reservation {
    /// Has it cover `bytes` bytes, those that are free included. False if there is no room; it stays as it was then.
    #[must_use]
    pub fn cover(&mut self, bytes: usize) -> bool {
        let beyond = u64::try_from(bytes.saturating_sub(FREE_BYTES)).expect("a length fits 64 bits");
        if beyond <= self.bytes {
            return true;
        }
        let wanted = beyond.next_multiple_of(STEP_BYTES);
        let account = &self.budget.0;
        let used = account.used.get() - self.bytes + wanted;
        if used > account.limit {
            return false;
        }
        account.used.set(used);
        self.bytes = wanted;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let used = &self.budget.0.used;
        used.set(used.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_comes_back_and_what_is_too_much_is_refused() {
        let budget = Budget::new(3 * STEP_BYTES);
        let (mut one, mut other) = (budget.nothing(), budget.nothing());
        assert!(one.cover(FREE_BYTES) && budget.used() == 0, "the first bytes are free");
        assert!(one.cover(FREE_BYTES + 1) && budget.used() == STEP_BYTES);
        assert!(one.cover(2 * FREE_BYTES + 1) && budget.used() == 2 * STEP_BYTES);
        assert!(!other.cover(3 * FREE_BYTES) && budget.used() == 2 * STEP_BYTES);
        assert!(other.cover(2 * FREE_BYTES));
        drop(one);
        assert_eq!(budget.used(), STEP_BYTES);
        drop(other);
        assert_eq!(budget.used(), 0);
    }
}
