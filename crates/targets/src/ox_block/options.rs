//! The options of a block device: those of every FTL of OX's machines, and when a request is answered.
//!
//! Deliberately not here: the others (`ox::options`).

use crate::option_value::{number, small};
use crate::ox::options::Options;

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name == "durability" {
            self.durability = value.parse()?;
        } else if name == "map_cache_bytes" {
            self.map_cache_bytes = Some(number(name, value)?);
        } else if name == "map_page_bytes" {
            self.map_page_bytes = Some(small(name, value)?);
        } else if name == "lost_log" {
            self.lost_log = value.parse()?;
        } else if !self.set_common(name, value)? {
            return Err(format!(
                "ox-block has no option \"{name}\"; its options are over_provisioning_percent, durability, \
                 checkpoint_log_bytes, recovery, log_copies, lost_log, map_cache_bytes, map_page_bytes, gc_groups_max, victim, \
                 writes_per_unit, plane_reads, seed and block_bytes"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ox::options::Durability;

    #[test]
    fn options_are_read_and_wrong_ones_say_what_would_be_right() {
        let mut options = Options::default();
        for (name, value) in [("durability", "flush"), ("gc_groups_max", "4"), ("victim", "cost-benefit")] {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.durability, options.gc_groups_max), (Durability::Flush, 4));
        assert_eq!(options.check(), Ok(()));
        for (name, value, says) in [
            ("durability", "never", "\"request\" or \"flush\""),
            ("lost_log", "keep", "\"refuse\" or \"drop\""),
            ("size", "1", "no option \"size\""),
            ("seed", "-1", "whole number"),
            ("recovery", "0s", "at least 1ms"),
            ("recovery", "100", "such as 100ms"),
            ("victim", "oldest", "greedy"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        for (name, value, says) in [
            ("over_provisioning_percent", "0", "1 to 95"),
            ("writes_per_unit", "17", "1 to 16"),
            ("gc_groups_max", "0", "at least 1"),
            ("log_copies", "3", "1 to 2"),
            ("checkpoint_log_bytes", "0", "at least 1"),
        ] {
            let mut options = Options::default();
            options.set(name, value).expect("a number");
            let error = options.check().expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }

    #[cfg(not(feature = "canaries"))]
    #[test]
    fn a_build_without_canaries_refuses_the_option() {
        let error = Options::default().set("canary", "moves-stale").expect_err("no such option");
        assert!(error.starts_with("ox-block has no option \"canary\""), "{error}");
    }
}
