//! Lines that hold nothing any more, on their way to be free: suspected, found empty, covered by a barrier, reset.
//!
//! An empty line may be reset only once what superseded its content is durable, so it waits for a barrier first, and goes back
//! to wait for the next one if that barrier failed. A line is reset by vector commands over its good chunks; one that carries
//! its start metadata in one chunk can have that chunk reset first and alone. Deliberately not here: which lines are empty,
//! who reads them and when there is room for a command (the owner judges), the queue of barriers (`flush_queue`), commands.

use crate::instance_geometry::{LineId, UnitIndex};
use crate::tag::Sequence;
use ocssd_base::usize_of;
use std::collections::{BTreeMap, VecDeque};

/// An empty line that waits for a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyLine {
    /// Which.
    pub line: LineId,
    /// The newest write when it was found: discards up to then may have emptied it.
    pub since: Sequence,
}

/// In which order the chunks of a line are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOrder {
    /// All at once.
    Together,
    /// The first chunk alone, the others once that ended: without it the line counts as free, whatever the others hold.
    FirstAlone,
}

/// Some chunks of a line, to be reset by one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCommand {
    /// Of which line.
    pub line: LineId,
    /// The first of them, in the order the line's chunks were given in.
    first: u32,
    count: u32,
}

impl ResetCommand {
    /// Chunks that the command resets.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// A line that is being reset.
#[derive(Clone, Debug)]
struct Reset {
    chunks: Vec<UnitIndex>,
    order: ResetOrder,
    /// Chunks that commands were made for.
    sent: u32,
    /// Commands that have not ended.
    in_flight: u32,
    failed: Vec<UnitIndex>,
}

impl Reset {
    fn left(&self) -> u32 {
        u32::try_from(self.chunks.len()).expect("a line's chunks") - self.sent
    }

    /// Chunks the next command may have, of `most`; 0 if it has to wait.
    fn room(&self, most: u32) -> u32 {
        match self.order {
            ResetOrder::FirstAlone if self.sent == 0 => self.left().min(1),
            ResetOrder::FirstAlone if self.sent == 1 && self.in_flight > 0 => 0,
            ResetOrder::FirstAlone | ResetOrder::Together => self.left().min(most),
        }
    }
}

/// Lines on their way to be free. Every line is in one step of it at most, but for suspects, which are in any.
#[derive(Clone, Debug, Default)]
pub struct Reclaimer {
    suspects: Vec<LineId>,
    empty: Vec<EmptyLine>,
    due: VecDeque<LineId>,
    resets: BTreeMap<LineId, Reset>,
}

impl Reclaimer {
    /// Nothing on its way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The line may be empty: its last valid sector went, or it was closed without any.
    pub fn suspect(&mut self, line: LineId) {
        self.suspects.push(line);
    }

    /// True if a line is to be judged.
    #[must_use]
    pub fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// The lines to be judged now, in the order in which they were suspected; one may be there twice.
    pub fn take_suspects(&mut self) -> Vec<LineId> {
        std::mem::take(&mut self.suspects)
    }

    /// The line is empty and waits for a barrier. False if it does already.
    ///
    /// # Panics
    /// If it is to be reset, or being reset.
    pub fn found_empty(&mut self, line: LineId, since: Sequence) -> bool {
        assert!(!self.is_due(line), "line {} is found empty, but is to be reset", line.0);
        assert!(!self.is_resetting(line), "line {} is found empty while it is reset", line.0);
        let is_new = self.empty.iter().all(|empty| empty.line != line);
        if is_new {
            self.empty.push(EmptyLine { line, since });
        }
        is_new
    }

    /// The lines that wait for a barrier, and for nobody who sends one yet.
    #[must_use]
    pub fn empty(&self) -> &[EmptyLine] {
        &self.empty
    }

    /// Gives away the lines that wait for a barrier: whoever takes them brings them to [`Self::barrier_ended`].
    pub fn take_empty(&mut self) -> Vec<EmptyLine> {
        std::mem::take(&mut self.empty)
    }

    /// A line that was taken waits for a later barrier.
    pub fn keep(&mut self, empty: EmptyLine) {
        assert!(self.empty.iter().all(|other| other.line != empty.line), "line {} waits twice", empty.line.0);
        self.empty.push(empty);
    }

    /// The barrier that lines waited for ended: they are reset, or wait for the next one.
    pub fn barrier_ended(&mut self, lines: impl IntoIterator<Item = EmptyLine>, is_sound: bool) {
        for empty in lines {
            if is_sound {
                self.reset_soon(empty.line);
            } else {
                self.keep(empty);
            }
        }
    }

    /// The line is to be reset: nothing in it is needed, whatever becomes of the drive's cache.
    ///
    /// # Panics
    /// If it is to be reset already, or being reset.
    pub fn reset_soon(&mut self, line: LineId) {
        assert!(!self.is_due(line), "line {} is to be reset twice", line.0);
        assert!(!self.is_resetting(line), "line {} is being reset", line.0);
        self.due.push_back(line);
    }

    /// True if the line is to be reset, and that has not begun. Cost: a pass over such lines.
    #[must_use]
    pub fn is_due(&self, line: LineId) -> bool {
        self.due.contains(&line)
    }

    /// Lines to be reset, in order.
    pub fn due(&self) -> impl ExactSizeIterator<Item = LineId> + '_ {
        self.due.iter().copied()
    }

    /// True if the line is being reset.
    #[must_use]
    pub fn is_resetting(&self, line: LineId) -> bool {
        self.resets.contains_key(&line)
    }

    /// Lines that are being reset.
    #[must_use]
    pub fn resetting(&self) -> usize {
        self.resets.len()
    }

    /// True if nothing is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.suspects.is_empty() && self.empty.is_empty() && self.due.is_empty() && self.resets.is_empty()
    }

    /// The first line to be reset that may be: [`Self::begin`] comes next.
    pub fn next_due(&mut self, may_reset: impl FnMut(LineId) -> bool) -> Option<LineId> {
        let at = self.due.iter().copied().position(may_reset)?;
        self.due.remove(at)
    }

    /// The reset of a line begins: of its good chunks, in this order.
    ///
    /// # Panics
    /// If it has none, or is being reset.
    pub fn begin(&mut self, line: LineId, chunks: Vec<UnitIndex>, order: ResetOrder) {
        assert!(!chunks.is_empty(), "line {} has no chunk to reset", line.0);
        let reset = Reset { chunks, order, sent: 0, in_flight: 0, failed: Vec::new() };
        let before = self.resets.insert(line, reset);
        assert!(before.is_none(), "line {} is being reset already", line.0);
    }

    /// The next command, over at most so many chunks, of the lowest line that has one to send.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn next_command(&mut self, most: u32) -> Option<ResetCommand> {
        assert!(most > 0, "a reset of no chunk");
        let (&line, reset) = self.resets.iter_mut().find(|(_, reset)| reset.room(most) > 0)?;
        let command = ResetCommand { line, first: reset.sent, count: reset.room(most) };
        reset.sent += command.count;
        reset.in_flight += 1;
        assert!(usize_of(reset.sent) <= reset.chunks.len(), "line {} has fewer chunks", line.0);
        Some(command)
    }

    /// The chunks of a command, by their units.
    ///
    /// # Panics
    /// If its line is not being reset.
    #[must_use]
    pub fn chunks(&self, command: &ResetCommand) -> &[UnitIndex] {
        let reset = self.resets.get(&command.line).expect("the line is being reset");
        &reset.chunks[usize_of(command.first)..usize_of(command.first + command.count)]
    }

    /// A command ended; a bit for each of its chunks that must not be used again. True if the whole line was reset:
    /// [`Self::end`] comes next.
    ///
    /// # Panics
    /// If the command was not in flight, or has fewer chunks.
    pub fn command_ended(&mut self, command: &ResetCommand, failed: u64) -> bool {
        assert!(
            command.count >= u64::BITS || failed >> command.count == 0,
            "more chunks failed than were reset"
        );
        let reset = self.resets.get_mut(&command.line).expect("the line is being reset");
        assert!(reset.in_flight > 0, "more resets of line {} ended than were sent", command.line.0);
        reset.in_flight -= 1;
        let chunks = &reset.chunks[usize_of(command.first)..usize_of(command.first + command.count)];
        let bad = chunks.iter().enumerate().filter(|&(at, _)| failed >> at & 1 == 1);
        reset.failed.extend(bad.map(|(_, &unit)| unit));
        assert!(reset.failed.len() <= reset.chunks.len(), "line {} has fewer chunks", command.line.0);
        reset.in_flight == 0 && reset.left() == 0
    }

    /// The line is no longer being reset. Its chunks that must not be used again.
    ///
    /// # Panics
    /// If commands of it are in flight.
    pub fn end(&mut self, line: LineId) -> Vec<UnitIndex> {
        let reset = self.resets.remove(&line).expect("the line is being reset");
        assert_eq!(reset.in_flight, 0, "the reset of line {} ends with commands in flight", line.0);
        reset.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::{BTreeMap, BTreeSet};

    const LINES: u32 = 6;

    /// Where a line is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        Used,
        Empty,
        Barrier,
        Due,
        Resetting,
    }

    /// Everything as a step per line; the commands of a reset as chunks that were named, and those in flight.
    struct Naive {
        steps: BTreeMap<LineId, Step>,
        named: BTreeMap<LineId, BTreeSet<u32>>,
        failed: BTreeMap<LineId, BTreeSet<u32>>,
    }

    impl Naive {
        fn all_in(&self, step: Step) -> Vec<LineId> {
            self.steps.iter().filter(|(_, at)| **at == step).map(|(&line, _)| line).collect()
        }
    }

    struct World {
        prng: Prng,
        naive: Naive,
        reclaimer: Reclaimer,
        barrier: Vec<EmptyLine>,
        in_flight: Vec<ResetCommand>,
        chunks: u32,
        order: ResetOrder,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let mut prng = Prng::new(seed);
            let chunks = 1 + u32::try_from(prng.below(9)).expect("small");
            let order = if prng.below(2) == 0 { ResetOrder::Together } else { ResetOrder::FirstAlone };
            let steps = (0..LINES).map(|line| (LineId(line), Step::Used)).collect();
            let naive = Naive { steps, named: BTreeMap::new(), failed: BTreeMap::new() };
            let (barrier, in_flight) = (Vec::new(), Vec::new());
            Self { prng, naive, reclaimer: Reclaimer::new(), barrier, in_flight, chunks, order }
        }

        fn judge(&mut self) {
            for line in self.reclaimer.take_suspects() {
                let step = self.naive.steps[&line];
                if matches!(step, Step::Used | Step::Empty) {
                    assert_eq!(self.reclaimer.found_empty(line, Sequence(7)), step == Step::Used);
                    self.naive.steps.insert(line, Step::Empty);
                }
            }
        }

        fn barrier(&mut self) {
            if self.barrier.is_empty() {
                self.barrier = self.reclaimer.take_empty();
                let taken = self.barrier.iter().map(|empty| (empty.line, Step::Barrier));
                self.naive.steps.extend(taken);
                return;
            }
            let is_sound = self.prng.below(3) > 0;
            let then = if is_sound { Step::Due } else { Step::Empty };
            self.naive.steps.extend(self.barrier.iter().map(|empty| (empty.line, then)));
            self.reclaimer.barrier_ended(self.barrier.drain(..), is_sound);
        }

        fn begin(&mut self) {
            let read = LineId(u32::try_from(self.prng.below(LINES.into())).expect("small"));
            let Some(line) = self.reclaimer.next_due(|line| line != read) else { return };
            assert!(line != read, "a line is reset under reads");
            self.naive.steps.insert(line, Step::Resetting);
            self.reclaimer.begin(line, (0..self.chunks).map(UnitIndex).collect(), self.order);
        }

        fn send(&mut self) {
            let most = 1 + u32::try_from(self.prng.below(4)).expect("small");
            let Some(command) = self.reclaimer.next_command(most) else { return };
            let named = self.naive.named.entry(command.line).or_default();
            let first_ended =
                named.contains(&0) && !self.in_flight.iter().any(|other| other.line == command.line);
            for &unit in self.reclaimer.chunks(&command) {
                let is_legal =
                    self.order == ResetOrder::Together || unit.0 == 0 || first_ended || named.len() > 1;
                assert!(is_legal, "chunk {} is reset beside the first", unit.0);
                assert!(named.insert(unit.0), "chunk {} is reset twice", unit.0);
            }
            assert!(command.count() <= most, "a command of {} chunks", command.count());
            self.in_flight.push(command);
        }

        fn end(&mut self) {
            if self.in_flight.is_empty() {
                return;
            }
            let which = self.prng.below(u64::try_from(self.in_flight.len()).expect("few"));
            let command = self.in_flight.swap_remove(usize::try_from(which).expect("few"));
            let bits = if self.prng.below(3) == 0 { self.prng.below(1 << command.count()) } else { 0 };
            let chunks = self.reclaimer.chunks(&command).to_vec();
            let failed = self.naive.failed.entry(command.line).or_default();
            failed.extend(
                chunks.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, unit)| unit.0),
            );
            let is_all = usize_of(self.chunks) == self.naive.named[&command.line].len()
                && !self.in_flight.iter().any(|other| other.line == command.line);
            assert_eq!(self.reclaimer.command_ended(&command, bits), is_all);
            if is_all {
                let bad: BTreeSet<u32> = self.reclaimer.end(command.line).iter().map(|unit| unit.0).collect();
                assert_eq!(Some(bad), self.naive.failed.remove(&command.line));
                self.naive.named.remove(&command.line);
                self.naive.steps.insert(command.line, Step::Used);
            }
        }

        fn check(&self) {
            let empty: BTreeSet<LineId> = self.reclaimer.empty().iter().map(|empty| empty.line).collect();
            assert!(self.naive.all_in(Step::Empty).into_iter().eq(empty));
            let due: BTreeSet<LineId> = self.reclaimer.due().collect();
            assert!(self.naive.all_in(Step::Due).into_iter().eq(due));
            let resetting = self.naive.all_in(Step::Resetting);
            assert_eq!(resetting.len(), self.reclaimer.resetting());
            assert!(resetting.iter().all(|&line| self.reclaimer.is_resetting(line)));
            // Whoever sent the barrier knows the lines that wait for it.
            let is_here = |step: &Step| matches!(step, Step::Empty | Step::Due | Step::Resetting);
            let is_idle = !self.reclaimer.has_suspects() && !self.naive.steps.values().any(is_here);
            assert_eq!(self.reclaimer.is_idle(), is_idle, "{:?}", self.naive.steps);
        }
    }

    #[test]
    fn a_line_is_reset_once_and_only_after_a_sound_barrier() {
        for seed in 0..300 {
            println!("seed {seed}");
            let mut world = World::new(seed);
            for _ in 0..300 {
                match world.prng.below(6) {
                    0 => {
                        let line = world.prng.below(LINES.into());
                        world.reclaimer.suspect(LineId(u32::try_from(line).expect("small")));
                    }
                    1 => world.judge(),
                    2 => world.barrier(),
                    3 => world.begin(),
                    4 => world.send(),
                    _ => world.end(),
                }
                world.check();
            }
        }
    }

    #[test]
    fn the_first_chunk_goes_alone() {
        let mut reclaimer = Reclaimer::new();
        reclaimer.begin(LineId(0), (0..5).map(UnitIndex).collect(), ResetOrder::FirstAlone);
        let first = reclaimer.next_command(64).expect("the first chunk");
        assert_eq!((first.count(), reclaimer.next_command(64)), (1, None));
        assert!(!reclaimer.command_ended(&first, 1));
        let others = reclaimer.next_command(64).expect("the others");
        assert_eq!(reclaimer.chunks(&others), [1, 2, 3, 4].map(UnitIndex));
        assert!(reclaimer.command_ended(&others, 0b100));
        assert_eq!(reclaimer.end(LineId(0)), [UnitIndex(0), UnitIndex(3)]);
        assert!(reclaimer.is_idle());
    }
}
