//! Where the shards of the map lie on media: in which checkpoint, as which pieces of it; and which of them the next one keeps.
//!
//! A shard that did not change since the checkpoint that has it was begun is named by the next one, and not written again. So
//! lines of older checkpoints stay in use as long as a shard in them is named. They are bounded: checkpoints are a log of
//! lines, and shards in its oldest lines are written again as if they had changed, until what is left of it beside a whole
//! checkpoint fits the lines that are kept for two. Deliberately not here: what changed (`ftl::L2p`), and how pieces are
//! written (`checkpoint`).

use super::checkpoint_header::KeptShard;
use ocssd_base::usize_of;
use ocssd_ftl::LineSequence;

/// A shard on media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardOnMedia {
    /// The checkpoint it was written in.
    pub number: u64,
    /// Its first piece there; the others follow.
    pub first_piece: u32,
    /// No piece of it is in an older line.
    pub first_line: LineSequence,
}

/// The shards that the newest checkpoint names.
#[derive(Clone, Debug, Default)]
pub struct MapShards {
    /// By their numbers; those behind the last are nowhere.
    on_media: Vec<Option<ShardOnMedia>>,
}

/// What a checkpoint does with shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// It writes these, in order.
    pub written: Vec<u32>,
    /// It names these where they are, in order.
    pub kept: Vec<u32>,
}

/// Lines of the log of checkpoints.
#[derive(Clone, Debug)]
pub struct LogLines {
    /// Those in use, ascending.
    pub lines: Vec<LineSequence>,
    /// The oldest that is being written: it goes on.
    pub open: Option<LineSequence>,
    /// Sectors that can still be written to those in use.
    pub room: u64,
    /// Sectors of data of a whole one.
    pub line_sectors: u64,
    /// Lines in use once a checkpoint is complete, at most.
    pub lines_max: u64,
}

impl LogLines {
    /// Lines in use if the oldest that is needed is `oldest`, and `sectors` more are written.
    fn used(&self, oldest: Option<LineSequence>, sectors: u64) -> u64 {
        let oldest = oldest.into_iter().chain(self.open).min();
        let older =
            oldest.map_or(self.lines.len(), |oldest| self.lines.partition_point(|&line| line < oldest));
        let kept = u64::try_from(self.lines.len() - older).expect("an index fits 64 bits");
        kept + sectors.saturating_sub(self.room).div_ceil(self.line_sectors)
    }
}

impl MapShards {
    /// Where a shard is, if the newest checkpoint has it.
    pub fn get(&self, shard: u32) -> Option<ShardOnMedia> {
        self.on_media.get(usize_of(shard)).copied().flatten()
    }

    /// A shard is there, and nowhere else.
    pub fn set(&mut self, shard: u32, at: ShardOnMedia) {
        if self.on_media.len() <= usize_of(shard) {
            self.on_media.resize(usize_of(shard) + 1, None);
        }
        self.on_media[usize_of(shard)] = Some(at);
    }

    /// What is on media is not what the next checkpoint would have: it writes every shard.
    pub fn forget_all(&mut self) {
        self.on_media.clear();
    }

    /// The oldest line that a shard is in.
    pub fn oldest(&self) -> Option<LineSequence> {
        self.on_media.iter().flatten().map(|at| at.first_line).min()
    }

    /// What the header of a checkpoint says of shards it keeps.
    pub fn describe(&self, kept: &[u32]) -> Vec<KeptShard> {
        let row = |&shard: &u32| {
            let at = self.get(shard).expect("a shard that is kept is on media");
            KeptShard { shard, first_piece: at.first_piece, number: at.number }
        };
        kept.iter().map(row).collect()
    }

    /// Parts `shards`, which hold something: those that are to be written, because they `changed`, are not on media or lie
    /// where the log is to end, and those that are kept. Nothing is kept in lines up to `leaves`. A shard takes `per_shard`
    /// sectors, and the checkpoint `others` beside them.
    pub fn plan(
        &self,
        shards: &[u32],
        changed: impl Fn(u32) -> bool,
        leaves: LineSequence,
        (per_shard, others): (u64, u64),
        log: &LogLines,
    ) -> Plan {
        assert!(log.lines.is_sorted() && log.line_sectors > 0, "{log:?} is no log");
        let stays = |&&shard: &&u32| {
            let at = self.get(shard).filter(|_| !changed(shard));
            at.is_some_and(|at| at.first_line > leaves)
        };
        let mut kept: Vec<(LineSequence, u32)> =
            shards.iter().filter(stays).map(|&shard| (self.first_line(shard), shard)).collect();
        kept.sort_unstable();
        let mut first = 0;
        let all = u64::try_from(shards.len()).expect("an index fits 64 bits");
        while let Some(&(oldest, _)) = kept.get(first) {
            let left = u64::try_from(kept.len() - first).expect("an index fits 64 bits");
            if log.used(Some(oldest), (all - left) * per_shard + others) <= log.lines_max {
                break;
            }
            first += kept[first..].partition_point(|&(line, _)| line == oldest);
        }
        let mut kept: Vec<u32> = kept.split_off(first).into_iter().map(|(_, shard)| shard).collect();
        kept.sort_unstable();
        let is_written = |shard: &&u32| kept.binary_search(shard).is_err();
        let written: Vec<u32> = shards.iter().filter(is_written).copied().collect();
        assert_eq!(written.len() + kept.len(), shards.len(), "a shard is written and kept, or neither");
        Plan { written, kept }
    }

    fn first_line(&self, shard: u32) -> LineSequence {
        self.get(shard).expect("it is on media").first_line
    }

    /// A checkpoint is begun: it writes the shards of `plan` as pieces from `first_piece` on and names the kept ones. In which
    /// lines it lies is known when it is complete.
    pub fn begin(&mut self, plan: &Plan, number: u64, first_piece: u64, per_shard: u64) {
        let before = std::mem::take(self);
        for &shard in &plan.kept {
            self.set(shard, before.get(shard).expect("a shard that is kept is on media"));
        }
        for (index, &shard) in (0..).zip(&plan.written) {
            let first_piece = first_piece + index * per_shard;
            let first_piece = u32::try_from(first_piece).expect("fewer pieces than 2^32");
            let first_line = LineSequence(u64::MAX);
            self.set(shard, ShardOnMedia { number, first_piece, first_line });
        }
    }

    /// Checkpoint `number` is complete, and no piece of it is in an older line than this.
    pub fn complete(&mut self, number: u64, first_line: LineSequence) {
        for at in self.on_media.iter_mut().flatten() {
            assert!(at.number <= number, "a shard of checkpoint {} before it is taken", at.number);
            if at.number == number {
                at.first_line = first_line;
            }
        }
        assert!(self.oldest().is_none_or(|oldest| oldest.0 < u64::MAX), "a shard is in no line");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    /// A log that has room for everything.
    fn wide() -> LogLines {
        LogLines {
            lines: vec![LineSequence(1)],
            open: Some(LineSequence(1)),
            room: 5,
            line_sectors: 10,
            lines_max: 100,
        }
    }

    #[test]
    fn what_did_not_change_is_kept_and_what_is_not_on_media_is_written() {
        let mut shards = MapShards::default();
        let all: Vec<u32> = (0..6).collect();
        let plan = shards.plan(&all, |_| false, LineSequence(0), (2, 1), &wide());
        assert_eq!(plan, Plan { written: all, kept: Vec::new() }, "nothing is on media");
        shards.begin(&plan, 1, 3, 2);
        shards.complete(1, LineSequence(7));
        let at = ShardOnMedia { number: 1, first_piece: 7, first_line: LineSequence(7) };
        assert_eq!((shards.get(2), shards.oldest()), (Some(at), Some(LineSequence(7))));
        let (lines, open) = (vec![LineSequence(7)], Some(LineSequence(7)));
        let log = LogLines { lines, open, ..wide() };
        let plan = shards.plan(&[0, 2, 4, 5], |shard| shard == 4, LineSequence(6), (2, 1), &log);
        assert_eq!(plan, Plan { written: vec![4], kept: vec![0, 2, 5] });
        assert_eq!(shards.describe(&plan.kept)[1], KeptShard { shard: 2, first_piece: 7, number: 1 });
        shards.begin(&plan, 2, 1, 2);
        shards.complete(2, LineSequence(9));
        assert_eq!(shards.get(4).map(|at| (at.number, at.first_line)), Some((2, LineSequence(9))));
        assert_eq!((shards.get(1), shards.get(2)), (None, Some(at)), "empty ones are let go of");
        let plan = shards.plan(&[0, 2, 4, 5], |_| false, LineSequence(7), (2, 1), &log);
        assert_eq!(plan.kept, vec![4], "the others are in a line that is to be left");
        shards.forget_all();
        assert_eq!(shards.plan(&[2], |_| false, LineSequence(0), (2, 1), &log).written, vec![2]);
    }

    /// Checkpoints of random shards, one after the other, in a log of lines: what is named is what was written last of each
    /// shard, and neither the lines in use when a checkpoint is complete nor those in use before that pass what is kept for them.
    #[test]
    fn the_log_of_checkpoints_stays_in_its_lines_and_names_what_was_written_last() {
        let mut rewritten = 0;
        for seed in 1..60 {
            let mut prng = Prng::new(seed);
            let (per_shard, others, count) = (1 + prng.below(4), 1 + prng.below(5), 1 + prng.below(40));
            let line_sectors = 4 + prng.below(80);
            let of_all = (count * per_shard + others).div_ceil(line_sectors);
            let mut log =
                LogLines { lines: Vec::new(), open: None, room: 0, line_sectors, lines_max: of_all + 1 };
            let (mut shards, mut next_line) = (MapShards::default(), 0);
            let mut naive: BTreeMap<u32, (u64, LineSequence)> = BTreeMap::new();
            let hot = prng.below(4) * count / 4;
            for number in 1..120 {
                let all: Vec<u32> =
                    (0..u32::try_from(count).unwrap()).filter(|_| prng.below(9) > 0).collect();
                let changed = |shard: u32| u64::from(shard) < hot;
                let plan = shards.plan(&all, changed, LineSequence(0), (per_shard, others), &log);
                let must = |shard: &u32| changed(*shard) || !naive.contains_key(shard);
                assert!(all.iter().filter(|shard| must(shard)).all(|shard| plan.written.contains(shard)));
                rewritten += plan.written.iter().filter(|shard| !must(shard)).count();
                let written = u64::try_from(plan.written.len()).unwrap();
                shards.begin(&plan, number, others, per_shard);
                let mut left = written * per_shard + others;
                let mut first_line = None;
                while left > 0 {
                    if log.room == 0 {
                        next_line += 1;
                        log.lines.push(LineSequence(next_line));
                        log.room = line_sectors;
                    }
                    first_line = first_line.or(log.lines.last().copied());
                    let now = left.min(log.room);
                    (left, log.room) = (left - now, log.room - now);
                    log.open = log.lines.last().copied().filter(|_| log.room > 0);
                }
                let used = u64::try_from(log.lines.len()).unwrap();
                assert!(used <= 2 * of_all + 1, "seed {seed}, {number}: {used} lines for two of {of_all}");
                let first_line = first_line.expect("something was written");
                shards.complete(number, first_line);
                naive = all
                    .iter()
                    .map(|&shard| (shard, naive.get(&shard).copied()))
                    .map(|(shard, before)| {
                        let is_new = plan.written.contains(&shard);
                        (shard, if is_new { (number, first_line) } else { before.expect("it is kept") })
                    })
                    .collect();
                let found = |shard| shards.get(shard).map(|at| (at.number, at.first_line));
                assert!((0..40).all(|shard| found(shard) == naive.get(&shard).copied()), "seed {seed}");
                let oldest = shards.oldest().unwrap_or(first_line).min(first_line);
                log.lines.retain(|&line| line >= oldest);
                let used = u64::try_from(log.lines.len()).unwrap();
                assert!(used <= of_all + 1, "seed {seed}, {number}: {used} lines are held for {of_all}");
            }
        }
        assert!(rewritten > 1000, "{rewritten} shards were written only to end the log");
    }
}
