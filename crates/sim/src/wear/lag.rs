//! Lines or chunks that lag, each since when.
//!
//! Deliberately not here: what may lag how far (`mod`).

use crate::contract::Broken;

/// What one line or chunk is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub cycles: u32,
    /// It holds what may be moved, and takes no more.
    pub is_full: bool,
}

/// How far one may lag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub what: &'static str,
    /// What is told to lag.
    pub spread: u32,
    /// Resets one may lag for long.
    pub limit: u32,
    /// Resets of others, those put off not counted, before it must not lag any more.
    pub resets_max: u64,
    /// Resets since the mount that do not count.
    pub put_off: u64,
}

/// A full one as it was when it began to lag.
#[derive(Clone, Copy, Debug)]
struct Begun {
    cycles: u32,
    /// Resets that count, by then.
    since: u64,
}

/// Those that lag.
#[derive(Clone, Debug, Default)]
pub(super) struct Lagging {
    begun: Vec<Option<Begun>>,
    /// Resets put off as the target told last, and before its mount.
    put_off: u64,
    put_off_before: u64,
}

impl Lagging {
    /// Whatever lags does so from the next look on.
    pub fn forget(&mut self) {
        self.begun.clear();
    }

    /// Looks at all of them; those without chunks are `None`. True if any lags by more than the spread.
    pub fn check(&mut self, rule: &Rule, all: &[Option<Seen>]) -> Result<bool, Broken> {
        if rule.put_off < self.put_off {
            self.put_off_before += self.put_off;
        }
        self.put_off = rule.put_off;
        let most = all.iter().flatten().map(|seen| seen.cycles).max().unwrap_or(0);
        let resets: u64 = all.iter().flatten().map(|seen| u64::from(seen.cycles)).sum();
        // One that went bad takes its resets along.
        let counted = resets.saturating_sub(self.put_off + self.put_off_before);
        self.begun.resize(all.len(), None);
        let mut any = false;
        for (index, (seen, begun)) in all.iter().zip(&mut self.begun).enumerate() {
            let full = seen.filter(|seen| seen.is_full);
            let lag = full.map_or(0, |seen| most - seen.cycles);
            any |= lag > rule.spread;
            let Some(seen) = full.filter(|_| lag > rule.limit) else {
                *begun = None;
                continue;
            };
            let before = begun.filter(|begun| begun.cycles == seen.cycles);
            let Begun { since, .. } =
                *begun.insert(before.unwrap_or(Begun { cycles: seen.cycles, since: counted }));
            if counted > since + rule.resets_max {
                let Rule { what, limit, .. } = rule;
                let promised = format!("a full {what} lags by at most {limit} resets, or is reset soon");
                let found = format!(
                    "{what} {index} was reset {} times, another {most} times, and {} were reset since that was so",
                    seen.cycles,
                    counted - since
                );
                return Err(Broken::new("wear is spread", promised, found));
            }
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { what: "chunk", spread: 1, limit: 2, resets_max: 10, put_off: 0 };

    /// Chunks, the first of them full.
    fn seen(cycles: &[u32]) -> Vec<Option<Seen>> {
        (0..).zip(cycles).map(|(index, &cycles)| Some(Seen { cycles, is_full: index == 0 })).collect()
    }

    #[test]
    fn what_lags_for_longer_than_others_may_be_reset_is_found() {
        let mut lagging = Lagging::default();
        assert_eq!(lagging.check(&RULE, &seen(&[0, 1])), Ok(false));
        assert_eq!(lagging.check(&RULE, &seen(&[0, 2])), Ok(true), "it lags, and may");
        assert_eq!(lagging.check(&RULE, &seen(&[0, 3])), Ok(true), "from here on it may not for long");
        assert_eq!(lagging.check(&RULE, &seen(&[0, 13])), Ok(true));
        assert!(lagging.check(&RULE, &seen(&[0, 14])).is_err());
    }

    #[test]
    fn what_is_reset_or_open_or_forgotten_begins_anew() {
        let after = |change: &dyn Fn(&mut Lagging)| {
            let mut lagging = Lagging::default();
            assert_eq!(lagging.check(&RULE, &seen(&[0, 3])), Ok(true));
            change(&mut lagging);
            lagging.check(&RULE, &seen(&[0, 14]))
        };
        assert!(after(&|_| ()).is_err());
        assert_eq!(after(&Lagging::forget), Ok(true));
        let is_open = |lagging: &mut Lagging| {
            let mut open = seen(&[0, 5]);
            open[0].as_mut().expect("it is good").is_full = false;
            assert_eq!(lagging.check(&RULE, &open), Ok(false));
        };
        assert_eq!(after(&is_open), Ok(true));
        let mut lagging = Lagging::default();
        assert_eq!(lagging.check(&RULE, &seen(&[0, 3])), Ok(true));
        assert_eq!(lagging.check(&RULE, &seen(&[1, 14])), Ok(true), "it was reset");
    }

    #[test]
    fn resets_without_room_do_not_count_whatever_mounts_come_between() {
        let mut lagging = Lagging::default();
        let told = |put_off| Rule { put_off, ..RULE };
        assert_eq!(lagging.check(&told(2), &seen(&[0, 3])), Ok(true));
        assert_eq!(lagging.check(&told(8), &seen(&[0, 14])), Ok(true), "six of eleven do not count");
        assert_eq!(lagging.check(&told(0), &seen(&[0, 19])), Ok(true), "it was mounted again");
        assert!(lagging.check(&told(0), &seen(&[0, 20])).is_err());
    }
}
