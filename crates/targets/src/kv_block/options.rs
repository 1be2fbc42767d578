//! What an instance is asked to be: options of `kv` as they are, and those of everything on extents.
//!
//! Deliberately not here: what they mean (`kv`, `over_blocks`).

use crate::kv;
use crate::over_blocks::BlockOptions;

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the block target is asked to be.
    pub blocks: BlockOptions,
    /// What the keys and values are asked to be.
    pub keys: kv::Options,
}

impl Default for Options {
    /// As many writes and discards at a time as there are: the block target below has parallel units and an order of its own.
    fn default() -> Self {
        let keys = kv::Options { writes_per_unit: None, resets_per_unit: None, ..kv::Options::default() };
        Self { blocks: BlockOptions::default(), keys }
    }
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.blocks.set(name, value)? {
            return Ok(());
        }
        self.keys.set(name, value).map_err(|error| {
            error
                .replace("kv has no option", "kv-block has no option")
                .replace("wear_spread, plane_reads and seed", "seed")
                .replace("its options are", "its options are over, over.NAME, extent_bytes,")
        })
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
            (options.blocks.over.as_str(), options.keys.seed, options.blocks.extent_bytes),
            ("block_ssd", 3, Some(65_536))
        );
        assert_eq!(options.blocks.below, [("seed".to_owned(), "9".to_owned())]);
        for (name, value, says) in [
            ("dram", "1", "over.NAME"),
            ("extent_bytes", "0", "extent_bytes"),
            ("plane_reads", "never", "over.plane_reads"),
            ("wear_spread", "4", "over.wear_spread"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }
}
