//! How a drive is opened: the options of C, and what they mean to `ocssd-drive`.

use crate::boundary::{shared, text};
use crate::failure::Failure;
use ocssd_drive::image::{Access, Damage};
use ocssd_drive::{DriveSpec, Existing, Image, OpenDrive, OpenOptions, Source};
use ocssd_engine::{DriveClock, VirtualClock};
use std::ffi::c_char;
use std::path::Path;

/// Time passes only when the library waits: a run takes as long as the processor needs, and repeats exactly.
pub const OCSSD_CLOCK_VIRTUAL: u32 = 0;
/// Time is the machine's: a command takes as long as it did on the drive.
pub const OCSSD_CLOCK_WALL: u32 = 1;

/// Of an image: it may be changed, and no other process has it.
pub const OCSSD_ACCESS_WRITE: u32 = 0;
/// Of an image: it is looked at, by any number of processes. Commands that would change it fail.
pub const OCSSD_ACCESS_INSPECT: u32 = 1;

/// How a drive is opened. A struct of zeros is the default for all of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriveOptions {
    /// `OCSSD_CLOCK_VIRTUAL` or `OCSSD_CLOCK_WALL`.
    pub clock: u32,
    /// `OCSSD_ACCESS_WRITE` or `OCSSD_ACCESS_INSPECT`.
    pub access: u32,
    /// 1 to open an image although records of it are damaged: their chunks are OFFLINE from then on. Else 0.
    pub accept_damage: u32,
    /// Texts in `settings`.
    pub settings_count: u32,
    /// Settings on top of the drive's own, each as "media.erase=5ms" (docs/drive.md).
    pub settings: *const *const c_char,
}

/// The options, with texts that were looked at.
pub struct Settings {
    /// As `ocssd-drive` takes them.
    pub options: OpenOptions,
    /// The clock chosen.
    pub clock: DriveClock,
}

/// Most settings on top (chosen: there are not so many names).
const SETTINGS_MAX: u32 = 4096;

impl Settings {
    /// Reads the options of the caller; NULL stands for the default.
    ///
    /// # Safety
    /// `options` must be NULL or point to a struct whose texts end with zeros.
    pub unsafe fn of(options: *const DriveOptions) -> Result<Self, Failure> {
        if options.is_null() {
            let clock = DriveClock::Virtual(VirtualClock::default());
            return Ok(Self { options: OpenOptions::default(), clock });
        }
        // SAFETY: not NULL; the rest is the caller's promise.
        let given = unsafe { shared(options, "options")? };
        let clock = match given.clock {
            OCSSD_CLOCK_VIRTUAL => DriveClock::Virtual(VirtualClock::default()),
            OCSSD_CLOCK_WALL => DriveClock::Wall(Box::default()),
            other => {
                return Err(Failure::invalid(format!(
                    "clock is {other}, but should be 0 (virtual) or 1 (wall)"
                )));
            }
        };
        let access = match given.access {
            OCSSD_ACCESS_WRITE => Access::Write,
            OCSSD_ACCESS_INSPECT => Access::Inspect,
            other => {
                return Err(Failure::invalid(format!(
                    "access is {other}, but should be 0 (write) or 1 (inspect)"
                )));
            }
        };
        let damage = match given.accept_damage {
            0 => Damage::Refuse,
            1 => Damage::Accept,
            other => return Err(Failure::invalid(format!("accept_damage is {other}, but should be 0 or 1"))),
        };
        if given.settings_count > SETTINGS_MAX {
            return Err(Failure::invalid(format!(
                "{} settings are more than {SETTINGS_MAX}",
                given.settings_count
            )));
        }
        let count = usize::try_from(given.settings_count).expect("32 bits fit an index");
        let mut settings = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: `settings` has as many texts as the caller says; NULL is refused before it is followed.
            let setting = unsafe {
                let place = shared(given.settings.wrapping_add(index), "settings")?;
                text(*place, "a setting")?
            };
            settings.push(setting.to_owned());
        }
        Ok(Self { options: OpenOptions { settings, access, damage }, clock })
    }

    /// The settings of a fresh drive: with real bytes, unless who opens it says otherwise and is told why not.
    fn fresh(&self) -> Vec<String> {
        let bytes = "payload=bytes".to_owned();
        std::iter::once(bytes).chain(self.options.settings.iter().cloned()).collect()
    }

    /// Opens what was named.
    pub fn open(&self, source: &str) -> Result<OpenDrive, Failure> {
        let source = Source::named(source)?;
        let mut options = self.options.clone();
        if !matches!(source, Source::Image(_)) {
            options.settings = self.fresh();
        }
        Ok(ocssd_drive::open_with(&source, &options)?)
    }

    /// Opens a fresh drive of a drive file's text.
    pub fn open_toml(&self, toml: &str) -> Result<OpenDrive, Failure> {
        let spec = DriveSpec::from_toml(toml, "the text");
        let mut spec = spec.map_err(|error| Failure::invalid(error.to_string()))?;
        self.apply(&mut spec)?;
        Ok(OpenDrive::in_memory(spec)?)
    }

    /// Makes an image of a fresh drive, and opens it.
    pub fn create(&self, path: &str, source: &str) -> Result<OpenDrive, Failure> {
        let mut spec = match Source::named(source)? {
            Source::Preset(name) => DriveSpec::preset(&name),
            Source::Settings(file) => {
                let name = file.display().to_string();
                let text = std::fs::read_to_string(&file).map_err(|error| {
                    Failure::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{name}: {error}"))
                })?;
                DriveSpec::from_toml(&text, &name)
            }
            Source::Image(image) => {
                return Err(Failure::invalid(format!(
                    "{} is an image, and an image is made of a preset or a drive file; copy the file instead",
                    image.display()
                )));
            }
        }
        .map_err(|error| Failure::invalid(error.to_string()))?;
        self.apply(&mut spec)?;
        Ok(Image::create(Path::new(path), &spec, Existing::Refuse)?)
    }

    fn apply(&self, spec: &mut DriveSpec) -> Result<(), Failure> {
        spec.apply_all(&self.fresh()).map_err(|error| Failure::invalid(error.to_string()))
    }
}
