//! What a page store is asked to be: the options of every FTL of OX's machines, and the largest flush.
//!
//! Deliberately not here: sizes that follow from it (`sizes`).

use crate::ox::options::Options as Common;

/// Options of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Those of every FTL of these machines; when flushes are durable they say themselves.
    pub common: Common,
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.common.set_common(name, value)? {
            return Ok(());
        }
        Err(format!(
            "eleos has no option \"{name}\"; its options are over_provisioning_percent, checkpoint_log_bytes, recovery, log_copies, \
             gc_groups_max, victim, writes_per_unit, plane_reads and seed"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_machines() {
        let mut options = Options::default();
        for (name, value) in [("gc_groups_max", "4"), ("log_copies", "1"), ("seed", "9")] {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.common.gc_groups_max, options.common.seed), (4, 9));
        for name in ["durability", "block_bytes", "page_size"] {
            let error = options.set(name, "1").expect_err(name);
            assert!(error.contains("eleos has no option") && error.contains("log_copies"), "{error}");
        }
    }
}
