//! What a run of the steps came to.

use std::fmt;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and found nothing wrong.
    Passed,
    /// It ran and found something wrong, or could not run.
    Failed,
    /// It has nothing to do with the options given; says why.
    NotAsked(&'static str),
    /// A step before it failed.
    NotReached,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed => f.write_str("FAILED"),
            Self::NotAsked(why) => write!(f, "not run ({why})"),
            Self::NotReached => f.write_str("not reached"),
        }
    }
}

/// One step in the summary.
pub struct Line {
    /// Name of the step.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time it took.
    pub seconds: f64,
}

/// The summary, one line per step, columns aligned, with the total time.
pub fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0).max("total".len());
    let mut text = String::new();
    for Line { name, outcome, seconds } in lines {
        text += &format!("{name:width$}  {seconds:7.1} s  {outcome}\n");
    }
    let total: f64 = lines.iter().map(|line| line.seconds).sum();
    text + &format!("{:width$}  {total:7.1} s\n", "total")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_aligns_names_and_adds_up_time() {
        let lines = [
            Line { name: "fmt", outcome: Outcome::Passed, seconds: 1.5 },
            Line { name: "packages", outcome: Outcome::Failed, seconds: 10.0 },
            Line { name: "docs", outcome: Outcome::NotReached, seconds: 0.0 },
        ];
        let expected = "fmt           1.5 s  passed\n\
                        packages     10.0 s  FAILED\n\
                        docs          0.0 s  not reached\n\
                        total        11.5 s\n";
        assert_eq!(table(&lines), expected);
    }
}
