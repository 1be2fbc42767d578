//! One block's history: the changes of it that a read may still show, now or after a power cut.
//!
//! Requests may overlap, so a change has a beginning and an end, and what lies between is in no order: a change is known
//! to be overwritten only if another one began after its end (a register in the sense of Herlihy and Wing, 1990). A
//! durable change puts an end to those before it also after a power cut. Deliberately not here: which request did it.

use super::oracle::Moment;

/// What a block holds: the number of the write, 0 for zeroes.
pub type Content = u64;

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Not,
    /// Carried out.
    Made(Moment),
    /// Refused: it may have been carried out or not.
    Refused(Moment),
}

/// What came of looking at a block after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It holds what survived.
    Survived,
    /// A discard was forgotten that may be, and it holds what was there before.
    Forgotten,
    /// The media lost what survived, and it holds an older version.
    Older,
    /// It holds what it may not.
    No,
}

/// One change of a block.
#[derive(Clone, Copy, Debug)]
struct Change {
    content: Content,
    /// The newest number of a write when it was sent: its own but for what was written into a transaction earlier.
    order: Content,
    sent: Moment,
    ended: Ended,
    /// It survives a power cut.
    durable: bool,
    /// It may be forgotten at a power cut even if flushed (discards of a target that keeps none).
    forgettable: bool,
    /// From then on no new read may show it.
    overwritten: Option<Moment>,
    /// A power cut cannot bring it back.
    buried: bool,
    /// The media harmed a place that held it.
    is_harmed: bool,
    /// The media harmed what tells of it at the next mount.
    is_untold: bool,
    /// It was sent before the last power cut.
    is_old: bool,
}

impl Change {
    const fn end(&self) -> Option<Moment> {
        match self.ended {
            Ended::Not => None,
            Ended::Made(at) | Ended::Refused(at) => Some(at),
        }
    }

    /// A mount may not find it.
    const fn is_lost(&self) -> bool {
        self.is_harmed || self.is_untold
    }

    /// What was written before it has a lower number. Writes have numbers, changes to zeroes have none: anything may be older.
    const fn rank(&self) -> Content {
        if self.content == 0 { Content::MAX } else { self.order }
    }

    /// It was over before `moment`.
    fn is_before(&self, moment: Moment) -> bool {
        self.end().is_some_and(|end| end < moment)
    }
}

/// All changes of a block that count.
#[derive(Clone, Debug)]
pub struct History {
    changes: Vec<Change>,
    /// A forgettable discard was sent and nothing durable since: after a power cut any earlier version may be there, for
    /// what was discarded may be erased, and the discard forgotten.
    forgotten: bool,
    /// What was harmed when an older version was found in its place: a place that could not be read once may be read at a
    /// later mount, unless something is durable since.
    ghosts: Vec<Content>,
    /// What was harmed and did not count any more: a mount that does not find what came after it may find this, and not be able to
    /// read it.
    ruined: Vec<Content>,
}

impl Default for History {
    fn default() -> Self {
        let zeroes = Change {
            content: 0,
            order: 0,
            sent: Moment(0),
            ended: Ended::Made(Moment(0)),
            durable: true,
            forgettable: false,
            overwritten: None,
            buried: false,
            is_harmed: false,
            is_untold: false,
            is_old: false,
        };
        Self { changes: vec![zeroes], forgotten: false, ghosts: Vec::new(), ruined: Vec::new() }
    }
}

impl History {
    /// A change was sent.
    pub fn sent(&mut self, content: Content, at: Moment, forgettable: bool) {
        let change = Change {
            content,
            order: content,
            sent: at,
            ended: Ended::Not,
            durable: false,
            forgettable,
            overwritten: None,
            buried: false,
            is_harmed: false,
            is_untold: false,
            is_old: false,
        };
        self.changes.push(change);
        self.forgotten |= forgettable;
    }

    /// The content of the change sent at `sent` got its number before others up to `order` did.
    pub fn is_late(&mut self, sent: Moment, order: Content) {
        let late = self.changes.iter_mut().filter(|change| change.sent == sent);
        late.for_each(|change| change.order = order);
    }

    /// The change sent at `sent` was carried out.
    pub fn made(&mut self, sent: Moment, now: Moment) {
        for change in &mut self.changes {
            if change.sent == sent {
                change.ended = Ended::Made(now);
            } else if change.is_before(sent) {
                change.overwritten = Some(change.overwritten.map_or(now, |at| at.min(now)));
            }
        }
    }

    /// The change sent at `sent` was refused.
    pub fn refused(&mut self, sent: Moment, now: Moment) {
        self.changes.iter_mut().filter(|change| change.sent == sent).for_each(|change| {
            change.ended = Ended::Refused(now);
        });
    }

    /// The change sent at `sent` was not carried out, and will not be.
    pub fn never_made(&mut self, sent: Moment) {
        self.changes.retain(|change| change.sent != sent);
    }

    /// What was carried out before `moment` survives a power cut from now on. True if nothing is left to be made durable.
    pub fn durable_before(&mut self, moment: Moment) -> bool {
        self.make_durable(|change| matches!(change.ended, Ended::Made(end) if end < moment));
        let discarded = self.discarded();
        self.changes.iter().all(|change| change.durable || change.sent <= discarded && change.end().is_some())
    }

    /// The change sent at `sent`, which was carried out, survives a power cut from now on.
    pub fn durable(&mut self, sent: Moment) {
        self.make_durable(|change| change.sent == sent);
    }

    /// What was not over before a forgettable discard's end need not survive: it may have been discarded before it was
    /// written, and the discard forgotten.
    fn make_durable(&mut self, which: impl Fn(&Change) -> bool) {
        let discarded = self.discarded();
        for change in self.changes.iter_mut().filter(|change| which(change) && change.sent > discarded) {
            if !std::mem::replace(&mut change.durable, true) {
                self.ghosts.clear();
            }
        }
        self.forgotten &= !self.changes.iter().any(|change| change.durable && change.sent > discarded);
        self.bury();
    }

    /// The end of the last forgettable discard; the far future while one is under way.
    fn discarded(&self) -> Moment {
        let discards = self.changes.iter().filter(|change| change.forgettable);
        discards.map(|change| change.end().unwrap_or(Moment(u64::MAX))).max().unwrap_or(Moment(0))
    }

    /// A durable change buries what was over before it began.
    fn bury(&mut self) {
        let Some(newest) =
            self.changes.iter().filter(|change| change.durable).map(|change| change.sent).max()
        else {
            return;
        };
        self.changes
            .iter_mut()
            .filter(|change| change.is_before(newest))
            .for_each(|change| change.buried = true);
    }

    /// Forgets what neither a read since `oldest_read` nor a power cut can show.
    pub fn prune(&mut self, oldest_read: Moment) {
        self.retain(|change| !change.buried || change.overwritten.is_none_or(|at| at >= oldest_read));
    }

    /// Only these count from now on. What was harmed of the others is on media all the same.
    fn retain(&mut self, counts: impl Fn(&Change) -> bool) {
        let gone = self.changes.iter().filter(|change| change.is_harmed && !counts(change));
        let gone: Vec<Content> = gone.map(|change| change.content).collect();
        gone.into_iter().for_each(|content| self.is_ruined(content));
        self.changes.retain(counts);
    }

    fn is_readable(change: &Change, sent: Moment) -> bool {
        change.overwritten.is_none_or(|at| at >= sent)
    }

    /// A read sent at `sent` showed `content`; false if that is none of what it may show. What was over before the read
    /// began and is not what was seen will not be seen again.
    pub fn read(&mut self, sent: Moment, content: Content) -> bool {
        let shown = |change: &Change| change.content == content && Self::is_readable(change, sent);
        if !self.changes.iter().any(shown) {
            return false;
        }
        for change in
            self.changes.iter_mut().filter(|change| change.content != content && change.is_before(sent))
        {
            change.overwritten = Some(change.overwritten.map_or(sent, |at| at.min(sent)));
        }
        true
    }

    /// A forgettable discard was sent and nothing durable since.
    pub const fn is_forgotten(&self) -> bool {
        self.forgotten
    }

    /// The media harmed a place that held `content`.
    pub fn harmed(&mut self, content: Content) {
        let mut counts = false;
        for change in self.changes.iter_mut().filter(|change| change.content == content) {
            (change.is_harmed, counts) = (true, true);
        }
        if !counts {
            self.is_ruined(content);
        }
    }

    /// What was harmed does not count any more, and is on media all the same.
    fn is_ruined(&mut self, content: Content) {
        if content > 0 && !self.ruined.contains(&content) {
            self.ruined.push(content);
        }
    }

    /// The media harmed what tells of `content`: at the next mount it may be gone.
    pub fn untold(&mut self, content: Content) {
        self.changes.iter_mut().filter(|change| change.content == content).for_each(|change| {
            change.is_untold = true;
        });
    }

    /// True if a read sent at `sent` may fail: what it may have to show was harmed, or an older version that may be in the place of
    /// one that nothing tells of.
    pub fn may_fail(&self, sent: Moment) -> bool {
        let has_ruined = |before: Content| self.ruined.iter().any(|&content| content < before);
        self.changes
            .iter()
            .filter(|change| Self::is_readable(change, sent))
            .any(|change| change.is_harmed || change.is_untold && has_ruined(change.rank()))
    }

    /// What a read sent at `sent` may show.
    pub fn readable(&self, sent: Moment) -> Vec<Content> {
        self.changes
            .iter()
            .filter(|change| Self::is_readable(change, sent))
            .map(|change| change.content)
            .collect()
    }

    /// The power went: any change that is not buried may be what is left, sent ones that were never answered too.
    pub fn power_cut(&mut self) {
        self.retain(|change| !change.buried);
        for change in &mut self.changes {
            (change.overwritten, change.is_untold, change.is_old) = (None, false, true);
            // Whether it is there will be seen: a flush that comes now does not make durable what is gone.
            change.ended = match change.ended {
                Ended::Not => Ended::Refused(change.sent),
                Ended::Made(at) if !change.durable => Ended::Refused(at),
                ended => ended,
            };
        }
        assert!(!self.changes.is_empty(), "a power cut left nothing a block may hold");
    }

    /// True if a read sent at `sent` may show `content` for a change since the last power cut: that says nothing of what survived.
    pub fn is_of_now(&self, sent: Moment, content: Content) -> bool {
        let shown = |change: &Change| change.content == content && Self::is_readable(change, sent);
        self.changes.iter().any(|change| !change.is_old && shown(change))
    }

    /// After a power cut, `content` was found: it is what the block holds from now on, power cuts or not.
    pub fn settle(&mut self, content: Content) -> Settled {
        let Some(found) = self.changes.iter().find(|change| change.content == content).copied() else {
            let is_excused = self.is_older(content) || self.ghosts.contains(&content);
            let settled = match (self.forgotten, is_excused) {
                (true, _) => Settled::Forgotten,
                (false, true) => Settled::Older,
                (false, false) => return Settled::No,
            };
            let lost = self.changes.iter().filter(|change| change.is_lost()).map(|change| change.content);
            let mut ghosts = std::mem::take(&mut self.ghosts);
            ghosts.extend(lost);
            self.replace(content, |change| !change.is_old);
            self.ghosts = ghosts;
            return settled;
        };
        self.forgotten = false;
        // It is still where it was: what tells of the change after it may be lost at a later mount.
        let is_other = |change: &&Change| change.is_harmed && change.is_old && change.content != content;
        let others: Vec<Content> =
            self.changes.iter().filter(is_other).map(|change| change.content).collect();
        others.into_iter().for_each(|other| self.is_ruined(other));
        self.begin_with(found, |change| !change.is_old);
        Settled::Survived
    }

    /// `first` counts as what was there from the beginning. Of the others those stay that are `later`: they may be under way, and
    /// their end is still to come.
    fn begin_with(&mut self, first: Change, later: impl Fn(&Change) -> bool) {
        let from = History::default().changes[0];
        let Change { sent, ended, durable, overwritten, buried, is_old, .. } = from;
        self.changes.retain(later);
        self.changes.insert(0, Change { sent, ended, durable, overwritten, buried, is_old, ..first });
    }

    /// True if `content` was written before something that was lost, and that may have taken its place, durable or not.
    fn is_older(&self, content: Content) -> bool {
        let lost = self.changes.iter().filter(|change| change.is_lost());
        let newest = lost.map(Change::rank).max();
        newest.is_some_and(|newest| content < newest)
    }

    /// What the block holds is not known: until it is written anything may be there.
    pub fn unknown(&mut self) {
        self.replace(Content::MAX, |change| change.ended == Ended::Not);
        self.changes[0].is_harmed = true;
    }

    /// Only `content` is left, and what is `later`: what was promised of the block could not be kept, and need not.
    fn replace(&mut self, content: Content, later: impl Fn(&Change) -> bool) {
        let from = Self::default();
        let first = Change { content, order: content, ..from.changes[0] };
        (self.forgotten, self.ghosts) = (from.forgotten, from.ghosts);
        self.begin_with(first, later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(moment: u64) -> Moment {
        Moment(moment)
    }

    #[test]
    fn a_read_shows_the_last_change_or_one_in_flight() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        assert_eq!(history.readable(at(2)), [0, 5]);
        history.made(at(1), at(3));
        assert_eq!(history.readable(at(2)), [0, 5], "the read began before the write's end");
        assert_eq!(history.readable(at(4)), [5]);
        assert!(!history.read(at(4), 0));
    }

    #[test]
    fn a_read_of_what_was_written_since_a_power_cut_says_nothing_of_what_survived_it() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.power_cut();
        history.sent(6, at(2), false);
        assert!(history.is_of_now(at(3), 6) && !history.is_of_now(at(3), 5) && !history.is_of_now(at(3), 0));
        assert!(
            history.read(at(3), 6) && !history.read(at(4), 5),
            "it is not taken back while the power stays on"
        );
        history.power_cut();
        assert_eq!(history.readable(at(5)), [0, 5, 6], "none of them is durable");
        assert!(!history.is_of_now(at(5), 6));
    }

    #[test]
    fn a_flush_after_a_power_cut_makes_nothing_durable_that_may_be_gone() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.made(at(1), at(2));
        history.durable(at(1));
        history.harmed(5);
        history.sent(6, at(3), false);
        history.made(at(3), at(4));
        history.power_cut();
        // Nobody could read the block meanwhile.
        history.durable_before(at(6));
        history.prune(at(7));
        assert!(history.may_fail(at(7)), "write 5 may be all there is, and was harmed");
        history.power_cut();
        assert!(history.may_fail(at(8)));
        assert_eq!(history.settle(6), Settled::Survived, "it was there all the time");
        assert!(!history.may_fail(at(10)));
    }

    #[test]
    fn of_overlapping_changes_either_may_win_until_a_read_shows_one() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.sent(6, at(2), false);
        history.made(at(2), at(3));
        history.made(at(1), at(4));
        assert_eq!(history.readable(at(9)), [5, 6]);
        assert!(history.read(at(9), 5));
        assert_eq!(history.readable(at(10)), [5]);
    }

    #[test]
    fn a_power_cut_leaves_what_is_durable_or_newer() {
        let mut history = History::default();
        for (content, sent) in [(5, 1), (6, 3), (7, 5)] {
            history.sent(content, at(sent), false);
            history.made(at(sent), at(sent + 1));
        }
        assert!(!history.clone().durable_before(at(5)), "the third is not durable");
        history.durable_before(at(5));
        history.sent(8, at(8), false);
        history.power_cut();
        assert_eq!(history.readable(at(9)), [6, 7, 8]);
        assert_eq!(history.clone().settle(5), Settled::No);
        assert_eq!(history.settle(7), Settled::Survived);
        history.power_cut();
        assert_eq!(history.readable(at(11)), [7], "what was found once stays");
    }

    #[test]
    fn an_older_version_that_was_harmed_may_be_in_the_place_of_one_that_nothing_tells_of() {
        let mut history = History::default();
        for (content, sent) in [(5, 1), (6, 3)] {
            history.sent(content, at(sent), false);
            history.made(at(sent), at(sent + 1));
            history.durable(at(sent));
        }
        history.prune(at(5));
        history.power_cut();
        history.harmed(5);
        assert!(!history.may_fail(at(6)), "write 6 is there");
        history.untold(6);
        assert!(history.may_fail(at(6)));
        history.power_cut();
        assert!(!history.may_fail(at(7)), "this mount finds write 6");
    }

    #[test]
    fn a_version_that_was_harmed_comes_back_when_nothing_tells_of_the_durable_one_after_it() {
        for prunes in [false, true] {
            let mut history = History::default();
            history.sent(5, at(1), false);
            history.made(at(1), at(2));
            history.durable(at(1));
            history.harmed(5);
            history.sent(6, at(3), false);
            history.made(at(3), at(4));
            history.durable(at(3));
            if prunes {
                history.prune(at(5));
            }
            history.power_cut();
            assert!(!history.may_fail(at(6)), "write 6 is there");
            history.untold(6);
            assert!(history.may_fail(at(6)), "nothing tells of write 6, and write 5 cannot be read");
        }
    }

    #[test]
    fn a_version_that_was_harmed_and_discarded_comes_back_when_nothing_tells_of_the_discard() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.made(at(1), at(2));
        history.durable(at(1));
        history.harmed(5);
        history.sent(0, at(3), true);
        history.made(at(3), at(4));
        history.power_cut();
        assert_eq!(history.settle(0), Settled::Survived, "a checkpoint tells of the discard");
        assert!(!history.may_fail(at(6)), "zeroes are there");
        history.power_cut();
        history.untold(0);
        assert!(history.may_fail(at(7)), "the checkpoint was lost: write 5 is there, and cannot be read");
    }

    #[test]
    fn what_was_sent_since_a_power_cut_counts_when_something_older_is_found() {
        for content in [0, 5, 9] {
            let mut history = History::default();
            history.sent(5, at(1), false);
            history.harmed(5);
            history.power_cut();
            history.sent(6, at(2), false);
            if content == 9 {
                history.unknown();
            } else {
                assert_eq!(history.settle(content), Settled::Survived);
            }
            history.made(at(2), at(4));
            assert_eq!(history.readable(at(5)), [6], "write {content} was found while write 6 was under way");
            assert!(history.clone().read(at(5), 6) && !history.clone().read(at(5), content));
        }
    }

    #[test]
    fn a_refused_change_may_be_there_or_not_until_the_next() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.refused(at(1), at(2));
        assert_eq!(history.readable(at(3)), [0, 5]);
        history.sent(6, at(4), false);
        history.made(at(4), at(5));
        assert_eq!(history.readable(at(6)), [6]);
        assert!(history.clone().read(at(6), 6));
    }

    #[test]
    fn a_forgettable_discard_may_be_forgotten_though_flushed() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.made(at(1), at(2));
        history.durable_before(at(3));
        history.sent(0, at(4), true);
        history.made(at(4), at(5));
        assert!(history.durable_before(at(6)));
        assert_eq!(history.readable(at(7)), [0]);
        history.power_cut();
        assert_eq!(history.readable(at(8)), [5, 0]);
    }

    #[test]
    fn what_a_forgettable_discard_followed_need_not_be_durable() {
        let mut history = History::default();
        for (content, sent) in [(5, 1), (6, 4)] {
            history.sent(content, at(sent), false);
            history.made(at(sent), at(sent + 1));
            if content == 5 {
                history.durable_before(at(3));
            }
        }
        history.sent(0, at(6), true);
        history.made(at(6), at(7));
        assert!(history.durable_before(at(8)));
        history.power_cut();
        assert_eq!(history.readable(at(9)), [5, 6, 0]);
    }

    #[test]
    fn pruning_forgets_only_what_nobody_can_see() {
        let mut history = History::default();
        history.sent(5, at(1), false);
        history.made(at(1), at(2));
        history.prune(at(9));
        assert_eq!(history.changes.len(), 2, "zeroes are durable still");
        history.durable_before(at(3));
        history.prune(at(2));
        assert_eq!(history.changes.len(), 2, "a read of moment 2 may still show zeroes");
        history.prune(at(3));
        assert_eq!(history.changes.len(), 1);
    }
}
