//! Static wear levelling: which closed line is moved for its wear alone, and when.
//!
//! Data that nobody overwrites keeps its line from being reset, while the others take all wear. A line is *cold* once it was
//! closed while as many lines were opened as there are. When the least worn cold line lags behind the most worn line by more
//! than a bound, it is moved: it becomes free, and the least worn free line is opened next by users. Its content goes to worn
//! lines ([`Lines::take_free_worn`]), where it can stay. Lines that lag and are not cold catch up by themselves, and moving
//! what dies soon to worn lines would wear these.
//!
//! Why the spread stays bounded: cold lines that lag are moved once each, one for every [`WearLeveller::interval`] resets.
//! Meanwhile those resets go to all other lines alike, the least worn free one being opened first, and the most worn gains
//! interval x cold lines / others on the bound. A line that was moved wears like the others from then on. Who knows which line
//! data lies in can do worse: let new data stay in the line that was moved, and take a worn one's instead. So from twice the
//! bound on moves are *urgent*: of any closed line, one after another, and users wait for them (that is the caller's part). Then
//! only moves reset lines, and never the most worn: twice the bound holds under any workload, but for what is under way when
//! it is passed.
//!
//! Deliberately not here: moving (`targets`), what the media count, lines that are open (they are judged once closed).

use crate::instance_geometry::LineId;
use crate::lines::{Line, LineState, Lines};

/// Smallest bound (chosen: a line that was moved must gain some resets before it lags again, or all are moved all the time).
pub const WEAR_SPREAD_MIN: u32 = 4;

/// Moves in the time in which one would do (chosen: moves take time, and more than one line lags).
const MOVES_PER_BOUND: u32 = 4;

/// Says which line is moved next.
#[derive(Clone, Debug)]
pub struct WearLeveller {
    /// Resets a cold line may lag behind the most worn; `None`: as many as it likes.
    bound: Option<u32>,
    /// Resets of lines since the last move, up to the interval.
    since: u32,
    /// Resets the least worn cold line lagged when lines were last looked at.
    cold_lag: u32,
    /// Resets the least worn closed line lagged then.
    lag: u32,
    /// Nothing changed since no line was found that can be moved.
    is_stuck: bool,
    /// Users do not wait for the line that is being moved.
    unpaced: bool,
}

impl WearLeveller {
    /// A leveller for this bound, at least [`WEAR_SPREAD_MIN`]. A move may come at once: power cuts must not put it off for
    /// ever.
    #[must_use]
    pub fn new(bound: Option<u32>) -> Self {
        assert!(bound.is_none_or(|bound| bound >= WEAR_SPREAD_MIN), "a bound of {bound:?} resets");
        let mut new = Self { bound, since: 0, cold_lag: 0, lag: 0, is_stuck: false, unpaced: false };
        new.since = new.interval();
        new
    }

    /// The bound.
    #[must_use]
    pub const fn bound(&self) -> Option<u32> {
        self.bound
    }

    /// Resets of lines for each move, unless it is urgent: moves then cost a line written for each of so many resets.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.bound.map_or(u32::MAX, |bound| (bound / MOVES_PER_BOUND).max(1))
    }

    /// A line was reset.
    pub fn on_reset(&mut self, lines: &Lines) {
        self.since = self.since.saturating_add(1).min(self.interval());
        self.look(lines);
    }

    /// Lines were closed, or found at mount. Cost: a pass over the lines.
    pub fn look(&mut self, lines: &Lines) {
        self.is_stuck = false;
        if self.bound.is_none() {
            return;
        }
        let (mut cold, mut closed) = (u32::MAX, u32::MAX);
        for (_, line) in lines.iter().filter(|(_, line)| line.state == LineState::Closed) {
            closed = closed.min(line.resets);
            if is_cold(lines, line) {
                cold = cold.min(line.resets);
            }
        }
        let most = lines.most_resets();
        (self.cold_lag, self.lag) = (most.saturating_sub(cold), most.saturating_sub(closed));
        assert!(self.lag >= self.cold_lag, "a cold line is a closed one");
    }

    /// Resets the least worn closed line lags behind the most worn line, cold or not; 0 without a bound.
    #[must_use]
    pub const fn lag(&self) -> u32 {
        self.lag
    }

    /// True if a closed line, cold or not, lags by more than twice the bound: users wait while a line is moved.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.bound.is_some_and(|bound| self.lag / 2 > bound)
    }

    /// True if users are to wait for the line that is being moved: it is urgent, and the line can go on without them.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.is_urgent() && !self.unpaced
    }

    /// The line that is being moved cannot go on by itself: nobody waits for it any more.
    pub fn unpace(&mut self) {
        assert!(self.is_paced(), "nobody waits");
        self.unpaced = true;
    }

    /// True if [`Self::pick`] may find a line: one lags, it is its turn, and something changed.
    #[must_use]
    pub fn may_pick(&self) -> bool {
        let is_due = self.bound.is_some_and(|bound| self.cold_lag > bound) && self.since >= self.interval();
        !self.is_stuck && (is_due || self.is_urgent())
    }

    /// The line that lags most of those that `can_move`, the oldest of equals, and if it is not urgent a cold one; `None` if
    /// none lags beyond the bound. The caller moves it, or asks again. Cost: a pass over the lines.
    ///
    /// # Panics
    /// If it is not its turn.
    pub fn pick(&mut self, lines: &Lines, can_move: impl Fn(LineId, &Line) -> bool) -> Option<LineId> {
        assert!(self.may_pick(), "a line is moved out of turn: {self:?}");
        let bound = self.bound.expect("without a bound it is never its turn");
        let most = lines.most_resets();
        let is_urgent = self.is_urgent();
        let is_judged = |line: &Line| is_cold(lines, line) || is_urgent && line.state == LineState::Closed;
        let lags = |line: &Line| is_judged(line) && most.saturating_sub(line.resets) > bound;
        let lagging = lines.iter().filter(|&(id, line)| lags(line) && can_move(id, line));
        let picked = lagging.min_by_key(|(_, line)| (line.resets, line.sequence)).map(|(id, _)| id);
        self.is_stuck = picked.is_none();
        assert!(picked.is_none_or(|id| lines.get(id).resets < most), "the most worn line lags behind itself");
        picked
    }

    /// The line picked is being moved.
    pub fn moving(&mut self) {
        assert!(self.since >= self.interval() || self.is_urgent(), "two lines are moved in one interval");
        self.since = 0;
        self.unpaced = false;
    }

    /// True if worn lines are better for data that will stay: wear differs by more than half the bound.
    /// Cost: two passes over the lines.
    #[must_use]
    pub fn prefers_worn(&self, lines: &Lines) -> bool {
        self.bound.is_some_and(|bound| lines.most_resets() - lines.least_resets() > bound / 2)
    }
}

/// Closed while as many lines were opened as there are. Lines are opened in the order of their generations, which outlast
/// power cuts.
fn is_cold(lines: &Lines, line: &Line) -> bool {
    let opened_since = lines.next_sequence().0 - line.sequence.0;
    line.state == LineState::Closed && opened_since > u64::from(lines.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_geometry::InstanceGeometry;
    use crate::tag::Sequence;
    use crate::{LineState, Stream};
    use ocssd_base::Prng;
    use ocssd_lightnvm::{Geometry, PuId};
    use std::collections::VecDeque;

    const USER: Stream = Stream(0);
    const COLD: Stream = Stream(1);

    /// An instance of whole lines: cold ones that stay, hot ones that die soon, and `kept` free ones.
    struct Instance {
        lines: Lines,
        leveller: WearLeveller,
        hot: VecDeque<LineId>,
        cold: u32,
        moves: u64,
        resets: u64,
    }

    impl Instance {
        fn new(count: u32, cold: u32, bound: Option<u32>) -> Self {
            let shape = InstanceGeometry::new(&Geometry::example(1, 1, count, 48, 24), &[PuId(0)]);
            let lines = Lines::new(&shape, |_, _| false);
            let leveller = WearLeveller::new(bound);
            let mut new = Self { lines, leveller, hot: VecDeque::new(), cold, moves: 0, resets: 0 };
            (0..cold).for_each(|_| _ = new.write(COLD));
            new
        }

        fn reset(&mut self, line: LineId) {
            self.lines.erasing(line);
            self.lines.was_reset(line);
            self.leveller.on_reset(&self.lines);
            self.resets += 1;
        }

        /// Opens a free line, writes all of it and closes it.
        fn write(&mut self, stream: Stream) -> LineId {
            loop {
                let is_worn = stream == COLD && self.leveller.prefers_worn(&self.lines);
                let taken = if is_worn { self.lines.take_free_worn() } else { self.lines.take_free() };
                let line = taken.expect("lines are kept free");
                if self.lines.get(line).state == (LineState::Free { was_reset: true }) {
                    self.lines.open(line, stream, Sequence(0));
                    self.lines.close(line);
                    self.leveller.look(&self.lines);
                    return line;
                }
                self.reset(line);
            }
        }

        /// Moves a line if one is due; `model` finds the same the long way.
        fn level(&mut self) {
            if !self.leveller.may_pick() {
                return;
            }
            let bound = self.leveller.bound().expect("it picks");
            let model = naive(&self.lines, bound, self.leveller.is_urgent());
            let picked = self.leveller.pick(&self.lines, |_, _| true);
            assert_eq!(picked, model);
            let Some(line) = picked else { return };
            self.leveller.moving();
            let to = self.write(COLD);
            self.hot.iter_mut().filter(|hot| **hot == line).for_each(|hot| *hot = to);
            self.reset(line);
            self.moves += 1;
        }

        /// What cold lines lag, and what closed ones do.
        fn lag(&self) -> [u32; 2] {
            let most = self.lines.most_resets();
            let lag = |is_cold_only: bool| {
                let closed = self.lines.iter().filter(|(_, line)| line.state == LineState::Closed);
                let judged = closed.filter(|(_, line)| !is_cold_only || is_cold(&self.lines, line));
                judged.map(|(_, line)| most - line.resets).max().unwrap_or(0)
            };
            [lag(true), lag(false)]
        }
    }

    fn naive(lines: &Lines, bound: u32, urgent: bool) -> Option<LineId> {
        let mut worst: Option<(LineId, Line)> = None;
        let most = lines.iter().map(|(_, line)| line.resets).max().unwrap_or(0);
        for (id, &line) in lines.iter() {
            let age = lines.next_sequence().0 - line.sequence.0;
            let is_young = age <= u64::from(lines.count()) && !urgent;
            if line.state != LineState::Closed || is_young || line.resets + bound >= most {
                continue;
            }
            let is_worse = worst.is_none_or(|(_, other)| {
                line.resets < other.resets
                    || line.resets == other.resets && line.sequence.0 < other.sequence.0
            });
            if is_worse {
                worst = Some((id, line));
            }
        }
        worst.map(|(id, _)| id)
    }

    /// Runs a workload that takes away the line of those that may die that `dying` names, and returns the worst lag.
    fn worst(instance: &mut Instance, most_hot: u32, mut dying: impl FnMut(&Instance) -> usize) -> [u32; 2] {
        let mut worst = [0; 2];
        for _ in 0..4_000 {
            if instance.hot.len() >= usize::try_from(most_hot).expect("small") {
                let at = dying(instance);
                let line = instance.hot.remove(at).expect("one is hot");
                instance.reset(line);
            }
            let line = instance.write(USER);
            instance.hot.push_back(line);
            instance.level();
            let lag = instance.lag();
            worst = [worst[0].max(lag[0]), worst[1].max(lag[1])];
            while instance.leveller.is_urgent() {
                instance.level();
            }
        }
        worst
    }

    fn drawn(prng: &mut Prng) -> (Instance, u32, String) {
        let mut draw = |bound: u32| u32::try_from(prng.below(u64::from(bound))).expect("small");
        let count = 12 + draw(30);
        let cold = 1 + draw(count - 6);
        let bound = WEAR_SPREAD_MIN + draw(20);
        let most_hot = count - cold - 2 - draw(3);
        let label = format!("{count} lines, {cold} cold, {most_hot} hot, bound {bound}");
        (Instance::new(count, cold, Some(bound)), most_hot, label)
    }

    /// Hot lines die in the order they were written while cold ones stay: the spread is the bound, the reset that shows the
    /// lag, and what is gained while every cold line is moved; no more than twice the bound.
    #[test]
    fn the_spread_stays_at_the_bound_while_what_is_cold_stays_cold() {
        for seed in 0..60 {
            let (mut instance, most_hot, label) = drawn(&mut Prng::new(seed));
            let bound = instance.leveller.bound().expect("there is one");
            let (count, cold) = (instance.lines.count(), instance.cold);
            let [worst, _] = worst(&mut instance, most_hot, |_| 0);
            let gained = (cold * instance.leveller.interval()).div_ceil(count - cold);
            assert!(worst <= (bound + 2 + gained).min(2 * bound + 2), "seed {seed}: {label}: {worst}");
            assert!(instance.moves > 0, "seed {seed}: {label}: nothing was moved");
            let interval = u64::from(instance.leveller.interval());
            assert!(instance.moves * interval <= instance.resets + interval, "seed {seed}: {label}: moves");
        }
    }

    /// Data of the most worn line dies, and what is in little worn ones stays, by whoever knows where data lies.
    #[test]
    fn twice_the_bound_holds_under_the_worst_workload() {
        let mut urgent = 0;
        for seed in 0..60 {
            let (mut instance, most_hot, label) = drawn(&mut Prng::new(seed));
            let bound = instance.leveller.bound().expect("there is one");
            let [_, worst] = worst(&mut instance, most_hot, |instance| {
                let resets = |at: &usize| instance.lines.get(instance.hot[*at]).resets;
                (0..instance.hot.len()).max_by_key(resets).expect("one is hot")
            });
            // The reset that makes it urgent came before anyone could wait.
            assert!(worst <= 2 * bound + 2, "seed {seed}: {label}: {worst}");
            urgent += u32::from(worst > 2 * bound);
        }
        assert!(urgent > 0, "no workload was bad enough");
    }

    #[test]
    fn without_a_bound_nothing_is_moved_and_wear_spreads() {
        let mut instance = Instance::new(20, 10, None);
        for _ in 0..1_000 {
            if let Some(line) = instance.hot.pop_front() {
                instance.reset(line);
            }
            let line = instance.write(USER);
            instance.hot.push_back(line);
            instance.level();
        }
        assert_eq!(instance.moves, 0);
        assert!(instance.lag()[0] > 90, "cold lines lag by {:?}", instance.lag());
    }

    #[test]
    fn lines_that_cannot_be_moved_are_passed_over_and_moves_keep_their_distance() {
        let mut instance = Instance::new(20, 3, Some(8));
        while instance.lag()[0] <= 8 {
            let line = instance.write(USER);
            instance.reset(line);
        }
        let cold: Vec<u32> = instance
            .lines
            .iter()
            .filter(|(_, line)| line.state == LineState::Closed)
            .map(|(id, _)| id.0)
            .collect();
        let picked = instance.leveller.pick(&instance.lines, |line, _| line.0 != cold[0]);
        assert_eq!(picked.map(|line| line.0), Some(cold[1]), "the oldest that can be moved");
        instance.leveller.moving();
        assert!(!instance.leveller.may_pick(), "a move comes right after another");
        instance.leveller.on_reset(&instance.lines);
        assert!(!instance.leveller.may_pick(), "after one reset of {}", instance.leveller.interval());
        instance.leveller.on_reset(&instance.lines);
        assert!(instance.leveller.may_pick());
        assert_eq!(instance.leveller.pick(&instance.lines, |_, _| false), None);
        assert!(!instance.leveller.may_pick(), "nothing changed since nothing was found");
        instance.leveller.look(&instance.lines);
        assert!(instance.leveller.may_pick());
    }

    /// An instance of 4 lines, of which lines of these resets are closed, the others free.
    fn closed(resets: [Option<u32>; 4], free: u32, bound: Option<u32>) -> (Lines, WearLeveller) {
        let shape = InstanceGeometry::new(&Geometry::example(1, 1, 5, 48, 24), &[PuId(0)]);
        let mut lines = Lines::new(&shape, |_, _| false);
        lines.restore_free(LineId(4), true, free);
        for (id, resets) in (0..).map(LineId).zip(resets) {
            let Some(resets) = resets else { continue };
            let found = Line { state: LineState::Closed, resets, ..*lines.get(id) };
            lines.restore(id, Line { sequence: lines.next_sequence(), ..found });
        }
        let mut leveller = WearLeveller::new(bound);
        leveller.look(&lines);
        (lines, leveller)
    }

    #[test]
    fn a_lag_is_urgent_beyond_twice_the_bound_and_users_wait_until_nobody_can_go_on() {
        for (resets, lag, is_urgent) in [(10, 0, false), (6, 4, false), (1, 9, false), (0, 10, true)] {
            let (lines, mut leveller) = closed([Some(resets), None, None, None], 10, Some(4));
            assert_eq!((leveller.lag(), leveller.is_urgent()), (lag, is_urgent), "{resets} resets");
            assert_eq!((leveller.is_paced(), leveller.may_pick()), (is_urgent, is_urgent), "it is not cold");
            if is_urgent {
                leveller.unpace();
                assert!(leveller.is_urgent() && !leveller.is_paced());
                assert_eq!(leveller.pick(&lines, |_, _| true), Some(LineId(0)));
                leveller.moving();
                assert!(leveller.is_paced(), "they wait for the next one");
                leveller.moving();
            }
        }
        let (_, leveller) = closed([Some(0), None, None, None], 1_000, None);
        assert_eq!((leveller.bound(), leveller.lag(), leveller.interval()), (None, 0, u32::MAX));
        assert!(!leveller.is_urgent() && !leveller.is_paced() && !leveller.may_pick());
    }

    #[test]
    fn a_line_is_moved_once_it_is_cold_and_lags_by_more_than_the_bound() {
        // Line 0 is of generation 1, and there are five lines: it is cold from generation 7 on.
        for (resets, next, is_moved) in [(5, 6, false), (5, 7, true), (6, 7, false), (6, 100, false)] {
            let (mut lines, mut leveller) = closed([Some(resets), None, None, None], 10, Some(4));
            lines.skip_sequences(crate::LineSequence(next - 1));
            leveller.look(&lines);
            assert!(!leveller.is_urgent());
            assert_eq!(leveller.may_pick(), is_moved, "{resets} resets, generation {next} is next");
            if is_moved {
                assert_eq!(leveller.pick(&lines, |_, _| true), Some(LineId(0)));
            }
        }
    }

    #[test]
    fn of_lines_that_lag_alike_the_one_written_first_is_moved() {
        let (lines, mut leveller) = closed([Some(5), Some(2), Some(2), Some(9)], 40, Some(4));
        let picked = |leveller: &mut WearLeveller, not: u32| leveller.pick(&lines, |id, _| id.0 != not);
        assert_eq!(picked(&mut leveller, 9), Some(LineId(1)));
        assert_eq!(picked(&mut leveller, 1), Some(LineId(2)));
    }

    #[test]
    fn worn_lines_are_preferred_once_wear_differs_by_more_than_half_the_bound() {
        for (resets, prefers) in [(20, false), (10, false), (9, true), (0, true)] {
            let (lines, leveller) = closed([Some(resets), Some(20), Some(20), Some(20)], 20, Some(20));
            assert_eq!(leveller.prefers_worn(&lines), prefers, "{resets} resets");
            assert!(!WearLeveller::new(None).prefers_worn(&lines));
        }
    }

    #[test]
    fn a_move_costs_at_most_a_line_for_each_quarter_of_the_bound() {
        for (bound, interval) in [(4, 1), (7, 1), (8, 2), (40, 10)] {
            let leveller = WearLeveller::new(Some(bound));
            assert_eq!((leveller.bound(), leveller.interval()), (Some(bound), interval));
        }
    }
}
