//! What can be asked of an instance of Linux's format. What Linux is told when it makes one is not on media, so it must be
//! told here again.

#[cfg(feature = "canaries")]
use super::canary::Canary;
use super::size::OVER_PROVISIONING_PERCENT;
use crate::option_value::{number, yes_or_no};

/// Which of Linux's two forms of addresses a checksum of the map is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// OCSSD 1.2: the bits of sector, plane, channel, unit, page and block.
    V1_2,
    /// OCSSD 2.0: the bits of sector, channel, unit and chunk.
    V2_0,
}

/// Options of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Good chunks kept from the user, in percent, 1..=90, as Linux was told when the instance was made. `None`: it was told
    /// nothing, and took 11, or more on a small drive.
    pub over_provisioning_percent: Option<u32>,
    /// Say the checksum of the map after mount, as a Linux made with `CONFIG_NVM_PBLK_DEBUG` does ("L2P CRC").
    pub map_crc: Option<Revision>,
    /// Nothing is written to the drive, not even to end what a power cut left open.
    pub read_only: bool,
    /// Make an instance if there is none: Linux mounts it once something was written.
    pub create: bool,
    /// What the name of an instance that is made is drawn from, together with the time.
    pub seed: u64,
    /// A bug planted on purpose.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "over_provisioning_percent" => {
                let percent = value.parse().ok().filter(|percent| (1..=90).contains(percent));
                self.over_provisioning_percent = Some(percent.ok_or_else(|| {
                    format!(
                        "{name} should be what Linux was told when the instance was made, 1 to 90, but is \"{value}\"; leave it \
                         out if it was told nothing ({OVER_PROVISIONING_PERCENT})"
                    )
                })?);
            }
            "map_crc" => {
                self.map_crc = Some(match value {
                    "1.2" => Revision::V1_2,
                    "2.0" => Revision::V2_0,
                    _ => {
                        return Err(format!(
                            "{name} should be the drive's revision, 1.2 or 2.0, but is \"{value}\""
                        ));
                    }
                });
            }
            "read_only" => self.read_only = yes_or_no(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            "create" => self.create = yes_or_no(name, value)?,
            "seed" => self.seed = number(name, value)?,
            _ => {
                return Err(format!(
                    "a linux-pblk has no option \"{name}\"; its options are over_provisioning_percent, read_only, create, \
                     seed, map_crc and block_bytes"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_are_named() {
        let mut options = Options::default();
        for (name, value) in [
            ("over_provisioning_percent", "20"),
            ("map_crc", "1.2"),
            ("map_crc", "2.0"),
            ("read_only", "yes"),
            ("create", "yes"),
            ("create", "no"),
            ("seed", "7"),
        ] {
            assert_eq!(options.set(name, value), Ok(()), "{name}={value}");
        }
        assert_eq!((options.over_provisioning_percent, options.map_crc), (Some(20), Some(Revision::V2_0)));
        assert_eq!((options.read_only, options.create, options.seed), (true, false, 7));
        for (name, value, says) in [
            ("over_provisioning_percent", "0", "1 to 90"),
            ("over_provisioning_percent", "some", "1 to 90"),
            ("map_crc", "3", "1.2 or 2.0"),
            ("mode", "faithful", "no option \"mode\""),
            ("read_only", "1", "yes or no"),
            ("create", "", "yes or no"),
            ("seed", "one", "whole number"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }
}
