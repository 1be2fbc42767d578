//! What is said about clients, and how often: a crowd that is dropped does not fill the disk that a log is kept on.
//!
//! A bucket of lines that fills slowly; what does not fit is counted, and told in one line when there is room again. Deliberately
//! not here: where lines go.

use ocssd_base::Nanos;

/// Lines that may follow each other at once (chosen: what somebody reads who looks why a few clients were dropped).
const LINES_MAX: u64 = 20;

/// Time after which one more may be said (chosen: some 10 MB a day, whatever clients do).
const LINE_EVERY: Nanos = Nanos::from_secs(1);

/// Lines about clients.
#[derive(Clone, Debug)]
pub struct LogLimit {
    /// Lines that may be said.
    left: u64,
    /// Up to when that is true.
    at: Nanos,
    /// Lines that were not said.
    left_out: u64,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self { left: LINES_MAX, at: Nanos::ZERO, left_out: 0 }
    }
}

impl LogLimit {
    /// Whether a line may be said now; if not, it is counted.
    pub fn admits(&mut self, now: Nanos) -> bool {
        self.fill(now);
        // The last is for the line that tells how many were left out.
        if self.left <= 1 {
            self.left_out += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// A line about those that were not said, once others may be said again; at the end (`is_last`) in any case.
    pub fn poll(&mut self, now: Nanos, is_last: bool) -> Option<String> {
        self.fill(now);
        let may = is_last || self.left == LINES_MAX;
        if self.left_out == 0 || !may {
            return None;
        }
        let count = std::mem::replace(&mut self.left_out, 0);
        self.left = self.left.saturating_sub(1);
        Some(format!("{count} more lines like these were left out; the counters (SIGUSR1) have them all"))
    }

    /// Lines were left out that nobody was told of.
    #[must_use]
    pub const fn is_owing(&self) -> bool {
        self.left_out > 0
    }

    fn fill(&mut self, now: Nanos) {
        let passed = now.saturating_since(self.at).0 / LINE_EVERY.0;
        self.left = LINES_MAX.min(self.left + passed);
        self.at = if self.left == LINES_MAX { now } else { self.at + Nanos(passed * LINE_EVERY.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_told_of_in_few_lines_and_no_count_is_lost() {
        let mut limit = LogLimit::default();
        let (mut said, mut told) = (0, 0);
        let mut tell = |line: Option<String>| {
            let count = |line: String| line.split(' ').next().and_then(|word| word.parse::<u64>().ok());
            told += line.and_then(count).unwrap_or(0);
        };
        for millis in 0..60_000 {
            let now = Nanos::from_millis(millis);
            said += u64::from(limit.admits(now));
            tell(limit.poll(now, false));
        }
        assert!((20..=80).contains(&said), "{said} lines in a minute of 60 000");
        assert!(limit.is_owing());
        tell(limit.poll(Nanos::from_secs(61), true));
        assert_eq!(said + told, 60_000);
        assert!(!limit.is_owing());
    }

    #[test]
    fn a_few_lines_now_and_then_are_all_said_and_the_count_is_told_when_it_is_quiet_again() {
        let mut limit = LogLimit::default();
        for second in 0..100 {
            assert!(limit.admits(Nanos::from_secs(second)));
        }
        let burst = Nanos::from_secs(200);
        let said = (0..30).filter(|_| limit.admits(burst)).count();
        assert_eq!((said, limit.poll(burst, false)), (19, None));
        let line = limit.poll(burst + Nanos::from_secs(30), false);
        assert!(line.is_some_and(|line| line.starts_with("11 more lines")));
    }
}
