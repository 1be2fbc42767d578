//! The list of rules, and what one is.

use super::{
    Case, completeness, direct, environment, errors, footprint, generator, link, little, mapped, media_floor,
    mixture, monotone, replicate, samples, schedule, steady, units,
};
use crate::lint::{Cell, Evidence, Judgement, Severity};

/// A rule, with what a user has to know of it.
#[derive(Debug)]
pub struct Rule {
    /// `L01` to `L17`.
    pub id: &'static str,
    /// One or two words.
    pub name: &'static str,
    /// The worst a finding can be.
    pub severity: Severity,
    /// What must hold, with its limits.
    pub holds: &'static str,
    /// What a finding means.
    pub means: &'static str,
    /// What to do about one.
    pub remedy: &'static str,
    /// What it needs to know.
    pub needs: &'static str,
    /// Judges one cell.
    pub(in crate::lint) judge: fn(&Case<'_>, &Evidence, &Cell) -> Judgement,
}

/// All rules, by number.
pub static RULES: [Rule; 17] = [
    little::RULE,
    link::RULE,
    media_floor::RULE,
    replicate::RULE,
    mixture::RULE,
    monotone::RULE,
    direct::RULE,
    mapped::RULE,
    footprint::RULE,
    steady::RULE,
    samples::RULE,
    generator::RULE,
    schedule::RULE,
    environment::RULE,
    completeness::RULE,
    units::RULE,
    errors::RULE,
];

/// The rule of this id or name, in any case.
///
/// # Errors
/// A sentence that lists the rules.
pub fn find_rule(text: &str) -> Result<&'static Rule, String> {
    let is_it = |rule: &&Rule| rule.id.eq_ignore_ascii_case(text) || rule.name.eq_ignore_ascii_case(text);
    RULES.iter().find(is_it).ok_or_else(|| {
        let names: Vec<String> = RULES.iter().map(|rule| format!("{} {}", rule.id, rule.name)).collect();
        format!("there is no rule `{text}`; the rules are: {}", names.join(", "))
    })
}
