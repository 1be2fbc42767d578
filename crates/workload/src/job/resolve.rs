//! From sections to typed jobs: inheritance from `[global]`, last value wins, every setting through its table row.
//!
//! Deliberately not here: reading text, and rules between options (see `conflict`).

use super::conflict;
use super::draft::{Draft, Value};
use super::error::{JobError, JobErrors, Note, Place};
use super::extension::{Extension, RunHints, apply_extension};
use super::job::Job;
use super::number::KbBase;
use super::section::{Entry, Section};
use super::suggest::did_you_mean;
use super::table::{Class, OptionRow, Shape, find_option, option_names};
use super::variable::with_job_name;

/// An option that is known, with the text its row is given.
#[derive(Clone)]
struct Setting {
    row: &'static OptionRow,
    section: String,
    place: Place,
    /// As typed; empty when given alone.
    typed: String,
    text: String,
    kb_base: KbBase,
}

impl Setting {
    fn error(&self, message: String) -> JobError {
        let option = self.row.name.to_owned();
        let (section, value) = (self.section.clone(), self.typed.clone());
        JobError { place: self.place.clone(), section, option, value, message }
    }
}

/// Everything found so far.
#[derive(Default)]
pub struct Resolver {
    /// The finished jobs.
    pub jobs: Vec<Job>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// What the file asks of the run.
    pub run: RunHints,
    /// What is wrong.
    pub errors: JobErrors,
    /// The settings of all `[global]` sections, by fio's name.
    pub global: Vec<(String, String)>,
    defaults: Defaults,
}

/// What `[global]` sections have set so far.
#[derive(Clone, Default)]
pub struct Defaults {
    settings: Vec<Setting>,
    extension: Extension,
    kb_base: KbBase,
}

impl Resolver {
    /// The defaults as they are now, to return to them before the next file.
    pub fn defaults(&self) -> Defaults {
        self.defaults.clone()
    }

    /// Forgets what was set since `defaults` were taken.
    pub fn reset_defaults(&mut self, defaults: &Defaults) {
        self.defaults = defaults.clone();
    }

    /// Takes the next section.
    pub fn take(&mut self, section: &Section) {
        let kb_base = self.section_kb_base(section);
        let own: Vec<Setting> =
            section.entries.iter().filter_map(|entry| self.vet(entry, &section.name, kb_base)).collect();
        if section.global {
            for setting in &own {
                remember(&mut self.global, setting);
            }
            self.defaults.settings.extend(own);
            self.defaults.kb_base = kb_base;
            let mut extension = std::mem::take(&mut self.defaults.extension);
            self.take_extension(section, &mut extension);
            self.defaults.extension = extension;
        } else {
            self.take_job(section, &own);
        }
    }

    /// What `k` means in a section; a change after sizes were read would give one job two meanings.
    fn section_kb_base(&mut self, section: &Section) -> KbBase {
        let Some(entry) = section.entries.iter().rev().find(|entry| entry.name == "kb_base") else {
            return self.defaults.kb_base;
        };
        let kb_base = match entry.value.as_deref() {
            Some("1000") => KbBase::Decimal,
            _ => KbBase::Binary,
        };
        if kb_base != self.defaults.kb_base && !self.defaults.settings.is_empty() {
            self.errors.push(JobError {
                place: entry.place.clone(),
                section: section.name.clone(),
                option: "kb_base".to_owned(),
                value: entry.value.clone().unwrap_or_default(),
                message:
                    "[global] above was read with the other base; set kb_base once, in the first [global]"
                        .to_owned(),
            });
        }
        kb_base
    }

    /// Finds an option's row and checks what can be checked once; `None` when nothing is to be applied.
    fn vet(&mut self, entry: &Entry, section: &str, kb_base: KbBase) -> Option<Setting> {
        let typed = entry.value.clone().unwrap_or_default();
        let fail = |message: String| JobError {
            place: entry.place.clone(),
            section: section.to_owned(),
            option: entry.name.clone(),
            value: typed.clone(),
            message,
        };
        let Some(row) = find_option(&entry.name) else {
            let nearest = did_you_mean(&entry.name, option_names());
            self.errors.push(fail(format!("fio has no option `{}`{nearest}", entry.name)));
            return None;
        };
        if let Class::Refused { reason, instead } = row.class {
            self.errors.push(fail(format!("is refused: {reason}; {instead}")));
            return None;
        }
        let text = match (entry.value.as_deref(), row.shape) {
            (Some(""), shape) if shape != Shape::OptionalText => {
                self.errors.push(fail("expected a value after =".to_owned()));
                return None;
            }
            (Some(value), _) => value.to_owned(),
            (None, Shape::Flag | Shape::Only(_)) => "1".to_owned(),
            (None, Shape::Bool) => {
                self.note(section, row, &typed, "is taken as 1; fio itself asks for a value");
                "1".to_owned()
            }
            (None, Shape::OptionalText) => String::new(),
            (None, Shape::Number | Shape::Time | Shape::Text) => {
                self.errors.push(fail(format!("expected a value, as {}=..", entry.name)));
                return None;
            }
        };
        // A setting in the bare form keeps it, but for an option that fio itself wants a value for.
        let typed = if row.shape == Shape::Bool { text.clone() } else { typed };
        let setting =
            Setting { row, section: section.to_owned(), place: entry.place.clone(), typed, text, kb_base };
        if matches!(row.class, Class::Noted(_)) {
            if let Err(message) = row.check_noted(&setting.text, kb_base) {
                self.errors.push(setting.error(message));
                return None;
            }
            if let Some(sentence) = row.note_sentence() {
                self.note(section, row, &setting.typed, sentence);
            }
        }
        Some(setting)
    }

    /// Tells the user about a program option.
    pub fn note_program(&mut self, option: &str, value: &str, sentence: &str) {
        let (job, option) = ("command line".to_owned(), format!("--{option}"));
        self.push_note(Note { job, option, value: value.to_owned(), sentence: sentence.to_owned() });
    }

    fn note(&mut self, section: &str, row: &OptionRow, value: &str, sentence: &str) {
        let (job, option) = (section.to_owned(), row.name.to_owned());
        self.push_note(Note { job, option, value: value.to_owned(), sentence: sentence.to_owned() });
    }

    /// A note of a `[global]` setting is met once per job, and told once.
    fn push_note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn take_job(&mut self, section: &Section, own: &[Setting]) {
        let mut draft = Draft::new(&section.name);
        draft.extension = self.defaults.extension.clone();
        let settings: Vec<Setting> = self.defaults.settings.iter().chain(own).cloned().collect();
        let (mut given, mut own_given) = (Vec::new(), Vec::new());
        for setting in &settings {
            remember(&mut given, setting);
            self.apply(setting, &mut draft);
        }
        for setting in own {
            remember(&mut own_given, setting);
        }
        let mut extension = std::mem::take(&mut draft.extension);
        self.take_extension(section, &mut extension);
        draft.extension = extension;
        if section.stonewalled && draft.given("stonewall").is_none() {
            draft.options.stonewall = true;
            draft.note("stonewall", "is set for the first job of every further job file, as fio does");
        }
        self.finish(section, draft, given, own_given);
    }

    fn apply(&mut self, setting: &Setting, draft: &mut Draft) {
        let job = draft.name.clone();
        let text = match with_job_name(setting.row.name, &setting.text, &job) {
            Ok(text) => text,
            Err(message) => return self.errors.push(setting.error(message)),
        };
        draft.given.push((setting.row.name, setting.typed.clone()));
        if let Err(message) = (setting.row.apply)(draft, Value { text: &text, kb_base: setting.kb_base }) {
            self.errors.push(setting.error(message));
        }
        for (option, value, sentence) in std::mem::take(&mut draft.notes) {
            self.push_note(Note { job: setting.section.clone(), option: option.to_owned(), value, sentence });
        }
    }

    fn take_extension(&mut self, section: &Section, extension: &mut Extension) {
        for entry in &section.extension {
            let run = section.global.then_some(&mut self.run);
            if let Err(message) = apply_extension(&entry.name, entry.value.as_deref(), extension, run) {
                self.errors.push(JobError {
                    place: entry.place.clone(),
                    section: section.name.clone(),
                    option: format!("ocssd: {}", entry.name),
                    value: entry.value.clone().unwrap_or_default(),
                    message,
                });
            }
        }
    }

    /// Settles what depends on several options.
    fn finish(
        &mut self,
        section: &Section,
        mut draft: Draft,
        given: Vec<(String, String)>,
        own: Vec<(String, String)>,
    ) {
        draft.settle_block_sizes();
        let earlier: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        for (option, message) in conflict::settle(&mut draft, &earlier) {
            let value = draft.given(option).unwrap_or_default().to_owned();
            let (place, job, option) = (section.place.clone(), draft.name.clone(), option.to_owned());
            self.errors.push(JobError { place, section: job, option, value, message });
        }
        for (option, value, sentence) in std::mem::take(&mut draft.notes) {
            self.push_note(Note { job: draft.name.clone(), option: option.to_owned(), value, sentence });
        }
        let Draft { options, name, extension, .. } = draft;
        // A job with errors is kept too, so that a wait_for that names it is not a second error.
        self.jobs.push(Job { name, options, given, own, extension });
    }
}

/// Options with up to three comma-separated parts, where an empty part keeps what was set before.
const TRIPLES: [&str; 9] =
    ["bs", "bsrange", "bssplit", "ba", "rate", "rate_iops", "rate_min", "rate_iops_min", "percentage_random"];

/// Adds a setting as given; a later one replaces an earlier one of the same name.
fn remember(given: &mut Vec<(String, String)>, setting: &Setting) {
    let name = setting.row.name;
    let mut value = setting.typed.clone();
    if let Some(at) = given.iter().position(|(known, _)| known == name) {
        let (_, before) = given.remove(at);
        // Each of these two forgets the other, so nothing is left to keep when the other came between.
        let other = [("bsrange", "bssplit"), ("bssplit", "bsrange")].into_iter().find(|pair| pair.0 == name);
        let forgotten = other.is_some_and(|(_, other)| given[at..].iter().any(|(known, _)| known == other));
        if TRIPLES.contains(&name) && !forgotten {
            value = overlay(&before, &value);
        }
    }
    given.push((name.to_owned(), value));
}

/// `value` with its empty parts taken from `before`.
fn overlay(before: &str, value: &str) -> String {
    if !value.split(',').any(|part| part.trim().is_empty()) {
        return value.to_owned();
    }
    let spread = |text: &str| -> [String; 3] {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let at = |index: usize| parts.get(index).or(parts.last()).copied().unwrap_or_default().to_owned();
        [at(0), at(1), at(2)]
    };
    let (before, value) = (spread(before), spread(value));
    let merged: Vec<String> =
        value.into_iter().zip(before).map(|(new, old)| if new.is_empty() { old } else { new }).collect();
    merged.join(",")
}
