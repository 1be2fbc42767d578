//! How often something is tried for nothing: a bound on starting over.
//!
//! What is tried when nothing else can go on (copies are given up and garbage collection chooses again; lines are emptied that give
//! little) may lead back to where it began. So after a number of times without anything done in between it is not tried any more,
//! and changes end. Deliberately not here: what is tried, and what counts as done (the targets).

/// Tries, and what was done before the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InVain {
    /// Tries with nothing done in between, at most.
    max: u32,
    done: u64,
    /// Tries since more was done.
    tries: u32,
}

impl InVain {
    /// Nothing was tried; at most `max` tries follow each other with nothing done in between.
    pub const fn new(max: u32) -> Self {
        assert!(max > 0, "nothing is ever tried");
        Self { max, done: 0, tries: 0 }
    }

    /// True if it may be tried once more, where `done` counts all that was done so far.
    pub fn once_more(&mut self, done: u64) -> bool {
        assert!(done >= self.done, "{done} things were done, and {} before", self.done);
        if done > self.done {
            (self.done, self.tries) = (done, 0);
        }
        let may = self.tries < self.max;
        self.tries += u32::from(may);
        assert!(self.tries <= self.max, "it was tried {} times in vain", self.tries);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_tried_a_few_times_and_again_once_something_was_done() {
        let mut in_vain = InVain::new(8);
        let mut times = |done: u64| (0..100).take_while(|_| in_vain.once_more(done)).count();
        assert_eq!([times(0), times(0)], [8, 0], "it is not tried for ever");
        assert_eq!([times(5), times(5), times(6)], [8, 0, 8], "whatever was done may be room for the next");
    }
}
