//! The cores online: whose turn it is on each, and what shares it.
//!
//! Threads are pinned and taken in order; a thread that runs is not interrupted. Spinners and FTL threads are on a core
//! beside it and stretch what starts there. Deliberately not here: how long work takes alone (`costs`).

use super::threads::ThreadNumber;

/// What a core has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Core {
    running: Option<ThreadNumber>,
    /// First and last of those that wait; the rest is in `Cores::next`.
    first: Option<ThreadNumber>,
    last: Option<ThreadNumber>,
    /// Threads that run or wait.
    threads: u32,
    spinners: u32,
    ftl_threads: u32,
}

/// All cores.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    /// Who waits behind each thread.
    next: Vec<Option<ThreadNumber>>,
    /// A bit for each core with nothing on it.
    idle: Vec<u64>,
    /// Spinners count as load.
    spinners_count: bool,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Cores {
    /// `count` idle cores for at most `threads` threads.
    pub fn new(count: u32, threads: u32, spinners_count: bool) -> Self {
        let mut idle = vec![0; index(count.div_ceil(64))];
        for core in 0..index(count) {
            idle[core / 64] |= 1 << (core % 64);
        }
        Self {
            cores: vec![Core::default(); index(count)],
            next: vec![None; index(threads)],
            idle,
            spinners_count,
        }
    }

    /// The core of a thread.
    pub fn of(&self, thread: ThreadNumber) -> u32 {
        thread.0 % u32::try_from(self.cores.len()).expect("as many as configured")
    }

    /// A thread wants its core; true if it runs now.
    pub fn enter(&mut self, core: u32, thread: ThreadNumber) -> bool {
        let place = &mut self.cores[index(core)];
        place.threads += 1;
        let runs = place.running.is_none();
        if runs {
            place.running = Some(thread);
        } else {
            match place.last.replace(thread) {
                Some(last) => self.next[index(last.0)] = Some(thread),
                None => place.first = Some(thread),
            }
        }
        self.note_load(core);
        runs
    }

    /// The thread that runs leaves its core; who runs now, if anyone waited.
    pub fn leave(&mut self, core: u32, thread: ThreadNumber) -> Option<ThreadNumber> {
        let place = &mut self.cores[index(core)];
        assert_eq!(place.running, Some(thread), "a thread leaves core {core} that does not run there");
        place.threads -= 1;
        place.running = place.first;
        if let Some(next) = place.running {
            place.first = self.next[index(next.0)].take();
            if place.first.is_none() {
                place.last = None;
            }
        }
        let runs = place.running;
        self.note_load(core);
        runs
    }

    pub fn spin(&mut self, core: u32) {
        self.cores[index(core)].spinners += 1;
        self.note_load(core);
    }

    pub fn spun(&mut self, core: u32) {
        let place = &mut self.cores[index(core)];
        assert!(place.spinners > 0, "a thread stops spinning on core {core} that did not spin there");
        place.spinners -= 1;
        self.note_load(core);
    }

    /// How many times as long work of a thread takes that starts on a core now.
    pub fn stretch(&self, core: u32) -> u64 {
        let place = &self.cores[index(core)];
        let spinners = if self.spinners_count { place.spinners } else { 0 };
        u64::from(1 + spinners + place.ftl_threads)
    }

    /// Puts an FTL thread on the highest idle core, where threads come last, else on the least loaded one: which, and how
    /// many times as long its work takes there. Cost: a word per 64 cores if one is idle, else a look at every core.
    pub fn place_ftl_thread(&mut self) -> (u32, u64) {
        let core = self.highest_idle().unwrap_or_else(|| self.least_loaded());
        let stretch = 1 + u64::from(self.load(core));
        self.cores[index(core)].ftl_threads += 1;
        self.note_load(core);
        (core, stretch)
    }

    pub fn ftl_thread_leaves(&mut self, core: u32) {
        let place = &mut self.cores[index(core)];
        assert!(place.ftl_threads > 0, "an FTL thread leaves core {core} that was not there");
        place.ftl_threads -= 1;
        self.note_load(core);
    }

    fn highest_idle(&self) -> Option<u32> {
        let word = self.idle.iter().rposition(|&bits| bits != 0)?;
        let first = u32::try_from(word * 64).expect("as many as configured");
        Some(first + self.idle[word].ilog2())
    }

    fn least_loaded(&self) -> u32 {
        let count = u32::try_from(self.cores.len()).expect("as many as configured");
        (0..count).min_by_key(|&core| self.load(core)).expect("there is a core")
    }

    fn load(&self, core: u32) -> u32 {
        let place = &self.cores[index(core)];
        let spinners = if self.spinners_count { place.spinners } else { 0 };
        place.threads + spinners + place.ftl_threads
    }

    fn note_load(&mut self, core: u32) {
        let (word, bit) = (index(core / 64), 1 << (core % 64));
        if self.load(core) == 0 {
            self.idle[word] |= bit;
        } else {
            self.idle[word] &= !bit;
        }
    }

    /// Asserts that queues, counts and idle bits agree.
    pub fn check(&self, spinners: u32, ftl_threads: u32) {
        assert_eq!(self.cores.iter().map(|core| core.spinners).sum::<u32>(), spinners, "spinners on cores");
        assert_eq!(self.cores.iter().map(|core| core.ftl_threads).sum::<u32>(), ftl_threads, "FTL threads");
        for (number, core) in (0..).zip(&self.cores) {
            let waiting = std::iter::successors(core.first, |key| self.next[index(key.0)]).count();
            let running = usize::from(core.running.is_some());
            assert_eq!(waiting + running, index(core.threads), "threads of core {number}");
            let idle = self.idle[index(number / 64)] >> (number % 64) & 1 == 1;
            assert_eq!(idle, self.load(number) == 0, "idle bit of core {number}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_serves_its_threads_in_order() {
        let mut cores = Cores::new(1, 4, true);
        let entered = [0, 1, 2].map(|thread| cores.enter(0, ThreadNumber(thread)));
        assert_eq!(entered, [true, false, false]);
        cores.check(0, 0);
        let order = [0, 1, 2].map(|thread| cores.leave(0, ThreadNumber(thread)));
        assert_eq!(order, [Some(ThreadNumber(1)), Some(ThreadNumber(2)), None]);
        assert!(cores.enter(0, ThreadNumber(3)), "the core is free again");
        cores.check(0, 0);
    }

    #[test]
    fn an_ftl_thread_looks_for_an_idle_core_and_else_shares() {
        let mut cores = Cores::new(70, 70, true);
        for thread in (0..70).filter(|&thread| thread != 3 && thread != 69) {
            cores.spin(thread);
        }
        assert_eq!(cores.place_ftl_thread(), (69, 1));
        assert_eq!(cores.place_ftl_thread(), (3, 1));
        assert_eq!(cores.place_ftl_thread(), (0, 2));
        assert_eq!((cores.stretch(0), cores.stretch(1)), (3, 2));
        cores.check(68, 3);
        cores.ftl_thread_leaves(69);
        assert_eq!(cores.place_ftl_thread(), (69, 1));
    }

    #[test]
    fn spinners_are_no_load_when_that_factor_is_off() {
        let mut cores = Cores::new(1, 1, false);
        cores.spin(0);
        assert_eq!((cores.place_ftl_thread(), cores.stretch(0)), ((0, 1), 2));
    }
}
