//! What the block target below is asked to be: options that everything on extents has.
//!
//! Deliberately not here: which block targets there are (`over`), and options of what stands on it.

#[cfg(feature = "canaries")]
use super::canary::Canary;
use crate::option_value::{check_above_zero, number};

/// The block target, unless another is asked for: the host's own FTL, as what stands on it is.
const OVER: &str = "pblk";

/// Options of the block target, and of its extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOptions {
    /// The kind of block target.
    pub over: String,
    /// Its options, name and value.
    pub below: Vec<(String, String)>,
    /// Bytes of an extent; default: as many as make a round number of extents, and a chunk of the drive at most. Only of a new
    /// instance.
    pub extent_bytes: Option<u64>,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for BlockOptions {
    fn default() -> Self {
        Self {
            over: OVER.to_owned(),
            below: Vec::new(),
            extent_bytes: None,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl BlockOptions {
    /// Reads one `name=value`. False if it is no option of these.
    ///
    /// # Errors
    /// A sentence that says what the value should be, or how the option is called here.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        if let Some(below) = name.strip_prefix("over.") {
            self.below.push((below.to_owned(), value.to_owned()));
            return Ok(true);
        }
        match name {
            "over" => value.clone_into(&mut self.over),
            "extent_bytes" => {
                self.extent_bytes = Some(number(name, value)?);
                check_above_zero(name, self.extent_bytes)?;
            }
            #[cfg(feature = "canaries")]
            "block_canary" => self.canary = Some(value.parse()?),
            "plane_reads" | "wear_spread" => {
                return Err(format!("{name} is an option of what has the drive: write over.{name}"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is set by one option.
    fn set(name: &str, value: &str) -> Result<BlockOptions, String> {
        let mut options = BlockOptions::default();
        let is_known = options.set(name, value)?;
        assert!(is_known, "{name}={value} is no option");
        Ok(options)
    }

    #[test]
    fn options_of_extents_and_of_what_lies_below_are_told_from_all_others() {
        let default = BlockOptions::default();
        let below = vec![("plane_reads".to_owned(), "off".to_owned())];
        assert_eq!(set("over.plane_reads", "off"), Ok(BlockOptions { below, ..default.clone() }));
        assert_eq!(
            set("over", "ox-block"),
            Ok(BlockOptions { over: "ox-block".to_owned(), ..default.clone() })
        );
        let extents = BlockOptions { extent_bytes: Some(65_536), ..default.clone() };
        assert_eq!(set("extent_bytes", "65536"), Ok(extents));
        assert!(set("extent_bytes", "0").is_err() && set("extent_bytes", "many").is_err());
        for name in ["plane_reads", "wear_spread"] {
            let sentence = set(name, "1").expect_err(name);
            assert!(sentence.contains(&format!("write over.{name}")), "{sentence}");
        }
        let mut options = default.clone();
        assert_eq!((options.set("seed", "1"), options), (Ok(false), default), "an option of others");
    }

    #[cfg(feature = "canaries")]
    #[test]
    fn every_bug_below_is_planted_by_its_name() {
        for &(canary, name) in Canary::ALL {
            assert_eq!(set("block_canary", name).map(|options| options.canary), Ok(Some(canary)), "{name}");
        }
        assert!(set("block_canary", "none-of-them").is_err());
    }
}
