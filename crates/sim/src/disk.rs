//! The disk below a world's drive: the drive lies in an image on a simulated file, whose faults come and go.
//!
//! There is no power cut of the drive here. Its process is killed, and the operating system keeps what it wrote; or the host
//! crashes, and keeps what was synced. Either way the image is opened again. While the disk fails, a mount may be refused, but
//! not once it works. Deliberately not here: what goes wrong (`drive::image`), and when (`swarm::disk`).

use crate::contract::Contract;
use crate::world::World;
use ocssd_base::Prng;
use ocssd_drive::image::{FileFaults, SimulatedFile, Unsynced};
use ocssd_drive::{DriveSpec, Image, OpenDrive, OpenOptions};
use ocssd_flash::{Config, Flash};

/// Crashes of which one is the host's (chosen: kills are what people do).
const HOST_CRASH_ONE_IN: u64 = 3;

/// The disk.
pub struct Disk {
    file: SimulatedFile,
    /// Kept open beside the drive.
    image: Option<Image>,
    /// Something goes wrong on it now.
    has_faults: bool,
}

impl Disk {
    /// A disk with an image of a fresh drive, and the drive.
    ///
    /// # Panics
    /// If the settings are not sound.
    #[must_use]
    pub fn new(config: &Config, seed: u64) -> (Self, Flash) {
        let mut spec = DriveSpec::preset("tiny").expect("a preset of that name");
        spec.config = config.clone();
        let file = SimulatedFile::new(seed);
        let made = Image::create_simulated(&file, &spec);
        let OpenDrive { flash, image, .. } = made.unwrap_or_else(|error| panic!("a drawn drive: {error}"));
        (Self { file, image, has_faults: false }, flash)
    }

    /// What goes wrong from now on. Its `pages_max` counts from what the file has now.
    pub fn set_faults<C: Contract>(&mut self, faults: &FileFaults, world: &mut World<C>) {
        let pages_max = faults.pages_max.map(|more| self.file.pages() + more);
        self.has_faults = *faults != FileFaults::default();
        world.tally.add(if self.has_faults { "disk.faults" } else { "disk.heals" }, 1);
        self.file.set_faults(FileFaults { pages_max, ..faults.clone() });
    }

    /// The disk works from now on. True if it did not.
    pub fn heal(&mut self) -> bool {
        self.file.set_faults(FileFaults::default());
        std::mem::take(&mut self.has_faults)
    }

    /// The process ends, and perhaps the host with it; the image is opened again.
    pub fn crash<C: Contract>(&mut self, world: &mut World<C>, prng: &mut Prng) {
        self.leave(world);
        if prng.below(HOST_CRASH_ONE_IN) == 0 {
            let unsynced =
                if prng.split("unsynced").below(2) == 0 { Unsynced::Lost } else { Unsynced::InPart };
            self.file.crash(unsynced);
            world.tally.add("disk.host_crashes", 1);
        } else {
            world.tally.add("disk.kills", 1);
        }
        self.enter(world);
    }

    /// The process ends, and the image is opened again.
    pub fn restart<C: Contract>(&mut self, world: &mut World<C>) {
        self.leave(world);
        self.enter(world);
    }

    fn leave<C: Contract>(&mut self, world: &mut World<C>) {
        let failed = world.device().inner().store_error().is_some();
        world.tally.add("disk.drives_failed", u64::from(failed));
        self.image = None;
        world.leave_drive();
    }

    fn enter<C: Contract>(&mut self, world: &mut World<C>) {
        let open = || Image::open_simulated(&self.file, &OpenOptions::default());
        let opened = match open() {
            Err(_) if self.has_faults => {
                world.tally.add("disk.opens_refused", 1);
                self.file.set_faults(FileFaults::default());
                self.has_faults = false;
                open()
            }
            opened => opened,
        };
        let OpenDrive { flash, image, .. } =
            opened.unwrap_or_else(|error| panic!("an image on a disk that works: {error}"));
        let taken = image.as_ref().map_or(0, |image| image.taken_back().chunks);
        world.tally.add("disk.tails_taken_back", taken.into());
        self.image = image;
        world.enter_drive(flash);
    }
}
