//! Known drives, each number with its source; and small ones for tests.
//!
//! Where no source gives a number it says "chosen" and why. Deliberately not here: reading a preset from a file.

mod drives;
mod small;

use crate::config::Config;

/// A drive that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// One line about it, sources included.
    pub about: &'static str,
    make: fn() -> Config,
}

impl Preset {
    /// The drive's settings.
    #[must_use]
    pub fn config(&self) -> Config {
        let mut config = (self.make)();
        self.name.clone_into(&mut config.model);
        config
    }
}

/// The preset `ocssd` uses when none is named.
pub const DEFAULT: &str = "westlake";

/// Every preset.
pub const ALL: &[Preset] = &[
    Preset {
        name: "westlake",
        about: "CNEX Westlake, 2 TB MLC, 16 x 8 units (FAST'17 table 1; liblightnvm's documents)",
        make: drives::westlake,
    },
    Preset {
        name: "cnex-tlc",
        about: "the OCSSD 2.0 TLC drive of liblightnvm's documents, 1.19 TB, 8 x 4 units",
        make: drives::cnex_tlc,
    },
    Preset {
        name: "cidr20",
        about: "the dual-plane TLC drive of CIDR'20 section 4.1, 32 units, write-back cache",
        make: drives::cidr20,
    },
    Preset {
        name: "qemu",
        about: "the default image of qemu-nvme's OCSSD branch, 2 x 8 units, 15.7 GB",
        make: drives::qemu,
    },
    Preset {
        name: "zn540",
        about: "a ZN540-class TLC drive (NVMeVirt's model of it), 8 x 4 units",
        make: drives::zn540,
    },
    Preset {
        name: "970pro",
        about: "a 970 PRO-class MLC drive (NVMeVirt's model of it), 8 x 2 units",
        make: drives::pro970,
    },
    Preset { name: "z-nand", about: "a Z-NAND-class SLC drive, 8 x 4 units", make: drives::z_nand },
    Preset {
        name: "qlc",
        about: "a QLC drive with 64 KiB pages over four planes, 8 x 4 units",
        make: drives::qlc,
    },
    Preset { name: "tiny", about: "2 x 2 units of 16 small chunks, for tests", make: small::tiny },
    Preset {
        name: "odd",
        about: "3 x 5 units, ws_opt 24, no power of two anywhere, for tests",
        make: small::odd,
    },
];

/// The preset of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_has_its_own_name() {
        for preset in ALL {
            assert_eq!(preset.config().check(), Ok(()), "{}", preset.name);
            assert_eq!(ALL.iter().filter(|other| other.name == preset.name).count(), 1, "{}", preset.name);
        }
        assert!(find(DEFAULT).is_some() && find("nothing").is_none());
    }
}
