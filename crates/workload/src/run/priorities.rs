//! Which priority an I/O has: the job's, or one drawn for it.
//!
//! Deliberately not here: what it changes, which is nothing but the report.

use super::slots::Purpose;
use crate::job::{IoPriority, PriorityOptions};
use ocssd_base::Prng;

/// Draws priorities, from randomness of its own: a job does the same I/O with and without.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    options: PriorityOptions,
    prng: Prng,
}

impl Priorities {
    pub(super) const fn new(options: PriorityOptions, prng: Prng) -> Self {
        Self { options, prng }
    }

    /// The priority of the next I/O, of this many bytes.
    pub(super) fn draw(&mut self, purpose: Purpose, bytes: u64) -> IoPriority {
        let (shares, is_read) = match purpose {
            Purpose::Read | Purpose::Verify => (&self.options.shares.read, true),
            Purpose::Write => (&self.options.shares.write, false),
            Purpose::Trim | Purpose::Reset | Purpose::Flush => return self.options.base(),
        };
        let mut drawn = self.prng.below(100);
        for share in shares.iter().filter(|share| share.bytes.is_none_or(|of| of == bytes)) {
            match drawn.checked_sub(u64::from(share.percent)) {
                Some(rest) => drawn = rest,
                None => return self.options.of_share(share, is_read),
            }
        }
        self.options.base()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ByDirection, PriorityShare};

    #[test]
    fn shares_are_of_their_size_and_direction() {
        let own = IoPriority::new(3, 2);
        let share = |bytes, percent, priority| PriorityShare { bytes: Some(bytes), percent, priority };
        let read = vec![share(4096, 25, None), share(4096, 75, Some(own)), share(8192, 10, None)];
        let options = PriorityOptions {
            class: 2,
            level: 7,
            shares: ByDirection { read, write: Vec::new(), trim: Vec::new() },
            ..PriorityOptions::default()
        };
        let mut priorities = Priorities::new(options, Prng::new(5));
        let mut count = |purpose, bytes, of: IoPriority| {
            (0..10_000).filter(|_| priorities.draw(purpose, bytes) == of).count()
        };
        let (real_time, base) = (IoPriority::new(1, 0), IoPriority::new(2, 7));
        let near = |count: usize, percent: usize| count.abs_diff(percent * 100) < 200;
        assert!(near(count(Purpose::Read, 4096, real_time), 25), "seed 5");
        assert!(near(count(Purpose::Read, 4096, own), 75), "seed 5");
        assert!(near(count(Purpose::Read, 8192, base), 90), "seed 5");
        assert_eq!(count(Purpose::Read, 512, base), 10_000);
        assert_eq!(count(Purpose::Write, 4096, base), 10_000);
        assert_eq!(count(Purpose::Trim, 4096, base), 10_000);
    }
}
