//! The settings of one drive, and how written settings change them.

use super::derived;
use super::document;
use super::entry::{Entries, Entry, Text};
use super::fault::{FAULTS_MAX, NamedFault};
use super::fields;
use super::problem::{BadSetting, BadSettings};
use super::value::Value;
use ocssd_base::Problems;
use ocssd_flash::{Config, ScheduledFault, presets};

/// A drive's settings with its explicit faults. Explicit faults wait anew each time the drive is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveSpec {
    /// Every setting.
    pub config: Config,
    /// Explicit faults, at most 4096.
    pub faults: Vec<ScheduledFault>,
}

fn preset_names() -> String {
    let names: Vec<&str> = presets::ALL.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

impl DriveSpec {
    /// A preset as it is.
    ///
    /// # Errors
    /// If there is none of this name; the sentence lists those there are.
    pub fn preset(name: &str) -> Result<Self, BadSettings> {
        let Some(preset) = presets::find(name) else {
            return Err(BadSettings::one(
                "preset",
                format!("no preset is named \"{name}\"; there are {}", preset_names()),
            ));
        };
        Ok(Self { config: preset.config(), faults: Vec::new() })
    }

    /// Reads the text of a drive file. What it does not say is as in its `preset`, or as in the default preset if it
    /// names none. `name` is the file's name for errors.
    ///
    /// # Errors
    /// Every setting that is unknown, has a value of the wrong kind, or does not fit the others, each with its line and
    /// column.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, BadSettings> {
        let source = Text { name, text };
        let entries = source.entries()?;
        let base = match &entries.preset {
            None => presets::DEFAULT,
            Some(entry) => match entry.value.text() {
                Some(preset) if presets::find(preset).is_some() => preset,
                _ => return Err(BadSettings(vec![entry.bad(&format!("must be one of {}", preset_names()))])),
            },
        };
        let mut spec = Self::preset(base).expect("the preset was just found");
        spec.change(&entries, name)?;
        Ok(spec)
    }

    /// Every setting as the text of a drive file: reading it gives an equal specification.
    #[must_use]
    pub fn to_toml(&self) -> String {
        document::write(self)
    }

    /// Changes one setting, written `key=value` with the names and values of drive files; quotes around text may be
    /// left out. `fault={kind="early_close", at="g0/p0/c1"}` adds an explicit fault. What follows from the setting
    /// follows as in a drive file. Several settings that only fit together go through [`Self::apply_all`].
    ///
    /// # Errors
    /// If the setting is unknown, its value is of the wrong kind or the drive would not be sound; nothing is changed.
    pub fn apply(&mut self, setting: &str) -> Result<(), BadSettings> {
        self.apply_all(&[setting])
    }

    /// Changes several settings at once, as if they stood in one drive file; of the same setting the last one counts.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_all<S: AsRef<str>>(&mut self, settings: &[S]) -> Result<(), BadSettings> {
        let mut entries = Entries::default();
        for setting in settings {
            let setting = setting.as_ref();
            let place = format!("--set {setting}");
            let Some((key, value)) = setting.split_once('=') else {
                return Err(BadSettings::one(
                    &place,
                    "a setting is written key=value, for instance media.erase=5ms",
                ));
            };
            let (key, value) = (key.trim(), value.trim());
            match key {
                "fault" => {
                    let source = Text { name: &place, text: &format!("fault = {value}") };
                    let mut parsed = source.entries()?;
                    for fault in &mut parsed.faults {
                        fault.index += entries.faults.len();
                    }
                    entries.faults.append(&mut parsed.faults);
                }
                "preset" => {
                    let sentence = "a preset is the base of all settings and cannot be set on top of others";
                    return Err(BadSettings::one(&place, sentence));
                }
                _ => {
                    entries.settings.retain(|entry| entry.key != key);
                    let (value, spelled) = (Value::of_argument(value), value.to_owned());
                    entries.settings.push(Entry { key: key.to_owned(), value, spelled, place });
                }
            }
        }
        self.change(&entries, "--set")
    }

    /// Checks everything, explicit faults included.
    ///
    /// # Errors
    /// Each problem with its field, its value and what would be valid.
    pub fn check(&self) -> Result<(), BadSettings> {
        self.changed(&Entries::default(), "drive").map(|_| ())
    }

    fn change(&mut self, entries: &Entries, source: &str) -> Result<(), BadSettings> {
        *self = self.changed(entries, source)?;
        Ok(())
    }

    /// This specification with `entries` on top, if the whole is sound.
    fn changed(&self, entries: &Entries, source: &str) -> Result<Self, BadSettings> {
        let mut config = self.config.clone();
        set_fields(&mut config, entries)?;
        derived::follow(&mut config, entries);
        config.check().map_err(|Problems(problems)| {
            let place = |field: &str| {
                entries.find(field).map_or_else(|| source.to_owned(), |entry| entry.place.clone())
            };
            BadSettings::of(&problems, place)
        })?;
        let faults = self.changed_faults(&config, entries, source)?;
        Ok(Self { config, faults })
    }

    /// The old faults at places of the same names, then the new ones.
    fn changed_faults(
        &self,
        config: &Config,
        entries: &Entries,
        source: &str,
    ) -> Result<Vec<ScheduledFault>, BadSettings> {
        let count = self.faults.len() + entries.faults.len();
        if count > FAULTS_MAX {
            let sentence =
                format!("there are {count} explicit faults, but a drive takes at most {FAULTS_MAX}");
            return Err(BadSettings::one(source, sentence));
        }
        let mut bad: Vec<BadSetting> = Vec::new();
        let mut faults = Vec::with_capacity(count);
        let old = (0..).zip(&self.faults).map(|(index, fault)| {
            let geometry = if self.config.check().is_ok() { &self.config.geometry } else { &config.geometry };
            NamedFault::of(fault, geometry, index, source).filter(|_| fault.times > 0).ok_or_else(|| {
                BadSetting {
                    place: source.to_owned(),
                    sentence: format!(
                        "fault[{index}] names chunk {} or no times, which the drive has not",
                        fault.chunk.0
                    ),
                }
            })
        });
        for fault in old.chain(entries.faults.iter().map(super::fault::FaultEntry::read)) {
            match fault.and_then(|fault| fault.resolve(&config.geometry)) {
                Ok(fault) => faults.push(fault),
                Err(error) => bad.push(error),
            }
        }
        if bad.is_empty() { Ok(faults) } else { Err(BadSettings(bad)) }
    }
}

/// Sets the written fields in the order of the list, so that one may depend on another before it.
fn set_fields(config: &mut Config, entries: &Entries) -> Result<(), BadSettings> {
    let mut bad = Vec::new();
    for entry in entries.settings.iter().filter(|entry| fields::find(&entry.key).is_none()) {
        let hint = match fields::nearest(&entry.key) {
            Some(name) => format!("did you mean {name}?"),
            None => "docs/drive.md lists the settings there are".to_owned(),
        };
        let sentence = format!("{} is {}, but there is no such setting; {hint}", entry.key, entry.spelled);
        bad.push(BadSetting { place: entry.place.clone(), sentence });
    }
    for field in fields::FIELDS {
        if let Some(entry) = entries.find(field.key)
            && field.set(config, &entry.value).is_none()
        {
            bad.push(entry.bad(field.expected()));
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(BadSettings(bad)) }
}
