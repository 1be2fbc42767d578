//! The one table of fio options: every name fio 3.33 knows, what is done with it, and the code that does it.
//!
//! Help text, `docs/fio.md`, suggestions and parsing are all made from these rows, so they cannot disagree.
//! Deliberately not here: the code itself (see `apply`), and fio's program options (see `program`).

mod implemented;
mod noted;
mod refused;

use std::sync::LazyLock;

use super::draft::{Apply, Draft, Value};
use super::number::{KbBase, TimeUnit, parse_integer, parse_time};
use super::word::parse_bool;

/// What is done with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Carried out with fio's meaning.
    Implemented,
    /// Accepted, not carried out, and the user is told why that changes nothing that is measured here.
    Noted(&'static str),
    /// Refused by name.
    Refused {
        /// Why.
        reason: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
}

/// What an option's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Given alone, or 0 or 1.
    Flag,
    /// 0 or 1; fio refuses it alone, here that is 1 with a note.
    Bool,
    /// A whole number, or up to three with commas.
    Number,
    /// A time.
    Time,
    /// Any text, at least one character.
    Text,
    /// Any text, or given alone.
    OptionalText,
    /// Only these values; others ask for something that is not implemented yet.
    Only(&'static [&'static str]),
}

/// The reason of an option whose one possible value asks for nothing else than what is done.
const AS_IT_IS: &str = "this value is how it is done anyway";

/// One option of fio.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// fio's name for it.
    pub name: &'static str,
    /// Other names fio accepts.
    pub aliases: &'static [&'static str],
    /// What its value looks like.
    pub shape: Shape,
    /// What is done with it.
    pub class: Class,
    /// What it means, in one line.
    pub doc: &'static str,
    pub(super) apply: Apply,
}

impl OptionRow {
    /// Checks a value that is only noted, so that a typing error in it is still found.
    pub(super) fn check_noted(&self, value: &str, kb_base: KbBase) -> Result<(), String> {
        match self.shape {
            Shape::Flag | Shape::Bool => parse_bool(value).map(drop),
            Shape::Number => value
                .split(',')
                .filter(|part| !part.trim().is_empty())
                .try_for_each(|part| parse_integer(part, kb_base).map(drop)),
            Shape::Time => parse_time(value, TimeUnit::Seconds).map(drop),
            Shape::Text | Shape::OptionalText => Ok(()),
            Shape::Only(values) if values.contains(&value) => Ok(()),
            Shape::Only(values) => {
                let reason = match self.class {
                    Class::Noted(reason) if reason != AS_IT_IS => format!(" ({reason})"),
                    Class::Noted(_) | Class::Implemented | Class::Refused { .. } => String::new(),
                };
                let values = values.join(" or ");
                Err(format!(
                    "only {}={values} is possible; anything else is not implemented yet{reason}",
                    self.name
                ))
            }
        }
    }

    /// The sentence told when this option is given with a valid value, if it is one of those told.
    ///
    /// An option that can only have the value that is carried out anyway ([`Shape::Only`]) needs none.
    pub(super) fn note_sentence(&self) -> Option<&'static str> {
        match (self.class, self.shape) {
            (Class::Noted(_), Shape::Only(_)) => None,
            (Class::Noted(reason), _) => Some(reason),
            (Class::Implemented | Class::Refused { .. }, _) => None,
        }
    }
}

fn nothing(_: &mut Draft, _: Value<'_>) -> Result<(), String> {
    Ok(())
}

const fn implemented(
    name: &'static str,
    aliases: &'static [&'static str],
    shape: Shape,
    apply: Apply,
    doc: &'static str,
) -> OptionRow {
    OptionRow { name, aliases, shape, class: Class::Implemented, doc, apply }
}

const fn noted(name: &'static str, shape: Shape, doc: &'static str, reason: &'static str) -> OptionRow {
    OptionRow { name, aliases: &[], shape, class: Class::Noted(reason), doc, apply: nothing }
}

const fn refused(
    name: &'static str,
    doc: &'static str,
    reason: &'static str,
    instead: &'static str,
) -> OptionRow {
    OptionRow {
        name,
        aliases: &[],
        shape: Shape::OptionalText,
        class: Class::Refused { reason, instead },
        doc,
        apply: nothing,
    }
}

const fn also(aliases: &'static [&'static str], row: OptionRow) -> OptionRow {
    OptionRow { aliases, ..row }
}

static TABLE: LazyLock<Vec<OptionRow>> = LazyLock::new(|| {
    [implemented::ROWS, noted::ROWS, refused::ROWS].into_iter().flatten().copied().collect()
});

/// Every option, the implemented ones first, then the noted, then the refused; within a class by theme.
#[must_use]
pub fn option_table() -> &'static [OptionRow] {
    &TABLE
}

/// The row of an option's name or alias.
#[must_use]
pub fn find_option(name: &str) -> Option<&'static OptionRow> {
    TABLE.iter().find(|row| row.name == name || row.aliases.contains(&name))
}

/// Every name and alias.
pub(super) fn option_names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_used_twice_and_every_row_says_what_it_does() {
        let mut names: Vec<&str> = option_names().collect();
        names.sort_unstable();
        let mut unique = names.clone();
        unique.dedup();
        assert_eq!(names, unique);
        for row in option_table() {
            assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{}", row.name);
            match row.class {
                Class::Implemented => {
                    assert!(!std::ptr::fn_addr_eq(row.apply, nothing as Apply), "{}", row.name)
                }
                Class::Noted(reason) => assert!(!reason.is_empty() && !reason.ends_with('.'), "{}", row.name),
                Class::Refused { reason, instead } => {
                    assert!(
                        !reason.is_empty() && !instead.is_empty() && !instead.ends_with('.'),
                        "{}",
                        row.name
                    );
                }
            }
        }
    }
}
