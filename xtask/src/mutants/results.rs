//! `experiments/mutants/results.md`: the table per module, and every mutant that survives.

use super::{
    equivalent::Equivalents,
    mutant::{Key, Mutant},
    outcomes::{Outcomes, Verdict},
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
    unviable: u32,
    equivalent: u32,
    missed: u32,
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
            let verdict = outcomes.of(mutant).map(|judged| judged.verdict);
            let is_equivalent = equivalents.reason(index).is_some();
            row.judged += u32::from(is_equivalent || verdict.is_some());
            match verdict {
                _ if is_equivalent => row.equivalent += 1,
                Some(Verdict::Caught) => row.caught += 1,
                Some(Verdict::Timeout) => row.timeout += 1,
                Some(Verdict::Unviable) => row.unviable += 1,
                Some(Verdict::Missed) => row.missed += 1,
                None => {}
            }
        }
        row
    }

    /// Found of those judged that could be found, in tenths of a percent; `None` if there is none.
    fn per_mille(&self) -> Option<u32> {
        let found = self.caught + self.timeout;
        (found * 1000).checked_div(found + self.missed)
    }

    fn line(&self, name: &str) -> String {
        let score =
            self.per_mille().map_or("-".to_owned(), |score| format!("{}.{} %", score / 10, score % 10));
        let Self { mutants, judged, caught, timeout, unviable, equivalent, missed } = self;
        format!(
            "| {name} | {mutants} | {judged} | {caught} | {timeout} | {unviable} | {equivalent} | {missed} | {score} |\n"
        )
    }
}

/// The table: a row for each module, and one for each crate.
pub fn table(mutants: &[Mutant], equivalents: &Equivalents, outcomes: &Outcomes) -> String {
    let mut text =
        "| module | mutants | judged | caught | timeout | unviable | equivalent | missed | score |\n\
                    |---|---|---|---|---|---|---|---|---|\n"
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
    fn a_score_is_of_what_was_judged_and_could_be_found() {
        let row =
            Row { mutants: 30, judged: 26, caught: 18, timeout: 1, unviable: 4, equivalent: 2, missed: 1 };
        assert_eq!(row.line("m"), "| m | 30 | 26 | 18 | 1 | 4 | 2 | 1 | 95.0 % |\n");
        assert_eq!(Row::default().line("m"), "| m | 0 | 0 | 0 | 0 | 0 | 0 | 0 | - |\n");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let long = format!("  {}", "word ".repeat(60));
        let text = wrapped(&long);
        assert!(text.lines().all(|line| line.len() <= COLUMNS && line.starts_with("  ")), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }
}
