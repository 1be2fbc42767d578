//! What an instance is asked to be: options of `lightlsm` that mean something on one unit, and those of everything on extents.
//!
//! Deliberately not here: what they mean (`lightlsm`, `over_blocks`).

use crate::lightlsm::{self, Medium};
use crate::over_blocks::BlockOptions;

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the block target is asked to be.
    pub blocks: BlockOptions,
    /// What the tables are asked to be.
    pub tables: lightlsm::Options,
}

impl Default for Options {
    /// Each page of the journal is written once: the block target knows what to do about sectors that cannot be read.
    fn default() -> Self {
        let tables =
            lightlsm::Options { medium: Medium::Extents, log_copies: 1, ..lightlsm::Options::default() };
        Self { blocks: BlockOptions::default(), tables }
    }
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name == "placement" {
            return Err("a block target places what is written by itself; leave placement out".to_owned());
        }
        if self.blocks.set(name, value)? {
            return Ok(());
        }
        self.tables.set(name, value).map_err(|error| {
            error
                .replace("lightlsm has no option", "table-block has no option")
                .replace("plane_reads and seed", "seed")
                .replace("its options are placement,", "its options are over, over.NAME, extent_bytes,")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_to_whom_they_belong_and_placement_to_nobody() {
        let mut options = Options::default();
        for (name, value) in [("over", "ox-block"), ("over.seed", "9"), ("seed", "3"), ("tables_max", "7")] {
            assert_eq!(options.set(name, value), Ok(()), "{name}");
        }
        let Options { blocks, tables } = &options;
        assert_eq!((blocks.over.as_str(), tables.seed, tables.tables_max), ("ox-block", 3, Some(7)));
        assert_eq!((tables.medium, tables.log_copies), (Medium::Extents, 1));
        for (name, value, says) in [
            ("size", "1", "its options are over, over.NAME, extent_bytes, read_unit"),
            ("placement", "vertical", "leave placement out"),
            ("plane_reads", "never", "over.plane_reads"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }
}
