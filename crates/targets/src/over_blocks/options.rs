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
