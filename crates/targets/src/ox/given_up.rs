//! How often copies are given up for nothing: a bound on starting over.
//!
//! Copies that nothing fills are given up when nothing else can go on, and garbage collection chooses again. What it chooses may be
//! the same chunk, whose copies have no place again. So after a few times without any piece of data programmed or any chunk reset
//! in between, copies are not given up any more, and changes end. Deliberately not here: what is given up (`collect`), and who asks
//! for it (`stop`).

/// Times that copies are given up with nothing done in between (chosen: victims that are drawn are others the next time).
const IN_VAIN_MAX: u32 = 8;

/// Copies that were given up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenUp {
    /// What was done before the last time.
    done: u64,
    /// Times since more was done.
    in_vain: u32,
}

impl GivenUp {
    /// True if copies may be given up once more, where `done` counts what was programmed and reset in all.
    pub fn once_more(&mut self, done: u64) -> bool {
        assert!(done >= self.done, "{done} things were done, and {} before", self.done);
        if done > self.done {
            (self.done, self.in_vain) = (done, 0);
        }
        let may = self.in_vain < IN_VAIN_MAX;
        self.in_vain += u32::from(may);
        assert!(self.in_vain <= IN_VAIN_MAX, "copies were given up {} times in vain", self.in_vain);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_given_up_a_few_times_and_again_once_something_was_done() {
        let mut given_up = GivenUp::default();
        let mut times = |done: u64| (0..100).take_while(|_| given_up.once_more(done)).count();
        assert_eq!([times(0), times(0)], [8, 0], "a victim is not chosen for ever");
        assert_eq!([times(5), times(5), times(6)], [8, 0, 8], "whatever was done may be room for the next");
    }
}
