//! `block_ssd`: the traditional SSD, a black box. The FTL sits in the device, over all parallel units, shared by whoever
//! uses it: the baseline of FAST'17 figure 8 and NVMW'18 figure 3.
//!
//! It is an assembly of pblk's parts: map, streams, garbage collection, limiter and checkpoints as in the improved mode, with
//! the drive's DRAM as write buffer. Writes are acknowledged from DRAM, which is written out at once or in spells (`pblk/destage`);
//! a flush does not wait. What makes it a black box is
//! what it does not have: a choice of units, a mode, a placement, streams. Over few lines it writes one stream instead of two, as
//! pblk does. A lease of some units is refused, because nothing outside
//! of such a drive knows them.
//!
//! Deliberately not here: a read cache beyond what waits to be written (drives that have one do not say how it works), power
//! loss protection of the DRAM, the time the device's own processor takes (the drive's time per command is its place).

use crate::option_value::{number, small};
use crate::pblk::{self, MountError, MountReport, OVER_PROVISIONING_PERCENT, Pblk};
use ocssd_lightnvm::{BlockingDevice, PuId};

/// What can be asked of such a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSsdOptions {
    /// DRAM that holds what is not on media yet. Default: what the media need so that no read waits for a paired page, as
    /// pblk's improved mode counts it (chosen: data sheets do not say; more only makes bursts longer).
    pub dram_cache_bytes: Option<u64>,
    /// The DRAM is written out in spells: when so many percent of it are full, 1..=100, until nothing is left. 0 writes at once.
    /// Default: 0, as pblk (chosen: then a comparison with pblk compares placement and nothing else).
    pub destage_percent: u32,
    /// Good chunks kept from the user, in percent, 1..=90. Default as pblk (chosen: then a comparison with pblk compares
    /// placement and nothing else).
    pub over_provisioning_percent: u32,
    /// Somebody asked for that percentage: a drive that needs more to work is refused. Else it takes what it needs.
    pub over_provisioning_stated: bool,
    /// Streams and victims follow the number of lines ([`pblk::Options::for_lines`]). Else there are two streams on any drive.
    pub follows_lines: bool,
    /// Seed of its name and of random choices.
    pub seed: u64,
}

impl Default for BlockSsdOptions {
    fn default() -> Self {
        Self {
            dram_cache_bytes: None,
            destage_percent: 0,
            over_provisioning_percent: OVER_PROVISIONING_PERCENT,
            over_provisioning_stated: true,
            follows_lines: false,
            seed: 1,
        }
    }
}

impl BlockSsdOptions {
    /// The default before anything is asked for: what [`Self::set`] is not told may be chosen to fit the drive.
    #[must_use]
    pub fn unstated() -> Self {
        Self { over_provisioning_stated: false, follows_lines: true, ..Self::default() }
    }

    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "dram_cache_bytes" => self.dram_cache_bytes = Some(number(name, value)?),
            "destage_percent" => {
                self.destage_percent = small(name, value)?;
                if self.destage_percent > 100 {
                    return Err(format!("destage_percent should be 0 to 100, but is {value}"));
                }
            }
            "over_provisioning_percent" => {
                self.over_provisioning_percent = small(name, value)?;
                self.over_provisioning_stated = true;
            }
            "seed" => self.seed = number(name, value)?,
            _ => {
                return Err(format!(
                    "a block_ssd has no option \"{name}\": it is a black box; its options are dram_cache_bytes, \
                     destage_percent, over_provisioning_percent, seed and block_bytes"
                ));
            }
        }
        Ok(())
    }

    /// The parts it is made of.
    fn assembly(&self) -> pblk::Options {
        pblk::Options {
            mode: pblk::Mode::Improved,
            over_provisioning_percent: self.over_provisioning_percent,
            over_provisioning_stated: self.over_provisioning_stated,
            write_buffer_bytes: self.dram_cache_bytes,
            destage_percent: self.destage_percent,
            follows_lines: self.follows_lines,
            seed: self.seed,
            ..pblk::Options::default()
        }
    }
}

/// Mounts the drive's own FTL over all of its units, or makes one.
///
/// # Errors
/// A sentence, if `units` are not all there are, or the options do not fit.
pub fn mount(
    device: &mut dyn BlockingDevice,
    units: &[PuId],
    options: &BlockSsdOptions,
) -> Result<(Pblk, MountReport), String> {
    let all = device.geometry().pu_count();
    if u32::try_from(units.len()) != Ok(all) {
        return Err(format!(
            "a block SSD shows no parallel units, so it takes all {all} of the drive, but {} were leased to it; use \
             place=all, or pblk for a part of a drive",
            units.len()
        ));
    }
    Pblk::mount(device, units, &options.assembly()).map_err(|error| match error {
        MountError::DoesNotFit(sentence) => in_its_own_words(&sentence),
        other => other.to_string(),
    })
}

/// The parts speak of a write buffer, and of options that a black box does not have.
fn in_its_own_words(sentence: &str) -> String {
    let plain = sentence.split_once(", or force it").map_or(sentence, |(plain, _)| plain);
    plain.replace("write_buffer_bytes", "dram_cache_bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pblk::FEW_LINES;

    #[test]
    fn its_options_are_its_own_and_others_are_refused() {
        let mut options = BlockSsdOptions::default();
        for (name, value) in
            [("dram_cache_bytes", "1048576"), ("over_provisioning_percent", "27"), ("seed", "9")]
        {
            assert_eq!(options.set(name, value), Ok(()), "{name}");
        }
        let parts = options.assembly();
        assert_eq!(
            (parts.write_buffer_bytes, parts.over_provisioning_percent, parts.seed),
            (Some(1 << 20), 27, 9)
        );
        for (name, value, says) in [
            ("mode", "faithful", "black box"),
            ("active_units", "4", "dram_cache_bytes"),
            ("seed", "one", "whole number"),
            ("destage_percent", "101", "0 to 100"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn without_options_it_is_made_of_what_pblk_is() {
        assert_eq!(BlockSsdOptions::default().assembly(), pblk::Options::default());
        let mut options = BlockSsdOptions::default();
        assert_eq!(options.set("destage_percent", "50"), Ok(()));
        assert_eq!(options.assembly().destage_percent, 50);
    }

    #[test]
    fn what_nobody_states_is_chosen_as_pblk_chooses_it() {
        let unstated = BlockSsdOptions::unstated();
        assert_eq!(unstated.assembly(), pblk::Options::unstated());
        for lines in [FEW_LINES, FEW_LINES + 1] {
            let parts = unstated.assembly().for_lines(lines);
            let has_one_stream = parts.classification().streams() == 1;
            assert_eq!(has_one_stream, lines == FEW_LINES, "{lines} lines");
            assert_eq!(parts, pblk::Options::unstated().for_lines(lines), "{lines} lines");
        }
    }
}
