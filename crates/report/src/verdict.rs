//! What came of checking a claim against numbers.

use serde::{Deserialize, Serialize};

/// Whether a claim holds for the numbers it was checked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// Numbers it needs are missing.
    NotEvaluated,
}

impl Outcome {
    /// The word that reports print.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::NotEvaluated => "not evaluated",
        }
    }
}

/// One claim, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Short name, such as `R1`; unique within a report.
    pub id: String,
    /// The claim in words, without measured numbers.
    pub claim: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The numbers it was decided by, or which are missing.
    pub sentence: String,
}

impl Verdict {
    /// A claim that was decided by the numbers in `sentence`.
    pub fn decided(id: &str, claim: &str, holds: bool, sentence: impl Into<String>) -> Self {
        let outcome = if holds { Outcome::Holds } else { Outcome::Fails };
        Self { id: id.to_owned(), claim: claim.to_owned(), outcome, sentence: sentence.into() }
    }

    /// A claim that could not be decided; `why` says what is missing.
    pub fn not_evaluated(id: &str, claim: &str, why: impl Into<String>) -> Self {
        let (id, claim) = (id.to_owned(), claim.to_owned());
        Self { id, claim, outcome: Outcome::NotEvaluated, sentence: why.into() }
    }

    /// Whether the claim was decided and is true.
    pub fn holds(&self) -> bool {
        self.outcome == Outcome::Holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_decided_true_claim_holds() {
        let cases = [
            (Verdict::decided("R1", "c", true, "1 > 0"), true, "holds"),
            (Verdict::decided("R1", "c", false, "1 > 2"), false, "fails"),
            (Verdict::not_evaluated("R1", "c", "no cell"), false, "not evaluated"),
        ];
        for (verdict, holds, word) in cases {
            assert_eq!((verdict.holds(), verdict.outcome.word()), (holds, word), "{verdict:?}");
        }
    }
}
