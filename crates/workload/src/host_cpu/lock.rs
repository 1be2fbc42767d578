//! A lock of pblk, of its ring or of its map: one resource, first come, first served, with spinners that come again and again.
//!
//! Holds that matter are granted one after the other. Spinners are a number, not events: they delay whoever comes by what
//! [`Costs::spinner_wait`] says. Both waits run at the same time, so the longer counts; with many real holds queued
//! behind many spinners that is up to half too short. Deliberately not here: what is done under the lock.

use super::costs::{Costs, Crowd};
use ocssd_base::Nanos;

/// The lock, and who is around it.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    free_at: Nanos,
    spinners: u32,
    /// Threads with a request that takes it, by socket, and how many sockets have any.
    users: Vec<u32>,
    sockets: u32,
}

/// One hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    /// Until granted.
    pub wait: Nanos,
    /// When it ends.
    pub end: Nanos,
}

impl Lock {
    pub fn new(sockets: u32) -> Self {
        let users = vec![0; usize::try_from(sockets).expect("32 bits fit an index")];
        Self { free_at: Nanos::ZERO, spinners: 0, users, sockets: 0 }
    }

    pub const fn crowd(&self) -> Crowd {
        Crowd { spinners: self.spinners, sockets: self.sockets }
    }

    /// Asks for the lock at `now`, for `hold`.
    pub fn take(&mut self, now: Nanos, hold: Nanos, costs: &Costs) -> Hold {
        if !costs.config().lock {
            return Hold { wait: Nanos::ZERO, end: now + hold };
        }
        let granted = (now + costs.spinner_wait(self.crowd())).max(self.free_at);
        self.free_at = granted + hold;
        Hold { wait: granted - now, end: self.free_at }
    }

    pub const fn spin(&mut self) {
        self.spinners += 1;
    }

    pub fn spun(&mut self) {
        assert!(self.spinners > 0, "a thread stops spinning that did not spin");
        self.spinners -= 1;
    }

    /// A thread on a socket begins a request that takes it.
    pub fn user_begins(&mut self, socket: u32) {
        let users = &mut self.users[usize::try_from(socket).expect("32 bits fit an index")];
        self.sockets += u32::from(*users == 0);
        *users += 1;
    }

    /// A thread on a socket ends such a request.
    pub fn user_ends(&mut self, socket: u32) {
        let users = &mut self.users[usize::try_from(socket).expect("32 bits fit an index")];
        assert!(*users > 0, "a request ends on socket {socket} that did not begin there");
        *users -= 1;
        self.sockets -= u32::from(*users == 0);
    }

    pub fn check(&self, spinners: u32, users: u32) {
        assert_eq!(self.spinners, spinners, "the lock and the threads disagree who spins");
        assert_eq!(self.users.iter().sum::<u32>(), users, "requests in flight by socket");
        let sockets = self.users.iter().filter(|&&count| count > 0).count();
        assert_eq!(u32::try_from(sockets), Ok(self.sockets), "sockets with requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_cpu::HostCpuConfig;

    #[test]
    fn holds_follow_one_another_unless_the_factor_is_off() {
        for (lock, ends, waits) in [(true, [100, 200, 300], [0, 100, 200]), (false, [100; 3], [0; 3])] {
            let costs = Costs::new(HostCpuConfig { lock, ..HostCpuConfig::free() }, 4096);
            let mut one = Lock::new(1);
            let holds = [0; 3].map(|_| one.take(Nanos::ZERO, Nanos(100), &costs));
            assert_eq!((holds.map(|h| h.end.0), holds.map(|h| h.wait.0)), (ends, waits), "lock={lock}");
        }
    }

    #[test]
    fn sockets_are_counted_while_they_write() {
        let mut lock = Lock::new(2);
        lock.user_begins(0);
        lock.user_begins(1);
        lock.user_begins(1);
        assert_eq!(lock.crowd().sockets, 2);
        lock.user_ends(1);
        lock.user_ends(1);
        lock.spin();
        assert_eq!(lock.crowd(), Crowd { spinners: 1, sockets: 1 });
        lock.check(1, 1);
    }
}
