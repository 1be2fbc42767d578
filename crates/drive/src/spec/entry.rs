//! One setting as it was written: name, value, the value's own spelling, and where.

use super::fault::FaultEntry;
use super::problem::{BadSetting, BadSettings};
use super::value::Value;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A setting as written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `ws_opt` or `media.erase`.
    pub(super) key: String,
    pub(super) value: Value,
    /// The value as it was spelled, for errors.
    pub(super) spelled: String,
    /// Where, for errors.
    pub(super) place: String,
}

impl Entry {
    pub(super) fn bad(&self, expected: &str) -> BadSetting {
        let Self { key, spelled, place, .. } = self;
        BadSetting { place: place.clone(), sentence: format!("{key} is {spelled}, but {expected}") }
    }
}

/// Everything one source says.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub(super) preset: Option<Entry>,
    pub(super) settings: Vec<Entry>,
    pub(super) faults: Vec<FaultEntry>,
}

impl Entries {
    /// The entry of this name.
    pub(super) fn find(&self, key: &str) -> Option<&Entry> {
        self.settings.iter().find(|entry| entry.key == key)
    }

    /// True if a setting of this name, or one in a table of this name, was written.
    pub(super) fn names(&self, key: &str) -> bool {
        let inside = |name: &str| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        self.settings.iter().any(|entry| entry.key == key || inside(&entry.key))
    }
}

/// Turns places in a text into places a person finds.
pub(super) struct Text<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

/// Chosen: an error is a sentence, and a value of a thousand letters would hide it.
const SPELLED_BYTES_MAX: usize = 60;

impl Text<'_> {
    /// `name:line:column`, both counted from 1, columns in characters.
    pub(super) fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }

    fn spelled(&self, span: Range<usize>) -> String {
        let line = self.text.get(span).unwrap_or("?").lines().next().unwrap_or_default();
        if line.len() <= SPELLED_BYTES_MAX {
            return line.to_owned();
        }
        let cut: String = line.chars().take(SPELLED_BYTES_MAX / 4).collect();
        format!("{cut}...")
    }

    /// Reads a whole text.
    pub(super) fn entries(&self) -> Result<Entries, BadSettings> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let place = self.place(error.span().map_or(0, |span| span.start));
            let message = error.message().replace('\n', ", ");
            BadSettings::one(&place, format!("this is not TOML: {message}"))
        })?;
        let mut entries = Entries::default();
        let mut bad = Vec::new();
        self.collect("", document.get_ref(), &mut entries, &mut bad);
        if bad.is_empty() { Ok(entries) } else { Err(BadSettings(bad)) }
    }

    fn collect(&self, table: &str, from: &DeTable<'_>, entries: &mut Entries, bad: &mut Vec<BadSetting>) {
        for (name, value) in from {
            let key = if table.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{table}.{}", name.get_ref())
            };
            let place = self.place(name.span().start);
            match (key.as_str(), value.get_ref()) {
                ("fault", DeValue::Array(list)) => {
                    for fault in list {
                        self.collect_fault(fault.get_ref(), self.place(fault.span().start), entries, bad);
                    }
                }
                ("fault", other) => self.collect_fault(other, place, entries, bad),
                (_, DeValue::Table(inner)) if table.is_empty() && !inner.is_empty() => {
                    self.collect(&key, inner, entries, bad);
                }
                (_, other) => {
                    let spelled = self.spelled(value.span());
                    let entry = Entry { key, value: Value::of(other), spelled, place };
                    if entry.key == "preset" {
                        entries.preset = Some(entry)
                    } else {
                        entries.settings.push(entry)
                    }
                }
            }
        }
    }

    fn collect_fault(
        &self,
        from: &DeValue<'_>,
        place: String,
        entries: &mut Entries,
        bad: &mut Vec<BadSetting>,
    ) {
        let index = entries.faults.len();
        let DeValue::Table(table) = from else {
            let sentence = "fault must be a table: [[fault]] with kind, at and times".to_owned();
            bad.push(BadSetting { place, sentence });
            return;
        };
        let entry =
            |name: &toml::Spanned<toml::de::DeString<'_>>, value: &toml::Spanned<DeValue<'_>>| Entry {
                key: format!("fault[{index}].{}", name.get_ref()),
                value: Value::of(value.get_ref()),
                spelled: self.spelled(value.span()),
                place: self.place(name.span().start),
            };
        let fields = table.iter().map(|(name, value)| (name.get_ref().to_string(), entry(name, value)));
        entries.faults.push(FaultEntry { index, place, fields: fields.collect() });
    }
}
