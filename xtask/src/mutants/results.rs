//! `experiments/mutants/results.md`: the table per module, and every mutant that survives.

use super::{
    equivalent::Equivalents,
    mutant::{Key, Mutant},
    outcomes::{Judged, Outcomes, Verdict},
    select,
};
use std::fmt::Write;

/// Counts of a module.
#[derive(Clone, Copy, Default)]
struct Row {
    mutants: u32,
    judged: u32,
    caught: u32,
    timeout: u32,
    by_trace: u32,
    unviable: u32,
    equivalent: u32,
    missed: u32,
}

/// What a mutant counts as that nothing but a trace found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traces {
    Found,
    Missed,
}

impl Row {
    fn of<'a>(
        all: impl Iterator<Item = (usize, &'a Mutant)>,
        equivalents: &Equivalents,
        outcomes: &Outcomes,
    ) -> Self {
        let mut row = Self::default();
        for (index, mutant) in all {
            row.mutants += 1;
            let judged = outcomes.of(mutant);
            let verdict = judged.map(|judged| judged.verdict);
            let is_equivalent = equivalents.reason(index).is_some();
            row.judged += u32::from(is_equivalent || verdict.is_some());
            match verdict {
                _ if is_equivalent => row.equivalent += 1,
                _ if judged.is_some_and(Judged::is_by_trace) => row.by_trace += 1,
                Some(Verdict::Caught) => row.caught += 1,
                Some(Verdict::Timeout) => row.timeout += 1,
                Some(Verdict::Unviable) => row.unviable += 1,
                Some(Verdict::Missed) => row.missed += 1,
                None => {}
            }
        }
        row
    }

    /// Found of those judged that could be found, in percent; a dash if there is none. What a trace alone found is among those that
    /// could be, and counts as found only `with` traces.
    fn score(&self, with: Traces) -> String {
        let without = self.caught + self.timeout;
        let found = without + if with == Traces::Found { self.by_trace } else { 0 };
        let per_mille = (found * 1000).checked_div(without + self.by_trace + self.missed);
        per_mille.map_or("-".to_owned(), |score| format!("{}.{} %", score / 10, score % 10))
    }

    fn line(&self, name: &str) -> String {
        let Self { mutants, judged, caught, timeout, by_trace, unviable, equivalent, missed } = self;
        let (score, with_traces) = (self.score(Traces::Missed), self.score(Traces::Found));
        format!(
            "| {name} | {mutants} | {judged} | {caught} | {timeout} | {by_trace} | {unviable} | {equivalent} | {missed} | {score} \
             | {with_traces} |\n"
        )
    }
}

/// The table: a row for each module, and one for each crate.
pub fn table(mutants: &[Mutant], equivalents: &Equivalents, outcomes: &Outcomes) -> String {
    let mut text =
        "| module | mutants | judged | caught | timeout | by trace | unviable | equivalent | missed | score | with traces |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let row = |outer: &str| {
        let is_of = |(_, mutant): &(usize, &Mutant)| select::is_within(&mutant.module(), outer);
        Row::of(mutants.iter().enumerate().filter(is_of), equivalents, outcomes)
    };
    let exactly = |module: &str| {
        let is_of = |(_, mutant): &(usize, &Mutant)| mutant.module() == module;
        Row::of(mutants.iter().enumerate().filter(is_of), equivalents, outcomes)
    };
    let modules = select::modules(mutants);
    for crate_modules in modules.chunk_by(|a, b| crate_of(a) == crate_of(b)) {
        for module in crate_modules {
            text += &exactly(module).line(&format!("`{module}`"));
        }
        let name = crate_of(&crate_modules[0]);
        text += &row(name).line(&format!("**{name}**"));
    }
    text
}

fn crate_of(module: &str) -> &str {
    module.split('/').next().unwrap_or(module)
}

/// The whole page.
pub fn text(mutants: &[Mutant], equivalents: &Equivalents, outcomes: &Outcomes) -> String {
    let mut text = "# Mutants of `ftl` and `targets`, and what tests find\n\n\
        Written by `cargo xtask mutants`; [README.md](README.md) says what the columns mean.\n\n"
        .to_owned();
    text += &table(mutants, equivalents, outcomes);
    let missed = |(_, mutant): &(usize, &Mutant)| {
        outcomes.of(mutant).is_some_and(|judged| judged.verdict == Verdict::Missed)
    };
    let is_equivalent = |(index, _): &(usize, &Mutant)| equivalents.reason(*index).is_some();
    text += "\n## Missed\n\nNo test finds these, and nobody has shown that none could.\n\n";
    for (_, mutant) in mutants.iter().enumerate().filter(|m| missed(m) && !is_equivalent(m)) {
        text += &item(&mutant.key, None);
    }
    text += "\n## Found by a trace alone\n\nWith these targets behave differently, and nothing says that it is worse.\n\n";
    let is_by_trace = |(_, mutant): &(usize, &Mutant)| outcomes.of(mutant).is_some_and(Judged::is_by_trace);
    for (_, mutant) in mutants.iter().enumerate().filter(|m| is_by_trace(m) && !is_equivalent(m)) {
        text += &item(&mutant.key, None);
    }
    let _ = write!(text, "\n## Equivalent\n\nNo test can find these ([list](equivalent.toml)).\n\n");
    for (index, mutant) in mutants.iter().enumerate().filter(is_equivalent) {
        text += &item(&mutant.key, equivalents.reason(index));
    }
    text
}

/// A line of a list, broken where it would be too long.
fn item(key: &Key, why: Option<&str>) -> String {
    let Key { file, mutant, at, nth } = key;
    let nth = if *nth > 1 { format!(" (number {nth})") } else { String::new() };
    let why = why.map_or(String::new(), |why| format!("\n  {why}"));
    let text = format!("- `{file}`:\n  {mutant}{nth}\n  at `{at}`{why}\n");
    text.lines().map(wrapped).collect()
}

/// Longest line of a page.
const COLUMNS: usize = 130;

fn wrapped(line: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 && column + 1 + word.len() > COLUMNS {
            text += "\n ";
            column = 1;
        }
        if index > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.len();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_of_what_was_judged_and_could_be_found_and_what_only_a_trace_found_counts_in_the_second() {
        let row = Row {
            mutants: 30,
            judged: 26,
            caught: 17,
            timeout: 1,
            by_trace: 1,
            unviable: 4,
            equivalent: 2,
            missed: 1,
        };
        assert_eq!(row.line("m"), "| m | 30 | 26 | 17 | 1 | 1 | 4 | 2 | 1 | 90.0 % | 95.0 % |\n");
        assert_eq!(Row::default().line("m"), "| m | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | - | - |\n");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let long = format!("  {}", "word ".repeat(60));
        let text = wrapped(&long);
        assert!(text.lines().all(|line| line.len() <= COLUMNS && line.starts_with("  ")), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }
}
