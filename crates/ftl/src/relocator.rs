//! Relocation, the part of garbage collection that empties lines: one line at a time, or as many as the owner allows, is read and
//! what is in it moves on, and lines of which everything moved wait until that is durable.
//!
//! What is emptied may be a line or a chunk, and is read by positions that only grow: both are the owner's types. Reads end in
//! any order, are looked at in the order in which they ended, and may be put back half done when the owner has no room. A line
//! that waits too long is begun again. Deliberately not here: which line is worth emptying (`victim`), what is live in it, where
//! it goes and when that is durable (the owner judges), commands, resetting the line (`reclaimer`).

use crate::instance_geometry::LineId;
use crate::stripe_order::ReadPosition;
use ocssd_lightnvm::BufId;
use std::collections::VecDeque;
use std::fmt::Debug;

/// A line that is being emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim<L = LineId, P = ReadPosition> {
    /// Which.
    pub line: L,
    /// Where the next read begins to look.
    pub next: P,
    /// What was valid when it was begun, in sectors or as the owner counts it.
    pub valid: u64,
    /// Sectors that were read and moved, or died meanwhile.
    pub moved: u64,
    /// Reads that were sent and not moved whole.
    reads: u32,
    is_read: bool,
}

impl<L, P> Victim<L, P> {
    /// Everything valid was read, or is being read.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        self.is_read
    }

    /// Everything was read, and moved or found dead.
    #[must_use]
    pub const fn is_moved(&self) -> bool {
        self.is_read && self.reads == 0
    }
}

/// Sectors that were read, and are not all moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocationRead<T, L = LineId> {
    /// Where their content is.
    pub buffer: BufId,
    /// Of which victim; `None` for sectors that move for another reason.
    pub line: Option<L>,
    /// How many.
    pub count: u32,
    /// The first that was not looked at.
    pub next: u32,
    /// Those that failed, by bits.
    pub failed: u64,
    /// What else the owner has to know of them.
    pub with: T,
}

/// A line of which everything moved, and not everything durably.
#[derive(Clone, Copy, Debug)]
struct Moved<L> {
    line: L,
    since: u64,
}

/// Which lines are being emptied, and how far that is. A line is in one step of it at most.
#[derive(Clone, Debug)]
pub struct Relocator<T, L = LineId, P = ReadPosition> {
    victims: Vec<Victim<L, P>>,
    /// Lines that are emptied at a time.
    victims_max: usize,
    moved: Vec<Moved<L>>,
    reads: VecDeque<RelocationRead<T, L>>,
    /// Buffers to read into.
    spare: Vec<BufId>,
}

impl<T, L: Copy + Debug + PartialEq, P: Copy + Debug + Default + PartialOrd> Relocator<T, L, P> {
    /// Nothing to do; so many reads may be under way as there are buffers, and so many lines are emptied at a time.
    ///
    /// # Panics
    /// If there is no buffer, or no line may be emptied.
    #[must_use]
    pub fn new(spare: Vec<BufId>, victims_max: usize) -> Self {
        assert!(!spare.is_empty() && victims_max > 0, "a line is read into a buffer");
        Self { victims: Vec::new(), victims_max, moved: Vec::new(), reads: VecDeque::new(), spare }
    }

    /// A line is emptied from now on.
    ///
    /// # Panics
    /// If as many are as may be, it is in another step, or holds nothing.
    pub fn begin(&mut self, line: L, valid: u64) {
        assert!(
            self.victims.len() < self.victims_max,
            "{line:?} is begun beside {} others",
            self.victims.len()
        );
        assert!(!self.is_busy_with(line), "{line:?} is begun, and is in another step");
        assert!(valid > 0, "{line:?} holds nothing to move");
        self.victims.push(Victim { line, next: P::default(), valid, moved: 0, reads: 0, is_read: false });
    }

    /// The line that is being emptied; the first, if several are.
    #[must_use]
    pub fn victim(&self) -> Option<Victim<L, P>> {
        self.victims.first().copied()
    }

    /// All lines that are being emptied. One that ends changes places with the last.
    #[must_use]
    pub const fn victims(&self) -> &[Victim<L, P>] {
        self.victims.as_slice()
    }

    fn victim_mut(&mut self, line: L) -> Option<&mut Victim<L, P>> {
        self.victims.iter_mut().find(|victim| victim.line == line)
    }

    /// A buffer for a read: its owner gives it back with what was read ([`Self::all_moved`]) or unused
    /// ([`Self::put_buffer`]).
    pub fn take_buffer(&mut self) -> Option<BufId> {
        self.spare.pop()
    }

    /// A buffer that nothing was read into.
    pub fn put_buffer(&mut self, buffer: BufId) {
        assert!(!self.spare.contains(&buffer), "buffer {} is given back twice", buffer.0);
        self.spare.push(buffer);
    }

    /// A read of a victim was sent; the next looks from `next` on.
    ///
    /// # Panics
    /// If it is no victim, or all of it was read.
    pub fn read_sent(&mut self, line: L, next: P) {
        let victim = self.victim_mut(line).expect("a read is of a victim");
        assert!(!victim.is_read, "{line:?} is read beyond its end");
        assert!(victim.next < next, "{line:?} is read backwards");
        victim.next = next;
        victim.reads += 1;
    }

    /// Nothing valid is left in a victim that no read was sent for.
    ///
    /// # Panics
    /// If it is no victim.
    pub fn all_sent(&mut self, line: L) {
        self.victim_mut(line).expect("a victim was looked at").is_read = true;
    }

    /// A read ended, of a victim or of other sectors.
    pub fn read_done(&mut self, read: RelocationRead<T, L>) {
        assert!(
            read.next == 0 && read.count > 0,
            "a read ended of which something was moved, or nothing read"
        );
        assert!(read.line.is_none_or(|line| self.is_reading(line)), "a read of no victim");
        self.reads.push_back(read);
    }

    /// The oldest read that ended and was not moved whole.
    pub fn next_read(&mut self) -> Option<RelocationRead<T, L>> {
        self.reads.pop_front()
    }

    /// There was no room for the rest of the read.
    pub fn put_back(&mut self, read: RelocationRead<T, L>) {
        assert!(read.next < read.count, "a read waits of which everything was moved");
        self.reads.push_front(read);
    }

    /// Everything of a read was moved, or is not needed: its buffer can be read into again.
    pub fn all_moved(&mut self, read: &RelocationRead<T, L>) {
        assert_eq!(read.next, read.count, "a read is done with of which something was not moved");
        self.put_buffer(read.buffer);
        let Some(line) = read.line else { return };
        // A line that died whole may have been reset since it was read.
        if let Some(victim) = self.victim_mut(line) {
            assert!(victim.reads > 0, "more was read of a victim than was asked for");
            victim.reads -= 1;
            victim.moved += u64::from(read.count);
        }
    }

    /// Ends a victim of which everything was read and moved, if there is one.
    pub fn take_moved(&mut self) -> Option<Victim<L, P>> {
        let line = self.victims.iter().find(|victim| victim.is_moved())?.line;
        Some(self.end(line))
    }

    /// Ends this victim.
    ///
    /// # Panics
    /// If it is none, or not everything of it was read and moved.
    pub fn end(&mut self, line: L) -> Victim<L, P> {
        let at = self.victims.iter().position(|victim| victim.line == line).expect("a victim ends");
        assert!(self.victims[at].is_moved(), "{line:?} ends before all of it was moved");
        self.victims.swap_remove(at)
    }

    /// The line waits until what moved is durable; `since` is the owner's measure of time.
    pub fn wait_durable(&mut self, line: L, since: u64) {
        assert!(!self.is_busy_with(line), "{line:?} waits, and is in another step");
        self.moved.push(Moved { line, since });
    }

    /// Lines that wait until what moved of them is durable.
    pub fn awaiting(&self) -> impl ExactSizeIterator<Item = L> {
        self.moved.iter().map(|moved| moved.line)
    }

    /// Takes a line that waited since a time that `is_due` names: it has to be looked at again.
    pub fn take_awaiting(&mut self, is_due: impl Fn(u64) -> bool) -> Option<L> {
        let at = self.moved.iter().position(|moved| is_due(moved.since))?;
        Some(self.moved.swap_remove(at).line)
    }

    /// The line is being reset: nothing of it is left to do.
    pub fn line_reset(&mut self, line: L) {
        self.moved.retain(|moved| moved.line != line);
        self.victims.retain(|victim| victim.line != line);
    }

    /// The line is being emptied.
    #[must_use]
    pub fn is_reading(&self, line: L) -> bool {
        self.victims.iter().any(|victim| victim.line == line)
    }

    /// Everything of the line was moved, and not everything durably.
    #[must_use]
    pub fn awaits(&self, line: L) -> bool {
        self.awaiting().any(|moved| moved == line)
    }

    /// The line is in any step.
    #[must_use]
    pub fn is_busy_with(&self, line: L) -> bool {
        self.is_reading(line) || self.awaits(line)
    }

    /// A read ended, and is not moved whole.
    #[must_use]
    pub fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// No read of a victim is under way, and nothing that was read waits to be moved.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty() && self.victims.iter().all(|victim| victim.reads == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_geometry::UnitIndex;
    use crate::stripe_order::StripeOrder;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    /// Lines of the random tests.
    const LINES: u32 = 5;
    /// Sectors of a line.
    const SECTORS: u64 = 40;
    /// Buffers.
    const BUFFERS: u32 = 3;
    /// Most lines emptied at a time.
    const VICTIMS_MAX: u64 = 3;

    /// A line as a set of sectors in order: how many were not read, and what was read of it and not moved, by reads.
    #[derive(Debug, Default)]
    struct Naive {
        unread: u64,
        reads: Vec<u32>,
        moved: u64,
        waits: bool,
        is_begun: bool,
    }

    struct World {
        prng: Prng,
        relocator: Relocator<()>,
        victims_max: usize,
        lines: BTreeMap<LineId, Naive>,
        in_flight: Vec<RelocationRead<()>>,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let victims_max = usize::try_from(1 + seed % VICTIMS_MAX).expect("few");
            let relocator = Relocator::new((0..BUFFERS).map(BufId).collect(), victims_max);
            let lines = (0..LINES).map(|line| (LineId(line), Naive::default())).collect();
            Self { prng: Prng::new(seed), relocator, victims_max, lines, in_flight: Vec::new() }
        }

        fn line(&mut self) -> LineId {
            LineId(u32::try_from(self.prng.below(LINES.into())).expect("few"))
        }

        fn begin(&mut self) {
            let line = self.line();
            let is_enough = self.relocator.victims().len() == self.victims_max;
            if is_enough || self.relocator.is_busy_with(line) {
                return;
            }
            let valid = 1 + self.prng.below(SECTORS);
            self.relocator.begin(line, valid);
            self.lines.insert(line, Naive { unread: valid, is_begun: true, ..Naive::default() });
        }

        fn send(&mut self) {
            let unread: Vec<Victim> =
                self.relocator.victims().iter().filter(|victim| !victim.is_read()).copied().collect();
            let Some(count) = u64::try_from(unread.len()).ok().filter(|&count| count > 0) else { return };
            let victim = unread[usize::try_from(self.prng.below(count)).expect("few")];
            let Some(buffer) = self.relocator.take_buffer() else {
                assert_eq!(
                    self.in_flight.len() + self.relocator.reads.len(),
                    BUFFERS as usize,
                    "buffers are lost"
                );
                return;
            };
            let order = StripeOrder::new(vec![UnitIndex(0)], 1, 1);
            let naive = self.lines.get_mut(&victim.line).expect("a line");
            let count = u32::try_from((1 + self.prng.below(16)).min(naive.unread)).expect("few");
            if count == 0 {
                self.relocator.put_buffer(buffer);
                return self.relocator.all_sent(victim.line);
            }
            naive.unread -= u64::from(count);
            naive.reads.push(count);
            self.relocator.read_sent(victim.line, order.after(victim.next, 1));
            let line = Some(victim.line);
            self.in_flight.push(RelocationRead { buffer, line, count, next: 0, failed: 0, with: () });
        }

        fn end(&mut self) {
            if self.in_flight.is_empty() {
                return;
            }
            let which = self.prng.below(u64::try_from(self.in_flight.len()).expect("few"));
            let read = self.in_flight.swap_remove(usize::try_from(which).expect("few"));
            self.relocator.read_done(read);
        }

        fn move_some(&mut self) {
            let Some(mut read) = self.relocator.next_read() else { return };
            read.next += u32::try_from(self.prng.below(u64::from(read.count - read.next) + 1)).expect("few");
            if read.next < read.count {
                return self.relocator.put_back(read);
            }
            let naive = self.lines.get_mut(&read.line.expect("all are of victims")).expect("a line");
            let at = naive.reads.iter().position(|&count| count == read.count).expect("it was read");
            naive.reads.swap_remove(at);
            naive.moved += u64::from(read.count);
            self.relocator.all_moved(&read);
        }

        fn finish(&mut self, now: u64) {
            let moved = self.relocator.victims().iter().rfind(|victim| victim.is_moved()).copied();
            // One or the other way: any that moved, or a certain one.
            let taken = if now.is_multiple_of(2) {
                self.relocator.take_moved()
            } else {
                moved.map(|victim| self.relocator.end(victim.line))
            };
            assert_eq!(taken.is_some(), moved.is_some());
            let Some(victim) = taken else { return };
            let naive = self.lines.get_mut(&victim.line).expect("a line");
            assert_eq!((naive.unread, naive.reads.len()), (0, 0), "a line ended before all of it was moved");
            assert_eq!((victim.moved, victim.valid), (naive.moved, naive.moved));
            (naive.waits, naive.is_begun) = (true, false);
            self.relocator.wait_durable(victim.line, now);
        }

        fn wait_over(&mut self, now: u64) {
            let Some(line) = self.relocator.take_awaiting(|since| now > since + 20) else { return };
            let naive = self.lines.get_mut(&line).expect("a line");
            assert!(std::mem::take(&mut naive.waits), "a line that did not wait is looked at again");
        }

        fn check(&self) {
            for (&line, naive) in &self.lines {
                assert_eq!(self.relocator.awaits(line), naive.waits, "line {}", line.0);
                assert_eq!(self.relocator.is_reading(line), naive.is_begun, "line {}", line.0);
            }
            let is_idle = self.lines.values().all(|naive| naive.reads.is_empty());
            assert_eq!(self.relocator.is_idle(), is_idle);
        }
    }

    #[test]
    fn a_line_ends_once_all_of_it_was_read_and_moved_and_waits_until_that_is_durable() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut world = World::new(seed);
            for now in 0..400 {
                match world.prng.below(7) {
                    0 => world.begin(),
                    1 | 2 => world.send(),
                    3 => world.end(),
                    4 => world.move_some(),
                    5 => world.finish(now),
                    _ => world.wait_over(now),
                }
                world.check();
            }
        }
    }

    #[test]
    fn a_line_that_is_reset_is_in_no_step() {
        let mut relocator = Relocator::<()>::new(vec![BufId(0)], 1);
        relocator.begin(LineId(0), 4);
        relocator.line_reset(LineId(0));
        assert!(relocator.victim().is_none() && relocator.is_idle());
        relocator.wait_durable(LineId(1), 0);
        relocator.line_reset(LineId(1));
        assert!(!relocator.is_busy_with(LineId(1)));
    }

    #[test]
    fn what_moves_for_another_reason_is_of_no_victim() {
        let mut relocator = Relocator::<u32>::new(vec![BufId(0)], 1);
        let buffer = relocator.take_buffer().expect("one");
        let read = RelocationRead { buffer, line: None, count: 2, next: 0, failed: 1, with: 7 };
        relocator.read_done(read);
        assert!(!relocator.is_idle() && relocator.take_buffer().is_none());
        let back = relocator.next_read().expect("it ended");
        assert_eq!(back, read);
        relocator.put_back(back);
        let back = relocator.next_read().expect("it was put back");
        relocator.all_moved(&RelocationRead { next: 2, ..back });
        assert_eq!((relocator.take_buffer(), relocator.is_idle()), (Some(buffer), true));
    }
}
