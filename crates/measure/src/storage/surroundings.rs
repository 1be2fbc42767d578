//! What is around a device and changes by itself: heat, the link, and who else has the processors.
//!
//! Read before and after a profile, so that rule L14 can set one beside the other. Sources of the names: the kernel's
//! Documentation/ABI (sysfs-devices-system-cpu, sysfs-class-hwmon) and proc(5) for `/proc/stat`. Deliberately not here: power
//! states and SMART data, which need commands of the device; and judging.

use super::guard::{DeviceNumber, SystemRoot};
use serde_json::{Value, json};

/// How things stand; everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Temperature of the disk in thousandths of a degree Celsius.
    pub disk_millicelsius: Option<i64>,
    /// How often processors were slowed down for their heat, since the system started.
    pub throttles: Option<u64>,
    /// Rate and width of the disk's link.
    pub link: Option<String>,
    /// Processor time that other virtual machines had, and all there was, in ticks since the system started.
    pub stolen: Option<(u64, u64)>,
}

impl Surroundings {
    /// How they are now for a device.
    #[must_use]
    pub fn read(system: &SystemRoot, device: DeviceNumber) -> Self {
        let disk = system.disk(device);
        Self {
            disk_millicelsius: disk.as_ref().and_then(|disk| disk.temperature_millicelsius),
            throttles: system.throttles(),
            link: disk.map(|disk| disk.link).filter(|link| !link.is_empty()),
            stolen: stolen(&system.text("proc/stat")),
        }
    }

    /// As part of a result.
    #[must_use]
    pub fn as_value(&self) -> Value {
        json!({
            "disk_millicelsius": self.disk_millicelsius,
            "processor_throttles": self.throttles,
            "disk_link": self.link,
            "stolen_ticks": self.stolen.map(|(stolen, _)| stolen),
            "processor_ticks": self.stolen.map(|(_, all)| all),
        })
    }

    /// Read back; what is not there is unknown.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self {
            disk_millicelsius: value["disk_millicelsius"].as_i64(),
            throttles: value["processor_throttles"].as_u64(),
            link: value["disk_link"].as_str().map(str::to_owned),
            stolen: value["stolen_ticks"].as_u64().zip(value["processor_ticks"].as_u64()),
        }
    }
}

/// The eighth number of the first line is steal; those before it are all other time (guests' time is in the first).
fn stolen(stat: &str) -> Option<(u64, u64)> {
    let words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 8).then(|| (ticks[7], ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number_and_never_guessed() {
        assert_eq!(stolen("cpu  10 0 20 60 5 1 1 3 0 0\ncpu0 1 2\n"), Some((3, 100)));
        for text in ["", "cpu 1 2 3\n", "intr 5\n", "cpu a b c d e f g h"] {
            assert_eq!(stolen(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let all = Surroundings {
            disk_millicelsius: Some(41_850),
            throttles: Some(3),
            link: Some("8.0 GT/s PCIe x4".to_owned()),
            stolen: Some((1, 100)),
        };
        for one in [all, Surroundings::default()] {
            assert_eq!(Surroundings::from_value(&one.as_value()), one);
        }
    }
}
