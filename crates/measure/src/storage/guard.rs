//! What the system says of a block device, and whether it may be written: never with partitions, mounts or holders, and
//! only if its serial number was typed.
//!
//! Reads sysfs and /proc below a root, which tests replace. Source of the names: the kernel's Documentation/ABI
//! (sysfs-block) and proc(5). Deliberately not here: opening the device.

use super::system;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the system's facts are.
#[derive(Clone, Debug)]
pub struct SystemRoot(PathBuf);

impl Default for SystemRoot {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

/// A device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl DeviceNumber {
    /// From the number a file's status has.
    #[must_use]
    pub fn of(device: u64) -> Self {
        system::number_of(device)
    }
}

/// What is known of the disk a file or device lies on. Texts are empty where the system says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name: `nvme0n1`.
    pub name: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// Scheduler, as sysfs shows it: `[none] mq-deadline`.
    pub scheduler: String,
    /// Requests in its queue.
    pub nr_requests: String,
    /// `write back` or `write through`.
    pub write_cache: String,
    /// `1` if it turns.
    pub rotational: String,
    /// Bytes.
    pub bytes: u64,
    /// Rate and width of its PCIe link, if it has one.
    pub link: String,
    /// Rate of that link in bytes per second.
    pub link_bytes_per_second: Option<u64>,
    /// Temperature in thousandths of a degree Celsius.
    pub temperature_millicelsius: Option<i64>,
}

/// Why a device must not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is divided.
    #[error("{0} has partitions ({1}): it is never written; name a directory of a file system on it instead")]
    Partitions(String, String),
    /// It is mounted, or memory is swapped to it.
    #[error("{0} is in use as {1}: it is never written; unmount it first, or name a directory on it instead")]
    Mounted(String, String),
    /// Another device lies on it.
    #[error("{0} is held by {1}: it is never written; take that down first")]
    Held(String, String),
    /// Nobody typed its serial number.
    #[error("writing destroys what is on {0}; if that is wanted, type its serial number: --serial '{1}'")]
    SerialNotGiven(String, String),
    /// Another one was typed.
    #[error("{0} has the serial number '{1}', but --serial '{2}' was given: this is another device")]
    SerialDiffers(String, String, String),
    /// It has none.
    #[error(
        "the system knows no serial number of {0}, so nobody can say that this device was meant: it is not written"
    )]
    NoSerial(String),
}

impl SystemRoot {
    /// Facts below another directory, for tests.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The text of a file, trimmed; empty if there is none.
    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap_or_default().trim().to_owned()
    }

    fn entries(&self, path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The directory of a device in sysfs.
    fn directory(&self, number: DeviceNumber) -> PathBuf {
        let DeviceNumber { major, minor } = number;
        let link = self.0.join(format!("sys/dev/block/{major}:{minor}"));
        fs::canonicalize(&link).unwrap_or(link)
    }

    /// The whole disk a device belongs to: itself, or what it is a partition of.
    fn disk_directory(&self, number: DeviceNumber) -> PathBuf {
        let own = self.directory(number);
        let is_partition = own.join("partition").exists();
        own.parent().filter(|_| is_partition).map_or(own.clone(), Path::to_owned)
    }

    /// What is known of the disk below a device; `None` if the number is no disk's (a file system may invent one).
    #[must_use]
    pub fn disk(&self, number: DeviceNumber) -> Option<Disk> {
        let directory = self.disk_directory(number);
        if !directory.join("stat").exists() {
            return None;
        }
        let text =
            |path: &str| fs::read_to_string(directory.join(path)).unwrap_or_default().trim().to_owned();
        let first = |paths: [&str; 2]| {
            paths.into_iter().map(text).find(|found| !found.is_empty()).unwrap_or_default()
        };
        let (speed, width) = (
            first(["device/current_link_speed", "device/device/current_link_speed"]),
            first(["device/current_link_width", "device/device/current_link_width"]),
        );
        Some(Disk {
            name: directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            model: text("device/model"),
            serial: first(["serial", "device/serial"]),
            firmware: first(["device/firmware_rev", "device/rev"]),
            scheduler: text("queue/scheduler"),
            nr_requests: text("queue/nr_requests"),
            write_cache: text("queue/write_cache"),
            rotational: text("queue/rotational"),
            bytes: text("size").parse::<u64>().unwrap_or_default() * 512,
            link_bytes_per_second: link_rate(&speed, &width),
            link: if speed.is_empty() { speed } else { format!("{speed} x{width}") },
            temperature_millicelsius: self.temperature(&directory),
        })
    }

    fn temperature(&self, directory: &Path) -> Option<i64> {
        let device = directory.join("device");
        let monitors = self.entries(&device).into_iter().filter(|name| name.starts_with("hwmon"));
        let mut found = monitors.map(|name| device.join(name).join("temp1_input"));
        found.find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
    }

    /// How often processors were slowed down for their heat; `None` where the kernel does not count it.
    pub(super) fn throttles(&self) -> Option<u64> {
        let all = self.0.join("sys/devices/system/cpu");
        let counts = ["core_throttle_count", "package_throttle_count"];
        let read = |name: &str| {
            let folder = all.join(name).join("thermal_throttle");
            let number =
                |count: &str| fs::read_to_string(folder.join(count)).ok()?.trim().parse::<u64>().ok();
            counts.iter().filter_map(|count| number(count)).reduce(u64::saturating_add)
        };
        self.entries(&all).iter().filter_map(|name| read(name)).reduce(u64::saturating_add)
    }

    /// Sectors of 512 bytes the disk read and wrote since the system started (Documentation/block/stat.rst).
    #[must_use]
    pub fn sectors(&self, number: DeviceNumber) -> Option<(u64, u64)> {
        let text = fs::read_to_string(self.disk_directory(number).join("stat")).ok()?;
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        let read = numbers.nth(2)??;
        let written = numbers.nth(3)??;
        Some((read, written))
    }

    /// Whether a device may be written.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_write(&self, path: &str, number: DeviceNumber, serial: Option<&str>) -> Result<(), Refusal> {
        let directory = self.directory(number);
        let partitions: Vec<String> = self
            .entries(&directory)
            .into_iter()
            .filter(|name| directory.join(name).join("partition").exists())
            .collect();
        if !partitions.is_empty() {
            return Err(Refusal::Partitions(path.to_owned(), partitions.join(", ")));
        }
        if let Some(place) = self.use_of(path, number) {
            return Err(Refusal::Mounted(path.to_owned(), place));
        }
        let holders = self.entries(&directory.join("holders"));
        if !holders.is_empty() {
            return Err(Refusal::Held(path.to_owned(), holders.join(", ")));
        }
        let own = self.disk(number).map(|disk| disk.serial).filter(|serial| !serial.is_empty());
        match (own, serial) {
            (None, _) => Err(Refusal::NoSerial(path.to_owned())),
            (Some(own), None) => Err(Refusal::SerialNotGiven(path.to_owned(), own)),
            (Some(own), Some(typed)) if own != typed => {
                Err(Refusal::SerialDiffers(path.to_owned(), own, typed.to_owned()))
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// What a device is used as: its mount point, or swap.
    fn use_of(&self, path: &str, number: DeviceNumber) -> Option<String> {
        let wanted = format!("{}:{}", number.major, number.minor);
        let mounts = self.text("proc/self/mountinfo");
        let mut lines = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        // Some file systems give their files another number: the name of the source is looked at too.
        let is_of = |words: &Vec<&str>| {
            let source = words.iter().position(|word| *word == "-").and_then(|at| words.get(at + 2));
            words.get(2) == Some(&wanted.as_str()) || source == Some(&path)
        };
        if let Some(words) = lines.find(is_of) {
            return words.get(4).map(|place| format!("the file system at {place}"));
        }
        let swaps = self.text("proc/swaps");
        // The name there may be another link to the same device.
        let is_it = |name: &str| {
            let same = |about: &fs::Metadata| {
                number == system::device_number(about) && system::is_block_device(about.file_type())
            };
            name == path || fs::metadata(name).is_ok_and(|about| same(&about))
        };
        swaps
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .any(is_it)
            .then(|| "swap".to_owned())
    }
}

/// Bytes per second of a PCIe link, after its coding (PCI Express Base Specification: 8b/10b up to 5 GT/s, then 128b/130b).
fn link_rate(speed: &str, width: &str) -> Option<u64> {
    let tenths: u64 = match speed.split_whitespace().next()? {
        "2.5" => 25,
        "5.0" | "5" => 50,
        "8.0" | "8" => 80,
        "16.0" | "16" => 160,
        "32.0" | "32" => 320,
        _ => return None,
    };
    let bits = tenths * 100_000_000;
    let lane = if tenths <= 50 { bits / 10 * 8 / 8 } else { bits / 130 * 128 / 8 };
    Some(lane * width.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: DeviceNumber = DeviceNumber { major: 259, minor: 0 };

    /// A system with one disk, as files below a fresh directory.
    fn system(name: &str, files: &[(&str, &str)]) -> SystemRoot {
        let root = std::env::temp_dir().join(format!("ocssd-guard-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root); // Left by a run that was killed, if at all.
        let base = [
            ("sys/dev/block/259:0/stat", "1 0 80 0 2 0 160 0 0 0 0"),
            ("sys/dev/block/259:0/serial", "S123"),
            ("sys/dev/block/259:0/size", "2048"),
            ("proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw"),
            ("proc/swaps", "Filename Type\n"),
        ];
        for (path, text) in base.iter().chain(files) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a file lies in a directory"))
                .expect("temporary files can be made");
            fs::write(path, text).expect("temporary files can be written");
        }
        SystemRoot::at(&root)
    }

    #[test]
    fn a_device_is_written_only_if_nothing_uses_it_and_its_serial_was_typed() {
        let path = "/dev/nvme0n1".to_owned();
        let check = |name: &str, files: &[(&str, &str)], serial: Option<&str>| {
            let system = system(name, files);
            let answer = system.may_write(&path, NUMBER, serial);
            fs::remove_dir_all(&system.0).expect("own files can be removed");
            answer
        };
        assert_eq!(check("good", &[], Some("S123")), Ok(()));
        assert_eq!(check("none", &[], None), Err(Refusal::SerialNotGiven(path.clone(), "S123".into())));
        let other = Refusal::SerialDiffers(path.clone(), "S123".into(), "S999".into());
        assert_eq!(check("other", &[], Some("S999")), Err(other));
        let cases = [
            ("part", ("sys/dev/block/259:0/nvme0n1p1/partition", "1"), "partitions (nvme0n1p1)"),
            ("held", ("sys/dev/block/259:0/holders/dm-0", ""), "held by dm-0"),
            ("mount", ("proc/self/mountinfo", "1 1 259:0 / /mnt rw - ext4 /dev/x rw"), "file system at /mnt"),
            (
                "named",
                ("proc/self/mountinfo", "1 1 0:40 / /data rw - btrfs /dev/nvme0n1 rw"),
                "system at /data",
            ),
            ("swap", ("proc/swaps", "Filename Type\n/dev/nvme0n1 partition 8 0 -2"), "swap"),
            ("serial", ("sys/dev/block/259:0/serial", ""), "knows no serial number"),
        ];
        for (name, file, expected) in cases {
            let refusal = check(name, &[file], Some("S123")).expect_err(name).to_string();
            assert!(refusal.contains(expected), "{name}: {refusal}");
        }
    }

    #[test]
    fn a_disk_is_described_and_its_sectors_are_counted() {
        let system = system("facts", &[("sys/dev/block/259:0/device/model", "Fast 9000  ")]);
        let disk = system.disk(NUMBER).expect("there is one");
        assert_eq!((disk.model.as_str(), disk.serial.as_str(), disk.bytes), ("Fast 9000", "S123", 1 << 20));
        assert_eq!(system.sectors(NUMBER), Some((80, 160)));
        assert_eq!(system.throttles(), None, "a kernel that does not count it");
        for (place, count) in [("cpu0/thermal_throttle/core", "3"), ("cpu1/thermal_throttle/package", "4\n")]
        {
            let path = system.0.join(format!("sys/devices/system/cpu/{place}_throttle_count"));
            fs::create_dir_all(path.parent().expect("a file lies in a directory"))
                .expect("own folders can be made");
            fs::write(path, count).expect("own files can be written");
        }
        assert_eq!(system.throttles(), Some(7));
        assert_eq!(system.disk(DeviceNumber { major: 0, minor: 40 }), None);
        fs::remove_dir_all(&system.0).expect("own files can be removed");
    }

    #[test]
    fn a_link_carries_what_its_coding_leaves() {
        assert_eq!(link_rate("8.0 GT/s PCIe", "4"), Some(3_938_461_504));
        assert_eq!(link_rate("5.0 GT/s PCIe", "2"), Some(1_000_000_000));
        assert_eq!(link_rate("", ""), None);
    }
}
