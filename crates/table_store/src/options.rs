//! A store as a text names it: `drive=db.ocssd,placement=vertical,clock=wall`.
//!
//! Deliberately not here: what a drive or a target makes of its own options (`opening`).

use crate::error::{ErrorKind, StoreError};
use crate::map::MAPS_BYTES_MAX;
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_nvme_host::Endpoint;
use std::path::{Path, PathBuf};

/// The kind of target if none is named.
const TARGET: &str = "lightlsm";
/// What begins a setting of the drive.
const SETTING: &str = "set.";
/// The option that names a file of options.
const FILE: &str = "options";

/// What a flush of a log on an image promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flushed {
    /// What was flushed survives the process.
    #[default]
    ForProcess,
    /// Nothing: what was appended since the last sync goes with the process. RocksDB's own crash tests fail on it; it shows
    /// what keeping costs, and that those tests can fail.
    Never,
}

/// Whose time passes on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreClock {
    /// It passes only by waiting.
    Virtual,
    /// The machine's: a command takes as long as on the drive.
    Wall,
}

/// What a store is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// A preset or a drive file, for a fresh drive in memory; an image; or a drive that a server holds (`nvme-tcp://..`).
    pub drive: String,
    /// A preset or a drive file an image is made of, if `drive` is not there.
    pub create: Option<String>,
    /// Whose time passes, if it was said; see [`Self::is_wall_clock`].
    pub clock: Option<StoreClock>,
    /// What a flush of a log promises.
    pub flushed: Flushed,
    /// Beside which file what was flushed is kept for the process after this one, if the drive is a server's.
    pub tails: Option<PathBuf>,
    /// After so many requests behind the mount's the power of drive and machine goes: for tests of what is left.
    pub power_cut: Option<u64>,
    /// Bytes of files that are held in memory for maps at once, at most.
    pub map_bytes_max: u64,
    /// A kind of target that has tables, or the name of such a target on the image.
    pub target: String,
    /// The units it lies on.
    pub place: UnitSelection,
    /// Options of the target, name and value.
    pub target_options: Vec<(String, String)>,
    /// Settings on top of the drive's own, each `key=value`.
    pub settings: Vec<String>,
}

impl StoreOptions {
    /// A store on this drive, all else as usual.
    #[must_use]
    pub fn new(drive: &str) -> Self {
        Self {
            drive: drive.to_owned(),
            create: None,
            clock: None,
            flushed: Flushed::default(),
            tails: None,
            power_cut: None,
            map_bytes_max: MAPS_BYTES_MAX,
            target: TARGET.to_owned(),
            place: UnitSelection::All,
            target_options: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// The drive is one that a server holds.
    #[must_use]
    pub fn is_served(&self) -> bool {
        Endpoint::is_meant_by(&self.drive)
    }

    /// A command takes as long as on the drive: always with a served drive, else if it was asked for.
    #[must_use]
    pub fn is_wall_clock(&self) -> bool {
        self.is_served() || self.clock == Some(StoreClock::Wall)
    }

    /// Reads `drive=..` and other options, with `;` between them, or `,` if there is no `;`. An option may have `:` instead of `=`,
    /// as in `drive:db.ocssd`: where RocksDB asks for an `Env` it takes a text with `=` for a list of its own.
    ///
    /// - `drive`: a preset, a drive file or an image, which must be there, or a served drive, as `nvme-tcp://127.0.0.1:4420`;
    ///   unless there is a
    /// - `create`: the preset or drive file that an image is made of if there is none.
    /// - `clock`: `virtual` (as it is without) or `wall`; always `wall` with a served drive.
    /// - `flush`: `process` (as it is without), or `never` for logs that lose what was not synced when the process dies.
    /// - `tails`: with a served drive, what was flushed is kept in files whose names begin so.
    /// - `power_cut`: after so many requests, those of the mount not counted, the drive loses its power, with what had not reached
    ///   the media, and the process ends by SIGABRT. Nothing that was only flushed is kept. For tests.
    /// - `maps_mib`: files that are read by maps are held in memory whole, so many MiB at once at most; 1024 without, 0 refuses
    ///   maps.
    /// - `target`: a kind of target that has tables (`lightlsm`), or a target's name on the image.
    /// - `on`: the parallel units, as `pu:0-3`; all without.
    /// - `set.NAME`: a setting of the drive, as `set.media.read=50us`.
    /// - `options`: a file with an option a line, written as here, `#` before a remark; what the text says counts.
    /// - anything else is an option of the target.
    ///
    /// # Errors
    /// A sentence about what is missing or cannot be.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        Self::parse_for(text, TARGET)
    }

    /// As [`Self::parse`], where `target` is the kind of target if none is named.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_for(text: &str, target: &str) -> Result<Self, StoreError> {
        let separator = if text.contains(';') { ';' } else { ',' };
        let parts = || text.split(separator).filter(|part| !part.is_empty());
        let mut options = Self { target: target.to_owned(), ..Self::new("") };
        // What the text says has the last word.
        for path in parts().filter_map(file_of) {
            options.read_file(Path::new(path))?;
        }
        for part in parts().filter(|part| file_of(part).is_none()) {
            options.set(part).map_err(invalid)?;
        }
        if !options.drive.is_empty() {
            return Ok(options);
        }
        Err(invalid(format!(
            "\"{text}\" names no drive; name a preset, a drive file or an image, as in drive=db.ocssd,create=westlake"
        )))
    }

    /// Reads an option a line.
    fn read_file(&mut self, path: &Path) -> Result<(), StoreError> {
        let at = path.display();
        let content = std::fs::read_to_string(path).map_err(|error| {
            invalid(format!("{at}, which should have options of a store, cannot be read: {error}"))
        })?;
        for (number, line) in (1..).zip(content.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let in_line = |sentence: String| invalid(format!("{at}, line {number}: {sentence}"));
            if file_of(line).is_some() {
                return Err(in_line("a file of options names no other one".to_owned()));
            }
            self.set(line).map_err(in_line)?;
        }
        Ok(())
    }

    /// Reads one option. Errors: a sentence.
    fn set(&mut self, part: &str) -> Result<(), String> {
        let (name, value) = named(part).filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            format!(
                "an option is written NAME=VALUE, but \"{part}\" was given, as in drive=db.ocssd,clock=wall"
            )
        })?;
        match name {
            "drive" => value.clone_into(&mut self.drive),
            "create" => self.create = Some(value.to_owned()),
            "clock" => self.clock = Some(clock(value)?),
            "tails" => self.tails = Some(PathBuf::from(value)),
            "flush" => self.flushed = flushed(value)?,
            "power_cut" => self.power_cut = Some(requests(value)?),
            "maps_mib" => self.map_bytes_max = mebibytes(value)?,
            "target" => value.clone_into(&mut self.target),
            "on" => self.place = value.parse().map_err(|error| format!("on={value}: {error}"))?,
            _ => match name.strip_prefix(SETTING) {
                Some(setting) => self.settings.push(format!("{setting}={value}")),
                None => {
                    self.target_options.retain(|(other, _)| other != name);
                    self.target_options.push((name.to_owned(), value.to_owned()));
                }
            },
        }
        Ok(())
    }
}

fn invalid(sentence: String) -> StoreError {
    StoreError::new(ErrorKind::Invalid, sentence)
}

/// Name and value of an option; a file may have spaces around them, and quotes around the value.
fn named(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once('=').or_else(|| part.split_once(':'))?;
    let value = value.trim();
    let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some((name.trim(), bare.unwrap_or(value)))
}

/// The file of options that an option names.
fn file_of(part: &str) -> Option<&str> {
    named(part).filter(|&(name, _)| name == FILE).map(|(_, path)| path)
}

fn clock(value: &str) -> Result<StoreClock, String> {
    match value {
        "wall" => Ok(StoreClock::Wall),
        "virtual" => Ok(StoreClock::Virtual),
        _ => Err(format!("clock should be wall or virtual, but is \"{value}\"")),
    }
}

fn requests(value: &str) -> Result<u64, String> {
    let count = value.parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| format!("power_cut should be a number of requests from 1, but is \"{value}\""))
}

fn mebibytes(value: &str) -> Result<u64, String> {
    let bytes = value.parse().ok().and_then(|count: u64| count.checked_mul(1 << 20));
    bytes.ok_or_else(|| format!("maps_mib should be a number of MiB from 0, but is \"{value}\""))
}

fn flushed(value: &str) -> Result<Flushed, String> {
    match value {
        "process" => Ok(Flushed::ForProcess),
        "never" => Ok(Flushed::Never),
        _ => Err(format!("flush should be process or never, but is \"{value}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_store_target_and_drive_are_told_apart() {
        let options =
            StoreOptions::parse("drive=d.ocssd,placement=vertical,clock=wall,set.media.read=5us,on=pu:0-1");
        let options = options.expect("options");
        assert_eq!(
            (options.drive.as_str(), options.is_wall_clock(), options.target.as_str()),
            ("d.ocssd", true, TARGET)
        );
        assert_eq!(options.target_options, [("placement".to_owned(), "vertical".to_owned())]);
        assert_eq!(options.settings, ["media.read=5us"]);
        assert_eq!(options.place, "pu:0-1".parse().expect("units"));
        let made = StoreOptions::parse("drive=d.ocssd,create=tiny").expect("options");
        assert_eq!(made.create.as_deref(), Some("tiny"));
        assert_eq!(StoreOptions::parse("drive=tiny,maps_mib=3").expect("options").map_bytes_max, 3 << 20);
        let with_colon = StoreOptions::parse("drive:d.ocssd,clock:wall").expect("options");
        assert!(with_colon.drive == "d.ocssd" && with_colon.is_wall_clock());
        let listed = StoreOptions::parse("drive=tiny;on=pu:0,2;clock=virtual").expect("options");
        assert!(!listed.is_wall_clock() && listed.place == "pu:0,2".parse().expect("units"));
    }

    #[test]
    fn a_file_has_options_of_store_target_and_drive_and_the_text_has_the_last_word() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.options");
        let text = format!("clock=virtual,options={},placement=groups:2", path.display());
        let write = |content: &str| std::fs::write(&path, content).expect("the folder can be written");
        write(
            "# a store for tests\n\ndrive = \"tiny\"\nclock = wall\non = pu:0,2\nplacement = vertical\n\
             set.media.read=5us\ntables_max=9\n",
        );
        let options = StoreOptions::parse(&text).expect("options");
        assert_eq!((options.drive.as_str(), options.is_wall_clock()), ("tiny", false));
        assert_eq!(options.place, "pu:0,2".parse().expect("units"));
        assert_eq!(options.settings, ["media.read=5us"]);
        let pairs = [("tables_max", "9"), ("placement", "groups:2")];
        assert_eq!(options.target_options, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (content, part) in [
            ("placement=vertical", "names no drive"),
            ("drive=tiny\nclock=sun", "line 2: clock should be wall or virtual"),
            ("drive=tiny\n\nvertical", "line 3: an option is written NAME=VALUE"),
            ("drive=tiny\noptions=other", "line 2: a file of options names no other"),
        ] {
            write(content);
            let error = StoreOptions::parse(&text).expect_err(content);
            assert!(error.kind == ErrorKind::Invalid && error.sentence.contains(part), "{content}: {error}");
        }
        let error = StoreOptions::parse("drive=tiny,options=none.options").expect_err("no file");
        assert!(error.sentence.contains("none.options, which should have options"), "{error}");
    }

    #[test]
    fn a_served_drive_has_an_address_and_the_machines_time() {
        for text in ["drive=nvme-tcp://127.0.0.1:4420,tails=t", "drive:nvme-tcp://127.0.0.1:4420;tails:t"] {
            let options = StoreOptions::parse(text).expect("options");
            assert_eq!(options.drive, "nvme-tcp://127.0.0.1:4420");
            assert!(options.is_served() && options.is_wall_clock() && options.clock.is_none(), "{text}");
            assert_eq!(options.tails, Some(PathBuf::from("t")));
        }
    }

    #[test]
    fn what_cannot_be_is_said_in_words() {
        for (text, part) in [
            ("", "names no drive"),
            ("clock=wall", "names no drive"),
            ("drive", "NAME=VALUE"),
            ("drive=tiny,=3", "NAME=VALUE"),
            ("drive=tiny,clock=sun", "wall or virtual"),
            ("drive=tiny,flush=often", "process or never"),
            ("drive=tiny,power_cut=0", "from 1"),
            ("drive=tiny,on=moon", "on=moon"),
            ("drive=tiny,maps_mib=all", "MiB from 0"),
            ("drive=tiny,maps_mib=99999999999999", "MiB from 0"),
        ] {
            let error = StoreOptions::parse(text).expect_err(text);
            assert!(error.kind == ErrorKind::Invalid && error.sentence.contains(part), "{text}: {error}");
        }
    }
}
