//! What an instance is asked to be: options of `kv` as they are, those of the block target as `over.NAME`, and two of its own.
//!
//! Deliberately not here: which block targets there are (`over`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use crate::kv;
use crate::option_value::{check_above_zero, number};

/// The block target, unless another is asked for: the host's own FTL, as `kv` is.
const OVER: &str = "pblk";

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The kind of block target.
    pub over: String,
    /// Its options, name and value.
    pub below: Vec<(String, String)>,
    /// Bytes of an extent; default: a 512th of the block target, and a chunk of the drive at most. Only of a new instance.
    pub extent_bytes: Option<u64>,
    /// What the keys and values are asked to be.
    pub keys: kv::Options,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            over: OVER.to_owned(),
            below: Vec::new(),
            extent_bytes: None,
            keys: kv::Options::default(),
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(below) = name.strip_prefix("over.") {
            self.below.push((below.to_owned(), value.to_owned()));
            return Ok(());
        }
        match name {
            "over" => value.clone_into(&mut self.over),
            "extent_bytes" => {
                self.extent_bytes = Some(number(name, value)?);
                check_above_zero(name, self.extent_bytes)?;
            }
            #[cfg(feature = "canaries")]
            "block_canary" => self.canary = Some(value.parse()?),
            "plane_reads" => {
                return Err(
                    "plane_reads is an option of what reads the drive: write over.plane_reads".to_owned()
                );
            }
            _ => self.keys.set(name, value).map_err(|error| {
                error
                    .replace("kv has no option", "kv-block has no option")
                    .replace("plane_reads and seed", "seed")
                    .replace("its options are", "its options are over, over.NAME, extent_bytes,")
            })?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_to_whom_they_belong() {
        let mut options = Options::default();
        for (name, value) in
            [("over", "block_ssd"), ("over.seed", "9"), ("seed", "3"), ("extent_bytes", "65536")]
        {
            assert_eq!(options.set(name, value), Ok(()), "{name}");
        }
        assert_eq!(
            (options.over.as_str(), options.keys.seed, options.extent_bytes),
            ("block_ssd", 3, Some(65_536))
        );
        assert_eq!(options.below, [("seed".to_owned(), "9".to_owned())]);
        for (name, value, says) in [
            ("dram", "1", "over.NAME"),
            ("extent_bytes", "0", "extent_bytes"),
            ("plane_reads", "never", "over.plane_reads"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }
}
